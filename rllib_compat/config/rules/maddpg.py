"""MADDPG, which this package has for the new API stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rllib_compat.config.context import Context
from rllib_compat.config.rule import Outcome, Rule, dropped, kept, needless
from rllib_compat.config.rules.crr import ACTIVATIONS
from rllib_compat.config.rules.exploration import EXPLORATION, type_name
from rllib_compat.config.rules.replay import MODE
from rllib_compat.config.values import common as v
from rllib_compat.config.values.kinds import Words
from rllib_compat.neutral.report import Severity, Verdict

FAMILY = "maddpg"
MADDPG = ("MADDPG",)


def _dropped_if(idle: Callable[[Any], bool], hint: str) -> Any:
    """Drops a value; aloud, unless it asks for nothing."""

    def convert(value: Any, _: Context) -> Outcome:
        if idle(value):
            return Outcome()
        return Outcome(severity=Severity.WARNING, hint=hint)

    return convert


def _preprocessor(value: Any, _: Context) -> Outcome:
    if not value:
        return Outcome(verdict=Verdict.DROPPED, message="nothing was asked for")
    return Outcome(
        {},
        Verdict.REFUSED,
        "actors and critics see observations as they are, without a network before them",
        Severity.ERROR,
        "write an RLModule, a subclass of rllib_compat.modules.MADDPGModule",
    )


def _rule(key: str, value: Any, why: str, convert: Any) -> Rule:
    return Rule(FAMILY, key, Verdict.DROPPED, why, convert=convert, value=value, algorithms=MADDPG)


RULES = (
    *kept(
        FAMILY,
        "training",
        {
            v.COUNT: "agent_id",
            v.FLAG: "use_local_critic",
            v.LAYERS: "actor_hiddens critic_hiddens",
            ACTIVATIONS: "actor_hidden_activation critic_hidden_activation",
            v.SCHEDULED_RATE: "actor_lr critic_lr",
            v.AMOUNT: "actor_feature_reg training_intensity",
            v.SOME: "n_step",
            v.SHARE: "tau",
            v.STEPS: "target_network_update_freq",
        },
        algorithms=MADDPG,
    ),
    *(
        _rule(
            key,
            Words(("maddpg", "ddpg")),
            "RLlib never read it",
            _dropped_if(
                lambda value: value != "ddpg", "give its policies `use_local_critic=True`: DDPG"
            ),
        )
        for key in ("good_policy", "adv_policy")
    ),
    _rule(
        "use_state_preprocessor",
        v.FLAG,
        "actors and critics see observations as they are",
        _preprocessor,
    ),
    *(
        _rule(
            key,
            MODE,
            "all agents' steps are replayed together",
            _dropped_if(
                lambda value: needless(value) or value in (-1, "lockstep"),
                "critics see all agents in each step",
            ),
        )
        for key in (
            *("multiagent.replay_mode", "replay_mode"),
            "replay_buffer_config.replay_mode",
        )
    ),
    _rule(
        "exploration_config",
        EXPLORATION,
        "the module samples its actions, whether it explores or not",
        _dropped_if(
            lambda value: type_name(value) in (None, "StochasticSampling"),
            "override `_forward_exploration` of rllib_compat.modules.MADDPGModule",
        ),
    ),
    *dropped(FAMILY, "lr", "no loss read it: `actor_lr` and `critic_lr` count", algorithms=MADDPG),
)
