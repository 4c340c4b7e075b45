"""SAC, and what CQL and RNNSAC inherit from it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from rllib_compat import registry
from rllib_compat.config import keys
from rllib_compat.config.context import Context
from rllib_compat.config.rule import (
    Outcome,
    Rule,
    drop_aloud,
    dropped,
    empty_section,
    kept,
    needless,
)
from rllib_compat.config.rules import model
from rllib_compat.config.values import common as v
from rllib_compat.neutral.report import Severity, Verdict

FAMILY = "sac"
SAC = registry.family("SAC")

RATES = {
    "actor_learning_rate": "actor_lr",
    "critic_learning_rate": "critic_lr",
    "entropy_learning_rate": "alpha_lr",
}
# Old section → the old stack's argument.
NETWORKS = {
    "Q_model": "q_model_config",
    "q_model_config": "q_model_config",
    "policy_model": "policy_model_config",
    "policy_model_config": "policy_model_config",
}
CRITICS = ("Q_model", "q_model_config")
LAYERS = {
    "fcnet_hiddens": "fcnet_hiddens",
    "fcnet_activation": "fcnet_activation",
    "hidden_layer_sizes": "fcnet_hiddens",
    "hidden_activation": "fcnet_activation",
    "post_fcnet_hiddens": "head_fcnet_hiddens",
    "post_fcnet_activation": "head_fcnet_activation",
}


def _target_entropy(value: Any, _: Context) -> Outcome:
    return Outcome({"training.target_entropy": "auto" if value is None else value})


def _shared_shape(section: str, key: str, new: str, old: str) -> Any:
    """One shape for policy and Q-network: the policy's, where the config gives both.

    Only RNNSAC's module, which this package has, knows two.
    """
    policy = "policy_model" if section == "Q_model" else "policy_model_config"

    def convert(value: Any, context: Context) -> Outcome:
        if context.stack == "old":
            return Outcome({old: value}, Verdict.MOVED)
        if value is None:
            return Outcome(verdict=Verdict.DROPPED, message="it was left to the default")
        other = context.get(f"{policy}.{key}", value)
        if context.legacy_algorithm == "RNNSAC" and section in CRITICS and other != value:
            own = new.replace(model.NEW, f"{model.NEW}.critics")
            return Outcome({own: value}, message="the critics have layers of their own")
        if section in CRITICS and other != value:
            return Outcome(
                verdict=Verdict.DROPPED,
                message=f"policy and Q-network have one shape now: the policy's, {other!r}",
                severity=Severity.WARNING,
                hint="override the catalog of SAC to give them different ones",
            )
        return Outcome({new: value})

    return convert


def _network_rules() -> tuple[Rule, ...]:
    rules = []
    for section, old in NETWORKS.items():
        rules.append(
            Rule(
                FAMILY,
                section,
                Verdict.MOVED,
                "the layers of policy and Q-network; any other key of the model config may be "
                "there, too",
                target="rl_module.model_config",
                section=True,
                convert=empty_section,
                value=v.SECTION,
                algorithms=SAC,
            )
        )
        for key, new in LAYERS.items():
            here, there = f"{model.NEW}.{new}", f"training.{old}.{new.replace('head_', 'post_')}"
            rules.append(
                Rule(
                    FAMILY,
                    f"{section}.{key}",
                    Verdict.MOVED,
                    "policy and Q-network have one shape",
                    target=here,
                    old_target=there,
                    convert=_shared_shape(section, key, here, there),
                    value=v.LAYERS if new.endswith("hiddens") else v.ACTIVATION,
                )
            )
        rules += [
            Rule(
                FAMILY,
                f"{section}.custom_model",
                Verdict.DROPPED,
                "a ModelV2 class runs on the old API stack only",
                old_target=f"training.{old}.custom_model",
                needs_old=lambda value: not needless(value),
                value=v.CODE,
            ),
            Rule(
                FAMILY,
                f"{section}.custom_model_config",
                Verdict.DROPPED,
                "arguments of `custom_model`",
                old_target=f"training.{old}.custom_model_config",
                value=v.ARGUMENTS,
            ),
        ]
    return tuple(rules)


@cache
def of_network(name: str) -> Rule | None:
    """The rule of a key of the model config in the section of a network, which takes them all.

    Args:
        name: The key with its section: `policy_model.conv_filters`.

    Returns:
        What `model.<key>` may be, and what becomes of it here. Reports name the section's rule.
    """
    section, _, key = name.partition(".")
    known = next((rule for rule in model.RULES if rule.key == f"model.{key}"), None)
    if section not in NETWORKS or known is None:
        return None
    new = known.target if known.convert is None and known.target.startswith(model.NEW) else ""
    inner = known.target_on("old")
    old = f"training.{NETWORKS[section]}"
    old = inner.replace(model.OLD, old) if inner.startswith(f"{model.OLD}.") else ""
    return replace(
        known,
        family=FAMILY,
        key=section,
        verdict=Verdict.MOVED if new else Verdict.DROPPED,
        target=new,
        old_target=old,
        convert=_in_network(section, key, new, old),
    )


def _in_network(section: str, key: str, new: str, old: str) -> Any:
    shared = _shared_shape(section, key, new, old)

    def convert(value: Any, context: Context) -> Outcome:
        if key.startswith("lstm_use_prev") and _looks_back(value, context):
            return Outcome({new: value}, message="policy and critics see the step before, or none")
        why = _never_read(key, context)
        if key == "use_lstm" and why and value:
            return Outcome({}, Verdict.REFUSED, why, Severity.ERROR, "train RNNSAC")
        if context.stack == "old" and old:
            return Outcome({old: value}, Verdict.MOVED)
        if new and not why and context.stack == "new":
            return shared(value, context)  # type: ignore[no-any-return]
        by_itself = needless(value) or keys.was_default(f"model.{key}", value, "SAC")
        return Outcome(
            verdict=Verdict.DROPPED,
            message=why or "the networks of policy and critics have no such setting",
            severity=Severity.INFO if by_itself else Severity.WARNING,
        )

    return convert


def _looks_back(value: Any, context: Context) -> bool:
    """Whether a network of the new API stack is asked to see the step before."""
    return bool(value) and context.stack == "new" and context.legacy_algorithm == "RNNSAC"


def _never_read(key: str, context: Context) -> str:
    """Why a network does not read a key that the model config has; empty: it does."""
    if key == "max_seq_len":
        return "`model.max_seq_len` says how long sequences are"
    remembers = context.legacy_algorithm == "RNNSAC" or "lstm" not in key
    return "" if remembers else "only RNNSAC has LSTMs in its networks"


def _on_old(key: str) -> Any:
    def convert(value: Any, context: Context) -> Outcome:
        if context.stack == "old":
            return Outcome({f"training.{key}": value}, Verdict.KEPT)
        return drop_aloud(value, context)

    return convert


RULES = (
    *kept(
        FAMILY,
        "training",
        {v.FLAG: "twin_q", v.SCHEDULED_RATE: "actor_lr critic_lr"},
        algorithms=(*SAC, "IQL"),
    ),
    *kept(
        FAMILY,
        "training",
        {v.AMOUNT: "initial_alpha", v.SCHEDULED_RATE: "alpha_lr"},
        algorithms=SAC,
    ),
    Rule(
        FAMILY,
        "target_entropy",
        Verdict.KEPT,
        target="training.target_entropy",
        convert=_target_entropy,
        value=v.NUMBER | v.AUTO,
        algorithms=SAC,
    ),
    Rule(
        FAMILY,
        "optimization",
        Verdict.CONVERTED,
        "one learning rate per network",
        target="training.actor_lr",
        section=True,
        convert=empty_section,
        algorithms=SAC,
        value=v.SECTION,
    ),
    *(
        Rule(
            FAMILY,
            f"optimization.{old}",
            Verdict.MOVED,
            "one learning rate per network",
            target=f"training.{new}",
            old_target=f"training.optimization_config.{old}",
            value=v.SCHEDULED_RATE,
        )
        for old, new in RATES.items()
    ),
    *_network_rules(),
    Rule(
        FAMILY,
        "_deterministic_loss",
        Verdict.DROPPED,
        "a switch for RLlib's own tests",
        old_target="training._deterministic_loss",
        algorithms=SAC,
        convert=_on_old("_deterministic_loss"),
        value=v.FLAG,
    ),
    Rule(
        FAMILY,
        "_use_beta_distribution",
        Verdict.DROPPED,
        "the Beta distribution runs on the old API stack only",
        old_target="training._use_beta_distribution",
        value=v.FLAG,
        algorithms=SAC,
        needs_old=bool,
    ),
    *dropped(
        FAMILY,
        "use_state_preprocessor",
        "the model config says what comes before the heads",
        algorithms=SAC,
    ),
    *dropped(FAMILY, "policy", "there is one kind of policy", algorithms=("SAC",)),
)
