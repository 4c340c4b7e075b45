"""Infers which Ray something was written for: the newest that fits all evidence.

Evidence is what only some Rays had: modules and names that the user's code imports, methods of
configs that it calls, keys of the config, an algorithm that Ray has removed, and what requirement
and lock files beside the script ask for. Where evidence is contradictory, the later Ray counts: a
name is not used before it exists, but an old one may remain in the code. Code counts before files.
If the installed Ray fits, too, its defaults count.
"""

from __future__ import annotations

import logging
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.version import Version

from rllib_compat.config.evidence import Evidence, find_evidence, of_config
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.ray_versions import releases
from rllib_compat.registry import keys as table

logger = logging.getLogger(__name__)

#: Stands for a version: that which the evidence shows.
AUTO = "auto"

_ANY = (Version("0"), Version("9999"))
_HINT = "legacy_ray (--legacy-ray) sets another Ray; 'today' takes the installed Ray's defaults"

#: What the user's code has shown in this process.
_noted: dict[Evidence, None] = {}
#: The Ray of all that is built in this process, by which `activate` was called.
_chosen = [AUTO]
_said: set[str] = set()


@frozen
class Era:
    """The Ray that something was written for.

    Attributes:
        ray: Its version; "today"; None: nothing shows that it is old, and today's defaults count.
        because: What shows it; empty where the caller says it.
        against: What contradicts it.
    """

    ray: str | None
    because: tuple[str, ...] = ()
    against: tuple[str, ...] = ()

    def findings(self) -> Iterator[Finding]:
        """A row that says what was inferred, and why."""
        if not self.because:
            return
        which = f"Ray {self.ray}" if self.ray else "the installed Ray"
        message = f"taken as written for {which}, because of {', '.join(self.because)}"
        if self.against:
            message += f"; against it: {', '.join(self.against)}"
        yield Finding("era.inferred", Severity.INFO, Verdict.NOTE, "$", message, _HINT)

    def log(self) -> None:
        """Logs the same, once in a process."""
        for finding in self.findings():
            if finding.message not in _said:
                _said.add(finding.message)
                logger.warning("%s (%s)", finding.message, finding.hint)


def note(evidence: Iterable[Evidence]) -> None:
    """Keeps evidence that the user's code gives, for what it builds in this process."""
    _noted.update(dict.fromkeys(evidence))


def written_for(*, first: str | None = None, last: str | None = None) -> None:
    """Says which Rays the code of this process can be for, as old imports do; None: any.

    What a config leaves out then has the default of the newest of them that its keys allow.
    """
    for ray in filter(None, (first, last)):
        table.nearest_release(ray)  # an error if it is no version
    note([Evidence(f"`written_for` ({first or '0.5'} – {last or 'today'})", first, last)])


def choose(legacy_ray: str) -> None:
    """Says which Ray is meant in this process where a call does not say it.

    Raises:
        ConfigError: It is none of that.
    """
    resolve(legacy_ray, {}, None)
    _chosen[:] = [legacy_ray]


def chosen() -> str:
    """What was chosen; "auto" before."""
    return _chosen[0]


def is_code_until(
    ray: str, legacy_ray: str = AUTO, evidence: Iterable[Evidence] | None = None
) -> bool:
    """Whether the user's code was written for a Ray or an older one: its imports and calls say it.

    Args:
        ray: The Ray.
        legacy_ray: The Ray that the code is for, as a caller says it.
        evidence: What shows it; None: what the user's code has shown in this process.
    """
    shown = resolve(legacy_ray, {}, None, _noted if evidence is None else evidence).ray
    return shown not in (None, "today") and Version(shown) <= Version(ray)


def forget() -> None:
    """Forgets what was noted and chosen."""
    _noted.clear()
    _chosen[:] = [AUTO]


def noted() -> tuple[Evidence, ...]:
    """What the user's code has shown, and what the files beside the script ask for."""
    folder = _folder_of_main()
    return (*_noted, *(find_evidence(folder) if folder is not None else ()))


def infer(
    config: Mapping[str, Any],
    algorithm: str | None = None,
    evidence: Iterable[Evidence] | None = None,
) -> Era:
    """Infers which Ray a config was written for, by its keys and by evidence (None: `noted()`)."""
    found = [*(noted() if evidence is None else evidence), *of_config(config, algorithm)]
    first, last = _ANY
    fitting: list[Evidence] = []
    against: list[Evidence] = []
    for one in sorted(found, key=lambda e: (e.in_code, *_span(e), e.what), reverse=True):
        low, high = _span(one)
        if max(first, low) > min(last, high):
            against.append(one)
        else:
            first, last = max(first, low), min(last, high)
            fitting.append(one)
    known = {one.what for one in fitting}
    contradicting = tuple(dict.fromkeys(e.what for e in against if e.what not in known))
    is_old = last < releases.OLDEST
    deciding = (e.what for e in fitting if _span(e)[int(is_old)] == (last if is_old else first))
    because = tuple(dict.fromkeys(deciding)) if is_old or contradicting else ()
    return Era(str(last) if is_old else None, because, contradicting)


def resolve(
    legacy_ray: str | Era | None,
    config: Mapping[str, Any],
    algorithm: str | None,
    evidence: Iterable[Evidence] | None = None,
) -> Era:
    """The era of a config, as a caller says it, or (None, "auto") as it is chosen or inferred.

    Raises:
        ConfigError: `legacy_ray` is none of that.
    """
    if isinstance(legacy_ray, Era):
        return legacy_ray
    if legacy_ray is None or legacy_ray == AUTO:
        legacy_ray = chosen()
    if legacy_ray == AUTO:
        return infer(config, algorithm, evidence)
    table.nearest_release(legacy_ray)
    return Era(legacy_ray)


def _span(evidence: Evidence) -> tuple[Version, Version]:
    first, last = evidence.first, evidence.last
    return Version(first) if first else _ANY[0], Version(last) if last else _ANY[1]


def _folder_of_main() -> Path | None:
    """Where the script that runs lies, or the notebook; None: it is no user's."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if file is None:
        return Path.cwd() if hasattr(sys, "ps1") or "ipykernel" in sys.modules else None
    folder = Path(file).absolute().parent
    installed = {*sysconfig.get_paths().values(), str(Path(sys.executable).parent)}
    return None if installed & {str(place) for place in (folder, *folder.parents)} else folder
