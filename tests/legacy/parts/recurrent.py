"""What the losses of QMIX of Ray 1.13.0 compute."""

import gym
import numpy as np
import torch
from ray.rllib.agents.qmix.mixers import QMixer
from ray.rllib.agents.qmix.model import RNNModel
from ray.rllib.agents.qmix.qmix_policy import QMixLoss
from ray.rllib.policy.sample_batch import SampleBatch

#: The column of what has ended, which changed its name.
ENDED = getattr(SampleBatch, "TERMINATEDS", "dones")


def fill(module, scale=0.4):
    """Gives a module weights that anybody can make."""
    state = module.state_dict()
    for index, name in enumerate(sorted(state)):
        if not name.startswith(("target_entropy", "log_alpha")):
            values = torch.sin(torch.arange(state[name].numel()).float() * 1.7 + index)
            state[name] = values.reshape(state[name].shape) * scale
    module.load_state_dict(state)
    return module


def of_qmix(found):
    box, actions = gym.spaces.Box(-1.0, 1.0, (2,), np.float32), gym.spaces.Discrete(3)
    config = {"lstm_cell_size": 4, "n_agents": 2}
    networks = [fill(RNNModel(box, actions, 3, config, "model"), scale) for scale in (0.4, 0.3)]
    mixers = [fill(QMixer(2, (2, 2), 3), scale) for scale in (0.4, 0.3)]
    numbers = torch.sin(torch.arange(48).float()).reshape(2, 2, 3, 2, 2)
    told = {
        "rewards": torch.arange(12).float().reshape(2, 3, 2) / 6,
        "actions": torch.arange(12).reshape(2, 3, 2) % 3,
        "terminated": torch.tensor([[0.0, 0, 1], [0, 0, 0]]).unsqueeze(-1).expand(2, 3, 2),
        "mask": torch.tensor([[1.0, 1, 1], [1, 1, 0]]).unsqueeze(-1).expand(2, 3, 2),
        "obs": numbers[0],
        "next_obs": numbers[1],
        "action_mask": torch.ones(2, 3, 2, 3),
        "next_action_mask": torch.tensor([1.0, 0, 1]).expand(2, 3, 2, 3),
    }
    for name, double, mixed in (("double", True, True), ("plain", False, False)):
        given = dict(told)
        if mixed:
            given.update({key: told[key][..., :1] for key in ("rewards", "terminated", "mask")})
        both = mixers if mixed else [None, None]
        loss = QMixLoss(*networks, *both, 2, 3, double_q=double, gamma=0.9)
        made = loss(**given)
        for index, value in enumerate(made):
            found[f"qmix.{name}.{index}"] = value
        networks[0].zero_grad()
        made[0].backward()
        for key, weight in networks[0].named_parameters():
            found[f"qmix.{name}.gradient.{key}"] = weight.grad.clone()
    try:
        loss(**dict(given, state=numbers[0]))
    except ValueError:
        found["qmix.refused"] = 1


QUESTIONS = (of_qmix,)
