"""Steps over what samples: environments, the sizes of batches, recurrent state, evaluation.

Sizes have to fit into one another; an environment needs things because of what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from packaging.version import Version

from rllib_compat import registry
from rllib_compat.algorithms.legacy_training import collected_steps
from rllib_compat.config.defaults import todays_default
from rllib_compat.config.deferred import PreviousStepsConnector, adapted
from rllib_compat.config.rule import Context
from rllib_compat.config.steps.step import (
    ABSENT,
    COMPUTED,
    REPLAYING,
    Change,
    SettingsView,
    Step,
    are_counts,
)
from rllib_compat.neutral.report import Severity
from rllib_compat.ray_versions import configs
from rllib_compat.registry import keys as table
from rllib_compat.runtime.atari import clips_rewards, is_atari_name, is_registered_name

# Environments

PREPROCESSING, CLIPPING = "env.preprocessor_pref", "env.clip_rewards"
STACK, LSTM = "env.atari.framestack", "rl_module.model_config.use_lstm"
TASKS, CALLBACKS = "env.task_function", "callbacks.callbacks_class"

#: Who gives one of these wrote for a Ray that wraps no environment by itself.
_TODAYS_KEYS = ("num_env_runners", "num_learners", "enable_env_runner_and_connector_v2")
#: Up to this Ray, a recurrent network saw a single frame.
_STACKED = Version("0.6")
#: From this Ray on, it does not.
_NO_WRAPPERS = Version("2.40")

POLICIES = "multi_agent.policies"
SPACES = ("environment.observation_space", "environment.action_space")


def is_todays(context: Context) -> bool:
    """Whether a config was written for a Ray whose env runners wrap no Atari games."""
    if context.legacy_ray is not None:
        todays = Version(context.legacy_ray) >= _NO_WRAPPERS
        return todays or bool(context.get("enable_env_runner_and_connector_v2"))
    return any(key in context.config for key in _TODAYS_KEYS)


def _deepmind(given: SettingsView, context: Context) -> Change | None:
    env = given.get("env.env")
    is_game = is_atari_name(env)
    if env is None or (is_registered_name(env) and not is_game):
        return None
    if is_todays(context):  # whose new API stack never reads the key, default or not
        asked = PREPROCESSING in given and context.legacy_ray is None
        return None if asked else Change({PREPROCESSING: None})
    if not is_game:
        return None  # the adapters look at what it makes
    unstacked = context.legacy_ray is not None and Version(context.legacy_ray) < _STACKED
    single = {STACK: None} if unstacked and given.get(LSTM) else {}
    wrapped = given.get(PREPROCESSING) if PREPROCESSING in given else "deepmind"
    clipped = (
        given.get(CLIPPING) is None and wrapped == "deepmind" and clips_rewards(context.legacy_ray)
    )
    message = "an Atari game: the DeepMind wrappers, as by default before"
    return Change(
        {PREPROCESSING: wrapped} | ({CLIPPING: True} if clipped else {}) | single,
        "" if PREPROCESSING in given else message,
    )


def _curriculum(given: SettingsView, _: Context) -> Change | None:
    function = given.get(TASKS)
    if function is None:
        return None
    callbacks = replace(adapted(given.get(CALLBACKS)), task_function=function)
    return Change({TASKS: ABSENT, CALLBACKS: callbacks})


def _spaces(given: SettingsView, context: Context) -> Change | None:
    specs = given.get(POLICIES)
    said = {name: given.get(name) for name in SPACES if given.get(name) is not None}
    if not said or registry.of(context.algorithm).offline:
        return None
    unsaid = dict.fromkeys(said, ABSENT)
    if not context.has_policies:
        has_env = given.get("env.env") is not None
        return Change(unsaid, "the environment has them") if has_env else None
    shared = {name.rpartition(".")[2]: space for name, space in said.items()}
    by_agent = any(hasattr(space, "spaces") for space in said.values())
    if by_agent or not isinstance(specs, Mapping):
        return None
    policies = {n: replace(spec, fields={**shared, **spec.fields}) for n, spec in specs.items()}
    return Change({POLICIES: policies, **unsaid}, "they are for the policies that have none")


ENVIRONMENT = (
    Step(
        "told_spaces",
        "Spaces in the config were those of the policies that had none. Today's modules of a "
        "trainer with workers take them for what connectors have made, and those of several agents "
        "for a Dict of all.",
        stack="new",
        reads=(*SPACES, POLICIES, "env.env"),
        sets={POLICIES: COMPUTED, **dict.fromkeys(SPACES, ABSENT)},
        key="observation_space",
        change=_spaces,
    ),
    Step(
        "atari",
        "Until Ray 2.40, Atari games got the DeepMind wrappers and clipped rewards by themselves. "
        "gymnasium's names show which are games; anything else is asked. In Ray 0.5, recurrent "
        "networks saw single frames.",
        stack="new",
        reads=("env.env", PREPROCESSING, CLIPPING, LSTM),
        sets={PREPROCESSING: "deepmind", CLIPPING: True, STACK: COMPUTED},
        key="env",
        change=_deepmind,
    ),
    Step(
        "curriculum",
        "Ray asked `env_task_fn` itself until 2.40; the callbacks do, as they see each result.",
        reads=(TASKS, CALLBACKS),
        sets={TASKS: ABSENT, CALLBACKS: COMPUTED},
        key="env_task_fn",
        change=_curriculum,
    ),
)

# Batches, minibatches and fragments

FRAGMENT = "env_runners.rollout_fragment_length"
RUNNERS = "env_runners.num_env_runners"
ENVS = "env_runners.num_envs_per_env_runner"
BATCH = "training.train_batch_size_per_learner"
WHOLE_BATCH = "training.train_batch_size"
MINIBATCH = "training.minibatch_size"
LEARNERS = "learners.num_learners"
VECTORIZE_MODE = "env_runners.gym_env_vectorize_mode"
GPUS = "learners.num_gpus_per_learner"
STATE_SERVER = "env_runners.use_env_runner_state_server"
SAMPLED = "reporting.min_sample_timesteps_per_iteration"
TRAINED = "reporting.min_train_timesteps_per_iteration"
N_STEP = "training.n_step"

#: The first Ray whose PPO made fragments of its own of a train batch, the first that rounded up,
#: and the first that refused them instead.
_OWN_FRAGMENTS, _ROUNDED_UP, _REFUSED_FRAGMENTS = map(Version, ("1.4", "2.0", "2.2"))
#: The last Ray in which the fragments of DDPPO are a number of steps by default.
_LAST_DDPPO = "2.1.0"


def _one_env_per_runner(given: SettingsView, _: Context) -> Change | None:
    envs = given.get(ENVS)
    if "multi_agent.policies" not in given or not are_counts(envs) or envs <= 1:
        return None
    if configs.vectorizes_multi_agent_envs():
        return None
    message = f"the installed Ray steps one multi-agent environment per env runner, not {envs}"
    return Change({ENVS: 1}, message)


def _multi_agent_envs_here(given: SettingsView, context: Context) -> Change | None:
    several = "multi_agent.policies" in given or context.algorithm in ("MADDPG", "QMIX")
    if not several or given.get(VECTORIZE_MODE) in (None, configs.vectorize_mode("sync")):
        return None
    return Change({VECTORIZE_MODE: ABSENT}, "the environments of a worker are in its own process")


def _fragment_of_old_ddppo() -> Any:
    return table.default_at("DDPPO", "rollout_fragment_length", _LAST_DDPPO)[1]


def _own_fragments(given: SettingsView, context: Context) -> Change | None:
    fragment, envs = given.get(FRAGMENT), given.effective(ENVS)
    if given.get(BATCH) is not None and not are_counts(fragment):
        return None
    if fragment in (None, "auto") and context.get("rollout_fragment_length") in (None, "auto"):
        fragment = _fragment_of_old_ddppo()
    if not are_counts(fragment, envs):
        return None
    if fragment * envs == todays_default("DDPPO", BATCH)[1]:
        return Change({FRAGMENT: ABSENT, BATCH: ABSENT})
    said = f"each env runner learns from {fragment} steps of each of its {envs} environments"
    return Change({BATCH: fragment * envs, FRAGMENT: ABSENT}, said)


def _round_for_ppo(given: SettingsView, _: Context) -> Change | None:
    counts = runners, envs = given.effective(RUNNERS), given.effective(ENVS)
    fragment, minibatch = given.get(FRAGMENT), given.effective(MINIBATCH)
    if fragment is None:
        fragment = _fragment_of_old_ddppo()
    elif fragment == "auto" and are_counts(batch := given.effective(WHOLE_BATCH), envs):
        fragment = max(batch // envs, 1)  # from Ray 2.2 on, the batch is each worker's
    if not are_counts(*counts, fragment, minibatch):
        return None
    workers = max(runners, 1)
    changed = {WHOLE_BATCH: fragment * envs * workers, MINIBATCH: minibatch * workers}
    return Change(
        {**changed, FRAGMENT: fragment},
        f"on the old API stack, DDPPO is PPO: the algorithm's process learns from the fragments of "
        f"all workers, {changed[WHOLE_BATCH]} steps",
    )


def _round_of_fragments(given: SettingsView, _: Context) -> Change | None:
    counts = fragment, runners, envs = tuple(map(given.effective, (FRAGMENT, RUNNERS, ENVS)))
    if not are_counts(*counts):
        return None
    steps = fragment * max(runners, 1) * envs
    return Change(
        {WHOLE_BATCH: steps},
        f"on the old API stack, A3C is A2C: it waits for all workers, and learns once from the "
        f"{steps} steps of a fragment from each",
    )


def _total_and_envs(given: SettingsView) -> tuple[int, int] | None:
    """How many steps PPO's train batch has, of how many environments; None: not known yet."""
    batch, learners = given.get(WHOLE_BATCH) or given.effective(BATCH), given.get(LEARNERS) or 1
    runners, envs = given.effective(RUNNERS), given.effective(ENVS)
    if not are_counts(given.get(FRAGMENT), learners, batch, runners, envs):
        return None
    if min(given.get(FRAGMENT), batch, envs) < 1:
        return None
    return batch * learners if BATCH in given else batch, max(runners, 1) * envs


