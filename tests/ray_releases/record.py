"""Prints, as JSON, what the installed Ray offers of the API that this package builds on.

It stands alone, for it runs under releases that the package may not run under yet. Ray is only
imported, never started. `python -m tests.ray_releases.record_all` runs it under each release and
keeps what changed in `api.json`.
"""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import json
import logging
import pkgutil
import sys
import textwrap
import warnings

#: Classes whose methods and attributes are recorded, as `module:Class`. One that is missing from a
#: release is missing from its record: that is how a move shows.
CLASSES = [
    "ray.rllib.algorithms.algorithm:Algorithm",
    "ray.rllib.algorithms.callbacks:DefaultCallbacks",
    "ray.rllib.callbacks.callbacks:RLlibCallback",
    "ray.rllib.connectors.connector_pipeline_v2:ConnectorPipelineV2",
    "ray.rllib.connectors.connector_v2:ConnectorV2",
    "ray.rllib.core.learner.learner:Learner",
    "ray.rllib.core.learner.learner_group:LearnerGroup",
    "ray.rllib.core.models.catalog:Catalog",
    "ray.rllib.core.rl_module.multi_rl_module:MultiRLModule",
    "ray.rllib.core.rl_module.multi_rl_module:MultiRLModuleSpec",
    "ray.rllib.core.rl_module.rl_module:RLModule",
    "ray.rllib.core.rl_module.rl_module:RLModuleSpec",
    "ray.rllib.core.rl_module.torch.torch_rl_module:TorchRLModule",
    "ray.rllib.env.env_runner:EnvRunner",
    "ray.rllib.env.env_runner_group:EnvRunnerGroup",
    "ray.rllib.env.external_multi_agent_env:ExternalMultiAgentEnv",
    "ray.rllib.env.multi_agent_env:MultiAgentEnv",
    "ray.rllib.env.multi_agent_env_runner:MultiAgentEnvRunner",
    "ray.rllib.env.multi_agent_episode:MultiAgentEpisode",
    "ray.rllib.env.single_agent_env_runner:SingleAgentEnvRunner",
    "ray.rllib.env.single_agent_episode:SingleAgentEpisode",
    "ray.rllib.env.utils.infinite_lookback_buffer:InfiniteLookbackBuffer",
    "ray.rllib.offline.json_reader:JsonReader",
    "ray.rllib.utils.checkpoints:Checkpointable",
    "ray.rllib.utils.filter:MeanStdFilter",
    "ray.rllib.utils.filter:RunningStat",
    "ray.rllib.utils.metrics.metrics_logger:MetricsLogger",
    "ray.rllib.utils.metrics.stats:Stats",
    "ray.rllib.utils.metrics.stats.base:StatsBase",
    "ray.rllib.utils.replay_buffers.episode_replay_buffer:EpisodeReplayBuffer",
    "ray.rllib.utils.replay_buffers.prioritized_episode_buffer:PrioritizedEpisodeReplayBuffer",
    "ray.rllib.utils.schedules.scheduler:Scheduler",
    "ray.tune:CheckpointConfig",
    "ray.tune.logger:NoopLogger",
    "ray.tune.trainable.trainable:Trainable",
    "ray.util.timer:_Timer",
]

#: Modules whose upper-case names are recorded with their values: file names, keys, versions.
CONSTANTS = [
    "ray.rllib.core",
    "ray.rllib.core.columns",
    "ray.rllib.core.rl_module.apis",
    "ray.rllib.utils.checkpoints",
    "ray.rllib.utils.metrics",
    "ray.tune.registry",
]

REDUCTIONS = (
    *(None, "mean", "ema", "min", "max", "sum", "lifetime_sum", "percentiles"),
    *("item", "item_series"),
)


def members(cls: type) -> dict[str, str]:
    """A class's methods with their signatures, its properties, and what it sets on itself."""
    found = {}
    for name, member in inspect.getmembers(cls):
        if name.startswith("__") and name != "__init__":
            continue
        if isinstance(inspect.getattr_static(cls, name, None), property):
            found[name] = "property"
        elif callable(member) and not isinstance(member, type):
            found[name] = signature(member)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError):  # made at run time: no source
        return found
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                found.setdefault(name, "attribute")
    return found


