"""What the parts of ES's torch policy of Ray 1.13.0 compute."""

import gym
import numpy as np
import torch
from ray.rllib.agents.es import es_torch_policy as parts
from ray.rllib.agents.es.es_tf_policy import rollout
from ray.rllib.models.catalog import MODEL_DEFAULTS
from ray.tune import syncer


class Walk:
    """Rewards are what is done."""

    steps, spec = 0, None

    def reset(self):
        self.steps = 0
        return np.zeros(3, np.float32)

    def step(self, action):
        self.steps += 1
        seen = np.full(3, self.steps / 5, np.float32)
        return seen, float(np.sum(action)), self.steps == 4, {}


def of_policies(found):
    box = gym.spaces.Box(-1.0, 1.0, (3,), np.float32)
    for name, actions, filtered in (
        ("box", gym.spaces.Box(-1.0, 1.0, (2,), np.float32), "NoFilter"),
        ("few", gym.spaces.Discrete(3), "NoFilter"),
    ):
        config = {"action_noise_std": 0.1, "observation_filter": filtered}
        config["model"] = dict(MODEL_DEFAULTS, fcnet_hiddens=[4])
        policy = type("Policy", (), {"device": torch.device("cpu")})()
        parts.before_init(policy, box, actions, config)
        made = parts.make_model_and_action_dist(policy, box, actions, config)
        policy.model, policy.dist_class = made
        parts.after_init(policy, box, actions, config)
        found[name + ".count"] = policy.num_params
        found[name + ".names"] = np.array(list(policy.param_shapes))
        found[name + ".frozen"] = [weight.requires_grad for weight in policy.model.parameters()]
        weights = np.sin(np.arange(policy.num_params)).astype(np.float32)
        policy.set_flat_weights(weights)
        found[name + ".flat"] = policy.get_flat_weights()
        seen = np.array([0.5, -0.2, 0.9], np.float32)
        torch.manual_seed(5)
        action, states, told = policy.compute_actions([seen])
        found[name + ".action"], found[name + ".told"] = action, [len(states), len(told)]
        np.random.seed(2)
        found[name + ".noisy"] = policy.compute_actions(seen, add_noise=True)[0]
        found[name + ".single"] = policy.compute_single_action(seen)[0]
        # Discrete actions are drawn, each torch in its own way.
        for more in ({}, {"timestep_limit": 2}, {"offset": -0.5}) if name == "box" else ():
            rewards, steps = rollout(policy, Walk(), **more)
            found[f"{name}.rollout.{next(iter(more), None)}"] = [steps, *rewards]
    found["syncing"] = np.array([str(syncer.get_rsync_template_if_available())])


QUESTIONS = (of_policies,)
