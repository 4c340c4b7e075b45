"""The models, the loss and other policy parts of SlateQ (Ray 1.x – 2.x), which recommends lists.

An observation is a Dict: `user` (a vector), `doc` (a vector for each document, by number), and
`response` (for each place of the list: `click` and `watch_time`). A slate is a list of documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import torch
from ray.rllib.models.torch.misc import SlimFC
from ray.rllib.models.torch.torch_action_dist import TorchCategorical
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2
from ray.rllib.utils.torch_utils import convert_to_torch_tensor
from torch import nn
from torch.nn import functional

from rllib_compat.algorithms.objectives import huber
from rllib_compat.legacy.policies import mixins
from rllib_compat.legacy.policies.mixins import TargetNetworkMixin, tower_mean
from rllib_compat.ray_versions.types import Policy

__all__ = [
    "QValueModel",
    "SlateQTFModel",
    "SlateQTorchModel",
    "TargetNetworkMixin",
    "UserChoiceModel",
    "action_distribution_fn",
    "build_slateq_losses",
    "build_slateq_model",
    "build_slateq_model_and_distribution",
    "build_slateq_stats",
    "calculate_round_robin_weights",
    "get_per_slate_q_values",
    "optimizer_fn",
    "postprocess_fn_add_next_actions_for_sarsa",
    "rmsprop_optimizer",
    "score_documents",
    "setup_early",
    "setup_late_mixins",
    "setup_mid_mixins",
]

setup_late_mixins = setup_mid_mixins = mixins.setup(TargetNetworkMixin)
#: The statistics of the loss in results.
_STATS = (
    *("q_values", "q_clicked", "scores", "score_no_click", "slate_q_values", "replay_click_q"),
    *("bellman_reward", "next_q_values", "target", "next_q_target_slate", "next_q_target_max"),
    *("target_clicked", "q_loss", "mean_actions", "choice_loss"),
)


class QValueModel(nn.Module):
    """A network for each document, which sees it and the user."""

    q_nets: Any

    def __init__(
        self, obs_space: Any, fcnet_hiddens_per_candidate: Sequence[int] = (256, 32)
    ) -> None:
        super().__init__()
        self.orig_obs_space, self.num_candidates = obs_space, len(obs_space["doc"].spaces)
        self.embedding_size = obs_space["doc"]["0"].shape[0]
        if obs_space["user"].shape[0] != self.embedding_size:
            raise AssertionError("Users and documents are vectors of one size.")
        units = fcnet_hiddens_per_candidate
        networks = [self._network(index, units) for index in range(self.num_candidates)]
        self.add_module("q_nets", nn.ModuleList(networks))

    def _network(self, index: int, units: Sequence[int]) -> nn.Sequential:
        made, size = nn.Sequential(), 2 * self.embedding_size
        for layer, width in enumerate(units):
            made.add_module(f"q_layer_{index}_{layer}", SlimFC(size, width, activation_fn="relu"))
            size = width
        made.add_module(f"q_out_{index}", SlimFC(size, 1, activation_fn=None))
        return made

    def forward(self, user: torch.Tensor, docs: Sequence[torch.Tensor]) -> torch.Tensor:
        """The value of each document, `[B, n]`."""
        seen = zip(self.q_nets, docs, strict=False)
        return torch.cat([net(torch.cat((user, doc), 1)) for net, doc in seen], 1)


class UserChoiceModel(nn.Module):
    """How likely a user chooses a document, or none: two numbers that are learned."""

    beta: torch.Tensor
    score_no_click: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("beta", "score_no_click"):
            self.register_parameter(name, nn.Parameter(torch.tensor(0.0)))

    def forward(self, user: torch.Tensor, doc: torch.Tensor) -> torch.Tensor:
        """The logits `[B, n + 1]` of documents `[B, n, size]` for users, and of none."""
        scores = self.beta * (doc * user.unsqueeze(1)).sum(-1)
        return torch.cat((scores, self.score_no_click.expand(len(user), 1)), 1)


class SlateQTorchModel(TorchModelV2, nn.Module):  # type: ignore[misc]  # Ray has no types
    """The values of documents, and what users choose."""

    choice_model: Any
    q_model: Any

    def __init__(
        self,
        obs_space: Any,
        action_space: Any,
        num_outputs: int,
        model_config: Any,
        name: str,
        *,
        fcnet_hiddens_per_candidate: Sequence[int] = (256, 32),
        double_q: bool = True,
    ) -> None:
        nn.Module.__init__(self)
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        self.add_module("choice_model", UserChoiceModel())
        self.add_module("q_model", QValueModel(obs_space, fcnet_hiddens_per_candidate))

    def get_q_values(self, user: torch.Tensor, docs: Sequence[torch.Tensor]) -> Any:
        """The value of each document, `[B, n]`."""
        return self.q_model(user, docs)


SlateQTFModel = SlateQTorchModel


def build_slateq_model_and_distribution(
    policy: Policy, obs_space: Any, action_space: Any, config: Any
) -> Any:
    """The model, and the class of distributions over slates; the target is kept in the policy."""
    made = [
        SlateQTorchModel(
            obs_space,
            action_space,
            int(action_space.nvec[0]),
            config["model"],
            name,
            fcnet_hiddens_per_candidate=config["fcnet_hiddens_per_candidate"],
        )
        for name in ("slateq_model", "target_slateq_model")
    ]
    policy.target_model = made[1]
    return made[0], TorchCategorical


def build_slateq_model(
    policy: Policy, obs_space: object, action_space: object, config: object
) -> Any:
    """The model alone."""
    return build_slateq_model_and_distribution(policy, obs_space, action_space, config)[0]


def setup_early(policy: Policy, obs_space: object, action_space: Any, config: object) -> None:
    """Keeps all slates in the policy: `slates` `[A, S]`, and `slates_indices` `[1, A * S]`."""
    documents, places = int(action_space.nvec[0]), len(action_space.nvec)
    policy.slates = torch.tensor(list(permutations(range(documents), places)))
    policy.slates_indices = policy.slates.reshape(1, -1)


def score_documents(
    user_obs: torch.Tensor,
    doc_obs: Sequence[torch.Tensor],
    no_click_score: float = 1.0,
    multinomial_logits: bool = False,
    min_normalizer: float = -1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The scores of documents for users `[B, n]`, and of choosing none `[B]`.

    Users and each of the documents are `[B, size]`. A softmax makes probabilities of scores
    (`multinomial_logits`), or `min_normalizer` is subtracted.
    """
    liked = torch.stack([(user_obs * doc).sum(-1) for doc in doc_obs], 1)
    found = torch.cat((liked, torch.full_like(liked[:, :1], no_click_score)), 1)
    found = found.softmax(-1) if multinomial_logits else found - min_normalizer
    return found[:, :-1], found[:, -1]


