"""A graph as a torch network that trains, and the modules that are no more than one.

They take policies that today's default module can't represent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
import tree
from gymnasium.vector.utils import batch_space
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.utils import make_target_network
from ray.rllib.core.rl_module.apis import InferenceOnlyAPI, TargetNetworkAPI, ValueFunctionAPI
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from torch import Tensor, nn

from rllib_compat.networks.graph import Graph, Step
from rllib_compat.networks.mapping import TRANSPOSED, Move, Table, row_to
from rllib_compat.networks.modules.distributions import Deterministic
from rllib_compat.networks.modules.exploration import DrawsNoise, noised
from rllib_compat.networks.network import OWN_PREFIX
from rllib_compat.networks.ops.in_torch import OPS
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import modules

#: The operations of noisy layers and of layer norms.
NOISY, NORM = "noisy_dense", "layer_norm"


class GraphNet(DrawsNoise):
    """Computes the outputs of a graph.

    The arrays of a step with the setting `trained: False` are constants. Noisy layers draw noise
    while that is switched on.

    Args:
        graph: What to compute.
        shapes: The shape of each array by name; matrices start as keras' do, vectors at zero.
        outputs: The outputs that it has arrays for; None: all.
        names: What it calls them, and how it keeps them, where that is not as the graph does.
    """

    def __init__(
        self,
        graph: Graph,
        shapes: Mapping[str, Iterable[int]],
        outputs: Iterable[str] | None = None,
        names: Table = (),
    ) -> None:
        super().__init__()
        self.graph = graph
        self._plans: dict[tuple[str, ...], list[tuple[Step, list[str]]]] = {}
        self.is_noisy = any(step.op == NOISY for step in graph.steps)
        self._parts: dict[str, list[str]] = {step.name: [] for step in graph.steps}
        #: Canonical name → its own one, and whether it keeps the matrix transposed.
        self._own: dict[str, tuple[str, bool]] = {}
        #: The same → the layer that has it, what that calls it, and whether it is transposed.
        self._holders: dict[str, tuple[nn.Module, str, bool]] = {}
        kept = {s.name for s in (graph.steps if outputs is None else graph.needed(outputs))}
        constant = {s.name for s in graph.steps if not s.settings.get("trained", True)}
        for name, shape in shapes.items():
            step, _, part = name.rpartition(".")
            if step in kept:
                self._parts[step].append(part)
                row = row_to(names, name) or Move(OWN_PREFIX + name, name)
                own, turned = row.theirs.removeprefix(OWN_PREFIX), row.change is TRANSPOSED
                self._own[name] = own, turned
                value = _initial(tuple(shape))
                value = value.T.contiguous() if turned else value
                holder = _place(self, own, value, trained=step not in constant)
                self._holders[name] = holder, own.rpartition(".")[2], turned

    def forward(
        self,
        inputs: Mapping[str, Tensor],
        outputs: Iterable[str] | None = None,
        *,
        fixed: bool = False,
    ) -> dict[str, Tensor]:
        """Computes outputs (None: all) and next states of those passed; see `Graph.evaluate`.

        If it is `fixed`, gradients go through it to its inputs, and not into its parameters.
        A value is let go after the last step that takes it: those of images are large.
        """
        wanted = tuple(self.graph.outputs if outputs is None else outputs)
        values: dict[str, Any] = {k: v.to(torch.float32) for k, v in inputs.items()}
        for step, over in self._plan(wanted):
            own = {part: self._array(f"{step.name}.{part}") for part in self._parts[step.name]}
            if fixed:
                own = {part: array.detach() for part, array in own.items()}
            if self.noise and step.op == NOISY:
                own = dict(zip(("kernel", "bias"), noised(**own), strict=True))
            made = OPS[step.op](own, step.settings, *(values[name] for name in step.takes))
            if isinstance(made, tuple):
                made, states = made
                values |= {f"{step.name}.{k}": v for k, v in states.items()}
            values[step.name] = made
            for name in over:
                del values[name]
        out = {name: values[self.graph.outputs[name]] for name in wanted}
        reached = {k: v for k, v in self.graph.states.items() if v in values}
        return out | {name: values[value] for name, value in reached.items()}

    def _plan(self, wanted: tuple[str, ...]) -> list[tuple[Step, list[str]]]:
        """The steps that outputs need, each with the values that no step takes after it."""
        if wanted not in self._plans:
            kept = {self.graph.outputs[name] for name in wanted} | {*self.graph.states.values()}
            plan: list[tuple[Step, list[str]]] = []
            for step in reversed(self.graph.needed(wanted)):
                over = [name for name in dict.fromkeys(step.takes) if name not in kept]
                kept.update(over)
                plan.append((step, over))
            self._plans[wanted] = plan[::-1]
        return self._plans[wanted]

    def only_for(self, outputs: Iterable[str]) -> list[str]:
        """Its layers with parameters that nothing but these outputs depends on."""
        others = [name for name in self.graph.outputs if name not in set(outputs)]
        kept = {step.name for step in self.graph.needed(others)}
        layers = (
            own.rpartition(".")[0]
            for name, (own, _) in self._own.items()
            if name.rpartition(".")[0] not in kept
        )
        return list(dict.fromkeys(layers))

    def parameters_of(self, *stacks: str) -> dict[str, nn.Parameter]:
        """The parameters of stacks, by the canonical names of their arrays."""
        canonical = {own: name for name, (own, _) in self._own.items()}
        named = {canonical[own]: parameter for own, parameter in self.named_parameters()}
        return {
            name: parameter
            for stack in stacks
            for name, parameter in named.items()
            if name.partition(".")[0] == stack
        }

    def without_norms(self, outputs: Iterable[str] | None = None) -> list[nn.Parameter]:
        """The parameters that outputs (None: all) depend on, but for those of layer norms."""
        wanted = self.graph.outputs if outputs is None else outputs
        steps = [s for s in self.graph.needed(wanted) if s.op != NORM]
        names = [f"{s.name}.{part}" for s in steps for part in self._parts[s.name]]
        found = map(self._array, names)
        return [array for array in found if isinstance(array, nn.Parameter)]

    def _array(self, name: str) -> Tensor:
        holder, last, turned = self._holders[name]
        array: Tensor = getattr(holder, last)
        return array.T if turned else array


def inputs_in(graph: Graph, batch: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of a graph in a batch of today's.

    Args:
        graph: The graph.
        batch: Each input is beside `obs`, or in it, where `obs` is a dict or one vector of all
            of them, as `rllib_compat.runtime.previous_steps` makes it in env runners; states are
            in `state_in`.
    """
    names, seen = [name for name in graph.inputs if name not in graph.states], batch[Columns.OBS]
    if isinstance(seen, Mapping):
        found: Mapping[str, Any] = seen
    else:
        found = batch if all(name in batch for name in names) else _cut(graph, names, seen)
    return {name: found[name] for name in names} | dict(batch.get(Columns.STATE_IN, {}))


