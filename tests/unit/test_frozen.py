"""Records are frozen as those of the standard library are, only cheaper to define."""

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllib_compat.neutral.frozen import frozen


@frozen
class Point:
    """A record."""

    x: int
    y: int = 0
    tags: list = field(default_factory=list, compare=False, repr=False)


@dataclass(frozen=True)
class Theirs:
    """The same, of the standard library."""

    x: int
    y: int = 0
    tags: list = field(default_factory=list, compare=False, repr=False)


ARGUMENTS = st.tuples(st.integers(0, 2), st.integers(0, 2), st.lists(st.integers(), max_size=2))


@given(ARGUMENTS, ARGUMENTS)
def test_equality_hashes_and_text_are_those_of_the_standard_library(one, other):
    ours, theirs = (Point(*one), Point(*other)), (Theirs(*one), Theirs(*other))
    assert (ours[0] == ours[1]) == (theirs[0] == theirs[1])
    assert (hash(ours[0]) == hash(ours[1])) == (hash(theirs[0]) == hash(theirs[1]))
    assert repr(ours[0]) == repr(theirs[0]).replace("Theirs", "Point")
    assert ours[0] != theirs[0]


@given(ARGUMENTS)
def test_copies_and_pickles_are_equal_and_hold_everything(arguments):
    point = Point(*arguments)
    for other in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):
        assert asdict(other) == asdict(point)
    assert replace(point, x=9) == Point(9, point.y)


def test_nothing_of_a_record_can_be_changed():
    point = Point(1)
    for name in ("x", "y", "tags", "new"):
        with pytest.raises(FrozenInstanceError):
            setattr(point, name, 3)
    with pytest.raises(FrozenInstanceError):
        del point.x
    assert point == Point(1)


def test_what_a_class_defines_itself_stays():
    @frozen
    class Loud:
        """A record with methods of its own."""

        x: int

        def __repr__(self):
            return "loud"

        def __eq__(self, other):
            return True

    assert repr(Loud(1)) == "loud"
    assert Loud(1) == 7


def test_a_subclass_has_the_fields_of_both():
    @frozen(kw_only=True)
    class Named(Point):
        """A record below another."""

        name: str

    named = Named(1, name="a")
    assert [f.name for f in fields(named)] == ["x", "y", "tags", "name"]
    assert named == Named(1, name="a") != Named(1, name="b")
    assert named != Point(1)


def test_without_equality_a_record_is_equal_to_itself_alone():
    @frozen(eq=False)
    class Step:
        """A record that is compared by what it is."""

        x: int

    step = Step(1)
    assert step == step != Step(1)
    assert len({step, Step(1)}) == 2
