"""Learning from recorded steps, and recording them."""

from __future__ import annotations

from dataclasses import replace

from rllib_compat import registry
from rllib_compat.config.deferred import AdaptedEnv, EnvSpace, ImportedName, adapted
from rllib_compat.config.rule import Context, nested
from rllib_compat.config.rules.offline import writes_as_today
from rllib_compat.config.steps.step import ABSENT, COMPUTED, Change, SettingsView, Step
from rllib_compat.neutral.report import Severity, Verdict
from rllib_compat.ray_versions import configs
from rllib_compat.runtime.offline.files import Recording

OFFLINE = tuple(row.name for row in registry.trained() if row.offline)

SPACES = ("observation_space", "action_space")
CONTEXT = "environment.env_config"
INPUT = "offline_data.input_"
RUNNERS = "env_runners.num_env_runners"
PASSES = "offline_data.dataset_num_iters_per_learner"
OUTPUT, COMPRESSED = "offline_data.output", "offline_data.output_compress_columns"
WHOLE_EPISODES = "offline_data.output_write_episodes"
CALLBACKS = "callbacks.callbacks_class"
SAMPLED = "reporting.min_sample_timesteps_per_iteration"
TRAINED = "reporting.min_train_timesteps_per_iteration"


def _is_not_evaluated(given: SettingsView) -> bool:
    names = ("evaluation.evaluation_interval", "evaluation.evaluation_num_env_runners")
    return not any(given.get(name) for name in names)


def _spaces(given: SettingsView, context: Context) -> Change | None:
    missing = [name for name in SPACES if f"environment.{name}" not in given]
    if not missing or INPUT not in given or not _is_not_evaluated(given):
        return None
    env = nested({name: given.get(name) for name in given.below("env")}, "env")
    if env.get("env") is None:
        replace(context, id="settle.spaces").note(
            Verdict.REFUSED,
            ".env",
            "offline data alone does not say what the spaces are",
            Severity.ERROR,
            "pass env=, or observation_space and action_space",
        )
        return None
    env_config = given.get(CONTEXT) or {}
    return Change(
        {f"environment.{name}": EnvSpace(name, AdaptedEnv(env), env_config) for name in missing},
        "asked once for its spaces, as nothing is evaluated in it",
    )


def _trained_steps(given: SettingsView, _: Context) -> Change | None:
    sampled = given.get(SAMPLED)
    if not sampled:
        return None
    return Change(
        {SAMPLED: 0, TRAINED: given.get(TRAINED) if TRAINED in given else sampled},
        "offline algorithms sample nothing; it became min_train_timesteps_per_iteration",
    )


def _recorded_by_callbacks(given: SettingsView, context: Context) -> Change | None:
    output = given.get(OUTPUT)
    if not isinstance(output, str) or writes_as_today(context):
        return None
    compress = given.get(COMPRESSED)
    options = {
        "compress": None if compress is None else tuple(compress),
        "max_file_size": context.get("output_max_file_size"),
    }
    recording = Recording(output, **{k: v for k, v in options.items() if v is not None})
    callbacks = given.get(CALLBACKS)
    recorded = replace(adapted(callbacks), recording=recording)
    return Change({OUTPUT: ABSENT, COMPRESSED: ABSENT, CALLBACKS: recorded})


def _writes_fragments(given: SettingsView) -> bool:
    whole = given.get("env_runners.batch_mode") == "complete_episodes"
    return isinstance(given.get(OUTPUT), str) and not whole


STEPS = (
    Step(
        "cql_rates",
        "CQL has a rate for each network, as SAC; the installed Ray's `validate()` refuses `lr` "
        "beside them.",
        algorithms=("CQL",),
        stack="new",
        sets={"training.lr": None},
    ),
    Step(
        "offline",
        "A local learner needs the number of passes over the data in an iteration.",
        algorithms=OFFLINE,
        stack="new",
        reads=(PASSES, "learners.num_learners"),
        sets={PASSES: 1},
        key="train_batch_size",
        when=lambda g: not g.get("learners.num_learners") and g.get(PASSES) is None,
        message="one train batch per iteration, as before",
    ),
    Step(
        "readers",
        "Old workers read the recordings. Today's env runners sample nothing here, and keep CPUs "
        "from the tasks of Ray Data that read, which then wait for ever.",
        algorithms=OFFLINE,
        stack="new",
        reads=(RUNNERS, INPUT),
        sets={RUNNERS: 0},
        key="num_workers",
        when=lambda g: bool(g.get(RUNNERS)) and INPUT in g,
        message="Ray Data reads the recordings; env runners would sample nothing",
    ),
    Step(
        "readers_cpus",
        "What reads and what makes batches take a CPU each, beside each other; a machine of two "
        "has none for the third.",
        algorithms=OFFLINE,
        stack="new",
        sets={
            "offline_data.input_read_method_kwargs": {"ray_remote_args": {"num_cpus": 0}},
            "offline_data.map_batches_kwargs": {"num_cpus": 0},
        },
        unless_given=True,
    ),
    Step(
        "drawn_episodes",
        "Ray draws whole episodes from recordings, and puts all steps with one id into one "
        "sequence: an episode that is drawn twice has a new id each time.",
        algorithms=OFFLINE,
        stack="new",
        sets={"offline_data.prelearner_class": ImportedName("rllib_compat.adapters", "PreLearner")},
        when=lambda _: configs.takes_prelearners(),
        unless_given=True,
    ),
    Step(
        "spaces",
        "Without evaluation, offline algorithms make no environment, so the config sets its "
        "spaces.",
        algorithms=OFFLINE,
        stack="new",
        reads=(
            *(f"environment.{name}" for name in SPACES),
            "evaluation.evaluation_interval",
            "evaluation.evaluation_num_env_runners",
            INPUT,
            CONTEXT,
            "env",
        ),
        sets={f"environment.{name}": COMPUTED for name in SPACES},
        key="env",
        change=_spaces,
    ),
    Step(
        "offline_iterations",
        "What is read counts as trained, not as sampled; an iteration that waits for samples "
        "would never end.",
        algorithms=OFFLINE,
        stack="new",
        reads=(SAMPLED, TRAINED),
        sets={SAMPLED: 0, TRAINED: COMPUTED},
        key="min_sample_timesteps_per_iteration",
        change=_trained_steps,
    ),
    Step(
        "output_of_old_stack",
        "The old API stack's writers know no episodes; now `validate()` requires complete ones "
        "by default.",
        stack="old",
        reads=(OUTPUT,),
        sets={WHOLE_EPISODES: False},
        unless_given=True,
        when=lambda given: given.get(OUTPUT) is not None,
    ),
    Step(
        "recording",
        "The callbacks write sample batches as JSON, as before, unless the config says how today's "
        "Ray is to write.",
        stack="new",
        reads=(OUTPUT, COMPRESSED, CALLBACKS),
        sets={OUTPUT: ABSENT, COMPRESSED: ABSENT, CALLBACKS: COMPUTED},
        change=_recorded_by_callbacks,
    ),
    Step(
        "output",
        "Today's writer takes whole episodes or single steps; fragments that cut through episodes "
        "are single steps.",
        stack="new",
        reads=(OUTPUT, "env_runners.batch_mode"),
        sets={WHOLE_EPISODES: False},
        key="output",
        unless_given=True,
        when=_writes_fragments,
        message="single steps are written, as fragments cut through episodes",
    ),
)
