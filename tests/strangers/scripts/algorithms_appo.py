"""APPO with a worker."""

import ray
from facts import record
from ray.rllib.agents.ppo import APPOTrainer

ray.init(num_cpus=4)
trainer = APPOTrainer(
    env="CartPole-v0",
    config={
        "num_workers": 1,
        "framework": "torch",
        "rollout_fragment_length": 20,
        "train_batch_size": 40,
        "num_sgd_iter": 1,
        "min_iter_time_s": 1,
        "num_gpus": 0,
        "use_kl_loss": True,
        "kl_coeff": 0.5,
        "model": {"fcnet_hiddens": [8]},
    },
)
for _ in range(6):
    result = trainer.train()
    if result["info"]["learner"]:
        break
stats = result["info"]["learner"]["default_policy"]
stats = stats.get("learner_stats", stats)
record(
    stats=sorted(set(stats) & {"policy_loss", "vf_loss", "entropy", "cur_lr"}),
    sampled=result["timesteps_total"] > 0,
    reward=result["episode_reward_mean"] > 0,
)
trainer.stop()
