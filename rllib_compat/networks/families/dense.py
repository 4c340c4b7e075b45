"""Fully connected actor-critics: dense layers, a linear layer for the outputs, a value function.

What they are (`ray/rllib/models/**/fcnet.py`, 0.5 – 2.x): hidden layers, each with the same
activation; a linear layer for the action distribution's inputs; a value function that is either
one more linear layer on the last hidden one (`vf_share_layers`), or a network of its own with the
same hidden sizes; and, with `free_log_std`, a vector of log standard deviations that does not
depend on the observation and is appended to the means. With `no_final_linear`, the last hidden
layer makes the outputs itself: on torch it is the last of the hidden layers, on TensorFlow it is
called `fc_out` as ever, and a shared value function sits on the outputs or on the layer before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from rllib_compat.networks import compare, refusals, unnamed
from rllib_compat.networks.families.outputs import (
    actor_critic,
    clipless,
    own_actor_critic,
    todays_default,
    with_log_std,
)
from rllib_compat.networks.graph import Array, Builder, Graph, Step
from rllib_compat.networks.mapping import require_same_names
from rllib_compat.networks.named import Named
from rllib_compat.networks.names.actor_critic import SCHEMES, default_module
from rllib_compat.networks.names.plain import best_scheme, plain_names
from rllib_compat.networks.network import Network, Reading
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.dense import DENSE, add_layers
from rllib_compat.networks.trunks.images import preprocessed_image
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.report import Verdict
from rllib_compat.neutral.spaces import Box

#: Below this, a slope of swish can't be divided by without losing digits.
_SMALLEST_SLOPE = 1e-3


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the network of a policy.

    Raises:
        NotYetError: The network is not one that can be converted; it is named.
        MissingInformationError: A size has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    named = name(policy, settings)
    if settings.model.get("no_final_linear"):
        return named.reading(_activated(named))
    folded = replace(named, arrays=fold_slopes(named.arrays, where=named.where))
    network = network_of(folded)
    compare.require_hiddens(named, folded.sizes("hidden"), settings.hiddens)
    compare.require_inputs(named, network.inputs)
    compare.require_outputs(named, _outputs(folded))
    findings = compare.ignored(
        named,
        vf_share_layers="value_hidden.0" not in folded,
        free_log_std="log_std.value" in folded.arrays,
    )
    if len(folded.arrays) < len(named.arrays):
        findings.append(
            named.note(
                "the trained slopes of swish were moved into the weights around them: the same "
                "function, with slopes that are not trained any further",
                verdict=Verdict.DERIVED,
            )
        )
    return named.reading(_of_arrays(network, policy, settings), *findings)


def name(policy: PolicyState, settings: ModelSettings) -> Named:
    """Names the arrays of a fully connected policy, in whatever form they are."""
    if isinstance(policy.weights, dict):
        plain, state = plain_names(policy)
        scheme = best_scheme(SCHEMES, plain)
        table, of = SCHEMES[scheme], "fully connected network"
        return Named.take(policy, settings, plain, scheme, table, of=of, state=state)
    table = SCHEMES["keras"]
    if isinstance(policy.weights, list):
        arrays = unnamed.name_list(policy, policy.weights)
        return Named(policy, settings, arrays, "list", table)
    arrays, state = unnamed.name_vector(policy, settings)
    return Named(policy, settings, arrays, "vector", table, state=state)


def network_of(named: Named) -> Network:
    """The network of arrays without slopes, in today's default module where that can take it.

    Raises:
        CheckpointError: Arrays are missing, too many, or of shapes that do not fit.
        NotYetError: The activation is not one that is known.
    """
    arrays, name = named.arrays, named.settings.activation
    build = Builder()
    shares = "value_hidden.0" not in named
    hidden = DENSE.add(build, named)
    value = hidden if shares else DENSE.add(build, named, "value_")
    logits = with_log_std(build, named, build.add("dense", "logits", hidden))
    outputs = actor_critic(build, logits, build.add("dense", "value", value))
    layers = [step.name for step in build.steps if step.op == "dense"]
    wanted = {f"{layer}.{part}" for layer in layers for part in ("kernel", "bias")}
    wanted |= arrays.keys() & {"log_std.value"}
    require_same_names(arrays, wanted, where=named.where)
    inputs = (named.takes(layers[0]),)
    graph = Graph({"obs": inputs}, tuple(build.steps), outputs)
    sizes = [*inputs, *named.sizes("hidden"), _outputs(named)]
    owner = "shared value layers" if shares else "own value network"
    free = ", free log std" if "log_std.value" in arrays else ""
    summary = f"fc {'-'.join(map(str, sizes))} {name}, {owner}{free}"
    # Ray's own module can't be without hidden layers.
    same = shares or named.sizes("value_hidden") == named.sizes("hidden")
    target = own_actor_critic(graph, arrays)
    # It takes deviations apart from the observation of one vector only.
    gaussian = "log_std.value" not in arrays or isinstance(named.policy.action_space, Box | None)
    if layers[0] == "hidden.0" and same and gaussian:
        rows = partial(default_module, shares_layers=shares)
        target = todays_default(named, rows, vf_share_layers=shares, **clipless(named))
    return named.network(DENSE.kind, summary, graph, target)


def _outputs(named: Named) -> int:
    """What the action distribution takes."""
    return named.gives("logits") + len(named.arrays.get("log_std.value", ()))


def _of_arrays(network: Network, policy: PolicyState, settings: ModelSettings) -> Network:
    """The same network for observations that are images, which it flattens itself.

    Connectors flatten all others; images they leave as they are.
    """
    space = policy.observation_space
    if not isinstance(space, Box) or len(space.shape) != 3:
        return network
    shape = preprocessed_image(space, settings) or space.shape
    steps = (
        replace(step, takes=tuple("flat" if name == "obs" else name for name in step.takes))
        for step in network.graph.steps
    )
    ravel = Step("ravel", "flat", ("obs",), {"axes": len(shape)})
    graph = replace(network.graph, inputs={"obs": shape}, steps=(ravel, *steps))
    return replace(network, graph=graph, target=own_actor_critic(graph, network.arrays))


def _activated(named: Named) -> Network:
    """A network whose outputs are activated (`no_final_linear`)."""
    arrays, build, name = named.arrays, Builder(), named.settings.activation
    hidden = [*named.layers("hidden"), *(n for n in ("logits",) if n in named)]
    if not hidden:
        raise refusals.missing(["hidden.0.kernel"], named.where)
    logits = with_log_std(build, named, add_layers(build, arrays, hidden, "obs", name))
    compare.require_outputs(named, named.gives(hidden[-1]) + len(arrays.get("log_std.value", ())))
    if own := named.layers("value_hidden"):
        taken = add_layers(build, arrays, own, "obs", name)
    else:
        # The last layer that is as wide as the value function's kernel is high.
        before = hidden[-2:] if "logits" in named else hidden[-1:]
        taken = next((n for n in before if named.gives(n) == named.takes("value")), hidden[0])
    outputs = actor_critic(build, logits, build.add("dense", "value", taken))
    graph = Graph({"obs": (named.takes(hidden[0]),)}, tuple(build.steps), outputs)
    sizes = [named.takes(hidden[0]), *(named.gives(n) for n in hidden)]
    summary = f"fc {'-'.join(map(str, sizes))} {name}, outputs activated"
    return named.network(DENSE.kind, summary, graph, own_actor_critic(graph, arrays))


def fold_slopes(arrays: Mapping[str, Array], *, where: str) -> dict[str, Array]:
    """Moves the trained slopes of swish into the weights around them.

    RLlib's own swish was `x · sigmoid(beta · x)` with a trained `beta` a layer. That is
    `silu(beta · x) / beta`: the layer before times beta, the layers behind divided by it, and
    plain silu in between compute the same.

    Raises:
        NotYetError: A slope is too small to be divided by.
    """
    out = dict(arrays)
    for name in [n for n in arrays if n.endswith(".beta")]:
        beta = float(out.pop(name).reshape(()))
        if not abs(beta) >= _SMALLEST_SLOPE:
            raise refusals.not_yet(f"swish with a slope of {beta:g}", f"{where}.{name}")
        layer = name.removesuffix(".beta")
        for part in ("kernel", "bias"):
            out[f"{layer}.{part}"] = out[f"{layer}.{part}"].astype(np.float64) * beta
        for behind in _behind(layer, out):
            out[behind] = out[behind].astype(np.float64) / beta
    return out


def _behind(layer: str, arrays: Mapping[str, Array]) -> list[str]:
    """The kernels that take what a hidden layer gives."""
    stack, _, index = layer.partition(".")
    following = f"{stack}.{int(index) + 1}.kernel"
    if following in arrays:
        return [following]
    if stack == "value_hidden":
        return ["value.kernel"]
    shared = not any(name.startswith("value_hidden.") for name in arrays)
    return ["logits.kernel", "value.kernel"] if shared else ["logits.kernel"]
