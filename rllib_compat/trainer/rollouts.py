"""Episodes of a trained policy in its environment, as `rllib rollout` and `evaluate` made them.

A checkpoint that can continue training is loaded as an `Algorithm`, with its connectors; one of an
algorithm that Ray has removed, as its modules. Neither starts Ray.
"""

from __future__ import annotations

import pickle
import shelve
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from packaging.version import InvalidVersion, Version

from rllib_compat.config import default_config
from rllib_compat.conversion.config import make_env_settings
from rllib_compat.formats.atomic import atomic_file
from rllib_compat.formats.files import disk_errors
from rllib_compat.formats.layouts.folder import as_mapping
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.errors import (
    CompatError,
    ConfigError,
    LegacyEnvError,
    MissingInformationError,
)
from rllib_compat.neutral.extras import import_optional
from rllib_compat.neutral.report import Report
from rllib_compat.ray_versions import algorithms, startup, tune
from rllib_compat.runtime.env_settings import STORED, EnvSettings
from rllib_compat.runtime.envs import adapt_env, find_creator, resolve_env_name
from rllib_compat.runtime.gym_api import adapt_single_agent
from rllib_compat.runtime.multi_agent import ALL, is_multi_agent
from rllib_compat.runtime.placeholders import MultiAgentPlaceholder, Placeholder
from rllib_compat.runtime.policy_mapping import MappingFn
from rllib_compat.trainer.inference import ComputedAction, Inference, Request, Struct, fit_action
from rllib_compat.trainer.running import RunningAlgorithm

if TYPE_CHECKING:
    import gymnasium
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.core.rl_module import RLModule

    from rllib_compat.conversion.convert import Conversion
    from rllib_compat.conversion.given import Given


# How many inputs the old and the new network are compared on; `convert` compares on more.
INPUTS = 100
# Keys of the training's config that an evaluation in this process replaces.
EVALUATION: Mapping[str, Any] = {
    "evaluation_interval": None,
    "output": None,
    # Ray checks another length against the size of a batch.
    "rollout_fragment_length": "auto",
    "num_envs_per_worker": 1,
}


class Actor(Protocol):
    """Computes actions for agents.

    Attributes:
        env: The environment's name or class, as `AlgorithmConfig.environment` has it.
        env_config: The environment's context.
        explore: Whether the config says that actions are sampled.
    """

    env: Any
    env_config: Mapping[str, Any]
    explore: bool

    def policy_of(self, agent: object, episode: object) -> str:
        """The policy of an agent in an episode."""

    def act(self, policy_id: str, request: Request, *, explore: bool) -> ComputedAction:
        """Computes one action."""


@contextmanager
def load_actor(path: str | Path, given: Given) -> Iterator[tuple[Actor, Report]]:
    """A checkpoint of any Ray as an actor, and the report of its conversion.

    Raises:
        CheckpointError: It can't be read or converted.
    """
    from rllib_compat.conversion.convert import convert

    given = replace(
        given, num_env_runners=0, num_gpus=0, overrides={**given.overrides, **EVALUATION}
    )
    with tempfile.TemporaryDirectory(prefix="rllib-compat-") as folder:
        target = Path(folder) / "converted"
        done = convert(path, target, given=given, inputs=INPUTS)
        if not done.trains_on:
            yield ModuleActor(target, done, given), done.report
            return
        with startup.without_cluster():
            algorithm = algorithms.load_algorithm(target)
            try:
                yield AlgorithmActor(algorithm), done.report
            finally:
                algorithms.stop_algorithm(algorithm)


class AlgorithmActor:
    """An algorithm as an actor."""

    def __init__(self, algorithm: Algorithm) -> None:
        self._inference = Inference(RunningAlgorithm(algorithm))
        self._config = config = algorithm.config
        evaluation = config.evaluation_config if isinstance(config.evaluation_config, dict) else {}
        self.env = evaluation.get("env", config.env)
        self.env_config: Mapping[str, Any] = {
            **config.env_config,
            **evaluation.get("env_config", {}),
        }
        self.explore = bool(evaluation.get("explore", config.explore))

    def policy_of(self, agent: object, episode: object) -> str:
        """The policy of an agent, by the config's function."""
        return str(self._config.policy_mapping_fn(agent, episode))

    def act(self, policy_id: str, request: Request, *, explore: bool) -> ComputedAction:
        """Computes one action."""
        (computed,) = self._inference.compute([request], policy_id, explore=explore)
        return computed


