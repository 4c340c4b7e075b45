"""The `model` section: MODEL_DEFAULTS became the model config of an RLModule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from rllib_compat import registry
from rllib_compat.config.context import Context
from rllib_compat.config.rule import (
    UNREAD,
    Outcome,
    Rule,
    drop_aloud,
    dropped,
    empty_section,
    needless,
)
from rllib_compat.config.values import common as v
from rllib_compat.config.values.containers import Config
from rllib_compat.config.values.kinds import Kind, Whole, Words
from rllib_compat.neutral.report import Severity, Verdict
from rllib_compat.runtime.atari import atari_settings
from rllib_compat.runtime.atari_names import is_atari_name, is_registered_name

FAMILY = "model"
NEW = "rl_module.model_config"
OLD = "training.model"

SAME: Mapping[Kind, str] = {
    v.LAYERS: "fcnet_hiddens",
    v.ACTIVATION: "fcnet_activation conv_activation",
    v.CONV_FILTERS: "conv_filters",
    v.INITIALIZER: "fcnet_bias_initializer conv_kernel_initializer conv_bias_initializer "
    "lstm_bias_initializer",
    v.BOUND: "log_std_clip_param",
    v.FLAG: "use_lstm lstm_use_prev_action lstm_use_prev_reward",
    v.LENGTH: "max_seq_len",
    v.CELL: "lstm_cell_size",
}

RENAMES: Mapping[Kind, Mapping[str, str]] = {
    v.LAYERS: {"post_fcnet_hiddens": "head_fcnet_hiddens"},
    v.ACTIVATION: {"post_fcnet_activation": "head_fcnet_activation"},
    v.INITIALIZER: {
        "fcnet_weights_initializer": "fcnet_kernel_initializer",
        "post_fcnet_weights_initializer": "head_fcnet_kernel_initializer",
        "post_fcnet_bias_initializer": "head_fcnet_bias_initializer",
        "lstm_weights_initializer": "lstm_kernel_initializer",
    },
    v.INITIALIZER_ARGUMENTS: {
        "fcnet_weights_initializer_config": "fcnet_kernel_initializer_kwargs",
        "fcnet_bias_initializer_config": "fcnet_bias_initializer_kwargs",
        "conv_kernel_initializer_config": "conv_kernel_initializer_kwargs",
        "conv_bias_initializer_config": "conv_bias_initializer_kwargs",
        "post_fcnet_weights_initializer_config": "head_fcnet_kernel_initializer_kwargs",
        "post_fcnet_bias_initializer_config": "head_fcnet_bias_initializer_kwargs",
        "lstm_weights_initializer_config": "lstm_kernel_initializer_kwargs",
        "lstm_bias_initializer_config": "lstm_bias_initializer_kwargs",
    },
}

# What only today's DefaultModelConfig has.
NEWER: Mapping[Kind, str] = {
    v.LAYERS: "head_fcnet_hiddens fusionnet_hiddens",
    v.ACTIVATION: "head_fcnet_activation fusionnet_activation",
    v.INITIALIZER: "fcnet_kernel_initializer head_fcnet_kernel_initializer "
    "head_fcnet_bias_initializer lstm_kernel_initializer fusionnet_kernel_initializer "
    "fusionnet_bias_initializer",
    v.INITIALIZER_ARGUMENTS: "fcnet_kernel_initializer_kwargs fcnet_bias_initializer_kwargs "
    "conv_kernel_initializer_kwargs conv_bias_initializer_kwargs "
    "head_fcnet_kernel_initializer_kwargs head_fcnet_bias_initializer_kwargs "
    "lstm_kernel_initializer_kwargs lstm_bias_initializer_kwargs "
    "fusionnet_kernel_initializer_kwargs fusionnet_bias_initializer_kwargs",
    v.FLAG: "fcnet_use_layernorm head_fcnet_use_layernorm",
}

ATTENTION: Mapping[Kind, str] = {
    v.CELL: "attention_dim attention_head_dim attention_position_wise_mlp_dim",
    Whole(1, ample=256): "attention_num_transformer_units attention_num_heads",
    v.LENGTH: "attention_memory_inference attention_memory_training",
    v.NUMBER: "attention_init_gru_gate_bias",
    v.FLAG | Whole(0, ample=1024): "attention_use_n_prev_actions attention_use_n_prev_rewards",
}

INNER: Mapping[Kind, str] = {
    v.FLAG: "_time_major _disable_preprocessor_api _disable_action_flattening always_check_shapes",
    v.CELL: "encoder_latent_dim",
    v.INITIALIZER: "conv_transpose_kernel_initializer conv_transpose_bias_initializer",
    v.INITIALIZER_ARGUMENTS: "conv_transpose_kernel_initializer_config "
    "conv_transpose_bias_initializer_config",
}

# The one action distribution that the old models know by a word (Ray 0.8 – 2.x).
DISTRIBUTION = Words(("deterministic",))

ATARI = {
    "dim": "frames are scaled to 84, or to `dim`",
    "grayscale": "the DeepMind wrappers make frames gray, RLlib's own preprocessing if it is told",
    "zero_mean": "RLlib's own preprocessing shifts pixels, the DeepMind wrappers do not",
    "framestack": "frames are stacked by the DeepMind wrappers",
    "num_framestacks": "frames are stacked by the DeepMind wrappers",
    "extra_frameskip": "the DeepMind wrappers skip frames",
}


#: The releases whose fully connected network did not know of `free_log_std`; a checkpoint of Ray
#: 0.7 tells no more than that.
_IGNORED_FREE_LOG_STD = (Version("0.7.5"), Version("0.8.5"))


#: Those without a value branch beside the policy.
NOTHING_TO_SHARE = (
    *registry.family("DQN"),
    *registry.family("SAC"),
    *registry.family("DDPG"),
)


def _free_log_std(value: Any, context: Context) -> Outcome:
    """The key, unless the Ray that the config is from ignored it."""
    home = OLD if context.stack == "old" else NEW
    ray = Version(context.legacy_ray) if context.legacy_ray else None
    first, last = _IGNORED_FREE_LOG_STD
    if value and ray is not None and (ray == Version("0.7") or first <= ray <= last):
        return Outcome(
            {f"{home}.free_log_std": False},
            message=f"Ray {ray} ignored it: standard deviations depended on the observation",
        )
    return Outcome({f"{home}.free_log_std": value})


def _whole(value: Any, _: Context) -> Outcome:
    """A model config of the new stack, a dict or Ray's dataclass."""
    if needless(value):
        return Outcome(verdict=Verdict.DROPPED, message="empty")
    fields = value if isinstance(value, Mapping) else vars(value)
    return Outcome({f"{NEW}.{key}": inner for key, inner in fields.items()})


