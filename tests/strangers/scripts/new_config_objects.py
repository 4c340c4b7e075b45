"""Configs of Ray 2 as people build, read, copy and freeze them."""

from facts import record
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.algorithms.callbacks import DefaultCallbacks
from ray.rllib.algorithms.dqn import DQNConfig
from ray.rllib.algorithms.impala import ImpalaConfig
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.algorithms.sac import SACConfig
from ray.rllib.policy.policy import PolicySpec
from ray.tune.registry import get_trainable_cls


class Mine(DefaultCallbacks):
    pass


def mapping(agent_id, episode, worker, **kwargs):
    return "a"


config = (
    PPOConfig()
    .environment("CartPole-v1", env_config={"a": 1}, clip_actions=True)
    .framework("torch")
    .training(
        lr=0.01,
        lr_schedule=[[0, 0.01], [100, 0.001]],
        gamma=0.9,
        lambda_=0.8,
        model={"fcnet_hiddens": [8]},
        grad_clip=0.5,
    )
    .rollouts(
        num_rollout_workers=2,
        num_envs_per_worker=3,
        rollout_fragment_length="auto",
        batch_mode="complete_episodes",
    )
    .resources(num_gpus=0, num_cpus_per_worker=1)
    .debugging(seed=3, log_level="ERROR")
    .evaluation(evaluation_interval=2, evaluation_duration=5, evaluation_config={"explore": False})
    .callbacks(Mine)
    .multi_agent(policies={"a", "b"}, policy_mapping_fn=mapping, policies_to_train=["a"])
    .exploration(explore=True)
    .reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=100)
    .fault_tolerance(recreate_failed_workers=True)
)
config["vf_clip_param"] = 7.0
config.entropy_coeff = 0.02
copy = config.copy(copy_frozen=False)
copy.training(gamma=0.5)
copy.freeze()
try:
    copy.gamma = 0.1
    frozen = "changed"
except AttributeError:
    frozen = "AttributeError"
told = config.to_dict()
again = PPOConfig.from_dict(told)
updated = PPOConfig().update_from_dict(
    {
        "num_workers": 3,
        "lambda": 0.5,
        "model": {"fcnet_hiddens": [4]},
        "evaluation_config": {"explore": False},
    }
)
own = PPOConfig().multi_agent(
    policies={
        "p": PolicySpec(config=PPOConfig.overrides(lr=0.5)),
        "q": (None, None, None, {"gamma": 0.1}),
    },
    policy_mapping_fn=lambda a, *x, **k: "p",
)
config.model["fcnet_activation"] = "relu"
config.env_config["b"] = 2
by_name = get_trainable_cls("PPO").get_default_config()
keys = (
    "lr",
    "gamma",
    "lambda",
    "train_batch_size",
    "sgd_minibatch_size",
    "num_sgd_iter",
    "clip_param",
    "kl_coeff",
    "vf_clip_param",
    "entropy_coeff",
    "num_workers",
    "num_envs_per_worker",
    "rollout_fragment_length",
    "batch_mode",
    "framework",
    "seed",
    "env",
    "env_config",
    "evaluation_interval",
    "evaluation_duration",
    "grad_clip",
    "lr_schedule",
    "min_sample_timesteps_per_iteration",
    "explore",
    "recreate_failed_workers",
    "policies_to_train",
)
record(
    told={k: told[k] for k in keys if k in told},
    missing=[k for k in keys if k not in told],
    read=[
        config.gamma,
        config["gamma"],
        config.get("gamma"),
        "gamma" in config,
        config.get("nothing", 5),
        config.lambda_,
        config["lambda"],
    ],
    copied=[copy.gamma, config.gamma, frozen],
    again=[
        again.gamma,
        again.lr,
        again.num_rollout_workers,
        again.entropy_coeff,
        again.is_multi_agent(),
    ],
    updated=[
        updated.num_rollout_workers,
        updated.lambda_,
        updated.model["fcnet_hiddens"],
        updated.model["fcnet_activation"],
        updated.evaluation_config["explore"],
    ],
    policies=sorted(config.policies),
    own=sorted(own.policies),
    changed=[config.to_dict()["model"]["fcnet_activation"], config.to_dict()["env_config"]],
    cls=[config.algo_class is not None, by_name.lr, AlgorithmConfig().algo_class],
    defaults={
        name: {
            k: c().to_dict().get(k)
            for k in (
                "lr",
                "train_batch_size",
                "rollout_fragment_length",
                "num_workers",
                "gamma",
                "buffer_size",
                "target_network_update_freq",
                "tau",
                "n_step",
            )
        }
        for name, c in (
            ("PPO", PPOConfig),
            ("DQN", DQNConfig),
            ("SAC", SACConfig),
            ("IMPALA", ImpalaConfig),
        )
    },
    counts=[config.num_rollout_workers, config.num_envs_per_worker, config.evaluation_config],
    callbacks=config.callbacks_class.__name__,
    ids=PPO.get_default_config().lr,
)
