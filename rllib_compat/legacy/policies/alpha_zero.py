"""The tree search, models and loss of AlphaZero (`contrib/alpha_zero`, and `algorithms` of 2.x)."""

from __future__ import annotations

import collections
import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from ray.rllib.models.modelv2 import restore_original_dimensions
from ray.rllib.models.preprocessors import get_preprocessor
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2
from torch import nn

from rllib_compat.ray_versions.types import Policy
from rllib_compat.runtime.callbacks import DefaultCallbacks

__all__ = [
    "MCTS",
    "ActorCriticModel",
    "AlphaZeroDefaultCallbacks",
    "ConvNetModel",
    "DenseModel",
    "Flatten",
    "Node",
    "RankedRewardsBuffer",
    "RootParentNode",
    "alpha_zero_loss",
    "convert_to_tensor",
    "get_r2_env_wrapper",
]


def _played(env: Any, action: int) -> tuple[Any, float, bool, Any]:
    """The result of a step: observation, reward, whether the episode has ended, info."""
    observation, reward, *ended, info = env.step(action)
    return observation, reward, any(ended), info


class RootParentNode:
    """The parent of the first node of a tree: it holds that node's visits."""

    parent = None

    def __init__(self, env: Any) -> None:
        self.env = env
        self.child_number_visits: Any = collections.defaultdict(float)
        self.child_total_value: Any = collections.defaultdict(float)


class Node:
    """A state of the environment, and the search's statistics of its actions.

    Args:
        action: The action that leads here.
        obs: The observation: a dict, whose `action_mask` has the possible actions.
        done: Whether the episode has ended.
        reward: The reward of the action.
        state: The environment's state.
        mcts: The search.
        parent: The node before it.
    """

    def __init__(
        self,
        action: int | None,
        obs: Mapping[str, Any],
        done: bool,
        reward: float,
        state: object,
        mcts: MCTS,
        parent: Any = None,
    ) -> None:
        self.action, self.obs, self.done, self.reward = action, obs, done, reward
        self.state, self.mcts, self.parent, self.env = state, mcts, parent, parent.env
        self.is_expanded, self.children = False, {}  # type: bool, dict[int, Node]
        self.action_space_size = size = int(self.env.action_space.n)
        for name in ("child_total_value", "child_priors", "child_number_visits"):
            setattr(self, name, np.zeros(size, np.float32))
        self.valid_actions = np.asarray(obs["action_mask"]).astype(bool)

    child_total_value: Any
    child_priors: Any
    child_number_visits: Any

    @property
    def number_visits(self) -> float:
        """How often the search has come here."""
        known: Any = self.parent.child_number_visits
        return float(known[self.action])

    @number_visits.setter
    def number_visits(self, value: float) -> None:
        known: Any = self.parent.child_number_visits
        known[self.action] = value

    @property
    def total_value(self) -> float:
        """The sum of the values that the search has found from here on."""
        known: Any = self.parent.child_total_value
        return float(known[self.action])

    @total_value.setter
    def total_value(self, value: float) -> None:
        known: Any = self.parent.child_total_value
        known[self.action] = value

    def child_Q(self) -> Any:  # noqa: N802 - its name
        """The mean value after each action."""
        return self.child_total_value / (self.child_number_visits + 1)

    def child_U(self) -> Any:  # noqa: N802
        """The exploration bonus of each action, by its prior and its visits."""
        tried = self.child_number_visits + 1
        return self.number_visits**0.5 * self.child_priors / tried

    def best_action(self) -> Any:
        """The action to try next."""
        worth = self.child_Q() + self.child_U() * self.mcts.c_puct
        return np.where(self.valid_actions, worth, -np.inf).argmax()

    def select(self) -> Node:
        """The node that the best actions lead to, which is not expanded."""
        found = self
        while found.is_expanded:
            found = found.get_child(found.best_action())
        return found

    def expand(self, child_priors: object) -> None:
        """Sets the probabilities of actions."""
        self.child_priors, self.is_expanded = child_priors, True

    def get_child(self, action: int) -> Node:
        """The node that an action leads to; the environment takes the step once."""
        if action not in self.children:
            world = self.env
            world.set_state(self.state)
            seen, reward, done, _ = _played(world, action)
            state = world.get_state()
            self.children[action] = Node(action, seen, done, reward, state, self.mcts, self)
        return self.children[action]

    def backup(self, value: float) -> None:
        """Adds a value to this node, and to all before it."""
        node = self
        while node.parent is not None:
            node.total_value += value
            node.number_visits += 1
            node = node.parent


