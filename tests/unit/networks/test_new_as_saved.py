"""New networks against those in the museum: what its configs make is what its checkpoints hold."""

import re

import numpy as np
import pytest

from rllib_compat.networks import ModelSettings, Network, draw_network, fresh
from tests.legacy.cases import all_cases
from tests.legacy.networks import raw_space, read
from tests.support import REFUSED

#: What an old Ray did otherwise than others, and than is done here.
UNLIKE = {
    "1.0.1/ppo-tf-vfshare": "PPO's own key decided, whose default its config does not hold",
    "1.0.1/ppo-torch-vfshare": "the same",
    "0.6.6/pg-tf-lstm": "PG did not save its value function",
    "0.7.6/ppo-tf-images": "Ray 0.7.5 and 0.7.6 counted axes wrong, and flattened images",
    "0.8.5/a3c-tf-lstm": "Ray 0.8.5 made no LSTM on TensorFlow",
    "0.8.5/ppo-tf-lstm-prevar": "the same",
    "0.8.5/dqn-tf-nohiddens-dueling": "TensorFlow had a layer for the state's value",
    "0.8.5/dqn-torch-nohiddens": "torch had one more layer",
    "0.8.0/td3-tf-small": "the second critic was not saved",
    "0.8.5/dqn-torch-v-noisy-torch": "torch had no noisy layers",
}

#: What is no layer of a new network: the copy of a target, torch's second bias, the slope of swish.
_ELSE = re.compile(r"target\..*|.*\.(recurrent_bias|slope|beta)")


def sizes(network):
    """How large arrays are; a 1 × 1 convolution is a dense layer, and torch turns matrices."""
    arrays = (array for name, array in network.arrays.items() if not _ELSE.fullmatch(name))
    return sorted(sorted(size for size in array.shape if size != 1) for array in arrays)


@pytest.mark.parametrize(
    "case",
    [c for c in all_cases() if c.stack == "old" and str(c) not in {*REFUSED, *UNLIKE}],
    ids=str,
)
def test_a_new_network_is_the_one_that_was_saved(case):
    checkpoint, networks = read(case)
    for name, then in networks.items():
        policy = checkpoint.policies[name]
        settings = ModelSettings.of(checkpoint, policy)
        if not isinstance(then, Network) or not fresh.makes(settings.algorithm, settings.config):
            continue  # other networks, which are not made there
        seen = policy.observation_space or raw_space(case, name)
        acts = policy.action_space
        now = draw_network(settings, seen, acts, np.random.default_rng(3))
        if then.scheme == "torch":
            assert now.graph == then.graph
        assert sizes(now) == sizes(then)
