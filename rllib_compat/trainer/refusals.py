"""Errors for configs that can't be built or can't learn: they name keys where Ray's do not.

Ray waits for missing resources forever and silently, since nodes may join; Ray 1.x named them
within seconds. Where no node can join, the missing ones are an error.
"""

from __future__ import annotations

import logging
import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from rllib_compat import registry
from rllib_compat.config import Translation
from rllib_compat.config.rules.exploration import type_name
from rllib_compat.neutral.errors import CompatError, ConfigError, RayNotSupportedError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import algorithms, startup
from rllib_compat.ray_versions.algorithms import resource_request
from rllib_compat.ray_versions.learners import local_learner
from rllib_compat.runtime.offline.inputs import require_fitting_steps

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


@frozen
class Need:
    """Something in a config, and the action spaces that it works with.

    Attributes:
        key: The key that asks for it.
        asked: Returns the value of a config that asks for it, or None.
        spaces: The names of the spaces' classes.
        fix: What to do.
    """

    key: str
    asked: Callable[[Mapping[str, Any]], Any]
    spaces: tuple[str, ...]
    fix: str


def _explores(*kinds: str) -> Callable[[Mapping[str, Any]], Any]:
    def asked(config: Mapping[str, Any]) -> Any:
        name = type_name(config.get("exploration_config"))
        return name if name in kinds else None

    return asked


def _noise_on_weights(config: Mapping[str, Any]) -> Any:
    """Noise on weights adapts to a distance of distributions: Ray has it for Discrete and DDPG.

    With others, it raises an error without a message. A custom one may be Discrete.
    """
    own = (config.get("model") or {}).get("custom_action_dist")
    return None if own else _explores("ParameterNoise")(config)


def _previous_actions(config: Mapping[str, Any]) -> Any:
    if config.get("_disable_action_flattening"):
        return None
    return (config.get("model") or {}).get("attention_use_n_prev_actions")


_SAMPLE = "Leave exploration_config out: actions are then drawn from the policy's distribution."
NEEDS = (
    Need("exploration_config", _explores("SoftQ"), ("Discrete",), _SAMPLE),
    Need("exploration_config", _explores("Curiosity"), ("Discrete", "MultiDiscrete"), _SAMPLE),
    Need("exploration_config", _noise_on_weights, ("Discrete",), _SAMPLE),
    Need("exploration_config", _explores("EpsilonGreedy"), ("Discrete", "Tuple", "Dict"), _SAMPLE),
    Need(
        "exploration_config",
        _explores(
            *("GaussianNoise", "PerWorkerGaussianNoise"),
            *("OrnsteinUhlenbeckNoise", "PerWorkerOrnsteinUhlenbeckNoise"),
        ),
        ("Box",),
        _SAMPLE,
    ),
    Need(
        "model.attention_use_n_prev_actions",
        _previous_actions,
        ("Discrete", "Box"),
        "Leave it out: attention nets see the actions before of Discrete and Box spaces only.",
    ),
)


def require_actions(config: Mapping[str, Any], spaces: Iterable[Any]) -> None:
    """Refuses a config that asks for something that its action spaces can't have.

    Args:
        config: The legacy config.
        spaces: The action spaces of its policies; None for an unknown one.

    Raises:
        ConfigError: It does.
    """
    for space in [space for space in spaces if space is not None]:
        for need in NEEDS:
            asked, kind = need.asked(config), type(space).__name__
            if asked and kind not in need.spaces:
                raise ConfigError(
                    f"{asked!r} works with actions of {' or '.join(need.spaces)} only, in every "
                    f"Ray; these are {space}.",
                    where=need.key,
                    fix=need.fix,
                )


class OldStackNeededError(Exception):
    """Only the old API stack of the installed Ray can do what is asked for."""


def needs_old_stack(
    translation: Translation, config: Mapping[str, Any], action_space: object
) -> bool:
    """Whether a policy's actions are of a `Simplex`, which only Ray's old networks know."""
    policies = (config.get("multiagent") or {}).get("policies") or {}
    specs = policies.values() if isinstance(policies, Mapping) else ()
    own = (
        spec[2] if isinstance(spec, tuple) else getattr(spec, "action_space", None)
        for spec in specs
    )
    spaces = [action_space, *own]
    has_old = not registry.of(translation.algorithm).new_stack_only
    return has_old and any(map(_has_simplex, spaces))


