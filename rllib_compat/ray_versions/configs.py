"""What the `AlgorithmConfig` of each release takes and asks for."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_compat import registry
from rllib_compat.ray_versions.releases import at_least

if TYPE_CHECKING:
    from gymnasium import Space

    from rllib_compat.ray_versions.types import AlgorithmConfig


@cache
def _releases_of_settings() -> dict[str, tuple[str | None, str | None]]:
    """The release with which a config's argument came, and that with which it went.

    `settings.json` holds the arguments that not all releases take. A program wrote it, from the
    releases themselves: `tests/ray_releases/record_all.py`.
    """
    table = json.loads(Path(__file__).with_name("settings.json").read_text(encoding="utf-8"))
    came, went = (
        {name: release for release, names in table[kind].items() for name in names}
        for kind in ("came", "went")
    )
    return {name: (came.get(name), went.get(name)) for name in {*came, *went}}


def has_setting(setting: str) -> bool:
    """Whether the installed Ray's `AlgorithmConfig` takes a setting (`method.argument`)."""
    name = ".".join(setting.split(".")[:2])
    came, went = _releases_of_settings().get(name, (None, None))
    return (came is None or at_least(came)) and (went is None or not at_least(went))


def takes_prelearners() -> bool:
    """Whether a config may have a class that prepares recorded episodes.

    Ray 2.48 - 2.51 hold it against the class of offline evaluation, and refuse each one.
    """
    return not at_least("2.48") or at_least("2.52")


def own_settings(algorithm: str) -> dict[str, Any]:
    """The settings that one algorithm has and others have not, with its defaults."""
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

    common = AlgorithmConfig().to_dict()
    found = todays_config(algorithm).to_dict()
    return {name: value for name, value in found.items() if name not in common}


def todays_config(algorithm: str) -> AlgorithmConfig:
    """The config of an algorithm of the installed Ray, or of ours, as it comes."""
    module = import_module(registry.of(algorithm).home)
    config: AlgorithmConfig = getattr(module, f"{algorithm}Config")()
    return config


def kept_minus_one(value: float, default: object) -> float:
    """A setting of -1 as Ray keeps it; 2.40 - 2.60 take it for "unset" when an algorithm is made.

    The algorithm's config is made of the given one's `get_state`, which leaves out all that is -1.
    The next number below stays, and is -1 as a float32. What is a whole number stays as it is.
    """
    is_whole = type(default) is int or (type(value) is int and not isinstance(default, float | str))
    return value if is_whole else math.nextafter(-1.0, -2.0)


def is_multi_agent(config: AlgorithmConfig) -> bool:
    """Whether a config is for many agents; a method until Ray 2.40, a property since."""
    answer = config.is_multi_agent
    return bool(answer() if callable(answer) else answer)


def vectorizes_multi_agent_envs() -> bool:
    """Whether an env runner steps several multi-agent environments; Ray 2.40 refuses to."""
    return at_least("2.44")


def vectorize_mode(mode: str) -> str:
    """How the installed Ray spells a member of gymnasium's `VectorizeMode`.

    Ray 2.41 – 2.51 ask for its name (`SYNC`), later ones for its value (`sync`), and each refuses
    what the others take.
    """
    return mode.lower() if at_least("2.52") else mode.upper()


def keep_env_runners(
    config: AlgorithmConfig, observation_space: Space[Any], action_space: Space[Any]
) -> None:
    """Lets an offline algorithm have env runners, if only local ones.

    Later releases make none for a config that is not online, and `Algorithm.from_checkpoint` then
    fails to send them the weights (`restore_from_path` of Ray 2.60). Ray 2.41 – 2.47 do not know
    the difference, and ask for the spaces even where there is an environment.
    """
    if not hasattr(config, "_is_online"):
        config.environment(observation_space=observation_space, action_space=action_space)
    elif not config._is_online:
        config._is_online = True


def learns_in_its_process() -> bool:
    """Whether IMPALA and APPO may learn in the algorithm's own process without a GPU.

    Ray 2.41 and 2.42 refuse to (`IMPALAConfig.validate`), for the main thread and the learner's
    would be in each other's way.
    """
    return at_least("2.43") or not at_least("2.41")


def learns_elsewhere(config: AlgorithmConfig | None) -> bool:
    """Whether this algorithm is IMPALA or APPO on a Ray that refuses it here without a GPU."""
    from ray.rllib.algorithms.impala import IMPALAConfig

    return not learns_in_its_process() and isinstance(config, IMPALAConfig)


def learn_in_this_process(config: AlgorithmConfig) -> None:
    """Lets an algorithm that is only built, not trained, have its one learner in this process."""
    config.learners(num_learners=0, num_gpus_per_learner=0)
    if not learns_in_its_process():
        config.experimental(_validate_config=False)


def keep_connectors_of_local_runner(config: AlgorithmConfig) -> None:
    """Lets the connectors of the local env runner be everybody's, and merges no others into them.

    The setting was renamed in Ray 2.45. Until then, what goes from the local runner to the
    others after each iteration takes its number of steps along, which is zero; so nothing goes.
    """
    merges = "merge_env_runner_states"
    if not has_setting(f"env_runners.{merges}"):
        merges = "use_worker_filter_stats"
    config._dont_auto_sync_env_runner_states = True
    config.env_runners(**{merges: False})


def merge_connectors_each_iteration(config: AlgorithmConfig) -> None:
    """Lets IMPALA and APPO also merge what connectors have seen when an iteration ends.

    They do so with samples only, and drop what came with those that no update followed.
    """
    from ray.rllib.algorithms.impala import IMPALAConfig

    if isinstance(config, IMPALAConfig) and config._env_to_module_connector is not None:
        config._dont_auto_sync_env_runner_states = False


def whole_model_config(config: AlgorithmConfig, settings: dict[str, Any]) -> dict[str, Any]:
    """What a module's spec has to say for the module to get an algorithm's own settings, too.

    Env runners of Ray 2.40 take a spec's model config as it is; Ray 2.60 adds the algorithm's
    settings (DQN's epsilon, …). In between they are added here, which is right in any release.
    """
    if at_least("2.60"):
        return settings
    whole: dict[str, Any] = config.model_config | settings
    return whole


def plain_model_config(settings: Any) -> dict[str, Any]:
    """A model config as a dict; Ray has a dataclass of some, and nothing of others."""
    return asdict(settings) if is_dataclass(settings) else dict(settings or {})  # type: ignore[arg-type]


def update_model_config(config: AlgorithmConfig, settings: dict[str, Any]) -> None:
    """Changes the model config of modules whose specs have none, in place."""
    config.rl_module(model_config=plain_model_config(config._model_config) | settings)


def remove_from_model_config(config: AlgorithmConfig, names: Iterable[str]) -> None:
    """Removes settings from the model config of all modules, in place."""
    settings = plain_model_config(config._model_config)
    if not settings.keys().isdisjoint(names):
        config.rl_module(model_config={k: v for k, v in settings.items() if k not in set(names)})


def learner_method() -> str:
    """The method that takes what concerns learners; `training`, which took it, warns since 2.53."""
    return "learners" if has_setting("learners.learner_class") else "training"


def set_learner_class(config: AlgorithmConfig, learner_class: type) -> None:
    """Gives a config a learner class."""
    getattr(config, learner_method())(learner_class=learner_class)


def set_cache_of_module_configs(config: AlgorithmConfig, cache: dict[str, Any]) -> None:
    """Gives a config another cache of the configs of its modules (Ray 2.40 – 2.60)."""
    config._per_module_overrides = cache
