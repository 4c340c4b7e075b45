"""What Ray removed and this package has: its configs, and microbatches."""

import inspect

import numpy as np
import pytest

pytest.importorskip("ray")

from rllib_compat import registry
from rllib_compat.algorithms import DEFAULTS
from rllib_compat.config import default_config, translate
from rllib_compat.errors import ConfigError
from rllib_compat.neutral import Severity
from rllib_compat.ray_versions import configs
from tests.marks import OTHERS_WARNINGS
from tests.unit.algorithms.test_losses import MODULE, Recorded, local_learner, updated

pytestmark = OTHERS_WARNINGS

OURS = [row.name for row in registry.trained() if row.ours]

#: The last Ray that had them; and how it called what is in `DEFAULTS`.
LAST = "2.10.0"
THEN = {
    "exploration_noise": "exploration_config",
    "lambda_": "lambda",
    "minibatch_size": "sgd_minibatch_size",
    "num_env_runners": "num_workers",
    "num_envs_per_env_runner": "num_envs_per_worker",
    "num_epochs": "num_sgd_iter",
    "shuffle_batch_per_epoch": "shuffle_sequences",
}

#: Settings of this package's own.
NEW = {
    "BanditLinTS": ("alpha", "lambda_", "drawn_from"),
    "BanditLinUCB": ("alpha", "lambda_"),
    "Random": ("rollouts_per_iteration",),
}

#: A number that each reads.
KEYS = dict.fromkeys(OURS, "lr") | {
    "APEX_DDPG": "critic_lr",
    "BanditLinTS": "gamma",
    "BanditLinUCB": "gamma",
    "CRR": "critic_lr",
    "DDPG": "actor_lr",
    "MADDPG": "actor_lr",
    "RNNSAC": "critic_lr",
    "Random": "gamma",
    "TD3": "critic_lr",
}


GIVEN = {"type": "Given"}

#: What trains in their place on the old API stack.
ON_OLD_STACK = {"A3C": "A2C", "APEX": "DQN", "DDPPO": "PPO"}


def as_one_dict(last, rest):
    """What APEX and APEX_DDPG had in sections, and by other names."""
    optimizer, exploration = last["optimizer"], last["exploration_config"]
    assert float(last["max_requests_in_flight_per_replay_worker"]) == float("inf")
    noise = rest.get("exploration_noise", {})
    assert exploration["type"] == f"PerWorker{noise.get('type', 'EpsilonGreedy')}"
    with_critics = not noise
    return {
        **last,
        **last["replay_buffer_config"],
        **optimizer,
        "debug_replay": optimizer["debug"],
        "epsilon": [[0, 1.0], [10000, 0.02]],
        "exploration_config": noise,
        "max_requests_in_flight_per_env_runner": last["max_requests_in_flight_per_sampler_worker"],
        "max_requests_in_flight_per_replay_worker": None,
        "per_worker_exploration": True,
        "worker_side_prioritization": with_critics,
    }


@pytest.mark.parametrize("name", OURS)
def test_defaults_are_those_of_the_last_ray_that_had_the_algorithm(name):
    # An exploration class asked for it since Ray 0.8.1, and nothing did by default.
    last = {"parameter_noise": None, **default_config(name, LAST)}
    config = configs.todays_config(name)
    if name == "MADDPG":  # which kept an older name
        last = last | {"grad_clip": last["grad_norm_clipping"]}
        last["buffer_size"] = last["replay_buffer_config"]["capacity"]
    if name in ("R2D2", "RNNSAC"):  # whose buffer had them
        older = default_config(name, "1.13.0")  # which wrote all of them down
        buffer = older | older["replay_buffer_config"] | last["replay_buffer_config"]
        buffer |= {"buffer_size": buffer["capacity"], "burn_in": buffer["replay_burn_in"]}
        last = buffer | last | {key: buffer[key] for key in ("buffer_size", "burn_in")}
        last["per_worker_exploration"] = False  # a class asked for it
    if name == "RNNSAC":
        last = last | {
            f"{new}_lr": last["optimization"][f"{old}_learning_rate"]
            for old, new in {"actor": "actor", "critic": "critic", "entropy": "alpha"}.items()
        }
    exploration = last["exploration_config"]
    if name in ("QMIX", "R2D2"):
        start, end = exploration["initial_epsilon"], exploration["final_epsilon"]
        last["epsilon"] = [[0, start], [exploration["epsilon_timesteps"], end]]
    if name == "QMIX":
        last |= last["model"] | {"buffer_size": last["replay_buffer_config"]["capacity"]}
    if name == "RNNSAC":
        assert exploration["type"] == "StochasticSampling"
        last["epsilon"] = None
    if name == "A3C":  # it has A2C's settings
        last["microbatch_size"] = default_config("A2C", LAST)["microbatch_size"]
    if registry.of(name).undistributed:
        last = as_one_dict(last, DEFAULTS.get(registry.of(name).undistributed, {}))
    for attribute, default in DEFAULTS[name].items():
        if attribute in NEW.get(name, ()):
            assert getattr(config, attribute) == default
            continue
        then = last[THEN.get(attribute, attribute)]
        if attribute == "replay_buffer_config":  # of episodes today
            assert ("Prioritized" in default["type"]) == ("Prioritized" in then["type"])
            assert default["capacity"] == then["capacity"]
            assert default.get("alpha") == then.get("prioritized_replay_alpha")
            assert default.get("beta") == then.get("prioritized_replay_beta")
            continue
        assert [default] == (then if then == [True] else [then])  # a slip of TD3's
        assert getattr(config, attribute) == default


