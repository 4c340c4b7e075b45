"""What the tree search, the models and the loss of AlphaZero of Ray 1.13.0 compute."""

import gym
import numpy as np
import torch
from ray.rllib.contrib.alpha_zero.core.alpha_zero_trainer import (
    AlphaZeroDefaultCallbacks,
    alpha_zero_loss,
)
from ray.rllib.contrib.alpha_zero.core.mcts import MCTS, Node, RootParentNode
from ray.rllib.contrib.alpha_zero.core.ranked_rewards import RankedRewardsBuffer, get_r2_env_wrapper
from ray.rllib.contrib.alpha_zero.models.custom_torch_models import (
    ConvNetModel,
    DenseModel,
    Flatten,
    convert_to_tensor,
)

SPACE = gym.spaces.Dict(
    {
        "obs": gym.spaces.Box(-9.0, 9.0, (2,), np.float32),
        "action_mask": gym.spaces.Box(0.0, 1.0, (3,), np.float32),
    }
)


class Walk:
    """Steps of -1, 0 and 1 from 0 to 3; below zero nobody goes."""

    observation_space, action_space = SPACE, gym.spaces.Discrete(3)
    place = steps = 0

    def __init__(self, config=None):
        self.length = (config or {}).get("length", 3)

    def _seen(self):
        mask = np.array([self.place > 0, True, True], np.float32)
        return {"obs": np.array([self.place, self.steps], np.float32), "action_mask": mask}

    def reset(self):
        self.place = self.steps = 0
        return self._seen()

    def step(self, action):
        self.place, self.steps = self.place + int(action) - 1, self.steps + 1
        done = self.place >= self.length or self.steps >= 6
        return self._seen(), float(self.place) if done else 0.0, done, {}

    def get_state(self):
        return self.place, self.steps

    def set_state(self, state):
        self.place, self.steps = state
        return self._seen()


def flat_space(original):
    made = gym.spaces.Box(-9.0, 9.0, (sum(np.prod(s.shape) for s in original.spaces.values()),))
    made.original_space = original
    return made


def fill(module):
    """Gives a module weights that anybody can make."""
    state = module.state_dict()
    for index, name in enumerate(sorted(state)):
        values = torch.sin(torch.arange(state[name].numel()).float() * 1.7 + index)
        state[name] = values.reshape(state[name].shape) * 0.1
    module.load_state_dict(state)
    return module


def of_search(found):
    model = fill(DenseModel(flat_space(SPACE), Walk.action_space, 3, {}, "model"))
    for name, more in (
        ("best", {}),
        ("drawn", {"argmax_tree_policy": False, "add_dirichlet_noise": True, "temperature": 1.5}),
    ):
        told = {"temperature": 1.0, "dirichlet_epsilon": 0.25, "dirichlet_noise": 0.03}
        told.update(num_simulations=20, argmax_tree_policy=True, add_dirichlet_noise=False)
        told.update(puct_coefficient=1.2, **more)
        env = Walk()
        search = MCTS(model, told)
        seen = env.reset()
        parent = RootParentNode(env)
        node = Node(None, seen, False, 0.0, env.get_state(), search, parent)
        np.random.seed(3)
        for step in range(2):
            chances, action, node = search.compute_action(node)
            found[f"{name}.{step}.chances"] = chances
            found[f"{name}.{step}.action"] = int(action)
            found[f"{name}.{step}.state"] = node.state
            found[f"{name}.{step}.visits"] = node.number_visits
            found[f"{name}.{step}.value"] = float(node.total_value)
            found[f"{name}.{step}.q"], found[f"{name}.{step}.u"] = node.child_Q(), node.child_U()
            found[f"{name}.{step}.children"] = sorted(map(int, node.children))


def of_ranks(found):
    buffer = RankedRewardsBuffer(4, 60)
    for reward in (1.0, 5.0, 2.0, 7.0, 3.0):
        buffer.add_reward(reward)
    found["ranks"] = [buffer.normalize(value) for value in (1.0, 3.0, 4.5, 5.0, 9.0)]
    found["ranks.state"] = buffer.get_state()
    buffer.set_state(None)
    buffer.set_state([4.0])
    found["ranks.set"] = buffer.get_state()
    told = {"buffer_max_length": 5, "percentile": 50, "initialize_buffer": True}
    np.random.seed(5)
    env = get_r2_env_wrapper(Walk, dict(told, num_init_rewards=4))({"length": 2})
    found["wrapped"] = env.r2_buffer.get_state()
    env.reset()
    found["wrapped.steps"] = [float(env.step(a)[1]) for a in (2, 1, 2)]
    state = env.get_state()
    env.step(0)
    env.set_state(state)
    found["wrapped.state"] = env.env.get_state()


def of_models(found):
    images = gym.spaces.Dict(
        {
            "obs": gym.spaces.Box(-9.0, 9.0, (2, 14, 14), np.float32),
            "action_mask": gym.spaces.Box(0.0, 1.0, (3,), np.float32),
        }
    )
    for made, space in ((DenseModel, SPACE), (ConvNetModel, images)):
        config = {"custom_model_config": {"in_channels": 2, "feature_dim": 5}}
        flat = flat_space(space)
        model = fill(made(flat, Walk.action_space, 3, config, "model"))
        name = made.__name__
        found[name + ".names"] = np.array(list(model.state_dict()))
        seen = torch.sin(torch.arange(4 * flat.shape[0]).float()).reshape(4, -1)
        policy = type("Policy", (), {"observation_space": flat})
        batch = {
            "obs": seen,
            "mcts_policies": torch.softmax(torch.arange(12).float().reshape(4, 3) % 5, -1),
            "value_label": torch.tensor([1.0, -1.0, 0.5, 0.0]),
        }
        losses = alpha_zero_loss(policy, model, None, batch)
        found[name + ".losses"] = [float(loss) for loss in losses]
        losses[0].backward()
        found[name + ".gradient"] = model.actor_layers[0].weight.grad.clone()
        shape = space["obs"].shape
        parts = {"obs": np.ones(shape, np.float32) / 3, "action_mask": np.ones(3, np.float32)}
        found[name + ".priors"], found[name + ".value"] = model.compute_priors_and_value(parts)
    found["tensor"] = convert_to_tensor([1.5, 2.0])
    found["tensor.kinds"] = np.array([str(convert_to_tensor([n]).dtype) for n in (1.5, 2)])
    found["flat"] = Flatten()(torch.ones(2, 3, 4))


def of_callbacks(found):
    env, episode = Walk(), type("Episode", (), {"user_data": {}})
    base = type("Base", (), {"get_sub_environments": lambda self: [env]})()
    AlphaZeroDefaultCallbacks().on_episode_start(
        worker=None, base_env=base, policies={}, episode=episode
    )
    found["callbacks"] = episode.user_data["initial_state"]


QUESTIONS = (of_search, of_ranks, of_models, of_callbacks)
