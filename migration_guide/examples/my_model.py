"""A custom ModelV2 of RLlib 1.x as an RLModule: `--model my_model:MyModule`."""

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from torch import nn


class MyModule(TorchRLModule, ValueFunctionAPI):
    """One hidden layer; the layers have the names that the ModelV2 gave them."""

    def setup(self) -> None:
        """Builds the layers; Ray calls it once."""
        super().setup()
        self.hidden = nn.Linear(self.observation_space.shape[0], 9)
        self.out = nn.Linear(9, int(self.action_space.n))
        self.value = nn.Linear(9, 1)

    def _features(self, batch):
        return torch.tanh(self.hidden(batch[Columns.OBS]))

    def _forward(self, batch, **_):
        return {Columns.ACTION_DIST_INPUTS: self.out(self._features(batch))}

    def compute_values(self, batch, embeddings=None):
        """The state's values, for those algorithms that ask for them."""
        del embeddings
        return self.value(self._features(batch)).squeeze(-1)
