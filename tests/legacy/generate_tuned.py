#!/usr/bin/env python
"""Write museum cases that Tune kept, with the old Ray (1.13 or 2.0, torch) of the running Python.

    python generate_tuned.py OUT [--cases NAME ...]

Such a case has `ray_results/` in the place of `ckpt/`: an experiment of one trial, as `tune.run`
left it. Tune's trainer lives in another process, so what the network computes is recorded with a
trainer that gets the weights of the trial's last checkpoint.
"""

import pickle
import tempfile
from pathlib import Path

import generate
import ray
from ray import tune

CASES = {
    "tunerun": {
        "env": "CartPole-v1",
        "framework": "torch",
        "model": {"fcnet_activation": "relu", "fcnet_hiddens": [32, 32]},
        "num_gpus": 0,
        "num_sgd_iter": 2,
        "num_workers": 0,
        "rollout_fragment_length": 200,
        "seed": 11,
        "sgd_minibatch_size": 50,
        "train_batch_size": 200,
    }
}
#: What makes an iteration a batch long.
ONE_BATCH = (
    {
        "min_sample_timesteps_per_iteration": 200,
        "min_time_s_per_iteration": 0,
        "min_train_timesteps_per_iteration": 0,
    }
    if generate.RAY >= (2, 0, 0)
    else {
        "min_sample_timesteps_per_reporting": 200,
        "min_time_s_per_reporting": 0,
        "timesteps_per_iteration": 200,
    }
)
ITERATIONS = 2


def restored(config, checkpoint):
    """A trainer with a checkpoint's weights; `restore` of 1.13 fails on what torch 1.12 keeps."""
    trainer = generate.ppo()(config=config)
    worker = pickle.loads(pickle.loads(checkpoint.read_bytes())["worker"])
    states = worker["state"] if "state" in worker else worker["policy_states"]
    for policy_id, state in states.items():
        trainer.get_policy(policy_id).set_weights(state["weights"])
    return trainer


def make(name, out):
    """Run an experiment and record its last checkpoint."""
    config = dict(CASES[name], **ONE_BATCH)
    whole = Path(tempfile.mkdtemp()) / "whole"
    tune.run(
        "PPO",
        name="exp",
        config=dict(config),
        local_dir=str(whole / "ray_results"),
        stop={"training_iteration": ITERATIONS},
        checkpoint_freq=1,
        checkpoint_at_end=True,
        verbose=0,
    )
    (saved,) = whole.glob(f"ray_results/exp/*/checkpoint_*{ITERATIONS}")
    trainer = restored(config, saved / f"checkpoint-{ITERATIONS}")
    arrays, policies = generate.record(generate.local_worker(trainer))
    trainer.stop()
    for file in whole.rglob("events.out.tfevents.*"):
        file.unlink()  # TensorBoard's, which say nothing that the others don't
    generate.finish(
        whole,
        Path(out) / ray.__version__ / ("ppo-torch-" + name),
        {"expected": arrays},
        algo="PPO",
        checkpoint=str(saved.relative_to(whole)),
        env=config.pop("env"),
        framework="torch",
        iteration=ITERATIONS,
        policies=policies,
        stack="old",
        user_config=config,
        variant=name,
    )


if __name__ == "__main__":
    generate.run(__doc__, CASES, make, {})
