"""Reads the Q-networks of DQN, SimpleQ, APEX and R2D2: a base model, and a head of Q-values.

The weights' names say which layers there are; the config adds what the weights do not show
(activations, atoms) and is held against the rest.

A new one is drawn as `agents/dqn/{dqn_torch_model,dqn_torch_policy,simple_q_torch_policy}.py` did
(Ray 0.8.5 – 1.13; `algorithms/dqn` of 2.x): a base model, and two streams of dense layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rllib_compat.networks import refusals
from rllib_compat.networks.drawing import Arrays, NewModel, on_torch, since
from rllib_compat.networks.families import q_head, q_rl_module
from rllib_compat.networks.families.actor_critic import wrapper
from rllib_compat.networks.families.attention import add_attention
from rllib_compat.networks.families.dense import draw_trunk
from rllib_compat.networks.families.q_head import MODULE, RECURRENT, Head
from rllib_compat.networks.families.q_names import read_named
from rllib_compat.networks.families.recurrent import add_lstm
from rllib_compat.networks.graph import Builder, Graph
from rllib_compat.networks.named import Named
from rllib_compat.networks.network import WHOLE, Reading, Target, own_module
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


(ADAM,) = WHOLE
#: The epsilon that it had by default, where that is not torch's own.
_EPSILON = {"R2D2": 1e-3}


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the Q-network of a policy, and its target network."""
    if isinstance(policy.weights, dict) and q_rl_module.is_module(policy.weights):
        named = q_rl_module.name_arrays(policy, settings)
        head, graph = q_rl_module.read(named)
        return reading(named, graph, head, [], DENSE.kind)
    if isinstance(policy.weights, dict) and q_rl_module.is_recurrent(policy.weights):
        named, trunk = q_rl_module.name_recurrent(policy, settings), DENSE
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
    return reading(named, graph, head, findings, memory + trunk.kind)


def _memory(named: Named) -> str:
    return "LSTM" if "lstm" in named else "attention"


def reading(named: Named, graph: Graph, head: Head, findings: list[Finding], base: str) -> Reading:
    """What was read, with a target network, in today's default module or in one of ours."""
    arrays, copied = with_targets(named)
    target = _target(named.having(arrays), graph, head)
    summary = _describe(named, graph, head)
    network = named.network(f"Q-network, {base}", summary, graph, target, arrays)
    default = _EPSILON.get(named.settings.algorithm, ADAM.eps)
    eps = float(named.settings.config.get("adam_epsilon") or default)  # which continues
    network = replace(network, optimizers=(replace(ADAM, eps=eps),))
    return named.reading(network, *findings, *copied)


def _target(named: Named, graph: Graph, head: Head) -> Target:
    config, simple = named.settings.config, named.settings.algorithm == "SimpleQ"
    options = {
        "double_q": bool(config.get("double_q", True)) and not simple,
        "dueling": head.dueling,
        "num_atoms": head.num_atoms,
        "v_min": head.v_min,
        "v_max": head.v_max,
    }
    if q_rl_module.computes(graph, named):
        return q_rl_module.target(named, options)
    return own_module(RECURRENT if graph.states else MODULE, graph, named.arrays, **options)


def _observation(named: Named, trunk: Trunk) -> tuple[int, ...]:
    """The shape of the observation; a base model may have no layers at all."""
    if trunk is DENSE and not q_rl_module.base_layers(named):
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
    base = [named.gives(layer) for layer in q_rl_module.base_layers(named)]
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
