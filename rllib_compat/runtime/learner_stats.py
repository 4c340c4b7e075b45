"""What learners tell of a module, by the names that old results had for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
