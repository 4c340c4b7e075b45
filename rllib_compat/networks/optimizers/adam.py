"""Adam's state, from every form in which an RLlib kept it.

The forms, by what wrote them::

    torch   `optimizer.state_dict()`, mostly in a list of one (Ray 0.8.6 – today). Its parameters
            have no names; they come in the order of the weights. torch 1.4 numbered them by their
            addresses, so only the order in `param_groups` counts.
    graph   `<id>/beta1_power`, `<id>/<id>/fc_1/kernel/Adam` (the mean of the gradients) and
            `…/Adam_1` (the mean of their squares), of TensorFlow 1 (Ray 0.8.6 – 2.x).
    eager   variables called `Adam/iter`, `Adam/fc_1/kernel/m` and `…/v`, which the pickle holds as
            calls that would make them (TensorFlow 2, Ray 1.x).

A moment has the shape of its weight, so moments take the way of the weights, through the same
tables. A state goes over whole or not at all: where one parameter has no counterpart, all of the
optimizer starts anew, and the report says why.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rllib_compat.networks.heads.fcnet import BUFFERS
from rllib_compat.networks.mapping import Array, Table, to_canonical
from rllib_compat.networks.names.attention import CONSTANT
from rllib_compat.networks.network import OWN_TARGET_PREFIX, TARGET_PREFIX, Network
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.records import StandIn
from rllib_compat.neutral.report import Finding, Severity, Verdict

#: What today's learner makes: `torch.optim.Adam(params)`.
TARGET = {"betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "amsgrad": False}

#: Settings that make the same moments mean something else.
_DECISIVE = ("betas", "amsgrad")

_TENSORFLOW = "TensorFlow added its epsilon ({eps:g}) before the bias correction, torch adds after"

_GRAPH = re.compile(r"(?P<name>.+)/Adam(?P<square>_1)?")
_EAGER = re.compile(r"(?P<name>.+)/(m|(?P<square>v))")

_SLOT = {"step", "exp_avg", "exp_avg_sq"}

_HINT = "the first updates may be larger or smaller than before"


@dataclass(frozen=True)
class Adam:
    """The state of one policy's Adam.

    Attributes:
        step: How many updates it made.
        mean: The running mean of the gradients, by the weights' canonical names.
        square: The running mean of their squares, likewise.
        derived: How the steps were found, where they are not stored as such.
        settings: What is stored of its settings, by torch's names.
        note: How its formula differs from torch's, if it does.
    """

    step: int
    mean: Mapping[str, Array]
    square: Mapping[str, Array]
    derived: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


def plan(
    policies: Mapping[str, PolicyState], networks: Mapping[str, Network]
) -> tuple[dict[str, Adam], list[Finding]]:
    """Finds what can be carried.

    Returns:
        The states of those policies whose optimizer goes on, and what becomes of each policy's.
    """
    states: dict[str, Adam] = {}
    if all(stored_state(policies[policy_id]) is None for policy_id in networks):
        return states, [finding("*", Verdict.ABSENT, "no optimizer state is stored")]
    findings = []
    for policy_id, network in networks.items():
        if stored_state(policies[policy_id]) is None:
            findings.append(finding(policy_id, Verdict.ABSENT, "no optimizer state is stored"))
            continue
        try:
            state = read(policies[policy_id], network)
        except CheckpointError as error:
            message = f"the optimizer starts anew: {error.found}"
            findings.append(finding(policy_id, Verdict.RESET, message))
            continue
        if state is None:
            message = "it had made no update yet, and starts as it was"
            findings.append(finding(policy_id, Verdict.EXACT, message))
            continue
        states[policy_id] = state
        verdict = Verdict.DERIVED if state.derived else Verdict.EXACT
        findings.append(finding(policy_id, verdict, "; ".join(told(state))))
    return states, findings


def read(policy: PolicyState, network: Network) -> Adam | None:
    """Reads the stored state of a policy's optimizer.

    Returns:
        The state, complete for the network; None where no update was made yet.

    Raises:
        CheckpointError: It can't go over; `found` is the reason.
    """
    try:
        state = _read(stored_state(policy), policy, network)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CheckpointError(f"its state has no form that is known ({error})") from error
    if state is not None:
        if any(n.endswith(".beta") and n not in network.arrays for n in state.mean):
            raise CheckpointError(
                "the trained slopes of swish were moved into the weights, whose moments are of "
                "gradients before that"
            )
        trained = {k: v for k, v in network.arrays.items() if not k.startswith(TARGET_PREFIX)}
        require_whole(state, trained)
    return state


def _read(stored: Any, policy: PolicyState, network: Network) -> Adam | None:
    states = stored if isinstance(stored, list) else [stored]
    if all(isinstance(variable, StandIn) for variable in states):
        return _eager(states, policy.old_id, network.names)
    if len(states) > 1:
        raise CheckpointError(f"the policy had {len(states)} optimizers, its module has one")
    if "param_groups" in states[0]:
        return _torch(states[0], policy, network)
    return _graph(states[0], policy.old_id, network.names)


def torch_slots(state: Adam, network: Network) -> dict[str, dict[str, Any]]:
    """What torch's Adam keeps for each parameter of today's default PPO module, by its name."""
    import torch

    squares = network.target.arrays(state.square)
    return {
        name: {
            "step": torch.tensor(float(state.step)),
            "exp_avg": torch.from_numpy(mean),
            "exp_avg_sq": torch.from_numpy(squares[name]),
        }
        for name, mean in network.target.arrays(state.mean).items()
    }


def stored_state(policy: PolicyState) -> Any:
    """What was stored of a policy's optimizer, or None.

    With the first Learner API, the policy itself had an empty list.
    """
    stored = policy.optimizer if policy.learner_optimizer is None else policy.learner_optimizer
    empty = isinstance(stored, (list, Mapping)) and not stored
    return None if empty else stored


def finding(policy_id: str, verdict: Verdict, message: str) -> Finding:
    """What becomes of a policy's optimizer."""
    lost = verdict is Verdict.RESET
    severity = Severity.WARNING if lost else Severity.INFO
    path = f"policies.{policy_id}.optimizer"
    return Finding("optimizer", severity, verdict, path, message, _HINT if lost else "")


