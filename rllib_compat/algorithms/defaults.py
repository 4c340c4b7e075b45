"""What the configs of these algorithms start from, where that is not what all configs do.

These are the defaults of the last Ray that had them, which are in the table of legacy keys; here
are the names that they have today, and what that Ray had no setting for. The translation of a
config reads them, too, and needs no Ray for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rllib_compat.registry import keys

#: The last Ray that had them; RNNSAC's config was there for longer.
_LAST, _LAST_RNNSAC = "2.10.0", "2.35.0"

#: Keys with other names today.
_RENAMED = {
    "grad_norm_clipping": "grad_clip",
    "max_requests_in_flight_per_sampler_worker": "max_requests_in_flight_per_env_runner",
    "num_envs_per_worker": "num_envs_per_env_runner",
    "num_rollout_workers": "num_env_runners",
    "num_sgd_iter": "num_epochs",
    "optimization.actor_learning_rate": "actor_lr",
    "optimization.critic_learning_rate": "critic_lr",
    "optimization.entropy_learning_rate": "alpha_lr",
    "sgd_minibatch_size": "minibatch_size",
    "shuffle_sequences": "shuffle_batch_per_epoch",
}
#: Keys that are no settings of these configs, or that all configs have a default for.
_NO_SETTINGS = frozenset(
    (
        *("adv_policy", "before_learn_on_batch", "entropy_coeff_schedule", "good_policy"),
        *("lr_schedule", "mini_batch_size_per_learner", "noisy", "num_gpus"),
        *("num_gpus_per_worker", "observation_filter", "offline_sampling", "sample_async"),
        *("simple_optimizer", "tf_single_threaded", "timeout_s_replay_manager"),
        *("timeout_s_sampler_manager", "_deterministic_loss", "_disable_preprocessor_api"),
        "_use_beta_distribution",
    )
)


def _defaults(
    algorithm: str, without: str = "", release: str = _LAST, **own: object
) -> dict[str, Any]:
    """The defaults of an algorithm by their current names; those in `own` had no key.

    Keys in `without` are no settings of its config here.
    """
    left_out = {*_NO_SETTINGS, *without.split()}
    return {
        **{
            _RENAMED.get(key, key): default
            for key, default in keys.defaults(algorithm, release).items()
            if key not in left_out and (key in _RENAMED or "." not in key)
        },
        **own,
    }


def _section(algorithm: str, name: str) -> dict[str, Any]:
    """The defaults of the keys of a section of an algorithm's config."""
    found = keys.defaults(algorithm, _LAST).items()
    return {k.partition(".")[2]: value for k, value in found if k.startswith(f"{name}.")}


def _buffer(algorithm: str, *, prioritized: bool = True) -> dict[str, Any]:
    """A replay buffer of the installed Ray with the size and the exponents of an old one."""
    old = _section(algorithm, "replay_buffer_config")
    if not prioritized:
        return {"type": "EpisodeReplayBuffer", "capacity": old["capacity"]}
    return {
        "type": "PrioritizedEpisodeReplayBuffer",
        "capacity": old["capacity"],
        "alpha": old["prioritized_replay_alpha"],
        "beta": old["prioritized_replay_beta"],
    }


def _buffer_capacity(algorithm: str) -> int:
    capacity: int = _section(algorithm, "replay_buffer_config")["capacity"]
    return capacity


def _epsilon(algorithm: str) -> list[list[float]]:
    """The schedule of how often an algorithm acts at random."""
    old = _section(algorithm, "exploration_config")
    return [[0, old["initial_epsilon"]], [old["epsilon_timesteps"], old["final_epsilon"]]]


def _ddpg(algorithm: str, **own: Any) -> dict[str, Any]:
    settings = {
        "exploration_noise": _section("DDPG", "exploration_config"),
        "parameter_noise": None,
        "replay_buffer_config": _buffer(algorithm, prioritized=algorithm != "TD3"),
    }
    return _defaults(algorithm, "lr adam_epsilon", **{**settings, **own})


