"""A recurrent `ModelV2` of somebody's own, for old Rays and for today's."""

import numpy as np
import torch
from ray.rllib.models.torch.recurrent_net import RecurrentNetwork


class Remembering(RecurrentNetwork, torch.nn.Module):
    """A GRU, and a layer behind it."""

    def __init__(self, seen, actions, outputs, config, name):
        torch.nn.Module.__init__(self)
        super().__init__(seen, actions, outputs, config, name)
        self.cell = torch.nn.GRU(int(np.prod(seen.shape)), 6, batch_first=True)
        self.last = torch.nn.Linear(6, outputs)
        self.value = torch.nn.Linear(6, 1)

    def get_initial_state(self):
        return [self.last.weight.new_zeros(6)]

    def forward_rnn(self, inputs, state, seq_lens):
        self._seen, (after,) = self.cell(inputs, state[0][None])
        return self.last(self._seen), [after]

    def value_function(self):
        return self.value(self._seen).reshape(-1)
