"""Records what networks an old Ray makes of configs: names and shapes, first weights, outputs.

Usage: `python record.py OUT.json`, with the Python of an environment that has a Ray of 0.8.5 –
1.13.0 and torch; `python record.py OUT.json tf`, with Ray 1.13.0 and TensorFlow.
`tests/unit/networks/test_new_networks.py` compares.

By case:

    weights    name → shape, of all arrays of the model
    first      name → (mean length of a row, greatest deviation from that, greatest number, standard
               deviation) of the first weights; a row is what makes one output
    outputs    what the model gives for made inputs and weights (`made`): `logits`, and `values`
               where it has a value function; of DDPG and TD3 `actions`, and `q_values` and
               `twin_q_values` of made actions
    error      what the Ray said instead
"""

import copy
import json
import re
import sys
import zlib
from importlib import import_module
from pathlib import Path

import cases
import gym
import numpy as np
import torch
from ray.rllib.models import ModelCatalog


def made(name, shape):
    """Weights or inputs that depend on nothing but their name and shape."""
    drawn = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape)
    scale = 1 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.1
    return np.asarray(drawn * scale, np.float32)


#: Algorithm → the module below `ray.rllib.agents` and the names of its torch policy, newest first.
POLICIES = {
    "A2C": ("a3c.a3c_torch_policy", "A3CTorchPolicy"),
    "A3C": ("a3c.a3c_torch_policy", "A3CTorchPolicy"),
    "ARS": ("ars.ars_torch_policy", "ARSTorchPolicy"),
    "APPO": ("ppo.appo_torch_policy", "APPOTorchPolicy AsyncPPOTorchPolicy"),
    "BC": ("marwil.marwil_torch_policy", "MARWILTorchPolicy"),
    "CQL": ("cql.cql_torch_policy", "CQLTorchPolicy"),
    "DDPG": ("ddpg.ddpg_torch_policy", "DDPGTorchPolicy"),
    "DQN": ("dqn.dqn_torch_policy", "DQNTorchPolicy"),
    "ES": ("es.es_torch_policy", "ESTorchPolicy"),
    "IMPALA": ("impala.vtrace_torch_policy", "VTraceTorchPolicy"),
    "MARWIL": ("marwil.marwil_torch_policy", "MARWILTorchPolicy"),
    "PG": ("pg.pg_torch_policy", "PGTorchPolicy"),
    "PPO": ("ppo.ppo_torch_policy", "PPOTorchPolicy"),
    "R2D2": ("dqn.r2d2_torch_policy", "R2D2TorchPolicy"),
    "SAC": ("sac.sac_torch_policy", "SACTorchPolicy"),
    "SimpleQ": ("dqn.simple_q_torch_policy", "SimpleQTorchPolicy"),
    "TD3": ("ddpg.ddpg_torch_policy", "DDPGTorchPolicy"),
}

#: What has no action distribution's inputs and values to tell.
OF_VALUES = ("DQN", "SimpleQ", "SAC", "CQL", "R2D2")

#: What has an action and critics of actions instead.
OF_ACTIONS = ("DDPG", "TD3")


def trainer_class(name):
    try:
        from ray.rllib.agents.registry import get_trainer_class as find
    except ImportError:  # until Ray 1.1
        from ray.rllib.agents.registry import get_agent_class as find
    return find(name)


def policy_class(algorithm, config):
    if config["framework"] == "tf":
        return trainer_class(algorithm).get_default_policy_class(None, config)
    home, names = POLICIES[algorithm]
    module = import_module(f"ray.rllib.agents.{home}")
    return next(getattr(module, name) for name in names.split() if hasattr(module, name))


def record(case, framework):
    algorithm, seen, acts, config = case
    trainer = trainer_class(algorithm)
    getter = getattr(trainer, "get_default_config", None)
    whole = copy.deepcopy(getter() if getter else trainer._default_config)
    models = (config.get(key, {}) for key in ("model", "Q_model", "policy_model"))
    unknown = {key for told in models for key in told} - set(whole["model"])
    if unknown:
        raise KeyError(f"this Ray has no {sorted(unknown)}")
    for key, value in config.items():
        both = isinstance(value, dict) and key != "exploration_config"
        whole[key] = {**whole.get(key, {}), **value} if both else value
    whole.update(num_gpus=0, framework=framework, worker_index=0, num_workers=0)
    whole["use_pytorch"] = framework == "torch"
    made_for = cases.space(seen, gym.spaces)
    before = ModelCatalog.get_preprocessor_for_space(made_for, whole["model"])
    cls, acts_in = policy_class(algorithm, whole), cases.space(acts, gym.spaces)
    if framework == "torch":
        return recorded(cls(before.observation_space, acts_in, whole), algorithm, acts)
    import tensorflow as tf

    with tf.compat.v1.Graph().as_default(), tf.compat.v1.Session().as_default():
        policy = cls(before.observation_space, acts_in, whole)
        return recorded_of_tensorflow(policy, algorithm, acts)


