"""The file of `--hints`: options for many checkpoints at once, each for those that it names."""

from __future__ import annotations

import glob
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import click

from rllib_compat.cli import options, output
from rllib_compat.neutral.errors import ConfigError

if TYPE_CHECKING:
    from rllib_compat.conversion.archive_log import Outcome
    from rllib_compat.conversion.given import Given

#: The key of an entry that has its globs; all others are options.
_PATHS = "checkpoints"
#: What differs between two refusals for the same reason: quoted names, numbers, lists, policies.
_DETAILS = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\[[^\]]*\]|\([^)]*\)|\S*\d\S*|Policy \S+")
#: An option and its example in an advice.
_OPTION = re.compile(
    r"--([a-z][a-z-]*)(?: (?:(?:\w+=)?(?:'([^']*)'|\"([^\"]*)\")|(\w(?:[\w.:-]*\w)?)))?"
)
#: How many reasons are shown without `-v`, and how much of each.
_MOST, _LONGEST = 10, 300

option = click.option(
    "--hints",
    multiple=True,
    type=options.LocalPath(exists=True, dir_okay=False),
    metavar="FILE.yaml",
    help="Options for the checkpoints that it names; `convert --recursive` writes its skeleton.",
)


@click.command(context_settings={"ignore_unknown_options": False})
@options.given_options
@options.target_options
def _entry(**_: object) -> None:
    """Parses the options of an entry as those of the command line."""


class Answers:
    """Files of `--hints`, in their order, and beneath them the options of the command line.

    Later entries replace the options of earlier ones.
    """

    def __init__(self, files: Sequence[Path], known: Mapping[str, Any]) -> None:
        self._known = dict(known)
        self._entries = [entry for file in files for entry in _read(file)]
        self._made: dict[tuple[int, ...], Given] = {}

    def check(self) -> None:
        """Makes sure that all of them can be used, and imports the modules that they name."""
        for number in range(len(self._entries)):
            self._make((number,))

    def given(self, path: PurePath) -> Given:
        """What is known of a checkpoint."""
        names = [part.as_posix() for part in (path, *path.parents)]
        return self._make(
            tuple(
                number
                for number, (globs, _) in enumerate(self._entries)
                if any(fnmatchcase(name, pattern) for name in names for pattern in globs)
            )
        )

    def _make(self, numbers: tuple[int, ...]) -> Given:
        """What some of the entries say together."""
        if numbers not in self._made:
            known = dict(self._known)
            for number in numbers:
                known |= self._entries[number][1]
            self._made[numbers] = options.given(**known)
        return self._made[numbers]


def _read(file: Path) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """The entries of a file: globs, and options by the names of their parameters."""
    from rllib_compat.formats.files import read_yaml
    from rllib_compat.neutral.budget import Budget

    entries = read_yaml(file, Budget(), str(file))
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict) and entry.get(_PATHS) for entry in entries
    ):
        raise ConfigError(
            "The answers file is not a list of entries, each with `checkpoints` and options.",
            where=str(file),
            fix="Write, for example: - {checkpoints: 'PPO_*', algorithm: PPO}",
        )
    for number, entry in enumerate(entries, 1):
        globs = entry.pop(_PATHS)
        arguments = [text for name, value in entry.items() for text in _arguments(name, value)]
        try:
            context = _entry.make_context("hints", arguments)
        except click.ClickException as error:
            where = f"{file}: entry {number}"
            fix = "Write an option of `rllib-compat convert` without its dashes, and its value."
            raise ConfigError(error.format_message(), where=where, fix=fix) from error
        default = click.core.ParameterSource.DEFAULT
        source = context.get_parameter_source
        said = {k: v for k, v in context.params.items() if source(k) is not default}
        yield [str(g) for g in (globs if isinstance(globs, list) else [globs])], said


def _arguments(name: object, value: object) -> Iterator[str]:
    """An option of an entry as the command line has it."""
    for one in value if isinstance(value, list) else [value]:
        text = one if isinstance(one, str) else json.dumps(one, default=str)
        yield f"--{str(name).replace('_', '-')}" + ("" if one is True else f"={text}")


class Groups:
    """What was refused or failed, by its reason: the first of each, and the names of all."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], tuple[Outcome, list[str]]] = {}

    def add(self, outcome: Outcome) -> None:
        """Adds an outcome, if it has a reason."""
        if not outcome.is_done:
            reason = outcome.status, _DETAILS.sub("…", outcome.reason)
            self._groups.setdefault(reason, (outcome, []))[1].append(outcome.name)

    def __iter__(self) -> Iterator[tuple[Outcome, list[str]]]:
        """The most frequent reason comes first."""
        return iter(sorted(self._groups.values(), key=lambda group: -len(group[1])))


def show(groups: Groups, verbose: int) -> None:
    """Prints each reason, what to do about it, and a command that tries that on one checkpoint."""
    every = list(groups)
    shown = every if verbose else every[:_MOST]
    for first, names in shown:
        output.say(f"{len(names)} {first.status}: {output.cut_text(first.reason, _LONGEST)}")
        output.say(f"  first: {first.name}")
        if first.fix:
            output.say(f"  to do: {output.cut_text(first.fix, _LONGEST)}")
        if command := command_for(first):
            output.say(f"  command: {command}")
    if left := len(every) - len(shown):
        output.say(f"{left} more reasons (-v shows them)")


def command_for(outcome: Outcome) -> str:
    """A command that tries what an advice names first; empty where no option helps."""
    name, example = next(examples(outcome.fix), ("", ""))
    words = ["rllib-compat", "convert", outcome.old, outcome.new, f"--{name}", example or "…"]
    return shlex.join(words) if name else ""


def examples(advice: str) -> Iterator[tuple[str, str]]:
    """Options that an advice names, with their examples."""
    names = {name for param in _entry.params for name in param.opts} | {"--to"}
    for name, *values in _OPTION.findall(advice):
        if f"--{name}" in names:
            yield name, next(filter(None, values), "")


def write_skeleton(groups: Groups, folder: Path) -> Path | None:
    """Writes a file with an entry for each reason, whose options wait for their values.

    What files say of themselves is in comments and quoted texts only.

    Returns:
        The file; None where no option solves any of the reasons.
    """
    from rllib_compat.formats.atomic import atomic_file
    from rllib_compat.neutral.text import printable

    lines = [
        "# An entry for each reason. Remove the # before an option, write your value, and run the",
        "# command again with --hints and this file. A glob such as PPO_* may replace paths.",
    ]
    for first, names in groups:
        wanted = [(name, text) for name, text in examples(first.fix) if name != "to"]
        if not wanted:
            continue
        lines += ["", f"# {len(names)}: {printable(first.reason)}"]
        lines += [f"# {printable(first.fix)}", f"- {_PATHS}:"]
        lines += [f"    - {json.dumps(glob.escape(name))}" for name in names]
        lines += [f"  # {name}: {json.dumps(example)}" for name, example in wanted]
    if not lines[2:]:
        return None
    text = ("\n".join(lines) + "\n").encode()
    files = (folder / f"hints{number}.yaml" for number in ("", *range(2, 1000)))
    file = next(f for f in files if not f.exists() or f.read_bytes() == text)
    with atomic_file(file) as out:
        out.write(text)
    return file
