"""Which old optimizers continue: a plan for every algorithm, by the networks they trained.

A moment has the shape of its weight, so moments take the way of the weights, through the same
tables. What a policy had goes over whole or not at all: where one parameter has no counterpart,
its optimizers start from zero, and the report says why.

Adam's state is read from every form in which an RLlib kept it. The forms, by what wrote them::

    torch   `optimizer.state_dict()`, mostly in a list of one (Ray 0.8.6 – today). Its parameters
            have no names; they come in the order of the weights. torch 1.4 numbered them by their
            addresses, so only the order in `param_groups` counts.
    graph   `<id>/beta1_power`, `<id>/<id>/fc_1/kernel/Adam` (the mean of the gradients) and
            `…/Adam_1` (the mean of their squares), of TensorFlow 1 (Ray 0.8.6 – 2.x).
    eager   variables called `Adam/iter`, `Adam/fc_1/kernel/m` and `…/v`, which the pickle holds as
            calls that would make them (TensorFlow 2, Ray 1.x).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.networks.mapping import Array, Move, Table, row_for, to_canonical
from rllib_compat.networks.named import plain_name
from rllib_compat.networks.network import TARGET_PREFIX, Group, Weights
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.frozen import frozen
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

#: Buffers of torch modules that no optimizer has.
_CONSTANT = re.compile(r".+\.(log_std_clip_param_const|inverse_freq)")

#: The range of a deterministic policy's actions, which its optimizer had among its parameters.
_RANGE = re.compile(r".+\.(low_action|action_range)")

#: What the default module of APPO calls its target network (`_old_encoder`, `_old_pi`).
_COPY = "_old_"


@frozen
class Adam:
    """The state of one policy's Adam.

    Attributes:
        step: How many updates it made.
        mean: The running mean of the gradients, by the weights' canonical names.
        square: The running mean of their squares, likewise.
        derived: How the steps were found, where they are not stored as such.
        settings: What is stored of its settings, by torch's names.
        note: How its formula differs from torch's, if it does.
        eps: The epsilon of today's learner.
    """

    step: int
    mean: Mapping[str, Array]
    square: Mapping[str, Array]
    derived: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    eps: float = 1e-8


#: Beyond it, a float does not count updates any more.
_MOST_STEPS = 1 << 53


def torch_slots(state: Adam, network: Weights) -> dict[str, dict[str, Any]]:
    """What torch's Adam keeps for each parameter of today's default PPO module, by its name."""
    import torch

    squares = network.target.arrays(state.square)
    return {
        name: {
            "step": torch.tensor(float(state.step)),
            "exp_avg": torch.from_numpy(np.array(mean, order="C")),
            "exp_avg_sq": torch.from_numpy(np.array(squares[name], order="C")),
        }
        for name, mean in network.target.arrays(state.mean).items()
    }


def notes(state: Adam) -> Iterator[str]:
    """What else the report says of a state that goes over."""
    if state.derived:
        yield state.derived
    if state.note:
        yield state.note
    todays = {**TARGET, "eps": state.eps}
    for name, theirs in state.settings.items():
        if name in todays and theirs != todays[name]:
            yield f"its {name} was {theirs}, and is {todays[name]} now"


def from_torch(
    stored: Mapping[str, Any], group: Group, weights: Iterable[str], network: Weights
) -> Adam | None:
    """Reads torch's `state_dict()`: numbers instead of names, in the order of `weights`.

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
    names = list(_parameters(group, weights, network)) if group.modules else [str(group.stack)]
    if len(names) != len(numbers):  # it was made before the networks of Curiosity came
        names = [name for name in names if name not in network.unused]
    if len(names) != len(numbers):
        raise CheckpointError(f"it has {len(numbers)} parameters, the network {len(names)}")
    # No gradient reaches what is unused or constant: it has no state.
    pairs = [
        (name, number)
        for name, number in zip(names, numbers, strict=True)
        if name not in network.unused and not _RANGE.fullmatch(name)
    ]
    missing = [name for name, number in pairs if number not in slots]
    if missing == [name for name, _ in pairs if _is_of_critic(name, network.names)]:
        pairs = [(name, number) for name, number in pairs if number in slots]
    elif missing:
        raise CheckpointError(f"{missing[0]} and {len(missing) - 1} more were never updated")
    if odd := set[str]().union(*slots.values()) ^ _SLOT:
        raise CheckpointError(f"it is not plain Adam: see its {', '.join(sorted(odd))}")
    settings = {k: _setting(v) for k, v in groups[0].items() if k != "params"}
    if odd_settings := [k for k, v in settings.items() if not _is_setting(v)]:
        raise CheckpointError(f"its {odd_settings[0]} is not a number")
    other = [k for k in _DECISIVE if k in settings and settings[k] != TARGET[k]]
    if other:
        raise CheckpointError(f"its {other[0]} was {settings[other[0]]}, not {TARGET[other[0]]}")
    steps = {int(slot["step"]) for slot in slots.values()}
    if len(steps) > 1:
        raise CheckpointError("its parameters were updated a different number of times")
    if max(steps) >= _MOST_STEPS:
        raise CheckpointError("the number of updates is too large to be real")
    table = network.names if group.modules else (Move(names[0], names[0]),)
    mean, square = (
        _canonical(table, {name: slots[number][kind] for name, number in pairs})
        for kind in ("exp_avg", "exp_avg_sq")
    )
    return Adam(steps.pop(), mean, square, settings=settings, eps=group.eps)


