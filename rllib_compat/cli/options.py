"""Options that several verbs share: what the caller knows and a checkpoint does not say."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rllib_compat.cli.named_modules import find_modules
from rllib_compat.formats.paths import is_address, local_path
from rllib_compat.neutral.public import import_attribute
from rllib_compat.neutral.text import printable

if TYPE_CHECKING:
    from rllib_compat.conversion.given import Given
    from rllib_compat.neutral.spaces import Space

Command = TypeVar("Command", bound=Callable[..., Any])


class GroupedCommand(click.Command):
    """A command whose help lists its options in groups.

    Args:
        groups: The names of options by the title of their group; all others come last.
        *args: What a command takes.
        **more: Likewise.
    """

    def __init__(self, *args: Any, groups: Mapping[str, str], **more: Any) -> None:
        super().__init__(*args, **more)
        self._groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes a section for each group."""
        left = {param.name: param.get_help_record(ctx) for param in self.get_params(ctx)}
        for title, names in {**self._groups, "Other options": " ".join(map(str, left))}.items():
            records = (left.pop(name, None) for name in names.split())
            with formatter.section(title):
                formatter.write_dl([record for record in records if record is not None])


class LocalPath(click.Path):
    """A path of this machine."""

    def __init__(self, **settings: bool) -> None:
        super().__init__(path_type=Path, **settings)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """What is meant by it, as everywhere else."""
        return super().convert(local_path(value), param, ctx)


class PathOrAddress(LocalPath):
    """A path of this machine, or the address of a place in a store, which stays text."""

    name = "path or address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """What is meant by it, as everywhere else."""
        return value if is_address(value) else super().convert(value, param, ctx)


class _SpaceOption(click.ParamType):  # type: ignore[type-arg,unused-ignore] # click 8.0 – 8.5
    """`Box(4,)`, or `policy=Box(4,)` for one policy only."""

    name = "[POLICY=]SPACE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str | None, Space]:
        from rllib_compat.neutral.spaces import parse_repr

        if isinstance(value, tuple):
            return value  # click converts a default twice
        policy, equals, text = value.partition("=")
        if not equals or "(" in policy:
            policy, text = None, value
        space = parse_repr(text)
        if space is None:
            self.fail(
                f"{text!r} is not a space. Write it like 'Box(4,)' or 'Discrete(2)'.", param, ctx
            )
        return policy, space


class ConfigOption(click.ParamType):  # type: ignore[type-arg,unused-ignore] # see above
    """A file (`params.json`, `params.pkl`) or JSON text."""

    name = "FILE|JSON"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, Any]:
        """Reads it; nothing in a pickle is run."""
        if isinstance(value, dict):
            return value
        from rllib_compat.formats import files, pickles
        from rllib_compat.neutral.budget import Budget
        from rllib_compat.neutral.check import check_values
        from rllib_compat.neutral.errors import CompatError

        budget = Budget()
        try:
            if value.lstrip().startswith("{"):
                config = json.loads(value)
                find_modules(config)  # the caller wrote it; a file may be a stranger's
            elif value.endswith(".pkl"):
                config = pickles.load(local_path(value), budget=budget).value
            else:
                config = files.read_json(local_path(value), budget, value)
            check_values(config, budget, value[:200])
        except CompatError as error:
            self.fail(printable(f"{error.found.rstrip('.')}. {error.fix or ''}"), param, ctx)
        except (ValueError, RecursionError) as error:
            self.fail(str(error), param, ctx)
        if not isinstance(config, dict) or not all(isinstance(key, str) for key in config):
            self.fail("not a dict with names as its keys", param, ctx)
        return config


class _MapOption(ConfigOption):
    """A JSON file, or JSON text, of texts by text."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, str]:
        read = super().convert(value, param, ctx)
        if not all(isinstance(part, str) for part in read.values()):
            self.fail("not a name for each name", param, ctx)
        return read


observation_space_option = click.option(
    "--observation-space",
    type=_SpaceOption(),
    multiple=True,
    help="e.g. 'Box(4,)'; of one policy: p0='Box(4,)'.",
)
action_space_option = click.option(
    "--action-space", type=_SpaceOption(), multiple=True, help="e.g. 'Discrete(2)'."
)
trust_option = click.option(
    "--trust",
    multiple=True,
    metavar="MODULE:CLASS",
    help="Use this class or function although a file names it; may be repeated.",
)


