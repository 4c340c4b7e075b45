"""Records what the losses of DQN and SimpleQ of an old Ray computed, on fixed transitions.

Usage: `python record_dqn.py OUT [CASE …]`, with the Python of an environment that has Ray 1.13.0
and torch (it runs on Python 3.8). It writes `OUT/<case>.npz`, and `OUT/<case>-episode.npz` of noise
on weights; `tests/unit/algorithms/test_dqn_losses.py` and `test_q_exploration.py` compare. A case
holds, by name:

    config.*                the settings that matter, as the old Ray knew them, as text
    batch.*                 obs, actions, rewards, new_obs, dones, weights, `[B, …]`
    weights.*, targets.*    before, by the old names
    loss                    the loss
    td_errors               one a transition
    gradients.*             before any clipping, by the old names
    after.*                 the weights after one `learn_on_batch`
    noise.loss.*            what noisy layers drew for the loss, in this order
    noise.after.*           the same for `learn_on_batch`
"""

import sys

import gym
import numpy as np
import torch
from ray.rllib.agents.dqn import dqn, simple_q
from ray.rllib.agents.dqn.dqn_torch_policy import DQNTorchPolicy
from ray.rllib.agents.dqn.dqn_torch_policy import build_q_losses as dqn_loss
from ray.rllib.agents.dqn.simple_q_torch_policy import SimpleQTorchPolicy
from ray.rllib.agents.dqn.simple_q_torch_policy import build_q_losses as simple_q_loss
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.utils.numpy import softmax
from recording import copied, draw_weights, gradients_of, named, record_all, save

SEEN, ACTIONS, ROWS = 4, 3, 16
SIMPLE = (SimpleQTorchPolicy, simple_q.DEFAULT_CONFIG, simple_q_loss)
DQN = (DQNTorchPolicy, dqn.DEFAULT_CONFIG, dqn_loss)

ATOMS = {"num_atoms": 5, "v_min": -4.0, "v_max": 4.0}
PARAMETER_NOISE = {
    "exploration_config": {"type": "ParameterNoise", "random_timesteps": 0},
    "batch_mode": "complete_episodes",
}

#: Case → policy, its defaults and its loss; settings.
CASES = {
    "simple-q": (SIMPLE, {"lr": 0.01}),
    "simple-q-discounted": (SIMPLE, {"gamma": 0.7}),
    "dqn": (DQN, {"lr": 0.01, "hiddens": [7]}),
    "dqn-plain": (DQN, {"hiddens": [], "dueling": False, "double_q": False, "n_step": 3}),
    "dqn-atoms": (DQN, {"lr": 0.01, "hiddens": [7], **ATOMS}),
    "dqn-noisy": (DQN, {"lr": 0.01, "hiddens": [7], "noisy": True}),
    "dqn-noisy-atoms": (DQN, {"hiddens": [7, 6], "noisy": True, "double_q": False, **ATOMS}),
    "dqn-parameter-noise": (DQN, {"lr": 0.01, "hiddens": [7], **PARAMETER_NOISE}),
}
KEPT = (
    *("adam_epsilon", "gamma", "lr", "hiddens", "dueling", "double_q", "n_step", "grad_clip"),
    *("noisy", "sigma0", "num_atoms", "v_min", "v_max", "exploration_config"),
)


class Drawing:
    """Keeps what `torch.normal` draws."""

    def __enter__(self):
        self.drawn, self._normal = [], torch.normal

        def normal(mean, std):
            self.drawn.append(self._normal(mean=mean, std=std))
            return self.drawn[-1]

        torch.normal = normal
        return self

    def __exit__(self, *error):
        torch.normal = self._normal

    def named(self, kind):
        """What was drawn, by its number."""
        return named("noise." + kind, {str(i): drawn.numpy() for i, drawn in enumerate(self.drawn)})