class ModuleActor:
    """The modules of an algorithm that Ray has removed, as an actor."""

    def __init__(self, target: Path, done: Conversion, given: Given) -> None:
        from rllib_compat.networks import rl_modules

        checkpoint = done.checkpoint
        config = {**checkpoint.config, **given.overrides}
        self._config = {**_defaults_of_its_ray(checkpoint), **config}
        mapping = given.overrides.get("multiagent", {}).get("policy_mapping_fn")
        self._mapping = MappingFn(mapping) if mapping is not None else None
        self._modules = {
            p: loaded.module for p, loaded in rl_modules.load(target, checkpoint.policies).items()
        }
        self._inputs = {p: network.inputs for p, network in done.networks.items()}
        env = config.get("env") if given.env is None else given.env
        if isinstance(env, str) or callable(env):
            env = adapt_env(make_env_settings(env, checkpoint))
        self.env = env
        self.env_config: Mapping[str, Any] = dict(as_mapping(config.get("env_config")))
        evaluation = as_mapping(config.get("evaluation_config"))
        self.explore = bool(evaluation.get("explore", config.get("explore", True)))

    def policy_of(self, agent: object, episode: object) -> str:
        """The policy of an agent: by the caller's function, the only one, or that of its name."""
        if self._mapping is not None:
            return str(self._mapping(agent, episode))
        if len(self._modules) == 1:
            return next(iter(self._modules))
        if str(agent) in self._modules:
            return str(agent)
        raise CompatError(
            f"No policy is called {agent!r}, and the mapping of agents to policies was code.",
            where="$.multiagent.policy_mapping_fn",
            fix="give --policy-mapping-fn module:function",
        )

    def act(self, policy_id: str, request: Request, *, explore: bool) -> ComputedAction:
        """Computes one action."""
        import torch
        import tree

        module = self._modules[policy_id]
        obs = self._preprocess(policy_id, module.observation_space, request.observation)
        states = module.get_initial_state()
        batch: dict[str, Any] = {"obs": torch.from_numpy(obs)[None]}
        if states:
            before = list(request.state or [np.asarray(s) for s in tree.flatten(states)])
            batch["obs"] = batch["obs"][None]
            tensors = [torch.from_numpy(np.asarray(s, np.float32))[None] for s in before]
            batch["state_in"] = tree.unflatten_as(states, tensors)
        with torch.no_grad():
            forward = module.forward_exploration if explore else module.forward_inference
            out = dict(forward(batch))
            action = (
                out["actions"] if "actions" in out else _sample_action(module, out, explore=explore)
            )
        action = tree.map_structure(lambda a: np.asarray(a)[(0, 0) if states else 0], action)
        after = [np.asarray(s)[0] for s in tree.flatten(out.get("state_out", []))]
        space = module.action_space
        fit = fit_action(action, space, unsquash=self._normalizes(space), clip=True)
        return ComputedAction(fit, after, {}, action)

    def _preprocess(
        self, policy_id: str, space: gymnasium.Space[Any], observation: Struct
    ) -> np.ndarray[Any, np.dtype[np.float32]]:
        import gymnasium

        if isinstance(space, gymnasium.spaces.Box):
            obs = np.asarray(observation, np.float32, order="C")
        else:
            obs = np.asarray(gymnasium.spaces.flatten(space, observation), np.float32)
        if obs.shape != tuple(self._inputs[policy_id]):
            raise CompatError(
                f"The network takes {tuple(self._inputs[policy_id])}, and the environment gives "
                f"{obs.shape}.",
                where=f"policies.{policy_id}",
                fix="give the environment with the wrappers that it was trained with: --env",
            )
        return obs

    def _normalizes(self, space: gymnasium.Space[Any]) -> bool:
        """Whether actions are scaled from [-1, 1]; for a Box, the config determines it."""
        import gymnasium

        if not isinstance(space, gymnasium.spaces.Box):
            return False
        if "normalize_actions" not in self._config:
            raise MissingInformationError(
                "Whether actions are scaled to their space was a default, and which one depends "
                "on the Ray that trained it.",
                where="$.normalize_actions",
                fix="give it with --config",
            )
        return bool(self._config["normalize_actions"])


