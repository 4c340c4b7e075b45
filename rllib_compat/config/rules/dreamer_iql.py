"""DreamerV3 and IQL, which never had a legacy form."""

from __future__ import annotations

from rllib_compat.config.rule import dropped, kept
from rllib_compat.config.values import common as v
from rllib_compat.config.values.kinds import Words

FAMILY = "dreamer_iql"
DREAMER = ("DreamerV3",)
MODEL_SIZE = Words(("nano", "micro", "mini", "XXS", "XS", "S", "M", "L", "XL"))

RULES = (
    *kept(
        FAMILY,
        "training",
        {
            MODEL_SIZE: "model_size",
            v.AMOUNT: "training_ratio entropy_scale intrinsic_rewards_scale",
            v.SCHEDULED_RATE: "world_model_lr actor_lr critic_lr",
            v.LENGTH: "batch_size_B batch_length_T horizon_H",
            v.SHARE: "gae_lambda return_normalization_decay",
            v.FLAG: "train_critic train_actor use_float16 use_curiosity",
            v.BOUND: "world_model_grad_clip_by_global_norm critic_grad_clip_by_global_norm "
            "actor_grad_clip_by_global_norm",
            v.FLAG | v.AUTO: "symlog_obs",
        },
        algorithms=DREAMER,
    ),
    *kept(
        FAMILY,
        "reporting",
        {
            v.FLAG: "report_individual_batch_item_stats report_dream_data report_images_and_videos",
        },
        algorithms=DREAMER,
    ),
    *dropped(
        FAMILY,
        "gc_frequency_train_steps",
        "collected garbage of TensorFlow until Ray 2.48",
        algorithms=DREAMER,
    ),
    *kept(
        FAMILY,
        "training",
        {v.SHARE: "expectile", v.SCHEDULED_RATE: "value_lr"},
        algorithms=("IQL",),
    ),
)