def _fragment_of_the_batch(given: SettingsView, context: Context) -> Change | None:
    ray = Version(context.legacy_ray or "0")
    counts = _total_and_envs(given)
    if counts is None or not _OWN_FRAGMENTS <= ray < _REFUSED_FRAGMENTS:
        return None
    (total, envs), fragment = counts, given.get(FRAGMENT)
    found = total // envs if ray < _ROUNDED_UP else -(-total // envs)
    if total % (envs * fragment) == 0 or found < 1:
        return None
    return Change(
        {FRAGMENT: found},
        f"fragments of {fragment} steps of each of {envs} environments don't make a batch of "
        f"{total}, and Ray 1.4 - 2.1 then sampled {found} steps of each",
    )


def _whole_rounds(given: SettingsView, context: Context) -> Change | None:
    counts = _total_and_envs(given)
    if counts is None:
        return None
    (total, envs), fragment = counts, given.get(FRAGMENT)
    learners = given.get(LEARNERS) or 1
    per_round = envs * fragment
    rounds = -(-total // per_round)
    if rounds * per_round - total <= 0.1 * total:
        return None
    name = WHOLE_BATCH if context.stack == "old" else BATCH
    said = "which is what RLlib trained on for the setting"
    if name == BATCH and context.legacy_ray and collected_steps(context.legacy_ray, context.config):
        said = "and a trainer asks some workers for a fragment less, as RLlib did, for the setting"
    return Change(
        {name: -(-rounds * per_round // (learners if name == BATCH else 1))},
        f"fragments come in rounds of {per_round} steps ({fragment} × {envs} environments); "
        f"{rounds} of them make {rounds * per_round} steps, {said} {total}",
    )


def _minibatch_that_fits(given: SettingsView, _: Context) -> Change | None:
    batch = given.get(WHOLE_BATCH) or given.effective(BATCH)
    minibatch = given.effective(MINIBATCH)
    if not are_counts(batch, minibatch) or minibatch <= batch:
        return None
    message = f"{minibatch} does not fit into a train batch of {batch}, which is taken instead"
    return Change({MINIBATCH: batch}, message)


def _fragment_of_n_steps(given: SettingsView, _: Context) -> Change | None:
    fragment, steps = given.get(FRAGMENT), given.effective(N_STEP) or 1
    if isinstance(steps, (list, tuple)):
        steps = steps[1]  # a range that n is drawn from
    if not are_counts(fragment, steps) or fragment >= steps:
        return None
    return Change({FRAGMENT: steps}, f"{fragment} is shorter than n_step={steps}")


def _one_step_at_least(given: SettingsView, _: Context) -> Change | None:
    """The old Rays' default was 0, which is what a config of theirs says that says nothing."""
    if given.get(SAMPLED):
        return None
    return Change({SAMPLED: 1}, "no iteration ends before a step was sampled, as in every Ray")


def _one_update_at_least(given: SettingsView, context: Context) -> Change | None:
    trained = context.get("multiagent.policies_to_train", context.get("policies_to_train"))
    if given.get(TRAINED) or trained in ([], ()):
        return None
    return Change({TRAINED: 1}, "no iteration ends before an update, as in every Ray")


def _gpu_in_this_process(given: SettingsView, _: Context) -> Change | None:
    if given.get(LEARNERS) not in (None, 1) or not given.get(GPUS):
        return None  # one remote learner is this Ray's default
    return Change({LEARNERS: 0}, "this Ray wants a single learner with a GPU in its own process")


BATCHES = (
    Step(
        "many_agents",
        "Ray 2.40's new API stack does not vectorize multi-agent environments; later releases do.",
        stack="new",
        reads=(ENVS, "multi_agent.policies"),
        sets={ENVS: 1},
        key="num_envs_per_worker",
        change=_one_env_per_runner,
        severity=Severity.WARNING,
    ),
    Step(
        "multi_agent_processes",
        "Ray steps multi-agent environments in the process of their env runner, never in processes "
        "of their own.",
        stack="new",
        reads=(VECTORIZE_MODE, "multi_agent.policies"),
        sets={VECTORIZE_MODE: ABSENT},
        key="remote_worker_envs",
        change=_multi_agent_envs_here,
        severity=Severity.WARNING,
    ),
    Step(
        "one_learner",
        "Learners in processes of their own do not learn from recordings a minibatch at a time, "
        "nor from sequences. What learns by no gradients has one learner.",
        algorithms=(
            *("CRR", "R2D2", "RNNSAC"),
            *("ARS", "ES", "BanditLinTS", "BanditLinUCB", "Random"),
        ),
        stack="new",
        reads=(LEARNERS,),
        sets={LEARNERS: ABSENT},
        key="num_gpus",
        when=lambda given: bool(given.get(LEARNERS)),
        message="it learns in the process of the algorithm, on one GPU at most",
        severity=Severity.WARNING,
    ),
    Step(
        "ddppo",
        "Each env runner of DDPPO learns from a fragment of each of its environments; 100 steps, "
        "where a config of Ray 0.8 - 2.1 does not say how many.",
        algorithms=("DDPPO",),
        stack="new",
        reads=(FRAGMENT, ENVS, BATCH),
        sets={BATCH: COMPUTED, FRAGMENT: ABSENT},
        key="rollout_fragment_length",
        change=_own_fragments,
    ),
    Step(
        "ddppo_learners",
        "Env runners of DDPPO learn themselves. RLlib refused a GPU for anybody else.",
        algorithms=("DDPPO",),
        stack="new",
        reads=(LEARNERS, GPUS),
        sets={LEARNERS: ABSENT, GPUS: ABSENT},
        key="num_gpus",
        when=lambda given: bool(given.get(LEARNERS) or given.get(GPUS)),
        message="env runners learn themselves; `num_gpus_per_worker` is what gives them GPUs",
        severity=Severity.WARNING,
    ),
    Step(
        "ddppo_old",
        "Env runners learn on the new API stack alone. On the old one DDPPO is PPO, which learns "
        "from a fragment of each worker.",
        algorithms=("DDPPO",),
        stack="old",
        reads=(FRAGMENT, RUNNERS, ENVS, MINIBATCH, WHOLE_BATCH),
        sets={WHOLE_BATCH: COMPUTED, MINIBATCH: COMPUTED, FRAGMENT: COMPUTED},
        key="num_workers",
        change=_round_for_ppo,
        severity=Severity.WARNING,
    ),
    Step(
        "a3c",
        "A3C's workers compute gradients on the new API stack alone. On the old one it is A2C, "
        "which learns from a fragment of each worker at once.",
        algorithms=("A3C",),
        stack="old",
        reads=(FRAGMENT, RUNNERS, ENVS),
        sets={WHOLE_BATCH: COMPUTED},
        key="num_workers",
        change=_round_of_fragments,
        severity=Severity.WARNING,
    ),
    Step(
        "learner",
        "IMPALA and APPO learned in the trainer's own process. Today they have a learner's by "
        "default, which waits for a CPU that the machine may not have. (Ray 2.41 and 2.42 "
        "ask for that one.)",
        algorithms=("IMPALA", "APPO"),
        stack="new",
        reads=(LEARNERS,),
        when=lambda _: configs.learns_in_its_process(),
        sets={LEARNERS: 0},
        key="num_learners",
        unless_given=True,
        message="it learns in the process of the algorithm, as it did; `num_learners` changes that",
    ),
    Step(
        "gpu_learner",
        "Ray 2.41 and 2.42 want a single learner of IMPALA or APPO that has a GPU in the process "
        "of the algorithm.",
        algorithms=("IMPALA", "APPO"),
        stack="new",
        reads=(LEARNERS, GPUS),
        when=lambda _: not configs.learns_in_its_process(),
        sets={LEARNERS: 0},
        key="num_learners",
        change=_gpu_in_this_process,
    ),
    Step(
        "state_server",
        "IMPALA's and APPO's workers were sent their weights. Since Ray 2.58 an actor of its own "
        "has them, and workers ask it before each sample: a process more, and a wait for each "
        "fragment, which pays where there are hundreds of workers.",
        algorithms=("IMPALA", "APPO"),
        stack="new",
        reads=(STATE_SERVER,),
        when=lambda _: configs.has_setting(STATE_SERVER),
        sets={STATE_SERVER: False},
        unless_given=True,
        key="num_workers",
        message="env runners are sent their weights, as they were; `use_env_runner_state_server` "
        "changes that",
    ),
    Step(
        "first_sample",
        "An iteration of IMPALA or APPO waited for a sample. Today one ends without, where workers "
        "are slow to start, and its result is empty.",
        algorithms=("IMPALA", "APPO"),
        stack="new",
        reads=(SAMPLED,),
        sets={SAMPLED: 1},
        key="timesteps_per_iteration",
        change=_one_step_at_least,
    ),
    Step(
        "first_update",
        "An iteration of IMPALA or APPO ended with an update, which its result included. Today one "
        "ends without, where fewer steps than a train batch were sampled.",
        algorithms=("IMPALA", "APPO"),
        stack="new",
        reads=(TRAINED,),
        sets={TRAINED: 1},
        key="min_train_timesteps_per_reporting",
        change=_one_update_at_least,
    ),
    Step(
        "fragment_of_the_batch",
        "Where whole rounds of fragments did not make a train batch, PPO of Ray 1.4 - 2.1 changed "
        "the length of fragments: the batch, divided by all environments, rounded down, and up "
        "since Ray 2.0. Rounded down, one round was not enough, and it sampled two.",
        algorithms=("PPO",),
        reads=(FRAGMENT, RUNNERS, ENVS, LEARNERS, BATCH, WHOLE_BATCH),
        sets={FRAGMENT: COMPUTED},
        key="rollout_fragment_length",
        change=_fragment_of_the_batch,
    ),
    Step(
        "fragment",
        "PPO takes whole rounds of fragments from all environments. Today's `validate()` asks that "
        "they come within 10 % of the train batch; RLlib used to train on however many there were.",
        algorithms=("PPO",),
        reads=(FRAGMENT, RUNNERS, ENVS, LEARNERS, BATCH, WHOLE_BATCH),
        sets={BATCH: COMPUTED, WHOLE_BATCH: COMPUTED},
        key="train_batch_size",
        change=_whole_rounds,
    ),
    Step(
        "minibatch",
        "PPO's minibatch has to fit into its train batch.",
        algorithms=("PPO", "DDPPO"),
        reads=(MINIBATCH, BATCH, WHOLE_BATCH),
        sets={MINIBATCH: COMPUTED},
        key="sgd_minibatch_size",
        change=_minibatch_that_fits,
    ),
    Step(
        "n_step",
        "A fragment of an off-policy algorithm holds at least one n-step return.",
        algorithms=REPLAYING,
        reads=(FRAGMENT, N_STEP),
        sets={FRAGMENT: COMPUTED},
        key="rollout_fragment_length",
        change=_fragment_of_n_steps,
    ),
)

# Evaluation

PARALLEL = "evaluation.evaluation_parallel_to_training"
EVALUATION_RUNNERS = "evaluation.evaluation_num_env_runners"
DURATION = "evaluation.evaluation_duration"


def _fixed_duration(given: SettingsView, context: Context) -> Change | None:
    if given.get(DURATION) != "auto" or given.get(PARALLEL) is True:
        return None
    duration = todays_default(context.algorithm, DURATION)[1]
    message = f"'auto' needs parallel evaluation; {duration}, Ray's default, is taken"
    return Change({DURATION: duration}, message)


EVALUATION = (
    Step(
        "evaluation",
        "Evaluation in parallel to training needs env runners of its own.",
        reads=(PARALLEL, EVALUATION_RUNNERS),
        sets={PARALLEL: False},
        key="evaluation_parallel_to_training",
        when=lambda given: given.get(PARALLEL) is True and not given.get(EVALUATION_RUNNERS),
        message="there are no evaluation env runners that could work in parallel",
        severity=Severity.WARNING,
    ),
    Step(
        "evaluation_duration",
        'A duration of "auto" lasts as long as training does, so it needs parallel evaluation.',
        reads=(DURATION, PARALLEL),
        sets={DURATION: COMPUTED},
        key="evaluation_duration",
        change=_fixed_duration,
        severity=Severity.WARNING,
    ),
)

# Recurrent networks

SEQUENCE_LENGTH = "rl_module.model_config.max_seq_len"
LSTM = "rl_module.model_config.use_lstm"

PREVIOUS_ACTION, PREVIOUS_REWARD = (
    f"rl_module.model_config.lstm_use_prev_{what}" for what in ("action", "reward")
)
CONNECTOR = "env_runners.env_to_module_connector"


def _length(given: SettingsView, context: Context) -> Change | None:
    if given.get(LSTM) is not True or SEQUENCE_LENGTH in given:
        return None
    length = todays_default(context.algorithm, SEQUENCE_LENGTH)[1]
    return Change({SEQUENCE_LENGTH: length}, f"sequences of {length} steps, as by default before")


def _minibatch_of_a_sequence(given: SettingsView, _: Context) -> Change | None:
    size, length = given.effective(MINIBATCH), given.get(SEQUENCE_LENGTH)
    learners = given.get(LEARNERS)
    if given.get(LSTM) is not True or not are_counts(learners, size, length):
        return None
    if learners < 2 or size >= length:
        return None
    message = f"a minibatch of {size} steps has no sequence, whose {length} steps are taken instead"
    return Change({MINIBATCH: length}, message)


def _previous(given: SettingsView, context: Context) -> Change | None:
    asked = {name: given.get(name) for name in (PREVIOUS_ACTION, PREVIOUS_REWARD) if name in given}
    if not any(value is True for value in asked.values()):
        return None
    if given.get(LSTM) is not True and context.algorithm != "RNNSAC":
        settings = {name: ABSENT for name, value in asked.items() if value is True}
        return Change(settings, "only networks with an LSTM look at the step before")
    connector = PreviousStepsConnector(
        actions=int(asked.get(PREVIOUS_ACTION) is True),
        rewards=int(asked.get(PREVIOUS_REWARD) is True),
        multi_agent=context.has_policies,
        inner=given.get(CONNECTOR),
    )
    return Change({CONNECTOR: connector}, "what was done and given before goes into the LSTM")


def _asks_for_steps(given: SettingsView) -> bool:
    return any(given.get(name) is True for name in (PREVIOUS_ACTION, PREVIOUS_REWARD))


SEQUENCES = (
    Step(
        "previous-steps-of-recordings",
        "A connector puts the step before behind an observation when that is made. Recorded "
        "observations are there already, and have none.",
        reads=(PREVIOUS_ACTION, PREVIOUS_REWARD),
        sets={PREVIOUS_ACTION: ABSENT, PREVIOUS_REWARD: ABSENT},
        key="model.lstm_use_prev_action",
        algorithms=("BC", "MARWIL"),
        stack="new",
        when=_asks_for_steps,
        message="recorded observations have no step before behind them: the LSTM sees them alone",
        severity=Severity.WARNING,
    ),
    Step(
        "previous-steps",
        "Ray has `lstm_use_prev_action` and `lstm_use_prev_reward`, and looks at neither. A "
        "connector puts both behind the observation; networks of a trainer, R2D2 and RNNSAC let "
        "them into the LSTM past the dense layers, as before, other networks into the layers.",
        reads=(PREVIOUS_ACTION, PREVIOUS_REWARD, LSTM, CONNECTOR),
        sets={PREVIOUS_ACTION: ABSENT, PREVIOUS_REWARD: ABSENT, CONNECTOR: COMPUTED},
        key="model.lstm_use_prev_action",
        stack="new",
        change=_previous,
    ),
    Step(
        "lstm",
        "A module with an LSTM needs the length of its sequences.",
        reads=(LSTM, SEQUENCE_LENGTH),
        sets={SEQUENCE_LENGTH: COMPUTED},
        key="model.use_lstm",
        change=_length,
    ),
    Step(
        "sequences",
        "Several learners of PPO make Ray's minibatches, which are empty where they have fewer "
        "steps than a sequence: a KeyError of Ray.",
        algorithms=("PPO",),
        stack="new",
        reads=(MINIBATCH, LEARNERS, SEQUENCE_LENGTH, LSTM),
        sets={MINIBATCH: COMPUTED},
        key="sgd_minibatch_size",
        change=_minibatch_of_a_sequence,
        severity=Severity.WARNING,
    ),
)
