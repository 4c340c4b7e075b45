"""Reads what the objects of old Rays had out of their wheels: names, parameters and defaults.

The sources are parsed; nothing of a release is imported or run. What is written is held against our
objects, and feeds the guide's page::

    pip download --no-deps --only-binary :all: --python-version 37 -d wheels ray==0.8.5
    python -m tests.legacy_api --write wheels/ray-*.whl
"""

from __future__ import annotations

import ast
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import click
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from rllib_compat.registry.legacy_api import GONE, sentence_for

FACTS = Path(__file__).parent / "legacy/api"

PAGE = Path(__file__).parents[1] / "migration_guide/legacy_objects.md"
HEAD = """# What old objects have

A row for each public name that the objects of Ray 0.6.6, 0.8.5, 1.0.1, 1.3.0, 1.13.0, 2.0.1 and
2.10.0 had, with its parameters in the last of them. What is there is there on an object of ours, a
method with its parameters by name. What is not is an `AttributeError` with the sentence given here:
`hasattr` is false for it. `python -m tests.legacy_api` writes this page, and a test asks live
objects for each name of it.
"""

#: An object, as old code called it → the modules of `ray` that had its classes, and the classes.
CLASSES: Mapping[str, Mapping[str, str]] = {
    "trainer": {
        "rllib.agents.trainer": "Trainer",
        "rllib.algorithms.algorithm": "Algorithm",
    },
    "trainer.optimizer": {"rllib.optimizers.policy_optimizer": "PolicyOptimizer"},
    "workers": {"rllib.evaluation.worker_set": "WorkerSet"},
    "worker": {
        "rllib.evaluation.policy_evaluator": "PolicyEvaluator",
        "rllib.evaluation.rollout_worker": "RolloutWorker",
    },
    "policy": {
        "rllib.evaluation.policy_graph": "PolicyGraph",
        "rllib.evaluation.torch_policy_graph": "TorchPolicyGraph",
        "rllib.evaluation.tf_policy_graph": "TFPolicyGraph LearningRateSchedule",
        "rllib.policy.policy": "Policy",
        "rllib.policy.torch_policy": "TorchPolicy LearningRateSchedule EntropyCoeffSchedule",
        "rllib.policy.tf_policy": "TFPolicy LearningRateSchedule EntropyCoeffSchedule",
        "rllib.policy.torch_policy_v2": "TorchPolicyV2",
        "rllib.policy.eager_tf_policy_v2": "EagerTFPolicyV2",
        "rllib.policy.torch_mixins": "LearningRateSchedule EntropyCoeffSchedule KLCoeffMixin",
        "rllib.policy.tf_mixins": "LearningRateSchedule EntropyCoeffSchedule KLCoeffMixin",
        "rllib.agents.ppo.ppo_torch_policy": "KLCoeffMixin ValueNetworkMixin PPOTorchPolicy",
        "rllib.agents.ppo.ppo_tf_policy": "KLCoeffMixin ValueNetworkMixin",
        "rllib.algorithms.ppo.ppo_torch_policy": "PPOTorchPolicy",
    },
    "model": {
        "rllib.models.model": "Model",
        "rllib.models.modelv2": "ModelV2",
        "rllib.models.torch.torch_modelv2": "TorchModelV2",
        "rllib.models.tf.tf_modelv2": "TFModelV2",
    },
    "base_env": {"rllib.env.base_env": "BaseEnv"},
    "episode": {
        "rllib.evaluation.episode": "MultiAgentEpisode Episode",
        "rllib.evaluation.episode_v2": "EpisodeV2",
    },
    "policy_map": {"rllib.policy.policy_map": "PolicyMap"},
    "sample_batch": {
        "rllib.evaluation.sample_batch": "SampleBatch",
        "rllib.policy.sample_batch": "SampleBatch",
    },
    "multi_agent_batch": {
        "rllib.evaluation.sample_batch": "MultiAgentBatch",
        "rllib.policy.sample_batch": "MultiAgentBatch",
    },
    "analysis": {
        "tune.analysis.experiment_analysis": "ExperimentAnalysis Analysis",
    },
    "callbacks": {
        "rllib.agents.callbacks": "DefaultCallbacks",
        "rllib.algorithms.callbacks": "DefaultCallbacks",
    },
}

#: Where a class says which attributes its objects have: Tune calls the latter ones.
_BEGINNINGS = ("__init__", "_setup", "setup", "_init")

#: Name → "attribute", "property", or the parameters in parentheses as a def has them.
Names = dict[str, str]


class Sources:
    """The modules of a Ray, from its wheel.

    Args:
        wheel: The file.
    """

    def __init__(self, wheel: Path) -> None:
        self.ray = str(parse_wheel_filename(wheel.name)[1])
        self._archive = zipfile.ZipFile(wheel)
        self._files = {
            match[1].replace("/", "."): file
            for file in self._archive.namelist()
            if (match := re.search(r"(?:^|/)(ray/[\w/]+?)(?:/__init__)?\.py$", file))
        }
        self._tree = cache(self._parse)

    def objects(self) -> dict[str, dict[str, Names]]:
        """The objects that this Ray had → their classes → the names of each."""
        found = {
            name: {
                f"{module}.{class_}": names
                for module, classes in modules.items()
                for class_ in classes.split()
                if (names := self.names(f"ray.{module}", class_))
            }
            for name, modules in CLASSES.items()
        }
        return {name: classes for name, classes in found.items() if classes}

    def names(self, module: str, name: str) -> Names:
        """The public names of a class and of its bases in Ray; none if there is no such class."""
        place = self._find(module, name)
        if place is None:
            return {}
        module, node = place
        found: Names = {}
        for base in reversed(node.bases):
            if isinstance(base, ast.Name) and base.id != name:
                found |= self.names(module, base.id)
        return dict(sorted({**found, **dict(_own(node))}.items()))

    def _find(self, module: str, name: str) -> tuple[str, ast.ClassDef] | None:
        """Where a class is that a module defines or imports."""
        if module not in self._files:
            return None
        for node in ast.walk(self._tree(module)):
            if isinstance(node, ast.ClassDef) and node.name == name:
                return module, node
        for node in ast.walk(self._tree(module)):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    if name == (alias.asname or alias.name) and node.module != module:
                        return self._find(node.module, alias.name)
        return None

    def _parse(self, module: str) -> ast.Module:
        return ast.parse(self._archive.read(self._files[module]))