def recorded(policy, algorithm, acts):
    model = policy.model
    state = model.state_dict()
    found = {"weights": {k: list(v.shape) for k, v in state.items()}}
    found["first"] = {k: first(v.numpy()) for k, v in state.items() if v.numel() > 1}
    # Of attention, and the bounds of actions.
    constant = ("_rel_pos_embedding.inverse_freq", "low_action", "action_range")
    new = {k: v if k.endswith(constant) else made(k, tuple(v.shape)) for k, v in state.items()}
    model.load_state_dict({k: torch.as_tensor(v) for k, v in new.items()})
    if algorithm in OF_VALUES:
        return found
    shape = policy.observation_space.shape
    batch = {"obs": torch.from_numpy(made("inputs", (2, *shape))), "is_training": False}
    model.eval()
    if algorithm in OF_ACTIONS:
        found["outputs"] = of_actions(model, batch, policy.action_space.shape)
        return found
    actions, rewards = steps_before(policy, acts)
    batch["prev_actions"] = torch.from_numpy(actions)
    batch["prev_rewards"] = torch.from_numpy(rewards)
    states = [torch.from_numpy(state) for state in states_of(policy)]
    with torch.no_grad():
        logits, _ = model(batch, states, torch.ones(2, dtype=torch.int32))
        values = model.value_function()
    found["outputs"] = {"logits": logits.numpy().tolist(), "values": values.numpy().tolist()}
    return found


def of_actions(model, batch, shape):
    given = torch.from_numpy(made("actions", (2, *shape)))
    with torch.no_grad():
        features, _ = model(batch, [], None)
        out = {"actions": model.get_policy_output(features)}
        out["q_values"] = model.get_q_values(features, given)
        if model.twin_q_model:
            out["twin_q_values"] = model.get_twin_q_values(features, given)
    return {name: value.numpy().tolist() for name, value in out.items()}


def recorded_of_tensorflow(policy, algorithm, acts):
    weights = policy.get_weights()
    found = {"weights": {name: list(array.shape) for name, array in weights.items()}}
    # A unit's weights are a row, as torch's are.
    rows = {name: np.moveaxis(array, -1, 0) for name, array in weights.items() if array.ndim}
    found["first"] = {name: first(array) for name, array in rows.items() if array.size > 1}
    policy.set_weights({name: made(name, array.shape) for name, array in weights.items()})
    if algorithm in OF_VALUES + OF_ACTIONS:
        return found
    actions, rewards = steps_before(policy, acts)
    _, _, out = policy.compute_actions(
        made("inputs", (2, *policy.observation_space.shape)),
        state_batches=states_of(policy),
        prev_action_batch=actions,
        prev_reward_batch=rewards,
        explore=False,
    )
    found["outputs"] = {"logits": out["action_dist_inputs"].tolist()}
    if "vf_preds" in out:
        found["outputs"]["values"] = out["vf_preds"].tolist()
    return found


def states_of(policy):
    """What two items begin with: zeros, or memories of attention."""
    told = policy.config["model"]
    if told.get("use_attention"):
        shape = (2, told["attention_memory_inference"], told["attention_dim"])
        return [np.zeros(shape, np.float32)] * told["attention_num_transformer_units"]
    return [np.stack([state, state]) for state in map(np.asarray, policy.get_initial_state())]


def steps_before(policy, acts):
    """Actions and rewards of the steps before two items."""
    told = policy.config["model"]
    choices = {"discrete": (), "several": (2,)}.get(acts, (2,))
    count = int(told.get("attention_use_n_prev_actions") or 0)
    shape = (2, count, *choices) if count else (2, *choices)
    rewards = int(told.get("attention_use_n_prev_rewards") or 0)
    made_of = made("rewards", (2, rewards) if rewards else (2,))
    return np.zeros(shape, np.float32), made_of


def first(array):
    rows = array.reshape(len(array), -1)
    lengths = np.sqrt((rows.astype(np.float64) ** 2).sum(axis=1))
    told = lengths.mean(), np.abs(lengths - lengths.mean()).max(), np.abs(array).max(), array.std()
    return [float(f"{number:.4g}") for number in told]


def main(out, framework="torch"):
    found = {}
    asked = cases.ON_TENSORFLOW if framework == "tf" else cases.cases()
    for name in asked:
        case = cases.cases()[name]
        try:
            found[name] = record(case, framework)
        except Exception as error:
            said = re.sub(r"/\S*/", "", str(error))  # where its source was compiled
            found[name] = {"error": f"{type(error).__name__}: {said[:160]}"}
        print(name, found[name].get("error", "ok"), flush=True)
    rows = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
    Path(out).write_text(f"{{\n{rows}\n}}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
