"""Model and policy parts of DDPG and TD3: `ddpg_torch_model`, `ddpg_torch_policy` and the like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from ray.rllib.models.catalog import ModelCatalog
from ray.rllib.models.torch.misc import SlimFC
from ray.rllib.models.torch.torch_action_dist import TorchDeterministic, TorchDirichlet
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2
from ray.rllib.models.utils import get_activation_fn
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.utils.error import UnsupportedSpaceException
from ray.rllib.utils.spaces.simplex import Simplex
from torch import nn

from rllib_compat.algorithms.ddpg import add_target_noise, critics_loss
from rllib_compat.algorithms.objectives import least, td_targets
from rllib_compat.legacy.policies.mixins import (
    ComputeTDErrorMixin,
    TargetNetworkMixin,
    q_stats,
    tower_mean,
)
from rllib_compat.ray_versions.types import Policy

__all__ = [
    "ActorCriticOptimizerMixin",
    "CRRModel",
    "ComputeTDErrorMixin",
    "DDPGTFModel",
    "DDPGTorchModel",
    "NoopModel",
    "TargetNetworkMixin",
    "TorchNoopModel",
    "apply_gradients_fn",
    "before_init_fn",
    "build_ddpg_models",
    "build_ddpg_models_and_action_dist",
    "build_ddpg_stats",
    "ddpg_actor_critic_loss",
    "get_distribution_inputs_and_class",
    "gradients_fn",
    "make_ddpg_models",
    "make_ddpg_optimizers",
    "setup_early_mixins",
    "setup_late_mixins",
    "setup_mid_mixins",
    "validate_spaces",
]


class TorchNoopModel(TorchModelV2):  # type: ignore[misc]  # Ray has no types
    """Gives the observation as it is, flattened."""

    def forward(self, input_dict: Any, state: Any, seq_lens: object) -> Any:
        """The observations `[B, n]`, and the state as it was."""
        return input_dict["obs_flat"].float(), state


NoopModel = TorchNoopModel


class _Squashed(nn.Module):
    """Squeezes actions into the bounds of their space."""

    def __init__(self, space: Any) -> None:
        super().__init__()
        low, size = torch.as_tensor(space.low), torch.as_tensor(space.high - space.low)
        for name, value in (("low_action", low), ("action_range", size)):
            self.register_parameter(name, nn.Parameter(value.float(), requires_grad=False))

    def forward(self, x: torch.Tensor) -> Any:
        low, size = self.parameters()
        return torch.addcmul(low, size, torch.sigmoid(2.0 * x))


class DDPGTorchModel(TorchModelV2, nn.Module):  # type: ignore[misc]
    """An actor and one or two critics over what a subclass's `forward` gives."""

    policy_model: nn.Module
    q_model: nn.Module
    twin_q_model: Any
    action_space: Any

    def __init__(
        self,
        obs_space: Any,
        action_space: Any,
        num_outputs: int,
        model_config: Any,
        name: str,
        actor_hiddens: Sequence[int] | None = None,
        actor_hidden_activation: str = "relu",
        critic_hiddens: Sequence[int] | None = None,
        critic_hidden_activation: str = "relu",
        twin_q: bool = False,
        add_layer_norm: bool = False,
    ) -> None:
        nn.Module.__init__(self)
        super().__init__(obs_space, action_space, num_outputs, model_config, name)
        above = getattr(action_space, "bounded_above", np.isfinite(action_space.high))
        below = getattr(action_space, "bounded_below", np.isfinite(action_space.low))
        self.bounded = bool(np.any(above & below))
        self.action_dim, self.obs_ins = int(np.prod(action_space.shape)), num_outputs
        actor = _layers(
            num_outputs,
            [256, 256] if actor_hiddens is None else actor_hiddens,
            actor_hidden_activation,
            ("action_{}", "action_out"),
            self.action_dim,
            norm="LayerNorm_A_{}" if add_layer_norm else None,
        )
        if self.bounded:
            actor.add_module("action_out_squashed", _Squashed(action_space))
        self.add_module("policy_model", actor)
        units = [256, 256] if critic_hiddens is None else critic_hiddens
        for critic in ("q", "twin_q") if twin_q else ("q",):
            names = f"{critic}_hidden_{{}}", f"{critic}_out"
            size = num_outputs + self.action_dim
            made = _layers(size, units, critic_hidden_activation, names, 1)
            self.add_module(f"{critic}_model", made)
        if not twin_q:
            self.twin_q_model = None

    def get_q_values(self, model_out: torch.Tensor, actions: torch.Tensor) -> Any:
        """The critic's values of actions, `[B, 1]`."""
        return self.q_model(torch.cat((model_out, actions), dim=-1))

    def get_twin_q_values(self, model_out: torch.Tensor, actions: torch.Tensor) -> Any:
        """The other critic's values of actions, `[B, 1]`."""
        return self.twin_q_model(torch.cat((model_out, actions), dim=-1))

    def get_policy_output(self, model_out: torch.Tensor) -> Any:
        """The actions, `[B, n]`."""
        return self.policy_model(model_out)

    def policy_variables(self, as_dict: bool = False) -> Any:
        """The actor's weights, as a list or by name."""
        return self.policy_model.state_dict() if as_dict else list(self.policy_model.parameters())

    def q_variables(self, as_dict: bool = False) -> Any:
        """The critics' weights, as a list or by name."""
        critics = [critic for critic in (self.q_model, self.twin_q_model) if critic is not None]
        if as_dict:
            return {name: w for critic in critics for name, w in critic.state_dict().items()}
        return [weight for critic in critics for weight in critic.parameters()]


