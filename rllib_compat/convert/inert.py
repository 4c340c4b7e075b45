"""A config that came with a checkpoint, with nothing in it that anybody would import.

A pickle's own classes are stand-ins already. But text can name code, too: RLlib, gymnasium and
this package's adapters import what `"callbacks": "some.module.Class"`, `"env": "module:Env-v0"` or
`{"type": "some.module.Class"}` says. In a config that a user wrote that is a feature. In one that
came with a stranger's checkpoint it is a way to run code, so such texts become inert records here,
before anything looks at them. What is meant can be given again (`--env module:Class`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rllib_compat.neutral.records import GlobalRef
from rllib_compat.neutral.report import Finding, Severity, Verdict

#: `package.module.Name`, `module:Name`, `module:ns/Env-v0`; Python imports names with a `-`, too.
#: Paths begin with a slash or have one in their first part, and URLs have `://`: not meant.
_IMPORTABLE = re.compile(r"(?!\w+://)[^\W\d][^\s/\\:.]*(?:[.:][^\s:]*)+")

#: What an environment may be called: nothing that Python or gymnasium would import from.
_PLAIN_ENV = re.compile(r"[\w /-]*")

#: Environment variables of the process that trains: they can make it load anything.
_ENVIRONS = ("extra_python_environs_for_driver", "extra_python_environs_for_worker")


def without_code(config: Mapping[str, Any], where: str) -> tuple[dict[str, Any], list[Finding]]:
    """A copy of a config in which texts that name code are inert.

    Args:
        config: A config of a checkpoint or of its trial.
        where: Its place, for the findings.

    Returns:
        The copy, and a finding for each text that was taken out of the way.
    """
    findings: list[Finding] = []

    def walk(value: Any, path: str) -> Any:
        if isinstance(value, str) and _names_code(value, path):
            findings.append(_finding(path, f"{value!r} names code, and is not imported"))
            module, _, name = value.replace(":", ".").rpartition(".")
            return GlobalRef(module, name)
        if isinstance(value, Mapping):
            return {k: walk(v, f"{path}.{k}") for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            items = [walk(v, f"{path}[{i}]") for i, v in enumerate(value)]
            return items if isinstance(value, list) else tuple(items)
        return value

    clean = {}
    for key, value in config.items():
        if key in _ENVIRONS and value:
            findings.append(_finding(f"{where}.{key}", "environment variables are not taken over"))
        else:
            clean[key] = walk(value, f"{where}.{key}")
    return clean, findings


def _names_code(text: str, path: str) -> bool:
    if path.endswith(".env"):
        return not _PLAIN_ENV.fullmatch(text)
    return bool(_IMPORTABLE.fullmatch(text))


def _finding(path: str, message: str) -> Finding:
    return Finding(
        "code-as-text",
        Severity.WARNING,
        Verdict.DROPPED,
        path,
        message,
        "give it again if you trust it: --env, or on the config of the new algorithm",
    )
