"""The rules as a table: complete, unambiguous, and about settings that exist."""

import importlib
import inspect
from collections import Counter

import pytest

from rllib_compat import registry
from rllib_compat.config import every_rule, find_rule, translate
from rllib_compat.neutral import Verdict
from rllib_compat.ray_versions import configs
from rllib_compat.registry import keys

RULES = list(every_rule())


def test_ids_are_unique():
    assert not [name for name, n in Counter(rule.id for rule in RULES).items() if n > 1]


def test_every_key_of_every_living_algorithm_has_a_rule():
    missing = []
    for section, key in keys.every_key():
        if section in registry.ALGORITHMS and registry.of(section).becomes != section:
            continue
        if section in keys.PARTS:
            part = "model" if section == "model_config" else section
            name, algorithm = f"{part}.{key}", "DQN"
        else:
            name, algorithm = key, "PPO" if section == "common" else section
        whole = find_rule(name.partition(".")[0], (algorithm,))
        covered = whole is not None and whole.convert is not None  # it looks at its parts itself
        if find_rule(name, (algorithm,)) is None and not covered and not _of_replay(name):
            missing.append((section, key))
    assert not missing


def _of_replay(name):
    return find_rule(name, ("DQN",)) is not None


def test_keys_of_removed_algorithms_are_known():
    for section, key in keys.every_key():
        if section in registry.ALGORITHMS and registry.of(section).removed:
            assert keys.lifetime(key) is not None


def test_every_removed_algorithm_says_what_to_do():
    assert set(keys.algorithms()) <= set(registry.ALGORITHMS)
    trained = {row.name for row in registry.trained()}
    for row in registry.ALGORITHMS.values():
        assert bool(row.why) == row.removed
        assert row.becomes in (*trained, "")


def test_rules_that_drop_or_refuse_say_why():
    for rule in RULES:
        if rule.verdict in (Verdict.DROPPED, Verdict.REFUSED):
            assert rule.why, rule.id
        assert not rule.why.endswith("."), rule.id


def _arguments():
    """Method → argument names, over all algorithm configs of the installed Ray."""
    found = {}
    for row in registry.trained():
        try:
            module = importlib.import_module(row.home)
        except ImportError:  # IQL came with Ray 2.52; DreamerV3 needs pillow
            continue
        for cls in getattr(module, f"{row.name}Config").__mro__:
            for method, function in vars(cls).items():
                if inspect.isfunction(function):
                    found.setdefault(method, set()).update(inspect.signature(function).parameters)
    return found


@pytest.mark.filterwarnings("ignore::UserWarning")  # Ray's examples register their environments
@pytest.mark.parametrize("stack", ["new", "old"])
def test_every_target_is_an_argument_of_the_installed_ray(stack):
    known = _arguments()
    wrong = []
    for rule in RULES:
        target = rule.target_on(stack)
        method, _, argument = target.partition(".")
        if not target or method == "env" or rule.family == "dreamer_iql":
            continue
        argument = argument.partition(".")[0]
        if configs.has_setting(target) and argument and argument not in known[method]:
            wrong.append((rule.id, target))
    assert not wrong


SCHEDULES = {
    "lr_schedule": [[0, 0.001], [100, 0.0001]],
    "entropy_coeff_schedule": [[10, 0.01], [100, 0.0]],
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("stack", ["new", "old"])
@pytest.mark.parametrize("algorithm", [row.name for row in registry.trained() if row.ours])
def test_every_key_of_an_algorithm_of_ours_builds_on_its_stacks(algorithm, stack):
    """With what each Ray had by default, and with a schedule where there is one."""
    if stack == "old" and registry.of(algorithm).new_stack_only:
        return
    for key, ranges in keys.section(algorithm).items():
        if "." in key:
            continue
        defaults = (keys.default_at(algorithm, key, first) for first, _, _ in ranges)
        values = [value for is_known, value in defaults if is_known]
        for value in [*values, *([SCHEDULES[key]] if key in SCHEDULES else [])]:
            config = {key: value}
            translation = translate(config, algorithm=algorithm, api_stack=stack, on_unknown="warn")
            if not translation.refused:
                translation.algorithm_config.validate()


def test_model_targets_are_fields_of_the_model_config():
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    fields = set(DefaultModelConfig.__dataclass_fields__)
    ours = {"sigma0", "soft_q_temperature", "parameter_noise"}  # of modules of this package
    ours |= {"custom_model", "custom_model_config"}
    newer = {f for f in keys.section("model_config") if "layernorm" in f or "fusionnet" in f}
    for rule in RULES:
        if rule.target.startswith("rl_module.model_config."):
            assert rule.target.rpartition(".")[2] in fields | newer | ours, rule.id
