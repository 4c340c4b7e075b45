"""Every public name of every old Ray comes with an import, or says what to do in its place."""

import sys

import pytest

pytest.importorskip("ray")

import gymnasium

from rllib_compat import legacy
from rllib_compat.errors import GoneError
from rllib_compat.registry import old_names
from tests import old_imports
from tests.marks import OTHERS_WARNINGS

pytestmark = OTHERS_WARNINGS

EXAMPLES = f"{old_names.OLD_PACKAGE}.ray.rllib.examples"

EVERY = [
    (module, name)
    for module in sorted(old_names.modules())
    for name in sorted(old_names.names(module))
    if name.isidentifier() and not name.startswith("_")
]


@pytest.fixture(autouse=True)
def activated():
    legacy.activate()
    yield
    legacy.deactivate()
    # Code that imports gymnasium, as some of it does here, gets today's environments; the next not.
    for name in [name for name in sys.modules if name.startswith(EXAMPLES)]:
        del sys.modules[name]


def test_none_is_missing_and_what_is_gone_says_what_to_do():
    missing = []
    for place in EVERY:
        if old_imports.load(old_imports.by_statement, *place) == "none":
            missing.append(place)
            continue
        try:
            found = legacy.lookup(*place)
        except (ImportError, gymnasium.error.DependencyNotInstalled):
            # of a library that Ray's or gymnasium's module is about
            continue
        if legacy.is_removed(found):
            with pytest.raises(GoneError) as error:
                found()
            assert error.value.fix
            assert ".".join(place) in str(error.value)
    assert missing == []


@pytest.mark.parametrize("way", list(old_imports.WAYS)[1:])
def test_each_way_of_loading_gives_the_same(way):
    for place in EVERY[::40]:
        kinds = [old_imports.load(old_imports.WAYS[w], *place) for w in ("import statement", way)]
        assert kinds[0] == kinds[1], place
