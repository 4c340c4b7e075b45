"""What the configs of these algorithms start from, where that is not what all configs do.

The defaults of the last Ray that had them (2.10). The translation of a config reads them, too, and
needs no Ray for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_BANDIT: Mapping[str, Any] = {
    "min_sample_timesteps_per_iteration": 100,
    "rollout_fragment_length": 1,
    "train_batch_size": 1,
}

_DDPG: Mapping[str, Any] = {
    "actor_hidden_activation": "relu",
    "actor_hiddens": [400, 300],
    "actor_lr": 0.001,
    "critic_hidden_activation": "relu",
    "critic_hiddens": [400, 300],
    "critic_lr": 0.001,
    "exploration_noise": {
        "type": "OrnsteinUhlenbeckNoise",
        "random_timesteps": 1000,
        "ou_base_scale": 0.1,
        "ou_theta": 0.15,
        "ou_sigma": 0.2,
        "initial_scale": 1.0,
        "final_scale": 0.02,
        "scale_timesteps": 10000,
    },
    "huber_threshold": 1.0,
    "l2_reg": 1e-6,
    "min_sample_timesteps_per_iteration": 1000,
    "n_step": 1,
    "num_steps_sampled_before_learning_starts": 1500,
    "policy_delay": 1,
    "replay_buffer_config": {
        "type": "PrioritizedEpisodeReplayBuffer",
        "capacity": 50000,
        "alpha": 0.6,
        "beta": 0.4,
    },
    "rollout_fragment_length": "auto",
    "smooth_target_policy": False,
    "store_buffer_in_checkpoints": False,
    "target_network_update_freq": 0,
    "target_noise": 0.2,
    "target_noise_clip": 0.5,
    "tau": 0.002,
    "train_batch_size": 256,
    "training_intensity": None,
    "twin_q": False,
    "use_huber": False,
    "use_state_preprocessor": False,
}

#: Algorithm → attribute of its config → default.
DEFAULTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "A2C": {
            "entropy_coeff": 0.01,
            "grad_clip": 40.0,
            "lambda_": 1.0,
            "lr": 0.0001,
            "microbatch_size": None,
            "min_time_s_per_iteration": 10,
            "num_env_runners": 2,
            "rollout_fragment_length": "auto",
            "use_critic": True,
            "use_gae": True,
            "vf_loss_coeff": 0.5,
        },
        "ARS": {
            "action_noise_std": 0.0,
            "eval_prob": 0.03,
            "noise_size": 250_000_000,
            "noise_stdev": 0.02,
            "num_env_runners": 2,
            "num_rollouts": 32,
            "offset": 0,
            "report_length": 10,
            "rollouts_used": 32,
            "sgd_stepsize": 0.01,
        },
        "CRR": {
            "actor_hidden_activation": "relu",
            "actor_hiddens": [256, 256],
            "actor_lr": 0.0003,
            "advantage_type": "mean",
            "categorical_distribution_temperature": 1.0,
            "critic_hidden_activation": "relu",
            "critic_hiddens": [256, 256],
            "critic_lr": 0.0003,
            "max_weight": 20.0,
            "min_time_s_per_iteration": 10.0,
            "n_action_sample": 4,
            "target_network_update_freq": None,
            "tau": 0.005,
            "td_error_loss_fn": "mse",
            "temperature": 1.0,
            "train_batch_size": 128,
            "twin_q": True,
            "weight_type": "bin",
        },
        "BanditLinTS": _BANDIT,
        "BanditLinUCB": _BANDIT,
        "ES": {
            "action_noise_std": 0.01,
            "episodes_per_batch": 1000,
            "eval_prob": 0.03,
            "l2_coeff": 0.005,
            "noise_size": 250_000_000,
            "noise_stdev": 0.02,
            "num_env_runners": 10,
            "report_length": 10,
            "stepsize": 0.01,
            "train_batch_size": 10_000,
        },
        "DDPG": _DDPG,
        "PG": {
            "lr": 0.0004,
            "rollout_fragment_length": "auto",
            "train_batch_size": 200,
        },
        "QMIX": {
            "double_q": True,
            "grad_clip": 10.0,
            "lr": 0.0005,
            "batch_mode": "complete_episodes",
            "min_sample_timesteps_per_iteration": 1000,
            "min_time_s_per_iteration": 1,
            "mixer": "qmix",
            "mixing_embed_dim": 32,
            "num_env_runners": 0,
            "num_steps_sampled_before_learning_starts": 1000,
            "optim_alpha": 0.99,
            "optim_eps": 1e-5,
            "rollout_fragment_length": 4,
            "target_network_update_freq": 500,
            "tau": 1.0,
            "train_batch_size": 32,
        },
        "Random": {},
        "TD3": {
            **_DDPG,
            "exploration_noise": {
                "type": "GaussianNoise",
                "random_timesteps": 10000,
                "stddev": 0.1,
                "initial_scale": 1.0,
                "final_scale": 1.0,
                "scale_timesteps": 1,
            },
            "l2_reg": 0.0,
            "num_steps_sampled_before_learning_starts": 10000,
            "policy_delay": 2,
            "replay_buffer_config": {"type": "EpisodeReplayBuffer", "capacity": 1000000},
            "smooth_target_policy": True,
            "tau": 0.005,
            "train_batch_size": 100,
            "twin_q": True,
        },
    }
)
