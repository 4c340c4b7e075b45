"""Callbacks of every era inside today's `RLlibCallback`.

Three forms came before today's: a dict of functions that take one `info` dict (0.5 – 1.x), and
classes with `worker`, `base_env`, `policies` and `trainer` (0.8.5 – 1.x) or `algorithm` (2.x).
A dict becomes the class of 0.8.5, as it did in Ray itself; the adapter calls that one.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from rllib_compat import ray_versions
from rllib_compat.adapters.episodes import ONLY_AGENT, LegacyEpisode
from rllib_compat.adapters.results import RECORDS, LegacyResults
from rllib_compat.adapters.workers import LegacyBaseEnv, LegacyPolicies, LegacyWorker
from rllib_compat.errors import ConfigError

RayCallbacks = ray_versions.callback_class()

# The names that only today's callbacks take; a method that asks for them gets them as they are.
TODAY = {"env_runner", "metrics_logger", "rl_module", "prev_episode_chunks"}


def adapt_callbacks(callbacks: Any) -> type:
    """Makes the callbacks class that the installed Ray takes.

    Args:
        callbacks: A dict of functions, a class, a dotted name of one, a list of these, or None.

    Raises:
        ConfigError: It is none of these, or a dict with a name that no Ray had.
    """
    sources = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
    found = tuple(_resolve(source) for source in sources if source not in (None, RayCallbacks))
    stepping = any(_hears(source, "on_episode_step") for source in found)
    base = _SteppingAdapter if stepping else CallbackAdapter
    return type("LegacyCallbacks", (base,), {"sources": found, "__module__": __name__})


class DefaultCallbacks:
    """The base class that legacy callbacks derive from, and the home of the dict form.

    Args:
        legacy_callbacks_dict: Functions by event, each taking one `info` dict.
    """

    def __init__(self, legacy_callbacks_dict: Mapping[str, Any] | None = None) -> None:
        self.legacy_callbacks = dict(legacy_callbacks_dict or {})

    def on_episode_start(
        self, *, worker: Any, base_env: Any, policies: Any, episode: Any, **_: Any
    ) -> None:
        """Runs after the environment's reset."""
        self._call(
            "on_episode_start", env=base_env, policy=policies, episode=episode, worker=worker
        )

    def on_episode_step(self, *, worker: Any, base_env: Any, episode: Any, **_: Any) -> None:
        """Runs after each step."""
        self._call("on_episode_step", env=base_env, episode=episode, worker=worker)

    def on_episode_end(
        self, *, worker: Any, base_env: Any, policies: Any, episode: Any, **_: Any
    ) -> None:
        """Runs when the episode is over."""
        self._call("on_episode_end", env=base_env, policy=policies, episode=episode, worker=worker)

    def on_postprocess_trajectory(
        self,
        *,
        worker: Any,
        episode: Any,
        agent_id: Any,
        policy_id: str,
        policies: Any,
        postprocessed_batch: Any,
        original_batches: Mapping[Any, Any],
        **_: Any,
    ) -> None:
        """Runs for each agent's part of a sample."""
        self._call(
            "on_postprocess_traj",
            episode=episode,
            agent_id=agent_id,
            pre_batch=original_batches[agent_id],
            post_batch=postprocessed_batch,
            all_pre_batches=original_batches,
            worker=worker,
            policy=policies[policy_id],
        )

    def on_sample_end(self, *, worker: Any, samples: Any, **_: Any) -> None:
        """Runs after each sample of a runner."""
        self._call("on_sample_end", worker=worker, evaluator=worker, samples=samples)

    def on_train_result(self, *, trainer: Any, result: Any, **_: Any) -> None:
        """Runs after each training iteration; `result` may be changed."""
        self._call("on_train_result", trainer=trainer, agent=trainer, result=result)

    def _call(self, event: str, **info: Any) -> None:
        function = self.legacy_callbacks.get(event)
        if function is not None:
            function(info)


# What today's callbacks call → what the same moment was called, and the era's other names.
EVENTS: dict[str, tuple[str, ...]] = {
    "on_episode_created": ("on_episode_created",),
    "on_episode_start": ("on_episode_start",),
    "on_episode_step": ("on_episode_step",),
    "on_episode_end": ("on_episode_end",),
    "on_sample_end": ("on_sample_end",),
    "on_train_result": ("on_train_result",),
    "on_algorithm_init": ("on_algorithm_init", "on_trainer_init"),
    "on_evaluate_start": ("on_evaluate_start",),
    "on_evaluate_end": ("on_evaluate_end",),
    "on_checkpoint_loaded": ("on_checkpoint_loaded",),
    "on_environment_created": ("on_sub_environment_created",),
    "on_postprocess_trajectory": ("on_postprocess_trajectory",),
}
DICT_EVENTS = (
    "on_episode_start",
    "on_episode_step",
    "on_episode_end",
    "on_sample_end",
    "on_train_result",
    "on_postprocess_traj",
)


