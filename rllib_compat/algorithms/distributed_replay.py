"""What APEX and APEX_DDPG share (`agents/dqn/apex.py` of Ray 0.5 – 1.13, `apex_dqn` until 2.10).

Horgan et al., "Distributed prioritized experience replay" (2018). Env runners sample without being
waited for, each explores in its own way, and the replay buffer lies in actors. One learner draws
from these as fast as `training_intensity` says.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import ray
import tree
from ray.exceptions import RayActorError
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.utils.checkpoints import Checkpointable

from rllib_compat.algorithms.base import RemovedAlgorithm, RemovedAlgorithmConfig
from rllib_compat.algorithms.local_learners import sync_local_env_runner
from rllib_compat.algorithms.off_policy import OffPolicyAlgorithm, replay_settings
from rllib_compat.algorithms.replay import DrawnRows, TransitionReplayBuffer, count_of
from rllib_compat.algorithms.rounds import begin_rounds, legacy_replay
from rllib_compat.algorithms.sampling import explore_as_worker, steps_sampled
from rllib_compat.algorithms.transitions import Array, NStepTransitions
from rllib_compat.neutral.errors import CompatError, ConfigError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import checkpoints, configs, env_runners, training_steps
from rllib_compat.runtime.results import RECORDS

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig, EnvRunner, RLModule

logger = logging.getLogger(__name__)


class ReplayShard:
    """A part of the buffer, in an actor; it draws none before it was given the least number."""

    def __init__(self, capacity: int, least: int, **more: Any) -> None:
        self._replay = TransitionReplayBuffer(capacity, **more)
        self._least = max(1, least)
        self._given = 0
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._calls: Counter[str] = Counter()
        self._failed: Exception | None = None

    def add(self, rows: Mapping[str, Any], errors: Array | None) -> None:
        """Keeps transitions. The call is not waited for: the next `draw` raises its error."""
        begin = time.perf_counter()
        try:
            self._replay.keep(rows, errors)
            self._given += count_of(rows)
        except Exception as error:  # `draw` raises it
            self._failed = error
        self._count("add_batch", begin)

    def draw(self, count: int, beta: float) -> tuple[dict[str, Any], DrawnRows] | None:
        """A train batch, and which transitions it has; None where there are too few."""
        if self._failed is not None:
            raise self._failed
        if self._given < self._least:
            return None
        begin = time.perf_counter()
        found = self._replay.sample(count, beta)
        self._count("replay", begin)
        return found

    def prioritize(self, errors: Array, drawn: DrawnRows) -> None:
        """Gives transitions that it has drawn other priorities."""
        begin = time.perf_counter()
        self._replay.prioritize(errors, drawn)
        self._count("update_priorities", begin)

    def stats(self, debug: bool = False) -> dict[str, float]:
        """What it holds and has done, by the names of old results; with `debug` its size, too."""
        measured: dict[str, float] = {
            "num_entries": len(self._replay),
            "added_count": self._replay.storage.added,
            "capacity": self._replay.storage.capacity,
            **{f"num_calls_{name}": calls for name, calls in self._calls.items()},
        }
        for name, calls in self._calls.items():
            measured[f"{name}_time_ms"] = round(1000 * self._seconds[name] / calls, 3)
        if debug and len(self._replay):
            row, _ = self._replay.sample(1)
            measured["est_size_bytes"] = len(self._replay) * sum(
                a.nbytes for a in tree.flatten(row)
            )
        return measured

    def get_state(self) -> dict[str, Any]:
        """What it holds, for a checkpoint."""
        return {"given": self._given, "replay": self._replay.get_state()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Holds what another one held."""
        self._replay.set_state(state["replay"])
        self._given = state["given"]

    def _count(self, what: str, begin: float) -> None:
        self._seconds[what] += time.perf_counter() - begin
        self._calls[what] += 1


