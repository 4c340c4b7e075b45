"""`ray.rllib.train` of Ray 0.5 – 2.2: its parser, and `run`, as `rllib-compat train` does."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import ray
from ray.tune import schedulers

from rllib_compat import tune
from rllib_compat.legacy.ray_api import DEFAULT_RESULTS_DIR
from rllib_compat.legacy.ray_api import init as init_ray
from rllib_compat.ray_versions.tune import make_parser
from rllib_compat.tune import experiments

__all__ = ["EXAMPLE_USAGE", "IS_NOTEBOOK", "create_parser", "main", "run"]

EXAMPLE_USAGE = """
train.py --run PPO --env CartPole-v0 --stop '{"training_iteration": 10}'
train.py -f experiments.yaml
"""
IS_NOTEBOOK = False

#: Flags beside those of Tune → arguments of `add_argument`; a flag without a type is a switch.
_FLAGS: dict[str, dict[str, Any]] = {
    "--ray-address": {"type": str, "help": "a running cluster"},
    "--ray-ui": {"help": "start the dashboard"},
    "--no-ray-ui": {"help": "do not start it (the default)"},
    "--local-mode": {"help": "ignored: Ray has none any more"},
    "--ray-num-cpus": {"type": int, "help": "CPUs of a Ray that is started"},
    "--ray-num-gpus": {"type": int, "help": "GPUs of a Ray that is started"},
    "--ray-num-nodes": {"type": int, "help": "start nodes with `ray start`"},
    "--ray-object-store-memory": {"type": int, "help": "bytes"},
    "--experiment-name": {"type": str, "default": "default", "help": "a folder's name"},
    "--local-dir": {"type": str, "default": DEFAULT_RESULTS_DIR, "help": "where results go"},
    "--upload-dir": {"type": str, "default": "", "help": "a URI for them"},
    "--framework": {"choices": ["tf", "tf2", "tfe", "torch"], "help": "the config's framework"},
    "-v": {"help": "log_level INFO"},
    "-vv": {"help": "log_level DEBUG"},
    "--resume": {"help": "continue an experiment"},
    "--trace": {"help": "eager_tracing"},
    "--env": {"type": str, "help": "an environment"},
    "--torch": {"help": "--framework torch"},
    "--eager": {"help": "--framework tfe"},
}
#: Flags that go into an experiment as they are.
_OF_AN_EXPERIMENT = (
    *("run", "checkpoint_freq", "checkpoint_at_end", "keep_checkpoints_num"),
    *("checkpoint_score_attr", "local_dir", "stop", "restore", "num_samples"),
)


def create_parser(parser_creator: Callable[..., Any] | None = None) -> Any:
    """The parser of the flags.

    Args:
        parser_creator: Makes a parser; by default that of argparse.
    """
    parser = make_parser(
        parser_creator,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Trains an algorithm.",
        epilog=EXAMPLE_USAGE,
    )
    for flag, arguments in _FLAGS.items():
        switch: dict[str, Any] = (
            {} if "type" in arguments or "choices" in arguments else {"action": "store_true"}
        )
        parser.add_argument(flag, **arguments, **switch)
    parser.add_argument("-f", "--config-file", type=str, help="a file of experiments")
    return parser


def run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Runs the experiments of a file or of flags.

    Args:
        args: The parsed flags.
        parser: The parser, which reports missing flags.
    """
    if args.config_file:
        found = experiments.read(args.config_file)
    else:
        spec = {name: getattr(args, name) for name in _OF_AN_EXPERIMENT}
        spec["config"] = dict(args.config, env=args.env)
        if args.upload_dir:
            spec["upload_dir"] = args.upload_dir
        found = {args.experiment_name: spec}
    for spec in found.values():
        config = spec.setdefault("config", {})
        if not spec.get("run"):
            parser.error("the following arguments are required: --run")
        if not spec.get("env") and not config.get("env"):
            parser.error("the following arguments are required: --env")
        config.update(_settings(args))
    init_ray(
        args.ray_address,
        include_dashboard=args.ray_ui,
        object_store_memory=args.ray_object_store_memory,
        num_cpus=args.ray_num_cpus,
        num_gpus=args.ray_num_gpus,
        local_mode=args.local_mode,
    )
    scheduler = schedulers.create_scheduler(args.scheduler, **args.scheduler_config)
    tune.run_experiments(found, scheduler=scheduler, resume=args.resume)
    ray.shutdown()


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    """The keys of each experiment's config that flags set."""
    framework = "torch" if args.torch else "tfe" if args.eager else args.framework
    level = "DEBUG" if args.vv else "INFO" if args.v else None
    keys = {"framework": framework, "log_level": level, "eager_tracing": args.trace or None}
    return {key: value for key, value in keys.items() if value is not None}


def main() -> None:
    """Runs the command line."""
    parser = create_parser()
    run(parser.parse_args(), parser)
