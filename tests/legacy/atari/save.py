"""Saves a policy for the made game in an old Ray, and records how it plays.

    python -m tests.legacy.atari.save FOLDER

The checkpoint lies in FOLDER as Ray's trainer writes it, of a worker that was not trained: no Ray
is started. `played.json` beside it has what `rllib rollout --no-explore` would do: what the policy
saw (hashes), its logits and actions, rewards and ends.
"""

import json
import os
import pickle
import sys
import time
import types
import warnings

import numpy as np
import ray
from ray.rllib.agents.ppo import PPOTrainer
from ray.rllib.evaluation.rollout_worker import RolloutWorker

from tests.legacy.atari.record import RELEASE
from tests.legacy.atari.worlds import Game, digest

CONFIG = {
    "env": "MadeNoFrameskip-v4",
    "num_workers": 0,
    "train_batch_size": 64,
    "sgd_minibatch_size": 32,
    "num_sgd_iter": 2,
    "rollout_fragment_length": 32,
    "model": {"dim": 42, "conv_filters": [[4, [8, 8], 8], [8, [6, 6], 1]]},
}
STEPS = 40


def make_worker(config):
    whole = PPOTrainer.merge_trainer_configs(PPOTrainer.get_default_config() if RELEASE >= (1, 0) else PPOTrainer._default_config, config)
    if RELEASE >= (1, 0):
        from ray.rllib.agents.ppo.ppo_torch_policy import PPOTorchPolicy

        first = {"policy_spec": PPOTorchPolicy, "disable_env_checking": True}
    else:
        from ray.rllib.agents.ppo.ppo_tf_policy import PPOTFPolicy

        first = {"policy": PPOTFPolicy}
    return RolloutWorker(
        env_creator=lambda _: Game(lost=(41, 90), end=131),
        rollout_fragment_length=32,
        model_config=whole["model"],
        policy_config=whole,
        seed=7,
        **first
    )


def save(worker, folder, config):
    trainer = PPOTrainer.__new__(PPOTrainer)
    trainer.workers = types.SimpleNamespace(local_worker=lambda: worker)
    trainer.config, trainer._experiment_id, trainer._local_ip = config, "made", "127.0.0.1"
    trainer._iteration, trainer._time_total, trainer._start_time = 1, 0.0, time.time()
    trainer._timesteps_total = trainer._episodes_total = 0
    trainer._timesteps_since_restore = trainer._iterations_since_restore = 0
    trainer._restored, trainer._env_id = False, config["env"]
    trainer.optimizer = types.SimpleNamespace(save=lambda: {})
    trainer.local_replay_buffer = trainer.evaluation_workers = trainer.train_exec_impl = None
    trainer._counters, trainer.state = {}, {}
    if hasattr(trainer, "_save"):
        path = trainer._save(folder)
    else:
        path = trainer.save_checkpoint(folder)
    metadata = {"ray_version": ray.__version__, "iteration": 1, "timesteps_total": 0, "episodes_total": 0, "time_total": 0.0, "experiment_id": "made", "saved_as_dict": False}
    with open(path + ".tune_metadata", "wb") as file:
        pickle.dump(metadata, file, protocol=2)
    with open(os.path.join(folder, "params.pkl"), "wb") as file:
        pickle.dump(config, file, protocol=2)


def make_game_new(worker):
    """The worker, whose game begins anew."""
    layer = worker.env
    while layer is not worker.env.unwrapped:
        if hasattr(layer, "was_real_done"):
            layer.was_real_done = True
        layer = layer.env
    layer.__init__(lost=(41, 90), end=131)
    return worker


def play(worker):
    """What `rollout` did: the worker's environment, and the policy's best actions."""
    env, policy = worker.env, worker.get_policy()
    played = {"seen": [], "actions": [], "rewards": [], "dones": [], "logits": []}
    observation = env.reset()
    for _ in range(STEPS):
        actions, _, more = policy.compute_actions(np.array([observation]), explore=False)
        played["seen"].append(digest(observation))
        observation, reward, done, _ = env.step(int(actions[0]))
        played["actions"].append(int(actions[0]))
        played["rewards"].append(float(reward))
        played["dones"].append(bool(done))
        logits = more.get("action_dist_inputs", more.get("behaviour_logits"))[0]
        played["logits"].append([round(float(number), 5) for number in logits])
        if done:
            observation = env.reset()
    return played


def main(folder):
    config = dict(CONFIG, **({"framework": "torch"} if RELEASE >= (1, 0) else {}))
    worker = make_worker(config)
    policy = worker.get_policy()
    rng = np.random.RandomState(3)
    weights = {
        name: (rng.randn(*array.shape) * 0.05).astype(np.float32) for name, array in sorted(policy.get_weights().items())
    }
    policy.set_weights(weights)
    mean = np.mean(play(make_game_new(worker))["logits"], axis=0)
    weights = {k: w - mean.astype(np.float32) if w.shape == mean.shape else w for k, w in weights.items()}
    policy.set_weights(weights)  # now another action is the best one at each frame
    save(worker, folder, config)
    played = play(make_game_new(worker))
    with open(os.path.join(folder, "played.json"), "w") as file:
        file.write("{" + ",\n".join("%s: %s" % (json.dumps(k), json.dumps(v)) for k, v in played.items()) + "}\n")
    print(played["actions"], played["dones"])
    print(played["logits"][:2])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1])
