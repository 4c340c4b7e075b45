"""The loop over the opcodes of a pickle, what each does to the machine, and their operands.

`pickletools` of the standard library describes the opcodes; errors call them by its names.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeAlias

from rllib_compat.formats.pickles.machine import Machine, Reader, check_finished
from rllib_compat.neutral.budget import budget_error
from rllib_compat.neutral.records import StandIn

_STOP = ord(".")
_HIGHEST_PROTOCOL = 5

# Byte strings of this size and above stay views on the buffer, so that arrays cost no copy.
_VIEW_FROM = 1 << 16
# Python refuses to print integers beyond 4300 digits, which these bytes can't reach.
_LONGEST_INTEGER = 1024

# After so many opcodes, less one, the clock is looked at.
_CLOCK_STEPS = 0xFFFF

#: About how many bytes of memory an opcode makes: the object, its place on the stack, and what
#: grows around it. The others make no more than twenty times the bytes that they take in the file.
_MEMORY = [8] * 256
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
        _MEMORY[_code] = _size


# Operands: binary ones, …


def _uint1(reader: Reader) -> int:
    pos = reader.pos
    reader.pos = pos + 1
    return reader.data[pos]


def _packed_reader(code: str) -> Callable[[Reader], Any]:
    packing = struct.Struct(code)
    size, unpack_from = packing.size, packing.unpack_from

    def read(reader: Reader) -> Any:
        pos = reader.pos
        reader.pos = pos + size
        return unpack_from(reader.data, pos)[0]

    return read


_uint2, _uint4, _uint8 = map(_packed_reader, ("<H", "<I", "<Q"))
_int4, _float8 = map(_packed_reader, ("<i", ">d"))


def _bytes_reader(
    size: Callable[[Reader], int], kind: Callable[[memoryview], bytes | bytearray] = bytes
) -> Callable[[Reader], bytes | bytearray | memoryview]:
    """Reads bytes that follow their length; many stay a (read-only) view, mutable ones as well."""

    def read(reader: Reader) -> bytes | bytearray | memoryview:
        view = reader.take(size(reader))
        return view if len(view) >= _VIEW_FROM else kind(view)

    return read


def _text_reader(size: Callable[[Reader], int], encoding: str = "utf-8") -> Callable[[Reader], str]:
    errors = "surrogatepass" if encoding == "utf-8" else "strict"
    return lambda reader: str(reader.take(size(reader)), encoding, errors)


def _integer_reader(size: Callable[[Reader], int]) -> Callable[[Reader], int]:
    """Reads a two's complement integer that follows its length in bytes."""

    def read(reader: Reader) -> int:
        view = reader.take(size(reader))
        if len(view) > _LONGEST_INTEGER:
            raise ValueError(f"an integer of {len(view)} bytes")
        return int.from_bytes(view, "little", signed=True)

    return read


# … and the text forms of protocol 0.


def _int_line(reader: Reader) -> int | bool:
    line = reader.line()
    return line == b"01" if line in (b"00", b"01") else _digits(line)


def _digits(line: bytes) -> int:
    if len(line) > 2 * _LONGEST_INTEGER:
        raise ValueError(f"an integer of {len(line)} digits")
    return int(line, 0)


def _string_line(reader: Reader) -> str:
    """Reads the `repr` of a byte string of Python 2."""
    line = reader.line().strip()
    if len(line) < 2 or line[:1] not in (b"'", b'"') or line[:1] != line[-1:]:
        raise ValueError("a string has no quotes")
    return line[1:-1].decode("unicode_escape")


def _name_line(reader: Reader) -> str:
    return reader.line().decode("utf-8")


def _memo_line(reader: Reader) -> int:
    return int(reader.line())


Handler: TypeAlias = Callable[[Machine], None]


def _unknown(machine: Machine) -> None:
    raise ValueError(f"no pickle has the opcode {machine.data[machine.pos - 1]:#04x}")


def _read_name(machine: Machine) -> Any:
    """The name that GLOBAL and INST have as lines."""
    at = machine.pos - 1
    return machine.name(_name_line(machine), _name_line(machine), at)


def _make_dict(machine: Machine) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    machine.set_items(made, machine.pop_mark())
    return made


def _push(read: Callable[[Any], Any]) -> Handler:
    """Pushes what `read` makes of the bytes after the opcode, or of what lies above a mark."""

    def push(machine: Machine) -> None:
        value = read(machine)  # before the stack is looked up: it is another one behind a mark
        machine.stack.append(value)

    return push


