"""Writes the Checkpointable tree (2.0 or 2.1) with the installed Ray's own writers.

A real algorithm is built from the translated config, gets the old weights, filter and counters,
and saves itself. So every file is right for that Ray by construction, and the tree is complete:
`Algorithm.from_checkpoint`, `RLModule.from_checkpoint` and Tune find what they look for.

The algorithm is built small (no remote workers, no GPUs, no evaluation) whatever the config says;
the config that is saved is the full one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat import ray_versions, registry
from rllib_compat.conversion.decide import Plan
from rllib_compat.conversion.write import modules, optimizers, q_learning, soft_actor_critic
from rllib_compat.conversion.write.per_policy import set_for_policies
from rllib_compat.formats import pickles
from rllib_compat.formats.layouts.policies import config_dict
from rllib_compat.networks import AnyNetwork, CustomNetwork, Network
from rllib_compat.networks.custom_module import has_parts
from rllib_compat.networks.heads.q_head import EXPLORING, exploring, exploring_plainly
from rllib_compat.networks.names.plain import MOVING_AVERAGE
from rllib_compat.networks.wrappers.previous_steps import previous_steps
from rllib_compat.neutral import spaces
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, ObservationFilter, PolicyState
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.neutral.spaces import Space
from rllib_compat.runtime import overrides
from rllib_compat.runtime.connectors import (
    add_preprocessors,
    leave_in_parts,
    set_previous_steps,
)
from rllib_compat.runtime.parameter_noise import (
    PARAMETER_NOISE,
    change_weight_noise,
    explored_by,
)

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec


def write(plan: Plan, target: Path, *, state_format: str = "pkl") -> list[Finding]:
    """Writes a checkpoint into an empty folder.

    Args:
        plan: What is written: the state of policies with spaces, their networks, the config.
        target: The folder.
        state_format: `pkl`, or `msgpack` from Ray 2.41 on.

    Returns:
        What became of each part of the state.
    """
    assert plan.translation is not None
    checkpoint, networks = plan.checkpoint, plan.networks
    config = plan.translation.algorithm_config
    findings = fit(config, checkpoint, networks)
    row = registry.of(checkpoint.algorithm)
    if row.offline:
        _keep_env_runners(config, checkpoint)
    if row.reader in ("q", "ddpg", "rnnsac", "maddpg"):
        findings += q_learning.delay_learning(config, checkpoint)
    with ray_versions.without_cluster(), _algorithm(config) as algorithm:
        _set_weights(algorithm, networks)
        findings += optimizers.set_states(algorithm, checkpoint, networks)
        findings += _set_filter(algorithm, checkpoint)
        findings += _set_weight_noise(algorithm, checkpoint)
        findings += _set_counters(algorithm, checkpoint)
        if row.reader in ("q", "ddpg"):
            findings += q_learning.set_progress(algorithm, config, checkpoint)
        algorithm.config = config
        ray_versions.save(algorithm, target, state_format=state_format)
    if state_format == "msgpack":
        findings += _note_msgpack_and_filters(checkpoint)
    return findings + _note_own_names(target)


def fit(
    config: AlgorithmConfig,
    checkpoint: LegacyCheckpoint,
    networks: Mapping[str, AnyNetwork],
    *,
    others: Iterable[str] = (),
) -> list[Finding]:
    """Makes the algorithm of a config one with the old networks, in place.

    Args:
        config: The config, which has the policies of the checkpoint.
        checkpoint: The state of policies with spaces.
        networks: Their networks.
        others: The policies that only the config has; they get the algorithm's default module.

    Returns:
        What of their state the config now has.
    """
    _add_modules(config, modules.specs(checkpoint, networks), others, checkpoint)
    seen = {k: policy.observation_space for k, policy in checkpoint.policies.items()}
    parts = {
        k: spaces.to_gymnasium(network.space)
        for k, network in networks.items()
        if isinstance(network, CustomNetwork) and has_parts(network.space)
    }
    if parts:
        leave_in_parts(config, parts)
    elif not all(isinstance(space, spaces.Box) for space in seen.values()):
        add_preprocessors(config)
    if any(_flattens(seen[k], network.inputs) for k, network in networks.items()):
        add_preprocessors(config, flat=True)
    # Where the step before is a part of what a module observes, choices are one-hot in it.
    one_hot = any(isinstance(n, Network) and n.space is not None for n in networks.values())
    set_previous_steps(config, *previous_steps(networks, checkpoint.policies), one_hot=one_hot)
    findings = _carry_kl_coefficients(config, checkpoint)
    if registry.of(checkpoint.algorithm).soft_actor_critic:
        findings += soft_actor_critic.carry_temperatures(config, checkpoint)
        findings += soft_actor_critic.keep_action_range(config, networks)
    findings += _tame_overrides(config)
    overrides.share_parts_of_policies(config)
    return findings + _carry_moving_average(config, checkpoint)


def _keep_env_runners(config: AlgorithmConfig, checkpoint: LegacyCheckpoint) -> None:
    of_all: list[Any] = [None, None]
    if len(checkpoint.policies) == 1:
        (policy,) = checkpoint.policies.values()
        of_all = [policy.observation_space, policy.action_space]
    ray_versions.keep_env_runners(config, *(s and spaces.to_gymnasium(s) for s in of_all))


def _flattens(space: Space | None, inputs: tuple[int, ...]) -> bool:
    """Whether a network takes a table or an image as one vector."""
    return isinstance(space, spaces.Box) and len(inputs) == 1 < len(space.shape)


def _add_modules(
    config: AlgorithmConfig,
    specs: Mapping[str, RLModuleSpec],
    others: Iterable[str],
    checkpoint: LegacyCheckpoint,
) -> None:
    """Tells the config the exact network of each policy; it then needs no environment for it."""
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec

    told = explored_by(config)
    _let_explore(config, specs, told, checkpoint)
    for spec in specs.values():
        if isinstance(spec.model_config, dict):
            spec.model_config = ray_versions.whole_model_config(config, spec.model_config)
    if config.is_multi_agent:
        new = {policy_id: RLModuleSpec() for policy_id in others}
        for policy_id, spec in new.items():
            _explore_by(spec, {**told.get("", {}), **told.get(policy_id, {})})
        config.rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={**specs, **new}))
    else:
        (spec,) = specs.values()
        config.rl_module(rl_module_spec=spec)


def _let_explore(
    config: AlgorithmConfig,
    specs: Mapping[str, RLModuleSpec],
    told: Mapping[str, Mapping[str, Any]],
    checkpoint: LegacyCheckpoint,
) -> None:
    """Tells modules of Q-values how they explore beside epsilon, in place.

    The config does (`told`), or modules of ours that the checkpoint holds.
    """
    ray_versions.tell_modules_nothing_of(config, EXPLORING)  # some networks may not have it
    for policy_id, spec in specs.items():
        policy = checkpoint.policies.get(policy_id)
        stored = exploring(config_dict(policy and policy.config.get("model")))
        own = {**stored, **told.get("", {}), **told.get(policy_id, {})}
        # What today's default module computes has neither noisy layers nor norms.
        _explore_by(spec, exploring_plainly(own) if spec.module_class is None else own)
    models = [spec.model_config for spec in specs.values() if isinstance(spec.model_config, dict)]
    on_weights = any(PARAMETER_NOISE in exploring(model) for model in models)
    if on_weights and not hasattr(config, PARAMETER_NOISE):  # DDPG's has the connector by itself
        change_weight_noise(config)


def _explore_by(spec: RLModuleSpec, told: Mapping[str, Any]) -> None:
    if not told:
        return
    spec.model_config = {**(spec.model_config or {}), **told}
    if spec.module_class is None:
        from rllib_compat.networks.modules.exploring_q import ExploringQModule

        spec.module_class = ExploringQModule


def _note_msgpack_and_filters(checkpoint: LegacyCheckpoint) -> list[Finding]:
    """Says that Ray can't restore a filter from msgpack where env runners are remote.

    `try_import_msgpack` patches msgpack for the whole process, with it Ray's own serializer: the
    arrays of the filter's state arrive in remote env runners as raw dicts, and they die of it
    (seen with Ray 2.60's own checkpoints, too).
    """
    if not any(_has_statistics(policy) for policy in checkpoint.policies.values()):
        return []
    return [
        Finding(
            "msgpack-filter",
            Severity.WARNING,
            Verdict.NOTE,
            "policies.*.observation_filter",
            "Ray restores a filter's state from msgpack only without remote env runners",
            "use --state-format pkl, or num_env_runners=0",
        )
    ]


def _has_statistics(policy: PolicyState) -> bool:
    return policy.observation_filter is not None and bool(policy.observation_filter.stats)


def _note_own_names(target: Path) -> list[Finding]:
    """Says whether the new checkpoint names anything of this package, and so needs it."""
    made = pickles.load(target / "class_and_ctor_args.pkl")
    own = sorted(name for name in made.globals if name.startswith("rllib_compat."))
    if not own:
        return []
    return [
        Finding(
            "needs-this-package",
            Severity.INFO,
            Verdict.NOTE,
            "class_and_ctor_args.pkl",
            f"it names {', '.join(own)}",
            "keep rllib-compat installed where Algorithm.from_checkpoint loads it; the modules "
            "alone (RLModule.from_checkpoint) need only Ray",
        )
    ]


def _carry_kl_coefficients(config: AlgorithmConfig, checkpoint: LegacyCheckpoint) -> list[Finding]:
    """PPO's learner keeps its current KL coefficient in no state; it starts from the config's."""
    current = {p.policy_id: p.kl_coeff for p in checkpoint.policies.values() if p.kl_coeff}
    if not current or not hasattr(config, "kl_coeff"):
        return []
    set_for_policies(config, "kl_coeff", current)
    shown = ", ".join(f"{k}: {v:g}" for k, v in current.items())
    return [
        Finding(
            "kl-coefficient",
            Severity.INFO,
            Verdict.DERIVED,
            "policies.*.kl_coeff",
            f"the current coefficient became the config's kl_coeff ({shown})",
        )
    ]


def _carry_moving_average(config: AlgorithmConfig, checkpoint: LegacyCheckpoint) -> list[Finding]:
    """MARWIL's learner keeps its running mean in no state; it starts from the config's."""
    known = {
        p.policy_id: p.extra[MOVING_AVERAGE]
        for p in checkpoint.policies.values()
        if MOVING_AVERAGE in p.extra
    }
    if not known or not hasattr(config, "moving_average_sqd_adv_norm_start"):
        return []
    value = next(iter(known.values()))
    config.training(moving_average_sqd_adv_norm_start=value)
    return [
        Finding(
            "moving-average",
            Severity.INFO,
            Verdict.DERIVED,
            "policies.*.weights",
            "the running mean of squared advantages became the config's "
            f"moving_average_sqd_adv_norm_start ({value:g})",
        )
    ]


def _tame_overrides(config: AlgorithmConfig) -> list[Finding]:
    if not overrides.tame(config):
        return []
    return [
        Finding(
            "many-policies",
            Severity.INFO,
            Verdict.NOTE,
            "policies",
            "so many policies with settings of their own make Ray copy configs without end; the "
            "checkpoint names a cache of this package that prevents it",
            "keep rllib-compat installed where the checkpoint is loaded",
        )
    ]


@contextmanager
def _algorithm(config: AlgorithmConfig) -> Iterator[Algorithm]:
    small = config.copy(copy_frozen=False)
    small.env_runners(num_env_runners=0, num_envs_per_env_runner=1, create_env_on_local_worker=True)
    ray_versions.learn_in_this_process(small)
    small.evaluation(evaluation_interval=None, evaluation_num_env_runners=0)
    small.offline_data(input_="sampler")  # nothing is read; what is saved is the full config
    small.reporting(keep_per_episode_custom_metrics=False)
    # Nothing is drawn that stays; a seed makes torch load its compiler. Ray stops measuring the
    # machine only after most of a second.
    small.debugging(seed=None, log_sys_usage=False)
    algorithm = ray_versions.build_algorithm(small)
    try:
        yield algorithm
    finally:
        ray_versions.stop_algorithm(algorithm)


def _set_weights(algorithm: Algorithm, networks: Mapping[str, AnyNetwork]) -> None:
    modules.set_weights(ray_versions.local_learner(algorithm).module, networks)
    algorithm.env_runner_group.sync_weights(
        from_worker_or_learner_group=algorithm.learner_group, inference_only=True
    )


#: What Ray's filter has added to deviations since 1.10, and how far another figure is let pass.
_EPSILON, _VISIBLE = 1e-6, 1e-4


def _set_filter(algorithm: Algorithm, checkpoint: LegacyCheckpoint) -> list[Finding]:
    """Gives the connector the running statistics of the old filter."""
    filters = {
        p.policy_id: p.observation_filter
        for p in checkpoint.policies.values()
        if p.observation_filter is not None and _has_statistics(p)
    }
    if not filters:
        return []
    path = "policies.*.observation_filter"
    multi_agent = ray_versions.is_multi_agent(algorithm.config)
    connector = "PolicyMeanStdFilter" if multi_agent else "MeanStdFilter"
    state = {k if multi_agent else None: _filter_state(old) for k, old in filters.items()}
    algorithm.env_runner.set_state({"env_to_module_connector": {connector: state}})
    counts = ", ".join(str(old.stats[0].count) for old in filters.values())
    return [
        *_epsilon_findings(filters),
        Finding(
            "observation-filter",
            Severity.INFO,
            Verdict.EXACT,
            path,
            f"running mean and deviation of {counts} observations went into the connector"
            + (", which has them by policy, as before" if multi_agent else ""),
        ),
    ]


def _set_weight_noise(algorithm: Algorithm, checkpoint: LegacyCheckpoint) -> list[Finding]:
    """Lets noise on weights go on as large as it was (`cur_stddev`, Ray 1.4 – 2.x)."""
    stored = {
        policy_id: float(policy.exploration["cur_stddev"])
        for policy_id, policy in checkpoint.policies.items()
        if isinstance(policy.exploration, Mapping) and "cur_stddev" in policy.exploration
    }
    if not stored:
        return []
    multi_agent = ray_versions.is_multi_agent(algorithm.config)
    state = {"deviations": {k if multi_agent else "": v for k, v in stored.items()}}
    algorithm.env_runner.set_state({"env_to_module_connector": {"ParameterNoise": state}})
    shown = ", ".join(f"{deviation:.4g}" for deviation in stored.values())
    message = f"noise on weights goes on with the deviation that it had ({shown})"
    path = "policies.*.exploration"
    return [Finding("weight-noise", Severity.INFO, Verdict.EXACT, path, message)]


def _epsilon_findings(filters: Mapping[str, ObservationFilter]) -> list[Finding]:
    """Warns where Ray's filter of today, which adds 1e-6 to deviations, gives other numbers."""
    findings = []
    for policy_id, old in filters.items():
        smallest = min(float(stat.std.min(initial=np.inf)) for stat in old.stats)
        off = abs((smallest + old.epsilon) / (smallest + _EPSILON) - 1)
        if old.destd and off > _VISIBLE:
            findings.append(
                Finding(
                    "observation-filter",
                    Severity.WARNING,
                    Verdict.DERIVED,
                    f"policies.{policy_id}.observation_filter",
                    f"today's filter adds {_EPSILON:g} to each deviation, the old one added "
                    f"{old.epsilon:g}; the smallest deviation is {smallest:.2e}, so that entry "
                    f"comes out {off:.1%} smaller",
                )
            )
    return findings


def _filter_state(old: ObservationFilter) -> dict[str, Any]:
    shapes = [np.asarray(stat.mean.shape) for stat in old.stats]
    return {
        "shape": shapes[0] if len(shapes) == 1 else tuple(shapes),
        "de_mean_to_zero": old.demean,
        "de_std_to_one": old.destd,
        "clip_by_value": old.clip,
        "running_stats": [
            ray_versions.running_stat_state(stat.count, stat.mean, stat.m2) for stat in old.stats
        ],
    }


def _set_counters(algorithm: Algorithm, checkpoint: LegacyCheckpoint) -> list[Finding]:
    counters = checkpoint.counters
    told = {
        "iteration": counters.iteration,
        "environment steps": counters.env_steps,
        "episodes": counters.episodes,
    }
    ray_versions.set_lifetime_counters(
        algorithm,
        iteration=counters.iteration or 0,
        env_steps=counters.env_steps or 0,
        episodes=counters.episodes or 0,
    )
    known = ", ".join(f"{name} {value}" for name, value in told.items() if value is not None)
    missing = [name for name, value in told.items() if value is None]
    findings = [
        Finding("counters", Severity.INFO, Verdict.EXACT, "counters", known or "none are stored")
    ]
    if missing:
        findings.append(
            Finding(
                "counters",
                Severity.INFO,
                Verdict.ABSENT,
                "counters",
                f"not in the source, counted from 0: {', '.join(missing)}",
            )
        )
    return findings