def _defaults_of_its_ray(checkpoint: LegacyCheckpoint) -> dict[str, Any]:
    """The defaults that the config started from, if the file names its Ray."""
    ray = checkpoint.source.ray_version
    try:
        return default_config(str(checkpoint.algorithm), str(Version(ray))) if ray else {}
    except (ConfigError, InvalidVersion):  # several releases, not one
        return {}


def _sample_action(module: RLModule, out: Mapping[str, Any], *, explore: bool) -> Any:
    """An action from the distribution's inputs: a sample, or the best."""
    if explore:
        distribution = module.get_exploration_action_dist_cls()
        return distribution.from_logits(out["action_dist_inputs"]).sample()
    distribution = module.get_inference_action_dist_cls()
    return distribution.from_logits(out["action_dist_inputs"]).to_deterministic().sample()


ONLY = "agent0"


class Env(Protocol):
    """An environment by today's API, of one agent or of many."""

    def reset(self, *, seed: int | None) -> tuple[Any, Any]:
        """Begins an episode: observations and infos."""

    def step(self, action: object) -> tuple[Any, Any, Any, Any, Any]:
        """Takes a step: observations, rewards, terminateds, truncateds and infos."""

    def render(self, *mode: str) -> object:
        """A frame, or nothing; old environments get the mode."""


@dataclass
class Episode:
    """What happened in one episode.

    Attributes:
        reward: The sum over all steps and agents.
        length: The env steps.
        done: Whether it has ended; else the limit of steps has cut it.
        rewards: The sums by agent.
        steps: Observation, action, next observation, reward, done and info of each step.
        frames: The rendered frames, if they were asked for.
    """

    reward: float = 0.0
    length: int = 0
    done: bool = False
    rewards: dict[Any, float] = field(default_factory=dict)
    steps: list[list[Any]] = field(default_factory=list)
    frames: list[Any] = field(default_factory=list)


#: gymnasium's own environments that need pygame to render.
_DRAWN_BY_PYGAME = tuple(
    f"gymnasium.envs.{group}." for group in ("classic_control", "toy_text", "box2d")
)


def make_env(actor: Actor, *, render_mode: str | None = None) -> Any:
    """Makes the environment of an actor, by today's API.

    Raises:
        LegacyEnvError: The environment is unknown, or fits no known API.
    """
    from ray.rllib.env.env_context import EnvContext

    env, context = _with_whole_rewards(actor.env, dict(actor.env_config))
    settings = getattr(env, "settings", None)
    name = context[STORED].get("name") if STORED in context else getattr(settings, "env", env)
    if render_mode and _made_by_gymnasium(name):
        context["render_mode"] = render_mode
        require_pygame(name)
    creator = find_creator(env)
    if creator is None:
        from rllib_compat.runtime.envs import make_env as make_or_refuse

        return make_or_refuse(EnvSettings(env=str(actor.env)), context)
    made = creator(EnvContext(context, 0))
    inner = getattr(made, "env", made)  # a multi-agent one has an adapter around it
    if isinstance(inner, (Placeholder, MultiAgentPlaceholder)):
        name = str(inner.name)
        raise LegacyEnvError(
            f"The checkpoint's environment {inner.name!r} is not known on this machine."
            if inner.name
            else "The checkpoint does not name its environment.",
            where="--env",
            fix=f"if the class is yours: --env {name}"
            if ":" in name
            else "give its name, or module:Class of its class",
        )
    if is_multi_agent(made) or hasattr(made, "wraps_legacy_env"):
        return made
    return adapt_single_agent(made, EnvSettings(env=None))


