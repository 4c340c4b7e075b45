"""The museum's catalogue: every real old checkpoint as one `Case`, with what its network computed.

from tests.legacy.cases import all_cases, find

@pytest.mark.parametrize("case", find(algorithm="PPO", framework="tf"), ids=str)
def test_reads(case):
    read(case.checkpoint)
    for policy_id in case.policies:
        case.expected(policy_id).logits
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MUSEUM = Path(__file__).parent

#: Words in the names of variants: wrappers, spaces, filters and several policies.
_FEATURES = """
    lstm prev prevar attention images cnn42x3 parts tupleobs dictobs tupleact multidiscrete discrete
    disc items meanstd freelogstd noisy atoms atoms11 ma multiagent threepolicies league20
"""
FEATURES = frozenset(_FEATURES.split())


@dataclass(frozen=True, eq=False)
class Expected:
    """What the original network computed for one policy.

    Attributes:
        inputs: What was fed to the network: preprocessed and filtered observations.
        logits: The inputs of the action distribution; None for plain Q-learners of old.
        values: What the value branch said; None where the algorithm has none
            or the old Ray did not hand it out.
        observations: The raw observations by leaf; the key is `""` for a plain space and
            a path like `"pos"` or `"aux.0"` inside Dict and Tuple spaces.
        arrays: Everything stored for this policy under its stored name: `q_values`, `state_in_0`, …
    """

    inputs: np.ndarray | None
    logits: np.ndarray | None
    values: np.ndarray | None
    observations: Mapping[str, np.ndarray]
    arrays: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> Expected:
        """Read one policy's arrays, whichever of the museum's schemas names them."""

        def first(*names: str) -> np.ndarray | None:
            return next((arrays[name] for name in names if name in arrays), None)

        return cls(
            inputs=first("net_in", "obs_in", "obs_pre"),
            logits=first("out/action_dist_inputs", "action_dist_inputs", "logits"),
            values=first("out/vf_preds", "vf_preds"),
            observations={
                name.removeprefix(root).lstrip("/.").replace("/", "."): array
                for root in ("obs_raw", "obs")
                for name, array in arrays.items()
                if name == root or name.startswith((root + "/", root + "."))
            },
            arrays=arrays,
        )


@dataclass(frozen=True)
class Case:
    """One folder of the museum: a checkpoint that a real old Ray wrote.

    Attributes:
        path: The folder.
        ray: The Ray that wrote it, such as `"0.8.5"`.
        algorithm: Its legacy name, such as `"PPO"`.
        framework: `"tf"`, `"tf2"` or `"torch"`.
        stack: `"old"`, `"learner"` (the first Learner API, 2.7 – 2.10) or `"new"` (2.35 on).
        variant: What is special about the case, such as `"meanstd"`.
    """

    path: Path
    ray: str
    algorithm: str
    framework: str
    stack: str
    variant: str

    @classmethod
    def at(cls, path: Path) -> Case:
        """Read a case's folder."""
        about = _about(path)
        return cls(
            path=path,
            ray=about["versions"]["ray"],
            algorithm=about["algo"],
            framework=about["framework"],
            stack=about.get("stack", "old"),
            variant=about["variant"],
        )

    def __str__(self) -> str:
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def version(self) -> tuple[int, ...]:
        """The writing Ray as numbers, for comparisons."""
        return tuple(int(part) for part in self.ray.split("."))

    @property
    def about(self) -> dict[str, Any]:
        """`case.json` as it stands: versions, config, weight names, notes."""
        return _about(self.path)

    @property
    def layout(self) -> str:
        """The version of the checkpoint's format, such as `"1.1"`; `"0.1"` names none itself."""
        for file in self.path.rglob("rllib_checkpoint.json"):
            return str(json.loads(file.read_text("utf-8")).get("checkpoint_version", "0.1"))
        return "0.1"

    @property
    def features(self) -> frozenset[str]:
        """What of its variant asks for more than a plain network of one agent."""
        return FEATURES.intersection(self.variant.split("-"))

    @property
    def config(self) -> dict[str, Any]:
        """What the user gave to the old trainer, in plain JSON."""
        return self.about.get("user_config") or self.about["config"]

    @property
    def checkpoint(self) -> Path:
        """The path that one gave to the old `restore()`.

        Ray 0.5 wrote no file of exactly this name for most algorithms: only its siblings
        with the suffixes `.extra_data` and `.tune_metadata`.
        """
        return self.path / self.about["checkpoint"]

    @property
    def msgpack_checkpoint(self) -> Path | None:
        """The same state as Ray's own msgpack conversion wrote it, where that succeeded."""
        path = self.path / str(self.about.get("msgpack_checkpoint", "ckpt_msgpack"))
        return path if path.is_dir() else None

    @property
    def policies(self) -> tuple[str, ...]:
        """The ids of the policies whose outputs were recorded."""
        return tuple(_arrays(self.path))

    def expected(self, policy_id: str | None = None) -> Expected:
        """What the original network of a policy computed (the only one's, if None is named)."""
        by_policy = _arrays(self.path)
        if policy_id is None:
            (policy_id,) = by_policy
        return Expected.of(by_policy[policy_id])


@functools.cache
def _about(path: Path) -> dict[str, Any]:
    return json.loads((path / "case.json").read_text("utf-8"))


@functools.cache
def _arrays(path: Path) -> dict[str, dict[str, np.ndarray]]:
    by_policy: dict[str, dict[str, np.ndarray]] = {}
    with np.load(path / "expected.npz", allow_pickle=False) as stored:
        for key in stored:
            policy_id, _, name = key.partition("/")
            by_policy.setdefault(policy_id, {})[name] = stored[key]
    return by_policy


@functools.cache
def all_cases(root: Path = MUSEUM) -> tuple[Case, ...]:
    """Every case under a museum's root, oldest Ray first."""
    cases = (Case.at(file.parent) for file in root.glob("*/*/case.json"))
    return tuple(sorted(cases, key=lambda case: (case.version, case.path.name)))


def find(**wanted: Any) -> list[Case]:
    """The cases whose attributes are as wanted; a tuple, list or set means any of its members.

    find(ray="0.8.5", algorithm="PPO", framework=("tf", "torch"))
    """

    def fits(case: Case) -> bool:
        return all(
            getattr(case, name) in (value if isinstance(value, (tuple, list, set)) else (value,))
            for name, value in wanted.items()
        )

    return [case for case in all_cases() if fits(case)]


def case_of(name: str) -> Case:
    """The case of a Ray and a folder, such as `0.8.5/ppo-tf-cont`."""
    (case,) = (case for case in all_cases() if str(case) == name)
    return case


def one_of_each(cases: Iterable[Case], kind: Callable[[Case], Hashable]) -> list[Case]:
    """One case of each kind, of the Ray in the middle of those that have it."""
    kinds: dict[Hashable, list[Case]] = {}
    for case in cases:
        kinds.setdefault(kind(case), []).append(case)
    return [members[len(members) // 2] for members in kinds.values()]
