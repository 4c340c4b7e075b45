"""New actor-critics: a base model with a value function, or what was wrapped around one.

Sources: `models/{tf,torch}/{recurrent_net,attention_net}.py` (Ray 0.8.5 – 2.x),
`models/tf/lstm_v1.py` (0.7 – 0.8.4).
"""

from __future__ import annotations

from dataclasses import replace

from rllib_compat.networks.fresh.arrays import Arrays
from rllib_compat.networks.fresh.models import (
    HIDDENS,
    OUT,
    Model,
    is_image,
    on_torch,
    since,
    stack,
)
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.wrappers.previous_steps import Previous, choices_of
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.spaces import Space


def actor_critic(arrays: Arrays, settings: ModelSettings, seen: Space, actions: Space) -> None:
    """Draws a policy and its value function.

    Raises:
        ConfigError: No distribution of actions is known, layers don't fit images or actions, or
            the config asks for both an LSTM and attention.
    """
    outputs = distribution_inputs(actions)
    if outputs is None:
        raise ConfigError(
            f"No policy gives actions of the space {actions}.",
            where="action_space",
            fix="Use Discrete, MultiDiscrete, Box, or a Tuple or Dict of them.",
        )
    if on_torch(settings) and not since(settings, "0.8.6"):
        settings = replace(settings, shares_layers=True)  # whatever the config says
    features = wrapper(arrays, settings, seen, actions)
    if features is None:
        Model(arrays, settings, outputs, value=True).draw(seen)
        return
    # Until Ray 0.8.4, what TensorFlow had behind its LSTM began small.
    norm = None if on_torch(settings) or since(settings, "0.8.5") else OUT
    arrays.dense("_logits_branch._model.0", features, outputs, norm)
    if not _has_own_value(settings, seen):
        arrays.dense("_value_branch._model.0", features, 1)
        return
    hiddens = HIDDENS if settings.hiddens is None else settings.hiddens
    takes = hiddens[-1] if since(settings, "0.7") else seen.flat_size()
    last = stack(arrays, "_own_value", takes, hiddens)
    arrays.dense("_own_value_out._model.0", last, 1, OUT)


def _has_own_value(settings: ModelSettings, seen: Space) -> bool:
    """Whether the value function beside an LSTM is a network without memory: until Ray 0.8.4.

    Where images are seen, one on the LSTM is made in its place.
    """
    if settings.shares_layers or since(settings, "0.8.5") or settings.hiddens == ():
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
                "The config asks for an LSTM and for attention, and no network has both.",
                where="model.use_attention",
                fix="Leave out use_lstm or use_attention.",
            )
        return _attention(arrays, settings, seen, actions)
    return _lstm(arrays, settings, seen, actions) if model.get("use_lstm") else None


def _lstm(arrays: Arrays, settings: ModelSettings, seen: Space, actions: Space) -> int:
    told = settings.model
    both = bool(told.get("lstm_use_prev_action_reward"))
    count, rewards = (
        int(both or bool(told.get(f"lstm_use_prev_{what}"))) for what in ("action", "reward")
    )
    takes = Model(arrays, settings).draw(seen)
    takes += _steps_before(actions, count, rewards, one_hot=since(settings, "1.2"))
    cells = int(told.get("lstm_cell_size", 256))
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
    told = settings.model
    count, rewards = (
        int(told.get(f"attention_use_n_prev_{what}") or 0) for what in ("actions", "rewards")
    )
    takes = Model(arrays, settings).draw(seen)
    takes += _steps_before(actions, count, rewards, one_hot=True)
    size = int(told.get("attention_dim", 64))
    heads, head = (
        int(told.get(f"attention_{k}", n)) for k, n in (("num_heads", 1), ("head_dim", 32))
    )
    hidden = int(told.get("attention_position_wise_mlp_dim", 32))
    gate_bias = float(told.get("attention_init_gru_gate_bias", 2.0))
    biases = not on_torch(settings)  # in what stands behind attention
    arrays.dense("gtrxl.linear_layer._model.0", takes, size)
    for unit in range(int(told.get("attention_num_transformer_units", 1))):
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