def _has_simplex(space: object) -> bool:
    parts = getattr(space, "spaces", ())
    inner = parts.values() if isinstance(parts, Mapping) else parts
    return type(space).__name__ == "Simplex" or any(map(_has_simplex, inner))


#: The packages in which errors are raised that are not the user's.
_OTHERS = ("ray", "torch", "gymnasium", "numpy")
#: An argument of models that are policy and critics of SAC in one.
_FOR_WHOLE_SAC = "unexpected keyword argument 'policy_model_config'"
#: The error of a network without a last layer and with `free_log_std`.
_NO_OUTPUTS = "unsupported operand type(s) for %: 'NoneType'"
#: The errors of an LSTM and of attention for features of another size.
_OTHER_SIZE = ("input.size(-1) must be equal to input_size", "shapes cannot be multiplied")
#: Curiosity's error with remote workers.
_NOT_PARALLEL = "does not support parallelism"
#: The error of SAC's networks with nested observations.
_NESTED = "expected Tensor as element"
#: The error of SAC's catalog with actions that are no vector.
_DISCRETE = re.compile(r"Discrete\(.*\)")
#: Keys that name the user's own code, which Ray calls: the error may be there.
_OWN = ("custom_model", "custom_action_dist", "policies", "input", "input_")


def refused(error: Exception, translation: Translation) -> CompatError | None:
    """The error to raise instead of one of Ray, which does not name the config.

    Old policies take some keys with some spaces only, and old Rays failed with the same errors.

    Args:
        error: What Ray raised when it built the algorithm.
        translation: The config.

    Returns:
        An error that names the keys which need the old API stack; None if these are not the cause,
        or if the user's own code may have raised it.
    """
    if isinstance(error, TypeError) and _FOR_WHOLE_SAC in str(error):
        return ConfigError(
            f"{translation.legacy_algorithm} takes a subclass of SACTorchModel as its model, and "
            "this class is none. Until Ray 1.2 it was the model below policy and critics.",
            where="model.custom_model",
            fix="Name it in policy_model.custom_model and Q_model.custom_model.",
        )
    if isinstance(error, AssertionError) and _DISCRETE.fullmatch(str(error)):
        return RayNotSupportedError(
            "Ray's own networks of SAC take no discrete actions before Ray 2.48.",
            where="the environment's action space",
            fix="Give another legacy_ray than 'today': the networks of old Rays take them.",
        )
    model = translation.legacy_config.get("model") or {}
    if isinstance(error, TypeError) and _NO_OUTPUTS in str(error) and model.get("free_log_std"):
        return ConfigError(
            "The old API stack puts an LSTM or attention after a network without a layer of means, "
            "which free_log_std needs: no Ray could build it.",
            where="model.free_log_std",
            fix="Leave it out.",
        )
    keys = translation.needs_old_stack
    if translation.api_stack != "old" or not keys or isinstance(error, CompatError):
        return None
    if not _is_others(error) or any(_is_own(key, translation.legacy_config) for key in keys):
        return None
    said = " ".join(str(error).split())
    found = f"{type(error).__name__}: {said}" if said else f"{type(error).__name__} alone"
    if _NOT_PARALLEL in str(error):
        return ConfigError(
            "Curiosity explores in the trainer's own process only, in every Ray: one that samples "
            "in workers learns none of it.",
            where="num_workers",
            fix="Set num_workers to 0; for DDPPO, which samples in workers alone, leave "
            "exploration_config out.",
        )
    remembers = model.get("use_lstm") or model.get("use_attention")
    if remembers and model.get("post_fcnet_hiddens") and any(m in str(error) for m in _OTHER_SIZE):
        return ConfigError(
            "Where observations are no vector, the old API stack makes an LSTM or attention for "
            "features of the size that they have before post_fcnet_hiddens: no Ray built it.",
            where="model.post_fcnet_hiddens",
            fix=f"Leave it out, or what needs that stack: {', '.join(keys)}.",
        )
    if isinstance(error, TypeError) and _NESTED in str(error):
        return ConfigError(
            f"On the old API stack {translation.legacy_algorithm} takes a Dict or Tuple of arrays, "
            "and none within another, as policies of old Rays did; only that stack has "
            f"{', '.join(keys)}.",
            where="the environment's observation space",
            fix="Flatten the inner Dict or Tuple in the environment, or take these keys out.",
        )
    if _noise_on_weights(translation.legacy_config):
        return ConfigError(
            f"Policies of {translation.legacy_algorithm} can't be built with 'ParameterNoise', nor "
            "could those of Ray 1.13.0 on torch: advantages are computed from its tensors "
            f"({found}).",
            where="exploration_config",
            fix=_SAMPLE,
        )
    return ConfigError(
        f"The old API stack can't build {translation.legacy_algorithm} with this config, which "
        f"needs that stack: {found}",
        where=", ".join(keys),
        fix="Take these keys out, or give the environment spaces that go with them: noise on "
        "actions goes with Box actions, what draws among values with Discrete ones.",
    )