def told(state: Adam) -> Iterator[str]:
    """What the report says of a state that goes over."""
    yield f"Adam after {state.step:,} updates, both moments of {len(state.mean)} arrays"
    if state.derived:
        yield state.derived
    if state.note:
        yield state.note
    for name, theirs in state.settings.items():
        if name in TARGET and theirs != TARGET[name]:
            yield f"its {name} was {theirs}, and is torch's {TARGET[name]} now"
    yield "the learning rate is the config's"


def _torch(stored: Mapping[str, Any], policy: PolicyState, network: Network) -> Adam | None:
    once = {*BUFFERS, *network.aliases}
    names = [str(n) for n in policy.weights if n not in once and not _is_no_parameter(str(n))]
    return from_torch(stored, names, network.names, network.unused)


def _is_no_parameter(name: str) -> bool:
    """Whether a module's array is one of a target network, or a constant: no optimizer has it."""
    return bool(name.startswith((OWN_TARGET_PREFIX, "_old_")) or CONSTANT.fullmatch(name))


def from_torch(
    stored: Mapping[str, Any], names: Sequence[str], table: Table, unused: Collection[str] = ()
) -> Adam | None:
    """Reads torch's `state_dict()`: numbers instead of names, in the order of the weights.

    Args:
        stored: What `state_dict()` gave.
        names: The names of the weights that the optimizer had.
        table: Their canonical names.
        unused: Those of them that no gradient reaches: they have no state.

    Returns:
        The state; None where no update was made yet.

    Raises:
        CheckpointError: It can't go over; `found` is the reason.
    """
    slots = {str(number): slot for number, slot in stored["state"].items()}
    if not slots:
        return None
    groups = stored["param_groups"]
    numbers = [str(number) for group in groups for number in group["params"]]
    if len(names) != len(numbers):
        raise CheckpointError(f"it has {len(numbers)} parameters, the network {len(names)}")
    pairs = [(n, i) for n, i in zip(names, numbers, strict=True) if n not in unused]
    missing = [name for name, number in pairs if number not in slots]
    if missing:
        raise CheckpointError(f"{missing[0]} and {len(missing) - 1} more were never updated")
    if odd := set[str]().union(*slots.values()) ^ _SLOT:
        raise CheckpointError(f"it is no plain Adam: see its {', '.join(sorted(odd))}")
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in groups[0].items()}
    other = [k for k in _DECISIVE if k in settings and settings[k] != TARGET[k]]
    if other:
        raise CheckpointError(f"its {other[0]} was {settings[other[0]]}, not {TARGET[other[0]]}")
    steps = {int(slot["step"]) for slot in slots.values()}
    if len(steps) > 1:
        raise CheckpointError("its parameters were updated a different number of times")
    moments = [
        {name: slots[number][kind] for name, number in pairs} for kind in ("exp_avg", "exp_avg_sq")
    ]
    mean, square = (_canonical(table, moment) for moment in moments)
    return Adam(steps.pop(), mean, square, settings=settings)


