"""`appo_torch_policy` and `appo_tf_policy`: methods of Ray's policy of today."""

from __future__ import annotations

from typing import Any

from ray.rllib.algorithms.appo.appo_torch_policy import APPOTorchPolicy
from ray.rllib.algorithms.appo.utils import make_appo_models

from rllib_compat.legacy.policies import mixins
from rllib_compat.legacy.policies.mixins import TargetNetworkMixin, ValueNetworkMixin

__all__ = [
    "TargetNetworkMixin",
    "ValueNetworkMixin",
    "add_values",
    "appo_surrogate_loss",
    "build_appo_model",
    "build_appo_surrogate_loss",
    "make_appo_model",
    "postprocess_trajectory",
    "setup_early_mixins",
    "setup_late_mixins",
    "setup_mixins",
    "stats",
]

add_values = APPOTorchPolicy.extra_action_out
appo_surrogate_loss = build_appo_surrogate_loss = APPOTorchPolicy.loss
postprocess_trajectory = APPOTorchPolicy.postprocess_trajectory
stats = APPOTorchPolicy.stats_fn
setup_early_mixins = mixins.setup(mixins.LearningRateSchedule)
setup_mixins = mixins.setup(
    mixins.LearningRateSchedule,
    mixins.EntropyCoeffSchedule,
    mixins.KLCoeffMixin,
    ValueNetworkMixin,
)
setup_late_mixins = mixins.setup(mixins.KLCoeffMixin, ValueNetworkMixin, TargetNetworkMixin)


def make_appo_model(policy: object, *_: object) -> Any:
    """The policy's model; the target's is kept with it."""
    return make_appo_models(policy)


build_appo_model = make_appo_model