def signature(function: object) -> str:
    """The names of a function's arguments; `=` after one that has a default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return "(...)"
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return f"({', '.join(mark(p, marks.get(p.kind, '')) for p in parameters)})"


def mark(parameter: inspect.Parameter, stars: str) -> str:
    has_default = parameter.default is not inspect.Parameter.empty
    return f"{stars}{parameter.name}{'=' if has_default else ''}"


def settings() -> dict[str, str]:
    """`method.argument` of every algorithm's config, and who takes it (`*`: all of them)."""
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
    from ray.rllib.algorithms.registry import ALGORITHMS

    found: dict[str, set[str]] = {}
    configs = {"*": AlgorithmConfig}
    for name in ALGORITHMS:
        try:
            configs[name] = type(ALGORITHMS[name]()[1])
        except Exception:  # one that needs a library which is not here
            continue
    for name, config in configs.items():
        for method, function in inspect.getmembers(config, inspect.isfunction):
            if method.startswith("_") or "return self" not in inspect.getsource(function):
                continue
            for argument in list(inspect.signature(function).parameters)[1:]:
                found.setdefault(f"{method}.{argument}", set()).add(name)
    return {key: "*" if "*" in names else ",".join(sorted(names)) for key, names in found.items()}


def defaults() -> dict[str, str]:
    """The defaults of configs, where they are plain values; an algorithm's where it has its own."""
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
    from ray.rllib.algorithms.registry import ALGORITHMS

    common = plain(AlgorithmConfig())
    found = {f"*.{key}": value for key, value in common.items()}
    for name in ALGORITHMS:
        try:
            config = ALGORITHMS[name]()[1]
        except Exception:  # one that needs a library which is not here
            continue
        own = plain(config).items() - common.items()
        found |= {f"{name}.{key}": value for key, value in own}
    return found


def plain(config: object) -> dict[str, str]:
    """A config's plain values."""
    kinds = (bool, int, float, str, type(None))
    return {key: repr(value) for key, value in vars(config).items() if isinstance(value, kinds)}


def reductions() -> dict[str, str]:
    """Which reductions a metrics logger takes."""
    from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

    found = {}
    for reduce in REDUCTIONS:
        for arguments in ({}, {"clear_on_reduce": True}, {"window": 5}):
            try:
                MetricsLogger().log_value("x", 1.0, reduce=reduce, **arguments)
            except Exception:  # that it is refused is the answer
                continue
            found[str(reduce)] = "with " + (", ".join(arguments) or "nothing else")
            break
    return found


def classes_below(package: str, base: str) -> dict[str, str]:
    """Classes defined below a package that inherit from one of that name, with their `__init__`."""
    found = {}
    root = importlib.import_module(package)
    for info in pkgutil.walk_packages(root.__path__, package + "."):
        if ".tests" in info.name or "tensorflow" in info.name or ".tf" in info.name:
            continue
        try:
            module = importlib.import_module(info.name)
        except Exception:  # what needs tensorflow and the like
            continue
        for name, cls in vars(module).items():
            if not isinstance(cls, type) or cls.__module__ != info.name:
                continue
            if any(parent.__name__ == base for parent in cls.__mro__):
                found[f"{info.name}:{name}"] = signature(cls.__init__)
    return found


def states() -> dict[str, str]:
    """What the state of the statistics in a filter holds."""
    from ray.rllib.utils.filter import RunningStat

    state = RunningStat((2,)).to_state()
    return {f"RunningStat.{key}": type(value).__name__ for key, value in state.items()}


def constants() -> dict[str, str]:
    """Names and values of modules' constants and enums."""
    found = {}
    for name in CONSTANTS:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        for key, value in vars(module).items():
            if key.isupper() and isinstance(value, (str, int)):
                found[f"{name}.{key}"] = repr(value)
            elif isinstance(value, type) and value.__module__ == name:
                for item, member in vars(value).items():
                    if item.isupper() and isinstance(member, (str, int, enum.Enum)):
                        found[f"{name}.{key}.{item}"] = repr(member)
    for name in ("algorithms.algorithm:Algorithm", "core.learner.learner:Learner"):
        module_name, cls = name.split(":")
        module = importlib.import_module(f"ray.rllib.{module_name}")
        for source in (module, getattr(module, cls)):
            for key, value in vars(source).items():
                if "CHECKPOINT_VERSION" in key:
                    found[f"{name}.{key}"] = str(value)
    return found


def record() -> dict[str, dict[str, str]]:
    """All of it, by section."""
    found = {
        "settings": settings(),
        "defaults": defaults(),
        "reductions": reductions(),
        "states": states(),
        "constants": constants(),
        "connectors": classes_below("ray.rllib.connectors", "ConnectorV2"),
        "modules": classes_below("ray.rllib.algorithms", "RLModule"),
        "members": {},
    }
    for place in CLASSES:
        module, name = place.split(":")
        try:
            cls = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
        found["members"] |= {f"{place}.{key}": value for key, value in members(cls).items()}
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    json.dump(record(), sys.stdout, indent=1, sort_keys=True)
