"""What the caller is asked for, or warned of, before training goes wrong."""

from dataclasses import replace

import pytest

from rllib_compat.convert.decide import decide
from rllib_compat.convert.given import Given
from rllib_compat.formats import layouts
from rllib_compat.neutral.errors import MissingInformationError
from rllib_compat.neutral.report import Severity
from rllib_compat.neutral.space_text import parse_repr
from rllib_compat.trainer import load as module
from tests.legacy.cases import all_cases
from tests.legacy.networks import given_if_asked


def case(name):
    return next(case for case in all_cases() if str(case) == name)


def bounds(given, env):
    checkpoint = layouts.read(case("0.8.5/sac-tf-small").checkpoint)
    checkpoint = replace(checkpoint, config={**checkpoint.config, "env": env})
    plan = decide(checkpoint, given, to="msgpack")
    return [f for f in plan.checkpoint.findings if f.rule == "bounds"]


def test_bounds_of_sacs_actions_that_old_gym_printed_are_a_warning():
    known = given_if_asked(case("0.8.5/sac-tf-small"))
    assert bounds(known, "TheirOwn-v0") == []
    printed = replace(known, action_spaces={None: parse_repr("Box(1,)")})
    assert not printed.action_spaces[None].exact
    (row,) = bounds(printed, "TheirOwn-v0")
    assert row.severity is Severity.WARNING
    assert bounds(printed, "Pendulum-v0") == [], "the environment is there, and tells them"


@pytest.mark.parametrize("name", ["0.7.6/marwil-tf-json", "2.0.1/cql-torch-default"])
def test_learning_from_recordings_without_any_is_told_before_ray_dies_of_it(name):
    class Done:
        plan = decide(layouts.read(case(name).checkpoint), given_if_asked(case(name)))
        checkpoint, translation = plan.checkpoint, plan.translation

    with pytest.raises(MissingInformationError, match="learns from recorded steps"):
        module._require_recordings(Done, "old")


def test_a_conversion_says_that_learning_needs_recordings_even_if_none_were_named():
    read = layouts.read(case("0.7.6/marwil-tf-json").checkpoint)
    config = {key: value for key, value in read.config.items() if key not in ("input", "input_")}
    given = given_if_asked(case("0.7.6/marwil-tf-json"))

    def told(given):
        plan = decide(replace(read, config=config), given)
        return [f for f in plan.findings if f.rule == "offline-data"]

    (row,) = told(given)
    assert row.severity is Severity.WARNING
    assert "rllib_compat.load(" in row.hint
    assert told(replace(given, overrides={"input": "/recordings"})) == []


def test_an_algorithm_that_samples_for_itself_is_not_asked():
    class Done:
        plan = decide(layouts.read(case("0.8.5/ppo-tf-worker1").checkpoint), Given(algorithm="PPO"))
        checkpoint, translation = plan.checkpoint, plan.translation

    assert module._require_recordings(Done, "old") is None
