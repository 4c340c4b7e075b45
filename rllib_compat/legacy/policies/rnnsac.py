"""The model, loss and other policy parts of RNNSAC (Ray 1.7 – 2.x), for Discrete actions.

With Box actions its loss failed in every Ray that had it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from ray.rllib.algorithms.sac.sac_torch_model import SACTorchModel
from ray.rllib.models.catalog import MODEL_DEFAULTS, ModelCatalog
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.policy.view_requirement import ViewRequirement
from ray.rllib.utils.torch_utils import sequence_mask

from rllib_compat.algorithms.objectives import huber, td_targets
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions.old_policies import sac_distribution

__all__ = [
    "RNNSACTorchModel",
    "action_distribution_fn",
    "actor_critic_loss",
    "build_rnnsac_model",
    "build_sac_model_and_action_dist",
]

_NETS = ("policy", "q", "twin_q")


class RNNSACTorchModel(SACTorchModel):  # type: ignore[misc]  # Ray has no types
    """SAC's, whose networks each have a state.

    Args:
        obs_space: The observation space.
        action_space: The action space.
        num_outputs: The size of an observation.
        model_config: The config's `model`.
        name: The model's name.
        policy_model_config: That of the policy's network.
        q_model_config: That of the critics' networks.
        **told: What else SAC's model takes.
    """

    def __init__(
        self,
        obs_space: Any,
        action_space: Any,
        num_outputs: int | None,
        model_config: Any,
        name: str,
        policy_model_config: Any = None,
        q_model_config: Any = None,
        **told: Any,
    ) -> None:
        configs = [model_config, policy_model_config, q_model_config]
        super().__init__(
            obs_space, action_space, num_outputs, model_config, name, *configs[1:], **told
        )
        for what, column in (("action", "actions"), ("reward", "rewards")):
            used = any(config[f"lstm_use_prev_{what}"] for config in configs)
            setattr(self, f"use_prev_{what}", used)
            if used:
                space = {"space": action_space} if what == "action" else {}
                seen = ViewRequirement(column, shift=-1, **space)
                self.view_requirements[f"prev_{column}"] = seen

    def forward(self, input_dict: Any, state: Any, seq_lens: object) -> Any:
        """What the networks see, and the state as it was."""
        del seq_lens
        names = ["obs"]
        names += ["prev_actions"] if self.use_prev_action else []
        names += ["prev_rewards"] if self.use_prev_reward else []
        return {name: input_dict[name] for name in names}, state

    def _judge(self, net: Any, seen: Any, state: Any, lengths: Any, actions: Any) -> Any:
        if actions is not None:
            seen = {**seen, "obs": torch.cat((seen["obs"], actions), dim=-1)}
        return net({**seen, "is_training": True}, state, lengths)

    def get_q_values(
        self, model_out: Any, state_in: Any, seq_lens: Any, actions: torch.Tensor | None = None
    ) -> Any:
        """What the critic says, and its state."""
        return self._judge(self.q_net, model_out, state_in, seq_lens, actions)

    def get_twin_q_values(
        self, model_out: Any, state_in: Any, seq_lens: Any, actions: torch.Tensor | None = None
    ) -> Any:
        """What the other critic says, and its state."""
        return self._judge(self.twin_q_net, model_out, state_in, seq_lens, actions)

    def get_initial_state(self) -> list[Any]:
        """The states of all networks, one behind the other."""
        critics = list(self.q_net.get_initial_state()) * (2 if self.twin_q_net else 1)
        return [*self.action_model.get_initial_state(), *critics]

    def select_state(self, state_batch: Sequence[Any], net: Sequence[str]) -> dict[str, Any]:
        """The states of some of the networks: `policy`, `q` and `twin_q`."""
        first = len(self.action_model.get_initial_state())
        second = first + len(self.q_net.get_initial_state())
        ends = {"policy": (0, first), "q": (first, second)}
        ends["twin_q"] = (second, None if self.twin_q_net else second)  # type: ignore[assignment]
        return {name: state_batch[slice(*ends[name])] for name in net}


def build_rnnsac_model(policy: Any, obs_space: Any, action_space: Any, config: Any) -> Any:
    """The model; its target is kept in the policy."""
    made = [
        ModelCatalog.get_model_v2(
            obs_space,
            action_space,
            int(np.prod(obs_space.shape)),
            config["model"],
            framework="torch",
            default_model=RNNSACTorchModel,
            name=name,
            policy_model_config={**MODEL_DEFAULTS, **config["policy_model"]},
            q_model_config={**MODEL_DEFAULTS, **config["Q_model"]},
            **{key: config[key] for key in ("twin_q", "initial_alpha", "target_entropy")},
        )
        for name in ("sac_model", "target_sac_model")
    ]
    policy.target_model = made[1]
    return made[0]


def build_sac_model_and_action_dist(
    policy: Any, obs_space: Any, action_space: Any, config: Any
) -> Any:
    """The model, which has a state, and the class of action distributions.

    Raises:
        ConfigError: The model has no state.
    """
    model = build_rnnsac_model(policy, obs_space, action_space, config)
    if not model.get_initial_state():
        fix = 'Set "use_lstm" in the config\'s "policy_model" and "Q_model".'
        raise ConfigError("RNNSAC's model has no state.", where="policy_model", fix=fix)
    return model, sac_distribution(policy, config, action_space)


def action_distribution_fn(
    policy: Any,
    model: Any,
    input_dict: Any,
    *,
    state_batches: Any = None,
    seq_lens: Any = None,
    prev_action_batch: object = None,
    prev_reward_batch: object = None,
    explore: object = None,
    timestep: object = None,
    is_training: object = None,
) -> Any:
    """The inputs and the class of the distribution, and the next states of all networks.

    Args:
        policy: The policy.
        model: Its model.
        input_dict: What is observed.
        state_batches: The states of all networks.
        seq_lens: The lengths of sequences.
        prev_action_batch: Means nothing, as all that follow.
        prev_reward_batch: The same.
        explore: The same.
        timestep: The same.
        is_training: The same.
    """
    del prev_action_batch, prev_reward_batch, explore, timestep, is_training
    seen, states = model(input_dict, state_batches, seq_lens)
    states = model.select_state(states, _NETS)
    inputs, after = model.get_action_model_outputs(seen, states["policy"], seq_lens)
    after = [*after, *model.get_q_values(seen, states["q"], seq_lens)[1]]
    if model.twin_q_net:
        after += model.get_twin_q_values(seen, states["twin_q"], seq_lens)[1]
    return inputs, sac_distribution(policy, policy.config, policy.action_space), after


class _Said:
    """What the networks of a model say of a batch's rows."""

    def __init__(self, model: Any, batch: Any, names: Mapping[str, str], states: Any) -> None:
        columns = {name: batch[column] for name, column in names.items() if column in batch}
        self._lengths = batch["seq_lens"]
        self._seen, states = model(SampleBatch(columns, _is_training=True), states, self._lengths)
        self._model, self._states = model, model.select_state(states, _NETS)

    def logp(self) -> Any:
        """The log probabilities of all actions."""
        told = self._seen, self._states["policy"], self._lengths
        return self._model.get_action_model_outputs(*told)[0].log_softmax(-1)

    def values(self) -> list[torch.Tensor]:
        """What each critic says of all actions."""
        found = [self._model.get_q_values(self._seen, self._states["q"], self._lengths)[0]]
        if self._model.twin_q_net:
            told = self._seen, self._states["twin_q"], self._lengths
            found.append(self._model.get_twin_q_values(*told)[0])
        return found


