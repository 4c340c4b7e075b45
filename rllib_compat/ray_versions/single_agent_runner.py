"""The env runner for one agent: a loop over steps, without a dozen connectors in each.

Ray takes each step through its pipelines: observations out of episodes, into lists by episode, into
arrays, into tensors, and what the module says all the way back. Where the pieces of its pipelines
are Ray's own, or change an observation alone, and where what is observed and done is one array, all
of that is a batch in and a batch out, and takes more than half of the time in which a small network
samples (Ray 2.40 - 2.60). There, a `Rollout` goes past it; elsewhere, Ray samples.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import SyncVectorEnv
from gymnasium.vector.utils import iterate
from gymnasium.wrappers.vector import DictInfoToList
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME, WEIGHTS_SEQ_NO
from ray.rllib.utils.numpy import convert_to_numpy
from ray.rllib.utils.spaces.space_utils import clip_action, unbatch, unsquash_action
from ray.rllib.utils.torch_utils import convert_to_torch_tensor

from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import sampling
from rllib_compat.ray_versions.connectors import needs_no_batch
from rllib_compat.ray_versions.env_runners import advance_exploration_timestep
from rllib_compat.ray_versions.environments import resets_at_the_next_step
from rllib_compat.ray_versions.episodes import (
    VectorStep,
    add_steps,
    callback_class,
    callbacks_of,
    cut,
    to_numpy,
)
from rllib_compat.ray_versions.get_actions import rays_to_env
from rllib_compat.ray_versions.legacy_runner import LegacyRunner
from rllib_compat.ray_versions.sampling import map_structure, stack
from rllib_compat.ray_versions.tensors import as_tensor

if TYPE_CHECKING:
    from gymnasium import Space

    from rllib_compat.ray_versions.types import EnvRunner, RLModule, SingleAgentEpisode


#: The key of the infos of all environments of a vector.
_WHOLE = "infos of each"
#: So many steps at most are added to an episode at once: observations may be large.
_MOST_STEPS = 32
#: Spaces of which a batch is one array.
_ARRAYS = ("Box", "Discrete", "MultiBinary", "MultiDiscrete")


@public("rllib_compat.adapters")
class CompatEnvRunner(LegacyRunner, SingleAgentEnvRunner):  # type: ignore[misc]  # Ray has no types
    """Ray's env runner for one agent, which samples faster and answers with its errors.

    Attributes:
        direct_steps: How many steps have gone past connectors.
    """

    direct_steps = 0
    #: Whether it is asked for a fragment of whole episodes, not for a number of them.
    _wants_fragment = False
    #: Whole episodes that have ended, and are for the next fragment.
    left_over: Sequence[Any] = ()
    #: Calls of the environment, steps and episodes that Ray's counters do not have yet.
    _uncounted: tuple[int, ...] = (0, 0, 0)

    _needs_initial_reset: bool  # of Ray's, as are pipelines
    _env_to_module: Any
    _module_to_env: Any
    _known: tuple[list[Any], Bypass | None] | None = None

    def make_env(self) -> None:
        """Makes the environments, whose infos arrive as they are."""
        super().make_env()
        _hand_on_infos(self.env)
        step_in_one_loop(self.env)

    def sample(self, **asked: object) -> list[Any]:
        """Samples; what explores less and less knows of each step that was."""
        whole = self.config.batch_mode == "complete_episodes"
        self._wants_fragment = whole and not asked.keys() & {"num_timesteps", "num_episodes"}
        episodes: list[Any] = super().sample(**asked)
        advance_exploration_timestep(self, episodes)
        return episodes

    def count(self, calls: int, steps: int, episodes: int) -> None:
        """Counts steps of the environment and their calls, and episodes: later, if that may be.

        Ray's counters take as long as a step, those for Prometheus (since Ray 2.52) even longer.
        """
        added = zip(self._uncounted, (calls, steps, episodes), strict=True)
        self._uncounted = tuple(before + now for before, now in added)
        replaced = "_increase_sampled_metrics" in vars(self)
        if replaced or not hasattr(self, "num_env_steps_sampled_lifetime"):  # since Ray 2.54
            self._count_now()

    def _count_now(self) -> None:
        calls, steps, episodes = self._uncounted
        self._uncounted = (0, 0, 0)
        for name, count in (("try_env_step", calls), ("env_steps_sampled", steps)):
            if count and hasattr(self, "_log_env_steps"):
                self._log_env_steps(metric=getattr(self, f"_metrics_num_{name}"), num_steps=count)
        self._increase_sampled_metrics(steps, episodes)

    def get_metrics(self) -> Any:
        """What was counted and timed since the last call."""
        if any(self._uncounted):
            self._count_now()
        return super().get_metrics()

    def bypass(self) -> Bypass | None:
        """How steps go past the connectors now; None where only Ray's pipelines know it."""
        if not self.bypasses_connectors:
            return None
        # Connectors and settings may be changed at any time, modules and environments made again.
        parts = [
            *self._env_to_module.connectors,
            *self._module_to_env.connectors,
            self.module,
            getattr(self.module, "observation_space", None),
            self.env,
            self.config.restart_failed_sub_environments,
        ]
        if self._known is None or not sampling.same(self._known[0], parts):
            self._known = parts, _find_bypass(self)
        return self._known[1]

    def _sample(
        self,
        *,
        num_timesteps: int | None = None,
        num_episodes: int | None = None,
        explore: bool,
        random_actions: bool = False,
        force_reset: bool = False,
    ) -> list[Any]:
        """Samples steps or episodes; the method has this name and form in every supported Ray.

        A fragment of whole episodes has as many steps as any other at least. Those that go on when
        it has them continue in the next one: Ray begins new ones in all environments each time, and
        of several the short ones would come more often than they are.
        """
        least = self._fragment_steps() if self._wants_fragment else 0
        if random_actions or (bypass := self.bypass()) is None:
            sample = partial(
                super()._sample,
                num_timesteps=num_timesteps,
                num_episodes=num_episodes,
                explore=explore,
                random_actions=random_actions,
                force_reset=force_reset,
            )
            episodes: list[Any] = sample()
            while sum(map(len, episodes)) < least:
                episodes += sample()
            return episodes
        rollout = Rollout(self, bypass, explore=explore)
        resets = num_episodes is not None and not least
        if force_reset or resets or self._needs_initial_reset:
            rollout.reset()
        if least:
            return rollout.collect_whole_episodes(least)
        if num_episodes is None:
            return rollout.collect_steps(num_timesteps or 0)
        self._needs_initial_reset = True
        return rollout.collect_episodes(num_episodes)

    def _fragment_steps(self) -> int:
        length = self.config.get_rollout_fragment_length(self.worker_index)
        return int(length) * int(self.num_envs)


