"""Recurrent networks: how long their sequences are, and what they see of the step before."""

from __future__ import annotations

from rllib_compat.config.context import Context
from rllib_compat.config.deferred import PreviousStepsConnector
from rllib_compat.config.steps.step import ABSENT, COMPUTED, Change, Given, Step
from rllib_compat.config.today import todays_default
from rllib_compat.neutral.report import Severity

LENGTH = "rl_module.model_config.max_seq_len"
LSTM = "rl_module.model_config.use_lstm"

ACTION, REWARD = (f"rl_module.model_config.lstm_use_prev_{what}" for what in ("action", "reward"))
CONNECTOR = "env_runners.env_to_module_connector"


def _length(given: Given, context: Context) -> Change | None:
    if given.get(LSTM) is not True or LENGTH in given:
        return None
    length = todays_default(context.algorithm, LENGTH)[1]
    return Change({LENGTH: length}, f"sequences of {length} steps, as by default before")


def _previous(given: Given, context: Context) -> Change | None:
    asked = {name: given.get(name) for name in (ACTION, REWARD) if name in given}
    if not any(value is True for value in asked.values()):
        return None
    if given.get(LSTM) is not True and context.algorithm != "RNNSAC":
        settings = {name: ABSENT for name, value in asked.items() if value is True}
        return Change(settings, "only networks with an LSTM look at the step before")
    connector = PreviousStepsConnector(
        actions=int(asked.get(ACTION) is True),
        rewards=int(asked.get(REWARD) is True),
        multi_agent=context.has_policies,
        inner=given.get(CONNECTOR),
    )
    return Change({CONNECTOR: connector}, "what was done and given before goes into the LSTM")


def _asks_for_steps(given: Given) -> bool:
    return any(given.get(name) is True for name in (ACTION, REWARD))


STEPS = (
    Step(
        "previous-steps-of-recordings",
        "A connector puts the step before behind an observation when that is made. Recorded "
        "observations are there already, and have none.",
        reads=(ACTION, REWARD),
        sets={ACTION: ABSENT, REWARD: ABSENT},
        key="model.lstm_use_prev_action",
        algorithms=("BC", "MARWIL"),
        stack="new",
        when=_asks_for_steps,
        says="recorded observations have no step before behind them: the LSTM sees them alone",
        severity=Severity.WARNING,
    ),
    Step(
        "previous-steps",
        "Ray has `lstm_use_prev_action` and `lstm_use_prev_reward`, and looks at neither. A "
        "connector puts both behind the observation; networks of a trainer, R2D2 and RNNSAC let "
        "them into the LSTM past the dense layers, as before, other networks into the layers.",
        reads=(ACTION, REWARD, LSTM, CONNECTOR),
        sets={ACTION: ABSENT, REWARD: ABSENT, CONNECTOR: COMPUTED},
        key="model.lstm_use_prev_action",
        stack="new",
        change=_previous,
    ),
    Step(
        "lstm",
        "A module with an LSTM has to be told how long its sequences are.",
        reads=(LSTM, LENGTH),
        sets={LENGTH: COMPUTED},
        key="model.use_lstm",
        change=_length,
    ),
)
