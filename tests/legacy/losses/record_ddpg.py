"""Records what the losses of DDPG and TD3 of an old Ray computed, as `record` does for others.

Usage: `python record_ddpg.py OUT [CASE …]`, with the Python of an environment that has Ray 1.13.0
and torch (it runs on Python 3.8). It writes `OUT/<case>.npz`;
`tests/unit/algorithms/test_ddpg_losses.py` compares.

A case holds, by name:

    config.*        the settings that matter, as the old Ray knew them
    batch.*         transitions as they came out of a replay buffer: obs, actions, rewards (sums of
                    n steps), new_obs, dones, weights
    noise           what target smoothing drew, before it was clipped
    weights.*, targets.*    before, by the old names
    loss.*          of actor and critics, over the batch
    td_errors       one a transition
    gradients.*     of each optimizer's own loss, before any clipping, by the old names
    after.<i>.*, targets_after.<i>.*    the weights after each of two `learn_on_batch`, which
                    `update_target` followed
    seen, scale     with noise on weights: what was seen in an episode, and what scaled the noise on
                    actions then
    deviation.<i>, perturbed.<i>.*, clean.<i>, noisy.<i>    for several deviations: before and
                    after the episode, the weights with that noise, the actions without and with it
"""

from unittest import mock

import gym
import numpy as np
import torch
from ray.rllib.agents.ddpg import ddpg, td3
from ray.rllib.agents.ddpg.ddpg_torch_policy import DDPGTorchPolicy, ddpg_actor_critic_loss
from ray.rllib.policy.sample_batch import SampleBatch
from recording import copied, draw_weights, gradients_of, named, record_all

ACTIONS = gym.spaces.Box(np.float32([-1, -2]), np.float32([1, 3]), dtype=np.float32)
LAYERS = {"actor_hiddens": [8, 6], "critic_hiddens": [7, 5], "actor_lr": 0.02, "critic_lr": 0.01}

#: Case → defaults, settings.
CASES = {
    "ddpg-plain": (ddpg.DEFAULT_CONFIG, {"tau": 0.1}),
    # Its torch policy took the weights for it without their gradients; TensorFlow's did not.
    "ddpg-decay": (ddpg.DEFAULT_CONFIG, {"l2_reg": 0.03}),
    "ddpg-huber-n-step": (
        ddpg.DEFAULT_CONFIG,
        {"use_huber": True, "huber_threshold": 0.4, "n_step": 3, "gamma": 0.9, "grad_clip": 0.5},
    ),
    "ddpg-features": (
        ddpg.DEFAULT_CONFIG,
        {"use_state_preprocessor": True, "actor_hidden_activation": "tanh", "tau": 0.5},
    ),
    "ddpg-parameter-noise": (
        ddpg.DEFAULT_CONFIG,
        {
            "exploration_config": {"type": "ParameterNoise", "random_timesteps": 0},
            "batch_mode": "complete_episodes",
        },
    ),
    "td3-plain": (td3.TD3_DEFAULT_CONFIG, {"target_noise": 0.6, "target_noise_clip": 0.5}),
    "td3-huber": (
        td3.TD3_DEFAULT_CONFIG,
        {"use_huber": True, "policy_delay": 1, "smooth_target_policy": False},
    ),
}
KEPT = (
    "actor_hiddens actor_hidden_activation actor_lr critic_hiddens critic_hidden_activation "
    "critic_lr gamma grad_clip huber_threshold l2_reg n_step policy_delay smooth_target_policy "
    "target_noise target_noise_clip tau twin_q use_huber use_state_preprocessor"
)


def record(case):
    """Records one case."""
    defaults, settings = CASES[case]
    config = dict(defaults)
    config.update(LAYERS)
    config.update(settings, framework="torch", num_gpus=0, num_workers=0)
    config["model"] = dict(config["model"], fcnet_hiddens=[5], fcnet_activation="tanh")
    torch.manual_seed(7)
    random = np.random.RandomState(7)
    policy = DDPGTorchPolicy(gym.spaces.Box(-2.0, 2.0, (4,), np.float32), ACTIONS, config)
    target = policy.target_models[policy.model]
    draw_weights(random, policy.model, target)
    found = {"config." + name: config[name] for name in KEPT.split()}
    found = {name: value for name, value in found.items() if value is not None}
    found.update(named("weights", policy.get_weights()))
    found.update(named("targets", target.state_dict()))
    steps = 9
    batch = {
        "obs": random.uniform(-2, 2, (steps, 4)).astype(np.float32),
        "actions": random.uniform(ACTIONS.low, ACTIONS.high, (steps, 2)).astype(np.float32),
        "rewards": random.uniform(-1, 2, steps).astype(np.float32),
        "new_obs": random.uniform(-2, 2, (steps, 4)).astype(np.float32),
        "dones": np.arange(steps) % 4 == 0,
        "weights": random.uniform(0.2, 1, steps).astype(np.float32),
    }
    found.update(named("batch", batch))
    noise = torch.from_numpy(random.randn(steps, 2).astype(np.float32)) * config["target_noise"]
    found["noise"] = noise.numpy()
    if "exploration_config" in settings:
        found.update(explored(policy, random.uniform(-2, 2, (16, 4)).astype(np.float32)))
    with mock.patch.object(torch, "normal", return_value=noise):
        found.update(learned(policy, batch))
    return found


def explored(policy, seen):
    """What noise on the weights does in an episode, for several deviations."""
    noise, found = policy.exploration, {"seen": seen}
    noise.sub_exploration.last_timestep = 5000  # of 10,000 in which its scale falls
    for index, deviation in enumerate((0.001, 0.05, 0.1, 0.2, 0.4, 2.0)):
        noise.set_state({"cur_stddev": deviation})
        noise.stddev = deviation
        noise.on_episode_start(policy)
        policy.compute_actions(seen, explore=True, timestep=5000)
        found.update(named(f"perturbed.{index}", policy.get_weights()))
        for name, explore in (("noisy", True), ("clean", False)):
            noise.before_compute_actions(explore=explore)
            model_out, _ = policy.model({"obs": torch.from_numpy(seen)})
            found[f"{name}.{index}"] = policy.model.get_policy_output(model_out).detach().numpy()
        noise.postprocess_trajectory(policy, SampleBatch({"obs": seen}))
        found[f"deviation.{index}"] = np.asarray([deviation, noise.get_state()["cur_stddev"]])
        if noise.weights_are_currently_noisy:
            noise._remove_noise()
    found["scale"] = np.asarray(noise.sub_exploration.get_state()["cur_scale"])
    return found


def learned(policy, batch):
    """What the losses of a batch are, and what two updates make of the weights."""
    found = {}
    lazy = policy._lazy_tensor_dict(SampleBatch(batch))
    losses = ddpg_actor_critic_loss(policy, policy.model, None, lazy)
    found["loss.actor"], found["loss.critic"] = (loss.item() for loss in losses)
    found["td_errors"] = policy.model.tower_stats["td_error"].detach().numpy().copy()
    for optimizer, loss in zip(policy._optimizers, losses):  # noqa: B905 - Python 3.8
        found.update(gradients_of(loss, policy.model, optimizer.param_groups[0]["params"]))
    for index in range(2):
        policy.learn_on_batch(SampleBatch(copied(batch)))
        policy.update_target()
        found.update(named(f"after.{index}", policy.get_weights()))
        target = policy.target_models[policy.model]
        found.update(named(f"targets_after.{index}", target.state_dict()))
    return found


if __name__ == "__main__":
    record_all(record, CASES)
