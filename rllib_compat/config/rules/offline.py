"""Conversions of recorded data: where recorded steps come from and where they go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_compat import registry
from rllib_compat.config.rule import Context, Outcome, drop, is_off, refuse
from rllib_compat.config.rules.common import for_new_stack
from rllib_compat.neutral.deferred import PublicCall
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.report import Severity, Verdict
from rllib_compat.ray_versions import tune
from rllib_compat.registry import keys
from rllib_compat.runtime.offline.files import find_files
from rllib_compat.runtime.offline.inputs import Readers

_INPUT, _READ = "offline_data.input_", "offline_data.input_read_"
_TODAYS_READING = ("input_read_method", "input_read_episodes", "input_read_sample_batches")
_TODAYS_WRITING = (
    "output_write_method",
    "output_write_episodes",
    "output_max_rows_per_file",
    "output_filesystem",
)


def input_of_sampling(value: object, context: Context) -> Outcome:
    """The `input` of an algorithm that samples, which only the old API stack mixes with files."""
    if value == "sampler" and context.stack == "old":
        # It is set: an evaluation_config takes it over from a config that reads recordings.
        return Outcome({_INPUT: value}, Verdict.KEPT)
    if not reads_files(value):
        return drop("steps are sampled from the environment")
    if context.stack != "old":
        return Outcome()  # the new API stack was asked for, and is refused
    if callable(value) or value == "dataset":
        return Outcome({_INPUT: value}, Verdict.KEPT)
    message = "JSON files are read as before, without executing anything that is in them"
    return Outcome({_INPUT: Readers(value)}, message=message)


def input_of_offline(value: Any, context: Context) -> Outcome:
    """The `input` of an algorithm that learns offline on the new API stack."""
    if context.stack == "old" or not reads_files(value):
        return input_of_sampling(value, context)
    if value == "dataset":
        config = context.get("input_config") or {}
        value, form = config.get("paths", config.get("path")), config.get("format", "json")
        if value is None:
            what = "a dataset that `input_config` loads with code"
            message = f"{what}: the new API stack's offline data can't do that"
            return refuse(message, "write it as files")
        if form != "json":
            return Outcome({_INPUT: value, **_reading(form, context)})
    if needs_old_readers(value):
        return Outcome()  # refused
    paths = list(value) if isinstance(value, tuple) else value
    one = paths if isinstance(paths, str) else "".join(paths)
    if any(context.get(key) is not None for key in _TODAYS_READING) or "://" in one:
        return Outcome({_INPUT: paths, **_reading("json", context)})
    settings = {
        _INPUT: PublicCall("as_parquet", (paths,)),
        f"{_READ}method": "read_parquet",
        f"{_READ}episodes": True,
    }
    try:
        find_files(paths)
    except ConfigError as error:
        # Translating needs no recordings; training does.
        message = f"{error.found} Training will need it"
        return Outcome(settings, None, message, Severity.WARNING, error.fix or "")
    message = (
        "its JSON files are converted to episodes, since the installed Ray reads "
        "complete episodes only"
    )
    return Outcome(settings, message=message)


def _reading(form: str, context: Context) -> dict[str, Any]:
    """How legacy recordings are read, unless the config says it."""
    if any(context.get(key) for key in _TODAYS_READING):
        return {}
    return {f"{_READ}method": f"read_{form}", f"{_READ}sample_batches": True}


def reads_files(value: object) -> bool:
    """Whether an `input` is anything but the environment."""
    return value not in (None, "sampler", "")


def learns_on_old_stack(algorithm: str, config: Mapping[str, Any]) -> bool:
    """Whether only the old API stack trains an offline algorithm with a config.

    Today's calls its policy `default_policy`, and reads recordings alone; MARWIL and BC have always
    learned from what they sampled, too, also with several policies.

    Raises:
        ConfigError: No stack does.
    """
    row = registry.of(algorithm)
    if not row.offline:
        return False
    recorded = any(reads_files(config.get(key)) for key in ("input", "input_"))
    policies = keys.policies_of(config).keys()
    if len(policies) > 1 and (recorded or row.new_stack_only):
        raise ConfigError(
            f"{algorithm} trains one policy on recordings, and the config has "
            f"{', '.join(sorted(map(str, policies)))}.",
            where="multiagent.policies",
            fix="Train each policy separately, with the recordings of its agents.",
        )
    if not recorded and algorithm == "CQL":
        raise ConfigError(
            "CQL trains on recordings, and the config has none.",
            where="input",
            fix="Set `input` to the path of recordings, or train SAC in the environment.",
        )
    if row.new_stack_only:
        return False
    return not recorded or bool(policies - {"default_policy"})


def needs_old_readers(value: object) -> bool:
    """Whether only the readers of the old stack read it: code, a mix of sources, D4RL."""
    d4rl = isinstance(value, str) and value.startswith("d4rl.")
    is_code = callable(value) or tune.is_registered_input(value)
    return d4rl or is_code or isinstance(value, Mapping)


def needs_old_writers(value: object) -> bool:
    """Whether only the old stack writes it: with code, or through Ray Data."""
    return callable(value) or value == "dataset"


@for_new_stack
def input_config(value: object, context: Context) -> Outcome:
    """Arguments of the reading function."""
    if is_off(value):
        return drop("empty")
    if context.get("input", context.get("input_")) == "dataset":
        return Outcome(message="its paths and format are read with `input`")
    return Outcome({context.target: value})


def output(value: object, context: Context) -> Outcome:
    """Where sampled steps are written."""
    if value is None:
        return drop("nothing is written")
    if value == "logdir" and context.stack == "new":
        return refuse(
            "a config alone does not know the trial's own directory",
            "give output= a path, or give the config to a Trainer of rllib_compat",
        )
    as_before = context.stack == "new" and not writes_as_today(context)
    message = "sample batches are written as JSON, as before" if as_before else ""
    return Outcome({context.target: value}, message=message)


def writes_as_today(context: Context) -> bool:
    """Whether the config says how today's Ray is to write: Parquet, and not the JSON of before."""
    return any(context.get(key) is not None for key in _TODAYS_WRITING)


@for_new_stack
def output_max_file_size(_: object, context: Context) -> Outcome:
    """After how many bytes a new file begins."""
    if writes_as_today(context):
        hint = "give output_max_rows_per_file"
        return drop("files are bounded by rows, not by bytes", hint=hint)
    return Outcome(verdict=Verdict.KEPT, message="JSON files are bounded by it, as before")
