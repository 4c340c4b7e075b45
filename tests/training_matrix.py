"""Configs of old Rays, algorithm by algorithm: each trains, is saved, is restored and acts.

    python -m tests.training_matrix [--quick] [--together] [--slice 3/40] [ALGORITHM …]

prints what becomes of each case, and how many of each algorithm train. `--together` says as many
things at once as go together, and of what does not train each half by itself: that tells each
algorithm everything in a fifth of the cases. `python -m tests.one_process` takes the same arguments
and runs workers in its own process, which takes two seconds a case. A case is an algorithm, one
thing that its config says, spaces and a Ray, or none that the trainer is told of. What a config
says of the network meets all kinds of observations; spaces and Rays take turns otherwise. Only keys
that the Ray had are said to it. A case fails where anything but an error of our own reaches the
user, where an error comes later than from the trainer's construction, and where processes outlive
their trainer.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import itertools
import signal
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
import torch
import tree
from ray.rllib.models import ModelCatalog
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2
from ray.rllib.utils.spaces.space_utils import get_base_struct_from_space
from ray.rllib.utils.torch_utils import flatten_inputs_to_1d_tensor

import rllib_compat as compat
from rllib_compat import registry
from rllib_compat.errors import CompatError
from rllib_compat.formats import read_checkpoint
from rllib_compat.neutral import Budget
from rllib_compat.registry import keys
from tests import matrix_inputs
from tests.legacy.new_networks import cases

RAYS = ("0.5.3", "0.6.6", "0.8.5", "1.0.1", "1.3.0", "1.13.0", "2.0.1", "2.3.1", "2.10.0")
SEEN = (
    "vector",
    "image42",
    "discrete",
    "bits",
    "several",
    "tuple",
    "dict",
    "camera",
    "nested",
)
ACTS = ("discrete", "continuous", "several", "tuple_of_actions", "dict_of_actions")
#: The actions of algorithms that did not take all of them.
ACTS_OF = {
    **dict.fromkeys(("DQN", "SimpleQ", "APEX", "R2D2", "QMIX"), ACTS[:1]),
    **dict.fromkeys(("BanditLinTS", "BanditLinUCB"), ACTS[:1]),
    **dict.fromkeys(("DDPG", "APEX_DDPG", "TD3", "CQL"), ACTS[1:2]),
    **dict.fromkeys(("SAC", "RNNSAC", "CRR", "MADDPG"), ACTS[:2]),
}
#: What algorithms see that did not take everything: bandits invert a matrix as wide as that.
SEEN_OF = dict.fromkeys(
    ("BanditLinTS", "BanditLinUCB"), ("vector", "discrete", "several", "bits", "tuple")
)

_OFF_POLICY = {
    "learning_starts": 10,
    "num_steps_sampled_before_learning_starts": 10,
    "train_batch_size": 8,
    "timesteps_per_iteration": 30,
    "min_sample_timesteps_per_reporting": 30,
    "min_sample_timesteps_per_iteration": 30,
}
_STARTS = {"learning_starts", "num_steps_sampled_before_learning_starts"}
_EVOLUTION = {"num_workers": 1, "noise_size": 3_000_000, "train_batch_size": 20}
#: What makes each algorithm's iterations small. Keys that a Ray lacks are left out.
SMALL: dict[str, dict[str, Any]] = {
    "A2C": {"train_batch_size": 40},
    "A3C": {"train_batch_size": 40, "timesteps_per_iteration": 40},
    "APEX": {**_OFF_POLICY, "num_workers": 1, "optimizer": {"num_replay_buffer_shards": 1}},
    "APEX_DDPG": {**_OFF_POLICY, "num_workers": 1, "optimizer": {"num_replay_buffer_shards": 1}},
    "APPO": {"train_batch_size": 40},
    "ARS": {**_EVOLUTION, "num_rollouts": 2, "rollouts_used": 1},
    "BC": {"train_batch_size": 16},
    "BanditLinTS": {},
    "BanditLinUCB": {},
    "CQL": {"train_batch_size": 8},
    "CRR": {"train_batch_size": 8},
    "DDPG": {**_OFF_POLICY, "pure_exploration_steps": 5},
    "DDPPO": {"num_workers": 1, "sgd_minibatch_size": 20, "num_sgd_iter": 1},
    "DQN": {**_OFF_POLICY, "hiddens": [8]},
    "ES": {**_EVOLUTION, "episodes_per_batch": 2},
    "IMPALA": {"train_batch_size": 40},
    "MADDPG": {**_OFF_POLICY, "actor_hiddens": [8]},
    "MARWIL": {"train_batch_size": 16},
    "PG": {"train_batch_size": 40},
    "PPO": {"train_batch_size": 40, "sgd_minibatch_size": 20, "num_sgd_iter": 1},
    "QMIX": {**_OFF_POLICY, "mixing_embed_dim": 6},
    "R2D2": {**_OFF_POLICY, "hiddens": [8], "training_intensity": 1},
    "RNNSAC": {**_OFF_POLICY},
    "Random": {},
    "SAC": _OFF_POLICY,
    "SimpleQ": {**_OFF_POLICY, "hiddens": [8]},
    "TD3": {**_OFF_POLICY, "pure_exploration_steps": 5},
}
_LSTM = {"use_lstm": True, "lstm_cell_size": 6, "fcnet_hiddens": [8]}
#: What an algorithm did not do without: its networks are recurrent.
RECURRENT = {"R2D2": {"model": _LSTM}, "RNNSAC": {"policy_model": _LSTM, "Q_model": _LSTM}}
_ALWAYS = {
    "num_workers": 0,
    "num_gpus": 0,
    "num_gpus_per_worker": 0,
    "rollout_fragment_length": 20,
    "sample_batch_size": 20,
    "min_iter_time_s": 0,
    "min_time_s_per_reporting": 0,
    "min_time_s_per_iteration": 0,
    "lr": 1e-7,  # a filter makes bytes of bytes, up to 255: some diverged within ten updates
}

#: What a config says of the networks: a key, or a key in `model`.
NETWORKS: dict[str, dict[str, Any]] = {
    "default": {},
    "no layers": {"model": {"fcnet_hiddens": []}},
    "swish": {"model": {"fcnet_hiddens": [8], "fcnet_activation": "swish"}},
    "linear": {"model": {"fcnet_hiddens": [8], "fcnet_activation": "linear"}},
    "relu": {"model": {"fcnet_hiddens": [8, 8], "fcnet_activation": "relu"}},
    "filters": {"model": {"conv_filters": cases.SMALL, "conv_activation": "tanh"}},
    "post": {"model": {"fcnet_hiddens": [8], "post_fcnet_hiddens": [7]}},
    "no final linear": {"model": {"fcnet_hiddens": [8], "no_final_linear": True}},
    "free log std": {"model": {"fcnet_hiddens": [8], "free_log_std": True}},
    "shared": {"model": {"vf_share_layers": True, "fcnet_hiddens": [8]}},
    "apart": {"model": {"vf_share_layers": False, "fcnet_hiddens": [8]}},
    "lstm": {"model": {"use_lstm": True, "lstm_cell_size": 6, "fcnet_hiddens": [8]}},
    "lstm, short": {"model": {"use_lstm": True, "lstm_cell_size": 6, "max_seq_len": 3}},
    "lstm, steps before": {
        "model": {"use_lstm": True, "lstm_cell_size": 6, **cases.BOTH, "fcnet_hiddens": [8]}
    },
    "lstm, steps before, then": {
        "model": {
            "use_lstm": True,
            "lstm_cell_size": 6,
            "lstm_use_prev_action_reward": True,
            "fcnet_hiddens": [8],
        }
    },
    "lstm, apart": {
        "model": {
            "use_lstm": True,
            "lstm_cell_size": 6,
            "vf_share_layers": False,
            "free_log_std": True,
        }
    },
    "lstm, time-major": {"model": {"use_lstm": True, "_time_major": True}},
    "attention": {
        "model": {
            "use_attention": True,
            "attention_dim": 8,
            "attention_num_heads": 1,
            "attention_head_dim": 8,
            "attention_position_wise_mlp_dim": 8,
            "max_seq_len": 5,
        }
    },
    "attention, steps before": {
        "model": {
            "use_attention": True,
            "attention_dim": 8,
            "attention_num_transformer_units": 2,
            "attention_use_n_prev_actions": 2,
            "attention_use_n_prev_rewards": 2,
        }
    },
    "custom model": {"model": {"custom_model": "linear"}},
    "frames": {"preprocessor_pref": "rllib", "model": {"dim": 42, "grayscale": True}},
    "shared, then": {"vf_share_layers": True, "model": {"fcnet_hiddens": [8]}},
    "flat": {"_disable_preprocessor_api": True},
    "framestack": {"model": {"num_framestacks": 2}},
    "dueling": {"dueling": False},
    "no hiddens": {"hiddens": []},
    "atoms": {"num_atoms": 5},
    "noisy": {"noisy": True},
    "Q and policy": {
        "Q_model": {"fcnet_hiddens": [8], "fcnet_activation": "tanh"},
        "policy_model": {"fcnet_hiddens": [7, 6]},
    },
    "one Q": {"twin_q": True},
    "actor and critic": {"actor_hiddens": [8], "critic_hiddens": [7, 6]},
    "state preprocessing": {"use_state_preprocessor": True, "model": {"fcnet_hiddens": [6]}},
}
_EVALUATION = {"evaluation_interval": 1, "evaluation_num_episodes": 2}
_FIRST = {"type": "StochasticSampling"}
#: What a config says of anything else. Whose value is computed for each case has `...` here.
TRAINING: dict[str, dict[str, Any]] = {
    "two policies": {"multiagent": ...},
    "two policies, then": {"policies": ..., "policy_mapping_fn": ...},
    "two policies with an LSTM": {
        "multiagent": ...,
        "model": {"use_lstm": True, "lstm_cell_size": 6},
    },
    "two policies with filters": {
        "multiagent": ...,
        "observation_filter": "MeanStdFilter",
        "num_workers": 1,
    },
    "spaces": {"observation_space": ..., "action_space": ...},
    "native models": {"model": {"_use_default_native_models": True}},
    "actions as they are": {"_disable_action_flattening": True},
    "squashed": {"model": {"squash_to_range": True}},
    "latent": {"model": {"encoder_latent_dim": 16}},
    "no stack of frames": {"model": {"framestack": False}},
    "asynchronous samples": {"sample_async": True},
    "output": {"output": "logdir"},
    "evaluation of another config": {
        **_EVALUATION,
        "evaluation_config": {"explore": False},
    },
    "evaluation beside": {
        "evaluation_interval": 1,
        "evaluation_num_workers": 1,
        "evaluation_parallel_to_training": True,
    },
    "evaluation of a worker": {**_EVALUATION, "evaluation_num_workers": 1},
    "new workers": {"num_workers": 1, "recreate_failed_workers": True},
    "no failures": {"num_workers": 1, "ignore_worker_failures": True},
    "curiosity": {
        "framework": "torch",
        "exploration_config": {
            "type": "Curiosity",
            "feature_dim": 8,
            "feature_net_config": {"fcnet_hiddens": []},
            "sub_exploration": _FIRST,
        },
    },
    "random encoder": {
        "framework": "tf",
        "exploration_config": {
            "type": "RE3",
            "embeds_dim": 8,
            "encoder_net_config": {"fcnet_hiddens": []},
            "sub_exploration": _FIRST,
        },
    },
    "longer iterations": {"timesteps_per_iteration": 50, "metrics_smoothing_episodes": 5},
    "sessions": {"tf_session_args": {"allow_soft_placement": True}},
    "monitor": {"monitor": True},
    "fake GPUs": {"num_gpus": 2, "_fake_gpus": True},
    "stragglers": {"straggler_mitigation": True},
    "in order": {"shuffle_sequences": False, "sgd_minibatch_size": 7},
    "value optimizer": {"_separate_vf_optimizer": True, "_lr_vf": 1e-3},
    "aggregators": {"num_workers": 1, "num_aggregation_workers": 1},
    "last steps": {"vtrace_drop_last_ts": False},
    "thresholds": {"vtrace_clip_rho_threshold": 2.0, "vtrace_clip_pg_rho_threshold": 2.0},
    "second passes": {"minibatch_buffer_size": 2, "num_sgd_iter": 2, "learner_queue_size": 2},
    "loaders": {"num_data_loader_buffers": 2},
    "broadcasts": {"broadcast_interval": 3},
    "target of APPO": {"tau": 0.5, "target_update_frequency": 2},
    "evaluated": {"eval_prob": 0.5, "report_length": 2},
    "noise of evolution": {"action_noise_std": 0.1, "noise_stdev": 0.1},
    "decay of evolution": {"l2_coeff": 0.1, "stepsize": 0.1},
    "offset": {"offset": 1, "sgd_stepsize": 0.1},
    "linear policy": {"policy_type": "LinearPolicy"},
    "weights of workers": {"keep_local_weights_in_sync": False},
    "backend": {"torch_distributed_backend": "gloo"},
    "whole episodes": {"truncate_episodes": False},
    "Thompson": {"exploration_config": {"type": "ThompsonSampling"}},
    "upper bound": {"exploration_config": {"type": "UpperConfidenceBound"}},
    "TensorFlow": {"framework": "tf"},
    "eager": {"framework": "tf2"},
    "torch": {"framework": "torch"},
    "torch, then": {"use_pytorch": True},
    "filter": {"observation_filter": "MeanStdFilter"},
    "filter of all": {"observation_filter": "ConcurrentMeanStdFilter"},
    "clipped": {"clip_rewards": True, "clip_actions": True},
    "normalized": {"normalize_actions": True},
    "not normalized": {"normalize_actions": False},
    "horizon": {"horizon": 7, "no_done_at_end": True},
    "soft horizon": {"horizon": 7, "soft_horizon": True},
    "episodes": {"batch_mode": "complete_episodes"},
    "environments": {"num_envs_per_worker": 2},
    "worker": {"num_workers": 1},
    "remote environments": {"num_workers": 1, "num_envs_per_worker": 2, "remote_worker_envs": True},
    "evaluation": _EVALUATION,
    "evaluation of episodes": {"evaluation_interval": 1, "evaluation_duration": 2},
    "gradients": {"grad_clip": 0.5},
    "rates": {"lr_schedule": [[0, 1e-3], [100, 1e-4]]},
    "entropy": {"entropy_coeff_schedule": [[0, 0.01], [100, 0.0]]},
    "no exploration": {"explore": False},
    "random": {"exploration_config": {"type": "Random"}},
    "stochastic": {"exploration_config": {"type": "StochasticSampling"}},
    "epsilon": {
        "exploration_config": {
            "type": "EpsilonGreedy",
            "initial_epsilon": 1.0,
            "final_epsilon": 0.1,
            "epsilon_timesteps": 50,
        }
    },
    "soft": {"exploration_config": {"type": "SoftQ", "temperature": 0.5}},
    "noise on weights": {"exploration_config": {"type": "ParameterNoise"}},
    "noise on actions": {"exploration_config": {"type": "GaussianNoise", "random_timesteps": 5}},
    "correlated noise": {
        "exploration_config": {"type": "OrnsteinUhlenbeckNoise", "random_timesteps": 5}
    },
    "compressed": {"compress_observations": True},
    "seed": {"seed": 3},
    "one optimizer": {"simple_optimizer": True},
    "no GAE": {"use_gae": False},
    "no critic": {"use_critic": False, "use_gae": False, "batch_mode": "complete_episodes"},
    "no KL": {"kl_coeff": 0.0},
    "no V-trace": {"vtrace": False},
    "KL of APPO": {"use_kl_loss": True},
    "passes": {"num_sgd_iter": 2, "replay_proportion": 0.5, "replay_buffer_num_slots": 4},
    "RMSProp": {"opt_type": "rmsprop", "decay": 0.9, "momentum": 0.1, "epsilon": 0.01},
    "steps": {"n_step": 3},
    "no priorities": {"prioritized_replay": False},
    "priorities": {"prioritized_replay": True},
    "one network": {"double_q": False},
    "worker priorities": {"worker_side_prioritization": True, "num_workers": 1},
    "twins": {"twin_q": True, "policy_delay": 2, "smooth_target_policy": True},
    "Huber": {"use_huber": True},
    "temperature": {"initial_alpha": 0.2, "target_entropy": -1.0},
    "target": {"tau": 0.1, "target_network_update_freq": 20},
    "microbatches": {"microbatch_size": 20},
    "buffer": {"replay_buffer_config": {"capacity": 500}, "buffer_size": 500},
    "imitation": {"beta": 0.0},
    "cloning first": {"bc_iters": 1},
    "Lagrangian": {"lagrangian": True},
    "exponential weights": {"weight_type": "exp", "advantage_type": "max"},
    "expectation": {"advantage_type": "expectation"},
    "sum of values": {"mixer": "vdn"},
    "no mixer": {"mixer": None},
    "own critics": {"use_local_critic": True},
    "stored states": {"zero_init_states": False, "burn_in": 2},
}
SAYS = NETWORKS | TRAINING
#: Between the things that a case says at once, of which it says so many at most.
AND, MOST = " + ", 12
_MODELS = ("model", "policy_model", "Q_model")
#: Networks are one of these.
_KINDS = ("lstm", "LSTM", "attention", "custom", "frames")
#: How many CPUs a Ray has that trains cases one after the other.
CPUS = 4
#: What a config says that old Rays took with some actions only.
OF_SOME = {
    "attention, steps before": ACTS[:2],
    "lstm, apart": ACTS[1:2],
    "curiosity": ("discrete", "several"),
    "epsilon": ("discrete", "tuple_of_actions", "dict_of_actions"),
    "soft": ACTS[:1],
    "noise on actions": ACTS[1:2],
    "correlated noise": ACTS[1:2],
}


@dataclass(frozen=True)
class Case:
    """A config, the Ray that it is of, and whether a trainer is told of that."""

    algorithm: str
    says: str
    seen: str
    acts: str
    ray: str
    tells: bool

    def __str__(self) -> str:
        ray = self.ray if self.tells else f"({self.ray})"
        return f"{self.algorithm}-{self.says}-{self.seen}-{self.acts}-{ray}".replace(" ", "_")

    @property
    def is_quick(self) -> bool:
        """Whether no process starts for it: no worker, no reader of recordings."""
        return self.fits_one_process and not self._asks_for("_workers")

    @property
    def fits_one_process(self) -> bool:
        """Whether `one_process` may run it: nothing reads recordings."""
        return not registry.of(self.algorithm).offline

    def _asks_for(self, part: str) -> bool:
        return any(number and part in key for key, number in self.config.items())

    @property
    def several_agents(self) -> bool:
        """Whether its environment has more than one."""
        return "two policies" in self.says

    @property
    def config(self) -> dict[str, Any]:
        """The config itself."""
        said = _ALWAYS | SMALL[self.algorithm]
        small = {key: said[key] for key in said.keys() & defaults(self.algorithm, self.ray).keys()}
        told = {**small, **said_at_once(self.says)}
        if "num_rollout_workers" in defaults(self.algorithm, self.ray):
            told["num_rollout_workers"] = told.pop("num_workers", said["num_workers"])
        told |= {key: self._computed(key) for key, value in told.items() if value is ...}
        if "learning_starts" in SMALL[self.algorithm] and not small.keys() & _STARTS:
            # Ray 1.11 - 2.0 had it in there.
            told["replay_buffer_config"] = {
                "learning_starts": 10,
                **told.get("replay_buffer_config", {}),
            }
        for key, more in RECURRENT.get(self.algorithm, {}).items():
            told[key] = {**more, **told.get(key, {})}
        given = {"algorithm": self.algorithm, "seen": self.seen, "acts": self.acts}
        told |= {"env": self.env, "env_config": given}
        if self.several_agents:
            return told
        ray = self.ray if self.tells else None
        return told | matrix_inputs.said_by(self.algorithm, self.seen, self.acts, ray)

    @property
    def env(self) -> type:
        """Its environment."""
        return TwoAgents if self.several_agents else Steps

    def _computed(self, key: str) -> Any:
        seen, acts = (cases.space(name, gym.spaces) for name in (self.seen, self.acts))
        policies = {
            "one": (None, seen, acts, {}),
            "two": (None, seen, acts, {"gamma": 0.9, "model": {"fcnet_hiddens": [5]}}),
        }
        had = defaults(self.algorithm, self.ray).get("multiagent", {})
        of_agent = {"policy_mapping_fn": _policy_of}
        by_key = {
            "action_space": matrix_inputs.whole(self.algorithm, acts),
            "multiagent": {"policies" if "policies" in had else "policy_graphs": policies}
            | of_agent,
            "observation_space": matrix_inputs.whole(self.algorithm, seen),
            "policies": policies,
            **of_agent,
        }
        return by_key[key]


def _policy_of(agent: Any, *_: Any, **__: Any) -> str:
    return "one" if agent == 0 else "two"


class Steps(gym.Env):
    """Gives what its spaces hold, in episodes of ten steps."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.observation_space = cases.space(config["seen"], gym.spaces)
        self.action_space = cases.space(config["acts"], gym.spaces)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.steps = 0
        return matrix_inputs.observation(self.observation_space), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert fits(action, self.action_space), action
        self.steps += 1
        seen = matrix_inputs.observation(self.observation_space)
        return seen, 1.0, self.steps == 10, False, {}


