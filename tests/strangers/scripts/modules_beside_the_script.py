"""A script whose environment, callbacks and model are in modules beside it, used by a worker."""

import ray
from facts import record
from harbour import tides
from harbour.docks import Docks
from harbour.notes import Notes, Small
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.models import ModelCatalog
from ray.tune.registry import register_env

register_env("docks", lambda config: Docks(config))
ModelCatalog.register_custom_model("small", Small)
ray.init(num_cpus=4)
trainer = PPOTrainer(
    env="docks",
    config={
        "num_workers": 1,
        "framework": "torch",
        "env_config": {"length": 8},
        "callbacks": Notes,
        "rollout_fragment_length": 40,
        "train_batch_size": 40,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 1,
        "model": {"custom_model": "small", "custom_model_config": {"units": 5}},
    },
)
result = trainer.train()
record(
    high=tides.height(3),
    worker=result["custom_metrics"]["by_worker_max"],
    hours=result["custom_metrics"]["hours_mean"],
    reward=result["episode_reward_mean"],
    episodes=result["episodes_this_iter"],
    shapes={n: list(w.shape) for n, w in trainer.get_policy().get_weights().items()},
)
trainer.stop()