def given_options(function: Command) -> Command:
    """Adds the options from which `given` makes a `Given`."""
    for option in reversed(
        (
            click.option("--algorithm", help="The algorithm that was trained, e.g. PPO."),
            click.option(
                "--config", type=ConfigOption(), help="The trainer's config; {} for its defaults."
            ),
            click.option(
                "--env",
                metavar="NAME|MODULE:CLASS",
                help="The environment: its name, or your class of it, which is imported.",
            ),
            observation_space_option,
            action_space_option,
            click.option(
                "--model",
                metavar="MODULE:CLASS",
                help="Your RLModule that takes the weights of a custom model; it is imported.",
            ),
            click.option(
                "--weights-map",
                type=_MapOption(),
                help='{"old": "new"}: names of a custom model\'s arrays that are new.',
            ),
            click.option(
                "--policy",
                multiple=True,
                metavar="ID",
                help="Only this policy; may be given several times.",
            ),
        )
    ):
        function = option(function)
    return function


def target_options(function: Command) -> Command:
    """Adds the options for what is made: trusted names, and the machine that trains on."""
    for option in reversed(
        (
            trust_option,
            click.option(
                "--num-gpus",
                type=click.IntRange(0),
                help="GPUs to train with. [default: as before, as far as this machine has them]",
            ),
            click.option(
                "--num-env-runners",
                type=click.IntRange(0),
                help="Processes to sample with. [default: as before, as far as there are CPUs]",
            ),
            click.option(
                "--keep-resources",
                is_flag=True,
                help="Keep the resources of the old machine, whatever this one has.",
            ),
        )
    ):
        function = option(function)
    return function


def given(
    algorithm: str | None,
    config: dict[str, Any] | None,
    env: str | None,
    observation_space: tuple[tuple[str | None, Space], ...],
    action_space: tuple[tuple[str | None, Space], ...],
    model: str | None,
    weights_map: dict[str, str] | None,
    policy: tuple[str, ...],
    **more: Any,
) -> Given:
    """Makes a `Given` of the options; a module is looked for in the current folder, too."""
    from rllib_compat.conversion.given import Given

    find_modules(model, more.get("trust"))
    return Given(
        algorithm,
        config,
        None if env is None else _environment(env),
        dict(observation_space),
        dict(action_space),
        model,
        weights_map or {},
        policy,
        **more,
    )


def _environment(text: str) -> Any:
    """An environment's name, or what the caller's `module:Class` is.

    gymnasium, too, has names with a colon (`ale_py:ALE/Pong-v5`); nothing in a module is called so.
    """
    module, colon, name = text.partition(":")
    if not colon:
        return text
    find_modules(text)
    try:
        return import_attribute(module, name)
    except ImportError:
        return text


def imported(path: str) -> Any:
    """What `module:name` names; the caller says so, and it is imported."""
    module, _, name = path.partition(":")
    try:
        return import_attribute(module, name)
    except ImportError as error:
        raise click.UsageError(
            f"{path} can't be imported: {error}. Of this folder, the command imports modules that "
            "it names, and no others; to have all of them, set PYTHONPATH=."
        ) from error


legacy_ray_option = click.option(
    "--legacy-ray",
    metavar="VERSION",
    default="auto",
    show_default=True,
    help="Keep the defaults of this Ray, e.g. 0.8.5; today: of none; auto: of the Ray that "
    "imports, keys and the requirement files of the project show.",
)
on_unknown_option = click.option(
    "--on-unknown",
    type=click.Choice(["error", "warn", "pass"]),
    default="error",
    help="What to do with keys that no Ray had.",
)
inputs_option = click.option(
    "-n",
    "--inputs",
    type=click.IntRange(1, 1_000_000),
    default=1000,
    show_default=True,
    help="Random inputs to compare on.",
)
recorded_option = click.option(
    "--recorded",
    type=LocalPath(exists=True, dir_okay=False),
    metavar="FILE.npz",
    help="What the old Ray computed; `rllib-compat recorder` prints a script that records it.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
verbose_option = click.option("-v", "--verbose", count=True, help="Show every row.")
strict_option = click.option(
    "--strict", is_flag=True, help="End with exit code 1 if a row of the report is a warning."
)
