"""DQN and its relatives: SimpleQ, APEX and R2D2."""

from __future__ import annotations

from typing import Any

from packaging.version import Version

from rllib_compat import registry
from rllib_compat.config.context import Context
from rllib_compat.config.keys import was_default
from rllib_compat.config.rule import Outcome, Rule, drop_aloud, kept
from rllib_compat.config.rules.own_buffers import OWN
from rllib_compat.config.rules.training import ADAMS_OWN, OPTIMIZER, of_optimizer
from rllib_compat.config.values import common as v
from rllib_compat.config.values.containers import Row
from rllib_compat.config.values.kinds import Whole, Words
from rllib_compat.neutral.report import Verdict

FAMILY = "dqn"
DQN = registry.family("DQN")
#: R2D2 is this package's; some of these keys are other settings there (`r2d2`).
PLAIN = tuple(name for name in DQN if name != "R2D2")
OFF_POLICY = (*DQN, *registry.family("SAC"), *registry.family("DDPG"))


ATOMS, LOSSES = Whole(1, ample=10_000), Words(("huber", "mse"))


def _hiddens(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({"training.hiddens": value}, Verdict.KEPT)
    return Outcome({"rl_module.model_config.head_fcnet_hiddens": list(value or [])})


def _temperature(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({"training.categorical_distribution_temperature": value}, Verdict.KEPT)
    return drop_aloud(None if value == 1.0 else value, context)


def _adam_epsilon(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({"training.adam_epsilon": value}, Verdict.KEPT)
    if value in (None, ADAMS_OWN):
        return Outcome(verdict=Verdict.DROPPED, message="torch's Adam has it by itself")
    return Outcome({of_optimizer("eps"): value})


def _epsilon(value: Any, context: Context) -> Outcome:
    """The new stack's schedule; before Ray 2.40, policies explored by `exploration_config`."""
    if context.stack == "old":
        return Outcome(verdict=Verdict.DROPPED, message="`exploration_config` says it there")
    before = context.legacy_ray is not None and Version(context.legacy_ray) < Version("2.40")
    by_default = was_default("epsilon", value, "DQN")
    if before and by_default and not context.get("enable_env_runner_and_connector_v2"):
        return Outcome(
            verdict=Verdict.DROPPED,
            message="the old API stack, which was the default, explored by `exploration_config`",
        )
    return Outcome({"training.epsilon": value})


RULES = (
    *kept(
        FAMILY,
        "training",
        {
            ATOMS: "num_atoms",
            v.NUMBER: "v_min v_max",
            LOSSES: "td_error_loss_fn",
            v.LENGTH: "burn_in_len",
        },
        algorithms=PLAIN,
    ),
    *kept(FAMILY, "training", {v.FLAG: "dueling double_q"}, algorithms=DQN),
    *kept(
        FAMILY,
        "training",
        {
            Whole(1, ample=10_000) | Row((v.SOME, v.SOME)): "n_step",
            v.FLAG: "store_buffer_in_checkpoints",
            v.STEPS: "num_steps_sampled_before_learning_starts",
        },
        algorithms=tuple(name for name in OFF_POLICY if name not in OWN),
    ),
    *kept(FAMILY, "training", {v.AMOUNT: "training_intensity"}, algorithms=OFF_POLICY),
    *kept(
        FAMILY,
        "training",
        {v.SHARE: "tau", v.STEPS: "target_network_update_freq"},
        algorithms=(*OFF_POLICY, "IQL"),
    ),
    Rule(
        FAMILY,
        "epsilon",
        Verdict.KEPT,
        target="training.epsilon",
        old_target="",
        convert=_epsilon,
        value=v.SCHEDULED_SHARE,
        algorithms=DQN,
    ),
    Rule(
        FAMILY,
        "hiddens",
        Verdict.MOVED,
        "the layers of the advantage and value streams",
        target="rl_module.model_config.head_fcnet_hiddens",
        old_target="training.hiddens",
        convert=_hiddens,
        value=v.LAYERS,
        algorithms=PLAIN,
    ),
    Rule(
        FAMILY,
        "adam_epsilon",
        Verdict.MOVED,
        "a learner of this package gives it to Adam; no setting of the new API stack does",
        target=f"{OPTIMIZER}.eps",
        old_target="training.adam_epsilon",
        convert=_adam_epsilon,
        value=v.AMOUNT,
        algorithms=PLAIN,
    ),
    Rule(
        FAMILY,
        "before_learn_on_batch",
        Verdict.DROPPED,
        "a function on train batches runs on the old API stack only",
        old_target="training.before_learn_on_batch",
        value=v.CODE,
        algorithms=DQN,
        needs_old=lambda value: value is not None,
        hint="write it as a learner connector, or pass api_stack='old'",
    ),
    Rule(
        FAMILY,
        "categorical_distribution_temperature",
        Verdict.DROPPED,
        "the new API stack takes the largest Q-value",
        old_target="training.categorical_distribution_temperature",
        convert=_temperature,
        value=v.AMOUNT,
        algorithms=DQN,
    ),
)