#: Sequences are drawn evenly; these say how they are drawn otherwise.
_PRIORITIES: Mapping[str, Any] = {
    "prioritized_replay": False,
    "prioritized_replay_alpha": 0.6,
    "prioritized_replay_beta": 0.4,
    "prioritized_replay_eps": 1e-6,
}

_OF_APEX, _BUFFER_OF_APEX = _section("APEX", "optimizer"), _section("APEX", "replay_buffer_config")
#: What distributed replay adds to DQN and DDPG.
_DISTRIBUTED: Mapping[str, Any] = {
    "debug_replay": _OF_APEX["debug"],
    "max_requests_in_flight_per_env_runner": 2,
    "max_requests_in_flight_per_replay_worker": None,
    "max_weight_sync_delay": _OF_APEX["max_weight_sync_delay"],
    "num_replay_buffer_shards": _OF_APEX["num_replay_buffer_shards"],
    "per_worker_exploration": True,
    **{
        key: _BUFFER_OF_APEX[key]
        for key in ("prioritized_replay_eps", "replay_buffer_shards_colocated_with_driver")
    },
}

#: What linear bandits explore with, and how they begin.
_BANDIT: Mapping[str, Any] = {"alpha": 1.0, "lambda_": None}

#: Algorithm → attribute of its config → default.
DEFAULTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        **{name: _defaults(name) for name in ("A2C", "ARS", "DDPPO", "ES", "PG")},
        "A3C": _defaults("A3C", microbatch_size=None),
        "APEX": _defaults(
            "APEX",
            "hiddens adam_epsilon categorical_distribution_temperature",
            **_DISTRIBUTED,
            epsilon=[[0, 1.0], [10000, 0.02]],
            replay_buffer_config=_buffer("APEX"),
            worker_side_prioritization=True,
        ),
        "APEX_DDPG": _ddpg("APEX_DDPG", **_DISTRIBUTED, worker_side_prioritization=False),
        "BanditLinTS": _defaults("BanditLinTS", **_BANDIT, drawn_from="prior"),
        "BanditLinUCB": _defaults("BanditLinUCB", **_BANDIT),
        "CRR": _defaults("CRR", "num_rollout_workers"),
        "DDPG": _ddpg("DDPG"),
        "MADDPG": _defaults(
            "MADDPG",
            "use_state_preprocessor min_time_s_per_iteration",
            buffer_size=_buffer_capacity("MADDPG"),
        ),
        "QMIX": _defaults(
            "QMIX",
            "adam_epsilon store_buffer_in_checkpoints",
            **{key: _section("QMIX", "model")[key] for key in ("lstm_cell_size", "max_seq_len")},
            buffer_size=_buffer_capacity("QMIX"),
            epsilon=_epsilon("QMIX"),
            num_env_runners=0,
            train_batch_size=32,
        ),
        "R2D2": _defaults(
            "R2D2",
            "num_atoms v_min v_max sigma0 td_error_loss_fn categorical_distribution_temperature "
            "store_buffer_in_checkpoints",
            **_PRIORITIES,
            buffer_size=_buffer_capacity("R2D2"),
            burn_in=0,
            epsilon=_epsilon("R2D2"),
            per_worker_exploration=False,
        ),
        "RNNSAC": _defaults(
            "RNNSAC",
            "store_buffer_in_checkpoints",
            _LAST_RNNSAC,
            **_PRIORITIES,
            buffer_size=1_000_000,
            burn_in=0,
            epsilon=None,
            grad_clip=None,
            num_env_runners=0,
            per_worker_exploration=False,
        ),
        "Random": {"rollouts_per_iteration": 10},
        "TD3": _ddpg(
            "TD3",
            exploration_noise=_section("TD3", "exploration_config"),
            smooth_target_policy=True,
        ),
    }
)

#: Algorithm → field of its model config → default, where that is not what all modules have.
MODEL_DEFAULTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "APEX": {"head_fcnet_hiddens": [256]},
        "DDPPO": {"vf_share_layers": False},
        "RNNSAC": {"fcnet_activation": "relu"},
    }
)
