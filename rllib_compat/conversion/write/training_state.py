"""Sets the training state of policies in an algorithm of the installed Ray.

Values that are not in a learner's state (KL coefficients, temperatures, running means) are set in
the config. Weights, optimizers, filters, noise, exploration and counters are set in the algorithm.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat import registry
from rllib_compat.networks import AnyNetwork
from rllib_compat.networks.mapping import require_same_names
from rllib_compat.networks.named import MOVING_AVERAGE
from rllib_compat.networks.network import ALPHA, own_name
from rllib_compat.networks.optimizers import plan, torch_slots
from rllib_compat.networks.rl_modules import set_weights
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, ObservationFilter, PolicyState
from rllib_compat.neutral.report import Finding, Verdict
from rllib_compat.neutral.spaces import Discrete
from rllib_compat.ray_versions import configs, connectors, learners, metrics

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

#: The largest difference of the schedule from the stored epsilon without a warning.
_NEAR = 0.02


def set_in_config(
    config: AlgorithmConfig, checkpoint: LegacyCheckpoint, networks: Mapping[str, AnyNetwork]
) -> list[Finding]:
    """Sets values that are not in a learner's state in a config, in place."""
    findings = _set_kl_coefficients(config, checkpoint)
    if registry.of(checkpoint.algorithm).soft_actor_critic:
        findings += set_temperatures(config, checkpoint)
        findings += keep_action_range(config, networks)
    return findings + _set_moving_average(config, checkpoint)


def set_in_algorithm(
    algorithm: Algorithm,
    config: AlgorithmConfig,
    checkpoint: LegacyCheckpoint,
    networks: Mapping[str, AnyNetwork],
) -> list[Finding]:
    """Sets weights, optimizers, filters, noise, counters and exploration.

    Returns:
        A finding for each, except the weights.
    """
    set_weights(learners.local_learner(algorithm).module, networks)
    algorithm.env_runner_group.sync_weights(
        from_worker_or_learner_group=algorithm.learner_group, inference_only=True
    )
    findings = _set_optimizers(algorithm, checkpoint, networks)
    findings += _set_filter(algorithm, checkpoint)
    findings += _set_weight_noise(algorithm, checkpoint)
    findings += _set_counters(algorithm, checkpoint)
    if registry.of(checkpoint.algorithm).reader in ("q", "ddpg"):
        findings += set_progress(algorithm, config, checkpoint)
    return findings


def _set_kl_coefficients(config: AlgorithmConfig, checkpoint: LegacyCheckpoint) -> list[Finding]:
    """Sets KL coefficients, which are not in the state of PPO's learner, in the config."""
    current = {p.policy_id: p.kl_coeff for p in checkpoint.policies.values() if p.kl_coeff}
    if not current or not hasattr(config, "kl_coeff"):
        return []
    _set_for_policies(config, "kl_coeff", current)
    shown = ", ".join(f"{k}: {v:g}" for k, v in current.items())
    return [
        Finding.info(
            "kl-coefficient",
            Verdict.DERIVED,
            "policies.*.kl_coeff",
            f"the current coefficient became the config's kl_coeff ({shown})",
        )
    ]


def _set_moving_average(config: AlgorithmConfig, checkpoint: LegacyCheckpoint) -> list[Finding]:
    """Sets the running mean, which is not in the state of MARWIL's learner, in the config."""
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
        Finding.info(
            "moving-average",
            Verdict.DERIVED,
            "policies.*.weights",
            "the running mean of squared advantages became the config's "
            f"moving_average_sqd_adv_norm_start ({value:g})",
        )
    ]


