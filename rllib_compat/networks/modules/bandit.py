"""The module of the bandits: linear regressions with the exact posterior of their weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import gymnasium
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from ray.rllib.utils.schedules.scheduler import Scheduler
from torch import Tensor

from rllib_compat.networks.families.bandit import BONUS, ITEM
from rllib_compat.networks.ops.in_torch import linear_bandit
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import modules

#: Whose covariance weights are drawn with.
POSTERIOR, PRIOR = "posterior", "prior"
#: The prior precision where the config is silent: of arms, and of items.
_PRECISION = (1.0, 0.1)

#: Vectors `[B, n]`, or the parts of a Dict.
Observations: TypeAlias = Tensor | Mapping[str, Tensor]


@public("rllib_compat.modules")
class LinearBanditModule(TorchRLModule):  # type: ignore[misc]  # Ray has no types
    """Chooses the arm, or the item, whose reward may be the greatest.

    Rewards are taken to be linear in what is observed. With vectors as observations each arm has a
    regression of its own; where the observation is a Dict with a table called `item` (`[n, d]`),
    one regression scores the n items.

    The `model_config` has `alpha`, by which the posterior covariance is multiplied; `lambda_`, the
    prior precision (None: 1.0, or 0.1 with items); and `sampling`: whether weights are drawn from
    the posterior (Thompson sampling), or a bonus for what is uncertain is added (LinUCB). They are
    drawn around the posterior's mean, with the covariance of `drawn_from`: `posterior`, or `prior`,
    as in every Ray that had it, which made its distribution once. With `times`, what is expected
    counts so often beside the bonus: twice with Ray's TensorFlow policy.

    With `epsilon` (a number, or a schedule `[[step, epsilon], …]`) or `soft_q_temperature`, arms
    are chosen by what is expected of them alone: any arm with the probability epsilon, or drawn by
    what is expected, divided by the temperature.
    """

    def setup(self) -> None:
        """Begins with the prior; Ray calls it once."""
        space, options = self.observation_space, self.model_config
        self._items = isinstance(space, gymnasium.spaces.Dict) and ITEM in space.spaces
        if not isinstance(self.action_space, gymnasium.spaces.Discrete):
            raise ConfigError(
                f"A bandit needs Discrete actions; these are {self.action_space}.",
                where="action_space",
                fix="Wrap the environment, so that its actions are Discrete.",
            )
        inner = space[ITEM] if self._items else space
        if not (isinstance(inner, gymnasium.spaces.Box) and len(inner.shape) == 1 + self._items):
            raise ConfigError(
                f"A bandit observes a vector, or a Dict with a matrix {ITEM!r}; this is {space}.",
                where="observation_space",
                fix="Wrap the environment, or flatten its observations with a connector.",
            )
        self._sampling, self._alpha = options["sampling"], options["alpha"]
        self._times = options.get("times", 1.0)
        epsilon, self._temperature = (options.get(n) for n in ("epsilon", "soft_q_temperature"))
        self._by_expectation = epsilon is not None or self._temperature is not None
        if self._by_expectation and self._items:
            raise ConfigError(
                "A bandit that chooses among items explores in its own way alone.",
                where="exploration_config",
                fix="Leave it out: in Ray 1.13.0, no other way took such observations.",
            )
        self.epsilon_schedule = Scheduler(
            fixed_value_or_schedule=0.0 if epsilon is None else epsilon, framework="torch"
        )
        arms, size = 1 if self._items else int(self.action_space.n), inner.shape[-1]
        prior = options["lambda_"]
        prior = _PRECISION[self._items] if prior is None else prior
        #: The precision that weights are drawn with; None: that of the posterior.
        self._drawn_with = prior if options.get("drawn_from") == PRIOR else None
        eye = torch.eye(size).repeat(arms, 1, 1)
        self.register_buffer("precision", prior * eye)
        self.register_buffer("f", torch.zeros(arms, size))
        self.register_buffer("covariance", self._alpha / prior * eye)
        self.register_buffer("theta", torch.zeros(arms, size))

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def learn(self, observations: Observations, actions: Tensor, rewards: Tensor) -> None:
        """Adds steps to the posterior; `actions` `[B]` are the arms or items that were chosen."""
        seen, actions = self._seen(observations), actions.long()
        if self._items:
            seen, actions = seen[torch.arange(len(actions)), actions], torch.zeros_like(actions)
        for arm in actions.unique():
            chosen = seen[actions == arm]
            self.precision[arm] += chosen.T @ chosen
            self.f[arm] += chosen.T @ rewards[actions == arm].to(chosen)
            inverse = torch.linalg.inv(self.precision[arm])
            self.theta[arm] = inverse @ self.f[arm]
            self.covariance[arm] = self._alpha * inverse

    def expected(self, observations: Observations) -> Tensor:
        """The rewards that are expected of each arm or item, `[B, n]`."""
        return self._scores(self._seen(observations), self.theta)

    def sampled(self, observations: Observations) -> Tensor:
        """The rewards `[B, n]` that weights drawn around the posterior's mean expect."""
        noise = torch.randn_like(self.theta)
        if self._drawn_with is None:
            factor = torch.linalg.cholesky(self.precision).mT
            spread = torch.linalg.solve_triangular(factor, noise.unsqueeze(-1), upper=True)
            spread = spread.squeeze(-1)
        else:
            spread = noise / self._drawn_with**0.5
        theta = self.theta + self._alpha**0.5 * spread
        return self._scores(self._seen(observations), theta)

    def bounds(self, observations: Observations) -> Tensor:
        """The rewards `[B, n]` that are expected, and a bonus for what is not known of them."""
        own = {"theta": self.theta, "covariance": self.covariance}
        options = {"items": self._items, "bonus": BONUS[self._items], "times": self._times}
        return linear_bandit(own, options, self._seen(observations))

    def critics(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """What `rate_actions` gives, as `q_values`."""
        return {"q_values": self.rate_actions(batch)}

    def rate_actions(self, batch: Mapping[str, Any]) -> Tensor:
        """What each arm or item is thought to be worth, `[B, n]`, without drawing."""
        is_expected = self._sampling or self._by_expectation
        rate = self.expected if is_expected else self.bounds
        return rate(batch[Columns.OBS])

    def compute_q_values(self, batch: Mapping[str, Any]) -> dict[str, Tensor]:
        """The same as `qf_preds`, by which Q-networks explore."""
        return {"qf_preds": self.rate_actions(batch)}

    def _scores(self, seen: Tensor, theta: Tensor) -> Tensor:
        return seen @ theta[0] if self._items else seen @ theta.T

    def _seen(self, observations: Observations) -> Tensor:
        return (observations[ITEM] if isinstance(observations, Mapping) else observations).float()

    def _forward(self, batch: Mapping[str, Any], **_: object) -> dict[str, Any]:
        """What is best: with the bonus where there is one, as ever, and without drawing."""
        return {Columns.ACTIONS: self.rate_actions(batch).argmax(-1)}

    def _forward_exploration(
        self, batch: Mapping[str, Any], t: int = 0, **_: object
    ) -> dict[str, Any]:
        if self._by_expectation:
            return modules.explore(self, batch, t, temperature=self._temperature)
        rate = self.sampled if self._sampling else self.bounds
        return {Columns.ACTIONS: rate(batch[Columns.OBS]).argmax(-1)}
