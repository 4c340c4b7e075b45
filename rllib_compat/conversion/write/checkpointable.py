"""Writes the Checkpointable tree (2.0 or 2.1) with the installed Ray's own writers.

A real algorithm is built from the translated config, gets the old weights, filter and counters, and
saves itself. So all files have that Ray's format, and the tree is complete for
`Algorithm.from_checkpoint`, `RLModule.from_checkpoint` and Tune.

The algorithm is always built without remote workers, GPUs and evaluation; the saved config has the
original settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat import registry
from rllib_compat.conversion.identify import RANDOM_MODULE
from rllib_compat.conversion.plan import Plan
from rllib_compat.conversion.write import training_state
from rllib_compat.formats import pickles
from rllib_compat.formats.layouts.folder import as_mapping
from rllib_compat.networks import AnyNetwork, CustomNetwork, Network
from rllib_compat.networks.custom import has_parts
from rllib_compat.networks.families.q_head import EXPLORING, exploring, exploring_plainly
from rllib_compat.networks.previous_steps import previous_steps
from rllib_compat.neutral import spaces
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.report import Finding, Verdict
from rllib_compat.neutral.spaces import Space
from rllib_compat.ray_versions import algorithms, checkpoints, configs, startup
from rllib_compat.runtime.adapted_config import (
    Interner,
    limit_overrides_cache,
    share_parts_of_policies,
)
from rllib_compat.runtime.connectors import (
    add_preprocessors,
    remove_preprocessors,
    set_previous_steps,
)
from rllib_compat.runtime.exploration import (
    PARAMETER_NOISE,
    change_weight_noise,
    exploration_settings,
)

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec


def write(plan: Plan, target: Path, *, state_format: str = "pkl") -> list[Finding]:
    """Writes a checkpoint into an empty folder; `msgpack` needs Ray 2.41 or later.

    Returns:
        A finding for each part of the state.
    """
    assert plan.translation is not None
    checkpoint, networks = plan.checkpoint, plan.networks
    config = plan.translation.algorithm_config
    findings = adapt_config(config, checkpoint, networks)
    row = registry.of(checkpoint.algorithm)
    if row.offline:
        _keep_env_runners(config, checkpoint)
    if row.reader in ("q", "ddpg", "rnnsac", "maddpg"):
        findings += training_state.delay_learning(config, checkpoint)
    with startup.without_cluster(), algorithms.small_algorithm(config) as algorithm:
        findings += training_state.set_in_algorithm(algorithm, config, checkpoint, networks)
        algorithm.config = config
        checkpoints.save(algorithm, target, state_format=state_format)
    if state_format == "msgpack":
        findings += _note_msgpack_and_filters(checkpoint)
    return findings + _note_names_of_this_package(target)


def adapt_config(
    config: AlgorithmConfig,
    checkpoint: LegacyCheckpoint,
    networks: Mapping[str, AnyNetwork],
    *,
    others: Iterable[str] = (),
) -> list[Finding]:
    """Adds the old networks, and settings to continue their training, to a config in place.

    `others` are the policies that only the config has; they get the algorithm's default module.

    Returns:
        Findings about the state that the config now has.
    """
    _add_modules(config, module_specs(checkpoint, networks), others, checkpoint)
    seen = {k: policy.observation_space for k, policy in checkpoint.policies.items()}
    parts = {
        k: spaces.to_gymnasium(network.space)
        for k, network in networks.items()
        if isinstance(network, CustomNetwork) and has_parts(network.space)
    }
    if parts:
        remove_preprocessors(config, parts)
    elif not all(isinstance(space, spaces.Box) for space in seen.values()):
        add_preprocessors(config)
    if any(_flattens(seen[k], network.inputs) for k, network in networks.items()):
        add_preprocessors(config, flat=True)
    # Discrete actions of the previous step are one-hot in a module's observation.
    one_hot = any(isinstance(n, Network) and n.space is not None for n in networks.values())
    set_previous_steps(config, *previous_steps(networks, checkpoint.policies), one_hot=one_hot)
    findings = training_state.set_in_config(config, checkpoint, networks)
    if limit_overrides_cache(config):
        message = (
            "so many policies with settings of their own make Ray copy configs without end; the "
            "checkpoint names a cache of this package that prevents it"
        )
        hint = "keep rllib-compat installed where the checkpoint is loaded"
        findings.append(Finding.info("many-policies", Verdict.NOTE, "policies", message, hint))
    share_parts_of_policies(config)
    return findings


def module_specs(
    checkpoint: LegacyCheckpoint, networks: Mapping[str, AnyNetwork]
) -> dict[str, RLModuleSpec]:
    """Returns the spec of each policy's module, with exactly its network.

    A policy without a network acts randomly (`identify.is_random`).
    """
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec

    shared = Interner()
    made = {
        policy_id: RLModuleSpec(
            module_class=_class(RANDOM_MODULE),
            observation_space=shared(spaces.to_gymnasium(_required(policy.observation_space))),
            action_space=shared(spaces.to_gymnasium(_required(policy.action_space))),
        )
        for policy_id, policy in checkpoint.policies.items()
        if policy_id not in networks
    }
    for policy_id, network in networks.items():
        policy = checkpoint.policies[policy_id]
        seen = _required(policy.observation_space)
        if network.space is not None:
            seen = network.space
        elif not isinstance(seen, spaces.Box) or seen.shape != network.inputs:
            seen = spaces.box(-np.inf, np.inf, network.inputs)
        target = network.target
        model_config: Any = dict(target.model_config)
        if target.module is None:
            model_config = _default_model_config(model_config)
            if not isinstance(model_config, dict):
                model_config = shared(model_config)
        made[policy_id] = RLModuleSpec(
            module_class=None if target.module is None else _class(target.module),
            observation_space=shared(spaces.to_gymnasium(seen)),
            action_space=shared(spaces.to_gymnasium(_required(policy.action_space))),
            model_config=model_config,
        )
    return made


def _required(space: Space | None) -> Space:
    assert space is not None  # `identify` checks it
    return space


def _default_model_config(settings: Mapping[str, Any]) -> Any:
    """Returns a model config of Ray's default modules; a dict if it has an algorithm's own keys."""
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    known = {field.name for field in fields(DefaultModelConfig)}
    made = DefaultModelConfig(**{k: v for k, v in settings.items() if k in known})
    rest = {k: v for k, v in settings.items() if k not in known}
    return asdict(made) | rest if rest else made


def _class(name: str) -> Any:
    """Imports a class of this package by `module:Class`; the name is never a checkpoint's."""
    module, _, cls = name.partition(":")
    return getattr(import_module(module), cls)


