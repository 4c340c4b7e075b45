"""Completes a checkpoint with facts from other sources.

A v0.1 checkpoint has no algorithm, no config and mostly no spaces. Each of them is taken from the
first source that has it, in this order: the caller; the checkpoint itself; the trial's params; the
environment, if gymnasium has one of that name; the weights, if they allow only one answer. A
finding names the source. If there is none, an error asks for the fact.

The signs of the algorithm are, in this order: the class of a policy, the name of the trial's
folder, the names of the arrays, the keys of the config. The first sign gives candidates, and later
ones narrow them down. If several are left, an error asks for the algorithm. If only arrays or keys
suggest it, a warning says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from rllib_compat import registry
from rllib_compat.conversion.given import Given
from rllib_compat.conversion.policies import complete_policies, select_policies
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.registry import keys as table

_TRIAL = re.compile(r"(?P<algorithm>[A-Z][A-Za-z0-9]*)_(?P<env>[A-Za-z0-9]+-v\d+)_")
_CLASS_OF_POLICY = re.compile(r"([A-Z][A-Za-z0-9]*?)(TF|Torch|Jax)?(Eager)?(Policy|PolicyGraph)")

_FIRST_WORD = re.compile(r"[A-Z][A-Z0-9]+(?=[ .-])")

#: How many levels above a checkpoint's folder its trial's may be.
_LEVELS_UP = 4

#: The prefix of a policy class that several algorithms share → these algorithms.
_SHARED_CLASSES = {"Bandit": ("BanditLinTS", "BanditLinUCB")}

#: A pattern of arrays' names, and the algorithm whose family has such arrays; the first match
#: counts.
_ARRAYS = (
    (re.compile(r"log_alpha|action_model|twin_q_net|pi_encoder"), "SAC"),
    (re.compile(r"policy_model\.|p_func|actor_hidden|actor_out|action_out_squashed"), "DDPG"),
    (re.compile(r"advantage_module|value_module|q_func|action_value|dueling_|_target_af"), "DQN"),
)


def complete(checkpoint: LegacyCheckpoint, given: Given) -> LegacyCheckpoint:
    """Adds the algorithm, config and spaces that can be found.

    The findings of the result name derived facts. Missing facts are errors later, in
    `identify.require_facts`.

    Raises:
        ConfigError: No RLlib ever had the algorithm that the caller gave.
    """
    config = given.config
    if config is None and not checkpoint.has_config:
        config = given.config_if_none
    if config is not None:
        checkpoint = replace(checkpoint, config=config, config_is_complete=False)
    if given.env is not None:
        checkpoint = replace(checkpoint, config={**checkpoint.config, "env": given.env})
    checkpoint = _with_algorithm(checkpoint, given.algorithm)
    env = None if "env" in checkpoint.config else _env_of_folder(checkpoint)
    checkpoint = select_policies(checkpoint, given.policies)
    if env is not None:
        message = f"{env}, from the name of the trial's folder"
        derived = Finding.info("derived", Verdict.DERIVED, "config.env", message)
        checkpoint = replace(checkpoint, config={**checkpoint.config, "env": env})
        checkpoint = checkpoint.with_findings([derived])
    return complete_policies(checkpoint, given)


@frozen
class _Sign:
    """A sign of a checkpoint's algorithm.

    Attributes:
        source: The description for messages.
        candidates: The possible algorithms, the likeliest first.
        guess: Whether the sign does not contain the algorithm's name.
    """

    source: str
    candidates: tuple[str, ...]
    guess: bool = False


def _with_algorithm(checkpoint: LegacyCheckpoint, given: str | None) -> LegacyCheckpoint:
    """Sets the algorithm: the caller's, the checkpoint's, or the one of the signs.

    Raises:
        ConfigError: No RLlib ever had the caller's algorithm.
    """
    if given:
        return replace(checkpoint, algorithm=registry.find(given).name)
    if checkpoint.algorithm and (name := _known(checkpoint.algorithm)):
        return replace(checkpoint, algorithm=name)
    sign, left = _candidates(checkpoint)
    names = _without_variants(left)
    if sign is None or len(names) != 1:
        return replace(checkpoint, algorithm=None)
    message = f"{names[0]}, from {sign.source}"
    if others := [name for name in left if name != names[0]]:
        message += f"; so had {', '.join(others)}"
    sure = not sign.guess and not any(registry.of(name).undistributed for name in others)
    severity = Severity.INFO if sure else Severity.WARNING
    hint = "" if sure else "pass --algorithm if it is another one"
    finding = Finding("derived", severity, Verdict.DERIVED, "algorithm", message, hint)
    return replace(checkpoint, algorithm=names[0]).with_findings([finding])


def candidates(checkpoint: LegacyCheckpoint) -> tuple[str, ...]:
    """Returns the possible algorithms of a checkpoint by its signs."""
    return _without_variants(_candidates(checkpoint)[1])


def _candidates(checkpoint: LegacyCheckpoint) -> tuple[_Sign | None, tuple[str, ...]]:
    """Returns the first sign, and those of its candidates that later signs allow."""
    first: _Sign | None = None
    names: tuple[str, ...] = ()
    for sign in _signs(checkpoint):
        if first is None:
            first, names = sign, sign.candidates
        # A sign that contradicts earlier ones is ignored: people rename folders.
        elif left := tuple(name for name in names if name in sign.candidates):
            names = left
    return first, _of_its_time(_by_memory(names, checkpoint), checkpoint.source.ray_version)


def _signs(checkpoint: LegacyCheckpoint) -> Iterator[_Sign]:
    for policy in checkpoint.policies.values():
        if not policy.has_weights:  # a helper's class is not the algorithm's
            continue
        match = _CLASS_OF_POLICY.fullmatch((policy.policy_class or "").rsplit(".", 1)[-1])
        if match is None:
            continue
        names: tuple[str, ...] = _SHARED_CLASSES.get(match[1], ())
        if not names and (name := _known(match[1])):
            names = registry.of_policy(name)
        if names:
            yield _Sign(f"the policy class {policy.policy_class}", names)
            break
    for folder in _folders(checkpoint):
        if name := _algorithm_of_folder(folder):
            yield _Sign(f"the name of the folder {folder.name}", (name,))
            break
    if family := algorithm_of_arrays(checkpoint.policies.values()):
        yield _Sign("the names of its arrays", registry.family(family), guess=True)
    if named := _owners_of_keys(checkpoint):
        yield _Sign("the keys of its config", named, guess=True)


def _algorithm_of_folder(folder: Path) -> str | None:
    """Returns the algorithm in a folder's name, such as `PPO_CartPole-v0_…` or `A2C final`."""
    name, _, rest = folder.name.partition("_")
    if rest:
        longer = "_".join(folder.name.split("_")[:2])  # APEX_DDPG_CartPole-v0_…
        contributed = longer.replace("contrib_", "contrib/", 1)  # contrib_LinUCB_…
        if found := _known(contributed) or _known(name):
            return found
    if folder.name in registry.ALGORITHMS:
        return folder.name
    word = _FIRST_WORD.match(folder.name)  # in capitals: "Random walks" names no algorithm
    return word[0] if word and word[0] in registry.ALGORITHMS else None