#: What the canonical names of a critic's arrays begin with, where it has no optimizer of its own.
_CRITIC = "value"


def _is_of_critic(name: str, names: Table) -> bool:
    row = row_for(names, name)
    return row is not None and row.ours.startswith(_CRITIC)


def with_idle_critic(state: Adam, trained: Mapping[str, Array]) -> Adam:
    """Adds the moments of a critic that never learned (PG's): gradients of zero make zeros."""
    idle = trained.keys() - state.mean.keys() - state.square.keys()
    if not idle or idle != {name for name in trained if name.startswith(_CRITIC)}:
        return state
    zeros = {name: np.zeros_like(trained[name]) for name in idle}
    mean, square = {**state.mean, **zeros}, {**state.square, **zeros}
    note = "; ".join(filter(None, [state.note, "the critic had made no update, and has zeros"]))
    return replace(state, mean=mean, square=square, note=note)


def scaled(state: Adam, scale: float) -> Adam:
    """The state that Adam would be in, had all gradients been multiplied by a number."""
    note = (
        f"its moments were multiplied by {scale:g} and {scale**2:g}, as gradients are "
        f"in the installed Ray"
    )
    return replace(
        state,
        mean={name: scale * array for name, array in state.mean.items()},
        square={name: scale**2 * array for name, array in state.square.items()},
        note="; ".join(filter(None, [state.note, note])),
    )


def _is_setting(value: object) -> bool:
    """Whether it is what torch's Adam keeps beside its parameters: numbers, flags, None, names."""
    if isinstance(value, tuple):
        return all(map(_is_setting, value))
    return value is None or isinstance(value, (bool, int, float, str))


def _setting(value: object) -> Any:
    """A setting as it was given: Ray 2.41 – 2.55 round it to 32 bits when they load a state."""
    if isinstance(value, (tuple, list)):
        return tuple(map(_setting, value))
    if isinstance(value, (np.generic, np.ndarray)) and value.size == 1:
        value = value.item()
    if not isinstance(value, float):
        return value
    with np.errstate(over="ignore"):
        rounded = np.float32(value)
    return float(str(rounded)) if float(rounded) == value else value


def _parameters(group: Group, weights: Iterable[str], network: Weights) -> Iterator[str]:
    """The names of the arrays that an optimizer had, in its order.

    It had no array twice, no constant, and nothing of a target network.
    """
    for name in weights:
        row = row_for(network.names, name)
        target = (row is not None and row.ours.startswith(TARGET_PREFIX)) or name.startswith(_COPY)
        own = name.startswith(group.modules) and name not in network.aliases
        if own and not target and not _CONSTANT.fullmatch(name):
            yield name


def from_graph(stored: Mapping[str, Any], policy: PolicyState, names: Table) -> Adam | None:
    """Reads TensorFlow 1's variables; the powers of the betas count the updates."""
    scoped = {plain_name(policy, name): value for name, value in stored.items()}
    plain = {plain_name(policy, name): np.asarray(value) for name, value in scoped.items()}
    if not {"beta1_power", "beta2_power"} <= plain.keys():
        raise CheckpointError("it is not Adam: it keeps no powers of betas")
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


