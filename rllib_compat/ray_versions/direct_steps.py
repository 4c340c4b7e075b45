"""An env runner's steps, from observation to action without a dozen connectors between.

Ray takes each step through its pipelines: observations out of episodes, into lists by episode, into
arrays, into tensors, and what the module says all the way back. Where `direct_ways` finds that all
of that is a batch in and a batch out, it takes more than half of the time in which a small network
samples (Ray 2.40 - 2.60). What stands here goes past it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from rllib_compat.ray_versions.direct_ways import Way, way_of
from rllib_compat.ray_versions.episodes import to_numpy
from rllib_compat.ray_versions.nested import mapped, stacked

#: Draws actions by a class of distributions and their inputs, and tells the logarithms of their
#: probabilities; None where torch has to do it.
Draw = Callable[[Any, Any], "tuple[Any, Any] | None"]

#: One step in so many goes Ray's way, so that its timers have something to tell.
TIMED = 50


class StepsDirectly:
    """What an env runner for one agent needs to take its steps directly, wherever it can."""

    def draw_actions(self, distribution: Any, inputs: Any) -> tuple[Any, Any] | None:
        """Draws actions without torch.

        Args:
            distribution: The class of the action distributions.
            inputs: What makes one of each row `[B, n]`.

        Returns:
            The actions, and the logarithms of their probabilities; None where torch has to do it.
        """
        del distribution, inputs
        return None

    def _sample(
        self,
        *,
        num_timesteps: int | None = None,
        num_episodes: int | None = None,
        explore: bool,
        random_actions: bool = False,
        force_reset: bool = False,
    ) -> list[Any]:
        """Samples steps or episodes; the method has this name and form in every supported Ray."""
        if random_actions or (way := way_of(self)) is None:
            return super()._sample(  # type: ignore[misc,no-any-return]
                num_timesteps=num_timesteps,
                num_episodes=num_episodes,
                explore=explore,
                random_actions=random_actions,
                force_reset=force_reset,
            )
        sampling = Sampling(self, way, explore=explore)
        if force_reset or num_episodes is not None or sampling.runner._needs_initial_reset:
            sampling.reset()
        if num_episodes is not None:
            sampling.runner._needs_initial_reset = True
            while sampling.ended < num_episodes:
                sampling.step(num_episodes)
            return sampling.done()
        while sampling.steps < (num_timesteps or 0):
            sampling.step()
        return sampling.done() + sampling.cut()


class Sampling:
    """One sample of an env runner, a step of all its environments at a time.

    Args:
        runner: The env runner.
        way: How its steps go.
        explore: Whether the module explores.

    Attributes:
        runner: The env runner.
        steps: How many steps were taken; resets are none.
        ended: How many episodes have ended.
    """

    def __init__(self, runner: Any, way: Way, *, explore: bool) -> None:
        # Imported once: code of users may have hooks on imports, which cost each step.
        from ray.rllib.core.columns import Columns
        from ray.rllib.utils.metrics import WEIGHTS_SEQ_NO
        from ray.rllib.utils.torch_utils import convert_to_torch_tensor

        self.runner, self.steps, self.ended = runner, 0, 0
        self._way, self._explore = way, explore
        self._columns, self._tensor = Columns, convert_to_torch_tensor
        self._number_of_weights = WEIGHTS_SEQ_NO
        # Ray 2.54 gave the list another name.
        self._list = "_ongoing_episodes" if hasattr(runner, "_ongoing_episodes") else "_episodes"
        self._runners = runner.config.num_env_runners or 1
        self._before = _steps_before(runner, self._runners)
        self._forward = forward_of(runner.module, explore=explore)
        self._state = _initial_state(runner.module)
        self._time: Callable[[Any], AbstractContextManager[Any]] = _untimed
        self._calls = 0
        self._done: list[Any] = []

    @property
    def _episodes(self) -> list[Any]:
        episodes: list[Any] = getattr(self.runner, self._list)
        return episodes

    def reset(self) -> None:
        """Begins new episodes in all environments; the first observations go Ray's way."""
        setattr(self.runner, self._list, [None] * self.runner.num_envs)
        self.runner._shared_data = {}
        self.runner._reset_envs(self._episodes, self.runner._shared_data, self._explore)
        self.runner._needs_initial_reset = False

    def step(self, most: int | None = None) -> None:
        """Takes a step in each environment, or resets it where its episode is over.

        Args:
            most: No further episode is looked at once so many have ended.
        """
        runner = self.runner
        runner.direct_steps = getattr(runner, "direct_steps", 0) + 1
        timed = runner.direct_steps % TIMED == 1
        self._time = _timer(runner) if timed else _untimed
        extra = self._act()
        actions = extra.pop(self._columns.ACTIONS)
        for_env = extra.pop(self._columns.ACTIONS_FOR_ENV, actions)
        with self._time(("module_to_env_connector", "connector_pipeline_timer")):
            for_env = self._way.for_env(actions) if self._way.for_env else for_env
        if timed:  # it times itself
            results = runner._try_env_step(for_env)
        else:
            results = runner.env.step(for_env)
            self._calls += 1
        begun = self._add(actions, extra, *results)
        with self._time(("env_to_module_connector", "connector_pipeline_timer")):
            states = extra.get(self._columns.STATE_OUT)
            runner._cached_to_module = self._batch(results[0], states, begun)
        self._tell(begun, most)

    def _act(self) -> dict[str, Any]:
        """What the module says of the last observations, as arrays: actions, and what is extra."""
        columns = self._columns
        batch, self.runner._cached_to_module = self.runner._cached_to_module, None
        kwargs = {"t": (self._before + self.steps) * self._runners} if self._explore else {}
        with self._time("rlmodule_inference_timer"):
            said = self._forward(batch, **kwargs)
        if self._state is not None:
            said = {k: v if k == columns.STATE_OUT else _first_step(v) for k, v in said.items()}
        out = {name: _array(value) for name, value in said.items()}
        if columns.ACTIONS not in out:
            actions, logp = drawn(
                self.runner.module,
                said[columns.ACTION_DIST_INPUTS],
                _array,
                self.runner.draw_actions,
                explore=self._explore,
            )
            out[columns.ACTIONS] = actions
            out.setdefault(columns.ACTION_LOGP, logp)
        return out

    def _add(
        self,
        actions: Any,
        extra: dict[str, Any],
        observations: Any,
        rewards: Any,
        terminateds: Any,
        truncateds: Any,
        infos: Any,
    ) -> set[int]:
        """Adds a step to each episode; tells which of them have begun with it."""
        begun, number = set(), {self._number_of_weights: self.runner._weights_seq_no}
        rows = self._way.rows(observations)
        for index, episode in enumerate(self._episodes):
            if not episode.is_reset:
                episode.add_env_reset(observation=rows[index], infos=infos[index])
                begun.add(index)
                continue
            self.steps += 1
            episode.add_env_step(
                observation=rows[index],
                action=actions[index],
                reward=rewards[index],
                infos=infos[index],
                terminated=terminateds[index],
                truncated=truncateds[index],
                extra_model_outputs={k: v[index] for k, v in extra.items()} | number,
            )
        return begun

    def _batch(self, observations: Any, states: Any, begun: set[int]) -> dict[str, Any]:
        """What the module gets; one with states also these, and its observations a time axis."""
        seen, columns = self._seen(observations), self._columns
        if self._state is None:
            return {columns.OBS: seen}
        # So do Ray's connectors, which may have to take it away again.
        self.runner._shared_data["_added_single_ts_time_rank"] = True
        rows = [self._state if i in begun else state for i, state in enumerate(states)]
        return {
            columns.OBS: seen[:, None],
            columns.STATE_IN: mapped(self._tensor, stacked(rows)),
        }

    def _seen(self, observations: Any) -> Any:
        """What the module sees of the last observations."""
        for connector in self._way.before:
            connector(
                rl_module=self.runner.module,
                batch={},
                episodes=self._episodes,
                explore=self._explore,
                shared_data=self.runner._shared_data,
            )
        if self._way.before:
            observations = np.stack([e.get_observations(-1) for e in self._episodes])
        return self._tensor(observations)

    def _tell(self, begun: set[int], most: int | None) -> None:
        """Calls what hears of steps, and takes out the episodes that have ended."""
        runner, episodes = self.runner, self._episodes
        for index, episode in enumerate(episodes):
            if index in begun:
                runner._make_on_episode_callback("on_episode_start", index, episodes)
            elif self._way.hears_steps:
                runner._make_on_episode_callback("on_episode_step", index, episodes)
            if episode.is_done:
                self.ended += 1
                runner._make_on_episode_callback("on_episode_end", index, episodes)
                self._done.append(_finished(runner, episode))
                runner._new_episode(index, episodes)
                if self.ended == most:
                    return

    def done(self) -> list[Any]:
        """The episodes that have ended, once all is counted."""
        runner, counted = self.runner, getattr(self.runner, "_log_env_steps", None)
        runner._done_episodes_for_metrics.extend(self._done)
        if counted is not None:  # for Prometheus, since Ray 2.52
            for metric, count in (
                (runner._metrics_num_try_env_step, self._calls),
                (runner._metrics_num_env_steps_sampled, self.steps),
            ):
                if count:
                    counted(metric=metric, num_steps=count)
        runner._increase_sampled_metrics(self.steps, len(self._done))
        return self._done

    def cut(self) -> list[Any]:
        """The chunks of the episodes that go on; the runner goes on with what follows them."""
        lookback = self.runner.config.episode_lookback_horizon
        chunks = self._episodes
        after = [episode.cut(len_lookback_buffer=lookback) for episode in chunks]
        setattr(self.runner, self._list, after)
        found = [chunk for chunk in chunks if chunk.t]  # what has just begun has no data
        for chunk in found:
            chunk.validate()
            self.runner._ongoing_episodes_for_metrics[chunk.id_].append(chunk)
        return [_finished(self.runner, chunk) for chunk in found]


