"""How long the sequences are that recurrent networks are trained on."""

from __future__ import annotations

from rllib_compat.config.context import Context
from rllib_compat.config.steps.step import COMPUTED, Change, Given, Step
from rllib_compat.config.today import todays_default

LENGTH = "rl_module.model_config.max_seq_len"
LSTM = "rl_module.model_config.use_lstm"


def _length(given: Given, context: Context) -> Change | None:
    if given.get(LSTM) is not True or LENGTH in given:
        return None
    length = todays_default(context.algorithm, LENGTH)[1]
    return Change({LENGTH: length}, f"sequences of {length} steps, as by default before")


STEPS = (
    Step(
        "lstm",
        "A module with an LSTM has to be told how long its sequences are.",
        reads=(LSTM, LENGTH),
        sets={LENGTH: COMPUTED},
        key="model.use_lstm",
        change=_length,
    ),
)
