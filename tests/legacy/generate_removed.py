#!/usr/bin/env python
"""Write museum cases of algorithms that Ray removed, with the old Ray of the running Python.

    python generate_removed.py OUT [--cases NAME ...]

They are as those of `generate.py`, beside which this script runs, on Ray 0.8.5 to 2.8.1,
the last that had them all: bandits everywhere, R2D2 on 1.13.0, RNNSAC and MADDPG on 1.13.0
and later, CRR on 2.0.1 and later. Both frameworks of the bandits and MADDPG's sessions do not go
into one process: run MADDPG by itself. What `expected.npz` holds:

    bandits     out/q_values: what each arm is thought to be worth, with LinUCB's bonus
    CRR         out/action_dist_inputs; out/q_values and out/twin_q_values, where actions are a Box
                those of `q_actions`
    RNNSAC      state_in_*, state_out_*: two for the policy, two for each critic; prev_actions and
                prev_rewards where it looks back; and as CRR
    R2D2        state_in_*, state_out_*, prev_actions, prev_rewards, out/q_values
    DDPPO       out/action_dist_inputs and out/vf_preds
    DQN, DDPG   which explore as no Ray of today does, on 1.13.0: out/q_values, of noisy layers
                also noisefree/out/q_values; of DDPG, those of `q_actions`, and
                out/action_dist_inputs
    MADDPG      out/action_dist_inputs; out/q_values, of `q_inputs`: what all agents saw, and did;
                and target/<output>: what the targets say, which no other of these stores

Of all but DDPPO, MADDPG and noisy layers, `next.npz` holds what came then: `next/<column>`, a batch
of random steps that the policy learned from after it was saved (R2D2, RNNSAC: sequences
`[B, T, …]`; CRR: `next/drawn` and `next/drawn_next` are the actions that its policy drew), and
`after/<name>`, the weights then. Targets were made copies of their networks before, as they are
after a restore.
"""

import importlib
import json
import shutil
import tempfile
from pathlib import Path
from unittest import mock

import generate
import numpy as np
import ray
import torch
from generate import RAY, SAMPLES, box, gym
from ray.rllib.policy.sample_batch import SampleBatch

ITEMS = gym.spaces.Dict({"item": gym.spaces.Box(-2.0, 2.0, (3, 4), np.float32)})
NEW = RAY >= (2, 0, 0)
GYMNASIUM = RAY >= (2, 3, 0)
#: Since 2.1, and 1500 steps for some.
LEARNING_STARTS = "num_steps_sampled_before_learning_starts"
#: Bandits that see one step, or one table of items, at a time.
ONE_BY_ONE = RAY < (1, 10, 0)

SMALL = {"actor_hiddens": [8, 6], "critic_hiddens": [7], "train_batch_size": 32}
STEPS = "min_sample_timesteps_per_iteration" if NEW else "timesteps_per_iteration"
SECONDS = "min_time_s_per_iteration", "min_time_s_per_reporting", "min_iter_time_s"
BANDIT = {STEPS: 40}
RECURRENT = {
    "use_lstm": True,
    "lstm_cell_size": 5,
    "fcnet_hiddens": [7],
    "fcnet_activation": "tanh",
}
#: What the critics of `rnnsac-torch-single` have in its place.
OTHER = {"use_lstm": True, "lstm_cell_size": 4, "fcnet_hiddens": [9, 6], "fcnet_activation": "relu"}
#: What they see of the step before.
BACK = {"lstm_use_prev_action": True, "lstm_use_prev_reward": True}
#: The algorithms that learn from sequences.
RECURRENT_ALGORITHMS = ("R2D2", "RNNSAC")
#: Those whose next update is recorded.
FOLLOWED = ("BanditLinUCB", "BanditLinTS", "CRR", "DQN", "DDPG", *RECURRENT_ALGORITHMS)
TINY = {"obs": 5, "act": ["discrete", 3]}
AGENTS = {"left": (3, ("discrete", 3)), "right": (4, ("discrete", 3))}

#: For noise on weights, an episode at a time.
NOISE = {
    "exploration_config": {"type": "ParameterNoise", "random_timesteps": 20},
    "batch_mode": "complete_episodes",
}
Q = {
    "model": {"fcnet_hiddens": [7], "fcnet_activation": "tanh"},
    "hiddens": [6],
    "train_batch_size": 32,
    "learning_starts": 30,
    "replay_buffer_config": {"capacity": 500},
    "lr": 0.01,
    STEPS: 80,
}

