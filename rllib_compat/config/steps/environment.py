"""What environments need because of what they are."""

from __future__ import annotations

from rllib_compat.config.context import Context
from rllib_compat.config.steps.step import Change, Given, Step

PREPROCESSING, CLIPPING = "env.preprocessor_pref", "env.clip_rewards"

#: Who gives one of these wrote for a Ray that wraps no environment by itself.
_TODAYS_KEYS = ("num_env_runners", "num_learners", "enable_env_runner_and_connector_v2")


def _deepmind(given: Given, context: Context) -> Change | None:
    name = given.get("env.env")
    if not isinstance(name, str) or "NoFrameskip" not in name:
        return None
    if any(key in context.config for key in _TODAYS_KEYS):
        return None
    wrapped = given.get(PREPROCESSING) if PREPROCESSING in given else "deepmind"
    clipped = given.get(CLIPPING) is None and wrapped == "deepmind"
    message = "an Atari game: the DeepMind wrappers, as by default before"
    return Change(
        {PREPROCESSING: wrapped} | ({CLIPPING: True} if clipped else {}),
        "" if PREPROCESSING in given else message,
    )


STEPS = (
    Step(
        "atari",
        "Until Ray 2.40, Atari games got the DeepMind wrappers and clipped rewards by themselves.",
        stack="new",
        reads=("env.env", PREPROCESSING, CLIPPING),
        sets={PREPROCESSING: "deepmind", CLIPPING: True},
        key="env",
        change=_deepmind,
    ),
)
