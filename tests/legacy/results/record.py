"""Records the keys of the results of each algorithm of an old Ray.

Usage: `python record.py OUT.json torch` (or `tf`), with the Python of an environment that has Ray
1.13.0 or 0.8.5. What OUT.json has is left out, so that it can be called again.
`tests/integration/test_result_keys.py` compares.

`cases` has each with its `algorithm` and `config`, or the `error` that the Ray raised instead;
`keys` has what each path of a result holds after two iterations, a letter a case (`LETTERS`).
"""

import signal
import sys
import tempfile
import time
from pathlib import Path

import gym
import ray
from ray.rllib.agents import registry
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env
from worlds import as_text, environments, from_text, policies, tree

OLD = ray.__version__ < "1"
get_class = registry.get_agent_class if OLD else registry.get_trainer_class
CARTPOLE, PENDULUM = "CartPole-v1", "Pendulum-v0" if OLD else "Pendulum-v1"

OFF_POLICY = {
    "env": CARTPOLE,
    "learning_starts": 10,
    "train_batch_size": 8,
    "timesteps_per_iteration": 60,
    "rollout_fragment_length": 4,
    "target_network_update_freq": 20,
}
CONTINUOUS = dict(OFF_POLICY, env=PENDULUM, pure_exploration_steps=5)
REMOTE = {
    "num_workers": 2,  # with one, Ray 0.8.5 divided by zero
    "optimizer": {"num_replay_buffer_shards": 1},
    "replay_buffer_config": {"replay_buffer_shards_colocated_with_driver": True},
}
ON_POLICY = {"env": CARTPOLE, "train_batch_size": 80, "rollout_fragment_length": 40}
PPO = dict(ON_POLICY, sgd_minibatch_size=40, num_sgd_iter=2)
EVOLUTION = {"env": CARTPOLE, "num_workers": 1, "noise_size": 3000000, "train_batch_size": 20}
OFFLINE = {"input": "recorded", "train_batch_size": 20}
LSTM = {"use_lstm": True, "lstm_cell_size": 6, "fcnet_hiddens": [8], "max_seq_len": 5}
#: Algorithms that replay sequences or episodes of ten steps.
SEQUENCES = dict(OFF_POLICY, train_batch_size=40, rollout_fragment_length=10)

#: An algorithm, with or without what is special → its config; keys that a Ray lacks are left out.
CASES = {
    "A2C": ON_POLICY,
    "A3C": dict(ON_POLICY, num_workers=1),
    "APEX": dict(OFF_POLICY, **REMOTE),
    "APEX_DDPG": dict(CONTINUOUS, **REMOTE),
    "APPO": dict(ON_POLICY, num_workers=1),
    "ARS": dict(EVOLUTION, num_rollouts=2, rollouts_used=1),
    "BC": OFFLINE,
    "BanditLinTS": {"env": CARTPOLE},
    "BanditLinUCB": {"env": CARTPOLE},
    "CQL": dict(OFFLINE, input="recorded continuous", bc_iters=0, learning_starts=10),
    "DDPG": CONTINUOUS,
    "DDPPO": dict(PPO, num_workers=1, train_batch_size=-1),
    "DQN": OFF_POLICY,
    "ES": dict(EVOLUTION, episodes_per_batch=2),
    "IMPALA": dict(ON_POLICY, num_workers=1),
    "MADDPG": dict(OFF_POLICY, env="pair", multiagent="pair"),
    "MARWIL": OFFLINE,
    "PG": ON_POLICY,
    "PPO": PPO,
    "PPO with an evaluation": dict(PPO, evaluation_interval=1, evaluation_num_episodes=1),
    "PPO with an LSTM": dict(PPO, model=LSTM),
    "PPO with two policies": dict(PPO, env="pair", multiagent="pair"),
    "DQN with two policies": dict(OFF_POLICY, env="pair", multiagent="pair"),
    "DQN with noise and atoms": dict(OFF_POLICY, noisy=True, num_atoms=5, n_step=2),
    "DQN without priorities": dict(OFF_POLICY, prioritized_replay=False),
    "QMIX": dict(SEQUENCES, env="group"),
    "R2D2": dict(SEQUENCES, model=LSTM),
    "RNNSAC": dict(SEQUENCES, policy_model=LSTM, Q_model=LSTM),
    "RandomAgent": {"env": CARTPOLE},
    "SAC": dict(CONTINUOUS),
    "SAC with discrete actions": OFF_POLICY,
    "SimpleQ": OFF_POLICY,
    "TD3": CONTINUOUS,
}
FRAMEWORK = {
    name: {"use_pytorch": name == "torch"} if OLD else {"framework": name}
    for name in ("torch", "tf")
}
ALWAYS = {
    "num_workers": 0,
    "num_gpus": 0,
    "num_gpus_per_worker": 0,
    "min_iter_time_s": 0,
    "min_time_s_per_reporting": 0,
    "lr": 1e-6,
}
#: The names of algorithms below `contrib`.
CONTRIB = {"MADDPG": "MADDPG", "RandomAgent": "RandomAgent"}
if OLD:
    CONTRIB.update(BanditLinTS="LinTS", BanditLinUCB="LinUCB")