#: Case → algorithm, its environment, its config.
CASES = {
    "banditlinucb-torch-arms": ("BanditLinUCB", TINY, BANDIT),
    "banditlinucb-torch-items": ("BanditLinUCB", "items", BANDIT),
    "banditlints-torch-arms": ("BanditLinTS", TINY, BANDIT),
    "banditlinucb-tf2-arms": ("BanditLinUCB", TINY, BANDIT),
    "crr-torch-discrete": ("CRR", TINY, dict(SMALL, actor_hidden_activation="tanh")),
    "crr-torch-box": ("CRR", {"obs": 4, "act": ["box", 1]}, SMALL),
    "ddppo-torch-small": (
        "DDPPO",
        TINY,
        {
            "num_workers": 1,
            "num_gpus_per_worker": 0,
            "rollout_fragment_length": 40,
            "sgd_minibatch_size": 20,
            "num_sgd_iter": 2,
            "keep_local_weights_in_sync": True,
            "model": {"fcnet_hiddens": [8], "fcnet_activation": "tanh"},
            "lr": 0.001,
        },
    ),
    "rnnsac-torch-discrete": ("RNNSAC", TINY, {}),
    "rnnsac-torch-single": (
        "RNNSAC",
        TINY,
        {"twin_q": False, "target_entropy": 0.4, "zero_init_states": False},
    ),
    "rnnsac-torch-post": (
        "RNNSAC",
        TINY,
        {"networks": {"post_fcnet_hiddens": [6], "post_fcnet_activation": "relu"}},
    ),
    "rnnsac-torch-prev": ("RNNSAC", TINY, {"networks": BACK}),
    "r2d2-torch-prev": (
        "R2D2",
        TINY,
        {
            "model": dict(RECURRENT, max_seq_len=6, **BACK),
            "hiddens": [8],
            "use_h_function": False,  # its inverse was exact to two digits
            "zero_init_states": False,
            "train_batch_size": 40,
            "target_network_update_freq": 100,
            "replay_buffer_config": {"capacity": 500},
            "learning_starts": 30,
            "lr": 0.01,
            STEPS: 80,
        },
    ),
    "maddpg-tf-two": ("MADDPG", AGENTS, {}),
    "dqn-torch-noisy": ("DQN", TINY, dict(Q, noisy=True, sigma0=0.3)),
    "dqn-torch-paramnoise": ("DQN", TINY, dict(Q, **NOISE)),
    "dqn-torch-softq": (
        "DQN",
        TINY,
        dict(Q, exploration_config={"type": "SoftQ", "temperature": 0.5}),
    ),
    "ddpg-torch-paramnoise": (
        "DDPG",
        {"obs": 4, "act": ["box", 1]},
        dict(SMALL, learning_starts=30, buffer_size=500, **dict(NOISE, **{STEPS: 80})),
    ),
}
#: Where a class was, below ray.rllib, the newest place first.
CLASSES = {
    "BanditLinUCB": [
        ("algorithms.bandit", "BanditLinUCB"),
        ("agents.bandit.bandit", "BanditLinUCBTrainer"),
        ("contrib.bandits.agents.lin_ucb", "LinUCBTrainer"),
    ],
    "BanditLinTS": [
        ("algorithms.bandit", "BanditLinTS"),
        ("agents.bandit.bandit", "BanditLinTSTrainer"),
        ("contrib.bandits.agents.lin_ts", "LinTSTrainer"),
    ],
    "CRR": [("algorithms.crr", "CRR")],
    "DDPG": [("agents.ddpg", "DDPGTrainer")],
    "DQN": [("agents.dqn", "DQNTrainer")],
    "DDPPO": [("algorithms.ddppo", "DDPPO"), ("agents.ppo.ddppo", "DDPPOTrainer")],
    "MADDPG": [("algorithms.maddpg", "MADDPG"), ("contrib.maddpg", "MADDPGTrainer")],
    "R2D2": [("agents.dqn.r2d2", "R2D2Trainer")],
    "RNNSAC": [("algorithms.sac.rnnsac", "RNNSAC"), ("agents.sac.rnnsac", "RNNSACTrainer")],
}


class Items(generate.Tiny):
    """A table of items to choose from."""

    def __init__(self, config=None):
        super().__init__()
        self.observation_space = ITEMS

    def observation(self):
        return {"item": self.rng.uniform(-2, 2, (3, 4)).astype(np.float32)}


