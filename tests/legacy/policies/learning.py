"""What policies learn of a batch, with new weights and new optimizers: for old Rays and ours.

Losses that draw actions draw the same ones in all Rays: `draws` gives numbers for noise.
"""

import contextlib
from unittest import mock

import numpy as np

#: The steps that a policy makes with its batch.
STEPS = 3
CASES = ("ppo", "ppo-box", "ppo-lstm", "dqn", "sac", "a2c", "pg")


@contextlib.contextmanager
def draws(torch):
    """Lets normal distributions draw numbers that depend on nothing."""

    def drawn(self, sample_shape=()):
        shape = self._extended_shape(torch.Size(sample_shape))
        count = int(np.prod(shape))
        noise = torch.linspace(-1, 1, count).reshape(shape) if count > 1 else torch.zeros(shape)
        return self.loc + self.scale * noise

    with mock.patch.multiple(torch.distributions.Normal, rsample=drawn, sample=drawn):
        yield


def learn(policy, make_batch):
    """Makes the steps.

    Args:
        policy: The policy.
        make_batch: Makes its batch anew: policies may change one.

    Returns:
        The statistics of each step that are numbers.
    """
    found = []
    for _ in range(STEPS):
        told = policy.learn_on_batch(make_batch())
        found.append(_numbers(told["learner_stats"]))
    return found


def learn_by_gradients(policy, make_batch):
    """Makes as many steps by `compute_gradients` and `apply_gradients`."""
    for _ in range(STEPS):
        gradients, _ = policy.compute_gradients(make_batch())
        policy.apply_gradients(gradients)


def _numbers(stats):
    """Those that are one number each."""
    kept = {}
    for name, value in stats.items():
        array = value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)
        if array.dtype.kind in "fiu" and array.ndim == 0:
            kept[name] = float(array)
    return kept
