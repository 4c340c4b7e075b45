"""Calls of constructors: what they can't use stays in an inert record, and nothing is lost."""

import pickle

from rllib_compat.formats import load_pickle
from rllib_compat.neutral import Budget, StandIn
from tests.unit.pickles.assembler import (
    EMPTY_TUPLE,
    STOP,
    items,
    listed,
    mapped,
    named,
    number,
    raw,
    text,
    torch_file,
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


def loading(inner):
    """A pickle that has torch load the bytes of another one."""
    return named("torch.storage", "_load_from_bytes") + items(raw(inner)) + b"R" + STOP


def test_a_pickle_inside_of_a_pickle_is_paid_for_with_its_bytes():
    inner = torch_file(pickle.dumps(list(range(1000))))
    spent = []
    for outer in (loading(inner), raw(inner) + STOP):
        budget = Budget(bytes=1 << 20)
        load_pickle(outer, budget=budget, is_input=False)
        spent.append((1 << 20) - budget.bytes)
    assert spent[0] - spent[1] == len(inner)


def test_what_a_pickle_inside_of_a_pickle_names_is_reported():
    found = load_pickle(loading(torch_file(named("os", "system") + STOP)))
    assert found.globals == {"torch.storage._load_from_bytes": 1, "os.system": 1}
    assert found.unknown == {"os.system": 1}
