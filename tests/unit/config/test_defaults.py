"""A key that is left out means the default of its Ray: for every key of every era, by machine."""

from functools import cache

import pytest

from rllib_compat import registry
from rllib_compat.adapters import EnvSettings
from rllib_compat.config import completion, default_config, defaults, translate
from rllib_compat.config.defaults import todays_default
from rllib_compat.neutral import Verdict
from rllib_compat.registry import keys
from tests.unit.config.samples import setting

ORDER = keys.versions()
OLD = ORDER[: ORDER.index(defaults.TODAY)]
ENV = {"env": "CartPole-v1"}


def _had(algorithm, release):
    at = ORDER.index(release)
    runs = (run for runs in keys.section(algorithm).values() for run in runs)
    return any(ORDER.index(run[0]) <= at <= ORDER.index(run[1]) for run in runs)


ALGORITHMS = [
    row.name
    for row in registry.ALGORITHMS.values()
    if not registry.of(row.becomes or row.name).removed
]


def _changes(algorithm):
    """The releases with other defaults than the one before."""
    before = None
    for release in OLD:
        if _had(algorithm, release) and (config := default_config(algorithm, release)) != before:
            before = config
            yield release


PAIRS = [(name, release) for name in ALGORITHMS for release in _changes(name)]


def _flat(arguments, prefix=""):
    for name, value in arguments.items():
        if isinstance(value, dict) and value and set(value) != {"grid_search"}:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def meaning(translation):
    """What a translation comes to: its settings, but for those that Ray has by itself."""
    settings = dict(_flat(translation.calls))
    settings.pop("environment.env", None)
    told = {}
    for name, value in settings.items():
        whole = next((w for w in completion.REPLACE_DEFAULT if name.startswith(f"{w}.")), None)
        group = [n for n in settings if whole and n.startswith(f"{whole}.")] or [name]
        if not all(defaults.is_todays(translation.algorithm, n, settings[n]) for n in group):
            told[name] = repr(value)
    env = {k: v for k, v in translation.env.items() if v not in (None, False)}
    env.setdefault("preprocessor_pref", "deepmind")  # which means nothing but to Atari games
    return told, EnvSettings(**env)


def of(algorithm, release, config):
    found = translate({**ENV, **config}, algorithm=algorithm, legacy_ray=release, on_unknown="warn")
    return meaning(found)


silent = cache(lambda algorithm, release: of(algorithm, release, {}))


@pytest.mark.parametrize(("algorithm", "release"), PAIRS)
def test_all_defaults_given_or_left_out_are_the_same(algorithm, release):
    given = {**default_config(algorithm, release), **ENV}
    assert of(algorithm, release, given) == silent(algorithm, release)


def _every_default():
    """Each default of each key, once: in the first release that had it, for one algorithm."""
    for section in ("common", *ALGORITHMS):
        algorithm = "PPO" if section == "common" else section
        for key, runs in keys.section(section).items():
            for run in runs:
                if len(run) < 3 or "." in key or run[0] not in OLD or not _had(algorithm, run[0]):
                    continue
                config = default_config(algorithm, run[0])
                if key in config and key != "env":
                    yield algorithm, run[0], key, config[key]


def test_each_default_given_or_left_out_is_the_same():
    """One by one: what is given at its default never wins over what another default says."""
    wrong = [
        (algorithm, release, key)
        for algorithm, release, key, value in _every_default()
        if of(algorithm, release, {key: value}) != silent(algorithm, release)
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("algorithm", "release", "path", "then"),
    [
        ("PPO", "2.10.0", "fault_tolerance.restart_failed_env_runners", False),
        ("PPO", "0.8.5", "fault_tolerance.restart_failed_env_runners", False),
        ("PPO", "0.8.5", "env_runners.sample_timeout_s", None),
        ("PPO", "2.35.0", "env_runners.sample_timeout_s", "today's"),
        ("PPO", "0.8.5", "reporting.metrics_episode_collection_timeout_s", 180),
        ("PPO", "0.8.5", "environment.normalize_actions", False),
        ("PPO", "0.7.7", "environment.normalize_actions", False),
        ("SAC", "0.7.7", "environment.normalize_actions", "today's"),
        ("PPO", "2.35.0", "training.minibatch_size", "today's"),
        ("IMPALA", "2.31.0", "learners.num_learners", 0),
        ("DQN", "0.8.5", "env_runners.num_env_runners", "today's"),
        ("DQN", "0.7.7", "training.epsilon", [[0, 1.0], [10000, 0.02]]),
        ("DQN", "2.20.0", "training.epsilon", [[0, 1.0], [10000, 0.02]]),
        ("PPO", "1.13.0", "evaluation.evaluation_sample_timeout_s", 86_400.0),
        ("APPO", "0.8.5", "training.vtrace", "today's"),
    ],
)
def test_what_is_left_out_is_the_default_of_its_ray(algorithm, release, path, then):
    found = translate(ENV, algorithm=algorithm, legacy_ray=release)
    assert setting(found, path, "today's") == then


@pytest.mark.parametrize("release", ["2.10.0", "2.20.0", "2.31.0", "2.35.0"])
def test_ppo_without_a_minibatch_key_keeps_128(release):
    found = translate(ENV, algorithm="PPO", legacy_ray=release)
    todays = todays_default("PPO", "training.minibatch_size")[1]
    assert setting(found, "training.minibatch_size", todays) == 128


def test_a_part_of_a_dict_keeps_the_other_defaults():
    """As Trainers merged configs: DQN's epsilon ended at 0.02, the class's own default is 0.05."""
    config = {"exploration_config": {"epsilon_timesteps": 200}}
    found = translate(config, algorithm="DQN", legacy_ray="1.0.1")
    assert setting(found, "training.epsilon") == [[0, 1.0], [200, 0.02]]


def test_another_type_keeps_none_of_them():
    config = {"exploration_config": {"type": "SoftQ", "temperature": 0.5}}
    found = translate(config, algorithm="DQN", legacy_ray="1.0.1", api_stack="old")
    assert setting(found, "env_runners.exploration_config") == config["exploration_config"]


@pytest.mark.parametrize("release", ["0.8.0", "1.0.1", "1.13.0", "2.10.0"])
@pytest.mark.parametrize("algorithm", ["APEX", "DQN", "SAC", "A2C"])
def test_no_default_of_an_old_ray_needs_the_old_api_stack(algorithm, release):
    found = translate(ENV, algorithm=algorithm, legacy_ray=release)
    assert found.api_stack == "new"
    assert not [
        f
        for f in found.report
        if f.path == "$.exploration_config" and f.severity.value == "warning"
    ]


@pytest.mark.parametrize("release", ["1.13.0", "2.0.1", "2.1.0", "2.10.0"])
def test_a_section_is_a_dict_in_each_ray(release):
    assert isinstance(default_config("RNNSAC", release)["replay_buffer_config"], dict)
    assert not translate({}, algorithm="RNNSAC", legacy_ray=release).refused


@pytest.mark.parametrize("algorithm", ["BanditLinTS", "BanditLinUCB"])
def test_how_a_bandit_explores_by_default_is_taken_back_at_every_ray(algorithm):
    for release in OLD[ORDER.index("0.8.5") :]:
        explores = {"exploration_config": default_config(algorithm, release)["exploration_config"]}
        report = translate({**ENV, **explores}, algorithm=algorithm, legacy_ray=release).report
        assert not [row for row in report.findings if row.verdict is Verdict.REFUSED], release
