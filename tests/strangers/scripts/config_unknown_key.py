"""A key that no Ray had is an error that names it, as it was."""

import ray
from facts import record
from ray.rllib.agents.ppo import PPOTrainer

ray.init()
try:
    PPOTrainer(env="CartPole-v0", config={"num_workers": 0, "clip_parm": 0.3})
    said = ""
except Exception as error:
    said = str(error)
record(named="clip_parm" in said)