def _graph(stored: Mapping[str, Any], policy_id: str, names: Table) -> Adam | None:
    """Reads TensorFlow 1's variables; the powers of the betas count the updates."""
    scope = f"{policy_id}/"
    plain = {k.removeprefix(scope).removeprefix(scope): np.asarray(v) for k, v in stored.items()}
    if not {"beta1_power", "beta2_power"} <= plain.keys():
        raise CheckpointError("it is no Adam: it keeps no powers of betas")
    step = updates_of(float(plain.pop("beta1_power")), float(plain.pop("beta2_power")))
    mean, square = _split(_GRAPH, plain, names)
    if step == 0:
        return None
    derived = f"the number of updates follows from the powers of the betas, {TARGET['betas']}"
    return Adam(step, mean, square, derived, note=_TENSORFLOW.format(eps=1e-8))


def updates_of(beta1_power: float, beta2_power: float) -> int:
    """How many updates TensorFlow's Adam made, from the powers that the *next* one will use.

    float32 has no more digits of the first power after some 800 updates, of the second after some
    87,000. By then the bias correction is 1 whatever the number is.

    Raises:
        CheckpointError: The powers are of other betas.
    """
    betas = TARGET["betas"]
    assert isinstance(betas, tuple)
    tiny = float(np.finfo(np.float32).tiny)
    counts = [
        math.log(max(power, tiny)) / math.log(beta) - 1
        for power, beta in zip((beta1_power, beta2_power), betas, strict=True)
    ]
    use = counts[0] if beta1_power > tiny else counts[1]
    if beta1_power > tiny and abs(counts[0] - counts[1]) > 0.5:
        raise CheckpointError(f"its betas were not {betas}")
    return round(use)


def _eager(variables: list[StandIn], policy_id: str, names: Table) -> Adam | None:
    """Reads TensorFlow 2's variables: calls of a `functools.partial` with name and value."""
    plain: dict[str, Array] = {}
    for variable in variables:
        call = getattr(variable.ref, "state", None)  # of a partial: function, args, kwargs, …
        if call is None or "initial_value" not in call[2]:
            raise CheckpointError("its variables have no values in the checkpoint")
        given = call[2]
        name = given["name"].removeprefix("Adam/").removeprefix(f"{policy_id}/")
        plain[name] = np.asarray(given["initial_value"])
    if "iter" not in plain:
        raise CheckpointError("it is no Adam: it counts no updates")
    step = int(plain.pop("iter"))
    if step == 0:
        return None
    mean, square = _split(_EAGER, plain, names)
    return Adam(step, mean, square, note=_TENSORFLOW.format(eps=1e-7))


def _split(
    pattern: re.Pattern[str], plain: Mapping[str, Array], names: Table
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The canonical means and squares of keras' variables."""
    moments: tuple[dict[str, Array], dict[str, Array]] = ({}, {})
    for name, array in plain.items():
        match = pattern.fullmatch(name)
        if match is None:
            raise CheckpointError(f"its variable {name!r} is no moment of Adam")
        moments[match["square"] is not None][match["name"]] = array
    return _canonical(names, moments[0]), _canonical(names, moments[1])


def _canonical(names: Table, moments: Mapping[str, Any]) -> dict[str, Array]:
    arrays, left = to_canonical(names, {k: np.asarray(v) for k, v in moments.items()})
    if left:
        raise CheckpointError(f"{left[0]!r} has no counterpart in the network")
    return arrays


def require_whole(state: Adam, trained: Mapping[str, Array]) -> None:
    """Makes sure that each trained array has both moments, and nothing else has.

    Raises:
        CheckpointError: One has not; `found` is the reason.
    """
    if state.step < 1:
        raise CheckpointError(f"it has moments of {state.step} updates")
    for moments in (state.mean, state.square):
        if moments.keys() != trained.keys():
            odd = sorted(moments.keys() ^ trained.keys())
            raise CheckpointError(f"{odd[0]} has no counterpart on one side")
        for name, array in moments.items():
            if array.shape != trained[name].shape:
                raise CheckpointError(
                    f"{name} has moments of shape {array.shape}, and is "
                    f"{trained[name].shape} itself"
                )
