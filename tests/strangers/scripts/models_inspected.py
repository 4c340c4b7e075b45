"""What people look at in a policy and its model after training."""

import numpy as np
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
        "rollout_fragment_length": 50,
        "train_batch_size": 50,
        "sgd_minibatch_size": 25,
        "num_sgd_iter": 1,
        "model": {"fcnet_hiddens": [6, 5], "fcnet_activation": "relu"},
    },
)
trainer.train()
policy = trainer.get_policy()
model = policy.model
obs = torch.from_numpy(np.zeros((3, 4), np.float32))
logits, _ = model({"obs": obs})
dist = policy.dist_class(logits, model)
actions, _, extra = policy.compute_actions(np.zeros((2, 4)), explore=False)
record(
    logits=list(logits.shape),
    chosen=list(dist.deterministic_sample().shape),
    probabilities=[round(float(p), 3) for p in dist.dist.probs.sum(1)],
    spaces=[type(policy.observation_space).__name__, policy.action_space.n],
    actions=[len(actions), actions[0] in (0, 1)],
    extra={k: np.shape(v) for k, v in extra.items() if k in ("action_dist_inputs", "vf_preds")},
    layers=sorted(list(w.shape) for w in policy.get_weights().values() if w.ndim == 2),
    device=str(next(model.parameters()).device),
    trainable=sum(p.numel() for p in model.parameters() if p.requires_grad),
    lr=policy.config["lr"],
)
trainer.stop()