def set_temperatures(config: AlgorithmConfig, checkpoint: LegacyCheckpoint) -> list[Finding]:
    """Sets temperatures and target entropies in the config.

    The temperature is not in the learner's state. And Ray's default target entropy of discrete
    actions is that of continuous ones, which is never reached.
    """
    findings = []
    alphas = {
        p.policy_id: math.exp(p.log_alpha)
        for p in checkpoint.policies.values()
        if p.log_alpha is not None
    }
    if alphas:
        _set_for_policies(config, "initial_alpha", alphas)
        shown = ", ".join(f"{k}: {v:g}" for k, v in alphas.items())
        message = f"the current temperature became the config's initial_alpha ({shown})"
        findings.append(
            Finding.info("temperature", Verdict.DERIVED, "policies.*.log_alpha", message)
        )
    entropies = {
        p.policy_id: target
        for p in checkpoint.policies.values()
        if (target := _target_entropy(p, config)) is not None
    }
    if entropies:
        others = dict.fromkeys(checkpoint.policies, config.target_entropy)
        _set_for_policies(config, "target_entropy", {**others, **entropies})
        shown = ", ".join(f"{k}: {v:g}" for k, v in entropies.items())
        message = f"the target entropy became a number, as before ({shown})"
        path = "policies.*.target_entropy"
        findings.append(Finding.info("target-entropy", Verdict.DERIVED, path, message))
    return findings


def keep_action_range(config: AlgorithmConfig, networks: Mapping[str, AnyNetwork]) -> list[Finding]:
    """Keeps actions in the environment's range, as policies of Ray 0.7 and 0.8.0 returned them.

    Later policies return actions within -1 … 1, which `normalize_actions` rescales.
    """
    distributions = [n.target.model_config["distribution"] for n in networks.values()]
    if not any(d.get("squashes", 1) > 1 for d in distributions) or not config.normalize_actions:
        return []
    config.environment(normalize_actions=False)
    message = "switched off: this policy's actions are in the environment's range already"
    path = "config.normalize_actions"
    return [Finding.info("normalize-actions", Verdict.DERIVED, path, message)]


def _target_entropy(policy: PolicyState, config: AlgorithmConfig) -> float | None:
    """Returns the target entropy if Ray's "auto" is another: 98 % of the maximum."""
    if not isinstance(policy.action_space, Discrete) or config.target_entropy not in (None, "auto"):
        return None
    if policy.target_entropy is not None:
        return policy.target_entropy
    return 0.98 * math.log(policy.action_space.n)


def _set_for_policies(config: AlgorithmConfig, key: str, values: Mapping[str, Any]) -> None:
    """Sets the most common value for all policies, and the others as overrides of modules."""
    (common, _), *_ = Counter(values.values()).most_common(1)
    config.training(**{key: common})
    per_module = dict(config.algorithm_config_overrides_per_module)
    for policy_id, value in values.items():
        if value != common:
            per_module[policy_id] = {
                **per_module.get(policy_id, {}),
                **config.overrides(**{key: value}),
            }
    if per_module:
        config.rl_module(algorithm_config_overrides_per_module=per_module)


def delay_learning(config: AlgorithmConfig, checkpoint: LegacyCheckpoint) -> list[Finding]:
    """Delays training until the empty replay buffer has enough steps.

    Until Ray 1.13, training waited until the *buffer* had `learning_starts` steps, also after a
    restore. The installed Ray counts all sampled steps, including those before the restore.
    """
    steps = checkpoint.counters.env_steps
    if not steps:
        return []
    starts = config.num_steps_sampled_before_learning_starts
    config.training(num_steps_sampled_before_learning_starts=steps + starts)
    message = (
        f"the replay buffer starts empty; learning starts again after {starts} new steps "
        f"(num_steps_sampled_before_learning_starts={steps + starts})"
    )
    return [Finding.info("learning-starts", Verdict.DERIVED, "counters", message)]


def set_progress(
    algorithm: Algorithm, config: AlgorithmConfig, checkpoint: LegacyCheckpoint
) -> list[Finding]:
    """Continues exploration at its step: its schedule depends on the sampled steps."""
    steps = checkpoint.counters.env_steps or 0
    metrics.set_steps_of_env_runner(algorithm, steps, config.num_env_runners or 0)
    message = (
        "Ray keeps in no checkpoint when a target network was last updated: the first training "
        "step updates it"
    )
    reset = Finding.info("target-updates", Verdict.RESET, "counters", message)
    if hasattr(config, "exploration_noise"):
        return [_noise(config, checkpoint, steps), reset]
    return [*_epsilons(config, checkpoint, steps), reset]


