"""Models and policy parts of the linear bandits (`contrib/bandits` of Ray 0.8, `bandit` since)."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import gymnasium
import torch
from ray.rllib.models.catalog import ModelCatalog
from ray.rllib.models.modelv2 import restore_original_dimensions
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2
from torch import nn

from rllib_compat.networks.families.bandit import BONUS, ITEM
from rllib_compat.neutral.errors import LegacyEnvError
from rllib_compat.ray_versions.types import Policy

__all__ = [
    "BanditPolicyOverrides",
    "DiscreteLinearModel",
    "DiscreteLinearModelThompsonSampling",
    "DiscreteLinearModelUCB",
    "OnlineLinearRegression",
    "ParametricLinearModel",
    "ParametricLinearModelThompsonSampling",
    "ParametricLinearModelUCB",
    "after_init",
    "init_cum_regret",
    "make_model",
    "make_model_and_action_dist",
]


class OnlineLinearRegression(nn.Module):
    """A linear regression that learns step by step, and estimates its uncertainty."""

    precision: torch.Tensor
    covariance: torch.Tensor
    f: torch.Tensor
    theta: torch.Tensor

    def __init__(self, feature_dim: int, alpha: float = 1, lambda_: float = 1) -> None:
        super().__init__()
        self.d, self.alpha, self.lambda_ = feature_dim, alpha, lambda_
        self.time, self.update_schedule = 0, 1
        self.delta_f: torch.Tensor | int = 0
        self.delta_b: torch.Tensor | int = 0
        eye = torch.eye(feature_dim)
        first = {"precision": lambda_ * eye, "covariance": alpha / lambda_ * eye}
        for name in ("f", "theta"):
            first[name] = torch.zeros(feature_dim)
        for name in ("precision", "covariance", "f", "theta"):
            self.register_parameter(name, nn.Parameter(first[name], requires_grad=False))
        # Around a mean that moves, with the covariance of the beginning: it is factored once.
        self.dist = torch.distributions.MultivariateNormal(self.theta, self.covariance)

    def partial_fit(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """Learns from a step: features `[1, d]` and their reward."""
        features, target = x.squeeze(0), y.item()
        self.time += 1
        self.delta_f = self.delta_f + target * features
        self.delta_b = self.delta_b + torch.outer(features, features)
        if self.time % self.update_schedule:
            return
        self.f += self.delta_f
        self.precision += self.delta_b
        self.delta_f = self.delta_b = 0
        inverse = torch.linalg.inv(self.precision)
        self.theta.copy_(inverse @ self.f)
        self.covariance.copy_(self.alpha * inverse)

    def sample_theta(self) -> Any:
        """Weights drawn from their distribution, `[d]`."""
        return self.dist.sample()

    def get_ucbs(self, x: torch.Tensor) -> Any:
        """The uncertainty of each prediction: the deviation of the scores of features `[…, d]`."""
        return torch.einsum("...i,ij,...j->...", x, self.covariance, x).sqrt()

    def forward(self, x: torch.Tensor, sample_theta: bool = False) -> Any:
        """The scores of features `[…, d]`."""
        return x @ (self.sample_theta() if sample_theta else self.theta)


class _LinearModel(TorchModelV2, nn.Module):  # type: ignore[misc]  # Ray has no types
    """Scores arms or items by regressions.

    Args:
        obs_space: The observation space.
        action_space: Its action space.
        num_outputs: How many arms or items there are.
        model_config: The config's `model`; `alpha` and `lambda_` are the regressions'.
        name: The model's name.
    """

    #: The arguments of `predict` in `forward`.
    _chosen_by: ClassVar[dict[str, bool]] = {}
    _first_precision = 1.0
    feature_dim: int
    num_outputs: int
    obs_space: Any
    model_config: Any

    def __init__(
        self, obs_space: Any, action_space: Any, num_outputs: int, model_config: Any, name: str
    ) -> None:
        nn.Module.__init__(self)
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        self._seen: Any = None
        self._scores: Any = None

    def _features(self, observed: Any) -> Any:
        raise NotImplementedError

    def _score(self, x: torch.Tensor, sample_theta: bool) -> Any:
        raise NotImplementedError

    def _bonus(self, x: torch.Tensor) -> Any:
        raise NotImplementedError

    def _regression(self) -> OnlineLinearRegression:
        options = self.model_config
        prior = options.get("lambda_", self._first_precision)
        return OnlineLinearRegression(self.feature_dim, options.get("alpha", 1), prior)

    def forward(self, input_dict: Any, state: Any, seq_lens: object) -> Any:
        """The scores of all arms or items, and the state as it was."""
        return self.predict(self._features(input_dict["obs"]), **self._chosen_by), state

    def predict(self, x: torch.Tensor, sample_theta: bool = False, use_ucb: bool = False) -> Any:
        """The scores `[B, n]`."""
        scores = self._score(x, sample_theta)
        self._seen = x
        self._scores = scores + self._bonus(x) if use_ucb else scores
        return self._scores

    def value_function(self) -> Any:
        """The scores of the last `forward`."""
        assert self._scores is not None, "there was no forward pass yet"
        return self._scores

    def current_obs(self) -> Any:
        """The features of the last `forward`."""
        assert self._seen is not None, "there was no forward pass yet"
        return self._seen


class DiscreteLinearModel(_LinearModel):
    """A regression for each arm; all see the same features."""

    arms: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.feature_dim = self.obs_space.sample().size
        regressions = [self._regression() for _ in range(self.num_outputs)]
        self.add_module("arms", nn.ModuleList(regressions))

    def _features(self, observed: torch.Tensor) -> Any:
        return observed

    def _score(self, x: torch.Tensor, sample_theta: bool) -> Any:
        return torch.stack([arm(x, sample_theta) for arm in self.arms], dim=-1)

    def _bonus(self, x: torch.Tensor) -> Any:
        return BONUS[0] * torch.stack([arm.get_ucbs(x) for arm in self.arms], dim=-1)

    def partial_fit(self, x: torch.Tensor, y: torch.Tensor, arms: torch.Tensor) -> None:
        """Learns steps: features `[B, d]`, rewards and arms `[B]`."""
        for row, arm in enumerate(arms.tolist()):
            assert 0 <= arm < len(self.arms), f"there is no arm {arm} of {len(self.arms)}"
            self.arms[arm].partial_fit(x[row : row + 1], y[row : row + 1])


class DiscreteLinearModelUCB(DiscreteLinearModel):
    """Scores with a bonus."""

    _chosen_by: ClassVar = {"use_ucb": True}


class DiscreteLinearModelThompsonSampling(DiscreteLinearModel):
    """Scores with weights that are drawn."""

    _chosen_by: ClassVar = {"sample_theta": True}


class ParametricLinearModel(_LinearModel):
    """One regression that scores the items of a table; observations are a Dict with `item`."""

    arm: OnlineLinearRegression
    _first_precision = 0.1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        space = self.obs_space.original_space
        _require_items(space)
        self.feature_dim = space[ITEM].shape[-1]
        self.add_module("arm", self._regression())

    def _features(self, observed: Any) -> Any:
        return observed[ITEM]

    def _score(self, x: torch.Tensor, sample_theta: bool) -> Any:
        return self.arm(x, sample_theta)

    def _bonus(self, x: torch.Tensor) -> Any:
        return BONUS[1] * self.arm.get_ucbs(x)

    def partial_fit(self, x: Any, y: torch.Tensor, arms: torch.Tensor) -> None:
        """Learns steps: a Dict's parts, rewards and chosen items `[B]`."""
        for row, item in enumerate(arms.tolist()):
            self.arm.partial_fit(x[ITEM][row : row + 1, item], y[row : row + 1])


