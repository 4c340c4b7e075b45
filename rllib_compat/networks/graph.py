"""A network as data: steps that each compute one value from earlier ones.

Every legacy network that is not today's default is described in this form. The same description is
computed in numpy (here, in float64, for the proof) and in torch (`networks.modules.graph_module`,
as an RLModule that trains). What a step can do is in `ops`; its arrays are kept under
`<step>.<part>`, kernels as TensorFlow has them: `[in, out]` and `[h, w, in, out]`, images as
`[..., h, w, c]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.networks.ops.in_numpy import OPS
from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.frozen import frozen

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: An input of critics that see what all agents observe and do.
EVERYONE = "everyone"
#: Inputs that only critics take.
OF_CRITICS = ("actions", EVERYONE)

#: What the names of arrays begin with in networks of several parts: the policy, the critics, and
#: what turns observations into features for all of them (`use_state_preprocessor`). A part that is
#: a stack of dense layers has `<part>.hidden.<i>` and, for the last, linear layer, `<part>.out`.
POLICY, CRITIC, TWIN, STATE = "pi", "q", "twin_q", "state"


@frozen
class Step:
    """One step of a network.

    Attributes:
        op: What it computes: a key of `ops.OPS`.
        name: The name of its value, and the prefix of its arrays.
        takes: The names of the values that go in: inputs of the graph, or earlier steps.
        settings: What else the operation has to know (an activation, a stride), as plain data.
    """

    op: str
    name: str
    takes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def within(self, stack: str, observation: str = "obs") -> Step:
        """This step of a model of its own, as one of a stack in a larger graph.

        Args:
            stack: What the names of the stack's steps and arrays begin with.
            observation: What the graph calls the model's observation.
        """
        takes = [observation if name == "obs" else f"{stack}.{name}" for name in self.takes]
        return replace(self, name=f"{stack}.{self.name}", takes=tuple(takes))


@frozen
class Graph:
    """A whole network without its arrays.

    Attributes:
        inputs: The shape of each input for one item, without batch and time. `obs` is the
            preprocessed observation.
        steps: The steps, each after those that it takes from.
        outputs: The name of the value behind each output (`action_dist_inputs`, `vf_preds`, …).
        states: The value that becomes the next state, for each input that is a state (`h`, `c`).
            A graph with states takes its other inputs as `[B, T, …]`, states as `[B, …]`.
    """

    inputs: Mapping[str, tuple[int, ...]]
    steps: tuple[Step, ...]
    outputs: Mapping[str, str]
    states: Mapping[str, str] = field(default_factory=dict)

    def needed(self, outputs: Iterable[str]) -> tuple[Step, ...]:
        """The steps that some outputs (and the states, if they take from them) depend on."""
        wanted = {self.outputs[name] for name in outputs}
        kept = []
        for step in reversed(self.steps):
            if step.name in wanted:
                kept.append(step)
                wanted.update(step.takes)
        return tuple(reversed(kept))

    @property
    def recurrent(self) -> bool:
        """Whether it has states, and so a time axis."""
        return bool(self.states)

    def zeros(self) -> dict[str, Array]:
        """Inputs of zeros: one item, of one step where the graph has a time axis."""
        lead = (1, 1) if self.recurrent else (1,)
        return {
            name: np.zeros((1, *shape) if name in self.states else (*lead, *shape))
            for name, shape in self.inputs.items()
        }

    def to_plain(self) -> dict[str, Any]:
        """It as plain data, for a module's config."""
        return {
            "inputs": {k: list(v) for k, v in self.inputs.items()},
            "steps": [
                {"op": s.op, "name": s.name, "takes": list(s.takes), "settings": dict(s.settings)}
                for s in self.steps
            ],
            "outputs": dict(self.outputs),
            "states": dict(self.states),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Graph:
        """The reverse of `to_plain`."""
        return cls(
            {k: tuple(v) for k, v in plain["inputs"].items()},
            tuple(
                Step(s["op"], s["name"], tuple(s["takes"]), dict(s["settings"]))
                for s in plain["steps"]
            ),
            dict(plain["outputs"]),
            dict(plain["states"]),
        )

    def check(self, arrays: Mapping[str, Array], *, where: str) -> None:
        """Makes sure that the arrays are those of the steps, and fit them.

        Arrays of target networks have to have the shapes of those that they follow.

        Raises:
            CheckpointError: An array belongs to no step, or has a shape that its step can't take.
        """
        steps = {step.name for step in self.steps}
        for name, array in arrays.items():
            followed = name.removeprefix("target.")
            if followed.rpartition(".")[0] not in steps:
                raise CheckpointError(
                    f"No operation uses the array {name}.", where=where, fix=refusals.CHECK
                )
            if followed != name and arrays[followed].shape != array.shape:
                raise CheckpointError(
                    f"The array {name} has another shape than {followed}.",
                    where=where,
                    fix=refusals.CHECK,
                )
        # Shapes are all that counts here: gigabytes of weights are not even looked at.
        shapes = {k: np.broadcast_to(np.float32(0), array.shape) for k, array in arrays.items()}
        with np.errstate(all="ignore"):
            self.evaluate(shapes, self.zeros(), where=where, dtype=np.float32)

    def evaluate(
        self,
        arrays: Mapping[str, Array],
        inputs: Mapping[str, Array],
        *,
        where: str = "graph",
        dtype: DTypeLike = np.float64,
    ) -> dict[str, Array]:
        """Computes every output.

        Args:
            arrays: The arrays of the steps, `<step>.<part>`.
            inputs: A batch of each input; inputs that no step takes may be missing.
            where: What is computed, for errors.
            dtype: What every step computes in, and rounds its value to.

        Returns:
            The outputs, and for each state the next one under its own name.

        Raises:
            CheckpointError: A step can't take its arrays or what goes in.
        """
        return Compiled(self, arrays, where=where, dtype=dtype, is_kept=False)(inputs)


class Builder:
    """Collects steps in the order in which they are computed.

    Attributes:
        steps: The steps so far.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def add(self, op: str, name: str, *takes: str, **settings: object) -> str:
        """Adds a step, and returns its name for the steps that take from it."""
        self.steps.append(Step(op, name, takes, settings))
        return name


#: Operation, the step's own arrays, the places of what it takes, its settings, its place, and the
#: places of its next states.
_Call: TypeAlias = tuple[
    Any, Mapping[str, Array], tuple[int, ...], Mapping[str, Any], int, tuple[tuple[str, int], ...]
]


class Compiled:
    """Computes outputs of a graph, as often as it is called.

    What does not change between calls is done when it is made: the steps that the outputs need are
    picked, every array is cast and passed to its step, and values get a place in a list instead of
    a name.

    Attributes:
        inputs: The graph's inputs that these outputs take.

    Args:
        graph: What is computed.
        arrays: The arrays of the steps, `<step>.<part>`.
        outputs: The names of the outputs that are wanted; None: all of them.
        where: What is computed, for errors.
        dtype: What every step computes in, and rounds its value to.
        after: Changes the value of every step before the next ones take it; None: nothing does.
        is_kept: Whether arrays are cast once and for all. Otherwise each is when its step comes,
            and one is in memory twice at a time.
    """

    def __init__(
        self,
        graph: Graph,
        arrays: Mapping[str, Array],
        outputs: Iterable[str] | None = None,
        *,
        where: str = "graph",
        dtype: DTypeLike = np.float64,
        after: Callable[[Array], Array] | None = None,
        is_kept: bool = True,
    ) -> None:
        self._where, self._dtype, self._is_kept = where, dtype, is_kept
        wanted = tuple(graph.outputs if outputs is None else outputs)
        # The next states are always asked for, and may hang on steps that no output needs.
        partial = outputs is not None and not graph.recurrent
        steps = graph.needed(wanted) if partial else graph.steps
        self._places: dict[str, int] = {name: i for i, name in enumerate(graph.inputs)}
        own: dict[str, dict[str, Array]] = {step.name: {} for step in steps}
        for name, array in arrays.items():
            step_name, _, part = name.rpartition(".")
            if step_name in own:
                own[step_name][part] = np.asarray(array, dtype if is_kept else None)
        # Next states have places before the steps do: `<step>.<state>`, as `states` names them.
        states = {value: self._place(value) for value in graph.states.values()}
        taken = {graph.outputs[name] for name in wanted}  # an output may be what goes in
        self._calls: list[_Call] = []
        for step in steps:
            places = tuple(self._place(name) for name in step.takes)
            taken.update(step.takes)
            prefix = f"{step.name}."
            next_states = tuple(
                (value.removeprefix(prefix), place)
                for value, place in states.items()
                if value.startswith(prefix)
            )
            operation = OPS[step.op] if after is None else _followed(OPS[step.op], after)
            call = (operation, own[step.name], places, step.settings, self._place(step.name))
            self._calls.append((*call, next_states))
        self.inputs = tuple(name for name in graph.inputs if name in taken)
        self._outputs = tuple((name, self._place(graph.outputs[name])) for name in wanted)
        self._outputs += tuple((name, states[value]) for name, value in graph.states.items())

    def _place(self, name: str) -> int:
        return self._places.setdefault(name, len(self._places))

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Computes the outputs, and for each state the next one under its own name.

        Inputs that nothing takes may be missing.

        Raises:
            CheckpointError: An input is missing, or a step can't take its arrays or what goes in.
        """
        values: list[Any] = [None] * len(self._places)
        for name in self.inputs:
            if name not in inputs:
                raise CheckpointError(
                    f"The input {name!r} is missing.",
                    where=self._where,
                    fix=f"Pass all of {', '.join(self.inputs)}.",
                )
            values[self._places[name]] = np.asarray(inputs[name], self._dtype)
        for operation, own, places, settings, place, next_states in self._calls:
            taken = [values[i] for i in places]
            try:
                if not self._is_kept:
                    own = {k: np.asarray(array, self._dtype) for k, array in own.items()}
                made = operation(own, settings, *taken)
            except (ValueError, KeyError, IndexError, TypeError) as error:
                raise self._mismatch(place, own, taken, error) from error
            if isinstance(made, tuple):
                # A recurrent step gives its value and its next states.
                made, states = made
                for name, next_place in next_states:
                    values[next_place] = np.asarray(states[name], self._dtype)
            values[place] = np.asarray(made, self._dtype)
        return {name: values[place] for name, place in self._outputs}

    def _mismatch(
        self, place: int, own: Mapping[str, Array], taken: list[Any], error: Exception
    ) -> CheckpointError:
        step = next(name for name, own_place in self._places.items() if own_place == place)
        shapes = {f"{step}.{part}": array.shape for part, array in own.items()}
        return CheckpointError(
            f"The arrays {shapes} do not fit the inputs "
            f"{', '.join(str(np.shape(v)) for v in taken)} ({error}).",
            where=self._where,
            fix=refusals.CHECK,
        )


def _followed(operation: Any, after: Callable[[Array], Array]) -> Any:
    """An operation whose value, and next states, `after` changes."""

    def run(own: Mapping[str, Any], settings: Mapping[str, Any], *taken: Any) -> Any:
        made = operation(own, settings, *taken)
        if not isinstance(made, tuple):
            return after(made)
        value, states = made
        return after(value), {name: after(state) for name, state in states.items()}

    return run
