"""A config that came with a checkpoint: nothing that it says is imported, opened or run.

The attacks are made from the table of rules, so that a new key is attacked the day it is added.

Text of a config can reach an import, a file or a call at these places of Ray and gymnasium, and the
declarations of their keys let no text from a file through, save the words that are written there:

* `from_config` (`rllib/utils/from_config.py`), which takes text for YAML, for a file's name or for
  a class: `replay_buffer_config.type` and its `underlying_buffer_config.type`,
  `exploration_config.type`, its `sub_exploration.type`, `epsilon_schedule`, `scale_schedule`,
  `policy_mapping_fn`, `input`, `env` of the old API stack, `custom_preprocessor`;
* `gymnasium.make` and `gymnasium.make_vec`: `env`, and `env` of the `evaluation_config`;
* `load_class` and `deserialize_type`: `callbacks`, `worker_cls`, `sample_collector`, and other
  classes;
* `getattr` on torch, `torch.nn.init` and `ray.data`: activations, initializers,
  `input_read_method`, `output_write_method`;
* `torch.compile` and the environment of Ray's processes: `torch_compile_*`,
  `extra_python_environs_for_*`.
"""

import json
import math
import time

import pytest

from rllib_compat.config import Era, Origin, every_rule, find_rule, translate, validate_config
from rllib_compat.config.validation import DEEPEST_CONFIG
from rllib_compat.config.values.kinds import Unread
from rllib_compat.errors import ConfigError
from rllib_compat.neutral import GlobalRef, StandIn
from rllib_compat.registry import keys
from tests.marks import marked
from tests.security.watch import MARK, watched

RULES = list(every_rule())
CODE = GlobalRef(MARK, "Code")
MADE = StandIn(GlobalRef("builtins", "eval"), (f"__import__('{MARK}')",))

PAYLOADS = {
    "a class": f"{MARK}.Class",
    "with a blank": f"{MARK}.Class y",
    "an entry point": f"{MARK}:Class",
    "a file": f"{MARK}.json",
    "a path": f"/tmp/{MARK}/../{MARK}.yaml",
    "YAML": f"{{type: os.system, _args: ['touch {MARK}']}}",
    "JSON": json.dumps({"type": "os.system", "_args": [f"touch {MARK}"]}),
    "a constructor": {"type": "os.system", "_args": [f"touch {MARK}"]},
    "in a list": [f"{MARK}.Class", {"type": f"{MARK}.Class"}],
    "in a dict": {"type": f"{MARK}.Class", MARK: {"type": f"{MARK}.Class"}},
    "a repr": f"<class '{MARK}.Class'>",
    "a record": CODE,
    "a call": MADE,
    "records inside": {"type": CODE, "on_episode_end": MADE, "list": [CODE]},
    "a grid": {"grid_search": [f"{MARK}.Class", CODE]},
    "in bytes": f"{MARK}.Class".encode(),
    "long": f"{MARK}." * 64 + " ",
}


def bare(rule, payload):
    """A config with a payload under a key."""
    config = payload
    for part in reversed(rule.key.replace("*", "anything").split(".")):
        config = {part: config}
    return config


def inside(config):
    """The places where configs stand inside a config."""
    policies = {"policies": {"a": (None, None, None, config)}}
    policies["algorithm_config_overrides_per_module"] = {"a": config}
    return {"evaluation_config": config, "evaluation_interval": 1, "multiagent": policies}


def hostile(rule, payload):
    """A config with a payload under a key: at the top, and where configs stand inside it."""
    config = bare(rule, payload)
    return {**inside(config), **config}


