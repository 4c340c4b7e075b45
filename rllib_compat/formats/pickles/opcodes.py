"""What each opcode of a pickle does to the machine.

Opcodes are described in `pickletools` of the standard library. Each is a function of its name
here, which errors show in capitals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from rllib_compat.formats.pickles import reading
from rllib_compat.formats.pickles.values import Blank
from rllib_compat.neutral.budget import exceeded
from rllib_compat.neutral.records import StandIn

if TYPE_CHECKING:
    from rllib_compat.formats.pickles.machine import Machine

Handler: TypeAlias = "Callable[[Machine], None]"
STOP = ord(".")

#: About how many bytes of memory an opcode makes: the object, its place on the stack, and what
#: grows around it. The others make no more than twenty times the bytes that they take in the file.
MEMORY = [8] * 256
for _opcodes, _size in (
    (b"\x8f\x91", 230),  # sets
    (b"}d", 80),  # dicts
    (b"](lt", 80),  # lists and tuples, and the lists of what lies above a mark
    (b"\x85\x86\x87", 80),
    (b"cio\x93PQ\x82\x83\x84", 500),  # names, and their count
    (b"R\x81\x92ob", 500),  # what constructors and states make
    (b"\x94pqr", 110),  # entries of the memo
    (b"su\x90ae", 110),  # a key and a value, the first of several
    (b"XV\x8cUTSGFJMLI\x8a\x8b\x8dBC\x8e\x96", 60),
):
    for _code in _opcodes:
        MEMORY[_code] = _size
_HIGHEST_PROTOCOL = 5


def _unknown_opcode(machine: Machine) -> None:
    raise ValueError(f"no pickle has the opcode {machine.data[machine.pos - 1]:#04x}")


HANDLERS: list[Handler] = [_unknown_opcode] * 256


def _on(opcode: bytes) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        HANDLERS[opcode[0]] = handler
        return handler

    return register


def _literal(opcode: bytes, name: str, read: Callable[[Any], Any]) -> None:
    """Registers an opcode that pushes what `read` makes of the bytes after it."""

    def push(machine: Machine) -> None:
        machine.stack.append(read(machine))

    push.__name__ = name
    HANDLERS[opcode[0]] = push


for _opcode, _name, _read in (
    (b"N", "none", lambda _: None),
    (b"\x88", "newtrue", lambda _: True),
    (b"\x89", "newfalse", lambda _: False),
    (b"I", "int", reading.int_line),
    (b"L", "long", reading.long_line),
    (b"J", "binint", reading.int4),
    (b"K", "binint1", reading.uint1),
    (b"M", "binint2", reading.uint2),
    (b"\x8a", "long1", reading.integer(reading.uint1)),
    (b"\x8b", "long4", reading.integer(reading.uint4)),
    (b"F", "float", reading.float_line),
    (b"G", "binfloat", reading.float8),
    # The byte strings of Python 2 become text: they are names and keys, or the data of arrays,
    # whose constructors take text as well.
    (b"S", "string", reading.string_line),
    (b"T", "binstring", reading.text(reading.uint4, "latin-1")),
    (b"U", "short_binstring", reading.text(reading.uint1, "latin-1")),
    (b"V", "unicode", reading.unicode_line),
    (b"X", "binunicode", reading.text(reading.uint4, "utf-8", "surrogatepass")),
    (b"\x8c", "short_binunicode", reading.text(reading.uint1, "utf-8", "surrogatepass")),
    (b"\x8d", "binunicode8", reading.text(reading.uint8, "utf-8", "surrogatepass")),
    (b"B", "binbytes", reading.byte_string(reading.uint4)),
    (b"C", "short_binbytes", reading.byte_string(reading.uint1)),
    (b"\x8e", "binbytes8", reading.byte_string(reading.uint8)),
    (b"\x96", "bytearray8", reading.byte_array),
    (b")", "empty_tuple", lambda _: ()),
    (b"]", "empty_list", lambda _: []),
    (b"}", "empty_dict", lambda _: {}),
    (b"\x8f", "empty_set", lambda _: set()),
):
    _literal(_opcode, _name, _read)


@_on(b"\x80")
def _proto(machine: Machine) -> None:
    protocol = machine.uint1()
    if protocol > _HIGHEST_PROTOCOL:
        raise ValueError(f"protocol {protocol} is not known")


@_on(b"\x95")
def _frame(machine: Machine) -> None:
    size = reading.uint8(machine)
    if size > len(machine.data) - machine.pos:
        raise ValueError("a frame reaches beyond the end")


@_on(b"(")
def _mark(machine: Machine) -> None:
    machine.marks.append(machine.stack)
    machine.stack = []


@_on(b"0")
def _pop(machine: Machine) -> None:
    if machine.stack:
        machine.stack.pop()
    else:
        machine.pop_mark()


@_on(b"1")
def _pop_mark(machine: Machine) -> None:
    machine.pop_mark()


@_on(b"2")
def _dup(machine: Machine) -> None:
    machine.stack.append(machine.stack[-1])


def _remember(machine: Machine, index: int) -> None:
    memo = machine.memo
    memo[index] = machine.stack[-1]
    if len(memo) > machine.budget.memo:
        raise exceeded("memo")


@_on(b"\x94")
def _memoize(machine: Machine) -> None:
    _remember(machine, len(machine.memo))


@_on(b"p")
def _put(machine: Machine) -> None:
    _remember(machine, int(machine.line()))


@_on(b"q")
def _binput(machine: Machine) -> None:
    _remember(machine, machine.uint1())


@_on(b"r")
def _long_binput(machine: Machine) -> None:
    _remember(machine, reading.uint4(machine))


def _recall(machine: Machine, index: int) -> None:
    if index not in machine.memo:
        raise ValueError(f"nothing was remembered as {index}")
    value = machine.memo[index]
    if type(value) is Blank and value.value is not None:
        value = value.value
    machine.stack.append(value)


@_on(b"g")
def _get(machine: Machine) -> None:
    _recall(machine, int(machine.line()))


@_on(b"h")
def _binget(machine: Machine) -> None:
    _recall(machine, machine.uint1())


@_on(b"j")
def _long_binget(machine: Machine) -> None:
    _recall(machine, reading.uint4(machine))


@_on(b"t")
def _tuple(machine: Machine) -> None:
    items = tuple(machine.pop_mark())
    machine.stack.append(items)


def _tuple_of(machine: Machine, size: int) -> None:
    stack = machine.stack
    if len(stack) < size:
        raise IndexError
    stack[-size:] = [tuple(stack[-size:])]


@_on(b"\x85")
def _tuple1(machine: Machine) -> None:
    _tuple_of(machine, 1)


@_on(b"\x86")
def _tuple2(machine: Machine) -> None:
    _tuple_of(machine, 2)


@_on(b"\x87")
def _tuple3(machine: Machine) -> None:
    _tuple_of(machine, 3)


@_on(b"l")
def _list(machine: Machine) -> None:
    items = machine.pop_mark()
    machine.stack.append(items)


@_on(b"d")
def _dict(machine: Machine) -> None:
    flat = machine.pop_mark()
    made: dict[Any, Any] = {}
    machine.set_items(made, flat)
    machine.stack.append(made)


@_on(b"\x91")
def _frozenset(machine: Machine) -> None:
    items = machine.checked_keys(machine.pop_mark())
    machine.stack.append(frozenset(items))


@_on(b"a")
def _append(machine: Machine) -> None:
    item = machine.stack.pop()
    machine.append(machine.stack[-1], [item])


@_on(b"e")
def _appends(machine: Machine) -> None:
    items = machine.pop_mark()
    machine.append(machine.stack[-1], items)


@_on(b"s")
def _setitem(machine: Machine) -> None:
    value = machine.stack.pop()
    key = machine.stack.pop()
    machine.set_items(machine.stack[-1], [key, value])


@_on(b"u")
def _setitems(machine: Machine) -> None:
    flat = machine.pop_mark()
    machine.set_items(machine.stack[-1], flat)


@_on(b"\x90")
def _additems(machine: Machine) -> None:
    items = machine.pop_mark()
    target = machine.stack[-1]
    if type(target) is not set:
        raise ValueError(f"elements for a {type(target).__name__}")
    target.update(machine.checked_keys(items, len(target)))


@_on(b"c")
def _global(machine: Machine) -> None:
    at = machine.pos - 1
    machine.stack.append(machine.name(reading.name_line(machine), reading.name_line(machine), at))


@_on(b"\x93")
def _stack_global(machine: Machine) -> None:
    name = machine.stack.pop()
    module = machine.stack.pop()
    machine.stack.append(machine.name(module, name, machine.pos - 1))


@_on(b"R")
def _reduce(machine: Machine) -> None:
    args = machine.stack.pop()
    callee = machine.stack.pop()
    machine.stack.append(machine.construct(callee, args))


@_on(b"\x81")
def _newobj(machine: Machine) -> None:
    _reduce(machine)


@_on(b"\x92")
def _newobj_ex(machine: Machine) -> None:
    kwargs = machine.stack.pop()
    args = machine.stack.pop()
    callee = machine.stack.pop()
    if type(kwargs) is not dict:
        raise ValueError("keyword arguments that are not a dict")
    machine.stack.append(machine.construct(callee, args, kwargs))


@_on(b"o")
def _obj(machine: Machine) -> None:
    callee, *args = machine.pop_mark()
    machine.stack.append(machine.construct(callee, tuple(args)))


@_on(b"i")
def _inst(machine: Machine) -> None:
    at = machine.pos - 1
    callee = machine.name(reading.name_line(machine), reading.name_line(machine), at)
    args = tuple(machine.pop_mark())
    machine.stack.append(machine.construct(callee, args))


@_on(b"b")
def _build(machine: Machine) -> None:
    state = machine.stack.pop()
    target = machine.stack.pop()
    machine.stack.append(machine.build(target, state))


def _persistent(machine: Machine, key: Any, at: int) -> None:
    if machine.persistent is not None:
        machine.stack.append(machine.persistent(key))
    else:
        machine.stack.append(StandIn(machine.name("pickle", "persistent_load", at), (key,)))


@_on(b"P")
def _persid(machine: Machine) -> None:
    at = machine.pos - 1
    _persistent(machine, reading.name_line(machine), at)


@_on(b"Q")
def _binpersid(machine: Machine) -> None:
    _persistent(machine, machine.stack.pop(), machine.pos - 1)


def _extension(machine: Machine, read: Callable[[Any], int]) -> None:
    # A process-wide registry that the file's writer had, and no one else has.
    at = machine.pos - 1
    machine.stack.append(machine.name("copyreg", f"extension {read(machine)}", at))


@_on(b"\x82")
def _ext1(machine: Machine) -> None:
    _extension(machine, reading.uint1)


@_on(b"\x83")
def _ext2(machine: Machine) -> None:
    _extension(machine, reading.uint2)


@_on(b"\x84")
def _ext4(machine: Machine) -> None:
    _extension(machine, reading.int4)


@_on(b"\x97")
@_on(b"\x98")
def _next_buffer(_machine: Machine) -> None:
    raise ValueError("it needs a buffer that was kept outside of the file")
