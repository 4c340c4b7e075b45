"""What the caller is asked for, or warned of, before training goes wrong."""

import re
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from rllib_compat import load
from rllib_compat.conversion import prepare
from rllib_compat.errors import MissingInformationError
from rllib_compat.formats import read_checkpoint
from rllib_compat.neutral import Severity
from rllib_compat.neutral.spaces import parse_repr
from tests.legacy.cases import case_of
from tests.legacy.networks import given_if_asked

#: Its actions are between -2 and 2, and between 0 and 1.
ASYMMETRIC = case_of("0.8.7/sac-torch-asym2")


TRUE = parse_repr("Box([-2. 0.], [2. 1.], (2,), float32)")


class Asymmetric(gymnasium.Env):
    """The environment of the case, as far as a conversion asks it."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (5,))
    action_space = gymnasium.spaces.Box(np.float32([-2, 0]), np.float32([2, 1]))

    def __init__(self, config=None):
        pass


def bounds(given, env):
    checkpoint = read_checkpoint(ASYMMETRIC.checkpoint)
    checkpoint = replace(checkpoint, config={**checkpoint.config, "env": env})
    plan = prepare(checkpoint, given, to="msgpack")
    return [f for f in plan.checkpoint.findings if f.rule == "bounds"]


def test_bounds_of_sacs_actions_that_old_gym_printed_are_a_warning():
    known = replace(given_if_asked(ASYMMETRIC), action_spaces={None: TRUE})
    assert bounds(known, "TheirOwn-v0") == []
    printed = replace(known, action_spaces={None: parse_repr("Box(-2.0, 2.0, (2,), float32)")})
    assert not printed.action_spaces[None].exact
    (row,) = bounds(printed, "TheirOwn-v0")
    assert row.severity is Severity.WARNING
    assert bounds(replace(printed, env=Asymmetric), "") == [], "the environment tells them"


def test_bounds_that_old_gym_did_not_print_are_asked_for_in_the_shape_of_the_actions():
    known = replace(given_if_asked(ASYMMETRIC), action_spaces={None: parse_repr("Box(2,)")})
    with pytest.raises(MissingInformationError, match=re.escape("Box([-2, -2], [2, 2], (2,))")):
        prepare(read_checkpoint(ASYMMETRIC.checkpoint), known)


def test_an_environment_with_other_bounds_than_the_policys_is_a_warning():
    class Narrower(Asymmetric):
        action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))

    known = replace(given_if_asked(ASYMMETRIC), action_spaces={None: TRUE})
    assert bounds(replace(known, env=Asymmetric), "") == []
    (row,) = bounds(replace(known, env=Narrower), "")
    assert row.severity is Severity.WARNING
    assert "Box([-1, -1], [1, 1], (2,))" in row.message
    assert "Box([-2, 0], [2, 1], (2,))" in row.message


def test_critics_that_keep_their_own_layers_are_not_said_to_have_the_policys():
    known = replace(given_if_asked(ASYMMETRIC), action_spaces={None: TRUE})
    plan = prepare(read_checkpoint(ASYMMETRIC.checkpoint), known)
    assert plan.networks["default_policy"].summary == (
        "sac 5-16-16-4 relu, twin critics 7-24-24-1 relu"
    )
    told = [f.message for f in (*plan.findings, *plan.translation.report)]
    assert any("critics keep their own layers" in message for message in told)
    assert not any("one shape now" in message for message in told)


@pytest.mark.parametrize("name", ["0.7.6/marwil-tf-json", "2.0.1/cql-torch-default"])
def test_learning_from_recordings_without_any_is_told_before_ray_dies_of_it(name):
    with pytest.raises(MissingInformationError, match="learns from recorded steps"):
        load(case_of(name).checkpoint, given=given_if_asked(case_of(name)))


def test_load_takes_what_an_error_asks_for_by_the_names_that_it_uses():
    with pytest.raises(MissingInformationError, match="action space is neither"):
        load(case_of("0.8.5/ppo-tf-fc32relu-share").checkpoint)
    old = case_of("0.7.6/marwil-tf-json").checkpoint
    with pytest.raises(MissingInformationError, match="learns from recorded steps"):
        load(old, algorithm="MARWIL", action_space="Discrete(2)", observation_space="Box(4,)")


def test_a_conversion_says_that_learning_needs_recordings_even_if_none_were_named():
    read = read_checkpoint(case_of("0.7.6/marwil-tf-json").checkpoint)
    config = {key: value for key, value in read.config.items() if key not in ("input", "input_")}
    given = given_if_asked(case_of("0.7.6/marwil-tf-json"))

    def told(given):
        plan = prepare(replace(read, config=config), given)
        return [f for f in plan.findings if f.rule == "offline-data"]

    (row,) = told(given)
    assert row.severity is Severity.WARNING
    assert "rllib_compat.load(" in row.hint
    assert told(replace(given, overrides={"input": "/recordings"})) == []
