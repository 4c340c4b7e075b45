"""DreamerV3 and IQL, which never had a legacy form."""

from __future__ import annotations

from rllib_compat.config.rule import dropped, kept

FAMILY = "dreamer_iql"
DREAMER = ("DreamerV3",)

RULES = (
    *kept(
        FAMILY,
        "training",
        "model_size training_ratio world_model_lr actor_lr critic_lr batch_size_B batch_length_T "
        "horizon_H gae_lambda entropy_scale return_normalization_decay train_critic train_actor "
        "intrinsic_rewards_scale world_model_grad_clip_by_global_norm "
        "critic_grad_clip_by_global_norm actor_grad_clip_by_global_norm symlog_obs use_float16 "
        "use_curiosity",
        algorithms=DREAMER,
    ),
    *kept(
        FAMILY,
        "reporting",
        "report_individual_batch_item_stats report_dream_data report_images_and_videos",
        algorithms=DREAMER,
    ),
    *dropped(
        FAMILY,
        "gc_frequency_train_steps",
        "collected garbage of TensorFlow until Ray 2.48",
        algorithms=DREAMER,
    ),
    *kept(FAMILY, "training", "expectile value_lr", algorithms=("IQL",)),
)