def _noise(config: AlgorithmConfig, checkpoint: LegacyCheckpoint, steps: int) -> Finding:
    from rllib_compat.networks.modules import exploration

    kind, settings = exploration.check(config.exploration_noise)
    message = f"{kind} continues by the config's schedule, after {steps} steps"
    if settings:
        message += f": its scale is {exploration.scale(settings, steps):.4g}"
    states = (policy.exploration for policy in checkpoint.policies.values())
    stored = [s["cur_scale"] for s in states if isinstance(s, Mapping) and "cur_scale" in s]
    if stored:
        message += f" (stored: {float(stored[0]):.4g})"
    return Finding.info("noise", Verdict.DERIVED, "policies.*.exploration", message)


def _epsilons(
    config: AlgorithmConfig, checkpoint: LegacyCheckpoint, steps: int
) -> Iterator[Finding]:
    now = _at(config.epsilon, steps)
    for policy_id, policy in checkpoint.policies.items():
        path = f"policies.{policy_id}.exploration"
        then = _stored_epsilon(policy)
        if then is None:
            message = f"epsilon follows from the steps sampled: {now:.4g}"
            yield Finding.info("epsilon", Verdict.DERIVED, path, message)
        elif abs(then - now) <= _NEAR:
            message = f"epsilon continues at {now:.4g} (stored: {then:.4g})"
            yield Finding.info("epsilon", Verdict.EXACT, path, message)
        else:
            message = f"epsilon was {then:.4g}; by the config's schedule it is {now:.4g} now"
            hint = "set config.training(epsilon=…) to another schedule before you continue training"
            yield Finding.warning("epsilon", Verdict.DERIVED, path, message, hint)


def _at(epsilon: Any, step: int) -> float:
    """Returns the value of a number or a schedule `[[step, value], …]` at a step."""
    if isinstance(epsilon, (int, float)):
        return float(epsilon)
    steps, values = zip(*epsilon, strict=True)
    return float(np.interp(step, steps, values))


def _stored_epsilon(policy: PolicyState) -> float | None:
    """Returns `cur_epsilon`: in a dict (since Ray 1.4), or after the weights (until 0.8.0)."""
    state = policy.exploration
    if isinstance(state, list) and len(state) == 1:
        state = {"cur_epsilon": state[0]}
    found = state.get("cur_epsilon") if isinstance(state, dict) else None
    return float(found) if isinstance(found, (int, float, np.number)) else None


def _set_optimizers(
    algorithm: Algorithm, checkpoint: LegacyCheckpoint, networks: Mapping[str, AnyNetwork]
) -> list[Finding]:
    """Sets the states of all optimizers that can continue; their settings are the config's.

    Returns:
        A finding for each policy's optimizers.
    """
    plans, findings = plan(checkpoint.policies, networks)
    learner = learners.local_learner(algorithm)
    for policy_id, states in plans.items():
        names = _parameters(learner, policy_id)
        for name, state in states.items():
            optimizer = learner.get_optimizer(policy_id, name)
            order = [names[id(p)] for group in optimizer.param_groups for p in group["params"]]
            slots = torch_slots(state, networks[policy_id])
            require_same_names(slots, order, where=f"optimizer {policy_id}_{name}")
            numbered = {number: slots[name] for number, name in enumerate(order)}
            optimizer.load_state_dict({**optimizer.state_dict(), "state": numbered})
    return findings


def _parameters(learner: Any, policy_id: str) -> dict[int, str]:
    """Returns the names of a module's parameters, and of its temperature if it has one."""
    names = {id(p): name for name, p in learner.module[policy_id].named_parameters()}
    temperatures = getattr(learner, "curr_log_alpha", {})
    if policy_id in temperatures:
        names[id(temperatures[policy_id])] = own_name(ALPHA)
    return names


#: The value that Ray's filter adds to deviations since 1.10, and the largest difference without
#: a warning.
_EPSILON, _VISIBLE = 1e-6, 1e-4