class Two(generate.Team):
    """Two agents; the environment says what each is."""

    def of_all(self, value):
        return dict.fromkeys(AGENTS, value)

    def observation(self):
        return {agent: generate.observe(self.rng, obs) for agent, (obs, _) in AGENTS.items()}

    def step(self, actions):
        self.steps += 1
        over = self.steps >= generate.EPISODE
        ends = [{**self.of_all(over), "__all__": over}]
        if GYMNASIUM:
            ends.append({**self.of_all(False), "__all__": False})
        rewards = {agent: float(np.ravel(action)[0]) for agent, action in actions.items()}
        return (self.observation(), rewards, *ends, self.of_all({}))


def class_of(algorithm):
    for module, name in CLASSES[algorithm]:
        try:
            return getattr(importlib.import_module("ray.rllib." + module), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"no {algorithm} in Ray {ray.__version__}")


def config_of(name, scratch):
    """A case's config, for the installed Ray."""
    algorithm, spaces, told = CASES[name]
    framework = name.split("-")[1]
    known = generate.default_config(class_of(algorithm))
    config = {"num_workers": 0, "seed": 11, "num_gpus": 0}
    config.update(
        (key, value)
        for key, value in (
            ("framework", framework),
            ("use_pytorch", framework == "torch"),
            ("disable_env_checking", True),
        )
        if key in known
    )
    config[next(key for key in SECONDS if key in known)] = 0
    if LEARNING_STARTS in known:
        config[LEARNING_STARTS] = 30
    config.update(told)
    if isinstance(spaces, dict) and "obs" in spaces:
        config["env_config"] = spaces
    if algorithm == "RNNSAC":
        names = ("policy_model_config", "q_model_config") if NEW else ("policy_model", "Q_model")
        more = config.pop("networks", {})
        critics = OTHER if "single" in name else RECURRENT
        config.update(
            {names[0]: dict(RECURRENT, **more), names[1]: dict(critics, **more)},
            train_batch_size=40,
            learning_starts=30,
            tau=0.3,
            replay_buffer_config={"capacity": 500},
            model={"max_seq_len": 6},
            **{STEPS: 80},
        )
        if NEW:
            config.pop("learning_starts")
            config["replay_buffer_config"].update(
                type="MultiAgentReplayBuffer",
                learning_starts=30,
                storage_unit="sequences",
                replay_burn_in=0,
                replay_sequence_length=-1,
            )
        config["optimization"] = {
            n + "_learning_rate": rate
            for n, rate in (("actor", 0.01), ("critic", 0.02), ("entropy", 0.03))
        }
    if algorithm == "MADDPG":
        specs = {
            agent: (None, box(obs, 2.0), generate.action_space(*act), {"agent_id": i})
            for i, (agent, (obs, act)) in enumerate(AGENTS.items())
        }
        config.update(
            multiagent={"policies": specs, "policy_mapping_fn": generate.policy_of},
            actor_hiddens=[6],
            critic_hiddens=[8, 5],
            train_batch_size=32,
            learning_starts=40,
            buffer_size=500,
            tau=0.3,
            **{STEPS: 80},
        )
        if NEW:
            config["replay_buffer_config"] = {
                "capacity": config.pop("buffer_size"),
                "learning_starts": config.pop("learning_starts"),
            }
    if algorithm == "CRR":
        config.update(
            input=recorded_steps(spaces, scratch),
            env=None,
            actor_lr=0.01,
            critic_lr=0.02,
            tau=0.3,
            target_network_update_freq=64,
            observation_space=generate.observation_space(spaces["obs"]),
            action_space=generate.action_space(*spaces["act"]),
        )
        config.pop("env_config")
    return config


ENVIRONMENTS = {"museum-tiny": generate.Tiny, "museum-items": Items, "museum-two": Two}
#: Environments that an algorithm needs; CRR learns from files.
ENVS = {"CRR": None, "MADDPG": "museum-two"}


def recorded_steps(spaces, scratch):
    """Steps that CRR learns from, as old Rays wrote them."""
    env = generate.Tiny(spaces)
    env.action_space.seed(5)
    columns = {key: [] for key in ["obs", "actions", "rewards", "new_obs", "dones", "eps_id", "t"]}
    seen = env.reset()
    for step in range(200):
        action = env.action_space.sample()
        after, reward, done, _ = env.step(action)
        row = {
            "obs": seen,
            "actions": action,
            "rewards": reward,
            "new_obs": after,
            "dones": done,
            "eps_id": step // generate.EPISODE,
            "t": step % generate.EPISODE,
        }
        for key, value in row.items():
            columns[key].append(np.asarray(value).tolist())
        seen = env.reset() if done else after
    (scratch / "steps").mkdir()
    told = json.dumps({**columns, "type": "SampleBatch"})
    (scratch / "steps/steps.json").write_text(told + "\n")
    return str(scratch / "steps")


