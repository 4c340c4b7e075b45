"""What objects of old Rays had and ours can't have is answered by a sentence."""

import pytest

import rllib_compat as compat
from rllib_compat.errors import GoneError
from rllib_compat.registry.legacy_api import GONE
from rllib_compat.runtime import (
    LegacyBaseEnv,
    LegacyEpisode,
    LegacyModel,
    LegacyPolicies,
    LegacyPolicy,
    LegacyWorker,
)
from rllib_compat.trainer import LegacyOptimizer, LegacyWorkers
from tests import legacy_api

#: How old code called an object → its class here.
OBJECTS = {
    "base_env": LegacyBaseEnv,
    "episode": LegacyEpisode,
    "policy_map": LegacyPolicies,
    "trainer": compat.Trainer,
    "trainer.optimizer": LegacyOptimizer,
    "workers": LegacyWorkers,
    "worker": LegacyWorker,
    "policy": LegacyPolicy,
    "model": LegacyModel,
}


def test_the_guide_has_a_row_for_each_name_that_an_object_had():
    assert legacy_api.PAGE.read_text("utf-8") == legacy_api.page()


def test_every_object_has_its_part_of_the_table():
    assert OBJECTS.keys() == GONE.keys() - {"remote worker"}  # methods, which say it when called


@pytest.mark.parametrize(("kind", "name"), [(k, n) for k in OBJECTS for n in GONE[k]])
def test_what_is_gone_says_what_to_do(kind, name):
    found = OBJECTS[kind].__new__(OBJECTS[kind])
    with pytest.raises(GoneError) as error:
        getattr(found, name)
    assert (error.value.where, error.value.fix) == (f"{kind}.{name}", GONE[kind][name])
    assert not hasattr(found, name)


@pytest.mark.parametrize(
    "kind", sorted(OBJECTS.keys() - {"worker", "base_env", "episode"})
)  # what is of today answers there
def test_what_never_was_is_a_plain_attribute_error(kind):
    with pytest.raises(AttributeError, match="nothing_like_it") as error:
        _ = OBJECTS[kind].__new__(OBJECTS[kind]).nothing_like_it
    assert not isinstance(error.value, GoneError)
