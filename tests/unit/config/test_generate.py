"""The keys of a release are read out of its sources, without running any of them."""

import zipfile

import pytest

from rllib_compat.config.keys.generate import EXPRESSION, PLACEHOLDER, SECTION, Release

DICTS = {
    "agents/trainer.py": "COMMON_CONFIG: dict = {'lr': 1e-3, 'model': MODEL_DEFAULTS, 'cb': f()}\n"
    "from ray.rllib.models.catalog import MODEL_DEFAULTS\n"
    "def with_common_config(x): raise RuntimeError\nraise RuntimeError\n",
    "models/catalog.py": "MODEL_DEFAULTS = {'fcnet_hiddens': [256] * 1, 'dim': 84}",
    "agents/dqn/dqn.py": "from ray.rllib.utils.deprecation import DEPRECATED_VALUE\n"
    "DEFAULT_CONFIG = with_common_config({'lr': 5e-4, 'buffer_size': int(5e4), 'old': "
    "DEPRECATED_VALUE, 'exploration_config': {'type': 'E', 'x': 2 * 3}, 'model': {'dim': 42}})",
    "agents/dqn/apex.py": "from ray.rllib.agents.dqn.dqn import DEFAULT_CONFIG as DQN_CONFIG\n"
    "APEX_DEFAULT_CONFIG = merge_dicts(DQN_CONFIG, {'n_step': 3, "
    "'exploration_config': {'type': 'P'}})",
}
CLASSES = {
    "algorithms/algorithm_config.py": "class AlgorithmConfig:\n def __init__(self):\n"
    "  self.lr = 0.001\n  self.gamma: float = 0.99\n",
    "algorithms/dqn/dqn.py": "from ray.rllib.algorithms.algorithm_config import AlgorithmConfig\n"
    "class DQNConfig(AlgorithmConfig):\n def __init__(self):\n  super().__init__()\n"
    "  self.lr = 5e-4\n  self.replay_buffer_config = {'type': 'R'}\n"
    "  self.replay_buffer_config.update({'capacity': 50})\n  self.replay_buffer_config['n'] = 1\n",
}


@pytest.fixture
def release(tmp_path):
    def make(files, version):
        path = tmp_path / f"ray-{version}-cp37-cp37m-manylinux1_x86_64.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            for name, text in files.items():
                wheel.writestr(f"ray-{version}.data/purelib/ray/rllib/{name}", text)
        return Release(path)

    return make


def test_dicts_of_old_releases(release):
    found = release(DICTS, "0.8.5").sections()
    assert found["common"] == {"lr": 1e-3, "model": SECTION, "cb": EXPRESSION}
    assert found["model"] == {"fcnet_hiddens": EXPRESSION, "dim": 84}
    assert found["DQN"] == {
        "lr": 5e-4,
        "buffer_size": 50000,
        "old": PLACEHOLDER,
        "exploration_config": SECTION,
        "exploration_config.type": "E",
        "exploration_config.x": 6,
        "model": SECTION,
        "model.dim": 42,
    }
    assert found["APEX"] == found["DQN"] | {"n_step": 3, "exploration_config.type": "P"}


def test_config_classes_of_later_releases(release):
    found = release(CLASSES, "2.10.0").sections()
    assert found["common"] == {"lr": 0.001, "gamma": 0.99}
    assert found["DQN"] == {
        "lr": 5e-4,
        "replay_buffer_config": SECTION,
        "replay_buffer_config.type": "R",
        "replay_buffer_config.capacity": 50,
        "replay_buffer_config.n": 1,
    }
