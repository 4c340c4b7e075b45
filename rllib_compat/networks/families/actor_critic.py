"""Policies of actor-critic algorithms, whatever they consist of: read, and drawn with new weights.

BC, which was MARWIL without advantages, has them, too. Today's default module of BC has no value
function, and no loss would train one. That of APPO has a target network.

Sources: `models/{tf,torch}/{recurrent_net,attention_net}.py` (Ray 0.8.5 – 2.x),
`models/tf/lstm_v1.py` (0.7 – 0.8.4).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from rllib_compat.networks.drawing import (
    OUT,
    Arrays,
    NewModel,
    draw_stack,
    is_image,
    on_torch,
    since,
)
from rllib_compat.networks.families import attention, dense, recurrent, rl_module, vision
from rllib_compat.networks.families.dense import (
    ATTENTION,
    COMPLEX_SCHEMES,
    LSTM,
    SCHEMES,
    actor_critic,
    draw_trunk,
    own_actor_critic,
    policy_only,
    sequence_length,
    todays_default,
    trunk_of,
    unclipped_log_std,
    wrapper_of,
)
from rllib_compat.networks.families.dense import read_vector as read_policy_vector
from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.mapping import (
    Move,
    Table,
    from_canonical,
    row_to,
    to_canonical,
    torch_dense,
    torch_mlp,
)
from rllib_compat.networks.named import Named, plain_names, where_of
from rllib_compat.networks.network import TARGET_PREFIX, Network, Reading, Target
from rllib_compat.networks.previous_steps import Previous, choices_of
from rllib_compat.networks.refusals import not_yet
from rllib_compat.networks.settings import ModelSettings, distribution_inputs, model_setting
from rllib_compat.networks.trunks.complex import COMPLEX, dead_names, second_names
from rllib_compat.networks.trunks.dense import DENSE
from rllib_compat.networks.trunks.vision import VISION
from rllib_compat.networks.unnamed import name_vector
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, ConfigError
from rllib_compat.neutral.report import Finding, Verdict
from rllib_compat.neutral.spaces import Box, Space
from rllib_compat.ray_versions import modules

Reader: TypeAlias = Callable[[PolicyState, ModelSettings], Reading]


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the network of a policy."""
    kind = kind_of(policy, settings)
    if is_vector(policy):
        if kind == DENSE.kind and settings.algorithm == "PG":
            return read_policy_vector(policy, settings)
        if kind == VISION.kind:
            return _read_vision_vector(policy, settings)
    module = isinstance(policy.weights, dict) and rl_module.is_meant(policy.weights)
    reading = (rl_module.read if module else READERS[kind])(policy, settings)
    if settings.wrapper is not None and kind not in (LSTM, ATTENTION):
        return reading.noting(_ignored(settings.wrapper, policy))
    return reading


def kind_of(policy: PolicyState, settings: ModelSettings) -> str:
    """What a policy's network is made of: by its names, or by the config and the observations."""
    if not isinstance(policy.weights, dict):
        space = policy.observation_space
        image = isinstance(space, Box) and len(space.shape) == 3
        return settings.wrapper or (VISION.kind if image else DENSE.kind)
    names = plain_names(policy)[0]
    several = "logits/kernel" in names
    trunk = COMPLEX if several else trunk_of(names, policy)
    return wrapper_of(names) or trunk.kind


def is_vector(policy: PolicyState) -> bool:
    """Whether the weights are one vector (TensorFlow of Ray 0.5 – 0.7; ES and ARS of any Ray)."""
    return not isinstance(policy.weights, (dict, list))


