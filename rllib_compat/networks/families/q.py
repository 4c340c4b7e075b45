"""Reads the Q-networks of DQN, SimpleQ, APEX and R2D2: a base model, and a head of Q-values.

The weights' names say which layers there are; the config adds what the weights do not show
(activations, atoms) and is held against the rest.

A new one is drawn as `agents/dqn/{dqn_torch_model,dqn_torch_policy,simple_q_torch_policy}.py` did
(Ray 0.8.5 – 1.13; `algorithms/dqn` of 2.x): a base model, and two streams of dense layers.

Of modules of the new API stack, Ray's default one of DQN (`DQNRainbowTorchRLModule` in Ray 2.40,
`DefaultDQNTorchRLModule`) is read from checkpoints of Ray 2.35 on, and is where old networks go: an
encoder of dense layers, `af` for the advantages or Q-values, `vf` for the state's value, and a
target of each. In ours (`ExploringQModule`) layers of both streams may be noisy, or have norms
behind them. R2D2's new networks (`networks.modules.r2d2`) are read from checkpoints of trainers:
Ray's encoder with its LSTM, a linear layer, RLlib's streams; a target network of the same names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rllib_compat.networks import refusals
from rllib_compat.networks.drawing import Arrays, NewModel, on_torch, since
from rllib_compat.networks.families import q_head
from rllib_compat.networks.families.actor_critic import wrapper
from rllib_compat.networks.families.attention import add_attention
from rllib_compat.networks.families.dense import draw_trunk
from rllib_compat.networks.families.q_head import MODULE, RECURRENT, Head
from rllib_compat.networks.families.q_names import read_named
from rllib_compat.networks.families.recurrent import add_lstm
from rllib_compat.networks.families.rl_module import encoder_activation, lstm_encoder_names
from rllib_compat.networks.graph import Builder, Graph
from rllib_compat.networks.mapping import TRANSPOSED, Move, Table, torch_dense
from rllib_compat.networks.named import Named, plain_names, where_of
from rllib_compat.networks.network import (
    OWN_PREFIX,
    OWN_TARGET_PREFIX,
    TARGET_PREFIX,
    WHOLE,
    Reading,
    Target,
    own_module,
)
from rllib_compat.networks.ops.in_numpy import activation
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.dense import DENSE, Trunk, with_targets
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import ConfigError, NotConvertibleError
from rllib_compat.neutral.report import Finding
from rllib_compat.neutral.spaces import Discrete, Space

#: What remembers earlier steps, by its key.
_MEMORIES = {"use_attention": "an attention net", "use_lstm": "an LSTM"}
#: The number of outputs of a base model without hidden layers.
_FEATURES = 256
#: The first Ray whose base models were given their number of outputs; before, streams sat on their
#: features, and had a last layer each whatever hidden ones there were.
_GIVES_OUTPUTS = "0.7.3"


def draw(arrays: Arrays, settings: ModelSettings, seen: Space, actions: Space) -> None:
    """Draws a Q-network.

    Raises:
        ConfigError: Actions are not discrete, or there is a memory that only R2D2 has.
    """
    if not isinstance(actions, Discrete):
        raise ConfigError(
            f"{settings.algorithm} needs Discrete actions; these are {actions}.",
            where="action_space",
            fix="Train SAC, DDPG or TD3, or make the environment's actions Discrete.",
        )
    memory = next((key for key in _MEMORIES if settings.model.get(key)), None)
    if memory is not None and settings.algorithm != "R2D2":
        raise ConfigError(
            f"{settings.algorithm} could not be trained with {_MEMORIES[memory]} in any old Ray.",
            where=f"model.{memory}",
            fix="Train R2D2, or remove the key. With legacy_ray='today' you get the installed "
            "Ray's networks, which may have an LSTM.",
        )
    head = Head.of(settings)
    if settings.algorithm == "SimpleQ":  # which ignored them
        head = replace(head, hiddens=())
    # The base model ends in a hidden layer where others follow.
    features = [_FEATURES, *settings.model.get("fcnet_hiddens", ())][-1]
    gives = features if head.hiddens else actions.n * head.num_atoms
    whole = not since(settings, _GIVES_OUTPUTS)
    around = wrapper(arrays, settings, seen, actions)
    if around is not None:
        arrays.dense("_logits_branch._model.0", around, gives)
    elif whole:
        gives = draw_trunk(NewModel(arrays, replace(settings, free_log_std=False)), seen)
    else:
        base = {**settings.model, "no_final_linear": bool(head.hiddens)}
        own = replace(settings, model=base, free_log_std=False)
        draw_trunk(NewModel(arrays, own, gives), seen)
    if not head.hiddens and not head.noisy and not whole:
        return
    outputs = {"advantage": actions.n * head.num_atoms}
    if head.dueling:
        outputs["value"] = head.num_atoms
    # Glorot and Bengio's way, on torch since Ray 1.3.
    dense = arrays.dense if not on_torch(settings) or since(settings, "1.3") else arrays.linear
    sigma = float(settings.config.get("sigma0", 0.5))
    for stream, letter in (("advantage", "A"), ("value", "V")):
        if stream not in outputs:
            continue
        takes = gives
        module = f"{stream}_module"
        for number, size in enumerate(head.hiddens):
            layer = f"{module}.dueling_{letter}_{number}"
            if head.noisy:
                takes = arrays.noisy(layer, takes, size, sigma)
                continue
            takes = dense(f"{layer}._model.0", takes, size)
            if head.norm:
                arrays.norm(f"{module}.LayerNorm_{letter}_{number}", size)
        last = f"{module}.{letter}"
        if head.noisy:
            arrays.noisy(last, takes, outputs[stream], sigma)
        else:
            dense(f"{last}._model.0", takes, outputs[stream])


#: The epsilon of Adam by default, where that is not torch's own.
_EPSILON = {"R2D2": 1e-3}


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the Q-network of a policy, and its target network."""
    names = list(policy.weights) if isinstance(policy.weights, dict) else []
    if any(name.startswith("encoder.") for name in names):
        named = _name_module(policy, settings)
        head, graph = _read_module(named)
        return _reading(named, graph, head, [], DENSE.kind)
    if any(name.startswith(f"{OWN_PREFIX}encoder.") for name in names):
        named, trunk = _name_recurrent(policy, settings), DENSE
    else:
        named, trunk = read_named(policy, settings)
    head, findings = _head(named)
    build = Builder()
    inputs: Mapping[str, tuple[int, ...]]
    states: Mapping[str, str] = {}
    if "lstm" in named or "embed" in named:
        add = add_lstm if "lstm" in named else add_attention
        core = add(build, named, trunk)
        inputs, states, features = core.inputs, core.states, core.value
    else:
        inputs = {"obs": _observation(named, trunk)}
        features = trunk.add(build, named)
    outputs = q_head.add(build, named, features, head)
    graph = Graph(inputs, tuple(build.steps), outputs, states)
    _compare(named, graph, head)
    memory = f"{_memory(named)} over " if states else ""
    return _reading(named, graph, head, findings, memory + trunk.kind)