def _array(value: Any) -> Any:
    """A batch in numpy; of what has several parts, a list of its rows."""
    if hasattr(value, "detach"):
        return value.detach().numpy()
    from ray.rllib.utils.numpy import convert_to_numpy
    from ray.rllib.utils.spaces.space_utils import unbatch

    made = convert_to_numpy(value)
    return made if isinstance(made, np.ndarray) else unbatch(made)


def _initial_state(module: Any) -> Any:
    """A module's first state in arrays; None: it has no states."""
    if not module.is_stateful():
        return None
    return mapped(lambda value: np.array(_array(value)), module.get_initial_state())


def _first_step(value: Any) -> Any:
    """Batches of the only step of sequences."""
    return mapped(lambda batch: batch[:, 0], value)


def _untimed(_: Any) -> AbstractContextManager[Any]:
    return nullcontext()


def _timer(runner: Any) -> Callable[[Any], AbstractContextManager[Any]]:
    """What times a step's pieces; Ray 2.40 has others (`timers.py`), which go on as they do."""
    if hasattr(runner._env_to_module, "timers"):
        return _untimed
    log_time: Callable[[Any], AbstractContextManager[Any]] = runner.metrics.log_time
    return log_time


def _steps_before(runner: Any, runners: int) -> int:
    """How many steps this runner's share of all is, for schedules of exploration."""
    from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME

    if hasattr(runner, "num_env_steps_sampled_lifetime"):  # of all runners, since Ray 2.54
        return int(runner.num_env_steps_sampled_lifetime) // runners
    return int(runner.metrics.peek(NUM_ENV_STEPS_SAMPLED_LIFETIME, default=0))


