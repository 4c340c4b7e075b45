#!/usr/bin/env python
"""Write museum cases with custom models, with the old Ray (1.0 to 2.0) of the running Python.

    python generate_custom.py OUT --framework torch|tf2 [--cases NAME ...]

What they hold is what `generate.py` says, which does the work.
"""

import sys

import generate
import gym
from ray.rllib.models import ModelCatalog
from ray.rllib.models.tf.tf_modelv2 import TFModelV2
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2
from ray.rllib.utils.framework import try_import_tf, try_import_torch

torch, nn = try_import_torch()
tf = try_import_tf()[1]
PARTS = {"mask": generate.box(3, 2.0), "seen": generate.box(4, 2.0)}


class Masked(TorchModelV2, nn.Module):
    """Takes the parts of a Dict by name: actions are masked with one of them."""

    def __init__(self, obs_space, action_space, num_outputs, model_config, name, **_):
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        nn.Module.__init__(self)
        self.hidden = nn.Linear(4, 9)
        self.out = nn.Linear(9, num_outputs)
        self.value = nn.Linear(9, 1)
        self.features = None

    def forward(self, input_dict, state, seq_lens):
        parts = input_dict["obs"]
        self.features = torch.tanh(self.hidden(parts["seen"]))
        return self.out(self.features) + 5.0 * parts["mask"], state

    def value_function(self):
        return self.value(self.features).squeeze(-1)


class Plain(TorchModelV2, nn.Module):
    """Takes a vector; the filter of the observations is Ray's."""

    def __init__(self, obs_space, action_space, num_outputs, model_config, name, **_):
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        nn.Module.__init__(self)
        self.hidden = nn.Linear(obs_space.shape[0], 9)
        self.out = nn.Linear(9, num_outputs)
        self.value = nn.Linear(9, 1)
        self.features = None

    def forward(self, input_dict, state, seq_lens):
        self.features = torch.tanh(self.hidden(input_dict["obs_flat"].float()))
        return self.out(self.features), state

    def value_function(self):
        return self.value(self.features).squeeze(-1)


class Keras(TFModelV2):
    """Its weights are stored as a list, without names."""

    def __init__(self, obs_space, action_space, num_outputs, model_config, name, **_):
        super().__init__(obs_space, action_space, num_outputs, model_config, name)
        dense = tf.keras.layers.Dense
        seen = features = tf.keras.layers.Input(obs_space.shape)
        for i, size in enumerate([9, 7], 1):
            features = dense(size, "tanh", name=f"hidden_{i}")(features)
        heads = [dense(num_outputs, name="out"), dense(1, name="value")]
        self.network = tf.keras.Model(seen, [head(features) for head in heads])
        self.values = None

    def forward(self, input_dict, state, seq_lens):
        logits, values = self.network(input_dict["obs_flat"])
        self.values = values[:, 0]
        return logits, state

    def value_function(self):
        return self.values


MODELS = {"museum_masked": Masked, "museum_plain": Plain, "museum_keras": Keras}
CASES = {
    "torch": {
        "custom-parts": generate.single(obs="masked", custom_model="museum_masked"),
        "custom-meanstd": generate.single(
            custom_model="museum_plain", observation_filter="MeanStdFilter"
        ),
    },
    "tf2": {"custom-keras": generate.single(custom_model="museum_keras")},
}


def main():
    for name, model in MODELS.items():
        ModelCatalog.register_custom_model(name, model)
    spaces_of = generate.observation_space
    masked = gym.spaces.Dict(PARTS)
    generate.observation_space = lambda obs: masked if obs == "masked" else spaces_of(obs)
    generate.CASES.clear()
    generate.CASES.update(CASES[sys.argv[sys.argv.index("--framework") + 1]])
    return generate.main()


if __name__ == "__main__":
    sys.exit(main())
