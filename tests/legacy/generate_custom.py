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
        seen = tf.keras.layers.Input(obs_space.shape)
        first = tf.keras.layers.Dense(9, "tanh", name="hidden_1")(seen)
        second = tf.keras.layers.Dense(7, "tanh", name="hidden_2")(first)
        out = tf.keras.layers.Dense(num_outputs, name="out")(second)
        value = tf.keras.layers.Dense(1, name="value")(second)
        self.base_model = tf.keras.Model(seen, [out, value])
        self.last = None

    def forward(self, input_dict, state, seq_lens):
        out, self.last = self.base_model(input_dict["obs_flat"])
        return out, state

    def value_function(self):
        return tf.reshape(self.last, [-1])


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
