"""Fully connected actor-critics: dense layers, a linear layer for the outputs, a value function.

What they are (`ray/rllib/models/**/fcnet.py`, 0.5 – 2.x): hidden layers, each with the same
activation; a linear layer for the action distribution's inputs; a value function that is either
one more linear layer on the last hidden one (`vf_share_layers`), or a network of its own with the
same hidden sizes; and, with `free_log_std`, a vector of log standard deviations that does not
depend on the observation and is appended to the means. With `no_final_linear`, the last hidden
layer makes the outputs itself: on torch it is the last of the hidden layers, on TensorFlow it is
called `fc_out` as ever, and a shared value function sits on the outputs or on the layer before.

The names of the heads are those of every actor-critic, whatever is below. The canonical arrays,
kernels as `[in, out]`::

    hidden.{i}.kernel         hidden.{i}.bias
    value_hidden.{i}.kernel   value_hidden.{i}.bias     (own value network only)
    logits.kernel             logits.bias
    value.kernel              value.bias
    log_std.value                                       (free_log_std only)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from rllib_compat.networks import refusals, unnamed
from rllib_compat.networks.drawing import NewModel, is_image, since
from rllib_compat.networks.graph import Array, Builder, Graph, Step
from rllib_compat.networks.mapping import (
    Move,
    Table,
    keras,
    require_same_names,
    torch_dense,
    torch_layer,
    torch_mlp,
)
from rllib_compat.networks.named import Named, best_scheme, plain_names, where_of
from rllib_compat.networks.network import Network, Reading, Target, own_module
from rllib_compat.networks.observations import original_space, preprocessed_image
from rllib_compat.networks.ops.in_numpy import activation
from rllib_compat.networks.settings import ModelSettings, distribution_inputs, model_setting
from rllib_compat.networks.trunks.complex import COMPLEX, is_complex, is_in_parts
from rllib_compat.networks.trunks.dense import DENSE, Trunk, add_layers
from rllib_compat.networks.trunks.vision import VISION
from rllib_compat.networks.unnamed import Shape, cut, require_spaces, total
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.report import Verdict
from rllib_compat.neutral.spaces import Box, Space

ATTENTION, LSTM = "attention (GTrXL)", "LSTM"

#: Words in names, and the wrappers that they give away.
_WRAPPERS = (
    (re.compile(r"gtrxl|attention", re.I), ATTENTION),
    (re.compile(r"lstm|rnn", re.I), LSTM),
)

_CONVOLUTION = re.compile(r"(^|[/._])_?conv|\.cnn\.", re.I)


def trunk_of(names: Iterable[str], policy: PolicyState | None = None) -> Trunk:
    """The base model of arrays with these names, for a policy's observations."""
    names = list(names)
    if policy is not None and is_complex(policy, names):
        return COMPLEX
    return VISION if any(_CONVOLUTION.search(name) for name in names) else DENSE


def draw_trunk(new: NewModel, seen: Space, *, flattened: bool = True) -> int:
    """Draws the base model that the catalog chose; returns how many numbers it gives.

    `flattened` says whether a preprocessor made one vector of observations of several parts.
    """
    space = original_space(seen) or seen
    if is_image(space):
        return VISION.draw(new, seen)
    if since(new.settings, "1.2") and (not flattened or is_in_parts(space, new.settings)):
        return COMPLEX.draw(new, seen)
    return DENSE.draw(new, seen)


def wrapper_of(names: Iterable[str]) -> str | None:
    """What is wrapped around the base model of arrays with these names."""
    names = list(names)
    return next((kind for sign, kind in _WRAPPERS if any(map(sign.search, names))), None)


#: The rows behind the trunk's, by framework: ModelV2 (keras 0.7.5 – 2.x, torch 0.8.5 – 2.x).
HEADS: Mapping[str, Table] = {
    "keras": (
        *keras("fc_out", "logits"),
        *keras("logits", "logits"),  # of several parts
        *keras("value_out", "value"),
        Move("log_std", "log_std.value"),
    ),
    "torch": (
        *torch_layer("_logits._model.0", "logits"),
        *torch_layer("_logits._model.1", "logits"),  # behind convolutions, since Ray 0.8.7
        *torch_dense("_value_branch._model.0", "value"),
        *torch_dense("logits_layer._model.0", "logits"),  # of several parts
        *torch_dense("value_layer._model.0", "value"),
        Move("_append_free_log_std.log_std", "log_std.value"),
        Move("log_std", "log_std.value"),
    ),
}

#: The whole networks of convolutions, and of several parts.
VISION_SCHEMES = {
    scheme: (*VISION.tables[scheme], *HEADS[scheme], *keras("conv_value_out", "value"))
    for scheme in HEADS
}
COMPLEX_SCHEMES = {
    scheme: (*COMPLEX.tables[scheme], *HEADS[scheme], *keras("value_out_{i}", "value"))
    for scheme in HEADS
}


def default_module(*, shares_layers: bool, linear: bool) -> Table:
    """Today's default PPO module."""
    actor = "encoder.encoder" if shares_layers else "encoder.actor_encoder"
    return (
        *torch_mlp(actor, "hidden", linear=linear),
        *torch_mlp("encoder.critic_encoder", "value_hidden", linear=linear),
        *torch_dense("pi.net.mlp.0", "logits"),
        *torch_dense("vf.net.mlp.0", "value"),
        Move("pi.log_std", "log_std.value"),
    )