class MCTS:
    """A Monte Carlo tree search with a model of probabilities and values."""

    def __init__(self, model: Any, mcts_param: Mapping[str, Any]) -> None:
        self.model, options = model, mcts_param
        self.temperature, self.exploit = options["temperature"], options["argmax_tree_policy"]
        self.num_sims, self.c_puct = options["num_simulations"], options["puct_coefficient"]
        self.add_dirichlet_noise = options["add_dirichlet_noise"]
        self.dir_epsilon, self.dir_noise = options["dirichlet_epsilon"], options["dirichlet_noise"]

    def compute_action(self, node: Node) -> tuple[Any, Any, Node]:
        """Searches from a node on.

        Returns:
            The probabilities of actions, the one that is taken, and the node that it leads to.
        """
        looks = self.num_sims
        while looks > 0:
            found, looks = node.select(), looks - 1
            found.backup(found.reward if found.done else self._look(found))
        visits = node.child_number_visits / node.number_visits
        powers = np.power(visits / visits.max(), self.temperature)
        chances = powers / powers.sum()
        actions = np.arange(len(chances))
        # Old searches can be repeated with numpy's seed.
        drawn = chances.argmax() if self.exploit else np.random.choice(actions, p=chances)
        return chances, drawn, node.children[drawn]

    def _look(self, leaf: Node) -> float:
        judge = self.model.compute_priors_and_value
        priors, value = judge(leaf.obs)
        if self.add_dirichlet_noise:
            noise = np.random.dirichlet(np.full(priors.size, self.dir_noise))
            priors = (1 - self.dir_epsilon) * priors + self.dir_epsilon * noise
        leaf.expand(priors)
        return value  # type: ignore[no-any-return]


class RankedRewardsBuffer:
    """The last rewards of episodes, with which the next one is compared."""

    def __init__(self, buffer_max_length: int, percentile: float) -> None:
        self.buffer_max_length, self.percentile = buffer_max_length, percentile
        self.buffer: list[float] = []

    def add_reward(self, reward: float) -> None:
        """Adds a reward."""
        self.buffer = [*self.buffer, reward][-self.buffer_max_length :]

    def normalize(self, reward: float) -> float:
        """1.0 for a reward of at least that percentile of the last ones, else -1.0."""
        return 1.0 if reward >= np.percentile(self.buffer, self.percentile) else -1.0

    def get_state(self) -> Any:
        """The rewards."""
        return np.array(self.buffer)

    def set_state(self, state: Sequence[float] | None) -> None:
        """Sets rewards of `get_state`; None changes nothing."""
        self.buffer = self.buffer if state is None else list(state)


def get_r2_env_wrapper(env_creator: Callable[[Any], Any], r2_config: Mapping[str, Any]) -> type:
    """The class of an environment whose last reward is 1 for a gain and -1 for a loss."""

    class RankedRewardsEnvWrapper:
        """The environment, with ranked rewards."""

        def __init__(self, env_config: Any) -> None:
            self.env = made = env_creator(env_config)
            self.observation_space, self.action_space = made.observation_space, made.action_space
            kept, percentile = r2_config["buffer_max_length"], r2_config["percentile"]
            self.r2_buffer = RankedRewardsBuffer(kept, percentile)
            for _ in range(r2_config["num_init_rewards"] if r2_config["initialize_buffer"] else 0):
                self.r2_buffer.add_reward(self._last_reward())

        def _last_reward(self) -> float:
            """That of an episode of random actions."""
            first, done, reward = self.env.reset(), False, 0.0
            seen = first[0] if isinstance(first, tuple) else first
            while not done:
                possible = seen["action_mask"] / seen["action_mask"].sum()
                action = np.random.choice(len(possible), p=possible)
                seen, reward, done, _ = _played(self.env, action)
            return reward

        def reset(self, **kwargs: object) -> Any:
            return self.env.reset(**kwargs)

        def step(self, action: Any) -> Any:
            seen, reward, *ended, info = self.env.step(action)
            return seen, self.r2_buffer.normalize(reward) if any(ended) else reward, *ended, info

        def get_state(self) -> dict[str, Any]:
            own = self.r2_buffer.get_state()
            return copy.deepcopy({"env_state": self.env.get_state(), "buffer_state": own})

        def set_state(self, state: Mapping[str, Any]) -> Any:
            self.r2_buffer.set_state(state["buffer_state"])
            return self.env.set_state(state["env_state"])

    return RankedRewardsEnvWrapper


