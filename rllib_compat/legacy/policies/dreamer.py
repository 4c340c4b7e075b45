"""Loss, policy parts and buffer of Dreamer (Ray 1.0 – 2.x), with a world model of images."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from ray.rllib.models.catalog import ModelCatalog
from ray.rllib.policy.sample_batch import SampleBatch, concat_samples
from torch import distributions, nn

from rllib_compat.legacy.policies.dreamer_networks import (
    RSSM,
    ActFunc,
    ActionDecoder,
    Conv2d,
    ConvDecoder,
    ConvEncoder,
    ConvTranspose2d,
    DenseDecoder,
    DreamerModel,
    GRUCell,
    Linear,
    TanhBijector,
)

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import Policy

__all__ = [
    "RSSM",
    "ActFunc",
    "ActionDecoder",
    "Conv2d",
    "ConvDecoder",
    "ConvEncoder",
    "ConvTranspose2d",
    "DenseDecoder",
    "DreamerModel",
    "EpisodicBuffer",
    "FreezeParameters",
    "GRUCell",
    "Linear",
    "TanhBijector",
    "action_sampler_fn",
    "batchify_states",
    "build_dreamer_model",
    "compute_dreamer_loss",
    "dreamer_loss",
    "dreamer_optimizer_fn",
    "dreamer_stats",
    "lambda_return",
    "log_summary",
    "preprocess_episode",
    "total_sampled_timesteps",
]


class FreezeParameters:
    """Keeps gradients out of weights within a `with` statement."""

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        self.param_states = [weight.requires_grad for weight in self.parameters]

    def __enter__(self) -> None:
        for weight in self.parameters:
            weight.requires_grad = False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for weight, before in zip(self.parameters, self.param_states, strict=True):
            weight.requires_grad = before


def lambda_return(
    reward: torch.Tensor,
    value: torch.Tensor,
    pcont: torch.Tensor,
    bootstrap: torch.Tensor,
    lambda_: float,
) -> torch.Tensor:
    """The lambda return of each step.

    Rewards, values and discounts (`pcont`) are `[T, B]`, `bootstrap` the value after them, `[B]`.
    """
    following = torch.cat((value[1:], bootstrap[None]))
    own = reward + pcont * following * (1 - lambda_)
    found, last = [], bootstrap
    for gain, weight in zip(reversed(own.unbind()), reversed(pcont.unbind()), strict=True):
        last = gain + weight * lambda_ * last
        found.append(last)
    return torch.stack(found[::-1])


def _weights(model: object, *parts: str) -> Iterator[nn.Parameter]:
    return (weight for part in parts for weight in getattr(model, part).parameters())


_WORLD = ("encoder", "decoder", "reward", "dynamics")


def compute_dreamer_loss(
    obs: torch.Tensor,
    action: torch.Tensor,
    reward: torch.Tensor,
    model: Any,
    imagine_horizon: int,
    discount: float = 0.99,
    lambda_: float = 0.95,
    kl_coeff: float = 1.0,
    free_nats: float = 3.0,
    log: bool = False,
) -> dict[str, torch.Tensor]:
    """The losses of the world model, the actor and the critic, and their parts.

    Args:
        obs: Images, `[B, T, …]`.
        action: The action before each, `[B, T, n]`.
        reward: The reward before each, `[B, T]`.
        model: A `DreamerModel`.
        imagine_horizon: How many steps are imagined.
        discount: The weight of the next step.
        lambda_: The weight of later steps against predicted values.
        kl_coeff: The coefficient of the divergence of posteriors from priors.
        free_nats: The divergence up to which there is no loss.
        log: Whether to add imagined images, `log_gif`.
    """
    world = model.dynamics
    seen = model.encoder(obs)
    post, prior = world.observe(seen, action)
    features = world.get_feature(post)
    images = model.decoder(features)
    losses = {
        "image_loss": -images.log_prob(obs).mean(),
        "reward_loss": -model.reward(features).log_prob(reward).mean(),
    }
    before, after = world.get_dist(*prior[:2]), world.get_dist(*post[:2])
    apart = distributions.kl_divergence(after, before).sum(dim=2).mean().clamp(min=free_nats)
    losses |= {"divergence": apart, "prior_ent": before.entropy().mean()}
    losses |= {"post_ent": after.entropy().mean()}
    losses["model_loss"] = kl_coeff * apart + losses["reward_loss"] + losses["image_loss"]
    with FreezeParameters(_weights(model, *_WORLD)):
        imagined = model.imagine_ahead(post, imagine_horizon)
    with FreezeParameters(_weights(model, *_WORLD, "value")):
        rewards, values = model.reward(imagined).mean, model.value(imagined).mean
    weights = torch.full_like(rewards, discount)
    returns = lambda_return(rewards[:-1], values[:-1], weights[:-1], values[-1], lambda_)
    weights = torch.cat((torch.ones_like(weights[:1]), weights[:-2])).cumprod(0)
    losses["actor_loss"] = -(weights * returns).mean()
    judged = model.value(imagined.detach()[:-1])
    losses["critic_loss"] = -(weights.detach() * judged.log_prob(returns.detach())).mean()
    if log:
        losses["log_gif"] = log_summary(obs, action, seen, images, model)
    return losses


def log_summary(
    obs: torch.Tensor, action: torch.Tensor, embed: torch.Tensor, image_pred: Any, model: Any
) -> torch.Tensor:
    """Six episodes, the world model's predictions after five steps, and the differences."""
    world, truth = model.dynamics, obs[:6] + 0.5
    seen, acted = embed[:6], action[:6]
    first, _ = world.observe(seen[:, :5], acted[:, :5])
    ahead = world.imagine(acted[:, 5:], [part[:, -1] for part in first])
    imagined = model.decoder(world.get_feature(ahead)).mean
    shown = torch.cat((image_pred.mean[:6, :5], imagined), dim=1) + 0.5
    return torch.cat((truth, shown, (shown - truth + 1.0) / 2.0), dim=3)