@frozen
class Batch:
    """A batch from a shard.

    Attributes:
        shard: The number of the shard.
        actor: The shard itself, which may have been restarted since.
        columns: What learners take.
        drawn: Which of the shard's transitions they are.
    """

    shard: int
    actor: Any
    columns: Mapping[str, Any]
    drawn: DrawnRows


class ShardedReplayBuffer(Checkpointable):  # type: ignore[misc]  # Ray has no types
    """All parts of the buffer, whose actors start when they are first needed.

    `capacity` and `least` are those of all together. With `here`, they are on the algorithm's node.
    """

    def __init__(
        self, count: int, capacity: int, *, least: int = 0, here: bool = True, **more: object
    ) -> None:
        self.count, self.capacity = count, capacity
        self._least, self._here, self._more = least, here, more
        self._actors: list[Any] = []
        #: What was asked for → the shard that was asked.
        self._asked: dict[Any, tuple[int, Any]] = {}
        self._restored: list[Any] | None = None

    @property
    def actors(self) -> list[Any]:
        """The actors."""
        if not self._actors:
            self._actors = [self._start() for _ in range(self.count)]
            # Until they run, what env runners send waits, and batches would be asked for in vain.
            ray.get([actor.stats.remote() for actor in self._actors])
            if self._restored is not None:
                ray.get([self._set(*pair) for pair in self._pairs(self._restored)])
                self._restored = None
        return self._actors

    @property
    def pending(self) -> list[Any]:
        """The references to batches that were asked for."""
        return list(self._asked)

    def ask(self, size: int, beta: float) -> None:
        """Asks one of the shards for a batch."""
        number = np.random.randint(self.count)
        actor = self.actors[number]
        self._asked[actor.draw.remote(size, beta)] = number, actor

    def answers(self) -> Iterator[Batch | None]:
        """The batches that are there; None in the place of one from a shard that has too little.

        A shard that has died is replaced, with a warning: its contents are lost.
        """
        ready, _ = ray.wait(self.pending, num_returns=len(self._asked), timeout=0.0)
        for reference in ready:
            number, actor = self._asked.pop(reference)
            try:
                found = ray.get(reference)
            except RayActorError as error:
                self._replace(number, actor, error)
                found = None
            if found is None:
                yield None
                continue
            columns, drawn = found
            # Copies: arrays in the object store can't be written, of which torch warns.
            yield Batch(number, actor, tree.map_structure(lambda a: a.copy(), columns), drawn)

    def stats(self, debug: bool = False) -> dict[str, float]:
        """The statistics of the first shard; empty where it has died or not started."""
        if not self._actors:
            return {}
        try:
            measured: dict[str, float] = ray.get(self._actors[0].stats.remote(debug))
        except RayActorError as error:
            self._replace(0, self._actors[0], error)
            return {}
        return measured

    def get_state(self, *_: object, **__: object) -> dict[str, Any]:
        """What all of them hold, for a checkpoint."""
        if self._actors:
            states = ray.get([actor.get_state.remote() for actor in self._actors])
        else:
            states = self._restored
        return {"count": self.count, "capacity": self.capacity, "shards": states}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Holds what other ones held.

        Raises:
            ConfigError: Those were more or fewer, or of another size.
        """
        stored, mine = ((state["count"], state["capacity"]), (self.count, self.capacity))
        if stored != mine:
            raise ConfigError(
                f"The checkpoint's replay buffer has {stored[0]} shards of {stored[1]} steps, and "
                f"this one {mine[0]} of {mine[1]}.",
                where="num_replay_buffer_shards",
                fix="Set the same numbers, or store_buffer_in_checkpoints=False.",
            )
        self._asked.clear()
        self._restored = state["shards"]
        if self._actors and self._restored is not None:
            ray.get([self._set(*pair) for pair in self._pairs(self._restored)])
            self._restored = None

    def get_ctor_args_and_kwargs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that made it."""
        return (self.count, self.capacity), {"least": self._least, "here": self._here, **self._more}

    def stop(self) -> None:
        """Ends the actors."""
        while self._actors:
            ray.kill(self._actors.pop())
        self._asked.clear()

    def __len__(self) -> int:
        """How many there are."""
        return self.count

    def _start(self) -> Any:
        options: dict[str, Any] = {"num_cpus": 0}
        if self._here:
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            node = ray.get_runtime_context().get_node_id()
            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node, soft=False)
        made = ray.remote(ReplayShard).options(**options)
        return made.remote(
            max(1, self.capacity // self.count), self._least // self.count, **self._more
        )

    def _replace(self, number: int, actor: object, error: Exception) -> None:
        if self._actors[number] is not actor:  # that was done already
            return
        logger.warning(
            "A shard of the replay buffer has died and is replaced by an empty one; its contents "
            "are lost: %s",
            error,
        )
        self._actors[number] = self._start()

    def _pairs(self, states: list[Any]) -> Iterator[tuple[Any, Any]]:
        return zip(self._actors, states, strict=True)

    @staticmethod
    def _set(actor: Any, state: Iterable[Any]) -> Any:
        return actor.set_state.remote(state)


#: For how long nothing may happen before Ray looks after env runners that have died.
_PATIENCE = 1.0
#: How many batches are asked for ahead of a learner that is to learn as fast as it can, a shard.
_AHEAD = 2

#: The key of results and of states.
APEX = "apex"


class DistributedReplayConfig(RemovedAlgorithmConfig):
    """The settings of distributed replay; the first base of an algorithm's config.

    `training_intensity` is how many steps are learned from for each one that is sampled; None: as
    many as can be. `target_network_update_freq` and schedules count steps that were learned from.
    """

    num_replay_buffer_shards: int
    per_worker_exploration: bool
    num_env_runners: int
    max_requests_in_flight_per_replay_worker: float | None
    training_intensity: float | None

    least = {"num_replay_buffer_shards": 1, "max_requests_in_flight_per_replay_worker": 1}
    positive = ("training_intensity",)
    settings = {
        "num_replay_buffer_shards": "Over how many actors the replay buffer is distributed. Each "
        'keeps its part of `replay_buffer_config["capacity"]` steps.',
        "replay_buffer_shards_colocated_with_driver": "Whether these have to be on the node of "
        "the algorithm.",
        "max_requests_in_flight_per_replay_worker": "For how many batches a shard is asked at "
        "once; None: without a limit.",
        "max_weight_sync_delay": "An env runner receives new weights after so many of its own "
        "steps.",
        "worker_side_prioritization": "Whether env runners say how wrong the network is about "
        "what they have sampled, from which its first priority is made. Otherwise it is the "
        "greatest that any had.",
        "per_worker_exploration": "Whether each env runner explores by a share of its own, from "
        "0.4 to 0.4 ** 8. Results then count only the episodes of the last third.",
        "prioritized_replay_eps": "What is added to each error.",
        "debug_replay": "Whether results include the size of the first shard in bytes.",
    }

    def explore_as_worker(self, module: RLModule, worker: int) -> None:
        """Lets the module of an env runner explore by the share of that one."""
        raise NotImplementedError

    def errors_of_worker(self, module: RLModule, rows: object) -> Any:  # noqa: ARG002
        """What an env runner's module is wrong by about transitions; None: that is unknown."""
        return None


class DistributedReplayAlgorithm(RemovedAlgorithm, OffPolicyAlgorithm):
    """The first base of an algorithm whose replay buffer is distributed over actors.

    Without env runners of its own (`num_env_runners=0`), with several policies, and where columns
    can't be replayed, it is the algorithm that is not distributed.
    """

    def setup(self, config: AlgorithmConfig) -> None:
        """Builds env runners and learner; the shards start when they are needed."""
        #: How many steps it has learned from; None: not known yet.
        self._trained: int | None = None
        self._syncs = 0
        self._owed = 0.0
        #: Env runner → the steps that it has sampled since it got weights.
        self._since: Counter[int] = Counter()
        self._learned = False
        super().setup(config)
        if isinstance(self.replay, ShardedReplayBuffer):
            # None of its training steps has rounds: env runners continue between them.
            begin_rounds(self)
        elif self.replay is None or self.config.num_env_runners:
            logger.warning("The replay buffer of %s is not distributed.", type(self).__name__)

    def make_replay_buffer(self) -> Any:
        """The buffer, still empty."""
        config = self.config
        if not config.num_env_runners or configs.is_multi_agent(config):
            return super().make_replay_buffer()
        return ShardedReplayBuffer(
            config.num_replay_buffer_shards,
            config.replay_buffer_config["capacity"],
            least=config.num_steps_sampled_before_learning_starts,
            here=config.replay_buffer_shards_colocated_with_driver,
            **replay_settings(config),
        )

    def training_step(self) -> None:
        """Takes what env runners and shards have ready, and asks them for more."""
        if not isinstance(self.replay, ShardedReplayBuffer):
            if self.config.num_env_runners:
                env_runners.foreach_env_runner(self.env_runner_group, explore_as_worker)
            super().training_step()
            return
        self._require_env_runners()
        env_runners.wait_for_any(self.env_runner_group, self.replay.pending, _PATIENCE)
        self._take_samples()
        for batch in self.replay.answers() if self.replay.pending else ():
            if batch is not None:
                self._learn_from(batch)
        self._ask()
        measured = {"num_weight_syncs": self._syncs, "num_env_steps_trained": self._steps_trained()}
        self.metrics.log_dict(measured, key=APEX, window=1)

    def step(self) -> Any:
        """One iteration; its result has statistics of the first shard."""
        result = super().step()  # type: ignore[misc]
        if isinstance(self.replay, ShardedReplayBuffer):
            # Evaluation and `compute_single_action` have what was learned last.
            sync_local_env_runner(self)
            stats = self.replay.stats(self.config.debug_replay)
            result.setdefault(APEX, {})["replay_shard_0"] = stats
        return result

    def cleanup(self) -> None:
        """Ends the actors."""
        if isinstance(self.replay, ShardedReplayBuffer):
            self.replay.stop()
        super().cleanup()  # type: ignore[misc]

    def get_state(
        self, components: object = None, *, not_components: object = None, **more: object
    ) -> Any:
        """Its state, or that of some parts."""
        state = super().get_state(components, not_components=not_components, **more)
        if checkpoints.is_asked_for(self, APEX, components, not_components):
            state[APEX] = {"trained": self._steps_trained(), "syncs": self._syncs}
        return state

    def set_state(self, state: Any) -> None:
        """Goes on from a state."""
        if isinstance(self.replay, ShardedReplayBuffer):
            # What is sampled by now belongs to another time.
            env_runners.forget_requests(self.env_runner_group, self.config.sample_timeout_s)
        super().set_state(state)
        saved = state.get(APEX, {})
        self._since.clear()
        self._owed = 0.0
        self._trained, self._syncs = saved.get("trained"), saved.get("syncs", 0)

    def _require_env_runners(self) -> None:
        """Makes sure that there is an env runner, or that Ray starts one."""
        healthy = env_runners.healthy_env_runners(self.env_runner_group)
        if not healthy and not self.config.restart_failed_env_runners:
            raise CompatError(
                f"All {self.config.num_env_runners} env runners have failed.",
                where="env_runners",
                fix="Set restart_failed_env_runners=True, so that Ray replaces them.",
            )

    def _take_samples(self) -> None:
        """Counts what env runners have sampled, and sends weights to those that have old ones."""
        group = self.env_runner_group
        answers: list[tuple[int, SampleResult]] = env_runners.answers_of_env_runners(group, 0.0)
        if not answers:
            return
        training_steps.log_of_env_runners(self, [sampled.metrics for _, sampled in answers])
        for worker, sampled in answers:
            self._since[worker] += sampled.steps
            self._owe(sampled.steps)
        delay = self.config.max_weight_sync_delay
        due = [worker for worker in sorted(self._since) if self._since[worker] >= delay]
        if due and self._learned:
            training_steps.send_new_weights(self, to=due)
            self._syncs += len(due)
        for worker in due:
            self._since[worker] = 0

    def _owe(self, steps: int) -> None:
        """Counts the updates that sampled steps ask for."""
        config = self.config
        if config.training_intensity is not None:
            self._owed += steps * config.training_intensity / config.total_train_batch_size

    def _ask(self) -> None:
        """Asks shards for the batches that it owes, and env runners for steps if it owes none."""
        replay, config = self.replay, self.config
        most = math.inf
        if config.max_requests_in_flight_per_replay_worker is not None:
            most = config.max_requests_in_flight_per_replay_worker * replay.count
        if config.training_intensity is None:
            most = min(most, _AHEAD * replay.count)
            self._owed = max(0, most - len(replay.pending))
        size, beta = config.total_train_batch_size, config.replay_buffer_config.get("beta") or 0.0
        while self._owed >= 1 and len(replay.pending) < most:
            replay.ask(size, beta)
            self._owed -= 1
        if self._owed < 1 or config.training_intensity is None:
            play = partial(sample_into, shards=replay.actors)
            env_runners.ask_env_runners(
                self.env_runner_group, play, most=config.max_requests_in_flight_per_env_runner
            )

    def _learn_from(self, batch: Batch) -> None:
        """Learns from a batch, and gives its shard the errors."""
        errors = self.learn_from({DEFAULT_MODULE_ID: batch.columns})
        self._learned = True
        if errors:  # the policy is trained
            batch.actor.prioritize.remote(errors[DEFAULT_MODULE_ID], batch.drawn)

    def now(self, count: int) -> int:
        """The step that schedules and targets are at: how many it has learned from, as ever."""
        self._trained = self._steps_trained() + count
        return self._trained

    def _steps_trained(self) -> int:
        """How many steps it has learned from; where a checkpoint does not say, it has sampled."""
        if self._trained is None:
            self._trained = steps_sampled(self)
        return self._trained


#: The prefixes of metrics of finished episodes.
_OF_EPISODES = ("episode_", "agent_episode", "module_episode", RECORDS)


@frozen
class SampleResult:
    """What an env runner sends to the algorithm.

    Attributes:
        steps: How many steps it has sampled.
        metrics: What it has measured.
    """

    steps: int
    metrics: Any


def sample_into(env_runner: EnvRunner, shards: Sequence[Any]) -> SampleResult:
    """Samples a fragment, and gives the transitions that it completes to one of the shards."""
    config, worker = env_runner.config, env_runner.worker_index
    explore_as_worker(env_runner)
    episodes = env_runner.sample()
    chunks = _chunks_of(env_runner)
    made = [rows for episode in episodes if len(episode) and (rows := chunks.transitions(episode))]
    if made:
        rows = tree.map_structure(lambda *parts: np.concatenate(parts), *made)
        errors = None
        if config.worker_side_prioritization:
            errors = config.errors_of_worker(env_runner.module, rows)
        shards[np.random.randint(len(shards))].add.remote(rows, errors)
    metrics = env_runner.get_metrics()
    if config.per_worker_exploration and not tells_of_episodes(worker, config.num_env_runners):
        metrics = {
            name: value for name, value in metrics.items() if not name.startswith(_OF_EPISODES)
        }
    return SampleResult(sum(len(episode) for episode in episodes), metrics)


def tells_of_episodes(worker: int, workers: int) -> bool:
    """Whether an env runner's episodes are logged: those of the last third, as in old Rays."""
    return worker > workers - -(-workers // 3)


def _chunks_of(env_runner: Any) -> NStepTransitions:
    """The steps of an env runner whose targets wait for the next fragment."""
    if not hasattr(env_runner, "waiting_transitions"):
        config = env_runner.config
        env_runner.waiting_transitions = NStepTransitions(
            config.n_step,
            config.gamma,
            patience=config.replay_buffer_config["capacity"],
            waits=legacy_replay(config) is None,
        )
    found: NStepTransitions = env_runner.waiting_transitions
    return found
