"""The callbacks class that records data of environments."""

from __future__ import annotations

import inspect
import json
import math
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import numpy as np

from rllib_compat.episode_data.files import FOLDER, FORMATS, EpisodeFiles
from rllib_compat.neutral.errors import CompatError, ConfigError
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import old_stack, tune
from rllib_compat.runtime.episodes import LegacyEpisode
from rllib_compat.runtime.legacy_callbacks import ConfiguredCallbacks
from rllib_compat.runtime.policy_mapping import ONLY_AGENT, ONLY_POLICY

#: The name in an episode's media of the line for the driver.
LINES = "recorded_episode"

#: The source of a kind of data: a function, names, None (all) or False (nothing).
Source = Callable[..., Mapping[str, Any]] | Iterable[str] | Literal[False] | None
_ASKED = ("info", "env", "episode", "agent")


@public("rllib_compat.episode_data")
class EpisodeRecorder(ConfiguredCallbacks):
    """Callbacks that record data of each episode in files of the trial, one per iteration.

    Set it as callbacks: `"callbacks": EpisodeRecorder()`, or in a list with others; in a config of
    the installed Ray, `config.callbacks(adapt_callbacks(EpisodeRecorder()))`. It runs on any number
    of env runners. Each line of the files is one episode.

    Without arguments, it records the values of `info["data"]["running"]` of each step, the last of
    `info["data"]["final"]`, and all of `info["media"]`. Infos of resets are not read. For each of
    the three you can pass:

    - names: only these, from the same place or from `info` itself;
    - a function that returns a dict for a step. Its parameters are any of `info`, `env` (your own
      environment), `episode` and `agent`;
    - False: nothing.

    The result, and so TensorBoard, has numbers as `custom_metrics/<name>_avg_mean` (the mean over
    the episode; mean, min and max over episodes), `<name>_sum_mean`, and `<name>_mean` of final
    ones; with several policies as `<policy>/<name>…`.

    Args:
        running: The source of values that are recorded at every step.
        final: The source of values of which only the last is recorded.
        media: The source of any JSON values that are recorded at every step.
        format: `jsonl`, or `parquet`, which needs pyarrow.
        folder: The folder's name inside the trial's.
        max_values: The largest number of recorded values per name and episode (and agent). Counts,
            sums, means, minima and maxima are of all values.

    Raises:
        ConfigError: An argument is invalid.
    """

    def __init__(
        self,
        running: Source = None,
        final: Source = None,
        media: Source = None,
        *,
        format: Literal["jsonl", "parquet"] = "jsonl",  # noqa: A002 - the name in pyarrow, too
        folder: str = FOLDER,
        max_values: int = 10_000,
    ) -> None:
        super().__init__()
        self._arguments = {
            "running": _given(running),
            "final": _given(final),
            "media": _given(media),
            "format": format,
            "folder": folder,
            "max_values": max_values,
        }
        if format not in FORMATS:
            raise _wrong("format", format, f"give one of {', '.join(FORMATS)}")
        if not folder or folder in (".", "..") or "/" in folder or "\\" in folder:
            raise _wrong("folder", folder, "give the name of a folder; it is inside the trial's")
        self._most = max_values
        self._readers = [
            (kind, reader) for kind in KINDS if (reader := _reader(kind, self._arguments[kind]))
        ]
        self._needs_env = any(reader.needs_env for _, reader in self._readers)
        self._episodes: dict[Any, dict[Any, AgentData]] = {}
        self._id, self._serial = uuid.uuid4().hex, 0
        self._files: EpisodeFiles | None = None
        self._seen: dict[str, Seen] = defaultdict(Seen)

    def on_episode_start(self, *, episode: object, env_index: int = 0, **_: object) -> None:
        """Starts recording an episode."""
        del episode
        self._episodes[env_index] = {}

    def on_episode_step(
        self, *, worker: object, base_env: Any, episode: Any, env_index: int = 0, **_: object
    ) -> None:
        """Records the data of the agents that have stepped."""
        del worker
        agents = self._episodes.setdefault(env_index, {})
        env = base_env.get_sub_environments()[env_index] if self._needs_env else None
        for agent in episode.get_agents():
            data = agents.get(agent)
            if data is None:
                data = agents[agent] = AgentData(self._most)
            if agent != ONLY_AGENT:
                marker = _change_marker(episode, agent)
                if marker is None or marker == data.marker:
                    continue  # the agent waits, or is done
                data.marker = marker
            step = {"info": episode.last_info_for(agent) or {}, "episode": episode}
            step |= {"agent": agent, "env": env}
            for kind, reader in self._readers:
                data.add(kind, reader(step))

    def on_episode_end(
        self, *, worker: Any, base_env: object, episode: Any, env_index: int = 0, **_: Any
    ) -> None:
        """Sends the episode's line to the driver, in its media."""
        del base_env
        agents = self._episodes.pop(env_index, {})
        record = {
            "worker": int(worker.worker_index),
            "env": env_index,
            "episode": episode.episode_id,
            "time": time.time(),
            "length": int(episode.length),
            "reward": float(episode.total_reward),
        }
        if set(agents) <= {ONLY_AGENT}:
            record |= agents.get(ONLY_AGENT, AgentData(0)).record()
        else:
            rewards = {agent: float(r) for (agent, _), r in episode.agent_rewards.items()}
            record["agents"] = {
                str(agent): {
                    "policy": episode.policy_for(agent),
                    "reward": rewards.get(agent, 0.0),
                    **data.record(),
                }
                for agent, data in agents.items()
            }
        for name, values in self._metrics(episode, agents).items():
            episode.custom_metrics[name] = float(np.mean(values))
            episode.hist_data[name] = values
        line = json.dumps(record, default=np.ndarray.tolist)
        episode.media[LINES] = (self._id, self._serial, line)
        self._serial += 1

    def on_train_result(self, *, trainer: object, result: dict[str, Any], **_: object) -> None:
        """Writes the episodes of the iteration, and removes them from the result."""
        iteration = int(result["training_iteration"])
        self._write(trainer, iteration, result, evaluation=False)
        if isinstance(found := result.get("evaluation"), dict):
            self._write(trainer, iteration, found, evaluation=True)

    def on_evaluate_end(self, *, evaluation_metrics: dict[str, Any], **given: Any) -> None:
        """Writes the episodes of an evaluation, also outside of `train`."""
        trainer = given["trainer"]
        self._write(trainer, int(trainer.iteration) + 1, evaluation_metrics, evaluation=True)

    def _write(
        self, trainer: Any, iteration: int, result: dict[str, Any], *, evaluation: bool
    ) -> None:
        new = []
        for media in (result, result.get("env_runners", {})):
            for source, serial, line in media.get("episode_media", {}).pop(LINES, ()):
                # Results repeat older episodes of the smoothing window.
                if self._seen[source].is_new(serial):
                    new.append(line)
        if self._files is None:
            filesystem, trial = tune.trial_storage(trainer) or (None, trainer.logdir)
            folder, kind = self._arguments["folder"], self._arguments["format"]
            self._files = EpisodeFiles(filesystem, trial, folder, kind)
        if new:
            self._files.write(new, iteration=iteration, evaluation=evaluation)

    @staticmethod
    def _metrics(episode: Any, agents: Mapping[Any, AgentData]) -> dict[str, list[float]]:
        """Returns the numbers of an episode by name, one per agent."""
        found = defaultdict(list)
        for agent, data in agents.items():
            policy = ONLY_POLICY if agent == ONLY_AGENT else episode.policy_for(agent)
            for name, value in data.metrics().items():
                found[name if policy == ONLY_POLICY else f"{policy}/{name}"].append(float(value))
        return found


