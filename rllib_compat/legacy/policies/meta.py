"""Losses, models and data of MAML and MBMPO (Ray 0.8 – 2.x), without second-order gradients.

Those need another package, and a trainer that Ray has removed: there is no `MAMLLoss`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.evaluation.postprocessing import discount_cumsum
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.utils.exploration.stochastic_sampling import StochasticSampling
from torch import nn

from rllib_compat.algorithms.objectives import clipped_surrogate
from rllib_compat.legacy.policies.mixins import ValueNetworkMixin
from rllib_compat.ray_versions.types import Policy
from rllib_compat.trainer.rollout_worker import collect_metrics

__all__ = [
    "KLCoeffMixin",
    "LinearFeatureBaseline",
    "MBMPOExploration",
    "PPOLoss",
    "TDDataset",
    "TDModel",
    "WorkerLoss",
    "calculate_gae_advantages",
    "denormalize",
    "inner_adaptation",
    "maml_optimizer_fn",
    "maml_stats",
    "mean_std_stats",
    "normalize",
    "post_process_metrics",
    "process_samples",
    "set_worker_tasks",
    "setup_mixins",
]

Numbers = NDArray[Any]


def PPOLoss(  # noqa: N802 - its name
    dist_class: Any,
    actions: torch.Tensor,
    curr_logits: torch.Tensor,
    behaviour_logits: torch.Tensor,
    advantages: torch.Tensor,
    value_fn: torch.Tensor,
    value_targets: torch.Tensor,
    vf_preds: torch.Tensor,
    cur_kl_coeff: float,
    entropy_coeff: float,
    clip_param: float,
    vf_clip_param: float,
    vf_loss_coeff: float,
    clip_loss: bool = False,
) -> tuple[torch.Tensor, ...]:
    """PPO's loss, the gain, and the means of KL divergence, value loss and entropy."""
    now, then = dist_class(curr_logits, None), dist_class(behaviour_logits, None)
    ratio = (now.logp(actions) - then.logp(actions)).exp()
    gain = clipped_surrogate(ratio, advantages, clip_param) if clip_loss else ratio * advantages
    change = (value_fn - vf_preds).clamp(-vf_clip_param, vf_clip_param)
    errors = (value_fn - value_targets) ** 2, (vf_preds + change - value_targets) ** 2
    terms = gain, then.kl(now), torch.maximum(*errors), now.entropy()
    means = [term.mean() for term in terms]
    total = -means[0] + cur_kl_coeff * means[1] + vf_loss_coeff * means[2]
    return total - entropy_coeff * means[3], *means


class WorkerLoss:
    """The loss by which a worker adapts to its task.

    Attributes:
        loss: The loss.
    """

    def __init__(self, model: object, dist_class: Any, *arguments: Any, **by_name: Any) -> None:
        self.loss = PPOLoss(dist_class, *arguments, **by_name)[0]


class KLCoeffMixin:
    """Keeps the KL coefficient of each worker and step of adaptation.

    Args:
        config: The config, with `kl_coeff`, `inner_adaptation_steps` and `num_workers`.
    """

    config: Any

    def __init__(self, config: Any) -> None:
        count = config["inner_adaptation_steps"] * config["num_workers"]
        self.kl_coeff_val = [config["kl_coeff"]] * count
        self.kl_target = self.config["kl_target"]

    def update_kls(self, sampled_kls: Sequence[float]) -> list[float]:
        """Halves coefficients where the divergence is small, and doubles them where it is large."""
        least, most = self.kl_target / 1.5, self.kl_target * 1.5
        for index, found in enumerate(sampled_kls):
            self.kl_coeff_val[index] *= 0.5 if found < least else 2.0 if found > most else 1.0
        return self.kl_coeff_val


#: Statistics of the meta-policy's loss in results → its attributes.
_STATS = {
    "total_loss": "loss",
    "policy_loss": "mean_policy_loss",
    "vf_loss": "mean_vf_loss",
    "kl_loss": "mean_kl_loss",
    "inner_kl": "mean_inner_kl",
    "entropy": "mean_entropy",
}