def get_per_slate_q_values(
    policy: Policy, score_no_click: torch.Tensor, scores: torch.Tensor, q_values: torch.Tensor
) -> Any:
    """The value of each slate, `[B, A]`: of its documents, by how likely each is chosen.

    Args:
        policy: The policy, or its slates, as TensorFlow's function took them.
        score_no_click: The score of choosing none, `[B]`.
        scores: The scores of documents, `[B, n]`.
        q_values: Their values, `[B, n]`.
    """
    slates = getattr(policy, "slates", policy).to(scores.device)
    either = scores[:, slates].sum(-1) + score_no_click.unsqueeze(1)
    return ((scores * q_values)[:, slates] / either.unsqueeze(-1)).sum(-1)


def action_distribution_fn(
    policy: Policy, model: Any, input_dict: Any, *, explore: Any, is_training: Any, **kwargs: object
) -> Any:
    """The values of slates, the class of their distribution, and no state."""
    user, docs = _parts(input_dict["obs"])
    scores, none = score_documents(user, docs)
    values = get_per_slate_q_values(policy, none, scores, model.get_q_values(user, docs))
    vars(model).setdefault("slates", policy.slates)
    return values, TorchCategorical, []


def _parts(observed: Any) -> tuple[Any, list[Any]]:
    return observed["user"], list(observed["doc"].values())