#: What a model sees → the column: of what was observed, and of what came next.
_NOW = {"obs": "obs", "prev_actions": "prev_actions", "prev_rewards": "prev_rewards"}
_NEXT = {"obs": "new_obs", "prev_actions": "actions", "prev_rewards": "rewards"}


def actor_critic_loss(policy: Any, model: Any, dist_class: object, train_batch: Any) -> Any:
    """The losses of the actor, of each critic, and of alpha; results' are in `model.tower_stats`.

    Raises:
        ConfigError: Actions are not Discrete.
    """
    del dist_class
    if not model.discrete:
        fix = "Make the actions Discrete, or use SAC, which knows no states."
        raise ConfigError("RNNSAC had no loss of Box actions.", where="action_space", fix=fix)
    config, lengths = policy.config, train_batch["seq_lens"]
    states = [train_batch[name] for name in sorted(train_batch) if name.startswith("state_in_")]
    now = _Said(model, train_batch, _NOW, states)
    logp, values = now.logp(), now.values()
    alpha, actions = model.log_alpha.exp(), train_batch["actions"].long().unsqueeze(-1)
    with torch.no_grad():
        after = _Said(model, train_batch, _NEXT, states).logp()
        said = _Said(policy.target_models[model], train_batch, _NEXT, states).values()
        soft = torch.stack(said).min(0).values - alpha * after
        discount = config["gamma"] ** config["n_step"]
        best = (after.exp() * soft).sum(-1)
        targets = td_targets(train_batch["rewards"], train_batch["terminateds"], best, discount)
    steps = len(actions) // len(lengths)
    learned = sequence_mask(lengths, steps)
    if 0 < config["burn_in"] < steps:
        learned[:, : config["burn_in"]] = False
    learned = learned.reshape(-1)

    def mean(terms: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = terms[learned].sum() / learned.sum()
        return found

    errors = [(value.gather(-1, actions).squeeze(-1) - targets).abs() for value in values]
    critic_losses = [mean(train_batch["weights"] * huber(error)) for error in errors]
    chances = logp.exp()
    aimed = -model.log_alpha * (logp + model.target_entropy).detach()
    alpha_loss = mean((chances.detach() * aimed).sum(-1))
    # As ever, the first critic alone judges the actor.
    actor_loss = mean((chances * (alpha.detach() * logp - values[0].detach())).sum(-1))
    rows = learned.unsqueeze(-1)
    td_error = torch.stack(errors).mean(0) * learned
    model.tower_stats |= {
        "q_t": values[0] * rows,
        "policy_t": chances * rows,
        "log_pis_t": logp * rows,
        "actor_loss": actor_loss,
        "critic_loss": critic_losses,
        "alpha_loss": alpha_loss,
        "td_error": td_error.reshape(-1, steps).mean(-1),
    }
    return actor_loss, *critic_losses, alpha_loss