def _put(read: Callable[[Machine], int]) -> Handler:
    return lambda machine: machine.remember(read(machine))


def _get(read: Callable[[Machine], int]) -> Handler:
    return _push(lambda machine: machine.recall(read(machine)))


def _append(take: Callable[[Machine], list[Any]]) -> Handler:
    def append(machine: Machine) -> None:
        items = take(machine)
        machine.append(machine.stack[-1], items)

    return append


def _set_items(take: Callable[[Machine], list[Any]]) -> Handler:
    def set_items(machine: Machine) -> None:
        flat = take(machine)
        machine.set_items(machine.stack[-1], flat)

    return set_items


def _make_object(machine: Machine) -> Any:
    """What OBJ makes: the class lies above the mark, before its arguments."""
    callee, *args = machine.pop_mark()
    return machine.construct(callee, tuple(args))


def _make_instance(machine: Machine) -> Any:
    """What INST makes: the class is named as lines."""
    callee = _read_name(machine)
    return machine.construct(callee, tuple(machine.pop_mark()))


def _extension(read: Callable[[Machine], int]) -> Handler:
    """A name in a process-wide registry that the file's writer had, and no one else has."""

    def push(machine: Machine) -> None:
        at = machine.pos - 1
        machine.stack.append(machine.name("copyreg", f"extension {read(machine)}", at))

    return push


def _persistent(read: Callable[[Machine], Any]) -> Handler:
    """An object that the pickle stores outside of itself, by its id."""

    def push(machine: Machine) -> None:
        at = machine.pos - 1
        key = read(machine)
        if machine.persistent is not None:
            machine.stack.append(machine.persistent(key))
        else:
            machine.stack.append(StandIn(machine.name("pickle", "persistent_load", at), (key,)))

    return push


def _proto(machine: Machine) -> None:
    protocol = _uint1(machine)
    if protocol > _HIGHEST_PROTOCOL:
        raise ValueError(f"protocol {protocol} is not known")


def _frame(machine: Machine) -> None:
    size = _uint8(machine)
    if size > len(machine.data) - machine.pos:
        raise ValueError("a frame reaches beyond the end")


def _mark(machine: Machine) -> None:
    machine.marks.append(machine.stack)
    machine.stack = []


def _pop(machine: Machine) -> None:
    if machine.stack:
        machine.stack.pop()
    else:
        machine.pop_mark()


def _additems(machine: Machine) -> None:
    items = machine.pop_mark()
    target = machine.stack[-1]
    if type(target) is not set:
        raise ValueError(f"elements for a {type(target).__name__}")
    target.update(machine.checked_keys(items, len(target)))


def _next_buffer(_machine: Machine) -> None:
    raise ValueError("it needs a buffer that was kept outside of the file")


