"""`rllib-compat config`: what a legacy config means today."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rllib_compat.cli import named_modules, options, output

if TYPE_CHECKING:
    from rllib_compat.config import Translation
    from rllib_compat.config.files import Experiment
    from rllib_compat.neutral.report import Finding


@click.command("config")
@click.argument("file")
@click.option("--algorithm", help="The algorithm it is for, e.g. PPO or PPOTrainer.")
@click.option("--env", help="The environment's name.")
@options.legacy_ray_option
@click.option(
    "--api-stack",
    type=click.Choice(["auto", "new", "old"]),
    default="auto",
    help="The API stack; auto takes the new one wherever it can.",
)
@options.on_unknown_option
@click.option("--only", multiple=True, metavar="RULE", help="Show only these rules or families.")
@click.option("--skip", multiple=True, metavar="RULE", help="Don't show these rules or families.")
@click.option("--check", is_flag=True, hidden=True, help="Says nothing any more.")
@options.json_option
def command(
    file: str,
    algorithm: str | None,
    env: str | None,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    as_json: bool,
    **how: Any,
) -> int:
    """Translates the legacy config in FILE and shows the result for every key.

    FILE is params.json, params.pkl, a YAML file of Tune with one or several experiments, or
    file.py:NAME for a dict in a Python file. Nothing in a pickle is run. The exit code is 1 if
    something is refused, or left out although it did something.

    \b
    Examples:
      rllib-compat config ~/ray_results/PPO/PPO_CartPole-v0_0/params.json
      rllib-compat config tuned_examples/ppo/pong-ppo.yaml --legacy-ray 0.8.5
      rllib-compat config train.py:CONFIG --algorithm DQN
    """
    from rllib_compat.config import find_algorithm, translate
    from rllib_compat.config.era import resolve
    from rllib_compat.config.files import read_evidence, read_experiments

    how.pop("check")
    if file.rpartition(":")[0].endswith(".py"):
        named_modules.activate_old_imports()
    legacy_ray = how.pop("legacy_ray")
    lost = False
    translated: list[tuple[Experiment, Translation]] = []
    experiments = read_experiments(file)
    evidence = read_evidence(file)
    for experiment in experiments:
        name, _ = find_algorithm(experiment.config, algorithm or experiment.algorithm)
        translation = translate(
            experiment.config,
            algorithm=algorithm or experiment.algorithm,
            env=env or experiment.env,
            legacy_ray=resolve(legacy_ray, experiment.config, name, evidence),
            **how,
        )
        lost = lost or translation.lost
        findings = [f for f in translation.report if _shown(f, only, skip)]
        translation.report.findings = findings
        translated.append((experiment, translation))
    if as_json:
        output.emit_json([_plain(*pair) for pair in translated])
    else:
        for experiment, translation in translated:
            _show(experiment, translation)
    return int(lost)


def _shown(finding: Finding, only: tuple[str, ...], skip: tuple[str, ...]) -> bool:
    """Whether a rule is wanted; a refusal is never hidden."""
    from rllib_compat.neutral.report import Verdict

    names = {finding.rule, finding.rule.partition(".")[0]}
    wanted = (not only or bool(names & set(only))) and not names & set(skip)
    return wanted or finding.verdict is Verdict.REFUSED


def _plain(experiment: Experiment, translation: Translation) -> dict[str, Any]:
    return {
        "experiment": experiment.name,
        "algorithm": translation.algorithm,
        "api_stack": translation.api_stack,
        "refused": translation.refused,
        "report": translation.report.to_dict(),
        "python": None if translation.refused else translation.to_python(),
    }


def _show(experiment: Experiment, translation: Translation) -> None:
    translation.report.title = f"{experiment.name}: {translation.report.title}"
    output.report(translation.report, verbose=1)  # a row for every key is the point
    if not translation.refused:
        click.echo("\n" + translation.to_python())