class Seen:
    """The received serial numbers of one recorder, which arrive nearly in order."""

    #: The largest number of gaps: numbers of a failed env runner never arrive.
    MOST = 100_000

    def __init__(self) -> None:
        self._below, self._above = 0, set[int]()

    def is_new(self, serial: int) -> bool:
        """Whether a number arrives for the first time."""
        if serial < self._below or serial in self._above:
            return False
        self._above.add(serial)
        if len(self._above) > self.MOST:
            self._below = min(self._above)
        while self._below in self._above:
            self._above.remove(self._below)
            self._below += 1
        return True


class _Names:
    """A reader of values by name, or of all values."""

    needs_env = False

    def __init__(self, kind: str, names: tuple[str, ...] | None) -> None:
        self._path = ("media",) if kind == "media" else ("data", kind)
        self._names = names

    def __call__(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        info: Mapping[str, Any] = step["info"]
        found: Any = info
        for name in self._path:
            found = found.get(name) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            found = {}
        if self._names is None:
            return found  # type: ignore[no-any-return] # checked above
        both = ((name, found if name in found else info) for name in self._names)
        return {name: place[name] for name, place in both if name in place}


class _Function:
    """A reader that calls a function with its parameters."""

    def __init__(self, kind: str, function: Callable[..., Any]) -> None:
        self._kind, self._function = kind, function
        self._asked = tuple(inspect.signature(function).parameters)
        if not set(self._asked) <= set(_ASKED):
            raise _wrong(kind, function, f"name its parameters as you need, of {', '.join(_ASKED)}")
        self.needs_env = "env" in self._asked

    def __call__(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        found = self._function(**{name: step[name] for name in self._asked})
        if found is None:
            return {}
        if not isinstance(found, Mapping):
            raise _wrong(self._kind, self._function, "let the function return a dict, or None")
        return found


def _reader(kind: str, source: Any) -> _Names | _Function | None:
    if source is False:
        return None
    return _Function(kind, source) if callable(source) else _Names(kind, source)


def _given(source: object) -> Any:
    """Returns a source, with names as a tuple.

    Raises:
        ConfigError: The source is invalid.
    """
    if source is None or source is False or callable(source):
        return source
    if isinstance(source, Iterable) and not isinstance(source, (str, bytes)):
        names = tuple(source)
        if all(isinstance(name, str) for name in names):
            return names
    raise _wrong("source", source, "give a list of names, a function, None or False")


def _wrong(name: str, value: object, fix: str) -> ConfigError:
    return ConfigError(
        f"EpisodeRecorder can't take {value!r} as its {name}.", where=f"EpisodeRecorder({name}=…)",
        fix=fix,
    )  # fmt: skip


def _change_marker(episode: Any, agent: Any) -> Any:
    """Returns a value that changes each time the environment returns something for an agent."""
    if isinstance(episode, LegacyEpisode):
        return episode.change_marker(agent)
    return old_stack.agent_steps(episode, agent), id(episode.last_info_for(agent))


KINDS = ("running", "final", "media")


class Series:
    """A running value of an episode: statistics of all values, and the first values (`most`)."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.values: list[Any] = []
        self.count = 0
        self.numbers = 0
        self.sum: float = 0
        self.min: float = math.inf
        self.max: float = -math.inf

    def add(self, value: object) -> None:
        """Adds the value of a step."""
        self.count += 1
        if self.count <= self._most:
            self.values.append(value)
        if isinstance(value, (int, float)):
            self.numbers += 1
            self.sum += value
            self.min = min(self.min, value)
            self.max = max(self.max, value)

    @property
    def mean(self) -> float:
        """The mean of all numbers."""
        return self.sum / self.numbers

    def record(self) -> dict[str, Any]:
        """Returns the data for the file, with statistics if there are numbers."""
        record: dict[str, Any] = {"count": self.count, "values": self.values}
        if self.numbers:
            record |= {"mean": self.mean, "sum": self.sum, "min": self.min, "max": self.max}
        return record


class AgentData:
    """The recorded data of an agent's episode."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.running: dict[str, Series] = {}
        self.final: dict[str, Any] = {}
        self.media: dict[str, list[Any]] = {}
        self.media_left_out: dict[str, int] = {}
        #: The last `LegacyEpisode.change_marker` of an agent that may wait.
        self.marker: Any = None

    def add(self, kind: str, data: Mapping[str, Any]) -> None:
        """Adds the data of a step; copies arrays and lists, since environments reuse them."""
        for name, value in data.items():
            plain = plain_copy(value, f"{kind} → {name}")
            if kind == "final":
                self.final[name] = plain
            elif kind == "running":
                self.running.setdefault(name, Series(self._most)).add(plain)
            elif len(kept := self.media.setdefault(name, [])) < self._most:
                kept.append(plain)
            else:
                self.media_left_out[name] = self.media_left_out.get(name, 0) + 1

    def record(self) -> dict[str, Any]:
        """Returns the data for the file."""
        record: dict[str, Any] = {
            "running": {name: series.record() for name, series in self.running.items()},
            "final": self.final,
            "media": self.media,
        }
        return record | ({"media_left_out": self.media_left_out} if self.media_left_out else {})

    def metrics(self) -> dict[str, float]:
        """Returns the numbers for the result: `<name>_avg`, `<name>_sum`, and final numbers."""
        found = {n: float(v) for n, v in self.final.items() if isinstance(v, (int, float))}
        for name, series in self.running.items():
            if series.numbers:
                found |= {f"{name}_avg": series.mean, f"{name}_sum": series.sum}
        return found


def plain_copy(value: object, where: str) -> Any:
    """Copies numbers, strings, lists, dicts and arrays that JSON can represent.

    Raises:
        CompatError: The value contains another object.
    """
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, np.generic):
        return plain_copy(value.item(), where)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return value.copy()  # a list takes several times the memory
    if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
        return plain_copy(value.tolist(), where)
    if isinstance(value, Mapping):
        return {str(name): plain_copy(v, f"{where} → {name}") for name, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_copy(inner, where) for inner in value]
    raise CompatError(
        f"An object of type {type(value).__name__} cannot be recorded.",
        where=where,
        fix="Record only numbers, strings, lists, dicts and arrays.",
    )
