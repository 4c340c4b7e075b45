"""The adapter from legacy callbacks to the installed Ray's `RLlibCallback`.

There are three legacy forms: a dict of functions that take one `info` dict (0.5 – 1.x), and classes
with `worker`, `base_env`, `policies` and `trainer` (0.8.5 – 1.x) or `algorithm` (2.x). As in old
Rays, a dict is converted to a class.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType
from typing import Any, ClassVar

from packaging.version import Version

from rllib_compat.neutral.errors import CompatError
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import env_runners, episodes, metrics, old_stack, timers
from rllib_compat.ray_versions.types import Algorithm
from rllib_compat.runtime.batches import Samples, agent_parts, read_only, sample_batch, write_back
from rllib_compat.runtime.episodes import LegacyEpisode, terminate_truncated
from rllib_compat.runtime.evaluation import EvaluationFunction
from rllib_compat.runtime.legacy_callbacks import (
    Curriculum,
    DefaultCallbacks,
    MultiCallbacks,
    adapt_signature,
    call_back_on_checkpoints,
    handles,
    handles_checkpoints,
    instantiate,
    made_by,
    methods,
    resolve,
)
from rllib_compat.runtime.multi_agent import track_agent_spaces
from rllib_compat.runtime.offline.files import Recording, Writer
from rllib_compat.runtime.policy_mapping import ONLY_POLICY, MappingContext
from rllib_compat.runtime.results import RECORDS, EpisodeRecord, LegacyResults, complete_evaluation
from rllib_compat.runtime.user_envs import LegacyBaseEnv, OldStackBaseEnv, user_env
from rllib_compat.runtime.workers import LegacyWorker, worker_of


class RunningPlan:
    """An execution plan that takes the training steps of an algorithm of the old API stack.

    Args:
        plan: The function from (workers, config) to an iterator of results.
        workers: `trainer.workers`.
        config: The legacy config.
        algorithm: The algorithm, whose counters the plan uses.

    Attributes:
        result: The newest result of the plan.
    """

    def __init__(
        self,
        plan: Callable[..., Any],
        workers: object,
        config: Mapping[str, Any],
        algorithm: Algorithm,
    ) -> None:
        self.result: dict[str, Any] = {}
        old_stack.add_legacy_batch_names()
        self._algorithm = algorithm
        self._items = plan(workers, config)

    def __call__(self) -> Any:
        """Takes one step: the next item of the plan.

        Returns:
            The policies' statistics.

        Raises:
            CompatError: The plan has no more items.
        """
        try:
            item = old_stack.next_of_plan(self._algorithm, self._items)
        except StopIteration as error:
            raise CompatError(
                "The execution plan has ended: its iterator has no more results.",
                where="trainer.train()",
                fix="call train() only as often as the plan yields a result",
            ) from error
        self.result = dict(item) if isinstance(item, Mapping) else {}
        return dict(self.result.get("info", {}).get("learner", {}))

    def complete(self, result: dict[str, Any]) -> None:
        """Merges the plan's newest result into an algorithm's result."""
        for key, value in self.result.items():
            if key == "info":
                others = {name: v for name, v in value.items() if name != "learner"}
                result.setdefault(key, {}).update(others)
            elif isinstance(value, Mapping) and isinstance(result.get(key), dict):
                result[key].update(value)
            else:
                result[key] = value


__all__ = [
    "CallbackAdapter",
    "DefaultCallbacks",
    "MultiCallbacks",
    "adapt_callbacks",
    "with_trainer",
]

RayCallbacks = episodes.callback_class()


@public("rllib_compat.adapters")
def adapt_callbacks(
    callbacks: object,
    recording: Recording | None = None,
    task_function: Callable[[Any, Any, Any], Any] | None = None,
) -> type:
    """Makes the callbacks class that the installed Ray takes.

    Args:
        callbacks: A dict of functions, a class, a dotted name of one, a function that makes an
            instance, a list of these, or None.
        recording: Where to write all samples, if anywhere.
        task_function: Returns the task of an environment, after each iteration; see `Curriculum`.

    Raises:
        ConfigError: It is none of these, or a dict with a name that no Ray had.
    """
    if isinstance(callbacks, (FunctionType, partial)) and isinstance(
        made := made_by(callbacks), MultiCallbacks
    ):
        callbacks = made
    sources = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
    found = tuple(resolve(source) for source in sources if source not in (None, RayCallbacks))
    if task_function is not None:
        found += (Curriculum(task_function),)
    stepping = any(handles(source, "on_episode_step") for source in found)
    base = SteppingAdapter if stepping else CallbackAdapter
    members = {
        "sources": found,
        "recording": recording,
        "handles_learn_on_batch": any(handles(source, "on_learn_on_batch") for source in found),
        "__module__": __name__,
    }
    return type("LegacyCallbacks", (base,), members)


def with_trainer(
    adapter: type[CallbackAdapter],
    *,
    truncation_terminates: bool = False,
    legacy_ray: str | None = None,
    names_only_policy: bool = True,
) -> type[CallbackAdapter]:
    """Derives an adapter for a trainer, which calls `set_trainer` when it is complete.

    Args:
        adapter: The adapter.
        truncation_terminates: Whether truncated episodes count as terminated for learners.
        legacy_ray: The Ray that the trainer's config was written for; None: the last legacy one.
        names_only_policy: See `learner_info.names_only_policy`.
    """
    members = {
        "has_trainer": True,
        "truncation_terminates": truncation_terminates,
        "legacy_ray": None if legacy_ray is None else Version(legacy_ray),
        "names_only_policy": names_only_policy,
        "__module__": __name__,
    }
    return type(adapter.__name__, (adapter,), members)


#: The events of the installed Ray that have their legacy name.
_SAME = (
    *("on_episode_created", "on_episode_start", "on_episode_step", "on_episode_end"),
    *("on_sample_end", "on_train_result", "on_evaluate_start", "on_evaluate_end"),
    *("on_checkpoint_loaded", "on_postprocess_trajectory", "on_learn_on_batch", "on_create_policy"),
)
#: An event of the installed Ray → its legacy names.
EVENTS: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in _SAME},
    "on_algorithm_init": ("on_algorithm_init", "on_trainer_init"),
    "on_environment_created": ("on_sub_environment_created",),
}


@public("rllib_compat.adapters")
class CallbackAdapter(RayCallbacks):  # type: ignore[misc, valid-type]
    """Calls legacy callbacks with legacy objects, and sends a record of each episode to the driver.

    Attributes:
        sources: The callbacks: dicts of functions, and classes.
        recording: Where env runners write training samples, if anywhere.
        handles_learn_on_batch: Whether a callback handles `on_learn_on_batch`.
        has_trainer: Whether a legacy trainer will call `set_trainer` in its own process.
        truncation_terminates: Whether truncated episodes count as terminated for learners.
        legacy_ray: The Ray whose form results and batches have; None: the last legacy one.
        names_only_policy: See `learner_info.names_only_policy`.
        results: Adds the legacy keys to the algorithm's results.
        evaluated: Whether an evaluation has ended since the last result.
        legacy: The callbacks objects; `worker.callbacks` is the first.
        owner: The legacy trainer, in its process; None: callbacks get the algorithm.
    """

    sources: ClassVar[tuple[Any, ...]] = ()
    recording: ClassVar[Recording | None] = None
    handles_learn_on_batch: ClassVar[bool] = False
    has_trainer: ClassVar[bool] = False
    truncation_terminates: ClassVar[bool] = False
    legacy_ray: ClassVar[Version | None] = None
    names_only_policy: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        old_stack.add_legacy_batch_names()
        self.legacy = [instantiate(source) for source in self.sources]
        self.owner: Any = None
        self._methods = {
            event: [
                adapt_signature(method) for obj in self.legacy for method in methods(obj, names)
            ]
            for event, names in EVENTS.items()
        }
        self._worker: LegacyWorker | None = None
        self._episodes: dict[int, LegacyEpisode] = {}
        self.results = LegacyResults(self.legacy_ray, names_only_policy=self.names_only_policy)
        self.evaluated = False
        self._created: set[str] = set()
        self._writer: Writer | None = None
        # For `collect_episodes`; bounded, since it may never be called.
        self.ended: deque[EpisodeRecord] = deque(maxlen=1000)

    @property
    def user_callbacks(self) -> Any:
        """The user's first callbacks object, or one that does nothing."""
        return self.legacy[0] if self.legacy else DefaultCallbacks()

    def set_trainer(self, trainer: Any) -> None:
        """Sets the trainer, which is complete now, and calls `on_algorithm_init`."""
        self.owner = trainer
        function = trainer.algorithm.config.custom_evaluation_function
        if isinstance(function, EvaluationFunction):
            function.trainer = trainer
        self._algorithm_event("on_algorithm_init", {"algorithm": trainer.algorithm})

    def learn_on_batch(self, policy: object, train_batch: object, result: dict[str, Any]) -> None:
        """Calls the callbacks with a batch before the learner's update."""
        values = {"policy": policy, "train_batch": train_batch, "result": result}
        self._fire("on_learn_on_batch", {}, values)

    def on_episode_start(self, **kwargs: Any) -> None:
        """Creates the legacy episode, and calls `on_episode_created` and `on_episode_start`.

        Ray 2.40 does not allow an override of `on_episode_created`.
        """
        if kwargs.get("env_runner") is not None:
            MappingContext.worker = self._worker_of(kwargs["env_runner"])
            self._episodes[kwargs["env_index"]] = LegacyEpisode(
                self._worker_of(kwargs["env_runner"]), kwargs["env_index"]
            )
            track_agent_spaces(kwargs["env_runner"])
            self._report_new_policies(kwargs["env_runner"])
            self._episode_event("on_episode_created", kwargs)
        self._episode_event("on_episode_start", kwargs)

    def on_episode_end(self, **kwargs: Any) -> None:
        """Calls the callbacks, then sends the episode's record."""
        new_stack = kwargs.get("env_runner") is not None
        if new_stack and self._methods["on_postprocess_trajectory"]:
            self._postprocess(kwargs["episode"], self._episode(kwargs))
        self._episode_event("on_episode_end", kwargs)
        if new_stack:
            record = self._episode(kwargs).record()
            self.ended.append(record)
            metrics.log_item(kwargs["metrics_logger"], RECORDS, record)

    def on_sample_end(self, **kwargs: Any) -> None:
        """Calls the callbacks with a legacy sample batch."""
        if kwargs.get("worker") is not None:  # the old API stack
            self.on_sample_batch(**kwargs)
            return
        if kwargs.get("env_runner") is not None:
            timers.log_sampler_times(kwargs["env_runner"], kwargs["metrics_logger"])
            metrics.log_sample_end(kwargs["metrics_logger"], RECORDS)
        if self._methods["on_postprocess_trajectory"]:
            ongoing = {e.chunk_id: e for e in self._episodes.values()}
            for chunk in kwargs["samples"]:
                if not chunk.is_done and chunk.id_ in ongoing:
                    self._postprocess(chunk, ongoing[chunk.id_])
        if self._methods["on_sample_end"]:
            samples = Samples(kwargs["samples"])
            worker = self._worker_of(kwargs["env_runner"])
            self._fire("on_sample_end", kwargs, {"worker": worker, "samples": samples.batch})
            samples.write_back()
        if self.recording is not None and not kwargs["env_runner"].config.in_evaluation:
            if self._writer is None:
                self._writer = Writer(self.recording, kwargs["env_runner"].worker_index)
            self._writer.write(Samples(kwargs["samples"]).batch)
        if self._worker is not None and self._worker.extra_episodes:
            kwargs["samples"].extend(self._worker.extra_episodes)
            self._worker.extra_episodes.clear()
        if self.truncation_terminates:
            for chunk in kwargs["samples"]:
                terminate_truncated(chunk)

    def on_environment_created(self, **kwargs: Any) -> None:
        """Calls the callbacks with each environment of the env runner."""
        MappingContext.worker = self._worker_of(kwargs["env_runner"])
        if kwargs.get("env") is not None:
            env_runners.seed_env_runner(kwargs["env_runner"], kwargs["env"])
        if self._methods["on_environment_created"]:
            worker = self._worker_of(kwargs["env_runner"])
            for index, env in enumerate(LegacyBaseEnv(kwargs["env"]).envs):
                mine = {"worker": worker, "sub_environment": env, "env_index": index}
                self._fire("on_environment_created", kwargs, mine)

    def on_train_result(self, **kwargs: Any) -> None:
        """Adds the legacy keys to the result, then calls the callbacks, which may change it."""
        algorithm = kwargs["algorithm"]
        if not self.evaluated:
            kwargs["result"].pop("evaluation", None)  # an older one, as the metrics still have it
        metrics.count_steps_read(algorithm, kwargs["result"])
        td_errors = getattr(algorithm, "td_errors", {})
        self.results.complete(kwargs["result"], algorithm.config, td_errors)
        if not self.evaluated:
            kwargs["result"].update(getattr(self.owner, "attached_evaluation", {}))
        self.evaluated = False
        if isinstance(plan := getattr(algorithm, "legacy_step", None), RunningPlan):
            plan.complete(kwargs["result"])
        self._algorithm_event("on_train_result", kwargs)

    def on_algorithm_init(self, **kwargs: object) -> None:
        """Calls the callbacks, unless a trainer will (`set_trainer`)."""
        if not self.has_trainer:
            if any(map(handles_checkpoints, self.legacy)):
                call_back_on_checkpoints(
                    kwargs["algorithm"], self.fire_checkpoint_saved, self.fire_checkpoint_restored
                )
            self._algorithm_event("on_algorithm_init", kwargs)

    def on_evaluate_start(self, **kwargs: object) -> None:
        """Calls the trainer's hook and the callbacks."""
        if self.has_trainer and self.owner is not None:
            self.owner.call_hook("before_evaluate_fn")
        self._algorithm_event("on_evaluate_start", kwargs)

    def on_evaluate_end(self, **kwargs: Any) -> None:
        """Calls the callbacks, with the metrics of a custom evaluation function."""
        self.evaluated = True
        result = kwargs["evaluation_metrics"]
        if (logger := kwargs.get("metrics_logger")) is not None:
            metrics.take_evaluation_items(logger, result, RECORDS)
        function = kwargs["algorithm"].config.custom_evaluation_function
        if isinstance(function, EvaluationFunction):
            result.update(function.metrics)
        complete_evaluation(result, kwargs["algorithm"].config)
        # Old Rays passed the metrics below "evaluation", newer ones at the top: this has both.
        before = dict(result)
        given = {**before, "evaluation": result}
        self._algorithm_event("on_evaluate_end", kwargs, evaluation_metrics=given)
        del given["evaluation"]
        result.update((k, v) for k, v in given.items() if v is not before.get(k))

    def fire_checkpoint_saved(self, trainer: object, checkpoint_dir: str) -> None:
        """Calls this package's `on_checkpoint_saved`; no Ray has such an event."""
        for obj in filter(handles_checkpoints, self.legacy):
            obj.on_checkpoint_saved(trainer=trainer, checkpoint_dir=checkpoint_dir)

    def fire_checkpoint_restored(self, trainer: object, checkpoint_dir: str) -> None:
        """Calls this package's `on_checkpoint_restored`."""
        for obj in filter(handles_checkpoints, self.legacy):
            obj.on_checkpoint_restored(trainer=trainer, checkpoint_dir=checkpoint_dir)

    def on_checkpoint_loaded(self, **kwargs: object) -> None:
        """Calls the callbacks."""
        self._algorithm_event("on_checkpoint_loaded", kwargs)

    # Events that only the old API stack has: Ray passes legacy objects, by their legacy names

    def on_sub_environment_created(self, **kwargs: object) -> None:
        """Calls the callbacks with an environment, without this package's wrappers."""
        env = kwargs["sub_environment"]
        mine = {"sub_environment": user_env(env) if hasattr(env, "unwrapped") else env}
        self._fire("on_environment_created", kwargs, mine)

    def on_create_policy(self, **kwargs: object) -> None:
        """Calls the callbacks with a new policy."""
        self._fire("on_create_policy", kwargs, {})

    def on_postprocess_trajectory(self, **kwargs: Any) -> None:
        """Calls the callbacks with a trajectory; Ray 2.1 added the policy's id to the originals."""
        originals = {agent: given[-2:] for agent, given in kwargs["original_batches"].items()}
        self._fire("on_postprocess_trajectory", kwargs, {"original_batches": originals})

    def on_sample_batch(self, **kwargs: object) -> None:
        """Calls the callbacks with a sample; until Ray 2.0, a single policy's was not by policy."""
        samples = kwargs["samples"]
        by_policy = getattr(samples, "policy_batches", {})
        if set(by_policy) == {ONLY_POLICY}:
            samples = by_policy[ONLY_POLICY]
        self._fire("on_sample_end", kwargs, {"samples": samples})

    def on_learn_on_batch(self, **kwargs: object) -> None:
        """Calls the callbacks with a policy's train batch."""
        self._fire("on_learn_on_batch", kwargs, {})

    def _episode(self, kwargs: Mapping[str, Any]) -> LegacyEpisode:
        return self._episodes[kwargs["env_index"]].follow(kwargs["episode"])

    def _episode_event(self, event: str, kwargs: dict[str, Any]) -> None:
        if kwargs.get("worker") is not None:  # the old API stack passes legacy objects
            old_stack.add_legacy_methods(kwargs["episode"])
            self._fire(event, kwargs, {"base_env": OldStackBaseEnv(kwargs["base_env"])})
            return
        episode = self._episode(kwargs)
        if self._methods[event]:
            worker = self._worker_of(kwargs["env_runner"])
            mine = {
                "worker": worker,
                "base_env": LegacyBaseEnv(kwargs["env"]),
                "policies": worker.policy_map,
                "episode": episode,
            }
            self._fire(event, kwargs, mine)

    def _algorithm_event(self, event: str, kwargs: dict[str, Any], **legacy: object) -> None:
        algorithm = self.owner if self.owner is not None else kwargs["algorithm"]
        self._fire(event, kwargs, {"algorithm": algorithm, "trainer": algorithm, **legacy})

    def _postprocess(self, chunk: object, episode: LegacyEpisode) -> None:
        """Calls `on_postprocess_trajectory`, and writes changes back to the chunk."""
        episode.keep_rewards(chunk)
        policies = self._worker.policy_map if self._worker else {}
        parts = agent_parts(chunk)
        before = {a: sample_batch(part, i) for i, (a, part) in enumerate(parts.items())}
        originals = {
            agent: (policies[episode.policy_for(agent)], read_only(batch))
            for agent, batch in before.items()
        }
        for agent, part in parts.items():
            batch = before[agent].copy()
            self._fire(
                "on_postprocess_trajectory",
                {},
                {
                    "worker": self._worker,
                    "episode": episode,
                    "agent_id": agent,
                    "policy_id": episode.policy_for(agent),
                    "policies": policies,
                    "postprocessed_batch": batch,
                    "original_batches": originals,
                },
            )
            write_back(part, batch, before[agent])

    def _report_new_policies(self, env_runner: object) -> None:
        """Calls `on_create_policy` for policies that are new since the last episode."""
        if self._methods["on_create_policy"]:
            for policy_id, policy in self._worker_of(env_runner).policy_map.items():
                if policy_id not in self._created:
                    self._created.add(policy_id)
                    mine = {"policy_id": policy_id, "policy": policy}
                    self._fire("on_create_policy", {}, mine)

    def _fire(self, event: str, values: dict[str, Any], legacy: dict[str, Any]) -> None:
        for method in self._methods[event]:
            method(values, legacy)

    def _worker_of(self, env_runner: Any) -> LegacyWorker:
        if self._worker is None:
            self._worker = worker_of(env_runner)
        return self._worker


@public("rllib_compat.adapters")
class SteppingAdapter(CallbackAdapter):
    """The adapter for callbacks with `on_episode_step`; others avoid the cost per step."""

    def on_episode_step(self, **kwargs: object) -> None:
        self._episode_event("on_episode_step", kwargs)