def _hand_on_infos(env: object) -> None:
    """Has a vector of environments return each one's infos whole.

    gymnasium joins them into arrays by key and takes these apart again, which numbers as keys break
    and in which keys that begin with `_` are lost.
    """
    if not isinstance(env, DictInfoToList):
        return
    joined: Any = env
    vector, take_apart = joined.unwrapped, joined._convert_info_to_list

    def add_info(infos: dict[str, Any], info: dict[Any, Any], index: int) -> dict[str, Any]:
        rows = infos.setdefault(_WHOLE, [{} for _ in range(vector.num_envs)])
        rows[index].update(info)
        return infos

    vector._add_info = add_info
    joined._convert_info_to_list = lambda infos: infos.get(_WHOLE) or take_apart(infos)


def step_in_one_loop(env: object) -> None:
    """Has environments of one process step with little around them, if they return arrays.

    gymnasium asks for each space how its arrays are joined, copies them again, and has a condition
    for each way of starting a new episode: for a small environment, that takes as long as its step.
    """
    if not isinstance(env, DictInfoToList) or type(vector := env.env) is not SyncVectorEnv:
        return
    is_known = resets_at_the_next_step().items() <= vector.metadata.items()
    if is_known and isinstance(vector._observations, np.ndarray):
        env.step = partial(_step_all, vector)  # type: ignore[method-assign]


def _step_all(vector: Any, actions: object) -> tuple[Any, Any, Any, Any, list[dict[str, Any]]]:
    """A step of each environment, or the reset of one whose episode is over."""
    count, over = vector.num_envs, vector._autoreset_envs.tolist()
    observations, infos = [], []
    rewards, terminateds, truncateds = np.zeros(count), *np.zeros((2, count), bool)
    for index, (env, action) in enumerate(
        zip(vector.envs, iterate(vector.action_space, actions), strict=True)
    ):
        if over[index]:
            observation, info = env.reset()
        else:
            observation, rewards[index], terminateds[index], truncateds[index], info = env.step(
                action
            )
        observations.append(observation)
        infos.append({**info})  # an environment may go on writing into its own
    vector._autoreset_envs = terminateds | truncateds
    seen = np.stack(observations, out=np.empty_like(vector._observations))
    return seen, rewards, terminateds, truncateds, infos


