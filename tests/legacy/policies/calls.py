"""What is asked of policies and their models, in old Rays and here: one list for both.

It runs on Python 3.7, too. An expression may use the names that `namespace` gives, and what an
`ASSIGN` before it has computed. Expressions that change weights come last.
"""

import json
import math
import re

import numpy as np

#: The settings of each case, beside `COMMON`.
CASES = {
    "ppo": ("PPO", "discrete", {}),
    "ppo-box": ("PPO", "box", {"entropy_coeff": 0.01}),
    "ppo-lstm": (
        "PPO",
        "discrete",
        {"model": {"fcnet_hiddens": [6], "use_lstm": True, "lstm_cell_size": 5, "max_seq_len": 4}},
    ),
    "dqn": ("DQN", "discrete", {"hiddens": [6], "learning_starts": 10, "buffer_size": 200}),
    "sac": ("SAC", "box", {"learning_starts": 10, "buffer_size": 200}),
    "a2c": ("A2C", "discrete", {"entropy_coeff": 0.02}),
    "pg": ("PG", "discrete", {}),
}
_SMALL = {"fcnet_hiddens": [6, 5], "fcnet_activation": "relu"}
_NETWORKS = {"Q_model": _SMALL, "policy_model": _SMALL}
_SGD = {"sgd_minibatch_size": 20, "num_sgd_iter": 2, "train_batch_size": 40}
COMMON = {
    "PPO": {**_SGD, "model": {"fcnet_hiddens": [8, 6]}},
    "DQN": {"train_batch_size": 20, "timesteps_per_iteration": 40, "model": {"fcnet_hiddens": [8]}},
    "SAC": {"train_batch_size": 20, "timesteps_per_iteration": 40, **_NETWORKS},
    "A2C": {"train_batch_size": 20, "model": {"fcnet_hiddens": [8, 6]}},
    "PG": {"train_batch_size": 20, "model": {"fcnet_hiddens": [8, 6]}},
}
CONFIG = {"num_workers": 0, "rollout_fragment_length": 20, "lr": 0.01, "seed": 3}

#: Where in its source, on the machine that built it, torch says that an error was raised.
IN_SOURCE = re.compile(r" at /\S+:\d+")

STEPS = 6
#: The lengths of the sequences into which `batch` is cut where the model has a state.
LENGTHS = [4, 2]


def config_of(case):
    """The algorithm of a case and its config."""
    algorithm, actions, more = CASES[case]
    config = {**CONFIG, **COMMON[algorithm], **more, "env_config": {"actions": actions}}
    if algorithm == "SAC":
        del config["lr"]  # it has three
    return algorithm, config


def make_env(gym):
    """A small environment for the spaces of the cases, of the given gym."""

    class Env(gym.Env):
        def __init__(self, context):
            self.observation_space = gym.spaces.Box(-2.0, 2.0, (4,), np.float32)
            box = gym.spaces.Box(-1.5, 1.5, (2,), np.float32)
            self.action_space = box if context["actions"] == "box" else gym.spaces.Discrete(3)
            self.t = 0

        def reset(self):
            self.t = 0
            return self._observe()

        def step(self, action):
            self.t += 1
            return self._observe(), float(np.sum(action)), self.t >= 10, {}

        def _observe(self):
            return np.sin(np.arange(4, dtype=np.float32) + self.t).astype(np.float32)

    return Env


def namespace(policy, sample_batch):
    """What expressions may use.

    Args:
        policy: The policy.
        sample_batch: The class `SampleBatch`.
    """
    import torch

    obs = np.sin(np.arange(12, dtype=np.float32)).reshape(3, 4)
    discrete = hasattr(policy.action_space, "n")
    actions = np.array([1, 0, 2]) if discrete else np.linspace(-0.6, 0.6, 6).reshape(3, 2)
    state = [
        np.full((3, *s.shape), 0.1, np.float32) for s in map(np.asarray, policy.get_initial_state())
    ]
    return {
        "policy": policy,
        "model": policy.model,
        "np": np,
        "torch": torch,
        "SampleBatch": sample_batch,
        "obs": obs,
        "tensor": torch.from_numpy(obs),
        "actions": actions if discrete else actions.astype(np.float32),
        "state": state,
        "state_tensors": [torch.from_numpy(s) for s in state],
        "lengths": torch.ones(3, dtype=torch.int32) if state else None,
        "recurrent": bool(state),
        "trajectory": lambda: trajectory(policy, sample_batch),
        "sequences": lambda batch: sequences(batch, sample_batch),
    }


