"""CRR, which this package has for the new API stack."""

from __future__ import annotations

from typing import Any

from rllib_compat.config.context import Context
from rllib_compat.config.rule import Outcome, Rule, dropped, kept
from rllib_compat.config.rules.exploration import EXPLORATION, type_name
from rllib_compat.config.values import common as v
from rllib_compat.config.values.kinds import Number, Whole, Words
from rllib_compat.neutral.report import Severity, Verdict

FAMILY = "crr"
CRR = ("CRR",)
ACTIVATIONS = Words(("elu", "linear", "relu", "swish", "tanh"))


def _exploration(value: Any, _: Context) -> Outcome:
    """Nothing explores: only what is evaluated draws actions."""
    if type_name(value) in (None, "StochasticSampling"):
        return Outcome()
    return Outcome(severity=Severity.WARNING)


RULES = (
    *kept(
        FAMILY,
        "training",
        {
            Words(("bin", "exp")): "weight_type",
            Words(("mean", "max", "expectation")): "advantage_type",
            Words(("mse", "huber")): "td_error_loss_fn",
            Number(0): "temperature max_weight categorical_distribution_temperature",
            Whole(1, ample=4096): "n_action_sample",
            v.FLAG: "twin_q",
            v.LAYERS: "actor_hiddens critic_hiddens",
            ACTIVATIONS: "actor_hidden_activation critic_hidden_activation",
            v.SCHEDULED_RATE: "actor_lr critic_lr",
            v.SHARE: "tau",
            v.STEPS: "target_network_update_freq",
        },
        algorithms=CRR,
    ),
    *dropped(
        FAMILY,
        "num_workers num_rollout_workers num_env_runners",
        "workers read the data; today's offline data reads by itself",
        algorithms=CRR,
    ),
    *dropped(FAMILY, "lr", "no loss read it: `actor_lr` and `critic_lr` count", algorithms=CRR),
    Rule(
        FAMILY,
        "exploration_config",
        Verdict.DROPPED,
        "the module draws from its action distribution by itself",
        convert=_exploration,
        value=EXPLORATION,
        algorithms=CRR,
    ),
)
