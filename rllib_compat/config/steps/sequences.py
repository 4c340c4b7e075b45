"""How long the sequences are that recurrent networks are trained on."""

from __future__ import annotations

from rllib_compat.config.context import Context
from rllib_compat.config.steps.step import COMPUTED, Change, Given, Step, are_counts
from rllib_compat.config.today import todays_default

LENGTH = "rl_module.model_config.max_seq_len"
LSTM = "rl_module.model_config.use_lstm"
BURN_IN = "training.burn_in_len"


def _length(given: Given, context: Context) -> Change | None:
    if given.get(LSTM) is not True or LENGTH in given:
        return None
    length = todays_default(context.algorithm, LENGTH)[1]
    return Change({LENGTH: length}, f"sequences of {length} steps, as by default before")


def _with_burn_in(given: Given, _: Context) -> Change | None:
    length, burn_in = given.effective(LENGTH), given.get(BURN_IN)
    if not are_counts(length, burn_in) or burn_in <= 0:
        return None
    return Change({LENGTH: length + burn_in}, f"{length} steps after {burn_in} of burn-in")


STEPS = (
    Step(
        "lstm",
        "A module with an LSTM has to be told how long its sequences are.",
        reads=(LSTM, LENGTH),
        sets={LENGTH: COMPUTED},
        key="model.use_lstm",
        change=_length,
    ),
    Step(
        "burn_in",
        "R2D2 trained on `max_seq_len` steps after the burn-in; DQN counts both.",
        algorithms=("DQN",),
        legacy=("R2D2",),
        reads=(LENGTH, BURN_IN),
        sets={LENGTH: COMPUTED},
        key="model.max_seq_len",
        change=_with_burn_in,
    ),
)