def _read_vision_vector(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the flat vector of a policy with images.

    Ray 0.7.5 and 0.7.6 gave images a fully connected network, since they counted the axes wrong
    (`models/catalog.py`, `_get_v2_model`); a vector does not name its Ray, so its size decides.
    """
    try:
        return vision.read(policy, settings)
    except CheckpointError as error:
        try:
            return dense.read(policy, settings)
        except CheckpointError:
            raise error from None


def _read_complex(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads a network for observations of several parts (`complex_input_net.py`, 1.2 – 2.x)."""
    if not isinstance(policy.weights, dict):
        what = "weights without names of a network for observations of several parts"
        raise not_yet(what, where_of(policy))
    plain, state = plain_names(policy)
    scheme = "torch" if "logits_layer._model.0.weight" in plain else "keras"
    named = Named.take(
        policy,
        settings,
        plain,
        scheme,
        COMPLEX_SCHEMES[scheme],
        of="network for complex observations",
        unused=dead_names(plain, heads=True),
        state=state,
        aliases=second_names(plain),
    )
    build = Builder()
    features = COMPLEX.add(build, named)
    logits, value = (build.add("dense", head, features) for head in ("logits", "value"))
    outputs = actor_critic(build, logits, value)
    graph = Graph({"obs": COMPLEX.inputs(named)}, tuple(build.steps), outputs)
    named.require_outputs(named.gives("logits"))
    cuts = [step for step in graph.steps if step.op == "cut"]
    images = sum(len(step.settings["shape"]) == 3 for step in cuts)
    summary = (
        f"{graph.inputs['obs'][0]} inputs in {len(cuts)} parts, {images} of them images, "
        f"{named.gives('logits')} outputs"
    )
    target = own_actor_critic(graph, named.arrays)
    return named.reading(named.network(COMPLEX.kind, summary, graph, target))


def _ignored(wrapper: str, policy: PolicyState) -> Finding:
    """Ray 0.8.5 made no LSTM on TensorFlow, and said nothing."""
    what = "an LSTM" if wrapper == LSTM else wrapper
    message = (
        f"the config asks for {what}, the weights were made without it (that Ray ignored the key); "
        "the weights are followed"
    )
    return Finding.info("network", Verdict.NOTE, where_of(policy), message)


#: By what a network is made of.
READERS: Mapping[str, Reader] = {
    DENSE.kind: dense.read,
    VISION.kind: vision.read,
    COMPLEX.kind: _read_complex,
    LSTM: recurrent.read_lstm,
    ATTENTION: attention.read_attention,
}


def read_bc(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the policy of BC; in today's default module where that can compute it."""
    if named := named_today(policy, settings):
        return Reading(policy_only(named, target=_target(named)))
    reading = read(policy, settings)
    network = reading.known
    if network.target.module is not None:
        return reading
    if network.graph.recurrent:  # today's module of BC has no place for an LSTM
        length = sequence_length(settings)
        own = own_actor_critic(network.graph, network.arrays, max_seq_len=length)
        return replace(reading, network=replace(network, target=own))
    return replace(reading, network=_without_value(network, policy, settings))


def named_today(policy: PolicyState, settings: ModelSettings) -> Named | None:
    """Names the weights of a default module of BC of the new API stack; None: they are not."""
    if not isinstance(policy.weights, dict):
        return None
    plain, _ = plain_names(policy)
    for encoder, head in modules.BC_MODULE_NAMES:
        for linear in (False, True):
            table = _default_module(encoder, head, linear=linear)
            arrays, left = to_canonical(table, plain)
            if not left and set(from_canonical(table, arrays)) == set(plain):
                return Named(policy, settings, arrays, "rl_module", table)
    return None


def _without_value(network: Network, policy: PolicyState, settings: ModelSettings) -> Network:
    """The network of BC in today's default module, without its value function."""
    arrays = {k: v for k, v in network.arrays.items() if not k.startswith("value")}
    own = {k: v for k, v in network.arrays.items() if k not in arrays}
    unused = (*network.unused, *from_canonical(network.names, own))
    named = Named(policy, settings, arrays, network.scheme, network.names, unused)
    return policy_only(named, target=_target(named))


def _target(named: Named) -> Target:
    """Today's default module of BC, as the installed Ray names its parts."""
    encoder, head = modules.bc_module_names()
    return todays_default(
        named, partial(_default_module, encoder, head), **unclipped_log_std(named)
    )


def _default_module(encoder: str, head: str, *, linear: bool) -> Table:
    return (
        *torch_mlp(encoder, "hidden", linear=linear),
        *torch_dense(f"{head}.net.mlp.0", "logits"),
        Move(f"{head}.log_std", "log_std.value"),
    )


_Copy: TypeAlias = dict[str, Array] | list[Array]

#: The module of ours that has a target network.
_ASYNCHRONOUS = "rllib_compat.modules:AsynchronousModule"

#: What today's default module copies, and calls the copies: `encoder` → `_old_encoder`.
_COPY = "_old_"
_COPIED = ("encoder.", "pi.")


def read_appo(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the network of a policy of APPO, and its target network: a copy of the policy.

    TensorFlow stored the copy (Ray 0.7 – 2.x), torch did not. Where it is missing, it starts as the
    network itself, which is what every Ray made of it when it loaded a checkpoint.
    """
    if is_vector(policy) and kind_of(policy, settings) != DENSE.kind:
        return read(policy, settings)
    main, copy, state = _split(policy, settings)
    reading = read(main, settings)
    copied = _read_copy(copy, main, settings) if copy else {}
    if not copied:
        message = (
            "the target network is not stored; it starts as a copy of the network, as it did when "
            "the old Ray loaded the checkpoint"
        )
        where = where_of(policy)
        finding = Finding.info("target-network", Verdict.DERIVED, where, message)
        reading = reading.noting(finding)
    network = with_target(reading.known, copied)
    return replace(reading, network=network, state={**state, **reading.state})


def with_target(network: Network, copied: Mapping[str, Array]) -> Network:
    """A network with a target network, in a module that has one.

    What is not stored of the target (`copied`) is the network's own.
    """
    target, own = network.target, {**network.arrays, **copied}
    if target.table is None:
        target = replace(target, module=_ASYNCHRONOUS)
    else:
        copies = _copies(target.table)
        own = {k: v for k, v in own.items() if row_to(copies, TARGET_PREFIX + k)}
        target = replace(target, table=target.table + copies)
    arrays = {TARGET_PREFIX + name: array for name, array in own.items()}
    return replace(network, arrays={**network.arrays, **arrays}, target=target)


def _copies(table: Table) -> Table:
    """The rows of the default module's copies: `_old_encoder` and `_old_pi`."""
    return tuple(
        Move(_COPY + row.theirs, TARGET_PREFIX + row.ours, row.change)
        for row in table
        if row.theirs.startswith(_COPIED)
    )


def _split(
    policy: PolicyState, settings: ModelSettings
) -> tuple[PolicyState, _Copy | None, dict[str, float]]:
    """The policy without the copy; the copy's weights by the names of the originals; scalars."""
    weights = policy.weights
    if isinstance(weights, dict):
        copies = {name: original for name in weights if (original := _original(name, weights))}
        main = {k: v for k, v in weights.items() if k not in copies}
        return replace(policy, weights=main), {copies[k]: weights[k] for k in copies} or None, {}
    if isinstance(weights, list):
        half = len(weights) // 2
        if [a.shape for a in weights[:half]] == [a.shape for a in weights[half:]]:
            return replace(policy, weights=weights[:half]), weights[half:], {}
        return policy, None, {}
    # A flat vector (Ray 0.7), in which the copy is if V-trace was on.
    arrays, state = name_vector(policy, settings, target=True)
    plain = {
        k.removeprefix(TARGET_PREFIX): v for k, v in arrays.items() if k.startswith(TARGET_PREFIX)
    }
    own = {k: v for k, v in arrays.items() if not k.startswith(TARGET_PREFIX)}
    table = SCHEMES["keras"]
    renamed = replace(policy, weights=from_canonical(table, own))
    return renamed, from_canonical(table, plain) or None, state


def _original(name: str, weights: Mapping[str, Array]) -> str | None:
    """The array that this is a copy of.

    `fc_1_1/kernel` is one of `fc_1/kernel`: TensorFlow counted names that were taken. Today's
    module calls its copies `_old_encoder…` and `_old_pi…`.
    """
    if name.startswith(_COPY):
        return name.removeprefix(_COPY)
    parts = name.split("/")
    options = [[re.sub(r"_1$", "", part) for part in parts]]
    options += [
        [*parts[:i], re.sub(r"_1$", "", part), *parts[i + 1 :]] for i, part in enumerate(parts)
    ]
    for option in options:
        found = "/".join(option)
        if found != name and found in weights and weights[found].shape == weights[name].shape:
            return found
    return None


def _read_copy(copy: _Copy, main: PolicyState, settings: ModelSettings) -> Mapping[str, Array]:
    """The canonical arrays of the copy; where it has no value function, the original's is read."""
    if isinstance(copy, dict) and isinstance(main.weights, dict):
        copy = {**main.weights, **copy}
    return read(replace(main, weights=copy), settings).network.arrays


def draw(arrays: Arrays, settings: ModelSettings, seen: Space, actions: Space) -> None:
    """Draws a policy and its value function.

    Raises:
        ConfigError: No distribution of actions is known, layers don't fit images or actions, or
            the config asks for both an LSTM and attention.
    """
    outputs = distribution_inputs(actions)
    if outputs is None:
        raise ConfigError(
            f"The action space {actions} is not supported.",
            where="action_space",
            fix="Use Discrete, MultiDiscrete, Box, or a Tuple or Dict of them.",
        )
    if on_torch(settings) and not since(settings, "0.8.6"):
        settings = replace(settings, shares_layers=True)  # whatever the config says
    features = wrapper(arrays, settings, seen, actions)
    if features is None:
        draw_trunk(NewModel(arrays, settings, outputs, value=True), seen)
        return
    # Until Ray 0.8.4, what TensorFlow had behind its LSTM began small.
    norm = None if on_torch(settings) or since(settings, "0.8.5") else OUT
    arrays.dense("_logits_branch._model.0", features, outputs, norm)
    if not _has_own_value(settings, seen):
        arrays.dense("_value_branch._model.0", features, 1)
        return
    hiddens = settings.hidden_sizes
    takes = hiddens[-1] if since(settings, "0.7") else seen.flat_size()
    last = draw_stack(arrays, "_own_value", takes, hiddens)
    arrays.dense("_own_value_out._model.0", last, 1, OUT)


def _has_own_value(settings: ModelSettings, seen: Space) -> bool:
    """Whether the value function beside an LSTM is a network without memory: until Ray 0.8.4.

    Where images are seen, one on the LSTM is made in its place.
    """
    if settings.shares_layers or since(settings, "0.8.5"):
        return False
    if settings.hiddens == () and since(settings, "0.7"):
        return False
    return not is_image(seen)


def wrapper(arrays: Arrays, settings: ModelSettings, seen: Space, actions: Space) -> int | None:
    """Draws the LSTM or the attention net that a config asks for, and the base model below it.

    Returns:
        How many numbers it gives; None: the config asks for neither.

    Raises:
        ConfigError: It asks for both.
    """
    model = settings.model
    if model.get("use_attention") and since(settings, "1.2"):
        if model.get("use_lstm"):
            raise ConfigError(
                "The config has use_lstm and use_attention; a network can have only one.",
                where="model.use_attention",
                fix="Remove use_lstm or use_attention.",
            )
        return _attention(arrays, settings, seen, actions)
    return _lstm(arrays, settings, seen, actions) if model.get("use_lstm") else None


def _lstm(arrays: Arrays, settings: ModelSettings, seen: Space, actions: Space) -> int:
    model_config = settings.model
    both = bool(model_config.get("lstm_use_prev_action_reward"))
    count, rewards = (
        int(both or bool(model_config.get(f"lstm_use_prev_{what}")))
        for what in ("action", "reward")
    )
    takes = draw_trunk(NewModel(arrays, settings), seen)
    takes += _steps_before(actions, count, rewards, one_hot=since(settings, "1.2"))
    cells = int(model_setting(model_config, "lstm_cell_size"))
    if on_torch(settings):
        arrays.lstm("lstm", takes, cells)
    else:
        arrays.lstm_of_tensorflow("lstm", takes, cells)
    return cells


def _steps_before(actions: Space, count: int, rewards: int, *, one_hot: bool) -> int:
    """How many numbers the actions and rewards of steps before are."""
    choices = choices_of(actions)
    return Previous(count, rewards, choices if one_hot else (0,) * len(choices)).size


def _attention(arrays: Arrays, settings: ModelSettings, seen: Space, actions: Space) -> int:
    model_config = settings.model
    count, rewards = (
        int(model_config.get(f"attention_use_n_prev_{what}") or 0)
        for what in ("actions", "rewards")
    )
    takes = draw_trunk(NewModel(arrays, settings), seen)
    takes += _steps_before(actions, count, rewards, one_hot=True)
    size = int(model_setting(model_config, "attention_dim"))
    heads, head = (
        int(model_setting(model_config, f"attention_{key}")) for key in ("num_heads", "head_dim")
    )
    hidden = int(model_setting(model_config, "attention_position_wise_mlp_dim"))
    gate_bias = float(model_setting(model_config, "attention_init_gru_gate_bias"))
    biases = not on_torch(settings)  # in the layers after attention
    arrays.dense("gtrxl.linear_layer._model.0", takes, size)
    for unit in range(int(model_setting(model_config, "attention_num_transformer_units"))):
        seeing, behind = (f"gtrxl.attention_layers.{2 * unit + k}" for k in (0, 1))
        layer = f"{seeing}._layer"
        for vector in ("_uvar", "_vvar"):
            arrays.matrix(f"{layer}.{vector}", (heads, head))
        inner = heads * head
        arrays.matrix(f"{layer}._qkv_layer._model.0.weight", (3 * inner, size))
        arrays.matrix(f"{layer}._pos_proj._model.0.weight", (inner, size))
        arrays.matrix(f"{layer}._linear_layer._model.0.weight", (size, inner))
        arrays.norm(f"{layer}._input_layernorm", size)
        arrays.gate(f"{seeing}._fan_in_layer", size, gate_bias)
        arrays.norm(f"{behind}._layer.0", size)
        arrays.dense(f"{behind}._layer.1._model.0", size, hidden, bias=biases)
        arrays.dense(f"{behind}._layer.2._model.0", hidden, size, bias=biases)
        arrays.gate(f"{behind}._fan_in_layer", size, gate_bias)
    return size
