"""Translation over all keys that ever were, with values of all kinds."""

import copy

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rllib_compat import registry
from rllib_compat.config import Era, every_rule, translate
from rllib_compat.neutral import Deferred, GlobalRef, Verdict
from rllib_compat.registry import keys
from tests.marks import examples

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 5000),
    st.floats(0, 10),
    st.sampled_from(["NoFilter", "MeanStdFilter", "tf", "auto", "CartPole-v1", "<function f>", ""]),
    st.lists(st.integers(1, 64), max_size=3),
    st.lists(st.tuples(st.integers(0, 100), st.floats(0, 1)), max_size=3),
    st.dictionaries(st.sampled_from(["a", "b"]), st.integers(), max_size=2),
    st.just(GlobalRef("module", "thing")),
    st.just(len),
    st.fixed_dictionaries({"grid_search": st.lists(st.integers(0, 3), min_size=1, max_size=3)}),
)
TOP = sorted({k for s, k in keys.every_key() if s not in keys.PARTS and "." not in k})
SECTIONS = {part: sorted(keys.section(part)) for part in keys.PARTS if part != "model_config"}


@st.composite
def configs(draw):
    config = draw(st.dictionaries(st.sampled_from(TOP), values, max_size=8))
    for part in draw(st.lists(st.sampled_from(sorted(SECTIONS)), unique=True, max_size=2)):
        config[part] = draw(st.dictionaries(st.sampled_from(SECTIONS[part]), values, max_size=4))
    return config


algorithms = st.sampled_from([*registry.ALGORITHMS])
stacks = st.sampled_from(["auto", "new", "old"])


def translated(config, algorithm, stack="auto", legacy_ray="auto"):
    how = {"api_stack": stack, "on_unknown": "warn", "legacy_ray": legacy_ray}
    return translate(config, algorithm=algorithm, **how)


def paths(config, path="$"):
    for key, value in config.items():
        is_section = key in SECTIONS and path == "$" and isinstance(value, dict)
        if is_section and value and "grid_search" not in value:
            yield from (f"{path}.{key}.{inner}" for inner in value)
        else:
            yield f"{path}.{key}"


@given(configs(), algorithms, stacks)
@settings(max_examples=examples(150))
def test_no_key_disappears(config, algorithm, stack):
    """Each key has a line of its own, or its section has one, or a part of its value."""
    told = {finding.path for finding in translated(config, algorithm, stack).report}
    for path in paths(config):
        assert any(
            path == t
            or path.startswith((f"{t}.", f"{t}["))
            or t.startswith((f"{path}.", f"{path}["))
            for t in told
        ), path


@given(configs(), algorithms, stacks)
@settings(max_examples=examples(100))
def test_the_input_is_never_changed(config, algorithm, stack):
    before = copy.deepcopy(config)
    translated(config, algorithm, stack)
    assert config == before


@given(configs(), algorithms, st.randoms())
@settings(max_examples=examples(100))
def test_the_order_of_keys_does_not_matter(config, algorithm, random):
    shuffled = list(config.items())
    random.shuffle(shuffled)
    one, other = translated(config, algorithm), translated(dict(shuffled), algorithm)
    assert one.calls == other.calls
    assert set(one.report) == set(other.report)


@given(configs(), algorithms)
@settings(max_examples=examples(100))
def test_refusals_and_unknown_keys_are_the_only_errors(config, algorithm):
    for finding in translated(config, algorithm).report:
        if finding.severity.value == "error":
            assert finding.verdict in (Verdict.REFUSED, Verdict.UNKNOWN)
            assert finding.hint


# Arguments that the table of keys has under another name.
ATTRIBUTES = {
    "framework": "framework_str",
    "learner_class": "_learner_class",
    "learner_connector": "_learner_connector",
    "env_to_module_connector": "_env_to_module_connector",
    "module_to_env_connector": "_module_to_env_connector",
    "custom_stats_cls_lookup": "stats_cls_lookup",
    "dataset_num_iters_per_offline_eval_runner": "dataset_num_iters_per_eval_runner",
}


def as_config(translation):
    """The settings as a config of today's keys."""
    config = {}
    for method, arguments in translation.calls.items():
        if method == "api_stack":
            continue
        for name, value in arguments.items():
            if method == "rl_module" and name == "model_config":
                config["model"] = value
            elif method == "callbacks" and name != "callbacks_class":
                config[f"callbacks_{name}"] = value
            elif not isinstance(value, Deferred):
                config[ATTRIBUTES.get(name, name)] = value
    return config


def plain(value):
    if isinstance(value, dict):
        kept = {key: plain(inner) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if inner not in ({}, None)}
    return value


@given(configs(), st.sampled_from(["PPO", "DQN", "SAC", "IMPALA", "APPO"]))
@example({"soft_q": True}, "DQN")
@example({"noisy": True}, "DQN")
@example({"parameter_noise": True}, "DQN")
@settings(max_examples=examples(120))
def test_translating_the_result_changes_nothing(config, algorithm):
    special = ("env", "callbacks", "callbacks_class", "_model_config", "_model_config_dict")
    config = {k: v for k, v in config.items() if k not in special}
    once = translated(config, algorithm, "new", Era(None))
    if once.refused:
        return
    today = as_config(once)
    twice = translated(today, algorithm, "new", Era(None))  # what is translated shows no old Ray
    assert plain(as_config(twice)) == plain(today)


RENAMES = [
    rule
    for rule in every_rule()
    if rule.verdict is Verdict.RENAMED
    and rule.convert is None
    and "." not in rule.key
    and rule.target.count(".") == 1
]


@pytest.mark.parametrize("rule", RENAMES, ids=lambda rule: rule.id)
def test_renames_carry_every_value_back_and_forth(rule):
    algorithm = rule.algorithms[0] if rule.algorithms else "PPO"
    method, argument = rule.target.split(".")
    for value in (True, 7, 0.5, "text"):
        how = {"algorithm": algorithm, "api_stack": "new", "legacy_ray": Era(None)}
        calls = translate({rule.key: value}, on_unknown="warn", **how).calls
        if argument in calls.get(method, {}):  # the installed Ray has it
            assert calls[method][argument] == value