def trajectory(policy, sample_batch):
    """The last steps of an episode, as a worker hands them to `postprocess_trajectory`."""
    discrete = hasattr(policy.action_space, "n")
    obs = np.cos(np.arange(4 * (STEPS + 1), dtype=np.float32)).reshape(STEPS + 1, 4)
    columns = {
        "obs": obs[:-1],
        "new_obs": obs[1:],
        "rewards": np.linspace(-1, 1, STEPS).astype(np.float32),
        "dones": np.arange(STEPS) == STEPS - 1,
        "eps_id": np.full(STEPS, 7),
        "agent_index": np.zeros(STEPS, np.int64),
        "unroll_id": np.zeros(STEPS, np.int64),
        "t": np.arange(STEPS),
    }
    state = [np.asarray(s)[None] for s in policy.get_initial_state()]
    taken = np.arange(STEPS) % 3 if discrete else np.linspace(-0.9, 0.9, 2 * STEPS).reshape(-1, 2)
    steps = []
    for t in range(STEPS):
        _, after, extras = policy.compute_actions(obs[t : t + 1], state, explore=False)
        extras = {name: np.asarray(value)[0] for name, value in extras.items()}
        steps.append({**extras, **{f"state_in_{i}": s[0] for i, s in enumerate(state)}})
        steps[-1].update({f"state_out_{i}": np.asarray(s)[0] for i, s in enumerate(after)})
        state = [np.asarray(s) for s in after]
    for name in steps[0]:
        columns[name] = np.array([step[name] for step in steps])
    columns["actions"] = taken if discrete else taken.astype(np.float32)
    columns["action_logp"] = np.full(STEPS, -0.9, np.float32)
    columns["action_prob"] = np.exp(columns["action_logp"])
    return sample_batch(columns)


def sequences(batch, sample_batch):
    """A batch cut into sequences, padded, with the states that each begins with."""
    if "state_in_0" not in batch:
        return batch
    longest, columns = max(LENGTHS), {}
    starts = [0, LENGTHS[0]]
    for name, column in list(batch.items()):
        column = np.asarray(column)
        if name.startswith("state_in_"):
            columns[name] = column[starts]
            continue
        if name.startswith("state_out_"):
            continue
        padded = np.zeros((len(LENGTHS) * longest, *column.shape[1:]), column.dtype)
        for i, (start, length) in enumerate(zip(starts, LENGTHS)):
            padded[i * longest : i * longest + length] = column[start : start + length]
        columns[name] = padded
    of_states = [name for name in columns if name.startswith("state_in_")]
    made = sample_batch({k: v for k, v in columns.items() if k not in of_states})
    for name in of_states:
        made[name] = columns[name]
    made["seq_lens"] = np.array(LENGTHS, np.int32)
    made.seq_lens = made["seq_lens"]
    return made


#: What is computed and kept under a name; recorded like the others.
ASSIGN = {
    "batch": "policy.postprocess_trajectory(trajectory())",
    "train": "sequences(batch)",
    "out": "model({'obs': tensor, 'obs_flat': tensor}, state_tensors, lengths)",
}

