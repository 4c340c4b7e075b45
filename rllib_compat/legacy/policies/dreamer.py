"""Networks, loss, policy parts and buffer of Dreamer (Ray 1.0 – 2.x), with a world model of images.

A state is a list of four tensors: mean, deviation and sample of the random part; the other part.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any

import numpy as np
import torch
from ray.rllib.models.catalog import ModelCatalog
from ray.rllib.models.torch.misc import Reshape
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2
from ray.rllib.policy.sample_batch import SampleBatch, concat_samples
from torch import distributions, nn
from torch.nn import functional

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

ActFunc = Any

State = list[torch.Tensor]


class _XavierWeights(nn.Module):
    """The first base of a layer with Xavier's first weights, and zeros as first biases."""

    def reset_parameters(self) -> None:
        """Draws them."""
        for name, parameter in self.named_parameters():
            draw = nn.init.zeros_ if name == "bias" else nn.init.xavier_uniform_
            draw(parameter)


class Linear(_XavierWeights, nn.Linear):
    """A dense layer."""


class Conv2d(_XavierWeights, nn.Conv2d):
    """A convolution."""


class ConvTranspose2d(_XavierWeights, nn.ConvTranspose2d):
    """A transposed convolution."""


class GRUCell(nn.GRUCell):
    """A cell whose first recurrent weights are orthogonal, and the others Xavier's."""

    def reset_parameters(self) -> None:
        """Draws them."""
        nn.init.xavier_uniform_(self.weight_ih, gain=1.0)
        nn.init.orthogonal_(self.weight_hh)
        for bias in (self.bias_ih, self.bias_hh):
            nn.init.zeros_(bias)


class TanhBijector(distributions.Transform):
    """Squashes numbers into (-1, 1)."""

    bijective = True
    domain = distributions.constraints.real
    codomain = distributions.constraints.interval(-1.0, 1.0)

    def atanh(self, x: torch.Tensor) -> torch.Tensor:
        """The inverse of the squashing."""
        return 0.5 * ((1 + x) / (1 - x)).log()

    def sign(self) -> float:  # type: ignore[override]  # it was no property
        """1.0: it rises."""
        return 1.0

    def _call(self, x: torch.Tensor) -> torch.Tensor:
        return x.tanh()

    def _inverse(self, y: torch.Tensor) -> torch.Tensor:
        most = 0.99999997  # at the bounds themselves there is none
        return self.atanh(torch.where(y.abs() <= 1.0, y.clamp(-most, most), y))

    def log_abs_det_jacobian(self, x: torch.Tensor, y: object) -> Any:
        """The logarithm of how much the squashing shrinks."""
        shrunk: Any = np.log(2) - x - functional.softplus(-2.0 * x)
        return 2.0 * shrunk


class ConvEncoder(nn.Module):
    """Images `[…, C, 64, 64]` as vectors `[…, 32 * depth]`."""

    def __init__(
        self, depth: int = 32, act: ActFunc = None, shape: Sequence[int] = (3, 64, 64)
    ) -> None:
        super().__init__()
        self.act, self.depth, self.shape = act or nn.ReLU, depth, shape
        self.layers: list[nn.Module] = []
        channels = shape[0]
        for times in (1, 2, 4, 8):
            self.layers += [Conv2d(channels, times * depth, 4, stride=2), self.act()]
            channels = times * depth
        self.model = nn.Sequential(*self.layers)

    def forward(self, x: torch.Tensor) -> Any:
        """The vectors."""
        seen = self.model(x.reshape(-1, *x.shape[-3:]))
        return seen.reshape(*x.shape[:-3], 32 * self.depth)


class ConvDecoder(nn.Module):
    """Vectors as distributions of images."""

    def __init__(
        self,
        input_size: int,
        depth: int = 32,
        act: ActFunc = None,
        shape: Sequence[int] = (3, 64, 64),
    ) -> None:
        super().__init__()
        self.act, self.depth, self.shape = act or nn.ReLU, depth, shape
        first, size = 32 * depth, 5
        self.layers = [Linear(input_size, first), Reshape([-1, first, 1, 1])]
        for channels in (4 * depth, 2 * depth, depth):
            self.layers += [ConvTranspose2d(first, channels, size, stride=2), self.act()]
            size, first = (5 if channels == 4 * depth else 6), channels
        last = ConvTranspose2d(first, shape[0], size, stride=2)
        self.layers.append(last)
        self.model = nn.Sequential(*self.layers)

    def forward(self, x: torch.Tensor) -> distributions.Distribution:
        """The distribution, with deviation 1."""
        mean = self.model(x).reshape(*x.shape[:-1], *self.shape)
        pixels = distributions.Normal(mean, 1)
        return distributions.Independent(pixels, mean.dim() - x.dim() + 1)


