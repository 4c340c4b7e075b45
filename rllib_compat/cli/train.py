"""`rllib-compat train`: what `rllib train` did until Ray 2.x lost it."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rllib_compat.cli import named_modules, options, output
from rllib_compat.neutral.errors import ConfigError

if TYPE_CHECKING:
    from rllib_compat.tune.experiments import Experiment

# Flags that have no meaning today, and why. They are still taken: old scripts give them.
GONE = {
    "ray_redis_max_memory": "Ray needs no Redis any more",
    "ray_memory": "Ray limits no memory of workers by this any more",
    "local_mode": "Ray has no local mode any more; pass --num-workers 0 to sample in one process",
    "no_ray_ui": "the dashboard is off unless you pass --ray-ui",
    "sync_on_checkpoint": "what is below the storage path is synchronized by Ray",
    "sync_function": "what is below the storage path is synchronized by Ray",
    "loggers": "json, csv and TensorBoard are written anyway",
    "trial_name_creator": "trials are named after the class and the environment",
    "export_formats": "use `trainer.export_policy_model` or `rllib-compat convert` on a checkpoint",
    "ray_num_nodes": "start nodes with `ray start` and pass --ray-address",
}


class _Json(click.ParamType):  # type: ignore[type-arg,unused-ignore] # click 8.0 – 8.5
    """JSON text of a dict."""

    name = "JSON"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, Any]:
        try:
            read = json.loads(value) if isinstance(value, str) else value
        except (ValueError, RecursionError) as error:
            self.fail(f"{error}: {value[:200]}", param, ctx)
        if not isinstance(read, dict):
            self.fail(f"not a dict: {value[:200]}", param, ctx)
        return read


_GROUPS = {
    "What to train": "config_file run env config framework torch eager trace num_workers num_gpus "
    "legacy_ray on_unknown",
    "Experiments": "stop experiment_name num_samples scheduler scheduler_config max_failures",
    "Results and checkpoints": "local_dir upload_dir checkpoint_freq checkpoint_at_end "
    "keep_checkpoints_num checkpoint_score_attr restore resume",
    "Resources and Ray": "resources_per_trial trial_resources queue_trials ray_address "
    "ray_num_cpus ray_num_gpus ray_object_store_memory ray_ui",
}


@click.command("train", cls=options.GroupedCommand, groups=_GROUPS)
@click.argument("words", nargs=-1, metavar="[[file] FILE]")
@click.option("-f", "--config-file", metavar="FILE", help="A YAML or JSON file of experiments.")
@click.option("--run", "--algo", "-r", "-a", help="The algorithm, by its name of any era.")
@click.option("--env", "-e", help="The environment: a name, or module:Class.")
@click.option("--config", "-c", type=_Json(), help="The legacy config.")
@click.option("--stop", "-s", type=_Json(), help="e.g. '{\"episode_reward_mean\": 150}'.")
@click.option("--experiment-name", "-n", help="The folder below --local-dir.  [default: default]")
@click.option("--local-dir", help="Where results go.  [default: ~/ray_results]")
@click.option("--upload-dir", help="The same at a URI, e.g. s3://bucket.")
@click.option("--num-samples", type=click.IntRange(1), help="How often each trial is run.")
@click.option("--checkpoint-freq", type=click.IntRange(0), help="Iterations between checkpoints.")
@click.option("--checkpoint-at-end/--no-checkpoint-at-end", default=None, help="One at the end.")
@click.option("--keep-checkpoints-num", type=click.IntRange(1), help="How many are kept.")
@click.option("--checkpoint-score-attr", help="Which are kept: the largest, with min- the least.")
@click.option(
    "--restore",
    type=options.LocalPath(),
    metavar="CHECKPOINT",
    help="Continue from a checkpoint of any Ray.",
)
@click.option("--resume", is_flag=True, help="Continue an experiment that was interrupted.")
@click.option(
    "--max-failures",
    type=click.IntRange(-1),
    help="Restarts of a trial.  [default: 3 with checkpoints]",
)
@click.option("--resources-per-trial", type=_Json(), help="Trainers know what they need.")
@click.option("--trial-resources", type=_Json(), help="The same, in Ray 0.5.")
@click.option("--scheduler", default="FIFO", help="FIFO, HyperBand, AsyncHyperBand, …")
@click.option("--scheduler-config", type=_Json(), default="{}", help="Its arguments.")
@click.option("--queue-trials", is_flag=True, help="Wait for nodes that have what a trial needs.")
@click.option(
    "--framework", type=click.Choice(["tf", "tf2", "tfe", "torch"]), help="As config key."
)
@click.option("--torch", is_flag=True, help="--framework torch.")
@click.option("--eager", is_flag=True, help="--framework tfe.")
@click.option("--trace", is_flag=True, help="eager_tracing: True.")
@click.option("--num-workers", type=click.IntRange(0), help="In the place of the config's.")
@click.option("--num-gpus", type=click.FloatRange(0), help="In the place of the config's.")
@options.legacy_ray_option
@options.on_unknown_option
@click.option("--ray-address", "--redis-address", help="Use the cluster at this address.")
@click.option("--ray-num-cpus", type=click.IntRange(0), help="CPUs of the Ray that is started.")
@click.option("--ray-num-gpus", type=click.IntRange(0), help="GPUs of the Ray that is started.")
@click.option("--ray-object-store-memory", type=click.IntRange(1), help="Bytes.")
@click.option("--ray-ui", is_flag=True, help="Start Ray's dashboard.")
@click.option("--no-ray-ui", is_flag=True, hidden=True)
@click.option("--local-mode", is_flag=True, hidden=True)
@click.option("--sync-on-checkpoint", is_flag=True, hidden=True)
@click.option("--sync-function", hidden=True)
@click.option("--loggers", hidden=True)
@click.option("--trial-name-creator", hidden=True)
@click.option("--export-formats", hidden=True)
@click.option("--ray-memory", hidden=True)
@click.option("--ray-redis-max-memory", hidden=True)
@click.option("--ray-num-nodes", hidden=True)
@click.option("--dry-run", is_flag=True, help="Translate and check, and start nothing.")
@options.json_option
@click.option("-v", "--verbose", count=True, help="log_level INFO; -vv: DEBUG. Show every row.")
@options.strict_option
def command(words: tuple[str, ...], config_file: str | None, strict: bool, **given: Any) -> int:
    """Trains as `rllib train` did, from an experiment file or from flags.

    The flags are those of Ray 0.5 - 2.5. With a file, a flag that is given replaces what the file
    says (until Ray 2.x, the file won). Flags that mean nothing any more say so.

    \b
    Examples:
      rllib-compat train --run PPO --env CartPole-v0 --stop '{"episode_reward_mean": 150}'
      rllib-compat train -f cartpole-ppo.yaml --legacy-ray 0.8.7 --checkpoint-at-end
      rllib-compat train file atari-ppo.yaml --num-workers 4 --num-gpus 0
      rllib-compat train -f old/*.yaml --dry-run
    """
    ignored = [
        f"--{name.replace('_', '-')}: {why}" for name, why in GONE.items() if given.pop(name)
    ]
    for sentence in ignored:
        output.progress(f"{sentence}.")
    # Data goes to stdout, and what workers print is none.
    with contextlib.redirect_stdout(sys.stderr):
        experiments = _experiments(_files(words, config_file), given)
        if not given["as_json"]:
            for experiment in experiments:
                output.report(experiment.report, verbose=given["verbose"])
        trials = [] if given["dry_run"] else _run(experiments, given)
    if given["as_json"]:
        output.emit_json(
            {"experiments": [_plain(e) for e in experiments], "trials": trials, "flags": ignored}
        )
    elif trials:
        _show(trials)
    if any(trial["status"] == "ERROR" for trial in trials):
        return 2
    found = ignored or any(experiment.report.exit_code for experiment in experiments)
    return int(strict and bool(found))


def _files(words: tuple[str, ...], config_file: str | None) -> list[str]:
    """The files of `-f FILE`, `FILE` and `file FILE`, which Ray 2.1 began to say."""
    named = list(words[1:] if words[:1] == ("file",) else words)
    return [*([config_file] if config_file else []), *named]


def _experiments(files: list[str], given: dict[str, Any]) -> list[Experiment]:
    from rllib_compat.config.evidence import find_evidence
    from rllib_compat.tune import experiments

    spec = {
        "run": given["run"],
        "env": given["env"],
        "stop": given["stop"],
        "checkpoint_freq": given["checkpoint_freq"],
        "checkpoint_at_end": given["checkpoint_at_end"],
        "keep_checkpoints_num": given["keep_checkpoints_num"],
        "checkpoint_score_attr": given["checkpoint_score_attr"],
        "restore": given["restore"] and str(given["restore"].absolute()),
        "num_samples": given["num_samples"],
        "max_failures": given["max_failures"],
        "resources_per_trial": given["resources_per_trial"] or given["trial_resources"],
        "local_dir": given["upload_dir"] or given["local_dir"],
    }
    spec = {name: value for name, value in spec.items() if value is not None}
    if files and given["experiment_name"]:
        raise click.UsageError("-f names its experiments itself; leave --experiment-name out.")
    specs: dict[str, dict[str, Any]] = {}
    for file in files:
        found = experiments.read(file)
        if twice := specs.keys() & found.keys():
            raise ConfigError(
                f"Two files define the experiment {twice.pop()!r}.",
                where=file,
                fix="Rename the experiment in one of the files.",
            )
        specs |= found
    specs = specs or {given["experiment_name"] or "default": {}}
    keys = {**(given["config"] or {}), **_config_keys(given)}
    for name, one in specs.items():
        config = one.get("config") or {}
        replaced = [*(one.keys() & spec.keys()), *(f"config.{k}" for k in config.keys() & keys)]
        if replaced:
            names = ", ".join(sorted(replaced))
            output.progress(f"{name}: the flags replace {names} of the file.")
        specs[name] = {**one, **spec}
    if not given["dry_run"]:
        named_modules.find_modules(specs, keys)  # such as an environment beside the file
    return experiments.prepare(
        specs,
        keys=keys,
        legacy_ray=given["legacy_ray"],
        evidence=find_evidence(Path(files[0]).parent if files else Path.cwd()),
        on_unknown=given["on_unknown"],
    )


def _config_keys(given: dict[str, Any]) -> dict[str, Any]:
    framework = given["framework"] or ("tfe" if given["eager"] else None)
    keys = {
        "framework": "torch" if given["torch"] else framework,
        "eager_tracing": given["trace"] or None,
        "log_level": {0: None, 1: "INFO"}.get(given["verbose"], "DEBUG"),
        "num_workers": given["num_workers"],
        "num_gpus": given["num_gpus"],
    }
    return {name: value for name, value in keys.items() if value is not None}


def _run(experiments: list[Experiment], given: dict[str, Any]) -> list[dict[str, Any]]:
    """Runs all experiments at the same time, as Tune has resources for them."""
    import ray
    from ray.tune.schedulers import create_scheduler

    from rllib_compat import tune
    from rllib_compat.ray_versions import startup
    from rllib_compat.tune.experiments import check_resources
    from rllib_compat.tune.progress import Progress, summary

    for experiment in experiments:
        if not experiment.spec.get("stop"):
            output.progress(f"{experiment.name} has no stop criterion: end it with Ctrl-C.")
    with startup.quiet_logs(), contextlib.ExitStack() as after:
        if not ray.is_initialized():
            named_modules.find_in_workers()
            ray.init(
                address=given["ray_address"],
                num_cpus=given["ray_num_cpus"],
                num_gpus=given["ray_num_gpus"],
                object_store_memory=given["ray_object_store_memory"],
                include_dashboard=given["ray_ui"],
                job_config=startup.job_without_working_directory(),
            )
            after.callback(ray.shutdown)
        if not given["queue_trials"]:
            check_resources(experiments, ray.cluster_resources())
        try:
            scheduler = create_scheduler(given["scheduler"], **given["scheduler_config"])
        except (TypeError, ValueError) as error:
            raise ConfigError(
                str(error),
                where="--scheduler, --scheduler-config",
                fix="Correct the name of the scheduler and the names of its arguments.",
            ) from error
        trials = tune.run_experiments(
            {experiment.name: experiment.spec for experiment in experiments},
            scheduler=scheduler,
            resume=given["resume"],
            verbose=2 if given["verbose"] else 0,
            callbacks=[Progress(output.progress)],
            raise_on_failed_trial=False,
        )
        return [summary(trial) for trial in trials]


def _plain(experiment: Experiment) -> dict[str, Any]:
    return {
        "experiment": experiment.name,
        "spec": {k: v for k, v in experiment.spec.items() if k != "run"},
        "report": experiment.report.to_dict(),
    }


def _show(trials: list[dict[str, Any]]) -> None:
    from rllib_compat.tune.progress import numbers

    columns = ("trial", "status", "stopped by", "iteration", "steps", "seconds", "reward")
    rows = [
        (t["trial"], t["status"].lower(), t["stopped_by"] or "–", *numbers(t)[:4]) for t in trials
    ]
    output.table("trials", columns, rows)
    for trial in trials:
        what = trial["error_file"] or trial["checkpoint"] or trial["folder"]
        kind = (
            "error" if trial["error_file"] else "checkpoint" if trial["checkpoint"] else "results"
        )
        click.echo(f"{kind} of {trial['trial']}: {what}")
        if kind == "checkpoint":
            # A checkpoint's own name of a class is not imported.
            named = f" --env {shlex.quote(trial['env'])}" if ":" in trial["env"] else ""
            click.echo(f"  rllib-compat evaluate {shlex.quote(what)}{named}")
