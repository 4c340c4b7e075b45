"""Writes the rule pages of the guide from the rules themselves.

Run it after a change of the rules: `python migration_guide/generate_rules.py`. A test compares the
pages in the repository with what it would write.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from rllib_compat import registry
from rllib_compat.config import engine
from rllib_compat.config.code import Program, format_line
from rllib_compat.config.defaults import IMPLIED_DEFAULTS
from rllib_compat.config.rule import Context, Rule, nested
from rllib_compat.config.rules import FAMILIES
from rllib_compat.config.rules.training import OPTIMIZER
from rllib_compat.config.steps import FIRST, STEPS
from rllib_compat.config.steps.step import ABSENT, COMPUTED, Step
from rllib_compat.neutral.report import Verdict
from rllib_compat.registry import keys

TABLE = ("| old | era | today | note |", "|---|---|---|---|")
PAGES = Path(__file__).parent / "rules"

WHOLE = {
    "algorithm.removed": "Ray removed the algorithm, and nothing in it learns the same way.",
    "algorithm.ours": "Ray removed the algorithm, and this package has it.",
    "algorithm.new_stack_only": "The old API stack was asked for, and has nothing of it.",
    "algorithm.successor": "Ray removed the algorithm; another one takes its place.",
    "algorithm.assumed": "No algorithm was given, and no key shows which it is: PPO is assumed.",
    "defaults.changed": (
        "A key that is not set had another default in the config's Ray. It is made explicit."
    ),
    "era.inferred": (
        "Nobody said which Ray the config was written for, and what shows it is named: keys, "
        "imports, requirement files. `legacy_ray=` (`--legacy-ray`) says another."
    ),
    "engine.unknown_key": (
        "No Ray from 0.5 on had the key. The nearest known key is named, with the Rays that had "
        "it. `on_unknown` (`--on-unknown`) lets it through."
    ),
    "engine.foreign_key": "The key belongs to other algorithms; this one never read it.",
    "engine.newer_ray": "The installed Ray is older than the setting.",
    "removed.key": "The key belongs to an algorithm that Ray removed.",
}


def pages() -> dict[str, str]:
    """File name → text."""
    written = {f"{family}.md": _family(family) for family in FAMILIES}
    written["whole_config.md"] = _whole_config()
    written["index.md"] = _index()
    return written


def main() -> None:
    """Writes all pages."""
    PAGES.mkdir(exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text, "utf-8")


def _family(family: str) -> str:
    rules = sorted(FAMILIES[family].rules, key=lambda rule: rule.key)
    rows = [*TABLE, *map(_row, rules)]
    parts = [f"# {FAMILIES[family].title}", FAMILIES[family].about, "\n".join(rows)]
    examples = [example for example in map(_example, rules) if example]
    if examples:
        parts += [
            "## Before and after",
            "```{code-block} python\n" + "\n\n".join(examples) + "\n```",
        ]
    return "\n\n".join(parts) + "\n"


def _row(rule: Rule) -> str:
    """A rule as a row. The anchor is its name in reports."""
    cells = (
        f'<a id="{rule.id}"></a>{{index}}`!{rule.key}`',
        _era(rule),
        _fate(rule),
        _note(rule),
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _era(rule: Rule) -> str:
    span = keys.lifetime(rule.key)
    era = "" if span is None else span[0] if span[0] == span[1] else f"{span[0]} – {span[1]}"
    whose = ", ".join(rule.algorithms)
    return f"{era}: {whose}" if era and whose else era or whose


def _note(rule: Rule) -> str:
    said = [f"{rule.why[0].upper()}{rule.why[1:]}."] if rule.why else []
    if rule.needs_old is not None:
        said.append("Where it is used, it decides for the old API stack.")
    if rule.hint:
        said.append(f"What to do: {rule.hint}.")
    return " ".join(said)


def _fate(rule: Rule) -> str:
    if rule.section:
        return "a section, whose keys have rules of their own"
    new, old = rule.target_on("new"), rule.target_on("old")
    fate = f"**{rule.verdict.value}**"
    if new:
        fate += f" → {_call(new)}"
    if old and old != new:
        fate += f"{'; ' if new else ', '}on the old API stack → {_call(old)}"
    return fate


def _example(rule: Rule) -> str:
    """What a rule with a reason makes of a default that its key had; nothing where it is alike."""
    value = _example_value(rule)
    if not rule.why or rule.verdict is Verdict.KEPT or value is None or _by_release(rule):
        return ""
    algorithm = next((name for name in _whose(rule) if name != "common"), "PPO")
    target = registry.of(algorithm).becomes or algorithm
    config: Any = value
    for key in reversed(rule.key.split(".")):
        config = {key: config}
    context = Context(config, target, algorithm, translate=lambda *_: {})
    settings = engine.settings_of(engine.apply(config, context))
    made = [name for name in settings if not name.startswith("env.")]
    if not made or not registry.of(target).becomes:
        return ""
    calls = {name.partition(".")[0]: nested(settings, name.partition(".")[0]) for name in made}
    program = Program()
    after = []
    for method, arguments in calls.items():
        written = {name: program.expression(value) for name, value in arguments.items()}
        if None in written.values():
            return ""
        words = [ast.keyword(name, code) for name, code in written.items() if code is not None]
        after.append(format_line(ast.Call(ast.Name(f".{method}"), [], words)))
    before = program.expression(config)
    assert before is not None
    return f"{format_line(before)}  # {rule.id}\n{target}Config(){''.join(after)}"


def _example_value(rule: Rule) -> Any:
    """The newest default of a key that says something."""
    head, _, tail = rule.key.partition(".")
    runs = [run for home in _whose(rule) for run in keys.section(home).get(rule.key, ())][::-1]
    runs += keys.section(head).get(tail, []) if tail else []
    values = [run[2] for run in runs if len(run) == 3]
    return next((v for v in values if v not in (None, "", [], {}) and not _mark(v)), None)


def _whose(rule: Rule) -> list[str]:
    """The sections that had the key, the algorithms that are still there first."""
    homes = rule.algorithms or keys.homes(rule.key)
    there = [home for home in homes if home == "common" or registry.of(home).becomes == home]
    return sorted(there, key=lambda home: home != "common")


def _mark(value: Any) -> bool:
    return isinstance(value, dict) and "$" in value


def _by_release(rule: Rule) -> bool:
    """Whether what comes of it depends on the installed Ray, which the pages don't."""
    return rule.target.startswith(OPTIMIZER)