# What is recorded --------------------------------------------------------------------------------


def numbers(value):
    return np.asarray(value.detach().numpy() if isinstance(value, torch.Tensor) else value)


def of_bandit(policy, flat, raw):
    """Scores, with the bonus that LinUCB adds."""
    seen = raw["item"] if isinstance(raw, dict) else flat
    seen = torch.from_numpy(seen) if isinstance(policy.model, torch.nn.Module) else seen
    how = {"sample_theta": False, "use_ucb": "UCB" in type(policy.model).__name__}
    if isinstance(raw, dict) and ONE_BY_ONE:
        return {"out/q_values": torch.stack([policy.model.predict(x, **how) for x in seen])}
    return {"out/q_values": policy.model.predict(seen, **how)}


def of_crr(policy, flat, rng):
    found = {}
    box_actions = isinstance(policy.action_space, gym.spaces.Box)
    seen = torch.from_numpy(flat)
    taken = rng.uniform(-1, 1, (len(flat), *policy.action_space.shape)).astype(np.float32)
    if box_actions:
        found["q_actions"] = taken
    model = policy.model
    found["out/action_dist_inputs"] = model.get_policy_output(seen)
    for output, net in (("q_values", model.q_model), ("twin_q_values", model.twin_q_model)):
        into = torch.cat([seen, torch.from_numpy(taken)], -1) if box_actions else seen
        made = net(into)
        found["out/" + output] = made[:, 0] if box_actions else made
    return found


def of_q(policy, flat):
    """What the weights say that were saved; `compute_actions` would add or take noise."""
    from ray.rllib.agents.dqn.dqn_torch_policy import compute_q_values

    def values():
        seen = {"obs": torch.from_numpy(flat)}
        return compute_q_values(policy, policy.model, seen, explore=False, is_training=False)[0]

    found = {"out/q_values": values()}
    if policy.config["noisy"]:
        with mock.patch.object(torch, "normal", lambda mean, std: mean):
            found["noisefree/out/q_values"] = values()
    return found


def of_ddpg(policy, flat, rng):
    model, seen = policy.model, torch.from_numpy(flat)
    taken = rng.uniform(-1, 1, (len(flat), *policy.action_space.shape)).astype(np.float32)
    out, _ = model({"obs": seen}, [], None)
    values = model.get_q_values(out, torch.from_numpy(taken))
    found = {"q_actions": taken, "out/q_values": values[:, 0]}
    return dict(found, **{"out/action_dist_inputs": model.get_policy_output(out)})


def looks_back(policy):
    """Whether a recurrent policy sees what was done and given before."""
    return getattr(getattr(policy.model, "q_net", policy.model), "use_prev_action", False)


def step_before(policy, lead, rng):
    """Random actions and rewards of the step before, where a policy sees them."""
    if not looks_back(policy):
        return {}
    return {
        "prev_actions": rng.randint(policy.action_space.n, size=lead),
        "prev_rewards": rng.uniform(-1, 2, lead).astype(np.float32),
    }


def states_of(policy, count, rng):
    """Random states, by their names."""
    return {
        f"state_in_{i}": rng.uniform(-1, 1, (count, len(state))).astype(np.float32)
        for i, state in enumerate(policy.model.get_initial_state())
    }


def of_r2d2(policy, flat, rng):
    states, before = states_of(policy, len(flat), rng), step_before(policy, len(flat), rng)
    _, after, extra = policy.compute_actions(
        flat,
        list(states.values()),
        before.get("prev_actions"),
        before.get("prev_rewards"),
        explore=False,
    )
    outputs = {f"state_out_{i}": state for i, state in enumerate(after)}
    return dict(states, **before, **outputs, **{"out/q_values": extra["q_values"]})


