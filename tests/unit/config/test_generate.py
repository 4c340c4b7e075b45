"""The keys of a release are read out of its sources, without running any of them."""

import json
import zipfile

import pytest

from tests.legacy_keys.__main__ import TABLE, differences, write
from tests.legacy_keys.sources import EXPRESSION, PLACEHOLDER, SECTION, Release

DICTS = {
    "agents/trainer.py": "COMMON_CONFIG: dict = {'lr': 1e-3, 'model': MODEL_DEFAULTS, 'cb': f()}\n"
    "from ray.rllib.models.catalog import MODEL_DEFAULTS\n"
    "def with_common_config(x): raise RuntimeError\nraise RuntimeError\n",
    "models/catalog.py": "MODEL_DEFAULTS = {'fcnet_hiddens': [256] * 1, 'dim': 84}",
    "agents/dqn/dqn.py": "DQNTrainer = build_trainer()\n"
    "from ray.rllib.utils.deprecation import DEPRECATED_VALUE\n"
    "DEFAULT_CONFIG = with_common_config({'lr': 5e-4, 'buffer_size': int(5e4), 'old': "
    "DEPRECATED_VALUE, 'exploration_config': {'type': 'E', 'x': 2 * 3}, 'model': {'dim': 42}})",
    "agents/dqn/apex.py": "ApexTrainer = DQNTrainer.with_updates()\n"
    "from ray.rllib.agents.dqn.dqn import DEFAULT_CONFIG as DQN_CONFIG\n"
    "APEX_DEFAULT_CONFIG = merge_dicts(DQN_CONFIG, {'n_step': 3, "
    "'exploration_config': {'type': 'P'}})",
}
CLASSES = {
    "algorithms/algorithm_config.py": "class AlgorithmConfig:\n def __init__(self, cls=None):\n"
    "  self.algo_class = cls\n  self.lr = 0.001\n  self.gamma: float = 0.99\n"
    "  if not hasattr(self, 'exploration_config'):\n   self.exploration_config = {}\n"
    "  self.what = What.THIS\n"
    "class What:\n THIS = 'this'\n",
    "algorithms/dqn/dqn.py": "from ray.rllib.algorithms.algorithm_config import AlgorithmConfig\n"
    "class DQNConfig(AlgorithmConfig):\n def __init__(self):\n"
    "  self.exploration_config = {'type': 'E'}\n  super().__init__()\n"
    "  self.evaluation(evaluation_config=AlgorithmConfig.overrides(explore=False))\n"
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
    common = {"algo_class": None, "lr": 0.001, "gamma": 0.99, "what": "this"}
    assert found["common"] == common | {"exploration_config": {}}
    assert found["DQN"] == {
        "lr": 5e-4,
        "exploration_config": SECTION,
        "exploration_config.type": "E",
        "evaluation_config": SECTION,
        "evaluation_config.explore": False,
        "replay_buffer_config": SECTION,
        "replay_buffer_config.type": "R",
        "replay_buffer_config.capacity": 50,
        "replay_buffer_config.n": 1,
    }


def test_the_table_is_as_the_generator_writes_it(tmp_path):
    path = tmp_path / "table.json"
    path.write_text(TABLE.read_text())
    write([], path)
    assert path.read_text() == TABLE.read_text()


def test_what_was_read_of_a_release_takes_the_place_of_what_the_table_said_of_it(release, tmp_path):
    path = tmp_path / "table.json"
    common = {"lr": [["2.7.2", "2.10.0", 0.001]], "gone": [["2.7.2", "2.10.0", 1]]}
    not_found = {"tau": [["2.7.2", "2.10.0", 0.005]]}
    table = {"versions": ["2.7.2", "2.10.0"], "keys": {"common": common, "SAC": not_found}}
    path.write_text(json.dumps(table))
    later = {name: text.replace("0.001", "0.002") for name, text in CLASSES.items()}
    write([release(later, "2.20.0"), release(CLASSES, "2.10.0")], path)
    written = json.loads(path.read_text())
    assert written["versions"] == ["2.7.2", "2.10.0", "2.20.0"]
    lr = [["2.7.2", "2.10.0", 0.001], ["2.20.0", "2.20.0", 0.002]]
    assert written["keys"]["common"]["lr"] == lr
    assert written["keys"]["common"]["gone"] == [["2.7.2", "2.7.2", 1]]
    assert written["keys"]["DQN"]["lr"] == [["2.10.0", "2.20.0", 5e-4]]
    assert written["keys"]["SAC"] == not_found


def test_a_release_that_says_something_else_than_the_table_is_seen(release):
    compared, found = differences(release(CLASSES, "2.10.0"))
    assert compared
    assert not any(line.startswith("common.lr:") for line in found)
    assert any(line.startswith("common.what: 'absent' in the table") for line in found)
