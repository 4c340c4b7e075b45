"""The ids of policies: text from a file that becomes the name of a folder.

Today's Ray keeps a module in a folder that is called like its policy, and so do versions 1.x. An
id that a stranger wrote may be `/etc`, `../other` or 10 kB long. So ids are a type: `PolicyId` is
text that is safe as a folder's name on every system and that Ray takes. Readers turn what a file
says into it once, all ids of a checkpoint together (`PolicyIds`); an id that is not safe gets a
safe one, and the pair is kept (`PolicyState.found_as`) and reported. Nothing else of this package
joins a text from a file to a path.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, NewType

from rllib_compat.neutral.report import Finding, Verdict

PolicyId = NewType("PolicyId", str)

#: What RLlib calls the policy of whoever names none.
ONLY_POLICY = PolicyId("default_policy")
#: What a Trainer calls the one policy of many agents: `default_policy` alone means one agent to
#: today's Ray (`AlgorithmConfig.is_multi_agent`).
SHARED = PolicyId("shared_policy")
"""A policy's id that `why_unsafe` has nothing against."""

#: In bytes. File systems end at 255 (some at 143), and Ray appends `_default_optimizer.pt`.
LONGEST = 120

#: What Ray's `validate_module_id` refuses, since Windows does.
_REFUSED = re.compile(r'[<>:"/\\|?*]')

#: Ray's names for "every module" and "every agent", and the devices of Windows.
_RESERVED = re.compile(
    r"__all_modules__|__all__|(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE
)

#: Unicode's control, format and surrogate characters, and its line separators.
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def why_unsafe(text: object) -> str | None:
    """Why a text can't be the id of a policy; None if it can."""
    if not isinstance(text, str):
        return f"it is {type(text).__name__}, not text"
    if not text:
        return "it is empty"
    if len(text) > LONGEST or len(text.encode("utf-8", "replace")) > LONGEST:
        return f"it is longer than {LONGEST} bytes"
    if any(unicodedata.category(character) in _UNPRINTABLE for character in text):
        return "it has control characters"
    if found := _REFUSED.search(text):
        return f"Ray and file systems refuse {found[0]!r} in a name"
    if text[-1] in " .":
        return "it ends with a blank or a dot"
    if text[0] in " .":
        return "it starts with a blank or a dot"
    if _RESERVED.fullmatch(text):
        return "the name is reserved"
    return None


def to_policy_id(text: object) -> PolicyId:
    """The same text as a `PolicyId`.

    Raises:
        ValueError: It can't be one.
    """
    if why := why_unsafe(text):
        raise ValueError(f"{_show(text)} can't be the id of a policy: {why}")
    return PolicyId(str(text))


class PolicyIds:
    """The ids of one checkpoint, as found and as they are from now on.

    Safe ids stay what they are, whatever else there is; the others get a free name that is like
    them. Two ids that a file system which ignores case would take for one get different names, and
    so do `1` and `"1"`.
    """

    def __init__(self, found: Iterable[Any]) -> None:
        self._ids: dict[Hashable, PolicyId] = {}
        self._changed: dict[PolicyId, tuple[Any, str]] = {}
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        changed: list[tuple[Any, str]] = []
        for raw in found:
            why = why_unsafe(raw)
            if why is None and _fold(raw) in self._taken:
                why = "it differs from another id by case alone"
            if why is None:
                self._taken.add(_fold(raw))
                self._ids[_to_key(raw)] = PolicyId(raw)
            else:
                changed.append((raw, why))
        for raw, why in changed:
            safe = self._ids[_to_key(raw)] = self._find_free(_make_safe(raw))
            self._changed[safe] = raw, why

    def _find_free(self, name: str) -> PolicyId:
        free = name
        while _fold(free) in self._taken:
            self._numbers[name] = self._numbers.get(name, 1) + 1
            free = f"{name}_{self._numbers[name]}"
        self._taken.add(_fold(free))
        return to_policy_id(free)

    def __getitem__(self, raw: object) -> PolicyId:
        return self._ids[_to_key(raw)]

    def __iter__(self) -> Iterator[PolicyId]:
        return iter(self._ids.values())

    def get(self, raw: object) -> PolicyId | None:
        """The id of what a file calls `raw`, or None if it has no policy of that name."""
        return self._ids.get(_to_key(raw))

    def found_as(self, policy_id: PolicyId) -> str | None:
        """What the file called a policy, if that can't be its id; arrays may be named after it."""
        if policy_id not in self._changed:
            return None
        found = _as_text(self._changed[policy_id][0])
        return None if found == policy_id else found

    def findings(self) -> list[Finding]:
        """A row for each id that had to change."""
        return [
            Finding.warning(
                "policy-id",
                Verdict.RENAMED,
                f"policies.{safe}",
                f"the checkpoint calls it {_show(found)}; {why}",
                f"use {safe!r} in your policy mapping function",
            )
            for safe, (found, why) in self._changed.items()
        ]


def _to_key(raw: object) -> Hashable:
    # Real ids are text or numbers. `1 == True`, and a nest of tuples may take for ever to hash.
    return (type(raw).__name__, raw if isinstance(raw, (str, int, float)) else id(raw))


def _fold(text: str) -> str:
    """What a file system that ignores case and composes characters makes of a name."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _as_text(raw: object) -> str:
    if isinstance(raw, str):
        return raw
    # Python refuses to print integers of thousands of digits.
    small = isinstance(raw, float) or (isinstance(raw, int) and raw.bit_length() < 128)
    return str(raw) if small else ""


def _show(raw: object) -> str:
    text = _as_text(raw)
    shown = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    return ascii(shown) if isinstance(raw, str) else f"{shown} ({type(raw).__name__})".strip()


def _make_safe(raw: object) -> str:
    """A safe name that is like what was found."""
    text = "".join(
        "_" if unicodedata.category(character) in _UNPRINTABLE else character
        for character in _as_text(raw)[: 4 * LONGEST]
    )
    text = _REFUSED.sub("_", text).encode("utf-8")[: LONGEST - 20].decode("utf-8", "ignore")
    text = text.strip(" ._")
    if not text:
        return "policy"
    return f"policy_{text}" if _RESERVED.fullmatch(text) else text
