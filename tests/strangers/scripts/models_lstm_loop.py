"""`use_lstm` and a loop of one's own that carries state, last action and last reward."""

import gym
import numpy as np
import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer


class Echo(gym.Env):
    def __init__(self, config=None):
        self.observation_space = gym.spaces.Box(0, 9, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(3)

    def reset(self):
        self.n = 0
        return np.zeros(2, np.float32)

    def step(self, action):
        self.n += 1
        return np.full(2, self.n, np.float32), 1.0, self.n == 6, {}


ray.init()
trainer = PPOTrainer(
    env=Echo,
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 30,
        "train_batch_size": 60,
        "sgd_minibatch_size": 30,
        "num_sgd_iter": 1,
        "model": {
            "use_lstm": True,
            "lstm_cell_size": 5,
            "max_seq_len": 3,
            "lstm_use_prev_action": True,
            "lstm_use_prev_reward": True,
        },
    },
)
result = trainer.train()
env = Echo()
cells = trainer.config["model"]["lstm_cell_size"]
state = [np.zeros(cells, np.float32) for _ in range(2)]
seen, over, last, total, steps = env.reset(), False, (0, 0.0), 0.0, 0
while not over:
    chosen, state, info = trainer.compute_action(
        seen, state=state, prev_action=last[0], prev_reward=last[1], full_fetch=True
    )
    seen, paid, over, _ = env.step(chosen)
    last, total, steps = (chosen, paid), total + paid, steps + 1
record(
    steps=steps,
    total=total,
    state=[np.shape(part) for part in state],
    info=sorted(k for k in info if k in ("action_logp", "vf_preds", "action_dist_inputs")),
    reward=result["episode_reward_mean"],
    initial=[np.shape(s) for s in trainer.get_policy().get_initial_state()],
)
trainer.stop()
