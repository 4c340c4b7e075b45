"""The stack of the machine: what is out of order is an error, and what Python takes is taken."""

import pytest

from rllib_compat.errors import CorruptCheckpointError
from rllib_compat.formats import load_pickle
from rllib_compat.formats.pickles.names import NAMES
from rllib_compat.formats.pickles.opcodes import Unpickler
from rllib_compat.neutral import Budget
from tests.unit.pickles.assembler import MARK, POP, STOP, items, number, text

EMPTY_DICT, SETITEMS, ADDITEMS = b"}", b"u", b"\x90"


def test_a_key_without_a_value_is_an_error_and_not_dropped():
    odd = EMPTY_DICT + MARK + text("a") + number(1) + text("b") + SETITEMS + STOP
    with pytest.raises(CorruptCheckpointError, match="a key without a value"):
        load_pickle(odd)


def test_a_mark_can_be_taken_back():
    assert load_pickle(number(1) + MARK + POP + STOP).value == 1


def test_elements_of_a_set_are_taken_by_a_set_alone():
    pair = items(text("a"), number(1))
    with pytest.raises(CorruptCheckpointError, match="elements for a dict"):
        load_pickle(b"\x80\x04" + EMPTY_DICT + MARK + pair + ADDITEMS + STOP)


def test_a_python_object_is_never_called_even_if_it_could_be():
    called = []
    with pytest.raises(ValueError, match="a call of a builtin_function_or_method"):
        Unpickler(memoryview(b""), NAMES, Budget(), "").construct(called.append, (1,))
    assert not called