class CallbackAdapter(RayCallbacks):  # type: ignore[misc, valid-type]  # chosen by release
    """Calls legacy callbacks with legacy objects, and sends a record of each episode home.

    Attributes:
        sources: What to call: dicts of functions and classes.
        legacy: The objects made of them; code that looks for `worker.callbacks` finds the first.
        owner: The legacy trainer, in its process; the algorithm itself stands in for it elsewhere.
    """

    sources: ClassVar[tuple[Any, ...]] = ()

    def __init__(self) -> None:
        super().__init__()
        self.legacy = [_instantiate(source) for source in self.sources]
        self.owner: Any = None
        self._methods = {
            event: [_accepting(method) for obj in self.legacy for method in _methods(obj, names)]
            for event, names in EVENTS.items()
        }
        self._worker: LegacyWorker | None = None
        self._episodes: dict[int, LegacyEpisode] = {}
        self._results = LegacyResults()

    def on_episode_start(self, **kwargs: Any) -> None:
        """Begins a legacy episode and passes both of its first events on.

        Ray 2.40 allows nobody to override `on_episode_created`, the one before the reset.
        """
        if kwargs.get("env_runner") is not None:
            self._episodes[kwargs["env_index"]] = LegacyEpisode(
                self._worker_of(kwargs["env_runner"]), kwargs["env_index"]
            )
            self._episode_event("on_episode_created", kwargs)
        self._episode_event("on_episode_start", kwargs)

    def on_episode_end(self, **kwargs: Any) -> None:
        """Passes the event on, then sends the record."""
        todays = kwargs.get("env_runner") is not None
        if todays and self._methods["on_postprocess_trajectory"]:
            self._postprocess(kwargs["episode"], self._episode(kwargs))
        self._episode_event("on_episode_end", kwargs)
        if todays:
            record = self._episode(kwargs).record()
            ray_versions.log_item(kwargs["metrics_logger"], RECORDS, record)

    def on_sample_end(self, **kwargs: Any) -> None:
        """Passes on the steps as the sample batch that they were."""
        if self._methods["on_postprocess_trajectory"]:
            ongoing = {e.episode_id: e for e in self._episodes.values()}
            for chunk in kwargs["samples"]:
                if not chunk.is_done and chunk.id_ in ongoing:
                    self._postprocess(chunk, ongoing[chunk.id_])
        if self._methods["on_sample_end"]:
            samples = _sample_batch(kwargs["samples"])
            worker = self._worker_of(kwargs["env_runner"])
            self._fire("on_sample_end", kwargs, {"worker": worker, "samples": samples})

    def on_environment_created(self, **kwargs: Any) -> None:
        """Passes each environment of the runner on."""
        if self._methods["on_environment_created"]:
            worker = self._worker_of(kwargs["env_runner"])
            for index, env in enumerate(LegacyBaseEnv(kwargs["env"]).envs):
                mine = {"worker": worker, "sub_environment": env, "env_index": index}
                self._fire("on_environment_created", kwargs, mine)

    def on_train_result(self, **kwargs: Any) -> None:
        """Completes the result with its legacy keys, then lets the callbacks change it."""
        algorithm = kwargs["algorithm"]
        self._results.complete(kwargs["result"], algorithm.config)
        self._algorithm_event("on_train_result", kwargs)

    def on_algorithm_init(self, **kwargs: Any) -> None:
        """Passes the event on."""
        self._algorithm_event("on_algorithm_init", kwargs)

    def on_evaluate_start(self, **kwargs: Any) -> None:
        """Passes the event on."""
        self._algorithm_event("on_evaluate_start", kwargs)

    def on_evaluate_end(self, **kwargs: Any) -> None:
        """Passes the event on."""
        self._algorithm_event("on_evaluate_end", kwargs)

    def on_checkpoint_loaded(self, **kwargs: Any) -> None:
        """Passes the event on."""
        self._algorithm_event("on_checkpoint_loaded", kwargs)

    def _episode(self, kwargs: Mapping[str, Any]) -> LegacyEpisode:
        return self._episodes[kwargs["env_index"]].follow(kwargs["episode"])

    def _episode_event(self, event: str, kwargs: dict[str, Any]) -> None:
        if kwargs.get("worker") is not None:  # the old API stack has the legacy objects itself
            self._fire(event, kwargs, {})
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

    def _algorithm_event(self, event: str, kwargs: dict[str, Any]) -> None:
        algorithm = self.owner if self.owner is not None else kwargs["algorithm"]
        self._fire(event, kwargs, {"algorithm": algorithm, "trainer": algorithm})

    def _postprocess(self, chunk: Any, episode: LegacyEpisode) -> None:
        batches = {agent: _read_only(part) for agent, part in _agent_parts(chunk).items()}
        policies = LegacyPolicies(self._worker._env_runner) if self._worker else {}
        originals = {
            agent: (policies[episode.policy_for(agent)], batch) for agent, batch in batches.items()
        }
        for agent, batch in batches.items():
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

    def _fire(self, event: str, values: dict[str, Any], legacy: dict[str, Any]) -> None:
        for method in self._methods[event]:
            method(values, legacy)

    def _worker_of(self, env_runner: Any) -> LegacyWorker:
        if self._worker is None:
            self._worker = LegacyWorker(env_runner)
        return self._worker