def _cut(graph: Graph, names: Iterable[str], whole: Tensor) -> dict[str, Any]:
    """The inputs from one vector of all of them."""
    shapes = [graph.inputs[name] for name in names]
    parts = whole.split([math.prod(shape) for shape in shapes], dim=-1)
    cut = zip(names, parts, shapes, strict=True)
    return {name: part.unflatten(-1, shape) for name, part, shape in cut}


def _place(root: nn.Module, name: str, value: Tensor, *, trained: bool) -> nn.Module:
    """Registers a parameter (or a constant) under a dotted name, a module for each part of it.

    Returns:
        The module that has it.
    """
    *path, last = name.split(".")
    for part in path:
        if not hasattr(root, part):
            root.add_module(part, nn.Module())
        root = getattr(root, part)
    if trained:
        root.register_parameter(last, nn.Parameter(value))
    else:
        root.register_buffer(last, value)
    return root


def _initial(shape: tuple[int, ...]) -> Tensor:
    value = torch.zeros(shape)
    if len(shape) == 4:  # a convolution's: in memory as torch has it, `[out, in, h, w]`
        value = value.permute(3, 2, 0, 1).contiguous().permute(2, 3, 1, 0)
    if len(shape) >= 2:
        # fan_in and fan_out of `[..., in, out]`, as keras' glorot_uniform counts them.
        area = int(torch.tensor(shape[:-2]).prod()) if len(shape) > 2 else 1
        bound = (6.0 / (area * (shape[-2] + shape[-1]))) ** 0.5
        value.uniform_(-bound, bound)
    return value


class ModuleWithTarget(TorchRLModule, InferenceOnlyAPI, TargetNetworkAPI):  # type: ignore[misc]  # Ray has no types
    """A module whose network `net` a target follows, `target_net`."""

    def get_non_inference_attributes(self) -> list[str]:
        return ["target_net"]

    def make_target_networks(self) -> None:
        """Makes the target, equal to what it follows; a learner calls it."""
        self.target_net = make_target_network(self.net)

    def get_target_network_pairs(self) -> list[tuple[nn.Module, nn.Module]]:
        """Each network with the one that follows it."""
        return [(self.net, self.target_net)]


LOGITS, VALUES = "action_dist_inputs", "vf_preds"