def _prev_action_reward(value: Any, context: Context) -> Outcome:
    place = NEW if context.stack == "new" else OLD
    return Outcome({f"{place}.lstm_use_prev_{what}": value for what in ("action", "reward")})


def _custom_options(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({f"{OLD}.custom_model_config": value}, Verdict.RENAMED)
    return drop_aloud(value, context)


def _shared_layers(value: Any, context: Context) -> Outcome:
    if context.stack == "new" and context.algorithm in NOTHING_TO_SHARE:
        message = f"{context.algorithm}'s networks share no layers, and never read it"
        return Outcome(verdict=Verdict.DROPPED, message=message)
    if context.algorithm in ("PPO", "DDPPO", "APPO") and isinstance(
        context.get("vf_share_layers"), bool
    ):
        return Outcome(verdict=Verdict.DROPPED, message="`vf_share_layers` itself decides")
    return Outcome({f"{NEW if context.stack == 'new' else OLD}.vf_share_layers": value})


def _squash(value: Any, _: Context) -> Outcome:
    return Outcome({"environment.normalize_actions": bool(value)})


def _refused_always(value: Any, _: Context) -> Outcome:
    if needless(value):
        return Outcome(verdict=Verdict.DROPPED, message="there was none")
    return Outcome(
        verdict=Verdict.REFUSED,
        severity=Severity.ERROR,
        message="no Ray from 2.0 on takes a custom preprocessor",
        hint="do it in a gymnasium.ObservationWrapper around the environment",
    )


def _old_only(key: str, why: str, **options: Any) -> Rule:
    return Rule(
        FAMILY,
        f"model.{key}",
        Verdict.DROPPED,
        why,
        old_target=f"{OLD}.{key}",
        **options,
    )


def _frames(value: Any, context: Context) -> Outcome:
    """What becomes of Atari frames; other environments have none."""
    key = context.path.rpartition(".")[2]
    if context.stack == "old":
        return Outcome({f"{OLD}.{key}": value}, Verdict.KEPT)
    env = context.get("env")
    if is_registered_name(env) and not is_atari_name(env):
        return Outcome(message="only Atari games have frames")
    told = atari_settings({key: value})
    return Outcome({f"env.atari.{key}": told[key]}, Verdict.WRAPPED)


def _drop_unless_old(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({f"{OLD}.{context.path.rpartition('.')[2]}": value}, Verdict.KEPT)
    return drop_aloud(value, context)


RULES = (
    Rule(
        FAMILY,
        "model",
        Verdict.MOVED,
        "the model's keys stand in rl_module(model_config=)",
        target=NEW,
        old_target=OLD,
        section=True,
        convert=empty_section,
        value=v.SECTION,
    ),
    *(
        Rule(
            FAMILY,
            f"model.{key}",
            Verdict.MOVED,
            target=f"{NEW}.{key}",
            old_target=f"{OLD}.{key}",
            value=value,
        )
        for value, names in SAME.items()
        for key in names.split()
    ),
    *(
        Rule(
            FAMILY,
            f"model.{old}",
            Verdict.RENAMED,
            target=f"{NEW}.{new}",
            old_target=f"{OLD}.{old}",
            value=value,
        )
        for value, pairs in RENAMES.items()
        for old, new in pairs.items()
    ),
    *(
        Rule(
            FAMILY,
            f"model.{key}",
            Verdict.MOVED,
            target=f"{NEW}.{key}",
            old_target="",
            value=value,
        )
        for value, names in NEWER.items()
        for key in names.split()
    ),
    *(
        Rule(
            FAMILY,
            key,
            Verdict.RENAMED,
            "kept by Ray under this name",
            target=NEW,
            old_target="",
            convert=_whole,
            value=Config("model", raw=True),
        )
        for key in ("_model_config", "_model_config_dict")
    ),
    Rule(
        FAMILY,
        "model.free_log_std",
        Verdict.MOVED,
        "the fully connected networks of Ray 0.7.5 – 0.8.5 ignored it",
        target=f"{NEW}.free_log_std",
        old_target=f"{OLD}.free_log_std",
        convert=_free_log_std,
        value=v.FLAG,
    ),
    Rule(
        FAMILY,
        "model.vf_share_layers",
        Verdict.MOVED,
        "until Ray 1.2, PPO's own key decided",
        target=f"{NEW}.vf_share_layers",
        old_target=f"{OLD}.vf_share_layers",
        convert=_shared_layers,
        value=v.FLAG,
    ),
    Rule(
        FAMILY,
        "model.lstm_use_prev_action_reward",
        Verdict.CONVERTED,
        "two keys since Ray 1.2",
        target=f"{NEW}.lstm_use_prev_action",
        convert=_prev_action_reward,
        value=v.FLAG,
    ),
    _old_only(
        "custom_model",
        "a ModelV2 class runs on the old API stack only",
        needs_old=lambda value: not needless(value),
        hint="rewrite it as an RLModule, or pass api_stack='old'",
        value=v.CODE,
    ),
    _old_only(
        "custom_model_config",
        "arguments of `custom_model`",
        convert=_drop_unless_old,
        value=v.ARGUMENTS,
    ),
    Rule(
        FAMILY,
        "model.custom_options",
        Verdict.DROPPED,
        "arguments of `custom_model`",
        old_target=f"{OLD}.custom_model_config",
        convert=_custom_options,
        value=v.ARGUMENTS,
    ),
    _old_only(
        "custom_action_dist",
        "an action distribution of the old models runs on the old API stack only",
        needs_old=lambda value: not needless(value),
        hint="give it as the RLModule's action_dist_cls, or pass api_stack='old'",
        value=DISTRIBUTION | v.CODE,
    ),
    Rule(
        FAMILY,
        "model.custom_preprocessor",
        Verdict.REFUSED,
        "custom preprocessors are gone",
        convert=_refused_always,
        value=v.CODE,
    ),
    _old_only(
        "use_attention",
        "the new API stack has no attention nets (GTrXL)",
        needs_old=bool,
        hint="pass api_stack='old', or write the net as an RLModule",
        value=v.FLAG,
    ),
    *(
        _old_only(key, "a key of the attention net", value=value)
        for value, names in ATTENTION.items()
        for key in names.split()
    ),
    *(
        Rule(
            FAMILY,
            f"model.{key}",
            Verdict.WRAPPED,
            ATARI[key],
            target=f"env.atari.{key}",
            old_target=f"{OLD}.{key}",
            convert=_frames,
            value=value,
        )
        for key, value in (
            ("dim", Whole(1, ample=4096)),
            ("framestack", v.FLAG),
            ("grayscale", v.FLAG),
            ("zero_mean", v.FLAG),
        )
    ),
    *(
        Rule(FAMILY, f"model.{key}", Verdict.DROPPED, ATARI[key], convert=drop_aloud, value=UNREAD)
        for key in ("num_framestacks", "extra_frameskip")
    ),
    Rule(
        FAMILY,
        "model.squash_to_range",
        Verdict.MOVED,
        "actions are squashed into the space's bounds by the env runner",
        target="environment.normalize_actions",
        convert=_squash,
        value=v.FLAG,
    ),
    _old_only(
        "no_final_linear",
        "RLModules always end in a linear layer",
        convert=_drop_unless_old,
        value=v.FLAG,
    ),
    *(
        _old_only(key, "an inner switch of the old models", value=value)
        for value, names in INNER.items()
        for key in names.split()
    ),
    *dropped(
        FAMILY,
        "model.channel_major model.state_shape model._use_default_native_models",
        "an inner switch of the old models",
    ),
)