def dreamer_loss(policy: Policy, model: object, dist_class: object, train_batch: Any) -> Any:
    """The losses of world model, actor and critic; all is kept in `policy.stats_dict`."""
    del model, dist_class
    config = policy.config
    seen, done, got = (train_batch[name] for name in ("obs", "actions", "rewards"))
    policy.stats_dict = losses = compute_dreamer_loss(
        seen,
        done,
        got,
        policy.model,
        config["imagine_horizon"],
        config["discount"],
        config["lambda"],
        config["kl_coeff"],
        config["free_nats"],
        "log_gif" in train_batch,
    )
    return losses["model_loss"], losses["actor_loss"], losses["critic_loss"]


def build_dreamer_model(
    policy: Policy, obs_space: object, action_space: object, config: Any
) -> Any:
    """The model of the config's `dreamer_model`, which names a custom one."""
    options = config["dreamer_model"]
    model = ModelCatalog.get_model_v2(
        obs_space, action_space, 1, options, framework="torch", name="DreamerModel"
    )
    policy.model_variables = model.variables()
    return model


def action_sampler_fn(
    policy: Policy,
    model: Any,
    input_dict: Any,
    state: Any,
    explore: bool,
    timestep: int,
    *_: object,
) -> Any:
    """Actions: random ones until the buffer is filled, then the actor's, with noise."""
    size, config, logp = model.action_space.shape[0], policy.config, None
    if timestep <= config["prefill_timesteps"]:
        action, state = 2.0 * torch.rand(1, size) - 1.0, model.get_initial_state()
    else:
        state = model.get_initial_state() if state[0].dim() == 3 else state
        action, logp, state = model.policy(input_dict["obs"], state, explore)
        action = distributions.Normal(action, config["explore_noise"]).sample().clamp(-1.0, 1.0)
    policy.global_timestep += config["action_repeat"]
    return action, logp, state


def dreamer_stats(policy: Policy, train_batch: object) -> Any:
    """The statistics of the last loss."""
    del train_batch
    return policy.stats_dict


def dreamer_optimizer_fn(policy: Policy, config: Any) -> Any:
    """Adam for the world model, for the actor and for the critic."""
    parts: dict[str, tuple[str, ...]]
    parts = {"td_model_lr": _WORLD, "actor_lr": ("actor",), "critic_lr": ("value",)}
    return tuple(
        torch.optim.Adam(list(_weights(policy.model, *trained)), lr=config[rate])
        for rate, trained in parts.items()
    )


def preprocess_episode(
    policy: Policy, sample_batch: Any, other_agent_batches: object = None, episode: object = None
) -> Any:
    """Puts a first row before an episode: each observation has the action that led to it."""
    del policy, other_agent_batches, episode
    made = {"obs": np.concatenate((sample_batch["obs"], sample_batch["new_obs"][-1:]))}
    for name in ("actions", "rewards"):
        column = np.asarray(sample_batch[name])
        made[name] = np.concatenate((np.zeros((1, *column.shape[1:])), column))
    ids = np.asarray(sample_batch["eps_id"])
    return SampleBatch({**made, "eps_id": np.concatenate((ids, ids[-1:]))})


def batchify_states(states_list: Sequence[Any], batch_size: int, device: object = None) -> Any:
    """A state `[n]` as one of as many rows as a batch has (Ray 2.x)."""
    return [state.unsqueeze(0).expand(batch_size, -1).to(device) for state in states_list]


class EpisodicBuffer:
    """Keeps complete episodes, and samples pieces of them."""

    def __init__(self, max_length: int = 1000, length: int = 50) -> None:
        self.max_length, self.length = max_length, length
        self.episodes: list[Any] = []
        self.timesteps = 0

    def add(self, batch: Any) -> None:
        """Adds the episodes of a batch."""
        self.timesteps += batch.count
        self.episodes = [*self.episodes, *batch.split_by_episode()][-self.max_length :]

    def sample(self, batch_size: int) -> Any:
        """As many pieces of random episodes that are long enough."""
        return concat_samples([self._piece() for _ in range(batch_size)])

    def _piece(self) -> Any:
        draw: Callable[[int, int], int] = random.randint  # old runs can be repeated
        episode = self.episodes[draw(0, len(self.episodes) - 1)]
        while episode.count < self.length:
            episode = self.episodes[draw(0, len(self.episodes) - 1)]
        first = draw(0, episode.count - self.length)
        return episode[first : first + self.length]


def total_sampled_timesteps(worker: Any) -> int:
    """How many steps the worker's policy has acted in, with repetitions."""
    return int(worker.policy_map["default_policy"].global_timestep)
