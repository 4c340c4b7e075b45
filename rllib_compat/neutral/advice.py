"""Advice for two readers: options of the command line, and arguments of the Python API.

Errors and findings name options (`--algorithm PPO`), as the command line prints them. A caller of
Python sees the arguments (`algorithm="PPO"`). Text in backquotes and does not begin with an
option is a command, which is the same for both.
"""

from __future__ import annotations

import json
import re
import shlex

#: What an option is in Python. `{}` is its value, or "…" where the advice gives none.
ARGUMENTS = {
    "--action-space": "action_space={}",
    "--algorithm": "algorithm={}",
    "--config": "config={}",
    "--env": "env={}",
    "--keep-resources": "given=Given(keep_resources=True)",
    "--model": "model={}",
    "--num-env-runners": "given=Given(num_env_runners={})",
    "--num-gpus": "given=Given(num_gpus={})",
    "--observation-space": "observation_space={}",
    "--only": "only={}",
    "--overwrite": "overwrite=True",
    "--policy": "given=Given(policies=[{}])",
    "--policy-mapping-fn": "policy_mapping_fn={}",
    "--recorded": "recorded={}",
    "--skip": "skip={}",
    "--state-format": "state_format={}",
    "--to": "to={}",
    "--trust": "trust=[{}] (of translate or Given)",
    "--weights-map": "given=Given(weights_map={})",
}

#: These are always followed by a value; the others only by what is no word of a sentence.
_NEED_VALUES = ("--policy", "--state-format", "--to", "--trust")
#: Values that stand for any.
_PLACEHOLDERS = ("FILE", "N")
_WORD = re.compile("[a-z]+")
_VALUE = r"""(?:[\w.-]+=)?'[^']*'|"[^"]*"|[^\s`'",;()]*[^\s`'",;:().]"""
_OPTION = re.compile(
    r"`(?P<command>[^`]+)`"
    rf"|(?P<name>--[a-z][a-z-]*)(?: (?P<values>(?:{_VALUE})(?: (?P=name) (?:{_VALUE}))*))?"
)


def for_python(text: str) -> str:
    """Advice with arguments in the place of options."""
    return _OPTION.sub(_replace, text)


def _replace(found: re.Match[str]) -> str:
    command, name, values = found["command"], found["name"], found["values"]
    if command:
        return f"`{for_python(command)}`" if command.startswith("--") else found[0]
    if name not in ARGUMENTS:
        return found[0]
    if values is None:
        return ARGUMENTS[name].format("…")
    if _WORD.fullmatch(values) and name not in _NEED_VALUES:
        return f"{ARGUMENTS[name].format('…')} {values}"
    return ARGUMENTS[name].format(", ".join(map(_literal, values.split(f" {name} "))))


def _literal(value: str) -> str:
    """A value of the command line, as Python writes it."""
    policy, equals, space = value.partition("='")
    if equals and policy.isidentifier():
        return f"{{{json.dumps(policy)}: {_literal(equals[1:] + space)}}}"
    try:
        (text,) = shlex.split(value)
    except ValueError:
        text = value
    is_written_so = text.isdigit() or text in _PLACEHOLDERS or text.startswith("{")
    return text if is_written_so else json.dumps(text, ensure_ascii=False)
