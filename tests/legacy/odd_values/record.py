"""Records, inside an old Ray, what it did with None, 0, "", [] and {} for each key of its configs.

    python tests/legacy/odd_values/record.py tests/legacy/odd_values/1.13.0.json

A config with one such value goes the way of a trainer without remote workers: it is merged with the
defaults, validated, workers are made of it, and they sample once. The file has, by algorithm, key
and value, where that ended ("merge", "validate", "workers", "sample") and by which error; null is
for what sampled. No Ray is started. Run it in an empty folder: `input: ""` reads all files there.
"""

import copy
import importlib
import json
import signal
import sys
from pathlib import Path

import gym
import ray
from ray.rllib.agents.trainer import COMMON_CONFIG, Trainer
from ray.rllib.evaluation.worker_set import WorkerSet

VALUES = {"None": None, "0": 0, '""': "", "[]": [], "{}": {}}
SECONDS = 10
VERSION = tuple(int(part) for part in ray.__version__.split("."))
CARTPOLE = "CartPole-v0"
PENDULUM = "Pendulum-v1" if "Pendulum-v1" in gym.envs.registry.env_specs else "Pendulum-v0"
#: Algorithm → its package below `ray.rllib.agents`, its trainer class, the module of its torch
#: policy in there and that class, and an environment.
ALGORITHMS = {
    "PPO": ("ppo", "PPOTrainer", "ppo_torch_policy", "PPOTorchPolicy", CARTPOLE),
    "DQN": ("dqn", "DQNTrainer", "dqn_torch_policy", "DQNTorchPolicy", CARTPOLE),
    "SAC": ("sac", "SACTrainer", "sac_torch_policy", "SACTorchPolicy", PENDULUM),
    "A2C": ("a3c", "A2CTrainer", "a3c_torch_policy", "A3CTorchPolicy", CARTPOLE),
    "A3C": ("a3c", "A3CTrainer", "a3c_torch_policy", "A3CTorchPolicy", CARTPOLE),
    "IMPALA": ("impala", "ImpalaTrainer", "vtrace_torch_policy", "VTraceTorchPolicy", CARTPOLE),
    "DDPG": ("ddpg", "DDPGTrainer", "ddpg_torch_policy", "DDPGTorchPolicy", PENDULUM),
    "TD3": ("ddpg", "TD3Trainer", "ddpg_torch_policy", "DDPGTorchPolicy", PENDULUM),
}


def named(module, name):
    return getattr(importlib.import_module("ray.rllib.agents." + module), name)


def trainer_class(algorithm):
    return named(*ALGORITHMS[algorithm][:2])


def policy_class(algorithm):
    package, _, module, name, _ = ALGORITHMS[algorithm]
    return named(package + "." + module, name)


def env_of(algorithm):
    return ALGORITHMS[algorithm][-1]


def defaults(cls):
    if hasattr(cls, "get_default_config"):
        return copy.deepcopy(cls.get_default_config())
    return copy.deepcopy(cls._default_config)


def validate(cls, algorithm, config):
    if VERSION >= (1, 8):
        trainer = cls.__new__(cls)
        trainer.config = config
        trainer.validate_config(config)
        return
    cls._validate_config(config)
    module = sys.modules["ray.rllib.agents.{0}.{0}".format(ALGORITHMS[algorithm][0])]
    check = getattr(module, "validate_config", None)
    if check is not None:
        check(config)


def workers(algorithm, config):
    spec = "policy" if VERSION < (1, 0) else "policy_class"
    return WorkerSet(
        env_creator=lambda _: gym.make(env_of(algorithm)),
        trainer_config=config,
        num_workers=0,
        logdir="/tmp",
        **{spec: policy_class(algorithm)},
    )


def outcome(algorithm, given):
    """Where a config ended; None: nowhere."""
    cls = trainer_class(algorithm)
    framework = {"use_pytorch": True} if VERSION < (0, 8, 6) else {"framework": "torch"}
    small = {
        "num_workers": 0,
        "rollout_fragment_length": 10,
        "env": env_of(algorithm),
        **framework,
    }
    if algorithm == "PPO":
        small.update(train_batch_size=20, sgd_minibatch_size=10)
    if algorithm == "A3C":  # threads, which it had by default, were refused for torch
        small["sample_async"] = False
    stage = "merge"
    try:
        config = Trainer.merge_trainer_configs(defaults(cls), {**small, **given})
        stage = "validate"
        validate(cls, algorithm, config)
        stage = "workers"
        made = workers(algorithm, config)
        stage = "sample"
        made.local_worker().sample()
    except BaseException as error:
        return [stage, type(error).__name__]
    return None


def late(*_):
    raise TimeoutError("no end")


def main(path):
    signal.signal(signal.SIGALRM, late)
    found = {}
    for algorithm in ALGORITHMS:
        known = sorted(defaults(trainer_class(algorithm)))
        common = set(COMMON_CONFIG) if algorithm != "PPO" else set()
        keys = [key for key in known if key not in common]
        if outcome(algorithm, {}) is not None:
            print("left out, since it trains not even with defaults:", algorithm)
            continue
        for key in keys:
            for name, value in VALUES.items():
                signal.alarm(SECONDS)
                ended = outcome(algorithm, {key: value})
                signal.alarm(0)
                found.setdefault(algorithm, {}).setdefault(key, {})[name] = ended
    told = {"ray": ray.__version__, "ended": found}
    Path(path).write_text(json.dumps(told, indent=0, sort_keys=True))


if __name__ == "__main__":
    main(sys.argv[1])
