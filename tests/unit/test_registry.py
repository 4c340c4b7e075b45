"""The table of algorithms: whole, and true."""

import pytest

from rllib_compat import registry
from rllib_compat.errors import ConfigError

ROWS = list(registry.ALGORITHMS.values())


def test_a_name_of_any_era_finds_its_row():
    for stem, suffix in ((s, x) for row in ROWS for s in row.stems for x in registry.SUFFIXES):
        assert registry.class_names()[f"{stem}{suffix}"] == registry.find(f"{stem}{suffix}").name
    for row in ROWS:
        assert registry.find(row.name) is row
        assert registry.find(f"contrib/{row.name}") is row


def test_no_two_rows_share_a_class_name():
    stems = [stem for row in ROWS for stem in row.stems]
    assert len(stems) == len(set(stems))


@pytest.mark.parametrize("name", ["PPPO", "", "Trainer", "contrib/"])
def test_a_name_that_no_rllib_had_is_refused(name):
    with pytest.raises(ConfigError, match="never had an algorithm"):
        registry.find(name)


def test_what_rows_refer_to_exists():
    for row in ROWS:
        assert not row.derives or row.derives in registry.ALGORITHMS
        assert not row.becomes or registry.of(row.becomes).becomes == row.becomes


def test_what_can_be_read_has_an_algorithm_to_train_it():
    for row in ROWS:
        if row.reader:
            assert row.becomes
            assert registry.of(row.becomes).optimizers == row.optimizers


def test_a_family_is_an_algorithm_with_all_that_derive_from_it():
    assert set(registry.family("DQN")) == {"DQN", "SimpleQ", "APEX", "R2D2"}
    assert set(registry.family("IMPALA")) == {"IMPALA", "APPO", "AlphaStar"}
    assert registry.family("PG") == ("PG",)


def test_a_modules_first_algorithm_is_the_one_whose_defaults_it_held():
    first = {place: rows[0].name for place, rows in registry.modules().items()}
    assert first["ppo"] == "PPO"
    assert first["a3c"] == "A3C"
    assert first["ddpg.td3"] == "TD3"
    assert first["dqn"] == first["dqn.dqn"] == "DQN"
    assert first["qmix"] == "QMIX"
    assert first["bc"] == "BC"
    assert first["marwil"] == "MARWIL"


def test_todays_algorithms_are_those_of_the_installed_ray():
    from ray.rllib.algorithms.registry import ALGORITHMS

    ours = {row.name for row in registry.todays()}
    assert set(ALGORITHMS) <= ours
    assert ours - set(ALGORITHMS) <= {"IQL"}  # it came with Ray 2.52
