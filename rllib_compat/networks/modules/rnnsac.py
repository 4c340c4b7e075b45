"""The module of RNNSAC: a recurrent policy and recurrent critics, unrolled over whole sequences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict
from typing import Any

import gymnasium
import numpy as np
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.models.base import ENCODER_OUT
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.utils.schedules.scheduler import Scheduler
from torch import Tensor, nn

from rllib_compat.networks.graph import CRITIC, POLICY, TWIN
from rllib_compat.networks.modules.distributions import squashed_gaussian
from rllib_compat.networks.modules.graph_module import ModuleWithTarget
from rllib_compat.networks.modules.layers import (
    CUSTOM_MODEL,
    EncoderCatalog,
    ModelV2Encoder,
    beside_observation,
    dense_layers,
)
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import modules

#: What the learner gets of a batch, `[B, T]`; `TAKEN` has one for each critic, `[critics, B, T]`.
#: Values and log probabilities are those that the policy expects of its own actions, here and (with
#: the target critics) in what follows.
TAKEN, VALUE, LOGP, NEXT_VALUE, NEXT_LOGP = "qf_preds", "value", "logp", "next_value", "next_logp"

#: `MIN_LOG_NN_OUTPUT`, `MAX_LOG_NN_OUTPUT` and `SMALL_NUMBER` of every Ray.
_LEAST_LOG_STD, _MOST_LOG_STD, _TINY = -5.0, 2.0, 1e-6


@public("rllib_compat.modules")
class RNNSACModule(ModuleWithTarget):
    """A policy over Discrete or Box actions, and one critic or two, each with an LSTM of its own.

    Each is the installed Ray's encoder with its LSTM (`use_lstm`), and the layers behind it
    (`head_fcnet_hiddens`); or a recurrent `ModelV2` (`custom_model`). Of Discrete actions critics
    give a value each; Box actions are one of their inputs. The `model_config` has `twin_q`,
    `initial_alpha` and `zero_init_states`, too, and under `critics` what is different in theirs
    (`fcnet_hiddens`, `lstm_cell_size`, …).
    """

    def setup(self) -> None:
        options, space = {**asdict(DefaultModelConfig()), **self.model_config}, self.action_space
        self.discrete = isinstance(space, gymnasium.spaces.Discrete)
        seen = self.observation_space
        if not (self.discrete or isinstance(space, gymnasium.spaces.Box)):
            raise ConfigError(
                f"RNNSAC has Discrete or Box actions, not {space}.",
                where="action_space",
                fix="Wrap the environment, so that its actions are one of both.",
            )
        if not (options["use_lstm"] or options.get(CUSTOM_MODEL)):
            raise ConfigError(
                "RNNSAC trains recurrent networks, and this one has no LSTM.",
                where="policy_model.use_lstm",
                fix="use_lstm=True",
            )
        if not self.discrete and len(seen.shape or ()) != 1:
            raise ConfigError(
                f"With Box actions, RNNSAC needs one-dimensional observations; these are {seen}.",
                where="observation_space",
                fix="Flatten the observations, or use Discrete actions.",
            )
        count = int(space.n) if self.discrete else int(np.prod(space.shape))
        judged, values = seen, count
        self._judges = [CRITIC, TWIN] if options["twin_q"] else [CRITIC]
        theirs = {**options, **options.get("critics", {})}
        if not self.discrete:  # the action is last: all go through the layers
            judged, values = gymnasium.spaces.Box(-np.inf, np.inf, (seen.shape[0] + count,)), 1
            theirs |= {"lstm_use_prev_action": False, "lstm_use_prev_reward": False}
        self.net = nn.ModuleDict(
            {
                POLICY: _recurrent(
                    seen, space, options, count if self.discrete else 2 * count, POLICY
                ),
                **{name: _recurrent(judged, space, theirs, values, name) for name in self._judges},
            }
        )
        self.log_alpha = nn.Parameter(torch.tensor([np.log(options["initial_alpha"])]).float())
        self.epsilon_schedule: Any = None
        if options.get("epsilon") is not None:
            self.epsilon_schedule = Scheduler(
                fixed_value_or_schedule=options["epsilon"], framework="torch"
            )
        self._temperature = options.get("soft_q_temperature")
        if not self.discrete and self.epsilon_schedule is not None:
            raise ConfigError(
                "With Box actions, RNNSAC explores only by its action distribution.",
                where="exploration_config",
                fix="Remove the key.",
            )
        self.carries_critics = not options["zero_init_states"]
        kind = modules.torch_distributions().TorchCategorical
        squashed = squashed_gaussian(-1.0, 1.0, _LEAST_LOG_STD)
        self.action_dist_cls = kind if self.discrete else squashed

    def parameters_of(self, part: str) -> list[nn.Parameter]:
        """The parameters that one of the optimizers trains: `policy`, `qf`, `qf_twin`, `alpha`."""
        if part == "alpha":
            return [self.log_alpha]
        stack = {"policy": POLICY, "qf": CRITIC, "qf_twin": TWIN}[part]
        return list(self.net[stack].parameters()) if stack in self.net else []

    def get_initial_state(self) -> Any:
        nets: Any = self.net
        return {name: part["encoder"].get_initial_state() for name, part in nets.items()}

    def make_target_networks(self) -> None:
        """Makes the target critics, equal to the critics; a learner calls it."""
        critics = {name: deepcopy(self.net[name]) for name in self._judges}
        self.target_net = nn.ModuleDict(critics).requires_grad_(False)

    def get_target_network_pairs(self) -> list[tuple[nn.Module, nn.Module]]:
        """The critics, each with the one that follows it."""
        return [(self.net[name], self.target_net[name]) for name in self._judges]

    def forward_target(self, batch: dict[str, Any]) -> dict[str, Any]:
        """What the target critics say of the actions in a batch; see `values_of`."""
        actions = None if self.discrete else batch[Columns.ACTIONS]
        seen, states = self._seen(batch), batch[Columns.STATE_IN]
        return {TAKEN: self.values_of(seen, states, actions, target=True)}

    def critics(self, batch: dict[str, Any]) -> dict[str, Any]:
        """What the critics say of a batch, which has Box actions, too; and all next states."""
        seen, states = self._seen(batch), batch[Columns.STATE_IN]
        inputs = seen if self.discrete else _beside(seen, batch[Columns.ACTIONS])
        after = {POLICY: self.logits_of(seen, states)[1]}
        out: dict[str, Any] = {}
        for name, output in zip(self._judges, ("q_values", "twin_q_values"), strict=False):
            values, after[name] = _computed(self.net[name], inputs, states[name])
            out[output] = values if self.discrete else values.squeeze(-1)
        return {**out, Columns.STATE_OUT: after}

    def _seen(self, batch: dict[str, Any]) -> Tensor:
        """The observations, the step before behind them: they have it, or it is beside them."""
        seen: Tensor = beside_observation(batch, self.action_space)
        return seen

    def logits_of(self, seen: Tensor, states: dict[str, Any]) -> tuple[Tensor, Any]:
        """The policy's logits `[B, T, n]`, and its state after the last step."""
        return _computed(self.net[POLICY], seen, states[POLICY])

    def values_of(
        self,
        seen: Tensor,
        states: dict[str, Any],
        actions: Tensor | None = None,
        *,
        target: bool = False,
    ) -> Tensor:
        """What each critic says of Box actions `[critics, B, T]`, or all Discrete ones `[…, n]`."""
        net = self.target_net if target else self.net
        inputs = seen if actions is None or self.discrete else _beside(seen, actions)
        options = [_computed(net[name], inputs, states[name])[0] for name in self._judges]
        return torch.stack(options if self.discrete else [values.squeeze(-1) for values in options])

    def _act(self, batch: dict[str, Any], *, explore: bool) -> dict[str, Any]:
        """What actions are drawn from, and the next states; those of critics if they are stored.

        Critics continue with the Box actions that are taken: these are drawn here, or are the best.
        """
        seen, states = self._seen(batch), batch[Columns.STATE_IN]
        logits, after = self.logits_of(seen, states)
        states, inputs = {**states, POLICY: after}, seen
        out: dict[str, Any] = {Columns.ACTION_DIST_INPUTS: logits, Columns.STATE_OUT: states}
        if self.carries_critics and not self.discrete:
            policy = self.action_dist_cls.from_logits(logits)
            out[Columns.ACTIONS] = (policy if explore else policy.to_deterministic()).sample()
            inputs = _beside(seen, out[Columns.ACTIONS])
        if self.carries_critics:
            for name in self._judges:
                states[name] = _computed(self.net[name], inputs, states[name])[1]
        return out

    def _forward_inference(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        return self._act(batch, explore=False)

    def _forward_exploration(
        self, batch: dict[str, Any], t: int = 0, **_: object
    ) -> dict[str, Any]:
        """Acts by its distribution, by that of a temperature, or epsilon-greedily."""
        out = self._act(batch, explore=True)
        if self.epsilon_schedule is None:
            return out
        logits = out[Columns.ACTION_DIST_INPUTS]
        chosen = logits.argmax(-1)
        if self._temperature is not None:
            chosen = torch.distributions.Categorical(logits=logits / self._temperature).sample()
        anyone = torch.randint_like(chosen, logits.shape[-1])
        explores = torch.rand(chosen.shape, device=chosen.device)
        out[Columns.ACTIONS] = torch.where(
            explores < self.epsilon_schedule.update(t), anyone, chosen
        )
        return out

    def _forward_train(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        """What the losses are made of.

        What follows is run from the states that the steps themselves begin with, as RLlib did.
        """
        seen, following, states = (
            batch[name] for name in (Columns.OBS, Columns.NEXT_OBS, Columns.STATE_IN)
        )
        logits, _state = self.logits_of(seen, states)
        judge = self._discrete if self.discrete else self._continuous
        out = judge(logits, seen, states, batch[Columns.ACTIONS])
        with torch.no_grad():
            logits, _state = self.logits_of(following, states)
            value, logp = self._ahead(logits, following, states)
        return {**out, NEXT_VALUE: value, NEXT_LOGP: logp}

    def _discrete(
        self, logits: Tensor, seen: Tensor, states: dict[str, Any], actions: Tensor
    ) -> Any:
        values = self.values_of(seen, states)
        logps = logits.log_softmax(-1)
        # Of two critics the policy follows the first alone, as RLlib's did.
        own = values[0].detach()
        index = actions.long().unsqueeze(-1).expand(len(values), *actions.shape, 1)
        return {
            TAKEN: values.gather(-1, index).squeeze(-1),
            VALUE: (logps.exp() * own).sum(-1),
            LOGP: (logps.exp() * logps).sum(-1),
        }

    def _continuous(self, logits: Tensor, seen: Tensor, states: Any, actions: Tensor) -> Any:
        own, logp = drawn(logits)
        with _frozen(self.net[name] for name in self._judges):
            value = self.values_of(seen, states, own).min(0).values
        return {TAKEN: self.values_of(seen, states, actions), VALUE: value, LOGP: logp}

    def _ahead(self, logits: Tensor, seen: Tensor, states: dict[str, Any]) -> tuple[Tensor, Tensor]:
        if not self.discrete:
            actions, logp = drawn(logits)
            return self.values_of(seen, states, actions, target=True).min(0).values, logp
        logps = logits.log_softmax(-1)
        values = self.values_of(seen, states, target=True).min(0).values
        return (logps.exp() * values).sum(-1), (logps.exp() * logps).sum(-1)


def drawn(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Actions in -1 … 1 that a squashed normal gives `[…, n]`, and their log probability `[…]`."""
    mean, log_std = torch.tensor_split(logits, 2, -1)
    deviation = log_std.clamp(_LEAST_LOG_STD, _MOST_LOG_STD).exp()
    policy = torch.distributions.Normal(mean, deviation, validate_args=False)
    before = policy.rsample()
    actions = before.tanh()
    logp = policy.log_prob(before).clamp(-100.0, 100.0) - (1.0 - actions**2 + _TINY).log()
    return actions, logp.sum(-1)


def _recurrent(
    seen: Any, actions: Any, options: dict[str, Any], outputs: int, name: str
) -> nn.ModuleDict:
    """An encoder with its LSTM, and the layers behind it."""
    if options.get(CUSTOM_MODEL):
        own = ModelV2Encoder(seen, actions, outputs, options, name)
        return nn.ModuleDict({"encoder": own, "head": nn.Identity()})
    head = (options["head_fcnet_hiddens"], outputs, options["head_fcnet_activation"] or "linear")
    catalog = EncoderCatalog(seen, actions, options)
    return nn.ModuleDict(
        {
            "encoder": catalog.build_encoder(framework="torch"),
            "head": catalog.behind(dense_layers(options["lstm_cell_size"], *head)),
        }
    )


def _computed(part: Any, seen: Tensor, state: Mapping[str, Tensor]) -> tuple[Tensor, Any]:
    """What a part gives for each step, and its state after the last."""
    encoded = part["encoder"]({Columns.OBS: seen, Columns.STATE_IN: state})
    return part["head"](encoded[ENCODER_OUT]), encoded[Columns.STATE_OUT]


def _beside(seen: Tensor, actions: Tensor) -> Tensor:
    return torch.cat([seen, actions.flatten(2).to(seen.dtype)], -1)


@contextmanager
def _frozen(parts: Any) -> Iterator[None]:
    """Gradients go through networks, and not to them."""
    weights = [weight for part in parts for weight in part.parameters() if weight.requires_grad]
    for weight in weights:
        weight.requires_grad_(False)
    try:
        yield
    finally:
        for weight in weights:
            weight.requires_grad_(True)
