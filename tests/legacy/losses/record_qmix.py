"""Records what QMIX's loss of an old Ray computed, on fixed episodes with fixed weights.

Usage: `python record_qmix.py OUT`, with the Python of an environment that has Ray 1.13.0 and torch
(it runs on Python 3.8). It writes `OUT/<case>.npz`; `tests/unit/algorithms/test_qmix.py` compares.
A case holds, by name:

    config.*                    the settings that matter; a mixer of None is the text "None"
    chunk.<i>.*                 chunks of episodes: `obs`, perhaps `action_mask` and `state` (all
                                with those after the last step), actions, rewards of each agent,
                                and whether the last step was a `done`
    weights.*, targets.*        before, by the old names, below `model.` and `mixer.`
    stats.*                     loss, td_error_abs, q_taken_mean, target_mean
    gradients.*                 before any clipping
    after.*                     after one `learn_on_batch`
    acting.obs, acting.values   the model's values of the first chunk, a step at a time
"""

from unittest import mock

import gym
import numpy as np
import torch
from ray.rllib.agents.qmix import qmix_policy
from ray.rllib.agents.qmix.qmix import DEFAULT_CONFIG
from ray.rllib.models.preprocessors import get_preprocessor
from ray.rllib.policy.sample_batch import SampleBatch
from recording import draw_weights, named, record_all

AGENTS, ACTIONS, SIZE, STATE = 2, 3, 4, 5
OBS = gym.spaces.Box(-2.0, 2.0, (SIZE,), np.float32)
MASK = gym.spaces.Box(0.0, 1.0, (ACTIONS,), np.float32)
STATES = gym.spaces.Box(-2.0, 2.0, (STATE,), np.float32)
WHOLE = gym.spaces.Dict({"obs": OBS, "action_mask": MASK, "state": STATES})
MASKED = gym.spaces.Dict({"obs": OBS, "action_mask": MASK})

#: Case → what an agent observes, settings.
CASES = {
    "qmix": (WHOLE, {"mixer": "qmix", "mixing_embed_dim": 6}),
    "qmix-clipped": (OBS, {"mixer": "qmix", "grad_norm_clipping": 0.5, "lr": 0.01, "gamma": 0.9}),
    "qmix-cut": (OBS, {"mixer": "qmix", "max_seq_len": 2}),
    "vdn": (MASKED, {"mixer": "vdn", "double_q": False}),
    "none": (MASKED, {"mixer": None, "optim_alpha": 0.9, "optim_eps": 1e-3}),
}

#: The steps of each chunk, and whether its episode ended with it.
CHUNKS = ((5, True), (2, True), (3, False), (1, True))


