"""What the museum's checkpoints do when they train on, recorded.

`python -m tests.trained` writes `trained.json` anew (ten minutes on two cores), with names of cases
behind it only these; `tests.support` makes the guide's table of it. Each is loaded as a user would,
with an environment of the policies' own spaces, and trains until its weights are others.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tree

import rllib_compat as compat
from rllib_compat import registry
from rllib_compat.conversion import Form, prepare
from rllib_compat.errors import CompatError
from rllib_compat.formats import read_checkpoint
from rllib_compat.neutral import LegacyCheckpoint
from rllib_compat.neutral.spaces import to_gymnasium
from rllib_compat.ray_versions import algorithms, learners, releases, startup
from tests.legacy.cases import Case, all_cases
from tests.legacy.networks import given_if_asked

RECORD = Path(__file__).with_name("trained.json")
LEARNED, SAME = "trained", "trained, but no weight is another one"
LENGTH = 10
ITERATIONS = 3  # an asynchronous learner's first batch may come after the first one ends


def environment(spaces: Mapping[str, tuple[Any, Any]]) -> type:
    """Environments of the old API: an agent for each policy, or one that is alone."""
    alone = next(iter(spaces)) if len(spaces) == 1 else None

    class Random:
        if alone is not None:
            observation_space, action_space = spaces[alone]

        def __init__(self, config: Any = None) -> None:
            self.at = 0

        def reset(self) -> Any:
            self.at = 0
            return self._observed()

        def step(self, actions: Any) -> Any:
            self.at += 1
            done = self.at >= LENGTH
            if alone is not None:
                return self._observed(), float(np.random.rand()), done, {}
            rewards = {agent: float(np.random.rand()) for agent in actions}
            return self._observed(), rewards, {"__all__": done}, {}

        def _observed(self) -> Any:
            seen = {policy_id: _sample(space) for policy_id, (space, _) in spaces.items()}
            return seen if alone is None else seen[alone]

    return Random


def spaces_of(checkpoint: LegacyCheckpoint) -> dict[str, tuple[Any, Any]]:
    """The observations and actions of each policy, as its environment had them."""
    return {
        policy_id: (_raw(policy.observation_space), _raw(policy.action_space))
        for policy_id, policy in checkpoint.policies.items()
    }


def _raw(space: Any) -> Any:
    return to_gymnasium(space.original_space or space)


def train(case: Case) -> str | None:
    """What came of it, or None where the checkpoint is refused or becomes modules only."""
    given = given_if_asked(case)
    try:
        plan = prepare(read_checkpoint(case.checkpoint), given)
    except CompatError:
        return None
    if plan.form is not Form.ALGORITHM:
        return None
    spaces = spaces_of(plan.checkpoint)
    with tempfile.TemporaryDirectory() as folder:
        more: dict[str, Any] = {"num_workers": 0, "min_iter_time_s": 0}
        if registry.of(case.algorithm).replays:
            more["learning_starts"] = 0
        if registry.of(case.algorithm).offline:
            ((observations, actions),) = spaces.values()
            record(Path(folder), observations, actions)
            more["input"] = folder
        algorithm = compat.load(case.checkpoint, given=given, env=environment(spaces), **more)
        try:
            before = _weights(algorithm)
            for _ in range(ITERATIONS):
                algorithm.train()
                after = _weights(algorithm)
                if changed := any((before[name] != after[name]).any() for name in before):
                    break
        finally:
            algorithms.stop_algorithm(algorithm)
    lost = [n for n in after if np.isfinite(before[n]).all() > np.isfinite(after[n]).all()]
    assert not lost, f"not finite: {lost}"  # a bound of nothing is infinite from the beginning
    return LEARNED if changed else SAME


def _sample(space: Any) -> Any:
    """Of a size that networks take; CartPole's bounds are those of float32 itself."""

    def small(value: Any) -> Any:
        is_float = np.issubdtype(np.asarray(value).dtype, np.floating)
        return np.clip(value, -1, 1) if is_float else value

    return tree.map_structure(small, space.sample())


def record(folder: Path, observations: Any, actions: Any) -> None:
    """Writes steps as old Ray did, for an algorithm that learns from nothing else."""
    steps = 200
    done = [(step + 1) % LENGTH == 0 for step in range(steps)]
    seen = [_sample(observations).tolist() for _ in range(steps + 1)]
    line = {
        "type": "SampleBatch",
        "t": [step % LENGTH for step in range(steps)],
        "eps_id": [step // LENGTH for step in range(steps)],
        "obs": seen[:-1],
        "new_obs": seen[1:],
        "actions": [np.asarray(actions.sample()).tolist() for _ in range(steps)],
        "rewards": np.random.rand(steps).tolist(),
        "dones": done,
    }
    (folder / "steps.json").write_text(json.dumps(line) + "\n", "utf-8")


def _weights(algorithm: Any) -> dict[str, Any]:
    whole = learners.local_learner(algorithm).module
    states = whole.get_state()  # Ray 2.40 has their spec in it, too
    return {
        f"{module_id}.{name}": np.array(array, copy=True)
        for module_id in whole.keys()  # noqa: SIM118 - it is no dict
        for name, array in states[module_id].items()
    }


def recorded() -> dict[str, str]:
    """What came of each case of the museum that becomes a whole algorithm."""
    found: dict[str, str] = json.loads(RECORD.read_text("utf-8"))["cases"]
    return found


def outcome_of(case: Case) -> str | None:
    """The same, or what it died of."""
    try:
        return train(case)
    except CompatError as error:
        return f"refused: {error}"
    except Exception as error:  # whatever Ray dies of is what the table tells
        return f"failed: {type(error).__name__}: {error}"


def _group(case: Case) -> tuple[str, str]:
    """Those that share a Ray; what reads recordings leaves actors behind that hold its CPUs."""
    return case.algorithm, str(case) if registry.of(case.algorithm).offline else ""


if __name__ == "__main__":
    asked = set(sys.argv[1:])
    cases: dict[str, str | None] = dict(recorded()) if asked else {}
    todo = [case for case in all_cases() if not asked or str(case) in asked]
    for _, group in itertools.groupby(sorted(todo, key=_group), _group):
        with startup.quiet_ray(num_cpus=4):
            for case in group:
                outcome = outcome_of(case)
                print(case, outcome, flush=True)
                cases[str(case)] = outcome
    seen = {name: outcome for name, outcome in sorted(cases.items()) if outcome is not None}
    made = {"ray": str(releases.installed()), "cases": seen}
    RECORD.write_text(json.dumps(made, indent=1) + "\n", "utf-8")
