"""What environments need because of what they are."""

from __future__ import annotations

from dataclasses import replace

from packaging.version import Version

from rllib_compat.config.context import Context
from rllib_compat.config.deferred import adapted
from rllib_compat.config.steps.step import ABSENT, COMPUTED, Change, Given, Step
from rllib_compat.runtime.atari import clips
from rllib_compat.runtime.atari_names import is_atari_name, is_registered_name

PREPROCESSING, CLIPPING = "env.preprocessor_pref", "env.clip_rewards"
STACK, RECURRENT = "env.atari.framestack", "rl_module.model_config.use_lstm"
TASKS, CALLBACKS = "env.task_function", "callbacks.callbacks_class"

#: Who gives one of these wrote for a Ray that wraps no environment by itself.
_TODAYS_KEYS = ("num_env_runners", "num_learners", "enable_env_runner_and_connector_v2")
#: Up to this Ray, a recurrent network saw a single frame.
_STACKED = Version("0.6")
#: From this Ray on, it does not.
_NO_WRAPPERS = Version("2.40")


def is_todays(context: Context) -> bool:
    """Whether a config was written for a Ray whose env runners wrap no Atari games."""
    if context.legacy_ray is not None:
        todays = Version(context.legacy_ray) >= _NO_WRAPPERS
        return todays or bool(context.get("enable_env_runner_and_connector_v2"))
    return any(key in context.config for key in _TODAYS_KEYS)


def _deepmind(given: Given, context: Context) -> Change | None:
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
    single = {STACK: None} if unstacked and given.get(RECURRENT) else {}
    wrapped = given.get(PREPROCESSING) if PREPROCESSING in given else "deepmind"
    clipped = given.get(CLIPPING) is None and wrapped == "deepmind" and clips(context.legacy_ray)
    message = "an Atari game: the DeepMind wrappers, as by default before"
    return Change(
        {PREPROCESSING: wrapped} | ({CLIPPING: True} if clipped else {}) | single,
        "" if PREPROCESSING in given else message,
    )


def _curriculum(given: Given, _: Context) -> Change | None:
    function = given.get(TASKS)
    if function is None:
        return None
    callbacks = replace(adapted(given.get(CALLBACKS)), task_function=function)
    return Change({TASKS: ABSENT, CALLBACKS: callbacks})


STEPS = (
    Step(
        "atari",
        "Until Ray 2.40, Atari games got the DeepMind wrappers and clipped rewards by themselves. "
        "gymnasium's names show which are games; anything else is asked. In Ray 0.5, recurrent "
        "networks saw single frames.",
        stack="new",
        reads=("env.env", PREPROCESSING, CLIPPING, RECURRENT),
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