DDPGTFModel = DDPGTorchModel


class CRRModel(TorchModelV2, nn.Module):  # type: ignore[misc]
    """CRR's actor and one or two critics; a subclass encodes the observations (Ray 2.x).

    Args:
        obs_space: The observation space.
        action_space: The action space, Discrete or a Box.
        num_outputs: The size of what `forward` gives.
        model_config: The config's `model`, with `actor_hiddens`, `critic_hiddens`,
            `actor_hidden_activation`, `critic_hidden_activation` and `twin_q`.
        name: The model's name.
    """

    actor_model: nn.Module
    q_model: nn.Module
    twin_q_model: Any

    def __init__(
        self, obs_space: Any, action_space: Any, num_outputs: int, model_config: Any, name: str
    ) -> None:
        nn.Module.__init__(self)
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        discrete = isinstance(action_space, spaces.Discrete)
        self._is_action_discrete, self.obs_ins = discrete, num_outputs
        self.action_dim = size = int(np.prod(action_space.shape))
        outputs = int(action_space.n) if discrete else 2 * size
        seen = num_outputs if discrete else num_outputs + size
        networks = {
            "actor": ("actor", num_outputs, outputs),
            "q": ("critic", seen, outputs if discrete else 1),
        }
        networks |= {"twin_q": networks["q"]} if model_config["twin_q"] else {}
        self.twin_q_model = None
        for net, (kind, inputs, last) in networks.items():
            units, function = (model_config[f"{kind}_{what}"] for what in _OF_LAYERS)
            made = _layers(inputs, units, function, (f"{net}_hidden_{{}}", f"{net}_out"), last)
            setattr(self, f"{net}_model", made)

    def _judge(self, net: Any, model_out: torch.Tensor, actions: torch.Tensor) -> Any:
        if self._is_action_discrete:
            return net(model_out).gather(-1, actions.long().unsqueeze(-1))
        return net(torch.cat((model_out, actions), -1))

    def get_q_values(self, model_out: torch.Tensor, actions: torch.Tensor) -> Any:
        """The critic's values of actions, `[B, 1]`."""
        return self._judge(self.q_model, model_out, actions)

    def get_twin_q_values(self, model_out: torch.Tensor, actions: torch.Tensor) -> Any:
        """The other critic's values of actions, `[B, 1]`."""
        return self._judge(self.twin_q_model, model_out, actions)

    def policy_variables(self, as_dict: bool = False) -> Any:
        """The actor's weights, as a list or by name."""
        return self.actor_model.state_dict() if as_dict else list(self.actor_model.parameters())

    q_variables = DDPGTorchModel.q_variables

    def get_policy_output(self, model_out: torch.Tensor) -> Any:
        """The inputs of the distributions of actions."""
        return self.actor_model(model_out)