def of_rnnsac(policy, flat, rng):
    model, found = policy.model, states_of(policy, len(flat), rng)
    states, before = list(found.values()), step_before(policy, len(flat), rng)
    found.update(before)
    seen = {"obs": flat, **before}
    lens = torch.ones(len(flat), dtype=torch.int32)
    nets = [("action_dist_inputs", model.action_model), ("q_values", model.q_net)]
    if model.twin_q_net is not None:
        nets.append(("twin_q_values", model.twin_q_net))
    for i, (output, net) in enumerate(nets):
        own = [torch.from_numpy(state) for state in states[2 * i : 2 * i + 2]]
        found["out/" + output], after = net(
            {key: torch.from_numpy(value) for key, value in seen.items()}, own, lens
        )
        found.update({f"state_out_{2 * i + j}": s for j, s in enumerate(after)})
    return found


def of_maddpg(policy, name, flat, rng):
    """What actor and critic compute of an agent, and their targets."""
    graph, session = policy.get_session().graph, policy.get_session()
    placeholders = dict(policy._loss_input_dict)
    feed, inputs = {}, []
    for i, (agent, (obs, act)) in enumerate(AGENTS.items()):
        seen = flat if agent == name else rng.uniform(-2, 2, (len(flat), obs)).astype(np.float32)
        acted = rng.dirichlet([1.0] * act[1], len(flat)).astype(np.float32)
        feed.update(
            {
                placeholders[f"obs_{i}"]: seen,
                placeholders[f"actions_{i}"]: acted,
                placeholders[f"new_obs_{i}"]: seen,
                placeholders[f"new_actions_{i}"]: acted,
            }
        )
        inputs.append((seen, acted))
    found = {"q_inputs": np.concatenate([i[0] for i in inputs] + [i[1] for i in inputs], -1)}
    with graph.as_default():
        for kind, scope in (("out/", ""), ("target/", "target_")):
            biases = [
                op
                for op in graph.get_operations()
                if op.type == "BiasAdd" and op.name.startswith(name + "/")
            ]
            for output, network in (("action_dist_inputs", "actor"), ("q_values", "critic")):
                own = [op for op in biases if op.name.split("/")[1] == scope + network]
                last = own[-1 if network == "actor" else 2]
                made = session.run(last.outputs[0], feed)
                found[kind + output] = made if network == "actor" else made[:, 0]
    return found


# What came next ----------------------------------------------------------------------------------


def following(name, policy, rng):
    """A batch that the policy learns from, and the weights after it."""
    algorithm = CASES[name][0]
    lead = {"R2D2": (4, 6), "RNNSAC": (4, 6), "CRR": (32,)}.get(algorithm, (9,))
    size = int(np.prod(policy.observation_space.shape))
    batch = {
        key: rng.uniform(-2, 2, (*lead, size)).astype(np.float32) for key in ("obs", "new_obs")
    }
    discrete = isinstance(policy.action_space, gym.spaces.Discrete)
    batch["actions"] = (
        rng.randint(policy.action_space.n, size=lead)
        if discrete
        else rng.uniform(-1, 1, lead + policy.action_space.shape).astype(np.float32)
    )
    batch["rewards"] = rng.uniform(-1, 2, lead).astype(np.float32)
    if algorithm in RECURRENT_ALGORITHMS:
        batch.update(step_before(policy, lead, rng))
    batch["dones"] = np.zeros(lead, bool)
    batch["dones"][..., -1] = True
    drawn = {}
    if algorithm == "CRR":
        shapes = {"drawn": (4, *lead), "drawn_next": lead}
        for key, shape in shapes.items():
            drawn[key] = (
                rng.randint(3, size=shape)
                if discrete
                else rng.uniform(-1, 1, (*shape, 1)).astype(np.float32)
            )
    if hasattr(policy, "update_target"):
        policy.update_target(**({} if algorithm in ("R2D2", "DQN") else {"tau": 1.0}))
    found = {"next/" + key: value for key, value in dict(batch, **drawn).items()}
    if GYMNASIUM:
        batch["terminateds"] = batch.pop("dones")

    def draw(_, shape=None):
        return torch.from_numpy(drawn["drawn" if shape else "drawn_next"])

    if algorithm in RECURRENT_ALGORITHMS:
        flat = {key: value.reshape((-1, *value.shape[2:])) for key, value in batch.items()}
        for i, state in enumerate(policy.model.get_initial_state()):
            flat[f"state_in_{i}"] = np.zeros((4, len(state)), np.float32)
        flat.update(seq_lens=np.full(4, 6, np.int32), weights=np.ones(24, np.float32))
        for key in ("actions", "rewards"):
            flat.setdefault("prev_" + key, np.zeros_like(flat[key]))
        batch = SampleBatch(flat)
        batch.zero_padded, batch.max_seq_len = True, 6
    else:
        more = {"infos": np.array([{}] * 9)} if algorithm.startswith("Bandit") else {}
        if algorithm in ("DQN", "DDPG"):
            more["weights"] = np.ones(lead, np.float32)
        batch = SampleBatch(dict({key: value.copy() for key, value in batch.items()}, **more))
    if algorithm == "CRR":
        kinds = torch.distributions.Categorical, torch.distributions.Normal
        one, two = (mock.patch.object(kind, "sample", draw) for kind in kinds)
        with one, two:
            policy.learn_on_batch(batch)
    elif algorithm.startswith("Bandit") and ONE_BY_ONE:
        for step in range(len(batch["rewards"])):
            policy.learn_on_batch(batch.slice(step, step + 1))
    else:
        policy.learn_on_batch(batch)
    held = policy.get_weights()
    held = dict(enumerate(held)) if isinstance(held, list) else held
    found.update({f"after/{key}": value for key, value in held.items()})
    return found