#: Every naming scheme in which a fully connected actor-critic is found, by the code that wrote it.
SCHEMES: Mapping[str, Table] = {
    **{scheme: (*HEADS[scheme], *DENSE.tables[scheme]) for scheme in HEADS},
    # slim in scopes of its own, MARWIL (0.7 – 0.8.0)
    "marwil": (
        *keras("p_func/fc{i+1}", "hidden.{i}"),
        *keras("p_func/fc_out", "logits"),
        Move("v_func/value/w", "value.kernel"),
        Move("v_func/value/b", "value.bias"),
    ),
    # RLModule (2.7 Learner API – today): {own or shared critic} × {with activations or linear}
    "rl_module": default_module(shares_layers=False, linear=False),
    "rl_module_shared": default_module(shares_layers=True, linear=False),
    "rl_module_linear": default_module(shares_layers=False, linear=True),
    "rl_module_shared_linear": default_module(shares_layers=True, linear=True),
}

#: The modules of ours that take networks which Ray's own modules can't compute.
ACTOR_CRITIC = "rllib_compat.modules:ActorCriticModule"
ACTOR = "rllib_compat.modules:ActorModule"
DETERMINISTIC = "rllib_compat.modules:PolicyModule"


def actor_critic(build: Builder, logits: str, value: str) -> dict[str, str]:
    """The outputs of a policy and its value function, which gives one number in a vector."""
    return {"action_dist_inputs": logits, "vf_preds": build.add("scalar", "vf_preds", value)}


def with_log_std(build: Builder, named: Named, logits: str) -> str:
    """Appends log standard deviations where they are parameters (`free_log_std`)."""
    if "log_std.value" not in named.arrays:
        return logits
    return build.add("free_log_std", "log_std", logits)


def own_actor_critic(graph: Graph, arrays: Mapping[str, Array], **model_config: object) -> Target:
    """The module of ours for a policy with a value function, or without one."""
    module = ACTOR_CRITIC if "vf_preds" in graph.outputs else ACTOR
    return own_module(module, graph, arrays, **model_config)


def sequence_length(settings: ModelSettings) -> int:
    """How many steps the sequences have that a network with states is trained on."""
    return int(model_setting(settings.model, "max_seq_len"))


def todays_default(named: Named, table: Callable[..., Table], **options: object) -> Target:
    """The default module of the installed Ray, for dense layers `hidden.{i}` and linear heads.

    `table` makes the module's names; if these are `linear`, no activations lie between the layers.
    """
    name = activation(named.settings.activation, where="model.fcnet_activation").target
    model_config = {
        "fcnet_hiddens": list(named.sizes("hidden")),
        "fcnet_activation": name,
        "head_fcnet_hiddens": [],
        **options,
    }
    return Target(None, model_config, table(linear=name == "linear"))


#: Where nothing clips a logarithm, whose exponential is 0 or infinite long before. It is a constant
#: of heads that target networks follow as they follow weights (APPO): infinite, it came to NaN.
NO_CLIP = 1e30


def unclipped_log_std(named: Named) -> dict[str, Any]:
    """The options of Ray's heads for log standard deviations.

    Old networks did not clip; today's default of 20 never binds in practice, but a conversion has
    to be exact for any number.
    """
    return {"free_log_std": "log_std.value" in named.arrays, "log_std_clip_param": NO_CLIP}


def policy_only(
    named: Named, *, deterministic: bool = False, target: Target | None = None
) -> Network:
    """The network of a policy that only acts, in a module of ours unless there is another `target`.

    If it is `deterministic`, the last layer's output is the action, not what a distribution takes.
    """
    build = Builder()
    out = build.add("dense", "logits", DENSE.add(build, named))
    out = with_log_std(build, named, out)
    outputs = {"action_dist_inputs": out} | ({"actions": out} if deterministic else {})
    inputs = (named.takes(build.steps[0].name),)
    graph = Graph({"obs": inputs}, tuple(build.steps), outputs)
    sizes = "-".join(map(str, [*inputs, *named.sizes("hidden"), named.gives("logits")]))
    free = ", free log std" if "log_std.value" in named.arrays else ""
    summary = f"fc {sizes} {named.settings.activation}{free}, no value function"
    own = own_module(DETERMINISTIC if deterministic else ACTOR, graph, named.arrays)
    return named.network(DENSE.kind, summary, graph, target or own)


def read_vector(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the flat vector of PG: Ray 0.5 – 0.7 kept only what the loss depended on.

    That was the policy; the value function that the model had made was not stored.
    """
    vector, (seen, actions) = np.asarray(policy.weights), require_spaces(policy)
    inputs, hiddens = seen.flat_size(), settings.hidden_sizes
    outputs = distribution_inputs(actions) or 0
    # Ray 0.7.5 – 0.8.5 ignored `free_log_std` on TensorFlow.
    for free_log_std in (settings.free_log_std, False):
        rows = Shape(inputs, hiddens, outputs, True, free_log_std).policy()
        if total(rows) == vector.size:
            named = Named(policy, settings, cut(vector, rows), "vector", SCHEMES["keras"])
            return named.reading(policy_only(named))
    raise refusals.no_fit(
        f"The vector of {vector.size} numbers",
        f"policy with {inputs} inputs, hidden layers {list(hiddens)} and {outputs} outputs",
        where_of(policy),
    )


#: Below this, a slope of swish can't be divided by without losing digits.
_SMALLEST_SLOPE = 1e-3


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the network of a policy."""
    named = name(policy, settings)
    if settings.model.get("no_final_linear"):
        return named.reading(_activated(named))
    folded = replace(named, arrays=fold_slopes(named.arrays, where=named.where))
    network = network_of(folded)
    named.require_hiddens(folded.sizes("hidden"), settings.hiddens)
    named.require_inputs(network.inputs)
    named.require_outputs(_outputs(folded))
    findings = named.ignored(
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
        target = todays_default(named, rows, vf_share_layers=shares, **unclipped_log_std(named))
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
    named.require_outputs(named.gives(hidden[-1]) + len(arrays.get("log_std.value", ())))
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