_HANDLERS: list[Handler] = [_unknown] * 256
for _opcode, _handler in (
    (b"\x80", _proto),
    (b"\x95", _frame),
    (b"(", _mark),
    (b"0", _pop),
    (b"N", _push(lambda _: None)),
    (b"\x88", _push(lambda _: True)),
    (b"\x89", _push(lambda _: False)),
    (b"I", _push(_int_line)),
    (b"L", _push(lambda reader: _digits(reader.line().removesuffix(b"L")))),
    (b"J", _push(_int4)),
    (b"K", _push(_uint1)),
    (b"M", _push(_uint2)),
    (b"\x8a", _push(_integer_reader(_uint1))),
    (b"\x8b", _push(_integer_reader(_uint4))),
    (b"F", _push(lambda reader: float(reader.line()))),
    (b"G", _push(_float8)),
    # The byte strings of Python 2 become text: they are names and keys, or the data of arrays,
    # whose constructors take text as well.
    (b"S", _push(_string_line)),
    (b"T", _push(_text_reader(_uint4, "latin-1"))),
    (b"U", _push(_text_reader(_uint1, "latin-1"))),
    (b"V", _push(lambda reader: reader.line().decode("raw_unicode_escape"))),
    (b"X", _push(_text_reader(_uint4))),
    (b"\x8c", _push(_text_reader(_uint1))),
    (b"\x8d", _push(_text_reader(_uint8))),
    (b"B", _push(_bytes_reader(_uint4))),
    (b"C", _push(_bytes_reader(_uint1))),
    (b"\x8e", _push(_bytes_reader(_uint8))),
    (b"\x96", _push(_bytes_reader(_uint8, bytearray))),
    (b")", _push(lambda _: ())),
    (b"]", _push(lambda _: [])),
    (b"}", _push(lambda _: {})),
    (b"\x8f", _push(lambda _: set())),
    (b"c", _push(_read_name)),
    (b"t", _push(lambda machine: tuple(machine.pop_mark()))),
    (b"l", _push(lambda machine: machine.pop_mark())),
    (b"d", _push(_make_dict)),
    (b"\x91", _push(lambda machine: frozenset(machine.checked_keys(machine.pop_mark())))),
    (b"2", _push(lambda machine: machine.stack[-1])),
    (b"1", lambda machine: machine.pop_mark()),
    (b"\x94", _put(lambda machine: len(machine.memo))),
    (b"p", _put(_memo_line)),
    (b"q", _put(_uint1)),
    (b"r", _put(_uint4)),
    (b"g", _get(_memo_line)),
    (b"h", _get(_uint1)),
    (b"j", _get(_uint4)),
    (b"\x85", _push(lambda machine: tuple(machine.pop(1)))),
    (b"\x86", _push(lambda machine: tuple(machine.pop(2)))),
    (b"\x87", _push(lambda machine: tuple(machine.pop(3)))),
    (b"a", _append(lambda machine: machine.pop(1))),
    (b"e", _append(lambda machine: machine.pop_mark())),
    (b"s", _set_items(lambda machine: machine.pop(2))),
    (b"u", _set_items(lambda machine: machine.pop_mark())),
    (b"\x93", _push(lambda machine: machine.name(*machine.pop(2), machine.pos - 1))),
    (b"R", _push(lambda machine: machine.construct(*machine.pop(2)))),
    (b"\x81", _push(lambda machine: machine.construct(*machine.pop(2)))),
    (b"\x92", _push(lambda machine: machine.construct(*machine.pop(3)))),
    (b"o", _push(_make_object)),
    (b"i", _push(_make_instance)),
    (b"b", _push(lambda machine: machine.build(*machine.pop(2)))),
    (b"\x90", _additems),
    (b"\x97", _next_buffer),
    (b"\x98", _next_buffer),
    (b"P", _persistent(_name_line)),
    (b"Q", _persistent(lambda machine: machine.stack.pop())),
    (b"\x82", _extension(_uint1)),
    (b"\x83", _extension(_uint2)),
    (b"\x84", _extension(_int4)),
):
    _HANDLERS[_opcode[0]] = _handler


class Unpickler(Machine):
    """The machine with its loop over the opcodes of a pickle."""

    def run(self) -> Any:
        """Runs the pickle to its end and returns its value; `pos` then is behind it.

        Raises:
            CorruptCheckpointError: The pickle is damaged or hostile.
        """
        start, opcode = 0, _STOP
        data, handlers, memory, budget = self.data, _HANDLERS, _MEMORY, self.budget
        made = 0
        try:
            for steps in range(1, budget.opcodes + 1):
                start = self.pos
                opcode = data[start]
                self.pos = start + 1
                if opcode == _STOP:
                    budget.spend("opcodes", steps)
                    budget.spend("made", made)
                    break
                made += memory[opcode]
                if made > budget.made:
                    raise budget_error("made")
                handlers[opcode](self)
                if not steps & _CLOCK_STEPS:
                    budget.check_time()
            else:
                raise budget_error("opcodes")
            if len(self.stack) != 1 or self.marks:
                raise ValueError("it ends with more or less than one value")
            value = self.stack.pop()
            check_finished(value, self.budget)
        # A hostile file can make any expression of ours fail; whichever it is, the file is at
        # fault, and the error says where.
        except Exception as error:
            raise self.error(error, f"offset {start} ({_opcode_name(opcode)})") from error
        return value

    def inner(self, data: memoryview, persistent: Callable[[Any], Any] | None) -> Machine:
        """The machine for a pickle that lies inside of this one."""
        return Unpickler(
            data, self.names, self.budget, "", persistent=persistent, level=self.level + 1
        )


def _opcode_name(opcode: int) -> str:
    import pickletools

    names = {row.code: row.name for row in pickletools.opcodes}
    return names.get(chr(opcode), "UNKNOWN_OPCODE")
