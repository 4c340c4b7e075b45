"""What learners tell, by the names and in the form that the Ray of a config had for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from rllib_compat.runtime.policy_mapping import ONLY_POLICY

#: Since this Ray, a policy tells more than numbers: its numbers are below `learner_stats`.
_NESTED = Version("1.3")
#: Since this Ray, the only policy of a trainer is named, too.
NAMED = Version("1.0")
#: The keys of algorithms whose optimizers replayed.
_REPLAYING = ("buffer_size", "replay_buffer_size")


class LearnerInfo(dict[str, Any]):
    """What is below `info/learner`, as a dict that also knows the paths of other Rays.

    The last of them was `info/learner/<policy>/learner_stats/<name>`; up to Ray 1.2 there was no
    `learner_stats`, and up to 0.8, with one policy, no id either.
    """

    def __missing__(self, name: str) -> Any:
        """Looks where newer releases had the value, or older ones."""
        for inner in ("learner_stats", ONLY_POLICY):
            if name != inner and dict.__contains__(self, inner):
                return self[inner][name]
        if name in ("learner_stats", ONLY_POLICY) and _is_numbers(self):
            return self
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        """Whether the value is here or there; what goes over all of them finds each once."""
        return self.get(name) is not None or dict.__contains__(self, name)

    def get(self, name: Any, default: object = None) -> Any:
        """The value, here or there, or the default."""
        try:
            return self[name]
        except KeyError:
            return default


def names_only_policy(algorithm: str, config: Mapping[str, Any]) -> bool:
    """Whether results of Ray 0.5 – 0.8 named the only policy of a trainer.

    Optimizers that replayed did, and PPO's for TensorFlow.
    """
    torch = config.get("use_pytorch") or config.get("framework") == "torch"
    return (algorithm == "PPO" and not torch) or not config.keys().isdisjoint(_REPLAYING)


def arrange(told: LearnerInfo, ray: Version | None, *, named: bool) -> LearnerInfo:
    """Arranges what policies have told as a Ray did.

    Args:
        told: Policy → what it told, `learner_stats` and more.
        ray: The Ray; None: the last one.
        named: Whether the name of an only policy was told, too, by Rays that left it out.
    """
    _complete(told)
    if ray is None or ray >= _NESTED:
        return told
    numbers = {policy: numbers_of(of_policy) for policy, of_policy in told.items()}
    if ray < NAMED and not named and set(numbers) == {ONLY_POLICY}:
        return LearnerInfo(numbers[ONLY_POLICY])
    return LearnerInfo(numbers)


def numbers_of(of_policy: Any) -> Any:
    """The numbers that a policy has told, and what its model has, as until Ray 1.2."""
    stats = dict.get(of_policy, "learner_stats") if isinstance(of_policy, dict) else None
    return (
        of_policy if stats is None else LearnerInfo({**stats, "model": of_policy.get("model", {})})
    )


def _is_numbers(told: Mapping[str, Any]) -> bool:
    return any(isinstance(value, (int, float)) for value in told.values())


def _complete(told: Mapping[str, Any]) -> None:
    """Adds what old policies told beside `learner_stats`; models tell nothing of their own."""
    for of_policy in told.values():
        stats = dict.get(of_policy, "learner_stats") if isinstance(of_policy, dict) else None
        if not isinstance(stats, dict):
            continue
        stats.setdefault("allreduce_latency", 0.0)  # nobody else has gradients
        for name in ("custom_metrics", "model"):
            of_policy.setdefault(name, {})
        of_policy.setdefault(
            "num_agent_steps_trained", float(stats.get("num_module_steps_trained", 0))
        )


# A learner's value of today → its legacy name, as in info/learner/<policy>/learner_stats.
LEARNER_STATS = {
    "default_optimizer_learning_rate": "cur_lr",
    "curr_kl_coeff": "cur_kl_coeff",
    "mean_kl_loss": "kl",
    "curr_entropy_coeff": "entropy_coeff",
    "gradients_default_optimizer_global_norm": "grad_gnorm",
    "qf_mean": "mean_q",
    "qf_max": "max_q",
    "qf_min": "min_q",
    "td_error_mean": "mean_td_error",
    "pi_loss": "policy_loss",
}
# The same for SAC and CQL, whose losses had names of their own.
ACTOR_CRITIC_STATS = {"policy_loss": "actor_loss", "qf_loss": "critic_loss"}

# What learners tell by its old name already: the rates that this iteration has used, while those of
# today's names are the next one's.
USED = ("cur_lr", "entropy_coeff", "cur_kl_coeff")

# What a learner says of each module that it holds, trained in this iteration or not.
HELD = {
    "num_trainable_parameters",
    "num_non_trainable_parameters",
    "curr_entropy_coeff",
    "curr_kl_coeff",
    *USED,
}


def learner_stats(stats: Mapping[str, Any]) -> dict[str, Any]:
    """The values by their legacy names; loggers find today's names below `learners`."""
    names = LEARNER_STATS | (ACTOR_CRITIC_STATS if "alpha_value" in stats else {})
    found = {names.get(name, name): value for name, value in stats.items()}
    if "qf_twin_loss" in stats:  # one number for both critics
        found["critic_loss"] = (stats["qf_loss"] + stats["qf_twin_loss"]) / 2
    return found | {name: stats[name] for name in USED if name in stats}
