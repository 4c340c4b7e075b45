"""A walk over packed bytes that proves them sound before anything is made of them.

msgpack's own reader makes a list of the declared length first, and an empty list of 64 bytes of
each single byte `0x90`: a few hundred bytes would take all memory, and ten megabytes seven hundred.
"""

from __future__ import annotations

from rllib_compat.neutral.budget import Budget, exceeded

# What follows a type byte: so many bytes; or, if negative, a length in so many bytes.
_SIZES: dict[int, int] = {
    **dict.fromkeys(range(256), 0),
    **{0xA0 + size: size for size in range(32)},
    0xC4: -1,
    0xC5: -2,
    0xC6: -4,
    0xD9: -1,
    0xDA: -2,
    0xDB: -4,
    0xCA: 4,
    0xCB: 8,
    0xCC: 1,
    0xCD: 2,
    0xCE: 4,
    0xCF: 8,
    0xD0: 1,
    0xD1: 2,
    0xD2: 4,
    0xD3: 8,
}
_FOLLOWING = [_SIZES[code] for code in range(256)]
_LISTS, _MAPS = {0xDC: 2, 0xDD: 4}, {0xDE: 2, 0xDF: 4}
_EXTENSIONS = frozenset({0xC1, *range(0xC7, 0xCA), *range(0xD4, 0xD9)})

# Bytes of memory, about.
_OF_LIST, _OF_MAP, _OF_VALUE, _OF_PAIR = 72, 80, 40, 60
_CLOCK_STEPS = 0xFFFF


def scan(data: bytes | bytearray | memoryview, budget: Budget, deepest: int) -> None:
    """Walks over one packed value.

    Raises:
        ValueError: It is not one whole value, or has an extension type, which no checkpoint has.
        BudgetExceededError: It is nested too deeply, or would take too much memory.
    """
    pos, end, made, steps = 0, len(data), 0, 0
    left = [1]  # how many values are still to come, on each level
    while left:
        if not left[-1]:
            left.pop()
            continue
        left[-1] -= 1
        if pos >= end:
            raise ValueError("it ends early")
        code = data[pos]
        pos += 1
        made += _OF_VALUE
        steps += 1
        if not steps & _CLOCK_STEPS:
            budget.check_time()
        count = -1
        if 0x80 <= code < 0xA0:
            count = (code & 0x0F) * (2 if code < 0x90 else 1)
            made += _OF_MAP + _OF_PAIR * (count // 2) if code < 0x90 else _OF_LIST
        elif code in _LISTS or code in _MAPS:
            size = _LISTS.get(code) or _MAPS[code]
            count = int.from_bytes(data[pos : pos + size], "big")
            pos += size
            made += _OF_LIST if code in _LISTS else _OF_MAP + _OF_PAIR * count
            count *= 1 if code in _LISTS else 2
        elif code in _EXTENSIONS:
            raise ValueError(f"the type {code:#04x} is not used by any checkpoint")
        else:
            following = _FOLLOWING[code]
            if following < 0:
                size = -following
                following = int.from_bytes(data[pos : pos + size], "big")
                pos += size
            pos += following
        if pos > end or count > end - pos:
            raise ValueError("it ends early")
        if made > budget.made:
            raise exceeded("made")
        if count > 0:
            left.append(count)
            if len(left) > deepest + 1:
                raise exceeded("depth")
    budget.spend("made", made)
    if pos != end:
        raise ValueError(f"{end - pos} bytes follow after its end")