def forward_of(module: Any, *, explore: bool) -> Any:
    """The module's forward pass; later Rays put every layer into its mode before each."""
    from ray.rllib.core.rl_module.torch import TorchRLModule

    name = "forward_exploration" if explore else "forward_inference"
    public = getattr(module, name)
    replaced = name in vars(module) or getattr(type(module), name) is not getattr(
        TorchRLModule, name
    )
    return public if module.training or replaced else getattr(module, f"_{name}")


def drawn(
    module: Any, inputs: Any, array: Callable[[Any], Any], draw: Draw, *, explore: bool
) -> tuple[Any, Any]:
    """Actions, and the logarithms of their probabilities.

    Only here is the module asked from what they are drawn: one that chooses itself has nothing.

    Args:
        module: The module.
        inputs: What makes a distribution of each row `[B, n]`.
        array: Makes arrays of tensors.
        draw: Draws without torch, where it can.
        explore: Whether they are drawn, or the likeliest is taken.
    """
    which = "exploration" if explore else "inference"
    kind = getattr(module, f"get_{which}_action_dist_cls")()
    if explore and (found := draw(kind, array(inputs))) is not None:
        return found
    distribution = kind.from_logits(inputs)
    if not explore:
        distribution = distribution.to_deterministic()
    actions = distribution.sample()
    return array(actions), array(distribution.logp(actions))


def _finished(runner: Any, episode: Any) -> Any:
    """The episode with arrays in the place of lists, unless the runner keeps them."""
    as_arrays = getattr(runner.config, "episodes_to_numpy", True)  # since Ray 2.44
    return to_numpy(episode) if getattr(runner, "episodes_to_numpy", as_arrays) else episode