def record(name, trainer):
    """The arrays of expected.npz and next.npz, and what case.json says of the policies."""
    arrays, later, policies, algorithm = {}, {}, {}, CASES[name][0]
    worker = trainer.workers.local_worker()
    rng = np.random.RandomState(1000)
    for policy_id in sorted(worker.policy_map.keys()):
        policy = worker.policy_map[policy_id]
        space = getattr(policy.observation_space, "original_space", policy.observation_space)
        if isinstance(space, gym.spaces.Dict):
            raw = {"item": rng.uniform(-2, 2, (SAMPLES, 3, 4)).astype(np.float32)}
            flat = raw["item"].reshape(SAMPLES, -1)
        else:
            raw = flat = np.stack([generate.sample(rng, space) for _ in range(SAMPLES)])
        if algorithm.startswith("Bandit"):
            found = of_bandit(policy, flat, raw)
        elif algorithm == "CRR":
            found = of_crr(policy, flat, rng)
        elif algorithm == "R2D2":
            found = of_r2d2(policy, flat, rng)
        elif algorithm == "RNNSAC":
            found = of_rnnsac(policy, flat, rng)
        elif algorithm == "DQN":
            found = of_q(policy, flat)
        elif algorithm == "DDPG":
            found = of_ddpg(policy, flat, rng)
        elif algorithm == "MADDPG":
            found = of_maddpg(policy, policy_id, flat, rng)
        else:
            found = generate.outputs(policy, flat)
        policies[policy_id] = {
            "observation_space": generate.told(space),
            "action_space": str(policy.action_space),
            "policy_class": type(policy).__module__ + "." + type(policy).__name__,
            "weights": weights(policy),
        }
        found = {key: numbers(array).copy() for key, array in found.items()}
        if algorithm in FOLLOWED and not policy.config.get("noisy"):
            later = following(name, policy, rng)
        found = dict(found, net_in=flat)
        found["obs/item" if isinstance(raw, dict) else "obs"] = (
            raw["item"] if isinstance(raw, dict) else raw
        )
        arrays.update({policy_id + "/" + key: numbers(array) for key, array in found.items()})
    files = {"expected": arrays, "next": later} if later else {"expected": arrays}
    return files, {"policies": policies}


def weights(policy):
    held = policy.get_weights()
    if isinstance(held, dict) and "_state" in held:  # MADDPG's
        names = [var.name for part in policy.vars.values() for var in part]
        held = dict(zip(names, held["_state"]))  # noqa: B905 - Python 3.8
    if isinstance(held, list):
        names = [var.name for var in policy.model.variables()]
        held = dict(zip(names, held))  # noqa: B905
    return [
        [name, list(np.shape(array)), str(np.asarray(array).dtype)] for name, array in held.items()
    ]


def make(name, out):
    algorithm, spaces, _ = CASES[name]
    env = ENVS.get(algorithm, "museum-items" if spaces == "items" else "museum-tiny")
    _, framework, variant = name.split("-", 2)
    scratch = Path(tempfile.mkdtemp())
    generate.train(
        class_of(algorithm),
        config_of(name, scratch),
        env,
        lambda trainer: record(name, trainer),
        Path(out) / ray.__version__ / name,
        algo=algorithm,
        framework=framework,
        stack="old",
        variant=variant,
    )
    shutil.rmtree(str(scratch), ignore_errors=True)


if __name__ == "__main__":
    generate.run(__doc__, CASES, make, ENVIRONMENTS)
