"""Writes the rule pages of the guide from the rules themselves.

Run it after a change of the rules: `python migration_guide/generate_rules.py`. A test compares the
pages in the repository with what it would write.
"""

from __future__ import annotations

import inspect
from pathlib import Path

from rllib_compat import registry
from rllib_compat.config import keys
from rllib_compat.config.rule import Rule
from rllib_compat.config.rules import FAMILIES
from rllib_compat.config.steps import FIRST, STEPS
from rllib_compat.config.steps.step import ABSENT, COMPUTED, Step

PAGES = Path(__file__).parent / "rules"

TITLES = {
    "environment": "Environment",
    "rollouts": "Rollouts",
    "resources": "Resources",
    "training": "Training",
    "model": "Model",
    "exploration": "Exploration",
    "replay": "Replay buffers",
    "multi_agent": "Multi-agent",
    "callbacks": "Callbacks",
    "evaluation": "Evaluation",
    "offline": "Offline data",
    "framework": "Framework",
    "reporting": "Reporting, logging, checkpoints",
    "fault_tolerance": "Fault tolerance",
    "internal": "Inner keys",
    "ppo": "PPO",
    "impala_appo": "IMPALA and APPO",
    "dqn": "DQN",
    "sac": "SAC",
    "marwil_bc_cql": "MARWIL, BC and CQL",
    "dreamer_iql": "DreamerV3 and IQL",
    "removed": "Removed algorithms",
}

WHOLE = {
    "algorithm.removed": "Ray removed the algorithm, and nothing in it learns the same way.",
    "algorithm.successor": "Ray removed the algorithm; another one takes its place.",
    "algorithm.assumed": "No algorithm was given, and no key shows which it is: PPO is assumed.",
    "defaults.changed": (
        "A key that is not set had another default. With `legacy_ray=` (`--legacy-ray`) the old "
        "default is made explicit, in a row of its own; without it, one row lists all of them."
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
    module = FAMILIES[family]
    about = inspect.getdoc(module) or ""
    parts = [f"# {TITLES[family]}", about]
    parts += [_rule(rule) for rule in sorted(module.RULES, key=lambda rule: rule.key)]
    return "\n\n".join(parts) + "\n"


def _rule(rule: Rule) -> str:
    lines = [
        f"## {rule.id}",
        "",
        f"`{rule.key}`{_lifetime(rule)}{_algorithms(rule)}: {_fate(rule)}",
    ]
    if rule.why:
        lines += ["", f"{rule.why[0].upper()}{rule.why[1:]}."]
    if rule.needs_old is not None:
        lines += ["", "Where it is used, it decides for the old API stack."]
    if rule.hint:
        lines += ["", f"What to do: {rule.hint}."]
    return "\n".join(lines)


def _lifetime(rule: Rule) -> str:
    span = keys.lifetime(rule.key)
    return f" (Ray {span[0]} – {span[1]})" if span else ""


def _algorithms(rule: Rule) -> str:
    return f" of {', '.join(rule.algorithms)}" if rule.algorithms else ""


def _fate(rule: Rule) -> str:
    if rule.section:
        return "a section, whose keys have rules of their own."
    new, old = rule.target_on("new"), rule.target_on("old")
    fate = f"**{rule.verdict.value}**"
    if new:
        fate += f" → {_call(new)}"
    if old and old != new:
        fate += f"{'; ' if new else ', '}on the old API stack → {_call(old)}"
    return f"{fate}."


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
    parts += [_step(step) for step in (*FIRST, *STEPS)]
    gone = [row for _, row in sorted(registry.ALGORITHMS.items()) if row.removed]
    rows = [f"| {row.name} | {row.becomes or '–'} | {row.why} |" for row in gone]
    parts += [
        "## Removed algorithms and their successors",
        "\n".join(["| algorithm | successor | |", "|---|---|---|", *rows]),
    ]
    return "\n\n".join(parts) + "\n"


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
    lines.append(f"{done[0].upper()}{done[1:]}{', unless it is given' if step.fills else ''}.")
    bullets = "\n".join(f"- {line}" for line in lines)
    return f"## {step.id}\n\n{step.why}\n\n{bullets}"


def _name(setting: str) -> str:
    method, _, argument = setting.partition(".")
    return (
        f"`EnvSettings({argument}{'=' if argument else ''})`" if method == "env" else _call(setting)
    )


def _index() -> str:
    rules = [rule for module in FAMILIES.values() for rule in module.RULES]
    rows = [
        f"| [{TITLES[family]}]({family}.md) | {len(module.RULES)} | {inspect.getdoc(module)} |"
        for family, module in FAMILIES.items()
    ]
    table = "\n".join(["| family | rules | about |", "|---|---|---|", *rows])
    return (
        "# Rules\n\n"
        f"What becomes of each key that a config of RLlib ever had: {len(rules)} rules, by family. "
        "A rule's heading is its name in reports and in `--only` and `--skip`, which take a "
        "family's name, too. Rows about the config as a whole are on "
        "[a page of their own](whole_config.md).\n\n"
        f"{table}\n\n"
        "```{toctree}\n:hidden:\n\n" + "\n".join([*FAMILIES, "whole_config"]) + "\n```\n"
    )


if __name__ == "__main__":
    main()