def _own(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The public names that a class brings, and what each is."""
    functions = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    for statement in node.body:
        yield from ((name, "attribute") for name in _assigned(statement) if "." not in name)
    for function in functions:
        if function.name in _BEGINNINGS:
            for statement in ast.walk(function):
                for name in _assigned(statement):
                    if name.startswith("self."):
                        yield from _public(name.removeprefix("self."), "attribute")
    for function in functions:
        marks = {ast.unparse(one).rpartition(".")[2] for one in function.decorator_list}
        if not marks & {"setter", "deleter"}:
            bound = not marks & {"staticmethod"}
            kind = "property" if marks & {"property", "cached_property"} else None
            yield from _public(function.name, kind or _parameters(function, bound=bound))


def _assigned(statement: ast.AST) -> Iterator[str]:
    """What a statement gives a value: names, and attributes with a dot."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    for target in targets:
        for one in target.elts if isinstance(target, ast.Tuple) else [target]:
            text = ast.unparse(one)
            if re.fullmatch(r"(self\.)?[A-Za-z]\w*", text):
                yield text


def _public(name: str, kind: str) -> Iterator[tuple[str, str]]:
    if not name.startswith("_"):
        yield name, kind


def _parameters(function: ast.FunctionDef, *, bound: bool) -> str:
    """Parameters and defaults, without types and without the object."""
    arguments = function.args
    for one in ast.walk(arguments):
        if isinstance(one, ast.arg):
            one.annotation = None
    if bound and arguments.args:
        arguments.args = arguments.args[1:]
    return f"({ast.unparse(arguments)})"


def facts() -> dict[str, dict[str, dict[str, Names]]]:
    """Ray → object → class → name → what it is, the oldest Ray first."""
    files = sorted(FACTS.glob("*.json"), key=lambda file: Version(file.stem))
    return {file.stem: json.loads(file.read_text("utf-8")) for file in files}


def names_of(kind: str) -> dict[str, tuple[str, str, str]]:
    """The names that an object had in any Ray: the first that had it, the last, and what it was."""
    found: dict[str, tuple[str, str, str]] = {}
    for ray, objects in facts().items():
        for names in objects.get(kind, {}).values():
            for name, what in names.items():
                found[name] = (found.get(name, (ray,))[0], ray, what)
    return dict(sorted(found.items()))


def page() -> str:
    """The guide's page: a row for each name of each object, in which Rays, and what it is here."""
    parts = [HEAD]
    for kind, cls in _our_classes().items():
        parts += [f"\n## {kind}\n", "| name | Ray | here |", "|---|---|---|"]
        for name, (first, last, what) in names_of(kind).items():
            shown = f"`{name}{what if what.startswith('(') else ''}`".replace("|", "\\|")
            span = first if first == last else f"{first} – {last}"
            parts.append(f"| {shown} | {span} | {_answer(kind, cls, name)} |")
    return "\n".join(parts) + "\n"


def _our_classes() -> dict[str, type]:
    from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch

    import rllib_compat as compat
    from rllib_compat import runtime, trainer, tune
    from rllib_compat.ray_versions.old_stack import add_legacy_batch_names
    from rllib_compat.trainer.workers import LegacyOptimizer

    add_legacy_batch_names()
    return {
        "trainer": compat.Trainer,
        "trainer.optimizer": LegacyOptimizer,
        "workers": trainer.LegacyWorkers,
        "worker": runtime.LegacyWorker,
        "policy": runtime.LegacyPolicy,
        "model": runtime.LegacyModel,
        "policy_map": runtime.LegacyPolicies,
        "base_env": runtime.LegacyBaseEnv,
        "episode": runtime.LegacyEpisode,
        "callbacks": compat.DefaultCallbacks,
        "sample_batch": SampleBatch,
        "multi_agent_batch": MultiAgentBatch,
        "analysis": tune.ExperimentAnalysis,
    }


def _answer(kind: str, cls: type, name: str) -> str:
    """What an object of ours has by a name: it is there, or the sentence of the error."""
    if name in GONE.get(kind, {}):
        return GONE[kind][name]
    if hasattr(cls, name):
        return "there"
    sentence = kind in GONE and sentence_for(kind, name)
    return sentence or "there, of each object"


@click.command()
@click.argument("wheels", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--write", is_flag=True, help="Write the facts; without, say what differs from them.")
def main(wheels: tuple[Path, ...], write: bool) -> None:
    """Reads what the objects of old Rays had out of their wheels; without any, writes the page."""
    if not wheels:
        PAGE.write_text(page(), "utf-8")
    for sources in map(Sources, wheels):
        text = json.dumps(sources.objects(), indent=1) + "\n"
        file = FACTS / f"{sources.ray}.json"
        if write:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, "utf-8")
        known = file.is_file() and file.read_text("utf-8") == text
        click.echo(
            f"Ray {sources.ray}: {'as recorded' if known else 'differs from what is recorded'}"
        )


if __name__ == "__main__":
    main()