def from_eager(variables: list[StandIn], policy: PolicyState, names: Table) -> Adam | None:
    """Reads TensorFlow 2's variables: calls of a `functools.partial` with name and value."""
    plain = eager_variables(variables, policy)
    if "iter" not in plain:
        raise CheckpointError("it is not Adam: it counts no updates")
    step = int(plain.pop("iter"))
    if step == 0:
        return None
    mean, square = _split(_EAGER, plain, names)
    return Adam(step, mean, square, note=_TENSORFLOW.format(eps=1e-7))


def eager_variables(variables: list[StandIn], policy: PolicyState) -> dict[str, Array]:
    """What TensorFlow 2's Adam holds, by its names without scope: `fc_1/kernel/m`, `iter`, ….

    Raises:
        CheckpointError: There are no values; `found` is the reason.
    """
    plain: dict[str, Array] = {}
    for given in map(_arguments_of_variable, variables):
        name = plain_name(policy, given["name"].removeprefix("Adam/"))
        plain[name] = np.asarray(given["initial_value"])
    return plain


def eager_values(stored: object) -> list[Array] | None:
    """The values of TensorFlow 2's variables, which Keras lists in a class of its own.

    Returns:
        None: they are none of TensorFlow's.

    Raises:
        CheckpointError: There are no values; `found` is the reason.
    """
    variables = stored.items if isinstance(stored, StandIn) else stored
    if not isinstance(variables, list) or not variables:
        return None
    if not all(isinstance(variable, StandIn) for variable in variables):
        return None
    return [np.asarray(_arguments_of_variable(one)["initial_value"]) for one in variables]


def _arguments_of_variable(variable: StandIn) -> Mapping[str, Any]:
    """The arguments of the call that would make a variable."""
    call = getattr(variable.ref, "state", None)  # of a partial: function, args, kwargs, …
    if call is None or "initial_value" not in call[2]:
        raise CheckpointError("its variables have no values in the checkpoint")
    found: Mapping[str, Any] = call[2]
    return found