def _call(setting: str) -> str:
    method, _, argument = setting.partition(".")
    if method == "env":
        return f"a wrapper around the environment, `EnvSettings({argument}=)`"
    path = argument.split(".")
    inner = "".join(f'["{key}"]' for key in path[1:])
    return f"`{method}({path[0]}=){inner}`" if argument else f"`{method}()`"


def _whole_config() -> str:
    parts = [
        "# The whole config",
        "Rows about the algorithm, about defaults, and about settings that only stand together.",
    ]
    parts += [f"## {name}\n\n{text}" for name, text in WHOLE.items()]
    parts += [_implied_defaults()]
    parts += [_step(step) for step in (*FIRST, *STEPS)]
    gone = [row for _, row in sorted(registry.ALGORITHMS.items()) if row.removed]
    rows = [f"| {row.name} | {_successor(row)} | {row.why} |" for row in gone]
    parts += [
        "## Removed algorithms and their successors",
        "\n".join(["| algorithm | successor | |", "|---|---|---|", *rows]),
    ]
    return "\n\n".join(parts) + "\n"


def _successor(row: registry.Algorithm) -> str:
    return f"`{row.home}`" if row.ours else row.becomes or "–"


def _implied_defaults() -> str:
    rows = [
        f"| `{row.key}` | up to {row.until} | `{row.value!r}` | "
        f"{row.why[0].upper()}{row.why[1:]}. |"
        for row in IMPLIED_DEFAULTS
    ]
    table = "\n".join(["| today's key | Ray | what it did | |", "|---|---|---|---|", *rows])
    return (
        "## What Rays did before they had a key for it\n\n"
        "With `legacy_ray=`, these count as defaults of that Ray.\n\n" + table
    )


def _step(step: Step) -> str:
    """A heading, the reason, and a list of what the row declares."""
    whom = [*step.legacy] or [*step.algorithms] or ["all algorithms"]
    stack = f", on the {step.stack} API stack" if step.stack else ""
    fates = []
    for setting, value in step.sets.items():
        if value is ABSENT:
            fates.append(f"takes out {_name(setting)}")
        elif value is COMPUTED:
            fates.append(f"sets {_name(setting)}")
        else:
            fates.append(f"sets {_name(setting)} to `{value!r}`")
    lines = [f"For {', '.join(whom)}{stack}."]
    if step.reads:
        lines.append(f"Looks at {', '.join(map(_name, step.reads))}.")
    done = "; ".join(fates)
    unless = ", unless it is given" if step.unless_given else ""
    lines.append(f"{done[0].upper()}{done[1:]}{unless}.")
    bullets = "\n".join(f"- {line}" for line in lines)
    return f"## {step.id}\n\n{step.why}\n\n{bullets}"


def _name(setting: str) -> str:
    method, _, argument = setting.partition(".")
    return (
        f"`EnvSettings({argument}{'=' if argument else ''})`" if method == "env" else _call(setting)
    )


def _index() -> str:
    count = sum(len(family.rules) for family in FAMILIES.values())
    rows = [
        f"| [{family.title}]({name}.md) | {len(family.rules)} | {family.about} |"
        for name, family in FAMILIES.items()
    ]
    table = "\n".join(["| family | rules | about |", "|---|---|---|", *rows])
    return (
        "# Rules\n\n"
        f"What becomes of each key that a config of RLlib ever had: {count} rules, by family. "
        "A rule is called `family.key` in reports and in `--only` and `--skip`, which take a "
        "family's name, too. Each page is a table: the old key, the Rays and algorithms that had "
        "it (as far as they were looked at), what it is today, and why. Rows about the config as a "
        "whole are on "
        "[a page of their own](whole_config.md).\n\n"
        f"{table}\n\n"
        "```{toctree}\n:hidden:\n\n" + "\n".join([*FAMILIES, "whole_config"]) + "\n```\n"
    )


if __name__ == "__main__":
    main()