def _memory(named: Named) -> str:
    return "LSTM" if "lstm" in named else "attention"


def _reading(named: Named, graph: Graph, head: Head, findings: list[Finding], base: str) -> Reading:
    """What was read, with a target network, in today's default module or in one of ours."""
    config, simple = named.settings.config, named.settings.algorithm == "SimpleQ"
    arrays, copied = with_targets(named)
    options = {
        "double_q": bool(config.get("double_q", True)) and not simple,
        "dueling": head.dueling,
        "num_atoms": head.num_atoms,
        "v_min": head.v_min,
        "v_max": head.v_max,
    }
    if _is_computed(graph, named):
        target = _default_module(named, options)
    else:
        target = own_module(RECURRENT if graph.states else MODULE, graph, arrays, **options)
    network = named.network(
        f"Q-network, {base}", _describe(named, graph, head), graph, target, arrays
    )
    (adam,) = WHOLE
    eps = config.get("adam_epsilon") or _EPSILON.get(named.settings.algorithm, adam.eps)
    network = replace(network, optimizers=(replace(adam, eps=float(eps)),))  # which continues
    return named.reading(network, *findings, *copied)


def _observation(named: Named, trunk: Trunk) -> tuple[int, ...]:
    """The shape of the observation; a base model may have no layers at all."""
    if trunk is DENSE and not _base_layers(named):
        layers = ("logits", *named.layers("advantage_hidden"), "advantage")
        return (named.takes(next(layer for layer in layers if layer in named)),)
    return trunk.inputs(named)


def _head(named: Named) -> tuple[Head, list[Finding]]:
    """The head by the config, held against the arrays, so that nothing is guessed.

    Raises:
        NotConvertibleError: What the Ray stored is not the network.
        CheckpointError: The config is another checkpoint's.
    """
    settings = named.settings
    head, torch, simple = Head.of(settings), named.torch, settings.algorithm == "SimpleQ"
    noisy = any(".sigma_" in name for name in named.arrays)
    _require_stored(named, head, noisy=noisy)
    made = list(named.sizes("advantage_hidden"))
    lone = "advantage" in named and not made
    findings = []
    for key, said, is_so, ignored in (
        # SimpleQ ignored `hiddens` from Ray 0.8 on; torch of Ray 0.8.5 did without dueling.
        ("hiddens", list(head.hiddens), made, simple or lone),
        # Without hidden layers, torch's streams are empty: both give what they take.
        ("dueling", head.dueling, "state" in named, torch and not head.hiddens),
        # torch of Ray 0.8.5 had no noisy layers.
        ("noisy", head.noisy, noisy, torch),
    ):
        if said == is_so:
            continue
        if not ignored:
            raise refusals.other_config(key, is_so, said, named.where)
        if key != "dueling" and not simple:
            message = f"that Ray ignored {key}={said} on torch; the weights are followed"
            findings.append(named.note(message))
    if head.norm:
        findings.append(
            named.note(
                "the weights were stored as they were; with parameter noise that may include the "
                "noise of the running episode"
            )
        )
    return replace(head, noisy=noisy), findings