def _dense(size: int, layers: int, units: int, act: ActFunc, outputs: int) -> list[nn.Module]:
    made: list[nn.Module] = []
    for _ in range(layers):
        made += [Linear(size, units), act()]
        size = units
    return [*made, Linear(size, outputs)]


class DenseDecoder(nn.Module):
    """Vectors as distributions of numbers."""

    def __init__(
        self,
        input_size: int,
        output_size: int,
        layers: int,
        units: int,
        dist: str = "normal",
        act: ActFunc = None,
    ) -> None:
        super().__init__()
        self.act, self.dist, self.layrs, self.units = act or nn.ELU, dist, layers, units
        self.input_size, self.output_size = input_size, output_size
        self.layers = _dense(input_size, layers, units, self.act, output_size)
        self.model = nn.Sequential(*self.layers)

    def forward(self, x: torch.Tensor) -> distributions.Distribution:
        """The distribution; of one number, without its dimension.

        Raises:
            NotImplementedError: It is of another kind.
        """
        found = self.model(x)
        found = found.squeeze() if self.output_size == 1 else found
        if self.dist == "normal":
            made: Any = distributions.Normal(found, 1)
        elif self.dist == "binary":
            made = distributions.Bernoulli(logits=found)
        else:
            raise NotImplementedError(f"dist is normal or binary, not {self.dist!r}.")
        return distributions.Independent(made, 0)


class ActionDecoder(nn.Module):
    """Vectors as distributions of actions between -1 and 1."""

    def __init__(
        self,
        input_size: int,
        action_size: int,
        layers: int,
        units: int,
        dist: str = "tanh_normal",
        act: ActFunc = None,
        min_std: float = 1e-4,
        init_std: float = 5.0,
        mean_scale: float = 5.0,
    ) -> None:
        super().__init__()
        self.act, self.dist, self.layrs, self.units = act or nn.ReLU, dist, layers, units
        self.min_std, self.init_std, self.mean_scale = min_std, init_std, mean_scale
        self.action_size, self.softplus = action_size, nn.Softplus()
        outputs = action_size if dist == "onehot" else 2 * action_size
        self.layers = _dense(input_size, layers, units, self.act, outputs)
        self.model = nn.Sequential(*self.layers)

    def forward(self, x: torch.Tensor) -> distributions.Distribution:
        """The distribution.

        Raises:
            NotImplementedError: It is of another kind.
        """
        if self.dist != "tanh_normal":
            raise NotImplementedError("Dreamer's actions are numbers: dist is tanh_normal.")
        mean, spread = self.model(x).chunk(2, dim=-1)
        mean = self.mean_scale * (mean / self.mean_scale).tanh()
        first = np.log(np.expm1(self.init_std))
        normal = distributions.Normal(mean, self.softplus(spread + first) + self.min_std)
        squashed = distributions.TransformedDistribution(normal, [TanhBijector()])
        return distributions.Independent(squashed, 1)


class RSSM(nn.Module):
    """Predicts the next state: without its image (the prior), and with it (the posterior).

    Of a state, `stoch` numbers are random, and `deter` are not.
    """

    obs1: Linear
    obs2: Linear
    cell: GRUCell
    img1: Linear
    img2: Linear
    img3: Linear

    def __init__(
        self,
        action_size: int,
        embed_size: int,
        stoch: int = 30,
        deter: int = 200,
        hidden: int = 200,
        act: ActFunc = None,
    ) -> None:
        super().__init__()
        self.stoch_size, self.deter_size, self.hidden_size = stoch, deter, hidden
        self.act, self.softplus = act or nn.ELU, nn.Softplus
        sizes = {
            "obs1": (embed_size + deter, hidden),
            "obs2": (hidden, 2 * stoch),
            "cell": (hidden, deter),
            "img1": (stoch + action_size, hidden),
            "img2": (deter, hidden),
            "img3": (hidden, 2 * stoch),
        }
        for name, size in sizes.items():
            self.add_module(name, GRUCell(*size) if name == "cell" else Linear(*size))

    def get_initial_state(self, batch_size: int) -> State:
        """Zeros."""
        sizes = (*[self.stoch_size] * 3, self.deter_size)
        return [self.obs1.weight.new_zeros(batch_size, size) for size in sizes]

    def get_dist(self, mean: torch.Tensor, std: torch.Tensor) -> distributions.Normal:
        """The distribution of the random part."""
        return distributions.Normal(mean, std)

    def get_feature(self, state: State) -> torch.Tensor:
        """A state as a vector."""
        return torch.cat(state[2:4], dim=-1)

    def _drawn(self, layers: tuple[nn.Module, nn.Module], x: torch.Tensor) -> State:
        mean, spread = layers[1](self.act()(layers[0](x))).chunk(2, dim=-1)
        std = self.softplus()(spread) + 0.1
        return [mean, std, self.get_dist(mean, std).rsample()]

    def img_step(self, prev_state: State, prev_action: torch.Tensor) -> State:
        """The prior of the state after a state and an action."""
        x = self.act()(self.img1(torch.cat((prev_state[2], prev_action), dim=-1)))
        known = self.cell(x, prev_state[3])
        return [*self._drawn((self.img2, self.img3), known), known]

    def obs_step(
        self, prev_state: State, prev_action: torch.Tensor, embed: torch.Tensor
    ) -> tuple[State, State]:
        """The posterior of the next state, given its image, and the prior."""
        prior = self.img_step(prev_state, prev_action)
        known = prior[3]
        seen = torch.cat((known, embed), dim=-1)
        return [*self._drawn((self.obs1, self.obs2), seen), known], prior

    def observe(
        self, embed: torch.Tensor, action: torch.Tensor, state: State | None = None
    ) -> tuple[State, State]:
        """The posteriors and the priors of all steps, `[B, T, n]` each.

        Images (as vectors) and the actions before them are `[B, T, n]`, too.
        """
        last = self.get_initial_state(len(action)) if state is None else state
        embed, action = (x.unsqueeze(1) if x.dim() <= 2 else x for x in (embed, action))
        found = []
        for seen, done in zip(embed.unbind(1), action.unbind(1), strict=True):
            found.append(self.obs_step(last, done, seen))
            last = found[-1][0]
        posts, priors = zip(*found, strict=True)
        return _along(posts, 1), _along(priors, 1)

    def imagine(self, action: torch.Tensor, state: State | None = None) -> State:
        """The priors of all steps of actions `[B, T, n]`."""
        last = self.get_initial_state(len(action)) if state is None else state
        found = []
        for done in action.unbind(1):
            last = self.img_step(last, done)
            found.append(last)
        return _along(found, 1)