class TwoAgents:
    """The same for two agents, by the API that environments of old Rays had."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.alone = Steps(config)
        self.acts = matrix_inputs.acted(config["algorithm"], config["acts"], grouped=False)

    def reset(self) -> dict[int, Any]:
        """Gives what both see."""
        self.steps = 0
        return {agent: self.alone.reset()[0] for agent in (0, 1)}

    def step(self, actions: Mapping[int, Any]) -> tuple[dict[Any, Any], ...]:
        """Takes a step for each."""
        for action in actions.values():
            assert fits(action, self.acts), action
        self.steps += 1
        seen = {agent: self.alone.reset()[0] for agent in actions}
        done = {"__all__": self.steps == 10}
        return seen, dict.fromkeys(actions, 1.0), done, {agent: {} for agent in actions}


def fits(action: Any, space: gym.Space[Any]) -> bool:
    """Whether an action is of a space, but for bounds: some configs say that none are kept."""
    match space:
        case gym.spaces.Box():
            return np.shape(action) == space.shape and np.asarray(action).dtype == space.dtype
        case gym.spaces.Tuple():
            return len(action) == len(space) and all(map(fits, action, space))
        case gym.spaces.Dict():
            named = action.keys() == space.keys()
            return named and all(fits(action[key], space[key]) for key in space)
    return bool(space.contains(action))


class Linear(TorchModelV2, torch.nn.Module):  # type: ignore[misc]  # Ray has no types
    """A model of the user's own."""

    def __init__(self, seen: Any, acts: Any, outputs: int, config: Any, name: str) -> None:
        torch.nn.Module.__init__(self)
        TorchModelV2.__init__(self, seen, acts, outputs, config, name)
        self.parts = get_base_struct_from_space(seen)
        size = gym.spaces.flatdim(seen)
        self.num_outputs = outputs or 8  # none are asked for where an LSTM stands behind
        self.outputs = torch.nn.Linear(size, self.num_outputs)
        self.value = torch.nn.Linear(size, 1)

    def forward(self, given: Any, state: Any, _: Any) -> Any:
        """What actions are drawn by."""
        flat = given["obs_flat"]
        if not isinstance(flat, torch.Tensor):  # PG has preprocessed nothing since Ray 1.10
            flat = flatten_inputs_to_1d_tensor(given["obs"], self.parts)
        flat = flat.float() / 255  # images are bytes
        self.valued = self.value(flat)
        return self.outputs(flat), state

    def value_function(self) -> Any:
        """What the last observations are worth."""
        return self.valued.reshape(-1)