CALLS = """
policy.is_recurrent()
policy.num_state_tensors()
policy.get_initial_state()
policy.observation_space.shape
policy.action_space.shape
policy.config['gamma']
policy.config['model']['max_seq_len']
policy.config['framework']
isinstance(policy.config, dict)
policy.framework
policy.device
policy.dist_class.__name__
policy.cur_lr
policy.kl_coeff
policy.kl_target
policy.entropy_coeff
policy.global_timestep
policy.max_seq_len
policy.batch_divisibility_req
policy.distributed_world_size
policy.action_sampler_fn
policy.action_distribution_fn
policy.exploration
policy.callbacks
policy.observation_space_struct
policy.action_space_struct
sorted(policy.view_requirements)
policy.get_exploration_info()
policy.get_exploration_state()
policy.get_session()
policy.get_host()
policy.optimizer()
policy.devices
policy.model_gpu_towers
policy.multi_gpu_param_groups
policy.unwrapped_model is policy.model
policy.extra_grad_info
policy.get_num_samples_loaded_into_buffer()
policy.apply(lambda p, by: type(by).__name__, 2)
type(policy.get_weights())
sorted(tuple(w.shape) for w in policy.get_weights().values())
policy.compute_actions(obs, state, explore=False)
policy.compute_actions(obs.tolist(), state, explore=False)
policy.compute_actions(list(obs), state, explore=False)
policy.compute_actions([[0, 0, 0, 0.]], [s[:1] for s in state], explore=False)
policy.compute_actions([[0, 0, 0, 0]], [s[:1] for s in state], explore=False)
policy.compute_actions(obs, [s.tolist() for s in state], explore=False)
policy.compute_actions(obs, state, prev_action_batch=actions, prev_reward_batch=np.zeros(3), explore=False)
policy.compute_actions(obs, state, actions, [0.0] * 3, [{}] * 3, None, False, 5)
policy.compute_actions(obs, state, info_batch=[{}] * 3, episodes=None, explore=False, timestep=3)
policy.compute_actions(obs, state, explore=False, anything=1)
type(policy.compute_actions(obs, state))
policy.compute_actions(obs, state)[2].keys() >= set()
np.asarray(policy.compute_actions(obs, state, explore=True)[0]).shape
np.asarray(policy.compute_actions(obs, state, explore=True)[0]).dtype.kind
sorted(policy.compute_actions(obs, state, explore=True)[2])
policy.compute_actions(tensor, state_tensors, explore=False)
policy.compute_actions(np.zeros((0, 4), np.float32), [s[:0] for s in state], explore=False)
policy.compute_actions(np.zeros((3, 9), np.float32), state)
policy.compute_actions(None)
policy.compute_actions()
policy.compute_actions_from_input_dict({'obs': obs}, explore=False)
policy.compute_actions_from_input_dict({'obs': obs, 'state_in_0': obs[:, :1].repeat(5, 1), 'state_in_1': obs[:, :1].repeat(5, 1)} if recurrent else {'obs': obs}, explore=False)
policy.compute_actions_from_input_dict(SampleBatch({'obs': obs}), explore=False, timestep=4)
policy.compute_single_action(obs[0], [s[0] for s in state], explore=False)
policy.compute_single_action(obs[0].tolist(), [s[0] for s in state], explore=False)
policy.compute_single_action([0, 0, 0, 0], [s[0] for s in state], explore=False)
policy.compute_single_action(obs[0], explore=False)
policy.compute_single_action(obs[0], [s[0] for s in state], prev_action=actions[0], prev_reward=0.5, info={}, explore=False)
policy.compute_single_action(obs[0], [s[0] for s in state], full_fetch=True, explore=False)
policy.compute_single_action(input_dict={'obs': obs[0]}, explore=False)
policy.compute_log_likelihoods(actions, obs, state, None, None) if recurrent else policy.compute_log_likelihoods(actions, obs)
policy.compute_log_likelihoods(actions.tolist(), obs.tolist(), state)
policy.compute_log_likelihoods(actions=actions, obs_batch=obs, state_batches=state, prev_action_batch=actions, prev_reward_batch=np.zeros(3))
policy.extra_action_out({'obs': tensor}, state_tensors, model, None)
out
model.last_output()
model.value_function()
model.num_outputs
model.name
model.obs_space
model.action_space
model.obs_space.shape
isinstance(model, torch.nn.Module)
model.framework
sorted(model.model_config)
model.model_config['max_seq_len']
model.model_config['vf_share_layers']
model.is_time_major()
model.time_major
model.get_initial_state()
model.metrics()
type(model.tower_stats)
type(model.training)
model.custom_loss(torch.tensor([1.0]), {})
model.custom_loss([torch.tensor(1.0)], {})
len(model.variables()), len(model.trainable_variables())
sorted(map(tuple, (v.shape for v in model.variables())))
type(model.variables(as_dict=True)), type(model.trainable_variables(as_dict=True))
sorted(v.numel() for v in model.variables(as_dict=True).values())
sum(p.numel() for p in model.parameters())
model.context().__class__.__name__
sorted(model.view_requirements)
model({'obs': tensor})
model({'obs': tensor, 'obs_flat': tensor, 'prev_actions': torch.zeros(3, dtype=torch.long), 'prev_rewards': torch.zeros(3)}, state_tensors, lengths)
model(SampleBatch({'obs': tensor}), state_tensors, lengths)
model.from_batch(SampleBatch({'obs': tensor}))
model.forward({'obs': tensor, 'obs_flat': tensor.float()}, state_tensors, lengths)
policy.dist_class(out[0], model).deterministic_sample()
policy.dist_class(out[0], model).logp(torch.from_numpy(actions))
policy.dist_class(out[0], model).entropy()
policy.dist_class(out[0], model).kl(policy.dist_class(out[0], model))
policy.dist_class(out[0], model).sample().shape
policy.dist_class.required_model_output_shape(policy.action_space, policy.config['model'])
model.get_q_value_distributions(out[0])
model.get_state_value(out[0])
model.get_q_values(out[0], torch.from_numpy(actions))
model.get_twin_q_values(out[0], torch.from_numpy(actions))
model.get_policy_output(out[0])
[v.shape for v in model.policy_variables()]
[v.shape for v in model.q_variables()]
model.target_entropy
model.log_alpha
policy.target_model(dict(obs=tensor, obs_flat=tensor), state_tensors, lengths)
policy.target_models
policy.compute_td_error(batch['obs'], batch['actions'], batch['rewards'], batch['new_obs'], np.arange(6) == 5, np.ones(6, np.float32))
policy.q_values
sorted(policy.get_state())
policy.get_state()['weights'].keys() == policy.get_weights().keys()
policy.set_weights(policy.get_weights())
policy.set_state(policy.get_state())
sorted(trajectory())
sorted(batch)
dict(batch.items())
policy.loss(model, policy.dist_class, SampleBatch({k: torch.from_numpy(np.asarray(v)) for k, v in batch.items()})) if not recurrent else None
type(policy.compute_gradients(train))
type(policy.compute_gradients(train)[0])
sorted((tuple(np.shape(g)), float(np.abs(np.asarray(g)).sum())) for g in policy.compute_gradients(train)[0] if g is not None)
sorted(policy.compute_gradients(train)[1]['learner_stats'])
policy.apply_gradients(policy.compute_gradients(train)[0])
policy.compute_actions(obs, state, explore=False)
policy.learn_on_batch(train)
policy.compute_actions(obs, state, explore=False)
sorted(policy.learn_on_batch(train)['learner_stats'])
policy.compute_actions(obs, state, explore=False)
policy.load_batch_into_buffer(train)
policy.get_num_samples_loaded_into_buffer(0)
policy.learn_on_loaded_batch(0)
policy.on_global_var_update({'timestep': 1000})
policy.global_timestep
policy.update_target()
policy.update_kl(1.0)
policy.kl_coeff
policy.cur_lr
policy.compute_apply(train)
policy.export_checkpoint(folder('checkpoint'))
policy.export_model(folder('model'))
policy.import_model_from_h5('nothing.h5')
""".strip().splitlines()


