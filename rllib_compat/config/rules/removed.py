"""Keys of algorithms that Ray removed, and that no other algorithm reads."""

from __future__ import annotations

from rllib_compat.config.rule import Rule, dropped

FAMILY = "removed"

KEYS = {
    "AlphaZero": "mcts_config ranked_rewards",
    "MAML": "inner_adaptation_steps maml_optimizer_steps inner_lr use_meta_env",
    "MBMPO": "dynamics_model custom_vector_env num_maml_steps",
    "Dreamer": (
        "td_model_lr discount dreamer_train_iters batch_length imagine_horizon free_nats "
        "prefill_timesteps explore_noise dreamer_model"
    ),
    "SlateQ": (
        "lr_choice_model lr_q_model slateq_strategy recsim_embedding_size "
        "fcnet_hiddens_per_candidate rmsprop_epsilon"
    ),
    "AlphaStar": (
        "replay_buffer_capacity replay_buffer_replay_ratio league_builder_config "
        "max_num_policies_to_train sample_wait_timeout learn_wait_timeout "
        "max_requests_in_flight_per_learner_worker timeout_s_learner_manager"
    ),
    "DT": (
        "target_return embed_dim num_layers num_heads embed_pdrop resid_pdrop attn_pdrop "
        "loss_coef_actions loss_coef_obs loss_coef_returns_to_go"
    ),
}

#: Keys that DDPG has, too, which this package trains.
SHARED = {("SlateQ",): "use_huber huber_threshold"}


def _rules() -> tuple[Rule, ...]:
    own = (
        rule
        for algorithm, keys in KEYS.items()
        for rule in dropped(FAMILY, keys, f"{algorithm} is gone, and its key with it")
    )
    shared = (
        rule
        for algorithms, keys in SHARED.items()
        for rule in dropped(
            FAMILY, keys, "its algorithm is gone, and the key with it", algorithms=algorithms
        )
    )
    return (*own, *shared)


RULES = _rules()
