"""Callbacks and a model of a project, in a module of their own."""

import torch
from ray.rllib.agents.callbacks import DefaultCallbacks
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2


class Notes(DefaultCallbacks):
    def on_episode_end(self, *, worker, base_env, policies, episode, **kwargs):
        info = episode.last_info_for() or {}
        episode.custom_metrics["by_worker"] = info.get("w", -1)
        episode.custom_metrics["hours"] = episode.length


class Small(TorchModelV2, torch.nn.Module):
    def __init__(self, obs_space, action_space, num_outputs, model_config, name, units=2):
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        torch.nn.Module.__init__(self)
        self.inner = torch.nn.Linear(obs_space.shape[0], units)
        self.out = torch.nn.Linear(units, num_outputs)
        self.worth = torch.nn.Linear(units, 1)

    def forward(self, input_dict, state, seq_lens):
        self.last = torch.tanh(self.inner(input_dict["obs_flat"].float()))
        return self.out(self.last), state

    def value_function(self):
        return self.worth(self.last).squeeze(1)