def _require_stored(named: Named, head: Head, *, noisy: bool) -> None:
    # torch policies of Ray 0.8.5 had plain layers in spite of `noisy`.
    if head.noisy and not noisy and not (named.torch and "advantage" in named):
        raise NotConvertibleError(
            "The noisy layers of the Q-head are not in this checkpoint. Ray "
            "0.8.1 – 0.8.5 on TensorFlow and 0.8.6 – 1.0 on torch left them out when they saved.",
            where=named.where,
            fix="That Ray restores such a checkpoint with a random head, too. Train a new policy.",
        )
    one = "state" in named and named.gives("state") == 1
    if named.torch and one and head.num_atoms > 1:
        raise NotConvertibleError(
            "This Ray's Q-values depended on the batch. With dueling and "
            "num_atoms > 1, torch policies up to Ray 1.4 normalised over the batch instead of the "
            "atoms.",
            where=named.where,
            fix="There is no network that computes the same. Train a new policy.",
        )


def _compare(named: Named, graph: Graph, head: Head) -> None:
    """Holds the network against the spaces and the hidden layers of the config."""
    named.require_inputs(graph.inputs["obs"])
    last = "advantage" if "advantage" in named else "logits"
    named.require_outputs(named.gives(last) // head.num_atoms)
    said = named.settings.hiddens
    made = [named.gives(layer) for layer in (*named.layers("hidden"), "out") if layer in named]
    if said is not None and made:
        # The last was as wide as the head wanted it in some Rays.
        named.require_hiddens(made[:-1], said[: len(made) - 1])


def _describe(named: Named, graph: Graph, head: Head) -> str:
    """One line for tables: `Q 4-32-32-2, head 24, dueling`."""
    base = [named.gives(layer) for layer in _base_layers(named)]
    parts = [
        "Q " + "-".join(map(str, [*graph.inputs["obs"], *base])),
        "head " + ("-".join(map(str, named.sizes("advantage_hidden"))) or "without layers"),
        *([_memory(named)] if graph.states else []),
        *(["dueling"] if head.dueling else []),
        *([f"{head.num_atoms} atoms"] if head.num_atoms > 1 else []),
        *(["noisy (means)"] if head.noisy else []),
        *(["layer norm"] if head.norm else []),
    ]
    return ", ".join(parts)


def _recurrent_names(head: int, *, linear: bool) -> Table:
    """The module's names; with how many hidden layers each stream has."""
    rows: list[Move] = []
    for theirs, ours in ((OWN_PREFIX, ""), (OWN_TARGET_PREFIX, TARGET_PREFIX)):
        rows += lstm_encoder_names(f"{theirs}encoder", ours, linear=linear)
        rows += torch_dense(f"{theirs}logits", f"{ours}logits")
        for stream in ("advantage", "state"):
            rows += torch_dense(f"{theirs}{stream}.{2 * head}", f"{ours}{stream}")
            rows += torch_dense(f"{theirs}{stream}.{{2*i}}", f"{ours}{stream}_hidden.{{i}}")
    return tuple(rows)


def _name_recurrent(policy: PolicyState, settings: ModelSettings) -> Named:
    """Names the arrays of a module, beside what it says itself of its layers."""
    options = policy.extra.get("module_config", {})
    settings = replace(
        settings,
        activation=encoder_activation(options),
        hiddens=None,
        model={**settings.model, **options},
        config={**settings.config, **options},
    )
    plain, _ = plain_names(policy)
    linear = activation(settings.activation, where="model.fcnet_activation").target == "linear"
    stream = re.compile(rf"{OWN_PREFIX}advantage\.\d+\.weight")
    layers = sum(bool(stream.fullmatch(name)) for name in plain)
    names = _recurrent_names(max(layers - 1, 0), linear=linear)
    of = "Q-network with an LSTM behind dense layers"
    return Named.take(policy, settings, plain, "rl_module", names, of=of)


#: Releases whose module centred the advantages' logits over the actions; later ones over the atoms.
_CENTRED_OVER_ACTIONS = re.compile(r"2\.([1-3]\d|40)\.")

_KIND = "Q-network of dense layers"


def _module_names(layers: int, head: int, *, linear: bool, norms: bool = False) -> Table:
    """The module's names.

    Args:
        layers: How many layers the encoder has.
        head: How many hidden layers each stream has.
        linear: Whether the encoder has no activation modules between its layers.
        norms: Whether a norm follows each hidden layer of the streams.
    """
    step = 3 if norms else 2
    rows: list[Move] = []
    for theirs, ours in (("", ""), ("_target_", TARGET_PREFIX)):
        encoder, every = f"{theirs}encoder.net.mlp", 1 if linear else 2
        rows += torch_dense(f"{encoder}.{{{every}*i}}", f"{ours}hidden.{{i}}")
        # On TensorFlow, the base model's last layer had a name of its own.
        rows += torch_dense(f"{encoder}.{every * (layers - 1)}", f"{ours}out")
        for stream, canonical in (("af", "advantage"), ("vf", "state")):
            name = f"{theirs}{stream}.net.mlp"
            rows += _dense(f"{name}.{step * head}", f"{ours}{canonical}")
            rows += _dense(f"{name}.{{{step}*i}}", f"{ours}{canonical}_hidden.{{i}}")
            if norms:
                norm, of = f"{name}.{{{step}*i+2}}", f"{ours}{canonical}_norm.{{i}}"
                rows += (Move(f"{norm}.weight", f"{of}.gamma"), Move(f"{norm}.bias", f"{of}.beta"))
        rows += torch_dense(f"{theirs}af.net.mlp.0", f"{ours}logits")
    return tuple(rows)


def _dense(theirs: str, ours: str) -> Table:
    """The rows of a layer that may be noisy."""
    return (
        *torch_dense(theirs, ours),
        Move(f"{theirs}.sigma_weight", f"{ours}.sigma_kernel", TRANSPOSED),
        Move(f"{theirs}.sigma_bias", f"{ours}.sigma_bias"),
    )


def _name_module(policy: PolicyState, settings: ModelSettings) -> Named:
    """Names the arrays of a module."""
    plain, _ = plain_names(policy)
    linear = activation(settings.activation, where="model").target == "linear"
    stream = [a for name, a in plain.items() if re.fullmatch(r"af\.net\.mlp\.\d+\.weight", name)]
    layers = sum(array.ndim > 1 for array in stream)
    if not layers:
        raise refusals.unknown_arrays(list(plain), plain, _KIND, where_of(policy))
    names = _module_names(0, layers - 1, linear=linear, norms=len(stream) > layers)
    return Named.take(policy, settings, plain, "rl_module", names, of=_KIND)


def _read_module(named: Named) -> tuple[Head, Graph]:
    """Reads a module: its head, and what it computes."""
    head = Head.of(named.settings)
    if head.dueling != ("state" in named):
        raise refusals.other_config("dueling", "state" in named, head.dueling, named.where)
    build = Builder()
    features = DENSE.add(build, named)
    old = _CENTRED_OVER_ACTIONS.match(named.settings.ray or "")
    outputs = q_head.add(
        build, named, features, head, centred=q_head.OVER_ACTIONS if old else q_head.OVER_ATOMS
    )
    inputs = {"obs": (named.takes(build.steps[0].name),)}
    return head, Graph(inputs, tuple(build.steps), outputs)


def _base_layers(named: Named) -> list[str]:
    """The base model's layers, first to last."""
    single = ("last", "conv_out", "out")
    own = [layer for layer in single if layer in named]
    return [*named.layers("conv"), *named.layers("hidden"), *own]


def _is_computed(graph: Graph, named: Named) -> bool:
    """Whether the module computes a graph exactly.

    It has dense layers, at least one before the head, and gives one number for each action; it
    knows no noise, no norm, and no linear layer below the head. What it does with the distribution
    of a dueling network changed between releases.
    """
    ops = {step.op for step in graph.steps}
    above_logits = {step.op for step in graph.steps if "logits" in step.takes}
    first = "hidden.0" in named or "out" in named
    streams = "dueling" not in ops or "state" in named
    return first and ops <= {"dense", "dueling"} and above_logits <= {"dueling"} and streams


def _default_module(named: Named, options: Mapping[str, Any]) -> Target:
    """The module for a network that it computes."""
    base, head = _base_layers(named), list(named.sizes("advantage_hidden"))
    name = activation(named.settings.activation, where="model.fcnet_activation").target
    return Target(
        module=None,
        model_config={
            "fcnet_hiddens": [named.gives(layer) for layer in base],
            "fcnet_activation": name,
            "head_fcnet_hiddens": head,
            "head_fcnet_activation": "relu",
            **options,
        },
        table=_module_names(len(base), len(head), linear=name == "linear"),
    )