def trainer_class(name):
    """Returns an algorithm's class."""
    return get_class("contrib/" + CONTRIB[name] if name in CONTRIB else name)


def defaults_of(cls):
    """Returns the default config of an algorithm's class."""
    had = getattr(cls, "get_default_config", None)
    return had() if had else cls._default_config


def make_recording(env, folder):
    """Writes some steps of a policy gradient."""
    told = dict(ON_POLICY, env=env, output=folder, num_workers=0, **FRAMEWORK["torch"])
    trainer = get_class("PG")(config=told)
    trainer.train()
    trainer.stop()


def config_of(case, framework):
    """Returns the config of a case with the keys that this Ray has."""
    cls = trainer_class(case.split(" with")[0])
    had = defaults_of(cls)
    told = dict(ALWAYS, **CASES[case], **FRAMEWORK[framework])
    return {name: value for name, value in told.items() if name in had}


def record(case, framework):
    """Trains a case for two iterations; returns what it is and its keys."""
    told = config_of(case, framework)
    cls = trainer_class(case.split(" with")[0])
    real = dict(told)
    if told.get("multiagent") == "pair":
        real["multiagent"] = policies(gym.spaces)
    if "recorded" in str(told.get("input")):
        env = CARTPOLE if told["input"] == "recorded" else PENDULUM
        real.update(input=tempfile.mkdtemp(), env=env)
        make_recording(env, real["input"])
    trainer = cls(config=real)
    trainer.train()
    found = tree(trainer.train())
    trainer.stop()
    return {"algorithm": case.split(" with")[0], "config": told, "keys": found}


def stop_waiting(*_):
    """Ends a case that takes too long."""
    raise TimeoutError


if __name__ == "__main__":
    out, framework = Path(sys.argv[1]), sys.argv[2]
    recorded = from_text(out.read_text()) if out.exists() else {}
    page = "include_webui" if OLD else "include_dashboard"
    ray.init(num_cpus=6, log_to_driver=False, **{page: False})
    for name, creator in environments(MultiAgentEnv, gym.spaces).items():
        register_env(name, creator)
    signal.signal(signal.SIGALRM, stop_waiting)
    for each in CASES:
        key = f"{each} ({framework})"
        if key not in recorded:
            signal.alarm(60)
            try:
                recorded[key] = record(each, framework)
            except Exception as error:
                said = str(error).partition("\n")[0]
                recorded[key] = {"error": f"{type(error).__name__}: {said}"}
            print(time.strftime("%X"), key, recorded[key].get("error", ""), flush=True)
            out.write_text(as_text(recorded))