def _is_others(error: Exception) -> bool:
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    module = frames[-1].f_globals.get("__name__", "") if frames else ""
    return module.partition(".")[0] in _OTHERS


def _is_own(path: str, config: Mapping[str, Any]) -> bool:
    keys = path.removeprefix("$.").split(".")
    value: Any = config
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    kind = value.get("type") if isinstance(value, Mapping) else value
    return keys[-1] in _OWN or callable(kind)


def require_recording(algorithm: Algorithm) -> None:
    """Refuses to learn from a converted recording whose steps do not fit the policy.

    Raises:
        ConfigError: They do not fit; see `require_fit`.
    """
    learner = local_learner(algorithm)
    if learner is None:
        return
    module = next(iter(learner.module.values()))  # recordings train one policy
    try:
        require_fitting_steps(
            algorithm.config.input_, module.observation_space, module.action_space
        )
    except CompatError:
        algorithms.stop_algorithm(algorithm)
        raise


#: Errors of torch when it draws from a distribution whose parameters are NaN or zero.
_TORCH_ERRORS = ("to satisfy the constraint", "probability tensor contains either")


#: What Ray says of a replay buffer that takes more memory, once full, than there is.
_BUFFER_ERROR = "max memory usage for replay buffer"


def failure_of(error: Exception) -> CompatError | None:
    """The error to raise instead of torch's or Ray's in an iteration; None if it is another one.

    Old Rays diverged in the same way (on TensorFlow, with NaN as weights and no error), and had as
    little memory.
    """
    if _BUFFER_ERROR in str(error):
        return CompatError(
            f"The replay buffer would not fit into memory: {error}.",
            where="buffer_size",
            fix="Set it (or replay_buffer_config.capacity) to as many steps as fit, or take frames "
            "of fewer bytes.",
        )
    if not any(said in str(error) for said in _TORCH_ERRORS):
        return None
    return CompatError(
        "The network gives no numbers any more: its weights, or what it observes, have grown too "
        "large.",
        where="train()",
        fix="Start again, or from an earlier checkpoint, with a smaller lr, with grad_clip, or "
        "with observations of about -1 to 1: images are bytes of 0 - 255, so divide them "
        "in the environment, or set observation_filter to MeanStdFilter where the space has "
        "floats. (It turns bytes into bytes, and negative values into 255, as since Ray 1.10.)",
    )


logger = logging.getLogger(__name__)

#: The seconds between two warnings.
_EVERY = 30.0
#: Resource → the keys that ask for it; the first one is named where a config has none of them.
_KEYS = {
    "GPU": (
        *("num_gpus", "gpu", "num_learners", "num_gpus_per_learner"),
        *("num_gpus_per_learner_worker", "num_gpus_per_worker", "num_gpus_per_env_runner"),
    ),
    "CPU": (
        *("num_workers", "num_rollout_workers", "num_env_runners", "num_cpus_per_worker"),
        *("num_cpus_per_env_runner", "num_learners", "evaluation_num_workers"),
    ),
}


@contextmanager
def with_resources(config: AlgorithmConfig, legacy: Mapping[str, Any]) -> Iterator[None]:
    """Checks, before the block, that Ray has the resources that a config asks for.

    Where nodes may join that have them, it warns, and again until the block ends. In a trial there
    is neither: Tune has reserved all of them.

    Args:
        config: The translated config.
        legacy: The config whose keys an error names.

    Raises:
        ConfigError: Ray lacks resources, and no node can join; or it was started with GPUs that
            are not there.
    """
    available = available_resources()
    lack = describe_missing_resources(_asked_by(config), available, legacy)
    if lack is None:
        _require_devices(config, legacy)
        yield
        return
    if not startup.may_grow():
        raise lack
    text = f"{lack.found} It waits until nodes with more join; if none will: {lack.fix}"
    logger.warning("%s", text)
    done = Event()
    Thread(target=_repeat, args=(text, done), name="rllib_compat: waiting", daemon=True).start()
    try:
        yield
    finally:
        done.set()


