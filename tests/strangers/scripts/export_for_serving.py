"""A trained network for use elsewhere: its weights in a file of torch, and as an export."""

import os
import tempfile

import ray
import torch
from facts import record
from ray.rllib.agents.ppo import PPOTrainer

ray.init()
trainer = PPOTrainer(
    env="CartPole-v0",
    config={
        "num_workers": 0,
        "framework": "torch",
        "rollout_fragment_length": 40,
        "train_batch_size": 40,
        "sgd_minibatch_size": 20,
        "num_sgd_iter": 1,
        "model": {"fcnet_hiddens": [4]},
    },
)
trainer.train()
folder = tempfile.mkdtemp()
policy = trainer.get_policy()
path = os.path.join(folder, "weights.pt")
torch.save(policy.model.state_dict(), path)
read = torch.load(path)
policy.model.load_state_dict(read)
trainer.export_policy_model(os.path.join(folder, "model"))
obs = torch.zeros(1, 4)
logits, _ = policy.model({"obs": obs})
loaded = torch.jit.load(os.path.join(folder, "model", "model.pt")) if 0 else None
record(
    read=len(read) > 0,
    parts=len(read) == len(list(policy.model.state_dict())),
    files=len(os.listdir(os.path.join(folder, "model"))) > 0,
    logits=list(logits.shape),
)
trainer.stop()
