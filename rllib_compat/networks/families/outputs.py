"""What the networks of actor-critic algorithms end in, whatever is below."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.mapping import Table
from rllib_compat.networks.named import Named
from rllib_compat.networks.network import Target, own_module
from rllib_compat.networks.ops.in_numpy import activation
from rllib_compat.networks.settings import ModelSettings

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


def own_actor_critic(graph: Graph, arrays: Mapping[str, Array], **model_config: Any) -> Target:
    """The module of ours for a policy with a value function, or without one."""
    module = ACTOR_CRITIC if "vf_preds" in graph.outputs else ACTOR
    return own_module(module, graph, arrays, **model_config)


def sequence_length(settings: ModelSettings) -> int:
    """How many steps the sequences have that a network with states is trained on."""
    return int(settings.model.get("max_seq_len", 20))


def todays_default(named: Named, table: Callable[..., Table], **told: Any) -> Target:
    """The default module of the installed Ray, for dense layers and linear heads.

    Args:
        named: The arrays; the hidden layers are `hidden.{i}`.
        table: The module's names; takes `linear`, whether no activations lie between the layers.
        told: What else its config has to say.
    """
    name = activation(named.settings.activation, where="model.fcnet_activation").target
    model_config = {
        "fcnet_hiddens": list(named.sizes("hidden")),
        "fcnet_activation": name,
        "head_fcnet_hiddens": [],
        **told,
    }
    return Target(None, model_config, table(linear=name == "linear"))


def clipless(named: Named) -> dict[str, Any]:
    """What today's heads have to be told of log standard deviations.

    Old networks did not clip; today's default of 20 never binds in practice, but a conversion has
    to be exact for any number.
    """
    return {"free_log_std": "log_std.value" in named.arrays, "log_std_clip_param": float("inf")}
