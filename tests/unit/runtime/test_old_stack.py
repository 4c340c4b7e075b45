"""Callbacks on the old API stack: a real rollout worker of it calls them."""

import gymnasium
import numpy as np
import pytest
from ray.rllib.algorithms.ppo import PPOConfig

from rllib_compat.adapters import (
    CompatRolloutWorker,
    DefaultCallbacks,
    EnvSettings,
    adapt_callbacks,
    adapt_env,
)


class OldEnv:
    """Five steps of the old API."""

    observation_space = gymnasium.spaces.Box(0, 9, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, config):
        self.t = 0

    def reset(self):
        self.t = 0
        return np.zeros(1, np.float32)

    def step(self, action):
        self.t += 1
        return np.full(1, self.t, np.float32), 1.0, self.t == 5, {}


def worker_with(callbacks):
    from ray.rllib.algorithms.ppo.ppo_torch_policy import PPOTorchPolicy

    env = adapt_env(EnvSettings(OldEnv, old_stack=True))
    config = (
        PPOConfig()
        .api_stack(enable_rl_module_and_learner=False, enable_env_runner_and_connector_v2=False)
        .environment(env)
        .framework("torch")
        .env_runners(rollout_fragment_length=10, num_env_runners=0)
        .callbacks(adapt_callbacks(callbacks))
    )
    return CompatRolloutWorker(env_creator=env, default_policy_class=PPOTorchPolicy, config=config)


def test_what_callbacks_write_is_learned_from_and_none_is_left_out():
    heard = []

    class Mine(DefaultCallbacks):
        def on_sub_environment_created(self, *, worker, sub_environment, env_context, **kwargs):
            heard.append(("environment", type(sub_environment)))

        def on_create_policy(self, *, policy_id, policy):
            heard.append(("policy", policy_id))

        def on_postprocess_trajectory(
            self, worker, episode, agent_id, policy_id, policies, postprocessed_batch,
            original_batches, **kwargs,
        ):  # fmt: skip
            policy, before = original_batches[agent_id]
            heard.append(("trajectory", policy is policies[policy_id], len(before)))
            postprocessed_batch["advantages"][:] = 7.0

        def on_sample_end(self, *, worker, samples, **kwargs):
            heard.append(("sample", samples["rewards"].shape))

        def on_learn_on_batch(self, *, policy, train_batch, result, **kwargs):
            heard.append(("learn", train_batch.count))

    worker = worker_with(Mine)
    batch = worker.sample().policy_batches["default_policy"]
    assert (batch["advantages"] == 7.0).all()
    worker.learn_on_batch(batch)
    assert heard == [
        ("environment", OldEnv),
        ("policy", "default_policy"),
        ("trajectory", True, 5),
        ("trajectory", True, 5),
        ("sample", (10,)),
        ("learn", 10),
    ]


def test_callbacks_and_functions_see_the_users_own_environments_and_the_last_steps():
    heard = []

    class Mine(DefaultCallbacks):
        def on_episode_step(self, worker, base_env, episode, **kwargs):
            (env,) = base_env.get_unwrapped()
            raw = episode.last_raw_obs_for()
            heard.append((type(env), env.t, raw.tolist(), episode.last_reward_for()))

    worker = worker_with(Mine)
    worker.sample()
    assert heard[:2] == [(OldEnv, 1, [1.0], 1.0), (OldEnv, 2, [2.0], 1.0)]
    assert worker.foreach_env(type) == [OldEnv]
    assert worker.multiagent is False
    assert worker.foreach_env_with_context(lambda env, context: type(env)) == [OldEnv]


def test_functions_by_name_get_the_info_dict():
    heard = []
    functions = {
        "on_sample_end": lambda info: heard.append(info["samples"].count),
        "on_postprocess_traj": lambda info: heard.append(len(info["pre_batch"])),
    }
    worker_with(functions).sample()
    assert heard == [2, 2, 10]


@pytest.mark.parametrize("in_place", [True, False])
def test_dones_that_callbacks_set_are_learned_from(in_place):
    learned = []

    class Mine(DefaultCallbacks):
        def on_postprocess_trajectory(self, *, postprocessed_batch, **kwargs):
            if in_place:
                postprocessed_batch["dones"][1] = True
            else:
                postprocessed_batch["dones"] = np.arange(5) == 1

        def on_sample_end(self, *, samples, **kwargs):
            samples["dones"] = samples["dones"] & (np.arange(10) < 5)

        def on_learn_on_batch(self, *, train_batch, **kwargs):
            learned.append(np.flatnonzero(train_batch["dones"]).tolist())

    worker = worker_with(Mine)
    batch = worker.sample().policy_batches["default_policy"]
    worker.learn_on_batch(batch)
    assert learned == [[1, 4] if in_place else [1]]
    assert np.flatnonzero(batch["terminateds"]).tolist() == learned[0]
