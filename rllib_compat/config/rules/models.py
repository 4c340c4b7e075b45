"""Conversions of model configs: MODEL_DEFAULTS became the model config of an RLModule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from packaging.version import Version

from rllib_compat import registry
from rllib_compat.config.rule import Context, Convert, Outcome, Rule, drop, is_off, refuse
from rllib_compat.config.rules.common import for_new_stack, refuse_unless, warn_if_set
from rllib_compat.config.rules.offline import reads_files
from rllib_compat.neutral.report import Severity, Verdict
from rllib_compat.registry import keys
from rllib_compat.runtime.atari import STACKED, atari_settings, is_atari_name, is_registered_name

NEW = "rl_module.model_config"
OLD = "training.model"
#: The releases whose fully connected network ignored `free_log_std`; a checkpoint of Ray 0.7
#: shows only "0.7".
_IGNORED_FREE_LOG_STD = (Version("0.7.5"), Version("0.8.5"))
#: Those without a value branch beside the policy.
_NOTHING_TO_SHARE = tuple(n for root in ("DQN", "SAC", "DDPG") for n in registry.family(root))
#: Sections of SAC's networks → the old stack's argument.
SAC_NETWORKS = {
    "Q_model": "q_model_config",
    "q_model_config": "q_model_config",
    "policy_model": "policy_model_config",
    "policy_model_config": "policy_model_config",
}
_LINEAR = "LinearPolicy"


def free_log_std(value: object, context: Context) -> Outcome:
    """The key, unless the Ray that the config is from ignored it."""
    ray = Version(context.legacy_ray) if context.legacy_ray else None
    first, last = _IGNORED_FREE_LOG_STD
    if value and ray is not None and (ray == Version("0.7") or first <= ray <= last):
        message = f"Ray {ray} ignored it: standard deviations depended on the observation"
        return Outcome({context.target: False}, message=message)
    return Outcome({context.target: value})


def model_config(value: object, _: Context) -> Outcome:
    """A model config of the new stack, a dict or Ray's dataclass."""
    if is_off(value):
        return drop("empty")
    fields = value if isinstance(value, Mapping) else vars(value)
    return Outcome({f"{NEW}.{key}": inner for key, inner in fields.items()})


def lstm_use_prev_action_reward(value: object, context: Context) -> Outcome:
    """One key for two, until Ray 1.2."""
    place = NEW if context.stack == "new" else OLD
    return Outcome({f"{place}.lstm_use_prev_{what}": value for what in ("action", "reward")})


def custom_options(value: object, context: Context) -> Outcome:
    """What `custom_model_config` was called."""
    if context.stack == "old":
        return Outcome({context.target: value}, Verdict.RENAMED)
    return warn_if_set(value, context)


def vf_share_layers(value: object, context: Context) -> Outcome:
    """Whether policy and value function have layers in common."""
    if context.stack == "new" and context.algorithm in _NOTHING_TO_SHARE:
        return drop(f"{context.algorithm}'s networks share no layers, and never read it")
    has_own_key = context.algorithm in ("PPO", "DDPPO", "APPO")
    if has_own_key and isinstance(context.get("vf_share_layers"), bool):
        return drop("`vf_share_layers` itself decides")
    return Outcome({context.target: value})


@for_new_stack
def frames(value: object, context: Context) -> Outcome:
    """What becomes of Atari frames; other environments have none."""
    env = context.get("env")
    if is_registered_name(env) and not is_atari_name(env):
        return Outcome(message="only Atari games have frames")
    key = context.rule.name
    settings = atari_settings({**_stacked(context), key: value})
    return Outcome({context.target: settings[key]}, Verdict.WRAPPED)


def _stacked(context: Context) -> dict[str, Any]:
    """What a model says of how many frames are stacked."""
    return {key: context.get(f"model.{key}") for key in STACKED}


def num_framestacks(value: object, context: Context) -> Outcome:
    """How many frames are stacked, where `framestack` leaves it to this key."""
    settings = atari_settings(_stacked(context))
    if context.stack == "new" and settings.pop("zeros_first", False):
        return Outcome({"env.atari.zeros_first": True, context.target: settings["framestack"]})
    if is_off(value) or value == "auto":
        return Outcome(verdict=Verdict.DROPPED, message="`framestack` decides")
    return Outcome(
        verdict=Verdict.DROPPED,
        severity=Severity.WARNING,
        message="`framestack` decides; only where that is -1, this key did",
        hint="give framestack: -1 for as many frames as this key says",
    )


custom_preprocessor = refuse_unless(
    is_off,
    "there was none",
    "no Ray from 2.0 on takes a custom preprocessor",
    "do it in a gymnasium.ObservationWrapper around the environment",
)
attention_of_marwil = refuse_unless(
    is_off,
    "its network has no attention",
    "the loss of MARWIL and BC asks their network without lengths of sequences, and failed with "
    "attention",
    "set use_lstm, or leave it out",
)


def lstm_of_marwil(value: object, context: Context) -> Outcome:
    """The key, unless the old API stack would read recordings: those bring it no sequences."""
    files = (context.get("input"), context.get("input_"))
    recorded = any(isinstance(file, (str, list)) and reads_files(file) for file in files)
    if value and recorded and context.stack == "old":
        return refuse(
            "the old API stack's loss of MARWIL and BC gets no lengths of sequences with "
            "recordings; Ray 1.13.0 failed with an LSTM, too",
            "leave it out, or the keys that need the old API stack: the new one trains an LSTM",
        )
    return Outcome({context.target: value})