def _set_filter(algorithm: Algorithm, checkpoint: LegacyCheckpoint) -> list[Finding]:
    """Sets the old filter's running statistics in the connector."""
    filters = {
        p.policy_id: p.observation_filter
        for p in checkpoint.policies.values()
        if p.observation_filter is not None and has_filter_statistics(p)
    }
    if not filters:
        return []
    path = "policies.*.observation_filter"
    multi_agent = configs.is_multi_agent(algorithm.config)
    connector = "PolicyMeanStdFilter" if multi_agent else "MeanStdFilter"
    state = {k if multi_agent else None: _filter_state(old) for k, old in filters.items()}
    algorithm.env_runner.set_state({"env_to_module_connector": {connector: state}})
    counts = ", ".join(str(old.stats[0].count) for old in filters.values())
    return [
        *_epsilon_findings(filters),
        Finding.info(
            "observation-filter",
            Verdict.EXACT,
            path,
            f"running mean and deviation of {counts} observations went into the connector"
            + (", which has them by policy, as before" if multi_agent else ""),
        ),
    ]


def has_filter_statistics(policy: PolicyState) -> bool:
    """Whether a policy's observation filter has statistics."""
    return policy.observation_filter is not None and bool(policy.observation_filter.stats)


def _epsilon_findings(filters: Mapping[str, ObservationFilter]) -> list[Finding]:
    """Warns if Ray's new filter, which adds 1e-6 to deviations, returns other numbers."""
    findings = []
    for policy_id, old in filters.items():
        smallest = min(float(stat.std.min(initial=np.inf)) for stat in old.stats)
        off = abs((smallest + old.epsilon) / (smallest + _EPSILON) - 1)
        if old.destd and off > _VISIBLE:
            findings.append(
                Finding.warning(
                    "observation-filter",
                    Verdict.DERIVED,
                    f"policies.{policy_id}.observation_filter",
                    f"the new filter adds {_EPSILON:g} to each deviation, and the old one added "
                    f"{old.epsilon:g}; the smallest deviation is {smallest:.2e}, so its number is "
                    f"{off:.1%} smaller after the filter",
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
            connectors.running_stat_state(stat.count, stat.mean, stat.m2) for stat in old.stats
        ],
        **({} if old.integers is None else {"integers": old.integers}),
    }


def _set_weight_noise(algorithm: Algorithm, checkpoint: LegacyCheckpoint) -> list[Finding]:
    """Sets the deviation of parameter noise (`cur_stddev`, Ray 1.4 – 2.x)."""
    stored = {
        policy_id: float(policy.exploration["cur_stddev"])
        for policy_id, policy in checkpoint.policies.items()
        if isinstance(policy.exploration, Mapping) and "cur_stddev" in policy.exploration
    }
    if not stored:
        return []
    multi_agent = configs.is_multi_agent(algorithm.config)
    state = {"deviations": {k if multi_agent else "": v for k, v in stored.items()}}
    algorithm.env_runner.set_state({"env_to_module_connector": {"ParameterNoise": state}})
    shown = ", ".join(f"{deviation:.4g}" for deviation in stored.values())
    message = f"noise on weights continues with its stored deviation ({shown})"
    path = "policies.*.exploration"
    return [Finding.info("weight-noise", Verdict.EXACT, path, message)]


def _set_counters(algorithm: Algorithm, checkpoint: LegacyCheckpoint) -> list[Finding]:
    counters = checkpoint.counters
    totals = {
        "iteration": counters.iteration,
        "environment steps": counters.env_steps,
        "episodes": counters.episodes,
    }
    metrics.set_lifetime_counters(
        algorithm,
        iteration=counters.iteration or 0,
        env_steps=counters.env_steps or 0,
        episodes=counters.episodes or 0,
    )
    known = ", ".join(f"{name} {value}" for name, value in totals.items() if value is not None)
    missing = [name for name, value in totals.items() if value is None]
    findings = [Finding.info("counters", Verdict.EXACT, "counters", known or "none are stored")]
    if missing:
        findings.append(
            Finding.info(
                "counters",
                Verdict.ABSENT,
                "counters",
                f"not in the source, counted from 0: {', '.join(missing)}",
            )
        )
    return findings
