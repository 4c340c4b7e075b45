"""Offline data: where recorded steps come from and where they go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_compat.config.context import Context
from rllib_compat.config.rule import Outcome, Rule, dropped, kept, needless, rllib_class
from rllib_compat.config.values import common as v
from rllib_compat.config.values.containers import ListOf
from rllib_compat.config.values.kinds import Kind, Words
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.report import Severity, Verdict
from rllib_compat.runtime.offline.files import find_files
from rllib_compat.runtime.offline.inputs import Readers, Recorded

FAMILY = "offline"
# What is read and written lies on the machine of whoever runs it: paths are theirs to give.
SOURCE = Words(("sampler",)) | v.PATHS | v.CODE
SINK = v.PATHS | v.CODE
FILESYSTEM = Words(("gcs", "s3", "abs")) | v.CODE
READ_METHOD = Words(
    tuple(
        f"read_{form}"
        for form in ("parquet", "json", "csv", "numpy", "tfrecords", "avro", "binary_files")
    )
)
WRITE_METHOD = Words(
    tuple(f"write_{form}" for form in ("parquet", "json", "csv", "numpy", "tfrecords"))
)
COLUMNS = ListOf(
    Words(
        (
            *("obs", "new_obs", "actions", "prev_actions", "rewards", "prev_rewards", "dones"),
            *("infos", "terminateds", "truncateds", "action_logp", "action_prob", "vf_preds"),
            *("advantages", "value_targets", "action_dist_inputs", "state_in", "state_out", "all"),
        )
    )
)
READ = "offline_data.input_read_"
TODAYS_WRITING = (
    "output_write_method",
    "output_write_episodes",
    "output_max_rows_per_file",
    "output_filesystem",
)
TODAYS_READING = ("input_read_method", "input_read_episodes", "input_read_sample_batches")


def _input(value: Any, context: Context) -> Outcome:
    if value == "sampler" and context.stack == "old":
        # Said aloud: an evaluation_config takes it over from a config that reads recordings.
        return Outcome({"offline_data.input_": value}, Verdict.KEPT)
    if value in (None, "sampler", ""):
        return Outcome(verdict=Verdict.DROPPED, message="steps are sampled from the environment")
    if context.stack == "old":
        if callable(value) or value == "dataset":
            return Outcome({"offline_data.input_": value}, Verdict.KEPT)
        return Outcome(
            {"offline_data.input_": Readers(value)},
            message="JSON files are read as before, without executing anything that is in them",
        )
    return Outcome()  # the new API stack was asked for, and is refused


def recorded(value: Any, context: Context) -> Outcome:
    """The `input` of an algorithm that learns offline on the new API stack."""
    if context.stack == "old" or value in (None, "sampler", ""):
        return _input(value, context)
    if value == "dataset":
        config = context.get("input_config") or {}
        value, form = config.get("paths", config.get("path")), config.get("format", "json")
        if value is None:
            return _refuse("a dataset that `input_config` loads with code", "write it as files")
        if form != "json":
            return Outcome({"offline_data.input_": value, **_reading(form, context)})
    if needs_old_readers(value):
        return Outcome()  # refused
    paths = list(value) if isinstance(value, tuple) else value
    one = paths if isinstance(paths, str) else "".join(paths)
    if any(context.get(key) is not None for key in TODAYS_READING) or "://" in one:
        return Outcome({"offline_data.input_": paths, **_reading("json", context)})
    settings = {
        "offline_data.input_": Recorded(paths),
        f"{READ}method": "read_parquet",
        f"{READ}episodes": True,
    }
    try:
        find_files(paths)
    except ConfigError as error:
        # Translating needs no recordings; training does.
        return Outcome(
            settings,
            severity=Severity.WARNING,
            message=f"{error.found} Training will need it",
            hint=error.fix or "",
        )
    return Outcome(
        settings,
        message="its JSON files are converted to episodes, which today's readers want whole",
    )


def _reading(form: str, context: Context) -> dict[str, Any]:
    """How legacy recordings are read, unless the config says it."""
    if any(context.get(key) for key in TODAYS_READING):
        return {}
    return {f"{READ}method": f"read_{form}", f"{READ}sample_batches": True}


def _refuse(what: str, fix: str) -> Outcome:
    return Outcome(
        verdict=Verdict.REFUSED,
        severity=Severity.ERROR,
        message=f"{what}: the new API stack's offline data can't do that",
        hint=fix,
    )


def _input_config(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({"offline_data.input_config": value}, Verdict.KEPT)
    if needless(value):
        return Outcome(verdict=Verdict.DROPPED, message="empty")
    if context.get("input", context.get("input_")) == "dataset":
        return Outcome(message="its paths and format are read with `input`")
    return Outcome({f"{READ}method_kwargs": value})


def _output(value: Any, context: Context) -> Outcome:
    if value is None:
        return Outcome(verdict=Verdict.DROPPED, message="nothing is written")
    if value == "logdir" and context.stack == "new":
        return Outcome(
            verdict=Verdict.REFUSED,
            severity=Severity.ERROR,
            message="a config alone does not know the trial's own directory",
            hint="give output= a path, or give the config to a Trainer of rllib_compat",
        )
    if context.stack == "new" and not writes_as_today(context):
        return Outcome(
            {"offline_data.output": value}, message="sample batches are written as JSON, as before"
        )
    return Outcome({"offline_data.output": value})


def writes_as_today(context: Context) -> bool:
    """Whether the config says how today's Ray is to write: Parquet, and not the JSON of before."""
    return any(context.get(key) is not None for key in TODAYS_WRITING)


