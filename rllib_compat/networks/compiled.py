"""A graph and its arrays as a list of calls, made once and run often."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.networks.graph import Array, Graph
from rllib_compat.networks.ops.in_numpy import OPS
from rllib_compat.neutral.errors import CheckpointError

#: Operation, the step's own arrays, the places of what it takes, its settings, its place, and the
#: places of its next states.
_Call: TypeAlias = tuple[
    Any, Mapping[str, Array], tuple[int, ...], Mapping[str, Any], int, tuple[tuple[str, int], ...]
]


class Compiled:
    """Computes outputs of a graph, as often as it is called.

    What does not change between calls is done when it is made: the steps that the outputs need are
    picked, every array is cast and handed to its step, and values get a place in a list instead of
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
    """

    def __init__(
        self,
        graph: Graph,
        arrays: Mapping[str, Array],
        outputs: Iterable[str] | None = None,
        *,
        where: str = "graph",
        dtype: Any = np.float64,
        after: Callable[[Array], Array] | None = None,
    ) -> None:
        self._where, self._dtype = where, dtype
        wanted = tuple(graph.outputs if outputs is None else outputs)
        # The next states are always asked for, and may hang on steps that no output needs.
        partial = outputs is not None and not graph.recurrent
        steps = graph.needed(wanted) if partial else graph.steps
        self._places: dict[str, int] = {name: i for i, name in enumerate(graph.inputs)}
        own: dict[str, dict[str, Array]] = {step.name: {} for step in steps}
        for name, array in arrays.items():
            step_name, _, part = name.rpartition(".")
            if step_name in own:
                own[step_name][part] = np.asarray(array, dtype)
        # Next states have places before the steps do: `<step>.<state>`, as `states` names them.
        states = {value: self._place(value) for value in graph.states.values()}
        taken: set[str] = set()
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

        Args:
            inputs: A batch of each input; inputs that nothing takes may be missing.

        Raises:
            CheckpointError: An input is missing, or a step can't take its arrays or what goes in.
        """
        values: list[Any] = [None] * len(self._places)
        for name in self.inputs:
            if name not in inputs:
                raise CheckpointError(f"The input {name!r} is missing.", where=self._where)
            values[self._places[name]] = np.asarray(inputs[name], self._dtype)
        for operation, own, places, settings, place, next_states in self._calls:
            taken = [values[i] for i in places]
            try:
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
            f"The arrays {shapes} can't take {', '.join(str(np.shape(v)) for v in taken)} "
            f"({error}).",
            where=self._where,
        )


def _followed(operation: Any, after: Callable[[Array], Array]) -> Any:
    """An operation whose value, and next states, `after` changes."""

    def run(own: Any, settings: Any, *taken: Any) -> Any:
        made = operation(own, settings, *taken)
        if not isinstance(made, tuple):
            return after(made)
        value, states = made
        return after(value), {name: after(state) for name, state in states.items()}

    return run