class _SteppingAdapter(CallbackAdapter):
    """The adapter of callbacks that want each step; the others don't pay for it."""

    def on_episode_step(self, **kwargs: Any) -> None:
        self._episode_event("on_episode_step", kwargs)


def _resolve(source: Any) -> Any:
    if isinstance(source, str):
        module, _, name = source.rpartition(".")
        source = getattr(importlib.import_module(module), name)
    if isinstance(source, Mapping):
        unknown = [name for name in source if name not in DICT_EVENTS]
        if unknown:
            raise ConfigError(
                f"No Ray ever called {', '.join(map(repr, unknown))}.",
                where="$.callbacks",
                fix=f"the events are {', '.join(DICT_EVENTS)}",
            )
        return {event: function for event, function in source.items() if function is not None}
    if not isinstance(source, type):
        raise ConfigError(
            f"Callbacks can't be of type {type(source).__name__}.",
            where="$.callbacks",
            fix="give a class, a dict of functions, or the dotted name of a class",
        )
    return source


def _instantiate(source: Any) -> Any:
    return DefaultCallbacks(source) if isinstance(source, Mapping) else source()


def _hears(source: Any, event: str) -> bool:
    if isinstance(source, Mapping):
        return event in source
    return any(True for _ in _methods(source, (event,)))


def _methods(obj: Any, names: tuple[str, ...]) -> list[Callable[..., Any]]:
    """The methods of those names that do anything: neither Ray's own nor an empty dict form."""
    found = []
    for name in names:
        method = getattr(obj, name, None)
        function = getattr(method, "__func__", method)
        if method is None or function is getattr(RayCallbacks, name, None):
            continue
        if function is getattr(DefaultCallbacks, name, None):
            key = "on_postprocess_traj" if name == "on_postprocess_trajectory" else name
            if key not in getattr(obj, "legacy_callbacks", ()):
                continue
        found.append(method)
    return found


def _accepting(method: Callable[..., Any]) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
    """Calls `method` with what it takes of Ray's own values and the legacy ones over them."""
    parameters = inspect.signature(method).parameters
    if TODAY & parameters.keys():
        return lambda values, _: method(**values)
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return lambda values, legacy: method(**{**values, **legacy})
    return lambda values, legacy: method(
        **{name: legacy[name] if name in legacy else values.get(name) for name in parameters}
    )


def _agent_parts(chunk: Any) -> dict[Any, Any]:
    if hasattr(chunk, "agent_episodes"):
        return {agent: part for agent, part in chunk.agent_episodes.items() if len(part)}
    return {ONLY_AGENT: chunk} if len(chunk) else {}


def _read_only(episode: Any) -> Any:
    """A part of an episode as a batch that refuses writes: no learner would ever see them."""
    batch = episode.get_sample_batch()
    for name, column in batch.items():
        view = np.asarray(column).view()
        view.flags.writeable = False
        batch[name] = view
    return batch


def _sample_batch(episodes: list[Any]) -> Any:
    from ray.rllib.policy.sample_batch import concat_samples

    batches = [
        _read_only(e) if not hasattr(e, "agent_episodes") else e.get_sample_batch()
        for e in episodes
        if len(e)
    ]
    return concat_samples(batches)