def build_slateq_losses(policy: Policy, model: Any, _: object, train_batch: Any) -> Any:
    """The losses of choices and of values; statistics are kept in `model.tower_stats`."""
    actions, config = train_batch["actions"].long(), policy.config
    observed, after = (
        convert_to_torch_tensor(train_batch[name], device=actions.device)
        for name in ("obs", "new_obs")
    )
    user, docs = _parts(observed)
    clicks = torch.stack([place["click"] for place in observed["response"]], 1).float()
    watched = torch.stack([place["watch_time"] for place in observed["response"]], 1)
    values = model.get_q_values(user, docs)
    shown = values.gather(-1, actions)
    clicked_value, reward = (shown * clicks).sum(1), (watched * clicks).sum(1)
    with torch.no_grad():
        # As in old Rays, from the observation before: only the scores are of the next one.
        following = policy.target_models[model].get_q_values(user, docs)
        scores, none = score_documents(*_parts(after))
        worth = get_per_slate_q_values(policy, none, scores, following)
        best, ended = worth.max(1).values, train_batch["terminateds"].float()
        targets = reward + config["gamma"] * best * (1.0 - ended)
    clicked = clicks.sum(1) > 0
    errors = torch.where(clicked, clicked_value - targets, 0.0)
    squares = huber(errors, config["huber_threshold"]) if config["use_huber"] else errors.pow(2.0)
    loss = squares.mean()
    picked = torch.stack(docs, 1)
    picked = picked[torch.arange(len(actions)).unsqueeze(1), actions]
    choices = torch.cat((clicks, 1 - clicks.sum(1, keepdim=True)), 1).argmax(1)
    choice_loss = functional.cross_entropy(model.choice_model(user, picked), choices)
    stats = [values, clicked_value[clicked], scores, none, shown, clicked_value, reward]
    stats += [following, targets, worth, best, targets[clicked], loss, actions.float(), choice_loss]
    model.tower_stats |= {n: value.mean() for n, value in zip(_STATS, stats, strict=True)}
    model.tower_stats |= {"td_error": errors.abs(), "mean_td_error": errors.abs().mean()}
    return choice_loss, loss


def build_slateq_stats(policy: Policy, batch: object) -> dict[str, float]:
    """The statistics of the last losses, for the results."""
    return {name: tower_mean(policy, name) for name in _STATS}


def optimizer_fn(policy: Policy, config: Any) -> Any:
    """Adam for choices, and RMSprop for values."""
    choices = list(policy.model.choice_model.parameters())
    adam = torch.optim.Adam(choices, lr=config["lr_choice_model"])
    return adam, rmsprop_optimizer(policy, config)


def rmsprop_optimizer(policy: Policy, config: Any) -> torch.optim.Optimizer:
    """RMSprop for the values."""
    options = {"eps": config["rmsprop_epsilon"], "weight_decay": 0.95, "centered": True}
    weights = list(policy.model.q_model.parameters())
    return torch.optim.RMSprop(weights, config["lr"], **options)


def postprocess_fn_add_next_actions_for_sarsa(
    policy: Policy, batch: Any, other_agent: object = None, episode: object = None
) -> Any:
    """Adds the column `next_actions` where the config's `slateq_strategy` is SARSA."""
    learns_on_policy = policy.config["slateq_strategy"] == "SARSA"
    if learns_on_policy:
        batch.update({"next_actions": np.roll(batch["actions"], -1, 0)})
    return batch


def calculate_round_robin_weights(config: Any) -> list[float]:
    """How often to sample and to learn, by `training_intensity`."""
    if not config["training_intensity"]:
        return [1, 1]
    once = config["train_batch_size"] / config["rollout_fragment_length"]
    return [1, config["training_intensity"] / once]