def _with_whole_rewards(env: object, context: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """An environment that clips no rewards, and its context: clipping is for learners."""
    settings = getattr(env, "settings", None)
    if settings is not None:
        return adapt_env(replace(settings, clip_rewards=False)), context
    if STORED in context:
        stored = {**context[STORED].get("settings", {}), "clip_rewards": False}
        context[STORED] = {**context[STORED], "settings": stored}
    return env, context


def roll_out(
    actor: Actor,
    env: Env,
    *,
    episodes: int = 0,
    steps: int = 0,
    explore: bool | None = None,
    seed: int | None = None,
    keep: bool = False,
    render: str | None = None,
) -> Iterator[Episode]:
    """Plays episodes, one after the other.

    Args:
        actor: Computes the actions.
        env: Its environment.
        episodes: How many; 0: as many as fit into the steps.
        steps: The limit of env steps over all episodes; 0: none.
        explore: Whether actions are sampled; None: the config's value.
        seed: For the environment's first episode.
        keep: Whether episodes keep their steps.
        render: `human` shows each step, `rgb_array` keeps it as a frame.

    Yields:
        Each episode when it is over; the last one may be cut by `steps`.
    """
    explore = actor.explore if explore is None else explore
    played, taken = 0, 0
    while not (episodes and played >= episodes) and not (steps and taken >= steps):
        left = steps - taken if steps else 0
        episode = _play(
            actor, env, played, left, explore, seed if not played else None, keep, render
        )
        played, taken = played + 1, taken + episode.length
        yield episode


def _step(env: Env, action: object, *, many: bool) -> Any:
    """A step of an environment.

    Raises:
        LegacyEnvError: It fails because the action is not in its space.
    """
    try:
        return env.step(action)
    except Exception as error:
        space = None if many else getattr(env, "action_space", None)
        if space is None or space.contains(action):
            raise
        raise LegacyEnvError(
            f"The policy's action is {action!r}, and the environment takes {space}."[:500],
            where="--env",
            fix="Give the environment that it was trained in.",
        ) from error


def _play(
    actor: Actor,
    env: Env,
    number: int,
    limit: int,
    explore: bool,
    seed: int | None,
    keep: bool,
    render: str | None,
) -> Episode:
    many = is_multi_agent(env)
    episode = Episode()
    record = SimpleNamespace(id_=str(number))
    policies: dict[Any, str] = {}
    before: dict[Any, Request] = {}
    obs, infos = env.reset(seed=seed)
    while not episode.done and not (limit and episode.length >= limit):
        _render(env, render, episode)
        actions = {}
        for agent, one in obs.items() if many else ((ONLY, obs),):
            if agent not in policies:
                policies[agent] = actor.policy_of(agent, record) if many else "default_policy"
            last = before.get(agent, Request(None))
            request = Request(one, last.state, last.prev_action, last.prev_reward)
            computed = actor.act(policies[agent], request, explore=explore)
            actions[agent] = computed.action
            before[agent] = Request(None, computed.state, computed.action)
        action = actions if many else actions[ONLY]
        following, reward, terminated, truncated, infos = _step(env, action, many=many)
        got = reward if many else {ONLY: reward}
        for agent, value in got.items():
            episode.rewards[agent] = episode.rewards.get(agent, 0.0) + float(value)
            if agent in before:
                before[agent] = Request(
                    None, before[agent].state, before[agent].prev_action, float(value)
                )
        episode.length += 1
        done = _done(terminated, truncated)
        episode.done = done[ALL] if many else done
        if keep:
            episode.steps.append([obs, action, following, reward, done, infos])
        obs = following
    episode.reward = sum(episode.rewards.values())
    _render(env, render, episode)
    return episode


def _done(terminated: object, truncated: object) -> Any:
    """`done` of the old API: terminated or truncated."""
    if isinstance(terminated, Mapping) and isinstance(truncated, Mapping):
        agents = {**terminated, **truncated}
        return {a: bool(terminated.get(a) or truncated.get(a)) for a in agents}
    return bool(terminated or truncated)


def _render(env: Env, mode: str | None, episode: Episode) -> None:
    if mode is None:
        return
    own = getattr(env, "render_mode", None) == mode
    frame = env.render() if own or not hasattr(env, "wraps_legacy_env") else env.render(mode)
    if mode == "rgb_array":
        if frame is None:
            raise CompatError(
                f"{type(env).__name__} renders no frames.", fix="leave --video-dir out"
            )
        episode.frames.append(frame)


def _made_by_gymnasium(env: object) -> bool:
    import gymnasium

    if not isinstance(env, str) or tune.is_registered_env(env):
        return False
    return resolve_env_name(env)[0] in gymnasium.registry


def require_pygame(name: object) -> None:
    """Raises a CompatError if gymnasium draws an environment with pygame, which is missing."""
    import gymnasium

    if not _made_by_gymnasium(name):
        return
    if str(gymnasium.spec(resolve_env_name(str(name))[0]).entry_point).startswith(_DRAWN_BY_PYGAME):
        import_optional("pygame", extra="video", where=f"drawing {name}")


def write_video(frames: list[Any], path: Path, *, fps: int) -> None:
    """Writes frames as a video; it needs the extra `video`."""
    from moviepy.video.io.ImageSequenceClip import ImageSequenceClip

    with disk_errors(path), tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / path.name
        ImageSequenceClip(frames, fps=fps).write_videofile(str(made), logger=None)
        path.parent.mkdir(parents=True, exist_ok=True)
        with made.open("rb") as video, atomic_file(path) as out:
            shutil.copyfileobj(video, out)


AnyRecorder = TypeVar("AnyRecorder", bound="Recorder")

#: The endings that the kinds of dbm add to the name of a shelf.
_OF_SHELVES = ("", ".db", ".dat", ".dir", ".bak", ".pag")


class Recorder:
    """Writes episodes to a file, as `--out` did.

    A pickle holds a list of episodes; a shelf has them by number, and `num_episodes`. An episode
    is a list of steps: observation, action, next observation, reward, done, and info if wanted.

    Args:
        path: The file; None: nothing is written.
        shelf: Whether it is a shelf, into which each episode is written when it is over.
        infos: Whether the infos are kept.
        progress: Whether a file beside it has the progress, as long as it is written.
    """

    def __init__(
        self, path: Path | None, *, shelf: bool = False, infos: bool = False, progress: bool = False
    ) -> None:
        self._path = path
        self._infos = infos
        self._episodes: list[Any] = []
        self._shelf: shelve.Shelf[Any] | None = None
        if path and shelf:
            for name in (path.name + suffix for suffix in _OF_SHELVES):
                if path.with_name(name).is_symlink():
                    path.with_name(name).unlink()  # dbm would write to its target
            self._shelf = shelve.open(str(path), "n")  # noqa: S301, SIM115 - a new one
        self._progress = path.parent / f"__progress_{path.name}" if path and progress else None
        self._count = 0

    def __enter__(self: AnyRecorder) -> AnyRecorder:
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        try:
            if self._shelf is not None:
                self._shelf["num_episodes"] = self._count
                self._shelf.close()
            elif self._path is not None and failed is None:
                with atomic_file(self._path) as file:
                    pickle.dump(self._episodes, file)
        finally:
            if self._progress is not None:
                self._progress.unlink(missing_ok=True)

    def add(self, episode: Episode) -> None:
        """Adds an episode that is over."""
        steps = episode.steps if self._infos else [step[:5] for step in episode.steps]
        if self._shelf is not None:
            self._shelf[str(self._count)] = steps
        elif self._path is not None:
            self._episodes.append(steps)
        self._count += 1
        if self._progress is not None:
            with atomic_file(self._progress) as file:
                file.write(b"%d episodes completed\n" % self._count)