def maml_stats(policy: Policy, train_batch: object) -> dict[str, Any]:
    """The statistics of the last loss, `policy.loss_obj`, for the results."""
    loss, is_worker = policy.loss_obj, policy.config["worker_index"]
    if is_worker:
        return {"worker_loss": loss.loss}
    stats = {"cur_kl_coeff": policy.kl_coeff_val, "cur_lr": policy.cur_lr}
    return stats | {key: getattr(policy.loss_obj, name) for key, name in _STATS.items()}


def maml_optimizer_fn(policy: Policy, config: Any) -> torch.optim.Optimizer:
    """SGD for workers, which adapt, and Adam for the meta-policy."""
    weights = policy.model.parameters()
    if config["worker_index"]:
        return torch.optim.SGD(weights, lr=config["inner_lr"])
    policy.meta_opt = made = torch.optim.Adam(weights, lr=config["lr"])
    return made


def setup_mixins(policy: Any, obs_space: object, action_space: object, config: Any) -> None:
    """Sets up the policy's mixins."""
    ValueNetworkMixin.__init__(policy, obs_space, action_space, config)
    KLCoeffMixin.__init__(policy, config)


def set_worker_tasks(workers: Any, use_meta_env: bool) -> None:
    """Gives the environments of each remote worker a task."""
    remote = workers.remote_workers()
    if not use_meta_env:
        return
    first = workers.local_worker().foreach_env(lambda env: env)[0]
    for worker, task in zip(remote, first.sample_tasks(len(remote)), strict=True):
        worker.foreach_env.remote(lambda env, task=task: env.set_task(task))


def inner_adaptation(workers: Any, samples: Sequence[Any]) -> None:
    """Makes each remote worker learn from its own batch."""
    for worker, batch in zip(workers.remote_workers(), samples, strict=False):
        worker.learn_on_batch.remote(batch)


def post_process_metrics(adapt_iter: int, workers: Any, metrics: dict[str, Any]) -> dict[str, Any]:
    """Adds the rewards of the last episodes, by the step of adaptation."""
    ending = f"_adapt_{adapt_iter}" if adapt_iter > 0 else ""
    found = collect_metrics(remote_workers=workers.remote_workers())
    for name in ("max", "mean", "min"):
        metrics[f"episode_reward_{name}{ending}"] = found[f"episode_reward_{name}"]
    return metrics


class LinearFeatureBaseline:
    """Returns as a linear function of observations, their squares, and time."""

    def __init__(self, reg_coeff: float = 1e-5) -> None:
        self._reg_coeff = reg_coeff
        self._coeffs: Numbers | None = None

    def get_param_values(self, **tags: object) -> Numbers | None:
        """The weights."""
        return self._coeffs

    def set_param_values(self, val: Numbers | None, **tags: object) -> None:
        """Sets the weights."""
        self._coeffs = val

    def _features(self, path: Any) -> Numbers:
        seen = np.asarray(path["observations"]).clip(-10, 10)
        time = np.linspace(0.0, (len(seen) - 1) / 100.0, len(seen))[:, None]
        return np.hstack((seen, seen**2, time, time**2, time**3, np.ones_like(time)))

    def fit(self, paths: Sequence[Any]) -> None:
        """Fits weights to the `returns` of episodes."""
        seen = np.vstack(list(map(self._features, paths)))
        targets = np.hstack([path["returns"] for path in paths])
        for power in range(5):
            cost = self._reg_coeff * 10**power * np.eye(seen.shape[1])
            self._coeffs = np.linalg.lstsq(seen.T @ seen + cost, seen.T @ targets, rcond=-1)[0]
            if not np.isnan(self._coeffs).any():
                return

    def predict(self, path: object) -> Numbers:
        """The returns that are expected in an episode; zeros before anything was fitted."""
        seen, weights = self._features(path), self._coeffs
        return np.zeros(len(seen)) if weights is None else seen @ weights