@frozen
class Bypass:
    """How the steps of an env runner go past its connectors.

    Attributes:
        connectors: Those that change observations, which are called.
        rows: Cuts a batch of observations into rows.
        for_env: What the environment gets for actions that were drawn; None: what the module says,
            or these themselves.
        calls_back: Whether a callback is called after each step.
    """

    connectors: tuple[Any, ...]
    rows: Callable[[Any], Any]
    for_env: Callable[[Any], Any] | None
    calls_back: bool


def _find_bypass(runner: EnvRunner) -> Bypass | None:
    to_module = runner._env_to_module.connectors
    module, env = runner.module, runner.env
    classes = sampling.classes_of(to_module)
    rays = next((r for r in sampling.rays_to_module() if classes[-len(r) :] == r), None)
    connectors = tuple(to_module[: -len(rays)]) if rays else ()
    space = env.single_observation_space
    if not (
        rays
        and all(map(needs_no_batch, connectors))
        and sampling.classes_of(runner._module_to_env.connectors) == rays_to_env()
        and isinstance(module, TorchRLModule)
        and type(env.single_action_space).__name__ in _ARRAYS
        and type(module.observation_space).__name__ in _ARRAYS
        and str(getattr(runner, "_device", "cpu")) == "cpu"  # Ray 2.40 knows no other
        and not runner.config.restart_failed_sub_environments
    ):
        return None
    return Bypass(
        connectors=connectors,
        rows=_as_it_is if type(space).__name__ in _ARRAYS else unbatch,
        for_env=_for_env(env.single_action_space, sampling.normalizer_of(runner._module_to_env)),
        calls_back=_calls_back(runner),
    )


def _for_env(space: Space[Any], normalizer: Any) -> Callable[[Any], Any] | None:
    """What Ray's connector does with each action, for a batch of them; None: nothing."""
    if not (normalizer.normalize_actions or normalizer.clip_actions):
        return None
    if type(space).__name__ != "Box":
        return _as_it_is
    change = unsquash_action if normalizer.normalize_actions else clip_action
    return lambda actions: change(actions.copy(), space)


def _as_it_is(batch: Mapping[str, Any]) -> Any:
    return batch


def _calls_back(runner: EnvRunner) -> bool:
    """Whether a callback of the config does something after each step."""
    base = callback_class().on_episode_step
    return bool(getattr(runner.config, "callbacks_on_episode_step", None)) or any(
        type(callback).on_episode_step is not base for callback in callbacks_of(runner)
    )