def _along(states: Iterable[State], dim: int) -> State:
    """States one after the other, as one whose tensors have another dimension."""
    return [torch.stack(parts, dim=dim) for parts in zip(*states, strict=True)]


class DreamerModel(TorchModelV2, nn.Module):  # type: ignore[misc]  # Ray has no types
    """A world model, an actor, and a critic.

    Args:
        obs_space: The observation space: images.
        action_space: The action space, a Box.
        num_outputs: Ignored.
        model_config: `depth_size`, `deter_size`, `stoch_size` and `hidden_size`.
        name: The model's name.
    """

    encoder: Any
    decoder: Any
    reward: Any
    dynamics: Any
    actor: Any
    value: Any

    def __init__(
        self, obs_space: Any, action_space: Any, num_outputs: int, model_config: Any, name: str
    ) -> None:
        super().__init__(obs_space, action_space, num_outputs, model_config, name)
        nn.Module.__init__(self)
        self.depth, self.deter_size = model_config["depth_size"], model_config["deter_size"]
        self.stoch_size, units = model_config["stoch_size"], model_config["hidden_size"]
        self.hidden_size, self.action_size = units, action_space.shape[0]
        size, seen = self.stoch_size + self.deter_size, 32 * self.depth
        world = RSSM(self.action_size, seen, stoch=self.stoch_size, deter=self.deter_size)
        for part, module in (
            ("encoder", ConvEncoder(self.depth)),
            ("decoder", ConvDecoder(size, depth=self.depth)),
            ("reward", DenseDecoder(size, 1, 2, units)),
            ("dynamics", world),
            ("actor", ActionDecoder(size, self.action_size, 4, units)),
            ("value", DenseDecoder(size, 1, 3, units)),
        ):
            self.add_module(part, module)
        self.state: State | None = None

    def policy(
        self, obs: torch.Tensor, state: State | None, explore: bool = True
    ) -> tuple[torch.Tensor, torch.Tensor, State]:
        """Actions, the logarithms of their probabilities, and the next state."""
        before = self.get_initial_state() if state is None else state
        post, _ = self.dynamics.obs_step(before[:4], before[4], self.encoder(obs))
        actions = self.actor(self.dynamics.get_feature(post))
        action = actions.sample() if explore else actions.mean
        self.state = [*post, action]
        return action, actions.log_prob(action), self.state

    def imagine_ahead(self, state: State, horizon: int) -> torch.Tensor:
        """The vectors of the states that the actor leads to, `[horizon, B * T, n]`."""
        last = [part.detach().flatten(0, 1) for part in state]
        found = []
        for _ in range(horizon):
            action = self.actor(self.dynamics.get_feature(last).detach()).rsample()
            last = self.dynamics.img_step(last, action)
            found.append(last)
        return self.dynamics.get_feature(_along(found, 0))  # type: ignore[no-any-return]

    def get_initial_state(self) -> State:
        """Zeros, with an action."""
        zeros = self.dynamics.get_initial_state(1)
        self.state = [*zeros, zeros[0].new_zeros(1, self.action_size)]
        return self.state

    def value_function(self) -> None:
        """None: the critic judges states of the learned world."""


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