custom_model_of_qmix = refuse_unless(
    is_off,
    "nothing was asked for",
    "a ModelV2 class runs on the old API stack only",
    "write an RLModule, a subclass of rllib_compat.modules.QMIXModule",
)
preprocessor_of_maddpg = refuse_unless(
    lambda value: not value,
    "nothing was asked for",
    "actors and critics see observations as they are, without a network before them",
    "write an RLModule, a subclass of rllib_compat.modules.MADDPGModule",
)


# ES and ARS


def policy_type(value: object, context: Context) -> Outcome:
    """A linear policy is a network without hidden layers."""
    if value == _LINEAR:
        return Outcome({context.target: []}, Verdict.CONVERTED, "a network without hidden layers")
    return drop("fcnet_hiddens has its layers")


def hiddens_of_ars(value: object, context: Context) -> Outcome:
    """Hidden layers, unless the policy is linear."""
    if context.get("policy_type", _LINEAR) in (None, _LINEAR):
        return drop("a linear policy has no hidden layers")
    return Outcome({context.target: value})


# DDPG


def custom_model_of_ddpg(value: object, context: Context) -> Outcome:
    """A model before actor and critics, which only a switch let in."""
    if is_off(value):
        return drop("nothing was asked for")
    if not context.get("use_state_preprocessor"):
        return drop("without `use_state_preprocessor` no network was made of it")
    return refuse(
        "what comes before actor and critics can't be a ModelV2",
        "write an RLModule, a subclass of rllib_compat.modules.DeterministicModule",
    )


# SAC's networks: one shape for policy and critics; only RNNSAC's module, which this package has,
# knows two.


def layers_of_sac(value: object, context: Context) -> Outcome:
    """The layers of one of SAC's networks."""
    section, _, key = context.rule.key.partition(".")
    return _shared(value, context, section, key)


def model_of_rnnsac(value: object, context: Context) -> Outcome:
    """The `ModelV2` of policy or critics; where only the policy has one, critics have layers."""
    outcome = layers_of_sac(value, context)
    of_policy, names = context.rule.key.startswith("policy"), ("Q_model", "q_model_config")
    if is_off(value) or not of_policy or any(context.get(f"{n}.custom_model") for n in names):
        return outcome
    return replace(outcome, settings={**outcome.settings, f"{NEW}.critics.custom_model": None})


def _shared(value: object, context: Context, section: str, key: str) -> Outcome:
    """The policy's, where the config gives both."""
    if context.stack == "old":
        return Outcome({context.target: value}, Verdict.MOVED)
    if value is None:
        return drop("it was left to the default")
    is_critic = not section.startswith("policy")
    policy = "policy_model" if section == "Q_model" else "policy_model_config"
    other = context.get(f"{policy}.{key}", value)
    if not is_critic or other == value:
        return Outcome({context.target: value})
    if context.legacy_algorithm == "RNNSAC":
        own = context.target.replace(NEW, f"{NEW}.critics")
        return Outcome({own: value}, message="the critics have layers of their own")
    return drop(
        f"policy and Q-network have one shape now: the policy's, {other!r}",
        Severity.WARNING,
        "override the catalog of SAC to give them different ones",
    )


def rule_in_network(known: Rule, section: str) -> Rule:
    """The rule of a key of the model config in the section of one of SAC's networks.

    Returns:
        What `model.<key>` may be, and what becomes of it here. Reports name the section's rule.
    """
    new = known.target if known.convert is None and known.target.startswith(NEW) else ""
    inner, place = known.target_on("old"), f"training.{SAC_NETWORKS[section]}"
    old = inner.replace(OLD, place) if inner.startswith(f"{OLD}.") else ""
    return replace(
        known,
        family="sac",
        key=section,
        verdict=Verdict.MOVED if new else Verdict.DROPPED,
        target=new,
        old_target=old,
        convert=_in_network(section, known.name),
    )


def _in_network(section: str, key: str) -> Convert:
    def convert(value: object, context: Context) -> Outcome:
        looks_back = context.stack == "new" and context.legacy_algorithm == "RNNSAC"
        if key.startswith("lstm_use_prev") and value and looks_back:
            message = "policy and critics see the step before, or none"
            return Outcome({context.target: value}, message=message)
        why = _never_read(key, context)
        if key == "use_lstm" and why and value:
            return refuse(why, "train RNNSAC")
        if context.stack == "old" and context.target:
            return Outcome({context.target: value}, Verdict.MOVED)
        if context.stack == "new" and context.target and not why:
            return _shared(value, context, section, key)
        by_itself = is_off(value) or keys.was_default(f"model.{key}", value, "SAC")
        return drop(
            why or "the networks of policy and critics have no such setting",
            Severity.INFO if by_itself else Severity.WARNING,
        )

    return convert


def _never_read(key: str, context: Context) -> str:
    """Why a network does not read a key that the model config has; empty: it does."""
    if key == "max_seq_len":
        return "`model.max_seq_len` says how long sequences are"
    remembers = context.legacy_algorithm == "RNNSAC" or "lstm" not in key
    return "" if remembers else "only RNNSAC has LSTMs in its networks"