def calculate_gae_advantages(paths: Sequence[Any], discount: float, gae_lambda: float) -> Any:
    """Adds `returns` and `advantages` to episodes, by a baseline that is fitted to them."""
    baseline = LinearFeatureBaseline()
    for path in paths:
        path.update(returns=discount_cumsum(path["rewards"], discount))
    baseline.fit(paths)
    for path in paths:
        expected = np.append(baseline.predict(path), 0)
        errors = path["rewards"] + discount * expected[1:] - expected[:-1]
        path["advantages"] = discount_cumsum(errors, discount * gae_lambda)
    return paths


class MBMPOExploration(StochasticSampling):  # type: ignore[misc]  # Ray has no types
    """Draws actions; those of the first steps at random, in the first process alone."""

    def __init__(
        self,
        action_space: Any,
        *,
        framework: str,
        model: Any,
        random_timesteps: int = 8000,
        **kwargs: Any,
    ) -> None:
        steps = 0 if kwargs.get("worker_index") else random_timesteps
        options = {"framework": framework, "model": model, "random_timesteps": steps}
        super().__init__(action_space, **options, **kwargs)
        self.random_timesteps = steps


class TDModel(nn.Module):
    """Dense layers that predict the change of an observation."""

    def __init__(
        self,
        input_size: int,
        output_size: int,
        hidden_layers: Sequence[int] = (512, 512),
        hidden_nonlinearity: type[nn.Module] | None = None,
        output_nonlinearity: type[nn.Module] | None = None,
        weight_normalization: bool = False,
        use_bias: bool = True,
    ) -> None:
        super().__init__()
        kinds = [hidden_nonlinearity or nn.ReLU] * len(hidden_layers)
        sizes, self.layers = [input_size, *hidden_layers, output_size], []
        for index, (first, last) in enumerate(itertools.pairwise(sizes)):
            layer: Any = nn.Linear(first, last, bias=use_bias)
            # The names of the weights are those of the old function.
            self.layers.append(nn.utils.weight_norm(layer) if weight_normalization else layer)
            kind = kinds[index] if index < len(kinds) else output_nonlinearity
            self.layers += [] if kind is None else [kind()]
        self.model = nn.Sequential(*self.layers)

    def forward(self, x: torch.Tensor) -> Any:
        """The changes."""
        return self.model(x)


def normalize(data_array: Any, stats: Any) -> Any:
    """Numbers with mean 0 and deviation 1, by a mean and a deviation."""
    return (data_array - stats[0]) / (stats[1] + 1e-10)


def denormalize(data_array: Any, stats: Any) -> Any:
    """Undoes `normalize`."""
    return stats[0] + data_array * (stats[1] + 1e-10)


def _columns(batch: Any) -> dict[str, Any]:
    return {
        "obs": batch["obs"],
        "actions": batch["actions"],
        "delta": batch["new_obs"] - batch["obs"],
    }


def mean_std_stats(dataset: object) -> dict[str, tuple[Any, Any]]:
    """The means and deviations of observations, actions and changes (`delta`)."""
    return {name: (np.mean(x, 0), np.std(x, 0)) for name, x in _columns(dataset).items()}


def process_samples(samples: Any) -> Any:
    """The columns that a model of the world learns from."""
    return SampleBatch({name: samples[name] for name in ("obs", "actions", "new_obs")})


class TDDataset(torch.utils.data.Dataset[tuple[Any, Any]]):
    """Steps: observation and action, and the change after them."""

    def __init__(self, dataset: Any, norms: Any) -> None:
        found = _columns(dataset)
        if norms:
            found = {name: normalize(x, norms[name]) for name, x in found.items()}
        self.count, self.y = dataset.count, found["delta"]
        self.x = np.concatenate((found["obs"], found["actions"]), axis=1)

    def __len__(self) -> int:
        return int(self.count)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self.x[index], self.y[index]
