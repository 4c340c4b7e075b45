"""Records what MADDPG's losses of an old Ray computed, on a fixed batch with fixed weights.

Usage: `python record_maddpg.py OUT`, with the Python of an environment that has Ray 1.13.0,
TensorFlow and TensorFlow Probability (it runs on Python 3.8). It writes `OUT/<case>.npz`;
`tests/unit/algorithms/test_maddpg.py` compares. A case holds, by name:

    config.<agent>.*            the settings of each agent's policy, as text
    batch.<agent>.*             obs, actions, rewards, new_obs, dones
    uniform.<agent>.<network>   the numbers that samples of `actor` and `target_actor` are made of
    weights.<agent>.<network>.* before, numbered as the policy numbers them
    losses.<agent>.*            `actor` and `critic`
    gradients.<agent>.*         before any clipping
    sampled.<agent>.*           the actions that both networks gave
    after.<agent>.*             after one update of all policies and all targets
    episode.*, steps.*          an agent's episode, and the rows that its postprocessing made of it
"""

from unittest import mock

import gym
import numpy as np
from ray.rllib.contrib.maddpg.maddpg import DEFAULT_CONFIG, before_learn_on_batch
from ray.rllib.contrib.maddpg.maddpg_policy import MADDPGTFPolicy
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch
from ray.rllib.utils.framework import try_import_tf
from recording import named, record_all
from tensorflow_probability.python.distributions import relaxed_onehot_categorical

tf1, _, _ = try_import_tf()
tf1.disable_eager_execution()

#: Of some seeds a gradient is nearly nothing, and Adam's step is what rounding left of it.
SEED = 9
ROWS, STEPS = 16, 5
DISCRETE, BOX = gym.spaces.Discrete, gym.spaces.Box
SETTINGS = (
    *("agent_id", "use_local_critic", "actor_feature_reg", "n_step", "gamma", "tau"),
    *("actor_lr", "actor_hiddens", "actor_hidden_activation"),
    *("critic_lr", "critic_hiddens", "critic_hidden_activation"),
)

#: Case → the size of each agent's observations with its actions, settings, those of one agent.
CASES = {
    "three-agents": (
        [(3, DISCRETE(3)), (2, BOX(0.0, 1.0, (2,))), (4, DISCRETE(2))],
        {"actor_hiddens": [4, 3], "critic_hiddens": [5, 3]},
        {},
    ),
    "local-critic": (
        [(3, DISCRETE(2)), (4, DISCRETE(3))],
        {"n_step": 3, "gamma": 0.9, "actor_hidden_activation": "tanh", "tau": 0.5},
        {0: {"use_local_critic": True, "actor_lr": 0.02, "actor_hiddens": [5]}},
    ),
    "unclipped": (
        [(3, DISCRETE(2)), (3, DISCRETE(2))],
        {"grad_norm_clipping": None, "actor_feature_reg": 0.5, "critic_hidden_activation": "tanh"},
        {1: {"critic_hiddens": [4], "actor_feature_reg": None}},
    ),
}