@pytest.mark.parametrize("name", OURS)
def test_training_names_and_explains_each_setting(name):
    config = configs.todays_config(name)
    tables = (vars(part).get("settings", {}) for part in type(config).__mro__)
    told = (vars(part).get("module_settings", {}) for part in type(config).__mro__)
    for table in (*tables, *told):
        for setting, meaning in table.items():
            owner = next(p for p in type(config).__mro__ if setting in {*_own(p)})
            assert setting in inspect.signature(owner.training).parameters
            assert f"    {setting}: {meaning}" in owner.training.__doc__
            assert getattr(config.copy().training(**{setting: GIVEN}), setting) == GIVEN
    with pytest.raises(TypeError, match="no_setting"):
        config.training(no_setting=1)


def _own(part):
    return [*vars(part).get("module_settings", ()), *vars(part).get("settings", ())]


def test_a_default_stands_beside_the_meaning_of_a_setting():
    doc = type(configs.todays_config("TD3")).__mro__[1].training.__doc__
    assert "twin_q: Whether a second critic is learned" in doc
    assert "Default: False." in doc


@pytest.mark.parametrize("name", OURS)
def test_rays_tune_finds_it_by_its_name(name):
    from ray.tune.registry import get_trainable_cls

    config = configs.todays_config(name)
    assert get_trainable_cls(name) is config.algo_class
    assert type(config.algo_class.get_default_config()) is type(config)


@pytest.mark.parametrize("name", OURS)
def test_the_code_that_is_printed_makes_the_same_config(name):
    config = {"env": "CartPole-v1", KEYS[name]: 0.01}
    translation = translate(config, algorithm=name, legacy_ray="1.13.0")
    made = {}
    exec(translation.to_python(), made)
    assert type(made["config"]) is type(translation.algorithm_config)
    assert getattr(made["config"], KEYS[name]) == 0.01
    assert not translation.refused


@pytest.mark.parametrize("name", [n for n in OURS if not registry.of(n).new_stack_only])
def test_what_needs_the_old_api_stack_has_a_policy_there(name):
    config = {"env": "CartPole-v1", "observation_filter": lambda shape: None}
    translation = translate(config, algorithm=name)
    assert translation.api_stack == "old"
    assert not translation.refused
    made = translation.algorithm_config
    policy = made.algo_class.get_default_policy_class(made)
    assert policy.__name__ == f"{ON_OLD_STACK.get(name, name)}TorchPolicy"


@pytest.mark.parametrize(
    ("name", "rule", "steps"), [("A3C", "a3c", 3 * 10), ("DDPPO", "ddppo_old", 3 * 100 * 5)]
)
def test_what_the_old_api_stack_has_not_trains_there_as_another_and_is_told_so(name, rule, steps):
    config = {"env": "CartPole-v1", "num_workers": 3, "observation_filter": lambda shape: None}
    translation = translate(config, algorithm=name)
    made = translation.algorithm_config
    made.validate()
    assert made.train_batch_size == steps
    (row,) = [row for row in translation.report if row.rule == f"settle.{rule}"]
    assert row.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("A2C", {"use_critic": False}),
        ("A2C", {"microbatch_size": 0}),
        ("A3C", {"microbatch_size": 5}),
        ("DDPPO", {"torch_distributed_backend": "carrier pigeon"}),
    ],
)
def test_settings_that_contradict_each_other_are_told(name, wrong):
    config = configs.todays_config(name).environment("CartPole-v1").training(**wrong)
    with pytest.raises(ConfigError, match=r"critic|microbatch|pigeon"):
        config.validate()


def test_microbatches_change_nothing_until_the_batch_is_whole_and_then_what_it_would_have():
    recorded = Recorded("a2c-without-gae")  # it does not clip
    whole = local_learner(recorded)
    updated(whole, recorded.chunks())
    expected = whole.module[MODULE].get_state()
    parts = local_learner(recorded, train_batch_size_per_learner=17, microbatch_size=9)
    before = parts.module[MODULE].get_state()
    updated(parts, recorded.chunks()[:2])
    for name, weights in parts.module[MODULE].get_state().items():
        np.testing.assert_array_equal(weights, before[name])
    updated(parts, recorded.chunks()[2:])
    for name, weights in parts.module[MODULE].get_state().items():
        np.testing.assert_allclose(weights, expected[name], rtol=1e-5, atol=1e-5)