def record(case):
    """Records one case."""
    space, settings = CASES[case]
    config = dict(DEFAULT_CONFIG, num_gpus=0, num_workers=0)
    longest = settings.get("max_seq_len", 999999)
    config.update({k: v for k, v in settings.items() if k != "max_seq_len"})
    config["model"] = dict(config["model"], lstm_cell_size=7, max_seq_len=longest)
    torch.manual_seed(7)
    random = np.random.RandomState(7)
    group = gym.spaces.Tuple([space] * AGENTS)
    flatten = get_preprocessor(group)(group)
    actions = gym.spaces.Tuple([gym.spaces.Discrete(ACTIONS)] * AGENTS)
    policy = qmix_policy.QMixTorchPolicy(flatten.observation_space, actions, config)
    draw_weights(random, *networks(policy).values())
    names = ["mixer", "mixing_embed_dim", "double_q", "gamma", "lr", "optim_alpha", "optim_eps"]
    found = {"config." + name: np.asarray(str(config[name])) for name in names}
    found["config.grad_clip"] = np.asarray(str(config["grad_norm_clipping"]))
    found["config.max_seq_len"] = np.asarray(str(longest))
    found.update(weights(policy))
    columns = {name: [] for name in ["obs", "new_obs", "actions", "infos", "dones", "eps_id"]}
    for index, (steps, done) in enumerate(CHUNKS):
        chunk = chunk_of(space, steps, random)
        rows = [flatten.transform(one) for one in observations(space, chunk)]
        columns["obs"] += rows[:-1]
        columns["new_obs"] += rows[1:]
        columns["actions"] += list(chunk["actions"])
        columns["infos"] += [{"_group_rewards": list(reward)} for reward in chunk["rewards"]]
        columns["dones"] += [False] * (steps - 1) + [done]
        columns["eps_id"] += [index] * steps
        found.update(named("chunk." + str(index), dict(chunk, done=done)))
    batch = {name: np.array(column) for name, column in columns.items()}
    batch["unroll_id"] = batch["eps_id"]
    batch["agent_index"] = np.zeros_like(batch["eps_id"])
    found.update(named("acting", acting(policy, found["chunk.0.obs"])))
    gradients = {}
    clip = torch.nn.utils.clip_grad_norm_

    def clipped(parameters, norm):
        for kind in ("model", "mixer"):
            for name, weight in named_parameters(policy, kind):
                gradients[kind + "." + name] = weight.grad.numpy().copy()
        return clip(parameters, norm)

    with mock.patch.object(torch.nn.utils, "clip_grad_norm_", clipped):
        stats = policy.learn_on_batch(SampleBatch(batch))["learner_stats"]
    found.update(named("stats", stats))
    found.update(named("gradients", gradients))
    after = {n.replace("weights", "after", 1): w for n, w in weights(policy).items()}
    found.update({name: weight for name, weight in after.items() if name.startswith("after")})
    return found


def chunk_of(space, steps, random):
    """Random steps."""
    chunk = {
        "obs": random.uniform(-2, 2, (steps + 1, AGENTS, SIZE)).astype(np.float32),
        "actions": random.randint(ACTIONS, size=(steps, AGENTS)),
        "rewards": random.uniform(-1, 2, (steps, AGENTS)).astype(np.float32),
    }
    if space is not OBS:
        mask = random.randint(2, size=(steps + 1, AGENTS, ACTIONS)).astype(np.float32)
        mask[..., 1] = 1.0
        chunk["action_mask"] = mask
    if space is WHOLE:
        chunk["state"] = random.uniform(-2, 2, (steps + 1, STATE)).astype(np.float32)
    return chunk


def observations(space, chunk):
    """What the group observes at each step."""
    for at in range(len(chunk["obs"])):
        parts = []
        for agent in range(AGENTS):
            part = {"obs": chunk["obs"][at, agent]}
            if "action_mask" in chunk:
                part["action_mask"] = chunk["action_mask"][at, agent]
            if "state" in chunk:
                part["state"] = chunk["state"][at]
            parts.append(part if space is not OBS else part["obs"])
        yield tuple(parts)


def acting(policy, seen):
    """The values of a sequence, a step at a time."""
    state = [torch.zeros(1, AGENTS, s.shape[-1]) for s in policy.model.get_initial_state()]
    values = []
    with torch.no_grad():
        for step in seen:
            made, state = qmix_policy._mac(policy.model, torch.from_numpy(step)[None], state)
            values.append(made[0].numpy())
    return {"obs": seen, "values": np.array(values)}


def networks(policy):
    """All networks by name."""
    names = ("model", "mixer", "target_model", "target_mixer")
    found = {name: getattr(policy, name) for name in names}
    return {name: network for name, network in found.items() if network is not None}


def named_parameters(policy, kind):
    """Parameters of a network that may not be there."""
    network = networks(policy).get(kind)
    return network.named_parameters() if network is not None else ()


def weights(policy):
    """Copies of all weights."""
    found = {}
    for name, network in networks(policy).items():
        kind = "targets." if name.startswith("target_") else "weights."
        found.update(named(kind + name.replace("target_", ""), network.state_dict()))
    return found


if __name__ == "__main__":
    record_all(record, CASES)