def texts(value, where=()):
    """All texts inside the calls of a translation, with their places."""
    if isinstance(value, (str, bytes)):
        yield where, str(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from texts(inner, (*where, key))
            yield from texts(key, (*where, key))
    elif isinstance(value, (list, tuple, set)):
        for inner in value:
            yield from texts(inner, where)
    else:
        yield where, repr(value)


#: Text of any kind is data here: the user's environment has it, or it is the name of a policy.
DATA = ("env_config", "policies", "policies_to_train", "algorithm_config_overrides_per_module")


def reaches_ray(translation):
    """Where a payload came through, other than as data or as a name."""
    told = {"calls": translation.calls, "env": dict(translation.env)}
    return [w for w, text in texts(told) if MARK in text and not (set(w) & set(DATA))]


def of(rule):
    """An algorithm that has the rule."""
    section = next((r for r in RULES if r.key == rule.key.partition(".")[0]), rule)
    return (*rule.algorithms, *section.algorithms, "DQN")[0]


ALGORITHMS = sorted({of(rule) for rule in RULES})
#: One of each family that today's Ray has; all others' keys are among theirs, or set nothing.
REPRESENTATIVES = ("APPO", "BC", "DQN", "DreamerV3", "PPO", "SAC")


def merged(configs):
    """Configs of one key each, as one."""
    whole = {}
    for config in configs:
        for key, value in config.items():
            both = isinstance(value, dict) and isinstance(whole.get(key), dict)
            whole[key] = {**whole[key], **value} if both else value
    return whole


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_no_text_or_record_of_any_key_passes(payload):
    for rule in RULES:
        if rule.id == "environment.env_config":
            continue
        names = rule.key.replace("*", "anything").split(".")
        with watched():
            taken = validate_config(hostile(rule, payload), (of(rule),), Origin.FILE).config
        for place in (taken, taken.get("evaluation_config", {})):
            for name in names:
                place = place.get(name, {}) if isinstance(place, dict) else place
            if rule.family != "multi_agent":  # its names of policies are names, not code
                told = [w for w, text in texts(place) if MARK in text and text not in w]
                assert not told, rule.id
                assert CODE not in ([place] if not isinstance(place, list) else place), rule.id


@pytest.mark.parametrize("stack", marked(["new", "old"], ["new"]))
@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_no_text_or_record_of_any_key_reaches_ray(payload, stack):
    """All keys of each algorithm at once, and where configs stand inside the config."""
    for algorithm in REPRESENTATIVES:
        rules = [rule for rule in RULES if of(rule) == algorithm or not rule.algorithms]
        rules = [rule for rule in rules if rule.key not in ("multiagent", "evaluation_config")]
        config = merged(bare(rule, payload) for rule in rules if not rule.section)
        how = {"algorithm": algorithm, "on_unknown": "pass", "api_stack": stack}
        with watched():
            translation = translate({**config, **inside(config)}, origin=Origin.FILE, **how)
        assert not reaches_ray(translation), algorithm


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_stays_behind_has_a_row_with_its_path(algorithm):
    """Save where nothing reads a key any more: there the key's own row says so."""
    rules = [rule for rule in RULES if of(rule) == algorithm and not rule.section]
    config = merged(bare(rule, f"{MARK}.Class") for rule in rules)
    told = {f.path for f in translate(config, algorithm=algorithm, origin=Origin.FILE).report}
    for rule in rules:
        path = f"$.{rule.key.replace('*', 'anything')}"
        assert any(t == path or t.startswith((f"{path}.", f"{path}[")) for t in told), rule.id


def test_a_key_whose_value_nothing_reads_sets_nothing():
    unread = [rule for rule in RULES if isinstance(rule.value, Unread) and not rule.section]
    for rule in unread:
        assert not rule.target_on("new"), rule.id
        assert not rule.target_on("old"), rule.id
    for algorithm in ALGORITHMS:
        for stack in ("new", "old"):
            how = {"algorithm": algorithm, "api_stack": stack, "on_unknown": "pass"}
            how["legacy_ray"] = Era(None)  # which keys are there may show a Ray
            plain = translate({}, **how)
            for value in (True, 3, "x", {"a": 1}):
                config = merged(bare(r, value) for r in unread if of(r) == algorithm)
                assert translate(config, **how).calls == plain.calls, (algorithm, value)


def test_every_default_of_every_ray_fits_its_declaration():
    wrong = []
    for section, key in keys.every_key():
        part = "model" if section == "model_config" else section
        name = f"{part}.{key}" if section in keys.PARTS else key
        rule = find_rule(name, ("DQN" if section in (*keys.PARTS, "common") else section,))
        for run in keys.section(section)[key]:
            if rule is None or rule.section or len(run) < 3 or "$" in str(run[2]):
                continue  # sections have rules of their own; `$` marks what was no literal
            default = math.inf if run[2] == "inf" else run[2]  # JSON has none
            if (section, key) == ("CQL", "actor_lr"):
                continue  # Ray 2.36 and 2.37 had a comma too many behind it; `default_config` knows
            if rule.value.find_problem(default) or rule.value.find_problem(default, Origin.FILE):
                wrong.append((section, key, run[2]))
    assert not wrong


def cyclic_list():
    value = []
    value.append(value)
    return value


def cyclic_dict():
    value = {}
    value["model"] = value["evaluation_config"] = value["x"] = value
    return value


def shared():
    value = ["x"]
    for _ in range(60):
        value = [value, value]
    return value


def deep():
    value = {}
    for _ in range(5000):
        value = {"evaluation_config": value, "sub_exploration": value}
    return value


STRUCTURES = {
    "a list in itself": cyclic_list(),
    "a dict in itself": cyclic_dict(),
    "shared lists": shared(),
    "deep dicts": deep(),
    "a huge number": 10**5000,
    "not a number": float("nan"),
    "infinity": float("inf"),
    "many": 10**9,
    "a large space": "Discrete(2000000000)",
    "a larger space": "Box(-1, 1, (100000, 100000), float32)",
    "a space of nothing known": "Box(0, 1, (4,), V2000000000)",
    "much text": "x" * 1_000_000,
    "blanks": "a." * 32 + " ",
    "brackets": "[" * 10_000,
    "other keys": {3: 4, None: 5, ("a", "b"): 6, 1.5: {2: 3}},
}


@pytest.mark.parametrize("value", STRUCTURES.values(), ids=STRUCTURES)
def test_no_structure_of_any_key_hangs_or_grows(value):
    for algorithm in REPRESENTATIVES:
        config = merged(bare(r, value) for r in RULES if of(r) == algorithm and not r.section)
        how = {"algorithm": algorithm, "origin": Origin.FILE, "on_unknown": "pass"}
        for attacked in (config, inside(config), {"model": value, "multiagent": value}):
            started = time.process_time()
            translation = translate(attacked, **how)
            assert time.process_time() - started < 5, algorithm
            assert len(translation.report) < 5000


@pytest.mark.parametrize("origin", Origin)
def test_configs_inside_of_configs_end(origin):
    """Each level is translated as a config of its own; an evaluation has no evaluation."""
    config = {"gamma": 0.5}
    for _ in range(DEEPEST_CONFIG + 2):
        config = {"evaluation_config": config}
    valid = validate_config(config, ("PPO", "PPO"), origin)
    (row,) = [f for f in valid.findings if "deep" in f.message]
    assert row.path == "$" + ".evaluation_config" * (DEEPEST_CONFIG + 1)
    depth, part = 0, valid.config
    while part:
        part, depth = part.get("evaluation_config"), depth + 1
    assert depth == DEEPEST_CONFIG + 1


def test_numbers_that_would_start_or_hold_too_much_stay_behind():
    config = {
        "num_workers": 10**9,
        "num_envs_per_worker": 10**6,
        "evaluation_num_workers": 10**9,
        "buffer_size": 10**12,
        "model": {"fcnet_hiddens": [60_000, 60_000], "lstm_cell_size": 10**9},
        "observation_space": "Discrete(2000000000)",
        "gamma": float("nan"),
    }
    how = {"origin": Origin.FILE, "legacy_ray": Era(None)}
    translation = translate(config, algorithm="DQN", **how)
    assert set(translation.calls) <= {"learners"}
    assert len(translation.report.findings) >= len(config)


class TestTrust:
    """`trust` lets exact names of code pass, and the report says so."""

    def test_an_exact_name_passes_as_text_or_as_a_record(self):
        for callbacks in (f"{MARK}.Own", f"{MARK}:Own", GlobalRef(MARK, "Own")):
            translation = translate(
                {"callbacks": callbacks},
                algorithm="PPO",
                origin=Origin.FILE,
                trust={f"{MARK}:Own"},
            )
            assert translation.calls["callbacks"]["callbacks_class"].callbacks == f"{MARK}.Own"
            assert translation.report.facts["trusted"] == f"{MARK}:Own ($.callbacks)"

    @pytest.mark.parametrize("trust", [f"{MARK}:Ow", f"{MARK}:Own2", f"x.{MARK}:Own", "os:system"])
    def test_no_other_name_does(self, trust):
        config = {"callbacks": f"{MARK}.Own"}
        translation = translate(config, algorithm="PPO", origin=Origin.FILE, trust={trust})
        assert not translation.calls

    def test_it_opens_no_key_that_takes_no_code(self):
        config = {"replay_buffer_config": {"type": f"{MARK}.Own"}, "framework": f"{MARK}.Own"}
        trusted = validate_config(config, ("DQN", "DQN"), Origin.FILE, [f"{MARK}:Own"])
        assert trusted.config == {"replay_buffer_config": {"type": f"{MARK}.Own"}}

    @pytest.mark.parametrize("name", ["module.Class", "module", ":x", "a:b c", "a:b:c", "*:*"])
    def test_a_name_that_is_none_is_an_error(self, name):
        with pytest.raises(ConfigError, match="not the name of a class"):
            translate({}, algorithm="PPO", origin=Origin.FILE, trust={name})


@pytest.mark.parametrize("key", [5, None, (1, 2), b"env"], ids=repr)
def test_keys_that_are_no_text_stay_behind(key):
    translation = translate(
        {"num_workers": 1, "model": {key: 1}, key: 1}, algorithm="PPO", origin=Origin.FILE
    )
    told = [row for row in translation.report if row.rule == "validation.key"]
    assert [row.message for row in told] == ["a key of a config has to be text"] * 2
    assert key not in translation.legacy_config
    assert key not in translation.legacy_config.get("model", {})


def test_what_is_given_beside_a_file_counts_as_the_users():
    config = {"callbacks": f"{MARK}.Theirs", "num_workers": 1}
    given = {"callbacks": {"on_episode_end": print}}
    how = {"algorithm": "PPO", "origin": Origin.FILE, "legacy_ray": Era(None)}
    translation = translate(config, given=given, **how)
    assert translation.calls["callbacks"]["callbacks_class"].callbacks == given["callbacks"]
    assert translation.calls["env_runners"] == {"num_env_runners": 1}
    assert translation.report.clean


def test_the_config_that_is_kept_has_nothing_of_a_file_that_did_not_fit():
    config = {rule.key: f"{MARK}.Class" for rule in RULES if "." not in rule.key}
    kept = translate(config, algorithm="DQN", origin=Origin.FILE, on_unknown="warn").legacy_config
    assert MARK not in str({k: v for k, v in kept.items() if k != "env_config"})


@pytest.mark.parametrize("name", ["CartPole-v1", "ALE/Pong-v5", "my_env", "Cars And Lights"])
def test_names_of_environments_pass(name):
    assert translate({"env": name}, algorithm="PPO", origin=Origin.FILE).env["env"] == name


def test_environments_that_make_others_by_name_do_not():
    config = {"env": "GymV26Environment-v0", "env_config": {"env_id": f"{MARK}:Env-v0"}}
    assert translate(config, algorithm="PPO", origin=Origin.FILE).env["env"] is None


#: Paths and code, which only people give.
PEOPLES = ("env", "input", "input_config", "output", "callbacks", "multiagent", "evaluation_config")


def test_what_a_file_may_say_is_translated_as_ever():
    """The real configs of the repository, whose values are plain: no setting is lost."""
    from tests.unit.config.samples import FILES, first_of_grids, read

    for file in FILES:
        experiment = read(file)
        config = {
            key: value
            for key, value in first_of_grids(experiment["config"]).items()
            if key not in PEOPLES
        }
        how = {"algorithm": experiment["run"], "on_unknown": "pass"}
        ours = translate(config, **how)
        if not ours.refused:
            assert translate(config, origin=Origin.FILE, **how).calls == ours.calls, file