def _keep_env_runners(config: AlgorithmConfig, checkpoint: LegacyCheckpoint) -> None:
    of_all: list[Any] = [None, None]
    if len(checkpoint.policies) == 1:
        (policy,) = checkpoint.policies.values()
        of_all = [policy.observation_space, policy.action_space]
    configs.keep_env_runners(config, *(s and spaces.to_gymnasium(s) for s in of_all))


def _flattens(space: Space | None, inputs: tuple[int, ...]) -> bool:
    """Whether a network takes a matrix or an image as one vector."""
    return isinstance(space, spaces.Box) and len(inputs) == 1 < len(space.shape)


def _add_modules(
    config: AlgorithmConfig,
    specs: Mapping[str, RLModuleSpec],
    others: Iterable[str],
    checkpoint: LegacyCheckpoint,
) -> None:
    """Sets the exact module of each policy in a config, which then needs no environment for it."""
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec

    exploration = exploration_settings(config)
    _let_explore(config, specs, exploration, checkpoint)
    for spec in specs.values():
        if isinstance(spec.model_config, dict):
            spec.model_config = configs.whole_model_config(config, spec.model_config)
    if config.is_multi_agent:
        new = {policy_id: RLModuleSpec() for policy_id in others}
        for policy_id, spec in new.items():
            _explore_by(spec, {**exploration.get("", {}), **exploration.get(policy_id, {})})
        config.rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={**specs, **new}))
    else:
        (spec,) = specs.values()
        config.rl_module(rl_module_spec=spec)


def _let_explore(
    config: AlgorithmConfig,
    specs: Mapping[str, RLModuleSpec],
    exploration: Mapping[str, Mapping[str, Any]],
    checkpoint: LegacyCheckpoint,
) -> None:
    """Sets the exploration of Q-value modules, other than epsilon, in place.

    It is that of the config (`exploration`), or of this package's modules in the checkpoint.
    """
    configs.remove_from_model_config(config, EXPLORING)  # some networks may lack it
    for policy_id, spec in specs.items():
        policy = checkpoint.policies.get(policy_id)
        stored = exploring(as_mapping(policy and policy.config.get("model")))
        own = {**stored, **exploration.get("", {}), **exploration.get(policy_id, {})}
        # Ray's default module has neither noisy layers nor norms.
        _explore_by(spec, exploring_plainly(own) if spec.module_class is None else own)
    models = [spec.model_config for spec in specs.values() if isinstance(spec.model_config, dict)]
    on_weights = any(PARAMETER_NOISE in exploring(model) for model in models)
    if on_weights and not hasattr(config, PARAMETER_NOISE):  # DDPG adds the connector itself
        change_weight_noise(config)


def _explore_by(spec: RLModuleSpec, exploration: Mapping[str, Any]) -> None:
    if not exploration:
        return
    spec.model_config = {**(spec.model_config or {}), **exploration}
    if spec.module_class is None:
        from rllib_compat.networks.modules.q import ExploringQModule

        spec.module_class = ExploringQModule


def _note_names_of_this_package(target: Path) -> list[Finding]:
    """Reports whether the new checkpoint names this package, and so needs it."""
    made = pickles.load(target / "class_and_ctor_args.pkl")
    own = sorted(name for name in made.globals if name.startswith("rllib_compat."))
    if not own:
        return []
    return [
        Finding.info(
            "needs-this-package",
            Verdict.NOTE,
            "class_and_ctor_args.pkl",
            f"it names {', '.join(own)}",
            "keep rllib-compat installed where Algorithm.from_checkpoint loads it; the modules "
            "alone (RLModule.from_checkpoint) need only Ray",
        )
    ]


def _note_msgpack_and_filters(checkpoint: LegacyCheckpoint) -> list[Finding]:
    """Warns that Ray cannot restore a filter from msgpack with remote env runners.

    `try_import_msgpack` patches msgpack for the process, and so Ray's own serializer: remote env
    runners get the arrays of the filter's state as raw dicts, and fail (with Ray 2.60's own
    checkpoints, too).
    """
    if not any(
        training_state.has_filter_statistics(policy) for policy in checkpoint.policies.values()
    ):
        return []
    return [
        Finding.warning(
            "msgpack-filter",
            Verdict.NOTE,
            "policies.*.observation_filter",
            "Ray restores a filter's state from msgpack only without remote env runners",
            "use --state-format pkl, or num_env_runners=0",
        )
    ]
