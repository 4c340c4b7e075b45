"""Records updates of IMPALA as Ray 0.8.5 made them, which had it on TensorFlow alone.

Usage: `python record_impala_0_8.py OUT`, with the Python of an environment that has Ray 0.8.5 and
TensorFlow 1. It writes `OUT/impala-<case>.npz`, which hold what those of `record_actor_critics.py`
hold, weights by TensorFlow's names; `tests/unit/algorithms/test_actor_critics.py` compares.
"""

import gym
import numpy as np
import tensorflow as tf
from ray.rllib.agents.impala.impala import DEFAULT_CONFIG
from ray.rllib.agents.impala.vtrace_tf_policy import VTraceTFPolicy
from ray.rllib.policy.sample_batch import SampleBatch
from recording import named, record_all, steps_of

SEEN, ACTIONS = gym.spaces.Box(-2.0, 2.0, (4,), np.float32), gym.spaces.Discrete(3)
#: Case → settings.
CASES = {
    "adam": {"lr": 0.01},
    "clipped": {"lr": 0.01, "grad_clip": 3.0, "vtrace_clip_rho_threshold": 0.9},
    "rmsprop": {"lr": 0.01, "opt_type": "rmsprop", "decay": 0.5, "momentum": 0.3, "epsilon": 0.01},
    "weighed": {"lr": 0.01, "entropy_coeff": 0.03, "vf_loss_coeff": 0.2, "gamma": 0.9},
}
#: The steps of each chunk, and whether its episode ended with it: two fragments of ten steps.
CHUNKS = ((6, True), (4, False), (10, False))


def record(case):
    """Records one case."""
    config = dict(DEFAULT_CONFIG, num_gpus=0, num_workers=0, rollout_fragment_length=10)
    config.update(CASES[case])
    layers = {"fcnet_hiddens": [8, 6], "fcnet_activation": "tanh", "vf_share_layers": False}
    config["model"] = dict(config["model"], **layers)
    drawn = np.random.RandomState(7)
    found = {f"config.{name}": repr(value) for name, value in CASES[case].items()}
    found["config.framework"] = repr("tf")
    with tf.Graph().as_default(), tf.Session().as_default():
        policy = VTraceTFPolicy(SEEN, ACTIONS, config)
        weights = {
            name: drawn.randn(*array.shape).astype(np.float32) * 0.4
            for name, array in sorted(policy.get_weights().items())
        }
        policy.set_weights(weights)
        found.update(named("weights", weights))
        chunks = [made_up(drawn, *chunk) for chunk in CHUNKS]
        for index, chunk in enumerate(chunks):
            found.update(steps_of(index, chunk))
        samples = SampleBatch.concat_samples([SampleBatch(chunk) for chunk in chunks])
        for number in (1, 2):
            told = policy.learn_on_batch(samples)["learner_stats"]
            numbers = {name: value for name, value in told.items() if name != "model"}
            found.update(named(f"told.{number}", numbers))
            found.update(named(f"after.{number}", policy.get_weights()))
    return found


def made_up(drawn, steps, done):
    """A chunk of an episode, as a policy with weights of its own had sampled it."""
    obs = drawn.uniform(-2, 2, (steps + 1, 4)).astype(np.float32)
    logits = drawn.randn(steps, 3).astype(np.float32) * 0.5
    taken = drawn.randint(0, 3, steps)
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    logp = np.log(chances[np.arange(steps), taken])
    return {
        "obs": obs[:-1],
        "new_obs": obs[1:],
        "actions": taken,
        "rewards": drawn.uniform(-1, 2, steps).astype(np.float32),
        "dones": np.array([False] * (steps - 1) + [done]),
        "agent_index": np.zeros(steps, int),
        "prev_actions": np.zeros(steps, int),
        "prev_rewards": np.zeros(steps, np.float32),
        "action_dist_inputs": logits,
        "action_logp": logp.astype(np.float32),
    }


if __name__ == "__main__":
    record_all(record, CASES, "impala-")
