"""The names of an actor-critic's heads, and of a whole fully connected one, in every scheme.

The canonical arrays of a fully connected actor-critic, kernels as `[in, out]`::

    hidden.{i}.kernel         hidden.{i}.bias
    value_hidden.{i}.kernel   value_hidden.{i}.bias     (own value network only)
    logits.kernel             logits.bias
    value.kernel              value.bias
    log_std.value                                       (free_log_std only)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rllib_compat.networks.mapping import Move, Table, keras, torch_dense, torch_layer
from rllib_compat.networks.trunks.complex import COMPLEX, is_complex
from rllib_compat.networks.trunks.dense import DENSE
from rllib_compat.networks.trunks.trunk import Trunk
from rllib_compat.networks.trunks.vision import VISION
from rllib_compat.neutral.checkpoint import PolicyState

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
    """Today's default PPO module; activation modules take every second number, if there are any."""
    actor = "encoder.encoder" if shares_layers else "encoder.actor_encoder"
    layer = "net.mlp.{i}" if linear else "net.mlp.{2*i}"
    return (
        *torch_dense(f"{actor}.{layer}", "hidden.{i}"),
        *torch_dense(f"encoder.critic_encoder.{layer}", "value_hidden.{i}"),
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