def convert_to_tensor(arr: object) -> torch.Tensor:
    """A tensor; of float32, numbers of double precision."""
    made = torch.as_tensor(np.asarray(arr))
    return made.float() if made.dtype == torch.float64 else made


class Flatten(nn.Module):
    """Makes a vector of each row."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - its name
        """Rows `[B, …]` as `[B, n]`."""
        return input.flatten(1)


class ActorCriticModel(TorchModelV2, nn.Module):  # type: ignore[misc]  # Ray has no types
    """An actor and a critic over shared layers, which a subclass sets.

    Args:
        obs_space: The observation space, with `original_space`: a Dict with `obs`.
        action_space: The action space, Discrete.
        num_outputs: How many actions there are.
        model_config: The config's `model`.
        name: The model's name.
    """

    obs_space: Any
    model_config: Any
    shared_layers: Any
    actor_layers: Any
    critic_layers: Any
    _value_out: Any = None

    def __init__(
        self, obs_space: Any, action_space: Any, num_outputs: int, model_config: Any, name: str
    ) -> None:
        nn.Module.__init__(self)
        TorchModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        space = obs_space.original_space
        self.preprocessor = get_preprocessor(space)(space)

    def _set_layers(self, shared: nn.Module, features: int, actions: int) -> None:
        self.add_module("shared_layers", shared)
        for name, outputs in (("actor_layers", actions), ("critic_layers", 1)):
            self.add_module(name, nn.Sequential(nn.Linear(features, outputs)))

    def forward(self, input_dict: Mapping[str, Any], state: object, seq_lens: object) -> Any:
        """The logits of actions `[B, n]`, and no state."""
        features = self.shared_layers(input_dict["obs"])
        self._value_out = self.critic_layers(features)
        return self.actor_layers(features), None

    def value_function(self) -> Any:
        """The values of the last forward pass, `[B, 1]`."""
        return self._value_out

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def compute_priors_and_value(self, obs: object) -> Any:
        """The probabilities of actions and the value of an observation, as numpy's arrays."""
        seen = convert_to_tensor([self.preprocessor.transform(obs)])
        parts = restore_original_dimensions(seen, self.obs_space, "torch")
        logits, _ = self.forward(parts, None, [1])
        return logits.squeeze().softmax(-1).cpu().numpy(), self._value_out.squeeze().cpu().numpy()


class DenseModel(ActorCriticModel):
    """Two shared layers of 256 units without an activation, as they were."""

    def __init__(self, obs_space: Any, action_space: Any, *arguments: Any) -> None:
        super().__init__(obs_space, action_space, *arguments)
        size = obs_space.original_space["obs"].shape[0]
        shared = nn.Sequential(nn.Linear(size, 256), nn.Linear(256, 256))
        self._set_layers(shared, 256, int(action_space.n))


class ConvNetModel(ActorCriticModel):
    """Three convolutions; `custom_model_config` has `in_channels` and `feature_dim`."""

    def __init__(self, obs_space: Any, action_space: Any, *arguments: Any) -> None:
        super().__init__(obs_space, action_space, *arguments)
        own = self.model_config["custom_model_config"]
        sizes = ((own["in_channels"], 32, 4, 2), (32, 64, 2, 1), (64, 64, 2, 1))
        features = own["feature_dim"]
        seen = [nn.Conv2d(*size) for size in sizes]
        shared = nn.Sequential(*seen, Flatten(), nn.Linear(1024, features))
        self._set_layers(shared, features, int(action_space.n))


def alpha_zero_loss(
    policy: Policy, model: Any, dist_class: object, train_batch: Mapping[str, Any]
) -> Any:
    """The mean of two losses, and the two: that of the search's policies, and of values."""
    parts = restore_original_dimensions(train_batch["obs"], policy.observation_space, "torch")
    logits, _ = model.forward(parts, None, [1])
    chances = logits.squeeze().log_softmax(-1)
    policy_loss = -(train_batch["mcts_policies"] * chances).sum(-1).mean()
    errors = model.value_function().squeeze() - train_batch["value_label"]
    value_loss = errors.pow(2.0).mean()
    return (policy_loss + value_loss) / 2, policy_loss, value_loss


class AlphaZeroDefaultCallbacks(DefaultCallbacks):
    """Keeps the first state of an episode, from which searches start."""

    def on_episode_start(
        self, worker: object, base_env: Any, policies: object, episode: Any, **kwargs: object
    ) -> None:
        """Keeps it in `episode.user_data`."""
        env = base_env.get_sub_environments()[0]
        episode.user_data["initial_state"] = env.get_state()