def _layers(
    size: int,
    units: Sequence[int],
    activation: str,
    names: tuple[str, str],
    outputs: int,
    norm: str | None = None,
) -> nn.Sequential:
    """Dense layers, by the names that old checkpoints have for them."""

    def dense(inputs: int, outputs: int, function: object) -> nn.Module:
        layer: nn.Module = SlimFC(inputs, outputs, nn.init.xavier_uniform_, activation_fn=function)
        return layer

    made, hidden = nn.Sequential(), get_activation_fn(activation, framework="torch")
    for index, width in enumerate(units):
        made.add_module(names[0].format(index), dense(size, width, hidden))
        if norm is not None:
            made.add_module(norm.format(index), nn.LayerNorm(width))
        size = width
    made.add_module(names[1], dense(size, outputs, None))
    return made


_OF_LAYERS = ("hiddens", "hidden_activation")


def build_ddpg_models(
    policy: Policy, observation_space: Any, action_space: Any, config: Any
) -> Any:
    """The policy's model, which is returned, and its target; both are kept in the policy."""
    if policy.config["use_state_preprocessor"]:
        config["model"]["no_final_linear"] = True
        size, default = 256, None
    else:
        size, default = int(np.prod(observation_space.shape)), TorchNoopModel
    heads = [f"{part}_{what}" for part in ("actor", "critic") for what in _OF_LAYERS] + ["twin_q"]
    for name in ("model", "target_model"):
        made = ModelCatalog.get_model_v2(
            observation_space,
            action_space,
            size,
            config["model"],
            framework="torch",
            name=name.replace("model", "ddpg_model"),
            model_interface=DDPGTorchModel,
            default_model=default,
            add_layer_norm=policy.config["exploration_config"].get("type") == "ParameterNoise",
            **{key: config[key] for key in heads},
        )
        setattr(policy, name, made)
    policy.target_models = {policy.model: policy.target_model}
    return policy.model


def make_ddpg_models(policy: Policy) -> Any:
    """The same of a policy, as Ray 2.x had it."""
    return build_ddpg_models(policy, policy.observation_space, policy.action_space, policy.config)


def _distribution(action_space: object) -> Any:
    return TorchDirichlet if isinstance(action_space, Simplex) else TorchDeterministic


def build_ddpg_models_and_action_dist(
    policy: Policy, obs_space: object, action_space: object, config: object
) -> Any:
    """The model, and the class of action distributions."""
    model = build_ddpg_models(policy, obs_space, action_space, config)
    return model, _distribution(action_space)


def get_distribution_inputs_and_class(
    policy: Policy,
    model: Any,
    obs_batch: Any,
    *,
    explore: bool = True,
    is_training: bool = False,
    **kwargs: object,
) -> Any:
    """The actor's actions, the class of their distribution, and no state."""
    seen = SampleBatch(obs=obs_batch, _is_training=is_training)
    actions = model.get_policy_output(model(seen, [], None)[0])
    return actions, _distribution(policy.action_space), []


def validate_spaces(
    policy: Policy, observation_space: object, action_space: object, config: object = None
) -> None:
    """Checks that actions are a vector or a number; until Ray 1.x it took the config, too.

    Raises:
        UnsupportedSpaceException: They are not.
    """
    if not isinstance(action_space, (spaces.Box, Simplex)):
        raise UnsupportedSpaceException(f"DDPG has no actions of {action_space}: use a Box.")
    if len(action_space.shape) > 1:
        raise UnsupportedSpaceException(
            f"DDPG's actions are vectors, not of the shape {action_space.shape}: reshape the space."
        )