def describe(value, depth=0):
    """A value as JSON: its type, shape and dtype, its keys, its numbers where there are few."""
    kind = type(value).__name__
    if depth > 6:
        return kind
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, type):
        return {"type": "type", "name": value.__name__}
    if isinstance(value, (int, float)) and not isinstance(value, np.generic):
        return {"type": kind, "value": _number(value)}
    if isinstance(value, (np.ndarray, np.generic)) or kind in ("Tensor", "Parameter"):
        array = value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)
        found = {"type": kind, "dtype": str(array.dtype), "shape": list(array.shape)}
        if array.size <= 60 and array.dtype.kind in "fiub":
            found["value"] = [_number(v) for v in array.ravel().tolist()]
        return found
    if isinstance(value, dict) or hasattr(value, "items"):
        return {"type": kind, "keys": {str(k): describe(v, depth + 1) for k, v in value.items()}}
    if isinstance(value, (list, tuple)) or kind in ("dict_keys", "Size"):
        return {"type": kind, "items": [describe(item, depth + 1) for item in value]}
    return {"type": kind}


def _number(value):
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else str(value)
    return value


def ask(policy, sample_batch, folder):
    """What every call gives, by the call, and every public name of policy and model.

    Args:
        policy: The policy.
        sample_batch: The class `SampleBatch`.
        folder: Makes a new folder of a name.
    """
    found = {"names": {}, "calls": []}
    for name, thing in (("policy", policy), ("model", policy.model)):
        found["names"][name] = {n: _kind(thing, n) for n in public_names(thing)}
    known = dict(namespace(policy, sample_batch), folder=folder)
    for name, call in ASSIGN.items():
        found["calls"].append([name + " = " + call, _try(call, known, name)])
    for call in CALLS:
        found["calls"].append([call, _try(call, known)])
    return found


def public_names(thing):
    """The names of an object that are no secret of its own."""
    return sorted(n for n in set(dir(thing)) | set(vars(thing)) if not n.startswith("_"))


def _kind(thing, name):
    try:
        value = getattr(thing, name)
    except Exception as error:
        return "raises " + type(error).__name__
    return "callable" if callable(value) else type(value).__name__


def _try(call, known, name=None):
    try:
        value = eval(call, known)
    except Exception as error:
        said = IN_SOURCE.sub("", str(error))
        return {"raises": type(error).__name__, "says": said[:200]}
    if name is not None:
        known[name] = value
    return describe(value)


def to_text(found):
    """What `ask` returned, as JSON with a line for each call."""
    rows = ",\n".join(json.dumps(call, default=str) for call in found["calls"])
    return f'{{"names": {json.dumps(found["names"])},\n"calls": [\n{rows}\n]}}\n'