def policy_of(case):
    """A policy, what draws numbers for it, and its settings."""
    (policy_class, defaults, _), settings = CASES[case]
    config = dict(defaults)
    config.update(settings, framework="torch", num_gpus=0, num_workers=0)
    config["model"] = dict(config["model"], fcnet_hiddens=[5], fcnet_activation="tanh")
    torch.manual_seed(7)
    space = gym.spaces.Box(-2.0, 2.0, (SEEN,), np.float32)
    policy = policy_class(space, gym.spaces.Discrete(ACTIONS), config)
    kept = {"config." + n: np.asarray(str(config[n])) for n in KEPT if n in config}
    return policy, np.random.RandomState(7), kept


def record(case):
    """Records one case."""
    loss_of = CASES[case][0][2]
    policy, random, found = policy_of(case)
    target = policy.target_models[policy.model]
    draw_weights(random, policy.model, target, scale=0.5)
    found.update(named("weights", policy.get_weights()))
    found.update(named("targets", target.state_dict()))
    batch = {
        "obs": random.uniform(-2, 2, (ROWS, SEEN)).astype(np.float32),
        "actions": random.randint(0, ACTIONS, ROWS),
        "rewards": random.uniform(-3, 3, ROWS).astype(np.float32),
        "new_obs": random.uniform(-2, 2, (ROWS, SEEN)).astype(np.float32),
        "dones": random.uniform(size=ROWS) < 0.25,
        "weights": random.uniform(0.2, 1, ROWS).astype(np.float32),
    }
    found.update(named("batch", batch))
    lazy = policy._lazy_tensor_dict(SampleBatch(copied(batch)))
    with Drawing() as drawing:
        loss = loss_of(policy, policy.model, None, lazy)
    found.update(drawing.named("loss"))
    found["loss"] = loss.item()
    told = policy.model.tower_stats
    found["td_errors"] = told["td_error"].detach().numpy().copy()
    found.update(gradients_of(loss, policy.model))
    with Drawing() as drawing:
        policy.learn_on_batch(SampleBatch(copied(batch)))
    found.update(drawing.named("after"))
    found.update(named("after", policy.get_weights()))
    return found


def record_noise(case):
    """Records what `ParameterNoise` made of an episode, for several deviations.

    `deviation.<n>` (before, after), `weights.*` without noise, `perturbed.<n>.*`
    with it, `values.<n>` and `noisy.<n>`: the Q-values of the steps of `obs`; `epsilon`.
    """
    policy, random, found = policy_of(case)
    noise = policy.exploration
    seen = random.uniform(-2, 2, (ROWS, SEEN)).astype(np.float32)
    found.update(named("weights", policy.get_weights()))
    found["obs"] = seen
    policy.compute_actions(seen, timestep=10)  # behind all random steps
    epsilon = noise.sub_exploration.get_state()["cur_epsilon"]
    wanted, number = -np.log(1 - epsilon + epsilon / ACTIONS), 0
    for deviation in (0.001, *np.geomspace(0.005, 0.5, 600), 3.0):
        if noise.weights_are_currently_noisy:
            noise._remove_noise()
        noise.set_state({"cur_stddev": deviation})
        noise.stddev = deviation
        noise.on_episode_start(policy)
        told, weights = {}, {}
        for name, explore in (("noisy", True), ("values", False)):
            _, _, extra = policy.compute_actions(seen, explore=explore, timestep=10)
            told[name] = extra["q_values"]
            weights[name] = policy.get_weights()
        noise.postprocess_trajectory(policy, SampleBatch({"obs": seen}))
        one, other = (softmax(told[name].astype(np.float64)) for name in ("values", "noisy"))
        moved = [np.mean(np.sum(p * np.log(p / q), 1)) for p, q in ((one, other), (other, one))]
        # Between the two ends, what either divergence decides otherwise than the other.
        if 0.001 < deviation < 3.0 and not (number < 8 and min(moved) < wanted < max(moved)):
            continue
        found.update({f"{name}.{number}": values for name, values in told.items()})
        found.update(named(f"perturbed.{number}", weights["noisy"]))
        found[f"deviation.{number}"] = np.asarray([deviation, noise.get_state()["cur_stddev"]])
        number += 1
    found["epsilon"] = np.asarray(epsilon)
    return found


if __name__ == "__main__":
    record_all(record, CASES)
    for each in sys.argv[2:] or CASES:
        if "exploration_config" in CASES[each][1]:
            save(each + "-episode", record_noise(each))