@public("rllib_compat.modules")
class ActorModule(TorchRLModule, InferenceOnlyAPI):  # type: ignore[misc]  # Ray has no types
    """Computes a legacy policy network without a value function (PG).

    Its `model_config` holds the graph (`graph`, as `Graph.to_plain` makes it), the shapes of its
    arrays (`shapes`, by name), and for a network with states `max_seq_len`, the length of the
    sequences that it is trained on.

    A batch has `obs` `[B, …]`. With states it has `obs` `[B, T, …]` and `state_in`, a dict of
    `[B, …]`; the answer then has `state_out`. Where the network takes more than the observation
    (`prev_actions` `[B, T, k]`, flattened and as they were taken, `prev_rewards` `[B, T, n]`),
    that is beside `obs` in the batch, or `obs` is one vector of all of them, as
    `rllib_compat.runtime.previous_steps` makes it in env runners.
    """

    def setup(self) -> None:
        self.graph = Graph.from_plain(self.model_config["graph"])
        self._acting = self._outputs_of_acting()
        wanted = self._acting if self.inference_only else None
        self.net = GraphNet(self.graph, self.model_config["shapes"], wanted)
        self.action_dist_cls = modules.action_distribution(self.action_space)

    def get_initial_state(self) -> dict[str, Any]:
        """Zeros for each state; nothing for a network without states."""
        return {name: torch.zeros(self.graph.inputs[name]) for name in self.graph.states}

    def get_non_inference_attributes(self) -> list[str]:
        """The layers that only the value function has: env runners do without them."""
        if VALUES in self._acting:
            return []
        return [f"net.{step}" for step in self.net.only_for([VALUES])]

    def _outputs_of_acting(self) -> list[str]:
        """What is computed when it acts: logits, and values where these have states of their own.

        Learners begin sequences with all states, and env runners make them.
        """
        reached = {step.name for step in self.graph.needed([LOGITS])}
        own = [s for s in self.graph.states.values() if s.rpartition(".")[0] not in reached]
        return [LOGITS, VALUES] if own else [LOGITS]

    def _forward(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        out = self.net(self._inputs(batch), self._acting)
        out.pop(VALUES, None)
        return self._named(out)

    def _inputs(self, batch: dict[str, Any]) -> dict[str, Any]:
        return inputs_in(self.graph, batch)

    def _named(self, out: dict[str, Any]) -> dict[str, Any]:
        states = {name: out.pop(name) for name in self.graph.states}
        return {**out, **({Columns.STATE_OUT: states} if states else {})}


@public("rllib_compat.modules")
class ActorCriticModule(ActorModule, ValueFunctionAPI):  # type: ignore[misc]
    """Computes a legacy policy network and its value function.

    It is what `Algorithm.from_checkpoint` and `RLModule.from_checkpoint` build for a converted
    checkpoint. Where policy and value function share layers, a training pass computes both at once,
    and its `embeddings` are the value predictions.
    """

    def setup(self) -> None:
        super().setup()
        trained = {name.rpartition(".")[0] for name in self.model_config["shapes"]}
        policy, critic = ({s.name for s in self.graph.needed([o])} for o in (LOGITS, VALUES))
        self._shares_layers = bool(trained & policy & critic)

    def _forward_train(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        if not self._shares_layers:
            return self._forward(batch)
        out = self.net(self._inputs(batch), [LOGITS, VALUES])
        values = out.pop(VALUES)
        return {**self._named(out), Columns.EMBEDDINGS: values}

    def compute_values(self, batch: dict[str, Any], embeddings: Tensor | None = None) -> Any:
        """The value predictions `[B]`, or `[B, T]` for a network with states."""
        if embeddings is not None:
            return embeddings
        return self.net(self._inputs(batch), [VALUES])[VALUES]


@public("rllib_compat.modules")
class AsynchronousModule(ActorCriticModule, TargetNetworkAPI):  # type: ignore[misc]  # no types
    """An `ActorCriticModule` that APPO can train."""

    make_target_networks = ModuleWithTarget.make_target_networks
    get_target_network_pairs = ModuleWithTarget.get_target_network_pairs

    def get_non_inference_attributes(self) -> list[str]:
        """Env runners do without the target network, too."""
        return [*super().get_non_inference_attributes(), "target_net"]

    def forward_target(self, batch: dict[str, Any]) -> dict[str, Any]:
        out = self.target_net(self._inputs(batch), [LOGITS])
        return {modules.target_network_logits(): out[LOGITS]}


@public("rllib_compat.modules")
class RandomModule(TorchRLModule):  # type: ignore[misc]  # Ray has no types
    """Draws each action from the action space, whatever it sees."""

    def setup(self) -> None:
        """Has nothing to build."""

    def _forward(self, batch: Mapping[str, Any], **_: object) -> dict[str, Any]:
        count = len(tree.flatten(batch[Columns.OBS])[0])
        return {Columns.ACTIONS: batch_space(self.action_space, count).sample()}


@public("rllib_compat.modules")
class PolicyModule(ActorModule):
    """An `ActorModule` for Box actions, which nothing is drawn for."""

    def setup(self) -> None:
        super().setup()
        self.action_dist_cls = Deterministic

    def _forward(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        return self._named(self.net(self._inputs(batch)))