def describe_missing_resources(
    asked: Mapping[str, float], available: Mapping[str, float] | None, legacy: Mapping[str, Any]
) -> ConfigError | None:
    """An error about missing resources, and the keys that ask for them; None if there are none.

    Args:
        asked: How much of each resource is asked for, beside the algorithm's own process.
        available: How much Ray has; None if that is unknown.
        legacy: The config whose keys are named.
    """
    lacking = [] if available is None else [n for n in asked if asked[n] > available.get(n, 0)]
    if available is None or not lacking:
        return None
    parts, fixes, named = [], [], []
    for name in lacking:
        keys = _said(name, legacy)
        there, said = available.get(name, 0), ", ".join(f"{key}={legacy.get(key)}" for key in keys)
        parts.append(f"{asked[name]:g} {name}s ({said}), and Ray has {there:g}")
        fixes.append(_fix(name, keys, asked[name], there, legacy))
        named += keys
    return ConfigError(
        f"The config asks for {' and '.join(parts)}.", where=named[0], fix=" ".join(fixes)
    )


def _said(resource: str, legacy: Mapping[str, Any]) -> list[str]:
    """The keys of a config that ask for a resource."""
    known = _KEYS.get(resource, (f"custom_resources ({resource})",))
    return [key for key in known if legacy.get(key)] or [known[0]]


def _fix(
    resource: str, keys: list[str], asked: float, there: float, legacy: Mapping[str, Any]
) -> str:
    """What to set the key that asks for most to, so that what is asked for is there."""
    key, each = max(keys, key=lambda name: float(legacy.get(name) or 0)), 1.0
    given = legacy.get(key)
    if resource == "CPU":
        each = float(legacy.get("num_cpus_per_worker") or 1)
    number = given if isinstance(given, (int, float)) else asked
    most = max(int(number - (asked - there) / each), 0)
    more = f"start Ray with more: ray.init(num_{resource.lower()}s={asked:g})"
    return f"Set {key} to {most}" + (f", or {more}." if resource == "CPU" else ".")


def _require_devices(config: AlgorithmConfig, legacy: Mapping[str, Any]) -> None:
    """Checks that there is a device where Ray was started with GPUs.

    Raises:
        ConfigError: A GPU is asked for, and torch sees none.
    """
    if not startup.lacks_promised_gpus() or not total(resource_request(config).bundles).get("GPU"):
        return
    keys = _said("GPU", legacy)
    said = ", ".join(f"{key}={legacy.get(key)}" for key in keys)
    raise ConfigError(
        f"The config asks for a GPU ({said}). Ray was started with GPUs, and torch finds no CUDA "
        "device.",
        where=keys[0],
        fix=f"Set {keys[0]} to 0. If there is a GPU, check torch.cuda.is_available().",
    )


def _asked_by(config: AlgorithmConfig) -> Mapping[str, float]:
    """The resources of an algorithm's actors; its own process needs none."""
    request = resource_request(config)
    return total(request.bundles if request.head_bundle_is_empty else request.bundles[1:])


def total(bundles: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The resources of all bundles."""
    asked: Counter[str] = Counter()
    for bundle in bundles:
        asked.update(bundle)
    return {**asked}


def available_resources() -> dict[str, float] | None:
    """The resources of all nodes; None without Ray, and in a trial, which has reserved its own."""
    import ray

    if not ray.is_initialized() or ray.util.get_current_placement_group() is not None:
        return None
    return dict(ray.cluster_resources())


def free_cpus() -> float | None:
    """The CPUs of the running Ray; None in a trial, and where nodes may join."""
    available = available_resources()
    return None if available is None or startup.may_grow() else available.get("CPU", 0)


def _repeat(text: str, done: Event) -> None:
    while not done.wait(_EVERY):
        logger.warning("Still waiting. %s", text)
