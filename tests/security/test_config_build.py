"""A hostile config, built by the installed Ray: what got through would be run here."""

import pytest

from rllib_compat.config import Origin, translate
from tests.security.test_config_text import CODE, PAYLOADS, RULES, bare, inside, merged, of
from tests.security.watch import watched

# The warnings are Ray's and gymnasium's, about their own old parts.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}")
    for kind in ("DeprecationWarning", "UserWarning", "FutureWarning")
]

#: Keys whose values Ray imports, opens or calls when they are text.
DANGEROUS = {
    "PPO": ("new", "callbacks", "env_runner_cls", "worker_cls", "model.fcnet_activation"),
    "DQN": ("old", "replay_buffer_config.type", "exploration_config.type", "sample_collector"),
    "SAC": ("old", "Q_model.custom_model", "policy_mapping_fn", "model.custom_model"),
    "BC": ("new", "input", "input_read_method", "offline_data_class", "prelearner_class"),
}
TEXTS = [text for text in PAYLOADS.values() if isinstance(text, str)]


@pytest.mark.parametrize("algorithm", DANGEROUS)
def test_nothing_of_a_hostile_config_runs_when_ray_builds_it(algorithm, ray_imported):
    stack, *keys = DANGEROUS[algorithm]
    how = {"algorithm": algorithm, "api_stack": stack, "on_unknown": "pass"}
    rules = [r for r in RULES if r.key in keys]
    for payload in (*TEXTS, CODE, PAYLOADS["a constructor"]):
        config = merged(bare(rule, payload) for rule in rules)
        for attacked in (config, inside(config)):
            translation = translate(attacked, origin=Origin.FILE, env="CartPole-v1", **how)
            if not translation.refused:
                with watched():
                    assert translation.algorithm_config


@pytest.mark.parametrize("payload", [*TEXTS, CODE], ids=lambda p: str(p)[:30])
def test_nothing_of_any_key_runs_when_ray_builds_the_config(payload, ray_imported):
    rules = [r for r in RULES if not r.section and of(r) in ("PPO", "DQN") and r.key != "env"]
    config = merged(bare(rule, payload) for rule in rules)
    for algorithm in ("PPO", "DQN"):
        for stack in ("new", "old"):
            how = {"algorithm": algorithm, "api_stack": stack, "on_unknown": "pass"}
            translation = translate(config, origin=Origin.FILE, env="CartPole-v1", **how)
            with watched():
                assert translation.algorithm_config


@pytest.fixture(scope="module")
def ray_imported():
    """Ray opens files and starts programs when it is imported; that is not what is looked at."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for algorithm in DANGEROUS:
            for stack in ("new", "old"):
                how = {"algorithm": algorithm, "api_stack": stack, "env": "CartPole-v1"}
                assert translate({}, **how).algorithm_config