class Rollout:
    """One sample of an env runner, a step of all its environments at a time."""

    def __init__(self, runner: CompatEnvRunner, bypass: Bypass, *, explore: bool) -> None:
        self._runner, self._bypass, self._explore = runner, bypass, explore
        self._steps = self._calls = 0  # resets are no steps, and steps with timers no calls
        self._done: list[Any] = []
        # Ray 2.54 gave the list another name.
        self._list = "_ongoing_episodes" if hasattr(runner, "_ongoing_episodes") else "_episodes"
        self._runners = runner.config.num_env_runners or 1
        self._steps_before = _steps_before(runner, self._runners)
        self._forward = sampling.forward_of(runner.module, explore=explore)
        self._state = _initial_state(runner.module)
        self._time: Callable[[Any], AbstractContextManager[Any]] = _no_timer
        #: The last steps, and how many of them each episode has.
        self._taken: list[VectorStep] = []
        self._added = [0] * runner.num_envs
        #: The environments whose next step is a reset.
        self._waiting: set[int] = set()
        #: Whether episodes are looked at after each step.
        self._looks = bypass.calls_back or bool(bypass.connectors)

    @property
    def _episodes(self) -> list[Any]:
        episodes: list[Any] = getattr(self._runner, self._list)
        return episodes

    def reset(self) -> None:
        """Begins new episodes in all environments; the first observations go Ray's way."""
        runner = self._runner
        setattr(runner, self._list, [None] * runner.num_envs)
        runner._shared_data = {}
        runner._reset_envs(self._episodes, runner._shared_data, self._explore)
        runner._needs_initial_reset = False

    def collect_steps(self, count: int) -> list[Any]:
        """At least so many steps, in episodes that have ended and chunks of those that continue."""
        self._collect(lambda: self._steps >= count)
        self._count(self._steps)
        return self._done + self._cut()

    def collect_episodes(self, count: int) -> list[Any]:
        """So many episodes; no further one is looked at once they have ended."""
        self._collect(lambda: len(self._done) >= count, count)
        self._count(self._steps)
        return self._done

    def collect_whole_episodes(self, steps: int) -> list[Any]:
        """Episodes that have ended, and no more of them than have so many steps."""
        ended = [*self._runner.left_over]
        self._done = ended
        self._collect(lambda: sum(map(len, ended)) >= steps)
        lengths = np.cumsum([len(episode) for episode in ended])
        count = int(np.searchsorted(lengths, steps)) + 1
        self._done, self._runner.left_over = ended[:count], ended[count:]
        self._count(int(lengths[count - 1]))
        return self._done

    def _collect(self, is_over: Callable[[], bool], most: int | None = None) -> None:
        self._waiting = {i for i, episode in enumerate(self._episodes) if not episode.is_reset}
        try:
            while not is_over():
                self._step(most)
        finally:
            self._complete_all()

    def _step(self, most: int | None) -> None:
        """Takes a step in each environment, or resets it where its episode is over."""
        runner = self._runner
        runner.direct_steps += 1
        timed = runner.direct_steps % sampling.TIMED == 1
        self._time = _timer(runner) if timed else _no_timer
        outputs = self._act()
        actions = outputs.pop(Columns.ACTIONS)
        for_env = outputs.pop(Columns.ACTIONS_FOR_ENV, actions)
        with self._time(("module_to_env_connector", "connector_pipeline_timer")):
            for_env = self._bypass.for_env(actions) if self._bypass.for_env else for_env
        if timed:  # it times itself
            results = runner._try_env_step(for_env)
        else:
            results = runner.env.step(for_env)
            self._calls += 1
        begun, ended = self._add(actions, outputs, *results)
        with self._time(("env_to_module_connector", "connector_pipeline_timer")):
            states = outputs.get(Columns.STATE_OUT)
            runner._cached_to_module = self._batch(results[0], states, begun)
        self._call_back(begun, ended, most)

    def _act(self) -> dict[str, Any]:
        """What the module says of the last observations, as arrays: actions, and what is extra."""
        runner = self._runner
        batch, runner._cached_to_module = runner._cached_to_module, None
        steps = (self._steps_before + self._steps) * self._runners
        with self._time("rlmodule_inference_timer"):
            outputs = self._forward(batch, **({"t": steps} if self._explore else {}))
        if self._state is not None:
            outputs = {
                k: v if k == Columns.STATE_OUT else _first_step(v) for k, v in outputs.items()
            }
        arrays = {name: _array(value) for name, value in outputs.items()}
        if Columns.ACTIONS not in arrays:
            actions, logp = sampling.act(
                runner.module,
                outputs[Columns.ACTION_DIST_INPUTS],
                _array,
                explore=self._explore,
                in_numpy=runner.draws_in_numpy,
            )
            arrays[Columns.ACTIONS] = actions
            arrays.setdefault(Columns.ACTION_LOGP, logp)
        return arrays

    def _add(
        self,
        actions: Sequence[Any],
        outputs: dict[str, Any],
        observations: Sequence[Any],
        rewards: Sequence[Any],
        terminateds: Any,
        truncateds: Any,
        infos: Sequence[Any],
    ) -> tuple[set[int], set[int]]:
        """Adds a step to each episode; returns the indices of those that begin and end with it.

        Others may get theirs later, many at once.
        """
        rows, episodes = self._bypass.rows(observations), self._episodes
        outputs = {**outputs, WEIGHTS_SEQ_NO: [self._runner._weights_seq_no] * len(rows)}
        step = VectorStep(rows, actions, rewards, infos, outputs, time.perf_counter())
        begun, self._waiting = self._waiting, set()
        over = (*np.flatnonzero(terminateds).tolist(), *np.flatnonzero(truncateds).tolist())
        ended = {*over} - begun
        for index in begun:
            episodes[index].add_env_reset(observation=rows[index], infos=infos[index])
        for index in ended:
            self._complete(index)
            episodes[index].add_env_step(
                **step.row(index), terminated=terminateds[index], truncated=truncateds[index]
            )
        self._taken.append(step)
        for index in begun | ended:
            self._added[index] = len(self._taken)
        if self._looks or len(self._taken) == _MOST_STEPS:
            self._complete_all()
        self._steps += len(rows) - len(begun)
        return begun, ended

    def _complete(self, index: int) -> None:
        """Adds the steps to an episode that it does not have yet."""
        if missing := self._taken[self._added[index] :]:
            add_steps(self._episodes[index], index, missing)
            self._added[index] = len(self._taken)

    def _complete_all(self) -> None:
        for index in range(len(self._added)):
            self._complete(index)
        self._taken.clear()
        self._added = [0] * len(self._added)

    def _batch(self, observations: Any, states: Any, begun: set[int]) -> dict[str, Any]:
        """What the module gets; one with states also these, and its observations a time axis."""
        seen = self._transform_observations(observations)
        if self._state is None:
            return {Columns.OBS: seen}
        # So do Ray's connectors, which may have to take it away again.
        self._runner._shared_data["_added_single_ts_time_rank"] = True
        rows = [self._state if i in begun else state for i, state in enumerate(states)]
        return {
            Columns.OBS: seen[:, None],
            Columns.STATE_IN: map_structure(convert_to_torch_tensor, stack(rows)),
        }

    def _transform_observations(self, observations: object) -> Any:
        """What the module sees of the last observations."""
        for connector in self._bypass.connectors:
            connector(
                rl_module=self._runner.module,
                batch={},
                episodes=self._episodes,
                explore=self._explore,
                shared_data=self._runner._shared_data,
            )
        if self._bypass.connectors:
            observations = np.stack([e.get_observations(-1) for e in self._episodes])
        return as_tensor(observations)

    def _call_back(self, begun: set[int], ended: set[int], most: int | None) -> None:
        """Calls callbacks, and takes out the episodes that have ended."""
        runner, episodes, calls_back = self._runner, self._episodes, self._bypass.calls_back
        for index in range(len(episodes)) if calls_back else sorted(begun | ended):
            if index in begun:
                runner._make_on_episode_callback("on_episode_start", index, episodes)
            elif calls_back:
                runner._make_on_episode_callback("on_episode_step", index, episodes)
            if index in ended:
                runner._make_on_episode_callback("on_episode_end", index, episodes)
                self._done.append(_finish_episode(runner, episodes[index]))
                runner._new_episode(index, episodes)
                self._waiting.add(index)
                if len(self._done) == most:
                    return

    def _count(self, steps: int) -> None:
        """Lets the runner count what was sampled."""
        self._runner._done_episodes_for_metrics.extend(self._done)
        self._runner.count(self._calls, steps, len(self._done))

    def _cut(self) -> list[Any]:
        """The chunks of unfinished episodes; the runner continues with what follows them."""
        lookback = self._runner.config.episode_lookback_horizon
        chunks = self._episodes
        after = [cut(episode, lookback) for episode in chunks]
        setattr(self._runner, self._list, after)
        found = [chunk for chunk in chunks if chunk.t]  # what has just begun has no data
        for chunk in found:
            self._runner._ongoing_episodes_for_metrics[chunk.id_].append(chunk)
        return [_finish_episode(self._runner, chunk) for chunk in found]


