"""Every reason for which a network is not read, worded once.

An error says what was found, where, and what to do about it. These are the wordings; who raises
one knows what was found.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from rllib_compat.neutral.errors import CheckpointError, MissingInformationError, NotYetError
from rllib_compat.neutral.spaces import Box, Space

#: What is left to do with a network that can't be converted.
KEEPS = "`--to msgpack` keeps all the weights."

_ANOTHER_CONFIG = f"Pass the right config with --config, or the right spaces. {KEEPS}"
#: What to check where arrays and network differ.
CHECK = f"Check that the config (params.json) and the spaces belong to this checkpoint. {KEEPS}"

#: How a space is given, by its kind.
_GIVE = {
    "observation": "Pass --observation-space 'Box(4,)' or --env CartPole-v1.",
    "action": "Pass --action-space 'Discrete(2)' or --env CartPole-v1.",
    "images": "Pass --observation-space 'Box(0, 255, (84, 84, 4), uint8)' or --env.",
    "parts": "Pass --observation-space \"Dict('camera': Box(0, 255, (84, 84, 3), uint8), …)\" or "
    "--env.",
    "bounds": "Pass --action-space 'Box(-2, 2, (1,))', with bounds for each dimension where they "
    "differ: 'Box([-2, 0], [2, 1], (2,))', or --env Pendulum-v1.",
    "both": "Pass --observation-space 'Box(3,)' and --action-space 'Box(-2, 2, (1,))', or --env "
    "Pendulum-v1.",
}


def not_yet(what: str, where: str, fix: str = KEEPS) -> NotYetError:
    """A network that was read, and can't be converted yet."""
    return NotYetError(f"Not supported yet: {what}.", where=where, fix=fix)


def contradictory(error: Exception, where: str) -> CheckpointError:
    """Arrays that are there, and can't be those of one network."""
    reason = f"{type(error).__name__}: {str(error)[:200]}".removesuffix(": ")
    return CheckpointError(
        f"The names and shapes of the arrays contradict each other ({reason}).",
        where=where,
        fix=f"The file may be damaged; try another checkpoint. {KEEPS}",
    )


def unknown_arrays(
    left: Sequence[str], found: Collection[Any], network: str, where: str
) -> NotYetError:
    """Arrays that a network does not have; none is `left`: one that it needs is missing."""
    example = f", for example {left[0]!r}" if left else ""
    return not_yet(
        f"{len(left)} of the {len(found)} arrays do not belong to a {network} as it is known"
        f"{example}",
        where,
        "If you wrote the network, give it as an RLModule: --model "
        f"my_package.my_module:MyRLModule. {KEEPS}",
    )


def other_config(key: str, found: object, said: object, where: str) -> CheckpointError:
    """A config that contradicts the weights: what it adds to them would be a guess."""
    return CheckpointError(
        f"The weights have {key}={found}, and the config {said}: it is not this checkpoint's "
        "config.",
        where=where,
        fix=_ANOTHER_CONFIG,
    )


def contradiction(found: str, where: str) -> CheckpointError:
    """The same where no single key is to blame."""
    return CheckpointError(found, where=where, fix=_ANOTHER_CONFIG)


def other_hiddens(
    found: Sequence[int], said: Sequence[int], where: str, of: str = ""
) -> CheckpointError:
    """Hidden layers that the config gives another size."""
    return CheckpointError(
        f"The weights {f'of {of} ' if of else ''}have hidden layers {list(found)}, the config says "
        f"{list(said)}: the config is not this checkpoint's.",
        where=where,
        fix=_ANOTHER_CONFIG,
    )


def other_space(kind: str, space: Space, have: int, needed: int, where: str) -> CheckpointError:
    """A space that does not fit the network: `kind` is `observation` or `action`."""
    what = "inputs" if kind == "observation" else "outputs"
    return CheckpointError(
        f"The network has {have} {what}, the {kind} space {space} needs {needed}.",
        where=where,
        fix=f"Pass the right one with --{kind}-space.",
    )


def needed(what: str, give: str, where: str) -> MissingInformationError:
    """Something that the checkpoint does not hold.

    `give` is `observation`, `action`, `images`, `parts`, `bounds` or `both`.
    """
    return MissingInformationError(what, where=where, fix=_GIVE[give])


def range_needed(space: Space | None, where: str) -> MissingInformationError:
    """The range of actions, where a policy squashed its outputs into it."""
    known = "" if space is None else f" {space} does not give the bounds of each dimension."
    if isinstance(space, Box) and not space.exact:
        known += " (Old gym printed no bounds, or the least and the greatest of all.)"
    what = "The range of the actions is needed: the policy squashed them into it."
    fix = _bounds_of(space) if isinstance(space, Box) and space.shape else _GIVE["bounds"]
    return MissingInformationError(what + known, where=where, fix=fix)


def _bounds_of(space: Box) -> str:
    """How the bounds of each dimension of a space are given."""
    low, high = ("[" + ", ".join([bound] * space.flat_size()) + "]" for bound in ("-2", "2"))
    return (
        f"Give the bounds of each dimension: --action-space 'Box({low}, {high}, {space.shape})', "
        "say, or --env with your environment."
    )


def no_fit(found: str, network: str, where: str, fits: int = 0, fix: str = "") -> CheckpointError:
    """Arrays without names that are not those of the network that config and spaces describe.

    Args:
        found: What was found (`The vector of 99 numbers`).
        network: The network, without its article.
        where: The place.
        fits: How many networks fit: none, or more than one.
        fix: What to do first.
    """
    count = "more than one" if fits > 1 else "no"
    return CheckpointError(f"{found} fits {count} {network}.", where=where, fix=f"{fix}{CHECK}")


def missing(names: Sequence[str], where: str) -> CheckpointError:
    """Arrays that the network can't be without."""
    return CheckpointError(f"The network has no {', '.join(names)}.", where=where, fix=CHECK)
