"""SimpleQ with epsilon over steps."""

import ray
from facts import record
from ray.rllib.agents.dqn import SimpleQTrainer

ray.init()
trainer = SimpleQTrainer(
    env="CartPole-v0",
    config={
        "num_workers": 0,
        "framework": "torch",
        "learning_starts": 20,
        "train_batch_size": 8,
        "timesteps_per_iteration": 40,
        "rollout_fragment_length": 4,
        "buffer_size": 100,
        "target_network_update_freq": 20,
        "model": {"fcnet_hiddens": [8]},
        "exploration_config": {"epsilon_timesteps": 50, "final_epsilon": 0.3},
    },
)
result = trainer.train()
record(
    enough=result["timesteps_total"] >= 40,
    reward=result["episode_reward_mean"] > 0,
    weights=sorted(w.shape for w in trainer.get_policy().get_weights().values())[-1],
)
trainer.stop()
