#!/usr/bin/env python
"""Writes experiments of Tune with the old Ray of the running Python, and what it says of them.

    python record.py OUT

`OUT/<ray>-finished/` has two trials to their end. In `OUT/<ray>-interrupted/` one trial has ended,
one was broken off between two checkpoints by the end of the process, and one had not begun. Beside
each, `<name>.json` tells what the analyses of that Ray say of the folder in a new process, and for
the interrupted one, what that Ray did when it went on with it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import ray
from ray import tune

RAY = tuple(int(part) for part in ray.__version__.split("."))
METRIC = "episode_reward_mean"
ITERATIONS = 4
#: The trial that is broken off, and at which iteration: its last checkpoint is of the one before.
BROKEN_OFF = ("1e-05", 3)


def config(rates):
    """PPO on CartPole, as small as it can be."""
    lengths = {"rollout_fragment_length": 60, "train_batch_size": 60, "sgd_minibatch_size": 30}
    old = "min_time_s_per_reporting" if RAY >= (1, 10) else "min_iter_time_s"
    least = "min_time_s_per_iteration" if RAY >= (2,) else old
    return {
        "env": "CartPole-v0" if RAY < (1, 13) else "CartPole-v1",
        "lr": tune.grid_search(rates),
        "num_workers": 0,
        "num_sgd_iter": 1,
        "model": {"fcnet_hiddens": [4]},
        "metrics_smoothing_episodes" if RAY < (1, 10) else "metrics_num_episodes_for_smoothing": 5,
        least: 0,
        "seed": 3,
        # Ray 1.13 can't restore an optimizer of the torch that it is installed with.
        **({"use_pytorch": True} if RAY < (0, 8, 6) else {"framework": "torch"}),
        **({"framework": "tf"} if (1, 13) <= RAY < (2,) else {}),
        **lengths,
    }


def run(folder, name, rates, **how):
    """Trains one trial a rate, one after another."""
    if RAY < (1,):
        how["global_checkpoint_period"] = 0
    ray.init(num_cpus=1, **{"include_dashboard" if RAY > (1,) else "include_webui": False})
    if RAY >= (2, 7):
        from ray.train import CheckpointConfig

        kept = CheckpointConfig(2, "training_iteration", checkpoint_frequency=1)
        how.update(storage_path=str(folder), checkpoint_config=kept)
    else:
        how.update(local_dir=str(folder), checkpoint_freq=1, keep_checkpoints_num=2)
        how["checkpoint_score_attr"] = "training_iteration"
    return tune.run("PPO", name=name, config=config(rates), **{"verbose": 0, **how})


def breaks_off(trial_id, result):
    """Ends the process while the second trial trains."""
    at = (str(result["config"]["lr"]), result["training_iteration"])
    if at == BROKEN_OFF and "BREAKS_OFF" in os.environ:  # the function comes along to the resume
        ray.shutdown()
        os._exit(9)
    return result["training_iteration"] >= ITERATIONS


def iterations(folder):
    """What each trial has logged: iteration, steps, iterations since it was restored."""
    keys = ("training_iteration", "timesteps_total", "iterations_since_restore")
    return {
        name_of(file.parent, folder): [
            [json.loads(line)[key] for key in keys] for line in file.read_text().splitlines()
        ]
        for file in sorted(folder.glob("*/result.json"))
    }


def name_of(path, folder):
    """A path without the folder that it is below."""
    return str(path).replace(str(folder), "").strip("/")


def path_of(checkpoint, folder):
    """Where a checkpoint is: a path, or an object that shows it."""
    shown = str(
        checkpoint if isinstance(checkpoint, str) else getattr(checkpoint, "path", checkpoint)
    )
    return name_of(re.sub(r"Checkpoint\(local_path=(.*)\)", r"\1", shown), folder)


def plain(value):
    """A value as JSON takes it, with NaN as text."""
    if isinstance(value, float) and value != value:
        return "nan"
    return value.item() if hasattr(value, "item") else value


def analyses(folder):
    """What this Ray's analyses say of an experiment's folder."""
    found = {}
    state = str(sorted(folder.glob("experiment_state-*.json"))[-1])
    made = {"Analysis": lambda: tune.Analysis(str(folder))} if RAY < (1, 13) else {}
    made["ExperimentAnalysis"] = lambda: tune.ExperimentAnalysis(state)
    for kind, make in made.items():
        found[kind] = answers(make(), folder)
    return found


def answers(analysis, folder):
    """What an analysis answers, each by its own call."""
    frames = analysis.trial_dataframes
    best = {"metric": METRIC, "mode": "max"}

    def best_checkpoint():
        trial = analysis.get_best_logdir(**best)
        checkpoint = analysis.get_best_checkpoint(trial, **best)
        return path_of(checkpoint, folder)

    def trial_checkpoints():
        trial = analysis.get_best_logdir(**best)
        found = analysis.get_trial_checkpoints_paths(trial, "training_iteration")
        return [[name_of(path, folder), plain(value)] for path, value in found]

    calls = {
        "trial_dataframes": lambda: {
            name_of(key, folder): [plain(v) for v in frame["timesteps_total"]]
            for key, frame in frames.items()
            if len(frame)
        },
        "columns": lambda: sorted({column for frame in frames.values() for column in frame}),
        "get_all_configs": lambda: {
            name_of(key, folder): value["lr"] for key, value in analysis.get_all_configs().items()
        },
        "get_best_config": lambda: analysis.get_best_config(**best)["lr"],
        "get_best_logdir": lambda: name_of(analysis.get_best_logdir(**best), folder),
        "get_best_checkpoint": best_checkpoint,
        "get_trial_checkpoints_paths": trial_checkpoints,
        "dataframe": lambda: {
            name_of(row["logdir"], folder): plain(row[METRIC])
            for _, row in analysis.dataframe(METRIC, "max").iterrows()
        },
        "last": lambda: {
            name_of(row["logdir"], folder): int(row["training_iteration"])
            for _, row in analysis.dataframe().iterrows()
        },
        "results": lambda: {
            trial_id: result.get("training_iteration")
            for trial_id, result in analysis.results.items()
        },
        "trials": lambda: [[trial.trial_id, trial.status] for trial in analysis.trials],
        "best_trial": lambda: analysis.get_best_trial(METRIC, "max").trial_id,
        "last_checkpoint": lambda: path_of(
            analysis.get_last_checkpoint(metric=METRIC, mode="max"), folder
        ),
    }
    told = {}
    for name, call in calls.items():
        try:
            told[name] = call()
        except Exception as error:
            told[name] = {"error": type(error).__name__}
    return told


def work(step, folder):
    """What one process does."""
    if step == "finished":
        run(folder.parent, folder.name, [0.001, 0.0001], stop={"training_iteration": ITERATIONS})
    elif step == "interrupted":
        run(folder.parent, folder.name, [0.001, 1e-05, 0.0001], stop=breaks_off)
    elif step == "resume":
        run(
            folder.parent,
            folder.name,
            [0.001, 1e-05, 0.0001],
            stop={"training_iteration": ITERATIONS},
            resume=True,
        )
    else:
        print("ANSWERS " + json.dumps(analyses(folder)))


def call(step, folder):
    """Takes a step in a process of its own."""
    environment = dict(os.environ, TUNE_GLOBAL_CHECKPOINT_S="0", TUNE_RESULT_BUFFER_LENGTH="1")
    environment["RAY_AIR_LOCAL_CACHE_DIR"] = str(folder.parent / "cache")  # of this experiment
    if step == "interrupted":
        environment["BREAKS_OFF"] = "1"
    # State keeps the function that stops trials, and with it the name of the file it is from.
    script = shutil.copy(__file__, str(folder.parent))
    command = [sys.executable, script, "--step", step, str(folder)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False)
    assert done.returncode == (9 if step == "interrupted" else 0), (step, done.returncode)
    lines = done.stdout.decode().splitlines()
    found = [line[8:] for line in lines if line.startswith("ANSWERS ")]
    return json.loads(found[0]) if found else None


def without_prefix(data):
    """A file's bytes without the folder of this Python, which classes in pickles name."""
    there = sys.prefix.encode()
    neutral = b"/old/".ljust(len(there), b"x")
    data = data.replace(there, neutral)
    return data.replace(there.hex().encode(), neutral.hex().encode())


def main(out):
    """Makes both experiments."""
    for step in ("finished", "interrupted"):
        with tempfile.TemporaryDirectory(dir="/tmp") as temporary:
            folder = Path(temporary) / "experiment"
            call(step, folder)
            told = {"analyses": call("analyse", folder), "logged": iterations(folder)}
            kept = Path(temporary) / "kept"
            shutil.copytree(str(folder), str(kept))
            if step == "interrupted":
                call("resume", folder)
                told["resumed"] = iterations(folder)
            for pattern in ("events.out.tfevents.*", "basic-variant-state*", ".validate*"):
                for file in kept.rglob(pattern):
                    file.unlink()
            for file in kept.rglob("*"):
                if file.is_file():
                    file.write_bytes(without_prefix(file.read_bytes()))
            name = f"{ray.__version__}-{step}"
            target = Path(out) / name
            shutil.rmtree(str(target), ignore_errors=True)
            shutil.copytree(str(kept), str(target))
            (Path(out) / (name + ".json")).write_text(json.dumps(told, indent=1, sort_keys=True))


if __name__ == "__main__":
    if sys.argv[1] == "--step":
        work(sys.argv[2], Path(sys.argv[3]))
    else:
        main(sys.argv[1])