def algorithm_of_arrays(policies: Iterable[PolicyState]) -> str | None:
    """Returns the algorithm whose family has arrays of these names."""
    weights = [p.weights for p in policies if isinstance(p.weights, dict)]
    for sign, name in _ARRAYS:
        if any(sign.search(array) for arrays in weights for array in arrays):
            return name
    return None


def _owners_of_keys(checkpoint: LegacyCheckpoint) -> tuple[str, ...]:
    """Returns the algorithms that have all of a config's special keys."""
    homes = [table.homes(key) for key in checkpoint.config]
    owners = [home for home in homes if home and "common" not in home]
    names = [n for n in registry.ALGORITHMS if owners and all(n in owner for owner in owners)]
    # Algorithms whose checkpoints can be read have precedence.
    return tuple(name for name in names if registry.of(name).reader) or tuple(names)


def _of_its_time(names: tuple[str, ...], ray: str | None) -> tuple[str, ...]:
    """Returns the algorithms that the checkpoint's Ray had."""
    if ray is None:
        return names
    release = table.nearest_release(ray)
    return tuple(name for name in names if table.defaults(name, release)) or names


def _by_memory(names: tuple[str, ...], checkpoint: LegacyCheckpoint) -> tuple[str, ...]:
    """Filters candidates by whether their networks have an LSTM (R2D2, RNNSAC)."""
    arrays = (p.weights for p in checkpoint.policies.values() if isinstance(p.weights, dict))
    recurrent = any("lstm" in array for names_of_arrays in arrays for array in names_of_arrays)
    remember = {"R2D2", "RNNSAC"}
    forget = {*registry.family("DQN"), *registry.family("SAC")} - remember
    others = forget if recurrent else remember
    return tuple(name for name in names if name not in others) or names


def _without_variants(names: tuple[str, ...]) -> tuple[str, ...]:
    """Removes algorithms that are read and trained as one that they derive from (DDPPO and PPO).

    Removes distributed variants, too (APEX and DQN).
    """
    rows = [registry.of(name) for name in names]
    return tuple(
        row.name
        for row in rows
        if not any(
            other is not row
            and row.name in registry.family(other.name)
            and other.reader == row.reader
            and (row.distributes or other.becomes == row.becomes)
            for other in rows
        )
    )


def _known(name: str) -> str | None:
    try:
        return registry.find(name).name
    except ConfigError:
        return None


def _folders(checkpoint: LegacyCheckpoint) -> Iterator[Path]:
    path = checkpoint.source.path
    yield from (path, *path.resolve().parents[:_LEVELS_UP])


def _env_of_folder(checkpoint: LegacyCheckpoint) -> str | None:
    """Returns the environment in the name of a trial's folder, if it has gymnasium's form."""
    for folder in _folders(checkpoint):
        match = _TRIAL.match(folder.name)
        if match and _known(match["algorithm"]):
            return match["env"]
    return None