def _max_file_size(value: Any, context: Context) -> Outcome:
    if context.stack == "old":
        return Outcome({"offline_data.output_max_file_size": value}, Verdict.KEPT)
    if writes_as_today(context):
        return Outcome(
            verdict=Verdict.DROPPED,
            message="files are bounded by rows, not by bytes",
            hint="give output_max_rows_per_file",
        )
    return Outcome(verdict=Verdict.KEPT, message="JSON files are bounded by it, as before")


def _only_code(value: Any) -> bool:
    """Whether only the old stack writes it: with code, or through Ray Data."""
    return callable(value) or value == "dataset"


def _old_only(key: str, why: str, value: Kind) -> Rule:
    return Rule(FAMILY, key, Verdict.DROPPED, why, old_target=f"offline_data.{key}", value=value)


def needs_old_readers(value: Any) -> bool:
    """Whether only the readers of the old stack read it: code, a mix of sources, D4RL."""
    d4rl = isinstance(value, str) and value.startswith("d4rl.")
    return d4rl or callable(value) or isinstance(value, Mapping)


def _needs_old(value: Any) -> bool:
    """Offline algorithms, which read recordings on the new API stack, have a rule of their own."""
    return value not in (None, "sampler", "")


RULES = (
    *(
        Rule(
            FAMILY,
            key,
            Verdict.RENAMED,
            "recordings of sample batches in JSON files",
            target="offline_data.input_",
            convert=_input,
            value=SOURCE,
            needs_old=_needs_old,
        )
        for key in ("input", "input_")
    ),
    Rule(
        FAMILY,
        "input_config",
        Verdict.RENAMED,
        "arguments of the reading function",
        target="offline_data.input_read_method_kwargs",
        old_target="offline_data.input_config",
        convert=_input_config,
        value=v.ARGUMENTS,
    ),
    Rule(
        FAMILY,
        "output",
        Verdict.KEPT,
        target="offline_data.output",
        convert=_output,
        value=SINK,
        needs_old=_only_code,
    ),
    *kept(
        FAMILY,
        "offline_data",
        {COLUMNS: "output_compress_columns"},
    ),
    *kept(
        FAMILY,
        "offline_data",
        {
            READ_METHOD: "input_read_method",
            WRITE_METHOD: "output_write_method",
            FILESYSTEM: "input_filesystem output_filesystem",
            v.ARGUMENTS: "input_read_method_kwargs input_filesystem_kwargs map_batches_kwargs "
            "iter_batches_kwargs prelearner_buffer_kwargs output_write_method_kwargs "
            "output_filesystem_kwargs",
            v.ARGUMENTS | v.CODE: "input_read_schema",
            v.FLAG: "input_read_episodes input_read_sample_batches materialize_data "
            "materialize_mapped_data ignore_final_observation "
            "prelearner_use_recorded_module_states output_write_remaining_data "
            "output_write_episodes",
            v.SOME: "input_read_batch_size prelearner_module_synch_period "
            "dataset_num_iters_per_learner output_max_rows_per_file",
            COLUMNS: "input_compress_columns",
        },
        old_target="",
    ),
    *(
        Rule(
            FAMILY,
            key,
            Verdict.KEPT,
            target=f"offline_data.{key}",
            old_target="",
            convert=rllib_class(f"offline_data.{key}"),
            value=v.CODE,
        )
        for key in ("offline_data_class", "prelearner_class", "prelearner_buffer_class")
    ),
    Rule(
        FAMILY,
        "output_max_file_size",
        Verdict.KEPT,
        "after how many bytes a new file begins",
        old_target="offline_data.output_max_file_size",
        convert=_max_file_size,
        value=v.SOME,
    ),
    Rule(
        FAMILY,
        "output_config",
        Verdict.RENAMED,
        "arguments of the writing function",
        target="offline_data.output_write_method_kwargs",
        old_target="offline_data.output_config",
        value=v.ARGUMENTS,
    ),
    _old_only("postprocess_inputs", "learner connectors compute advantages and returns", v.FLAG),
    _old_only("shuffle_buffer_size", "Ray Data shuffles; see iter_batches_kwargs", v.LENGTH),
    _old_only("actions_in_input_normalized", "recorded actions are taken as they are", v.FLAG),
    _old_only("offline_sampling", "the data says it", v.FLAG),
    *dropped(FAMILY, "input_spaces_jsonable _is_online", "an inner key of RLlib"),
)