def _array(value: object) -> Any:
    """A batch in numpy; of what has several parts, a list of its rows."""
    if hasattr(value, "detach"):
        return value.detach().numpy()
    made = convert_to_numpy(value)
    return made if isinstance(made, np.ndarray) else unbatch(made)


def _initial_state(module: RLModule) -> Any:
    """A module's first state in arrays; None: it has no states."""
    if not module.is_stateful():
        return None
    return map_structure(lambda value: np.array(_array(value)), module.get_initial_state())


def _first_step(value: object) -> Any:
    """Batches of the only step of sequences."""
    return map_structure(lambda batch: batch[:, 0], value)


def _no_timer(_: object) -> AbstractContextManager[Any]:
    return nullcontext()


def _timer(runner: CompatEnvRunner) -> Callable[[Any], AbstractContextManager[Any]]:
    """What times a step's pieces; Ray 2.40 has others (`timers.py`), which continue as they do."""
    if hasattr(runner._env_to_module, "timers"):
        return _no_timer
    log_time: Callable[[Any], AbstractContextManager[Any]] = runner.metrics.log_time
    return log_time


def _steps_before(runner: CompatEnvRunner, runners: int) -> int:
    """How many steps this runner's share of all is, for schedules of exploration."""
    if hasattr(runner, "num_env_steps_sampled_lifetime"):  # of all runners, since Ray 2.54
        return int(runner.num_env_steps_sampled_lifetime) // runners
    return int(runner.metrics.peek(NUM_ENV_STEPS_SAMPLED_LIFETIME, default=0))


def _finish_episode(runner: CompatEnvRunner, episode: SingleAgentEpisode) -> Any:
    """The episode with arrays in the place of lists, unless the runner keeps them."""
    as_arrays = getattr(runner.config, "episodes_to_numpy", True)  # since Ray 2.44
    return to_numpy(episode) if getattr(runner, "episodes_to_numpy", as_arrays) else episode