def _split(
    pattern: re.Pattern[str], plain: Mapping[str, Array], names: Table
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The canonical means and squares of keras' variables."""
    moments: tuple[dict[str, Array], dict[str, Array]] = ({}, {})
    for name, array in plain.items():
        match = pattern.fullmatch(name)
        if match is None:
            raise CheckpointError(f"its variable {name!r} is not a moment of Adam")
        moments[match["square"] is not None][match["name"]] = array
    return _canonical(names, moments[0]), _canonical(names, moments[1])


def _canonical(names: Table, moments: Mapping[str, Any]) -> dict[str, Array]:
    arrays, left = to_canonical(names, {k: _moment(k, v) for k, v in moments.items()})
    if left:
        raise CheckpointError(f"{left[0]!r} has no counterpart in the network")
    return arrays


def _moment(name: str, value: object) -> Array:
    array = np.asarray(value)
    if array.dtype.kind != "f":
        raise CheckpointError(f"the moments of {name} are not numbers")
    if not np.isfinite(array).all():
        raise CheckpointError(f"the moments of {name} are NaN or infinite")
    return array


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


#: The states of one policy's optimizers, by the names that today's learner has for them.
States: TypeAlias = Mapping[str, Adam]

_HINT = "the first updates may be larger or smaller than before"


def plan(
    policies: Mapping[str, PolicyState], networks: Mapping[str, Weights]
) -> tuple[dict[str, States], list[Finding]]:
    """Finds what can be carried.

    Returns:
        The states of those policies whose optimizers continue, and what becomes of each policy's.
    """
    if all(stored_state(policies[policy_id]) is None for policy_id in networks):
        return {}, [_finding("*", Verdict.ABSENT, "no optimizer state is stored")]
    plans: dict[str, States] = {}
    findings = []
    for policy_id, network in networks.items():
        try:
            states = read(policies[policy_id], network)
        except CheckpointError as error:
            several = len(network.optimizers) > 1
            subject = "the optimizers start" if several else "the optimizer starts"
            message = f"{subject} reset: {error.found}"
            findings.append(_finding(policy_id, Verdict.RESET, message))
            continue
        if states is None:
            findings.append(_finding(policy_id, Verdict.ABSENT, "no optimizer state is stored"))
            continue
        findings.append(_told(policy_id, states))
        if states:
            plans[policy_id] = states
    return plans, findings


def read(policy: PolicyState, network: Weights) -> States | None:
    """Reads what is stored of a policy's optimizers.

    Returns:
        Each state, complete for its part of the network, without those that made no update yet;
        None where nothing is stored.

    Raises:
        CheckpointError: They can't go over; `found` is the reason.
    """
    stored = stored_state(policy)
    if stored is None:
        return None
    try:
        by_group = _by_group(stored, network)
        states = {
            group.name: state
            for group, theirs in by_group.items()
            if group.name and (state := _read(group, theirs, policy, network)) is not None
        }
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CheckpointError(f"the stored state has no known form ({error})") from error
    return states


def stored_state(policy: PolicyState) -> Any:
    """What was stored of a policy's optimizers, or None.

    With the first Learner API, the policy itself had an empty list.
    """
    stored = policy.optimizer if policy.learner_optimizer is None else policy.learner_optimizer
    empty = isinstance(stored, (list, Mapping)) and not stored
    return None if empty else stored


def _by_group(stored: Any, network: Weights) -> dict[Group, Any]:
    """What is stored for each of the optimizers that trained a network."""
    groups = network.optimizers
    if isinstance(stored, Mapping) and stored.keys() == {group.name for group in groups}:
        return {group: stored[group.name] for group in groups}
    if isinstance(stored, Mapping) or all(isinstance(part, StandIn) for part in stored):
        stored = [stored]  # one optimizer: torch's by itself, or TensorFlow's variables
    if not isinstance(stored, list):
        raise TypeError(type(stored).__name__)
    if len(stored) != len(groups):
        had = "1 optimizer" if len(stored) == 1 else f"{len(stored)} optimizers"
        raise CheckpointError(f"the policy had {had}, its module has {len(groups)}")
    return dict(zip(groups, stored, strict=True))


def _read(group: Group, stored: Any, policy: PolicyState, network: Weights) -> Adam | None:
    if isinstance(stored, list):
        state = from_eager(stored, policy, network.names)
    elif "param_groups" in stored:
        state = from_torch(stored, group, [str(name) for name in policy.weights], network)
    else:
        state = from_graph(stored, policy, network.names)
    if state is not None and group.scale != 1.0:
        state = scaled(state, group.scale)
    if state is not None and group.modules:
        if any(n.endswith(".beta") and n not in network.arrays for n in state.mean):
            raise CheckpointError(
                "the trained slopes of swish were moved into the weights, whose moments are of "
                "gradients before that"
            )
        own = {k: v for k, v in network.arrays.items() if k.startswith(group.stack)}
        trained = {k: v for k, v in own.items() if not k.startswith(TARGET_PREFIX)}
        state = with_idle_critic(state, trained)
        require_whole(state, trained)
    elif state is not None and any(array.size != 1 for array in state.mean.values()):
        raise CheckpointError(f"{group.stack} is one number, and its moments are more")
    return state


def _told(policy_id: str, states: States) -> Finding:
    """What the report says of states that go over."""
    if not states:
        return _finding(policy_id, Verdict.EXACT, "it had made no update yet, and starts as it was")
    updates = {name: f"after {state.step:,} updates" for name, state in states.items()}
    arrays = sum(len(state.mean) for state in states.values())
    each = ", ".join(f"{name} {updates[name]}" for name in states)
    which = f"Adam of {each}" if len(states) > 1 else f"Adam {next(iter(updates.values()))}"
    said = dict.fromkeys(note for state in states.values() for note in notes(state))
    lines = [f"{which}, both moments of {arrays} arrays", *said]
    derived = any(state.derived for state in states.values())
    message = "; ".join([*lines, "the learning rate is the config's"])
    return _finding(policy_id, Verdict.DERIVED if derived else Verdict.EXACT, message)


def _finding(policy_id: str, verdict: Verdict, message: str) -> Finding:
    lost = verdict is Verdict.RESET
    severity = Severity.WARNING if lost else Severity.INFO
    path = f"policies.{policy_id}.optimizer"
    return Finding("optimizer", severity, verdict, path, message, _HINT if lost else "")
