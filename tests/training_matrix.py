"""Configs of old Rays, algorithm by algorithm: each trains, is saved, is restored and acts.

    python -m tests.training_matrix [--slice 3/40] [ALGORITHM …]

prints what becomes of each case, and how many of each algorithm train. A case is an algorithm, one
thing that its config says, spaces and a Ray. What a config says of the network meets all kinds of
observations; spaces and Rays take turns otherwise. Only keys that the Ray had are said to it.
"""

from __future__ import annotations

import argparse
import collections
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np

import rllib_compat as compat
from rllib_compat.config import keys
from rllib_compat.errors import CompatError
from tests.legacy.new_networks import cases

RAYS = ("0.6.6", "0.8.5", "1.0.1", "1.3.0", "1.13.0", "2.0.1", "2.3.1")
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

_OFF_POLICY = {"learning_starts": 10, "train_batch_size": 8, "timesteps_per_iteration": 30}
_EVOLUTION = {"num_workers": 1, "noise_size": 20_000, "train_batch_size": 20}
#: What makes each algorithm's iterations small. Keys that a Ray lacks are left out.
SMALL: dict[str, dict[str, Any]] = {
    "A2C": {"train_batch_size": 40},
    "A3C": {"train_batch_size": 40, "timesteps_per_iteration": 40},
    "APEX": {**_OFF_POLICY, "num_workers": 1, "optimizer": {"num_replay_buffer_shards": 1}},
    "APEX_DDPG": {**_OFF_POLICY, "num_workers": 1, "optimizer": {"num_replay_buffer_shards": 1}},
    "APPO": {"train_batch_size": 40},
    "ARS": {**_EVOLUTION, "num_rollouts": 2, "rollouts_used": 1},
    "BanditLinTS": {},
    "BanditLinUCB": {},
    "DDPG": {**_OFF_POLICY, "pure_exploration_steps": 5},
    "DDPPO": {"num_workers": 1, "sgd_minibatch_size": 20, "num_sgd_iter": 1},
    "DQN": {**_OFF_POLICY, "hiddens": [8]},
    "ES": {**_EVOLUTION, "episodes_per_batch": 2},
    "IMPALA": {"train_batch_size": 40},
    "PG": {"train_batch_size": 40},
    "PPO": {"train_batch_size": 40, "sgd_minibatch_size": 20, "num_sgd_iter": 1},
    "R2D2": {**_OFF_POLICY, "hiddens": [8]},
    "RNNSAC": {**_OFF_POLICY},
    "Random": {},
    "SAC": _OFF_POLICY,
    "SimpleQ": {**_OFF_POLICY, "hiddens": [8]},
    "TD3": {**_OFF_POLICY, "pure_exploration_steps": 5},
}
_ALWAYS = {
    "num_workers": 0,
    "num_gpus": 0,
    "num_gpus_per_worker": 0,
    "rollout_fragment_length": 20,
    "sample_batch_size": 20,
    "min_iter_time_s": 0,
    "min_time_s_per_reporting": 0,
    "min_time_s_per_iteration": 0,
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
#: What a config says of anything else.
TRAINING: dict[str, dict[str, Any]] = {
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
    "evaluation": {"evaluation_interval": 1, "evaluation_num_episodes": 2},
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
    "no critic": {"use_critic": False},
    "no KL": {"kl_coeff": 0.0},
    "no V-trace": {"vtrace": False},
    "KL of APPO": {"use_kl_loss": True},
    "passes": {"num_sgd_iter": 2, "replay_proportion": 0.5, "replay_buffer_num_slots": 4},
    "RMSProp": {"opt_type": "rmsprop"},
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
    "stored states": {"zero_init_states": False, "burn_in": 2},
}
SAYS = NETWORKS | TRAINING


@dataclass(frozen=True)
class Case:
    """A config, and the Ray that it is of."""

    algorithm: str
    says: str
    seen: str
    acts: str
    ray: str

    def __str__(self) -> str:
        return f"{self.algorithm}-{self.says}-{self.seen}-{self.acts}-{self.ray}".replace(" ", "_")

    @property
    def config(self) -> dict[str, Any]:
        said = _ALWAYS | SMALL[self.algorithm]
        small = {key: said[key] for key in said.keys() & defaults(self.algorithm, self.ray).keys()}
        spaces = {"seen": self.seen, "acts": self.acts}
        return {**small, **SAYS[self.says], "env": Steps, "env_config": spaces}


class Steps(gym.Env):
    """Gives what its spaces hold, in episodes of ten steps."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.observation_space = cases.space(config["seen"], gym.spaces)
        self.action_space = cases.space(config["acts"], gym.spaces)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.steps += 1
        return self.observation_space.sample(), 1.0, self.steps == 10, False, {}


@cache
def defaults(algorithm: str, ray: str) -> dict[str, Any]:
    """The defaults of an algorithm; none where a Ray did not have it."""
    try:
        return keys.default_config(algorithm, ray)
    except KeyError:
        return {}


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
            rays = [ray for ray in RAYS if can_be_said(algorithm, config, ray)]
            for seen in SEEN if says in NETWORKS else SEEN[:2]:
                turn += 1
                if rays:
                    acts = ACTS[turn // 2 % len(ACTS)]
                    yield Case(algorithm, says, seen, acts, rays[turn % len(rays)])


def train(case: Case, folder: str) -> None:
    """Trains it for two iterations, saves it, restores it in another trainer, and acts.

    Raises:
        CompatError: It is refused.
    """
    made = {"algorithm": case.algorithm, "config": case.config, "legacy_ray": case.ray}
    trainer = compat.Trainer(**made)
    try:
        for iteration in (1, 2):
            assert trainer.train()["training_iteration"] == iteration
        path = trainer.save(folder)
        weights = trainer.get_weights()
    finally:
        trainer.stop()
    other = compat.Trainer(**made)
    try:
        other.restore(path)
        for policy, arrays in other.get_weights().items():
            for name, array in arrays.items():
                np.testing.assert_array_equal(array, weights[policy][name])
        env = Steps(case.config["env_config"])
        states = other.get_policy().get_initial_state()
        action = other.compute_single_action(
            env.reset()[0], **({"state": states} if states else {})
        )
        assert env.action_space.contains(action[0] if states else action)
        assert other.train()["training_iteration"] == 3
    finally:
        other.stop()


def main() -> int:
    """Prints what becomes of each case; whether none failed without a name."""
    import ray

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slice", default="0/1", help="which of how many")
    parser.add_argument("algorithms", nargs="*")
    arguments = parser.parse_args()
    part, parts = map(int, arguments.slice.split("/"))
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, configure_logging=False)
    found: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for number, case in enumerate(every_case()):
        if arguments.algorithms and case.algorithm not in arguments.algorithms:
            continue
        if number % parts != part:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                train(case, folder)
                outcome = "trains"
            except CompatError as refused:
                outcome = "refused"
                print(f"REFUSED {case}: {' '.join(str(refused).split())[:300]}", flush=True)
            except Exception:
                outcome = "FAILS"
                print(f"FAILS {case}\n{traceback.format_exc()}", flush=True)
        found[case.algorithm][outcome] += 1
    for algorithm, counted in sorted(found.items()):
        print(f"{algorithm}: " + ", ".join(f"{n} {name}" for name, n in sorted(counted.items())))
    return sum(counted["FAILS"] for counted in found.values())


if __name__ == "__main__":
    raise SystemExit(bool(main()))