def record(case):
    """Records one case."""
    agents, settings, own = CASES[case]
    random = np.random.RandomState(SEED)
    specs = {}
    for i, (size, actions) in enumerate(agents):
        config = dict(DEFAULT_CONFIG, actor_hiddens=[8], critic_hiddens=[8])
        config.update(settings, agent_id=i, **own.get(i, {}))
        specs["p" + str(i)] = (None, BOX(-2.0, 2.0, (size,)), actions, config)
    found = {}
    with tf1.Graph().as_default(), tf1.Session().as_default() as session:
        policies = {}
        for pid, (_, obs, actions, config) in specs.items():
            config["multiagent"] = dict(config["multiagent"], policies=specs)
            with tf1.variable_scope(pid), fixed_noise(pid, width(actions), random, found):
                policies[pid] = MADDPGTFPolicy(obs, actions, config)
            clip = config["grad_norm_clipping"]
            told = {name: str(config[name]) for name in SETTINGS}
            found.update(named("config." + pid, dict(told, grad_clip=str(clip))))
        batch = {pid: rows(policy, random) for pid, policy in policies.items()}
        for pid, policy in policies.items():
            weights = policy.get_weights()["_state"]
            policy.set_weights({"_state": [random.randn(*w.shape) * 0.4 for w in weights]})
            found.update(named("weights." + pid, weights_of(policy)))
            found.update(named("batch." + pid, batch[pid]))
        together = before_learn_on_batch(MultiAgentBatch(batch, ROWS), policies, ROWS)
        shared = together.policy_batches
        for pid, policy in policies.items():
            feed = policy._get_loss_inputs_dict(shared[pid], shuffle=False)
            found.update(named("losses." + pid, session.run(policy.losses, feed)))
            for network, loss in policy.losses.items():
                made = session.run(tf1.gradients(loss, policy.vars[network]), feed)
                found.update(named(f"gradients.{pid}.{network}", numbered(made)))
            found[f"sampled.{pid}.target_actor"] = shared[pid][f"new_actions_{pid[1:]}"]
            acted = policy.compute_actions(batch[pid]["obs"], explore=False)[0]
            found[f"sampled.{pid}.actor"] = acted
        for pid, policy in policies.items():
            policy.learn_on_batch(shared[pid])
            policy.update_target()
            found.update(named("after." + pid, weights_of(policy)))
        found.update(episode_of(policies["p0"], random))
    return found


def fixed_noise(pid, count, random, found):
    """Lets TensorFlow Probability draw the same numbers each time, and records them."""
    networks = iter(["actor", "target_actor"])

    def uniform(**_):
        drawn = random.uniform(0.01, 0.99, (ROWS, count)).astype(np.float32)
        found[f"uniform.{pid}.{next(networks)}"] = drawn
        return tf1.constant(drawn)[None]

    samplers = mock.Mock(wraps=relaxed_onehot_categorical.samplers, uniform=uniform)
    return mock.patch.object(relaxed_onehot_categorical, "samplers", samplers)


def rows(policy, random):
    """Random steps."""
    size = policy.observation_space.shape
    return SampleBatch(
        obs=random.uniform(-2, 2, (ROWS, *size)).astype(np.float32),
        actions=random.dirichlet([1.0] * width(policy.action_space), ROWS).astype(np.float32),
        rewards=random.uniform(-1, 2, ROWS).astype(np.float32),
        new_obs=random.uniform(-2, 2, (ROWS, *size)).astype(np.float32),
        dones=random.rand(ROWS) < 0.3,
    )


def width(space):
    """How many numbers an action has."""
    return space.n if isinstance(space, gym.spaces.Discrete) else space.shape[0]


def episode_of(policy, random):
    """An episode, and what the policy's postprocessing made of it."""
    seen = random.uniform(-2, 2, (STEPS + 1, *policy.observation_space.shape))
    rewards = random.uniform(-1, 2, STEPS)
    batch = SampleBatch(
        obs=seen[:-1],
        new_obs=seen[1:],
        actions=np.zeros(STEPS),
        rewards=rewards.copy(),
        dones=np.zeros(STEPS, bool),
        infos=[{}] * (STEPS - 1) + [{"done": True}],
    )
    made = policy.postprocess_trajectory(batch)
    kept = {name: made[name] for name in ("obs", "rewards", "new_obs", "dones")}
    return dict(named("episode", {"obs": seen, "rewards": rewards}), **named("steps", kept))


def weights_of(policy):
    """All weights by network and number."""
    arrays = iter(policy.get_weights()["_state"])
    return {
        network + "." + str(i): next(arrays)
        for network, variables in policy.vars.items()
        for i in range(len(variables))
    }


def numbered(arrays):
    """The same by number."""
    return {str(i): array for i, array in enumerate(arrays)}


if __name__ == "__main__":
    record_all(record, CASES)