def ddpg_actor_critic_loss(policy: Policy, model: Any, _: object, train_batch: Any) -> Any:
    """The losses of actor and critic; statistics are kept in `model.tower_stats`."""
    config, target = policy.config, policy.target_models[model]
    seen = SampleBatch(obs=train_batch["obs"], _is_training=True)
    then = SampleBatch(obs=train_batch["new_obs"], _is_training=True)
    features, following = model(seen, [], None)[0], target(then, [], None)[0]
    actions = target.get_policy_output(following)
    if config["smooth_target_policy"]:
        space = policy.action_space
        low, high = (actions.new_tensor(bound) for bound in (space.low, space.high))
        spread = config["target_noise"], config["target_noise_clip"]
        actions = add_target_noise(actions, low, high, *spread)
    twin = config["twin_q"]
    values = list(_critics(model, features, train_batch["actions"], twin))
    with torch.no_grad():
        next_value = least(_critics(target, following, actions, twin)).squeeze(-1)
        ended, discount = train_batch["terminateds"], config["gamma"] ** config["n_step"]
        targets = td_targets(train_batch["rewards"], ended, next_value, discount)
    actor_loss = -model.get_q_values(features, model.get_policy_output(features)).mean()
    critic_loss = critics_loss(
        [value.squeeze(-1) for value in values],
        targets,
        train_batch["weights"],
        config["huber_threshold"] if config["use_huber"] else None,
    )
    if (share := config["l2_reg"]) is not None:
        # Without a gradient, as a dict of weights has none.
        actor_loss = actor_loss + share * _squares(model.policy_variables(as_dict=True))
        critic_loss = critic_loss + share * _squares(model.q_variables(as_dict=True))
    if config["use_state_preprocessor"]:
        seen.update({name: train_batch[name] for name in _OF_A_STEP})
        actor_loss, critic_loss = model.custom_loss([actor_loss, critic_loss], seen)
    stats = {"actor_loss": actor_loss, "critic_loss": critic_loss, "q_t": values[0]}
    model.tower_stats |= {**stats, "td_error": values[0].squeeze(-1) - targets}
    return actor_loss, critic_loss


#: The columns of a model's own loss, beside observations.
_OF_A_STEP = ("actions", "rewards", "terminateds", "new_obs")


def _critics(model: Any, features: Any, actions: Any, twin: bool) -> Iterator[Any]:
    yield model.get_q_values(features, actions)
    if twin:
        yield model.get_twin_q_values(features, actions)


def _squares(weights: dict[str, torch.Tensor]) -> Any:
    return sum(w.pow(2.0).sum() / 2.0 for name, w in weights.items() if "bias" not in name)


def make_ddpg_optimizers(policy: Policy, config: Any) -> Any:
    """Adam for the actor, and for the critics."""
    of = {"_actor_optimizer": "policy_variables", "_critic_optimizer": "q_variables"}
    for name, variables in of.items():
        rate = config["actor_lr" if "actor" in name else "critic_lr"]
        weights = getattr(policy.model, variables)()
        setattr(policy, name, torch.optim.Adam(weights, lr=rate, eps=1e-7))
    return policy._actor_optimizer, policy._critic_optimizer  # noqa: SLF001 - old code's names


class ActorCriticOptimizerMixin:
    """Gives a policy that has its model an optimizer for the actor and one for the critics."""

    def __init__(self: Any, config: Any) -> None:
        before_init_fn(self, None, None, config)
        make_ddpg_optimizers(self, config)


def gradients_fn(policy: Policy, optimizer: object, loss: Any) -> dict[str, float]:
    """Clips gradients of the actor's and the critics' weights, each by its norm."""
    for weights in (policy.model.policy_variables(), policy.model.q_variables()):
        if optimizer is not None and policy.config["grad_clip"]:
            nn.utils.clip_grad_norm_(weights, policy.config["grad_clip"])
    return {}


def apply_gradients_fn(policy: Policy, gradients: object) -> None:
    """Takes a step of the critics' optimizer, and each `policy_delay`-th time of the actor's."""
    is_delayed = policy.global_step % policy.config["policy_delay"]
    for name in ("_critic_optimizer",) if is_delayed else ("_actor_optimizer", "_critic_optimizer"):
        getattr(policy, name).step()
    policy.global_step += 1


def build_ddpg_stats(policy: Policy, batch: object) -> dict[str, Any]:
    """The statistics of the last loss, for the results."""
    losses = {name: tower_mean(policy, name) for name in ("actor_loss", "critic_loss")}
    return {**losses, **q_stats(policy, "q_t")}


def before_init_fn(policy: Policy, obs_space: object, action_space: object, config: object) -> None:
    """Starts to count steps."""
    policy.global_step = 0


def setup_early_mixins(
    policy: Policy, obs_space: object, action_space: object, config: object
) -> None:
    """Counts steps; the optimizers are made when there is a model."""
    before_init_fn(policy, obs_space, action_space, config)


def setup_mid_mixins(policy: Policy, *_: object) -> None:
    """Gives the policy `compute_td_error`."""
    ComputeTDErrorMixin.__init__(policy, ddpg_actor_critic_loss)


def setup_late_mixins(
    policy: Policy, obs_space: object, action_space: object, config: object
) -> None:
    """The same, and `update_target`."""
    setup_mid_mixins(policy, obs_space, action_space, config)
    TargetNetworkMixin.__init__(policy)
