"""`vtrace_torch_policy` and `vtrace_tf_policy` of IMPALA.

The terms of the loss are Ray's `VTraceLoss`. Its policies of today bootstrap from a column that
postprocessing adds; the loss of that time took the value of each fragment's last step.
"""

from __future__ import annotations

from typing import Any

import torch
from gymnasium.spaces import Discrete, MultiDiscrete
from ray.rllib.algorithms.impala.impala_torch_policy import ImpalaTorchPolicy
from ray.rllib.algorithms.impala.impala_torch_policy import VTraceLoss as RayVTraceLoss
from ray.rllib.models.torch.torch_action_dist import TorchCategorical
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.utils.torch_utils import explained_variance, sequence_mask

from rllib_compat.legacy.policies import mixins
from rllib_compat.ray_versions.types import Policy

__all__ = [
    "VTraceLoss",
    "build_vtrace_loss",
    "choose_optimizer",
    "clip_gradients",
    "grad_stats",
    "make_time_major",
    "setup_mixins",
    "stats",
]

stats = ImpalaTorchPolicy.stats_fn
clip_gradients = mixins.compute_and_clip_gradients
grad_stats = mixins.grad_stats
setup_mixins = mixins.setup(mixins.EntropyCoeffSchedule, mixins.LearningRateSchedule)

#: A key that Ray's loss reads, with the old behaviour.
_ONE_OPTIMIZER = {"_separate_vf_optimizer": False}


class VTraceLoss(RayVTraceLoss):  # type: ignore[misc]  # Ray has no types
    """Ray's, with one optimizer for policy and critic, as it was."""

    def __init__(self, *arguments: Any, config: Any = None, **by_name: Any) -> None:
        config = {**(config or {}), **_ONE_OPTIMIZER}
        super().__init__(*arguments, config=config, **by_name)


def build_vtrace_loss(policy: Policy, model: Any, dist_class: Any, train_batch: Any) -> Any:
    """IMPALA's loss of a batch of whole fragments."""
    outputs, _ = model(train_batch)
    distributions, values = dist_class(outputs, model), model.value_function()
    lengths, config = train_batch.get(SampleBatch.SEQ_LENS), policy.config
    drop_last = config.get("vtrace_drop_last_ts", True)
    actions, multi = (
        train_batch[SampleBatch.ACTIONS],
        isinstance(policy.action_space, MultiDiscrete),
    )
    valid = torch.ones_like(train_batch[SampleBatch.REWARDS])
    if policy.is_recurrent():
        valid = sequence_mask(lengths, len(outputs) // len(lengths)).reshape(-1).float()

    def by_time(values: object) -> Any:
        return make_time_major(policy, lengths, values, drop_last)

    loss = VTraceLoss(
        actions=by_time(actions if multi else actions.unsqueeze(1)),
        actions_logp=by_time(distributions.logp(actions)),
        actions_entropy=by_time(distributions.entropy()),
        dones=by_time(train_batch[SampleBatch.TERMINATEDS]),
        behaviour_action_logp=by_time(train_batch[SampleBatch.ACTION_LOGP]),
        behaviour_logits=by_time(_parts(policy, train_batch[SampleBatch.ACTION_DIST_INPUTS])),
        target_logits=by_time(_parts(policy, outputs)),
        discount=config["gamma"],
        rewards=by_time(train_batch[SampleBatch.REWARDS]),
        values=by_time(values),
        bootstrap_value=make_time_major(policy, lengths, values)[-1],
        dist_class=TorchCategorical if multi else dist_class,
        model=model,
        valid_mask=by_time(valid),
        config=config,
        vf_loss_coeff=config["vf_loss_coeff"],
        entropy_coeff=policy.entropy_coeff,
        clip_rho_threshold=config["vtrace_clip_rho_threshold"],
        clip_pg_rho_threshold=config["vtrace_clip_pg_rho_threshold"],
    )
    for name in ("pi_loss", "vf_loss", "entropy", "mean_entropy", "total_loss"):
        model.tower_stats[name] = getattr(loss, name)
    explained = explained_variance(loss.value_targets.reshape(-1), by_time(values).reshape(-1))
    model.tower_stats["vf_explained_var"] = explained
    return loss.total_loss


def _parts(policy: Policy, inputs: Any) -> Any:
    """The inputs of each distribution, of as many as the action space has."""
    space = policy.action_space
    if isinstance(space, MultiDiscrete):
        return torch.split(inputs, space.nvec.tolist(), dim=1)
    size = int(space.n) if isinstance(space, Discrete) else inputs.shape[1]
    return torch.split(inputs, size, dim=1)


def make_time_major(policy: Policy, seq_lens: Any, tensor: Any, drop_last: bool = False) -> Any:
    """Cuts rows into fragments, and puts time first.

    Args:
        policy: The policy; where it has no state, fragments are as long as its config says.
        seq_lens: The lengths of the sequences that are padded to one length.
        tensor: `[B * T, …]`, or several such.
        drop_last: Whether to leave out each fragment's last step.

    Returns:
        `[T, B, …]`.
    """
    if isinstance(tensor, (list, tuple)):
        return [make_time_major(policy, seq_lens, part, drop_last) for part in tensor]
    steps = policy.config["rollout_fragment_length"]
    if policy.is_recurrent():
        steps = len(tensor) // len(seq_lens)
    made = tensor.unflatten(0, (-1, steps)).transpose(0, 1)
    return made[:-1] if drop_last else made


#: The settings of RMSprop → what torch calls them.
_RMSPROP = {"decay": "weight_decay", "epsilon": "eps", "momentum": "momentum"}


def choose_optimizer(policy: Policy, config: Any) -> torch.optim.Optimizer:
    """Adam or RMSprop, as `opt_type` says."""
    weights, rate = policy.model.parameters(), policy.cur_lr
    if config["opt_type"] == "adam":
        return torch.optim.Adam(weights, rate)
    settings = {theirs: config[name] for name, theirs in _RMSPROP.items()}
    return torch.optim.RMSprop(weights, rate, **settings)
