"""Calls of constructors: what they can't use stays in an inert record, and nothing is lost."""

import pickle

from rllib_compat.formats import load_pickle
from rllib_compat.formats.pickles.names import NAMES
from rllib_compat.formats.pickles.opcodes import Unpickler
from rllib_compat.neutral import Budget, StandIn
from tests.unit.pickles.assembler import (
    EMPTY_TUPLE,
    STOP,
    items,
    listed,
    mapped,
    named,
    number,
    text,
)

RECONSTRUCT = named("copyreg", "_reconstructor")


def test_a_subclass_of_a_list_keeps_its_items_as_protocol_0_stores_them():
    base = items(named("mine", "Numbers"), named("builtins", "list"), listed(number(1), number(2)))
    made = load_pickle(RECONSTRUCT + base + b"R" + STOP).value
    assert type(made) is StandIn
    assert made.args[2] == [1, 2]


def test_an_object_without_a_base_state_is_made_of_its_class_alone():
    base = items(named("collections", "OrderedDict"), named("builtins", "object"), b"N")
    assert load_pickle(RECONSTRUCT + base + b"R" + STOP).value == {}


def test_keywords_that_a_constructor_does_not_take_are_kept():
    called = named("collections", "OrderedDict") + EMPTY_TUPLE + mapped((text("a"), number(1)))
    made = load_pickle(b"\x80\x04" + called + b"\x92" + STOP).value
    assert type(made) is StandIn
    assert made.kwargs == {"a": 1}


def test_a_pickle_inside_of_a_pickle_is_paid_for_with_its_bytes():
    budget = Budget()
    inner = pickle.dumps([1, 2, 3])
    before = budget.bytes
    _, size = Unpickler(memoryview(b""), NAMES, budget, "").nested(memoryview(inner))
    assert size == len(inner)
    assert budget.bytes == before - size


def test_what_a_pickle_inside_of_a_pickle_names_is_reported():
    machine = Unpickler(memoryview(b""), NAMES, Budget(), "")
    machine.nested(memoryview(named("os", "system") + STOP))
    assert machine.globals == {"os.system": 1}
    assert machine.unknown == {"os.system": 1}
