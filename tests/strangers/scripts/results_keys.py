"""The keys of a result that people's scripts read, after two iterations."""

import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer

ray.init()
trainer = PPOTrainer(
    env="CartPole-v0",
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 100,
        "train_batch_size": 100,
        "sgd_minibatch_size": 50,
        "num_sgd_iter": 1,
        "kl_coeff": 0.3,
    },
)
first = trainer.train()
result = trainer.train()
coefficients = []
for told in (first, result):
    learner = told["info"]["learner"]["default_policy"]
    coefficients.append(learner.get("learner_stats", learner)["cur_kl_coeff"])
wanted = [
    "episode_reward_max episode_reward_min episode_reward_mean episode_len_mean hist_stats",
    "episodes_this_iter policy_reward_mean custom_metrics sampler_perf off_policy_estimator",
    "timesteps_total training_iteration time_this_iter_s time_total_s date",
    "timestamp done episodes_total experiment_id config pid hostname node_ip iterations_since_restore",
    "time_since_restore timesteps_since_restore info timers perf policy_reward_min",
]
learner = result["info"]["learner"]["default_policy"]
stats = learner.get("learner_stats", learner)
record(
    missing=[key for line in wanted for key in line.split() if key not in result],
    steps=[first["timesteps_total"], result["timesteps_total"]],
    iterations=[first["training_iteration"], result["iterations_since_restore"]],
    counters=[result["info"]["num_steps_sampled"], result["info"]["num_steps_trained"]],
    stats=sorted(set(stats) & {"kl", "entropy", "vf_loss", "policy_loss", "total_loss", "cur_lr"}),
    kl=[round(float(coefficient), 3) for coefficient in coefficients],
    done=result["done"],
    config=result["config"]["kl_coeff"],
    histories=sorted(result["hist_stats"]),
    same=len(result["hist_stats"]["episode_reward"])
    == len(result["hist_stats"]["episode_lengths"]),
)
trainer.stop()