@cache
def defaults(algorithm: str, ray: str) -> dict[str, Any]:
    """The defaults of an algorithm; none where a Ray did not have it."""
    release = keys.nearest_release(ray)
    own = [keys.default_at(algorithm, key, release) for key in keys.section(algorithm)]
    # The one that acts at random had no keys of its own.
    if algorithm != "Random" and not any(had or value for had, value in own):
        return {}
    return keys.default_config(algorithm, ray)


def can_be_said(algorithm: str, says: Mapping[str, Any], ray: str) -> bool:
    """Whether a Ray had the algorithm, and all keys of what is said."""
    had = defaults(algorithm, ray)
    if not had:
        return False
    return says.keys() <= had.keys() and says.get("model", {}).keys() <= had.get("model", {}).keys()


def every_case() -> Iterator[Case]:
    """All of them; which Ray and which actions are said take turns."""
    turn = 0
    for algorithm in SMALL:
        for says, config in SAYS.items():
            taken = OF_SOME.get(says, ACTS)
            acts = [one for one in ACTS_OF.get(algorithm, ACTS) if one in taken]
            rays = [ray for ray in RAYS if can_be_said(algorithm, config, ray)]
            kinds = SEEN_OF.get(algorithm, SEEN)
            for seen in kinds if says in NETWORKS else kinds[:2]:
                turn += 1
                if rays and acts:
                    ray = rays[turn % len(rays)]
                    yield Case(
                        algorithm, says, seen, acts[turn // 2 % len(acts)], ray, turn % 5 > 0
                    )


def said_at_once(says: str) -> dict[str, Any]:
    """The config of things that are joined by `AND`."""
    found: dict[str, Any] = {}
    for one in says.split(AND):
        found = _joined(found, SAYS[one])
    return found


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    models = {key: {**one[key], **other[key]} for key in _MODELS if key in one and key in other}
    return {**one, **other, **models}


def _agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(
        _agree(one[key], other[key]) if key in _MODELS else one[key] == other[key]
        for key in one.keys() & other.keys()
    )


def together(algorithm: str) -> Iterator[Case]:
    """Cases that tell an algorithm everything, as many things at once as go together."""
    left = [says for says in SAYS if any(can_be_said(algorithm, SAYS[says], ray) for ray in RAYS)]
    kinds = SEEN_OF.get(algorithm, SEEN)
    for turn in itertools.count():
        fitting = (_fitting(algorithm, left, ray) for ray in RAYS)
        names, acts, ray = max(fitting, key=lambda found: len(found[0]))
        if not names:
            return
        left = [says for says in left if says not in names]
        yield Case(algorithm, AND.join(names), kinds[turn % len(kinds)], acts, ray, turn % 5 > 0)


def _fitting(algorithm: str, left: list[str], ray: str) -> tuple[list[str], str, str]:
    """What can be said at once to an algorithm of a Ray, and the actions that go with it."""
    names: list[str] = []
    found: dict[str, Any] = {}
    acts = list(ACTS_OF.get(algorithm, ACTS))
    for says in left:
        taken = [one for one in acts if one in OF_SOME.get(says, ACTS)]
        both = _joined(found, SAYS[says])
        networks = sum(any(kind in one for kind in _KINDS) for one in (*names, says))
        goes = taken and networks < 2 and _agree(found, SAYS[says])
        if goes and len(names) < MOST and can_be_said(algorithm, both, ray):
            names, found, acts = [*names, says], both, taken
    return names, acts[0], ray


def halves(case: Case) -> list[Case]:
    """The same case with each half of what it says; none where it says one thing."""
    says = case.says.split(AND)
    parts = (says[: len(says) // 2], says[len(says) // 2 :]) if len(says) > 1 else ()
    return [replace(case, says=AND.join(part)) for part in parts]


def drawn(seed: str, *, count: int | None = None, quick: bool = False) -> list[Case]:
    """Cases in an order that only a text decides.

    Args:
        seed: The text.
        count: How many; None: all.
        quick: Only those that start no process.
    """
    found = [case for case in every_case() if not quick or case.is_quick]
    found.sort(key=lambda case: hashlib.sha256(f"{seed} {case}".encode()).digest())
    return found[:count]


def train(case: Case, folder: str) -> CompatError | None:
    """Trains it for two iterations, saves it, restores it in another trainer, and acts.

    Returns:
        Why it is refused, or None.
    """
    ModelCatalog.register_custom_model("linear", Linear)
    told = case.ray if case.tells else None
    made = {"algorithm": case.algorithm, "config": case.config, "legacy_ray": told}
    try:
        trainer = compat.Trainer(**made)
    except CompatError as refused:
        return refused
    policy, seen = matrix_inputs.observed(case.algorithm, case.seen)
    acts = matrix_inputs.acted(case.algorithm, case.acts, grouped=not case.several_agents)
    if case.several_agents:
        policy = "one"
    try:
        for iteration in (1, 2):
            assert trainer.train()["training_iteration"] == iteration
        path = trainer.save(folder)
        weights = saved_weights(trainer, path)
    finally:
        trainer.stop()
    other = compat.Trainer(**made)
    try:
        other.restore(path)
        for name, arrays in other.get_weights().items():
            for part, array in arrays.items():
                np.testing.assert_array_equal(array, weights[name][part])
        states = first_states(other, policy)
        is_new = other.algorithm.config.enable_rl_module_and_learner
        before = {"state": states} if states else {}
        if "attention, steps before" in case.says and acts.shape is not None:
            before |= {
                "prev_action": np.zeros((2, *acts.shape), acts.dtype),
                "prev_reward": np.zeros(2, np.float32),
            }
        elif "steps before" in case.says and not is_new:
            # The policies of that stack need both, as those of old Rays did.
            before |= {"prev_action": _first_action(acts), "prev_reward": 0.0}
        action = other.compute_single_action(seen, policy_id=policy, **before)
        assert fits(action[0] if states else action, acts), action
        assert other.train()["training_iteration"] == 3
    finally:
        other.stop()
    return None


def _first_action(space: gym.Space[Any]) -> Any:
    """What stands for the action before the first, as policies are given it: zeros, flattened."""
    parts = tree.flatten(get_base_struct_from_space(space))
    zeros = [np.zeros(part.shape, part.dtype) for part in parts]
    return zeros[0] if len(zeros) == 1 else np.concatenate([part.ravel() for part in zeros])


def saved_weights(trainer: Any, path: str) -> dict[str, Any]:
    """The weights in a checkpoint that a trainer has just saved.

    Learners of IMPALA and APPO go on in a thread of their own: what they have then is newer.
    """
    if trainer.translation.algorithm not in ("IMPALA", "APPO"):
        return dict(trainer.get_weights())
    policies = read_checkpoint(path, Budget()).policies
    return {name: policy.weights for name, policy in policies.items()}


def first_states(trainer: Any, policy: str) -> list[Any]:
    """What a recurrent policy is asked with; an attention net with all steps of its memory."""
    model = trainer.config["model"]
    states = trainer.get_policy(policy).get_initial_state()
    if not model.get("use_attention"):
        return list(states)
    length = model.get("attention_memory_inference", 50)
    return [
        np.zeros((length, *np.shape(state)), np.float32) if np.ndim(state) == 1 else state
        for state in states  # the new API stack gives all steps of it
    ]


def says_what_to_do(refused: CompatError) -> bool:
    """Whether an error tells where the config asks for what can't be, and what to do.

    One that only hands on what Ray said does not.
    """
    if "The old API stack can't build" in str(refused):
        return False
    if refused.where and refused.fix:
        return True
    findings = getattr(refused, "findings", ())
    return bool(findings) and all(finding.path and finding.hint for finding in findings)


def are_free(cpus: int) -> bool:
    """Whether all CPUs of the running Ray are free within a few seconds."""
    import ray

    until = time.monotonic() + 8
    while ray.available_resources().get("CPU") != cpus:
        if time.monotonic() > until:
            return False
        time.sleep(0.2)
    return True


def _too_long(*_: Any) -> None:
    raise TimeoutError("It takes too long.")


def main(*, one_process: bool = False) -> int:
    """Prints what becomes of each case; whether none failed without a name.

    Args:
        one_process: Whether there are no processes: `use_one_process` was called.
    """
    import ray
    from ray.tune.utils import UtilMonitor

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slice", default="0/1", help="which of how many")
    parser.add_argument("--quick", action="store_true", help="only what starts no process")
    parser.add_argument("--together", action="store_true", help="say several things at once")
    parser.add_argument("algorithms", nargs="*")
    arguments = parser.parse_args()
    part, parts = map(int, arguments.slice.split("/"))
    ray.init(num_cpus=CPUS, include_dashboard=False, log_to_driver=False, configure_logging=False)
    UtilMonitor.join = lambda *_: None  # a trainer would wait for it, for a second and more
    signal.signal(signal.SIGALRM, _too_long)
    found: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    cases = drawn("", quick=arguments.quick)
    if arguments.together:
        whole = itertools.chain.from_iterable(map(together, SMALL))
        cases = [case for case in whole if case.is_quick or not arguments.quick]
    asked = arguments.algorithms or SMALL
    left = [case for case in cases if case.algorithm in asked][part::parts]
    while left:
        case = left.pop(0)
        if one_process and not case.fits_one_process:
            left = halves(case) + left
            continue
        began = time.monotonic()
        signal.alarm(100)
        with tempfile.TemporaryDirectory() as folder:
            try:
                refused = train(case, folder)
                outcome, more = (
                    ("refused", " ".join(str(refused).split())) if refused else ("trains", "")
                )
                if refused and not says_what_to_do(refused):
                    outcome = "FAILS"
                elif not case.is_quick and not are_free(CPUS):
                    outcome, more = "FAILS", "Processes outlive their trainer."
            except Exception:
                outcome, more = "FAILS", f"\n{traceback.format_exc()}"
            finally:
                signal.alarm(0)
        print(f"{outcome} {case} {time.monotonic() - began:.1f} s {more}", flush=True)
        if outcome != "trains" and (smaller := halves(case)):
            left = smaller + left
            continue
        found[case.algorithm][outcome] += case.says.count(AND) + 1
    for algorithm, counted in sorted(found.items()):
        print(f"{algorithm}: " + ", ".join(f"{n} {name}" for name, n in sorted(counted.items())))
    return sum(counted["FAILS"] for counted in found.values())


if __name__ == "__main__":
    raise SystemExit(bool(main()))
