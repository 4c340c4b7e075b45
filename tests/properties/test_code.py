"""Printed Python compiles, and makes the calls that the translation makes."""

import ast
import importlib
import math
import re
import sys
import types
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rllib_compat.config import python_code, translate
from rllib_compat.config.code import Program, format_expression
from rllib_compat.errors import ConfigError
from rllib_compat.neutral.deferred import build
from tests.marks import examples
from tests.properties.test_config import configs, stacks

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def module(name):
    """A module of a user, with a class and a function of the names that all of them have."""
    made = types.ModuleType(name)
    exec("class Thing:\n    class Inner: pass\ndef config(): pass\ndef np(): pass", vars(made))
    sys.modules[name] = made
    return made


ONE, OTHER = module("users_one"), module("users_other")

leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.text("\\'\"\n{}[](),: \x00é#", max_size=8),
    st.binary(max_size=5),
    st.sampled_from(
        [ONE.Thing, OTHER.Thing, ONE.Thing.Inner, ONE.config, OTHER.config, ONE.np, len, int]
    ),
)
keys = st.one_of(st.text(max_size=5), st.integers(), st.tuples(st.text(max_size=3)))
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=4),
        st.sets(st.text(max_size=4), max_size=3),
        st.frozensets(st.integers(), max_size=3),
    ),
    max_leaves=20,
)


def same(one, other):
    """Whether two values are the same, or objects made of the same."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, type) and isinstance(other, type) and one is not other:
        alike = (one.__name__, one.__mro__[1:]) == (other.__name__, other.__mro__[1:])
        return alike and same(made_of(one), made_of(other))
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, types.FunctionType) and "<lambda>" in (one.__name__, other.__name__):
        return same(one(), other())
    try:
        return one is other or bool(one == other) or same(vars(one), vars(other))
    except (TypeError, ValueError):
        return False


def made_of(cls):
    """What tells an adapting class from another one of its kind."""
    return {k: v for k, v in vars(cls).items() if not k.startswith("_") and not callable(v)}


@given(values)
@settings(max_examples=examples(200))
@example("a\\b")
@example([ONE.Thing, OTHER.Thing])
@example({"grid_search": ["a\\", 1]})
def test_a_printed_value_is_the_value(value):
    program = Program()
    source = program.expression(value)
    text = format_expression(source, 4)
    assert ast.dump(ast.parse(text.strip(), mode="eval").body) == ast.dump(
        ast.parse(ast.unparse(source), mode="eval").body
    )
    namespace = {}
    exec("\n".join([*program.import_lines(), f"value = (\n{text}\n)"]), namespace)
    assert same(namespace["value"], value)


class Recorder:
    """Stands for an `AlgorithmConfig`: keeps what its methods are called with."""

    def __init__(self):
        self.calls = {}

    def __getattr__(self, method):
        def call(**arguments):
            self.calls[method] = arguments
            return self

        return call


def run(code, algorithm):
    """The calls that a printed program makes."""
    home = importlib.import_module(f"ray.rllib.algorithms.{algorithm.lower()}")
    namespace = {}
    adapt = "rllib_compat.adapters.adapt_config"
    with mock.patch.object(home, f"{algorithm}Config", Recorder), mock.patch(adapt, create=True):
        exec(compile(code, "printed", "exec"), namespace)
    return namespace["config"].calls


def require_same(translation):
    code = translation.to_python()
    try:
        calls = run(code, translation.algorithm)
    except ConfigError as error:  # only what the translation can't build either, for its reason
        with pytest.raises(ConfigError, match=re.escape(error.found)):
            build(translation.calls)
        return
    for method, arguments in translation.calls.items():
        for name, value in arguments.items():
            if name in calls.get(method, {}):
                assert same(calls[method][name], build(value)), (method, name)
            else:
                assert f"# {name}: " in code, (method, name)
    for method, arguments in calls.items():
        assert arguments.keys() <= translation.calls[method].keys()


texts = st.sampled_from(["CartPole-v1", "a\\b", 'say "x"', "it's", "{x}", "new\nline"])


@given(configs(), st.sampled_from(["PPO", "DQN", "SAC", "MARWIL"]), stacks, values, texts)
@settings(max_examples=examples(100))
@example({"callbacks": "NoFilter"}, "PPO", "auto", None, "CartPole-v1")
@example({"callbacks": len}, "PPO", "auto", None, "CartPole-v1")
def test_the_program_makes_the_calls_of_the_translation(config, algorithm, stack, value, text):
    config = {k: v for k, v in config.items() if k not in ("env", "input", "input_", "output")}
    config["env_config"] = {text: value}
    config["log_level"] = text
    require_same(translate(config, algorithm=algorithm, api_stack=stack, on_unknown="warn"))


def mapping(agent_id):
    return "a"


def policies():
    import gymnasium
    import numpy as np

    box = gymnasium.spaces.Box(np.array([-1, -2.5], "float32"), np.array([1, np.inf], "float32"))
    inner = gymnasium.spaces.Dict({"x": box, "y": gymnasium.spaces.MultiBinary(3)})
    nested = gymnasium.spaces.Tuple([inner, gymnasium.spaces.MultiDiscrete([2, 3])])
    counted = gymnasium.spaces.Discrete(3, start=-1)
    own = {"lr": 0.1, "model": {"fcnet_hiddens": [4]}}
    return {"a": (None, nested, counted, own), "b\\": (None, box, counted, {})}


@pytest.mark.parametrize(
    "config",
    [
        {"multiagent": {"policies": policies(), "policy_mapping_fn": mapping}},
        {"observation_filter": "MeanStdFilter"},
        {"callbacks": {"on_episode_end": mapping}},
        {"output": "/tmp/a\\b", "output_max_file_size": 5},
        {"env": "CartPole-v1", "clip_rewards": True, "horizon": 5},
        {"input": ["/tmp/a\\b.json"]},
        {"lr": {"grid_search": [0.1, 0.2]}, "seed": {"grid_search": [1, 2]}},
    ],
    ids=", ".join,
)
def test_objects_of_ray_are_printed_as_what_makes_them(config):
    require_same(translate(config, algorithm="PPO"))


def test_two_classes_of_one_name_stay_two():
    code = python_code("PPO", {"environment": {"env_config": {"a": ONE.Thing, "b": OTHER.Thing}}})
    assert run(code, "PPO")["environment"]["env_config"] == {"a": ONE.Thing, "b": OTHER.Thing}


def test_what_has_no_source_form_is_named_and_breaks_nothing():
    thing = type("Odd", (), {"__repr__": lambda self: "two\nlines"})()
    code = python_code("PPO", {"environment": {"env": "x", "env_config": {"a": thing}}})
    assert "# env_config: {'a': two lines} has no source form; pass it here." in code
    assert run(code, "PPO") == {"environment": {"env": "x"}}