class ParametricLinearModelUCB(ParametricLinearModel):
    """Scores with a bonus."""

    _chosen_by: ClassVar = {"use_ucb": True}


class ParametricLinearModelThompsonSampling(ParametricLinearModel):
    """Scores with weights that are drawn."""

    _chosen_by: ClassVar = {"sample_theta": True}


def _require_items(space: object) -> None:
    if not isinstance(space, gymnasium.spaces.Dict) or ITEM not in space.spaces:
        raise LegacyEnvError(
            f"A bandit that chooses items sees a Dict with {ITEM!r}, not {space}.",
            where="observation_space",
            fix="Wrap the environment, so that it observes a table of items.",
        )


#: The class of the exploration → the models of arms and of items.
_MODELS = {
    "ThompsonSampling": (
        DiscreteLinearModelThompsonSampling,
        ParametricLinearModelThompsonSampling,
    ),
    "UpperConfidenceBound": (DiscreteLinearModelUCB, ParametricLinearModelUCB),
    "UCB": (DiscreteLinearModelUCB, ParametricLinearModelUCB),
}


def make_model_and_action_dist(
    policy: Policy, obs_space: Any, action_space: Any, config: Any
) -> Any:
    """The model that the config's exploration asks for, and the class of its distributions."""
    options = config["model"]
    distribution, size = ModelCatalog.get_action_dist(action_space, options, framework="torch")
    explored = str((config.get("exploration_config") or {}).get("type")).rpartition(".")[2]
    of_arms, of_items = _MODELS.get(explored, (DiscreteLinearModel, DiscreteLinearModel))
    space, model = getattr(obs_space, "original_space", obs_space), of_arms
    if isinstance(space, gymnasium.spaces.Dict) and explored in _MODELS:
        _require_items(space)
        model = of_items
    return model(obs_space, action_space, size, options, name="LinearModel"), distribution


def init_cum_regret(policy: Policy, *args: object) -> None:
    """Starts the list of regrets."""
    policy.regrets = []


after_init = init_cum_regret


def make_model(policy: Policy, obs_space: object, action_space: object, config: object) -> Any:
    """The model alone."""
    return make_model_and_action_dist(policy, obs_space, action_space, config)[0]


class BanditPolicyOverrides:
    """Learns by regression, without a loss; mixed into a policy whose model fits steps."""

    def learn_on_batch(self: Any, postprocessed_batch: Any) -> dict[str, Any]:
        """Fits the model to a batch; regrets are summed up if infos have them."""
        began, stats = time.time(), {}
        batch = self._lazy_tensor_dict(postprocessed_batch)
        parts = restore_original_dimensions(batch["obs"], self.observation_space, self.framework)
        self.model.partial_fit(parts, batch["rewards"], batch["actions"])
        infos = postprocessed_batch["infos"]
        regrets = [info["regret"] for info in infos if "regret" in infos[0]]
        if regrets:
            self.regrets.append(sum(regrets))
            stats["cumulative_regret"] = sum(self.regrets)
        return {"learner_stats": {**stats, "update_latency": time.time() - began}}
