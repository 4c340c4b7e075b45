"""How far a Q-learner was goes over: its epsilon, and the wait for a replay buffer."""

from pathlib import Path

import numpy as np
import pytest

from rllib_compat.conversion.write import training_state
from rllib_compat.neutral import Counters, LegacyCheckpoint, PolicyState, Severity, Source, Verdict
from rllib_compat.ray_versions import metrics

pytest.importorskip("ray")

SCHEDULE = [[0, 1.0], [10_000, 0.05]]


def checkpoint_at(steps, **exploration):
    """A checkpoint after so many steps, whose policies stored these states of exploration."""
    policies = {
        policy_id: PolicyState(policy_id, {}, exploration=state)
        for policy_id, state in (exploration or {"p": None}).items()
    }
    counters = Counters(env_steps=steps)
    return LegacyCheckpoint(
        Source(Path(), ""), algorithm="DQN", policies=policies, counters=counters
    )


def config_of(**training):
    from ray.rllib.algorithms.dqn import DQNConfig

    return DQNConfig().training(**training)


@pytest.fixture
def told(monkeypatch):
    """What `set_progress` told Ray's env runners."""
    calls = []
    monkeypatch.setattr(metrics, "set_steps_of_env_runner", lambda *args: calls.append(args))
    return calls


def epsilons(config, checkpoint):
    found = training_state.set_progress(object(), config, checkpoint)
    return [finding for finding in found if finding.rule == "epsilon"]


def test_learning_waits_until_the_empty_buffer_has_its_steps():
    config = config_of(num_steps_sampled_before_learning_starts=1000)
    (finding,) = training_state.delay_learning(config, checkpoint_at(5000))
    assert config.num_steps_sampled_before_learning_starts == 6000
    assert finding.verdict is Verdict.DERIVED
    assert "after 1000 new steps" in finding.message


@pytest.mark.parametrize("steps", [None, 0])
def test_a_checkpoint_without_steps_waits_as_long_as_the_config_says(steps):
    config = config_of(num_steps_sampled_before_learning_starts=1000)
    assert training_state.delay_learning(config, checkpoint_at(steps)) == []
    assert config.num_steps_sampled_before_learning_starts == 1000


@pytest.mark.parametrize(("steps", "runners"), [(5000, 3), (None, 0)])
def test_env_runners_know_the_steps_that_their_schedules_look_at(told, steps, runners):
    config = config_of(epsilon=SCHEDULE).env_runners(num_env_runners=runners)
    algorithm = object()
    training_state.set_progress(algorithm, config, checkpoint_at(steps))
    assert told == [(algorithm, steps or 0, runners)]


def test_the_report_says_that_the_target_network_is_updated_at_once(told):
    found = training_state.set_progress(object(), config_of(), checkpoint_at(5000))
    (finding,) = (f for f in found if f.rule == "target-updates")
    assert finding.verdict is Verdict.RESET


@pytest.mark.parametrize(
    "state", [{"cur_epsilon": 0.53}, {"cur_epsilon": np.float32(0.52)}, [0.525]], ids=str
)
def test_epsilon_goes_on_where_the_schedule_gives_what_was_stored(told, state):
    (finding,) = epsilons(config_of(epsilon=SCHEDULE), checkpoint_at(5000, p=state))
    assert (finding.verdict, finding.severity) == (Verdict.EXACT, Severity.INFO)
    assert "continues at 0.525" in finding.message


@pytest.mark.parametrize("state", [{"cur_epsilon": 0.55}, {"cur_epsilon": 0.5}, [0.9]], ids=str)
def test_another_epsilon_than_was_stored_is_a_warning_with_both(told, state):
    (finding,) = epsilons(config_of(epsilon=SCHEDULE), checkpoint_at(5000, p=state))
    stored = state["cur_epsilon"] if isinstance(state, dict) else state[0]
    assert finding.severity is Severity.WARNING
    assert f"was {stored:g}" in finding.message
    assert "is 0.525 now" in finding.message
    assert "epsilon=" in finding.hint


@pytest.mark.parametrize("state", [None, [], {}, [0.1, 0.2], {"cur_epsilon": "?"}], ids=str)
def test_an_epsilon_that_is_not_stored_follows_from_the_steps(told, state):
    (finding,) = epsilons(config_of(epsilon=SCHEDULE), checkpoint_at(20_000, p=state))
    assert finding.verdict is Verdict.DERIVED
    assert finding.message.endswith(": 0.05")


def test_each_policy_has_its_own_epsilon_and_a_fixed_one_stays(told):
    old = checkpoint_at(5000, a={"cur_epsilon": 0.1}, b={"cur_epsilon": 0.3})
    found = epsilons(config_of(epsilon=0.1), old)
    assert [f.path for f in found] == ["policies.a.exploration", "policies.b.exploration"]
    assert [f.severity for f in found] == [Severity.INFO, Severity.WARNING]
