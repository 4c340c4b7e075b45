"""Fully connected networks whose outputs are activated (`no_final_linear`).

The last hidden layer then makes the outputs itself (`models/**/fcnet*.py`, 0.6 – 2.x): on torch it
is the last of the hidden layers, on TensorFlow it is called `fc_out` as ever. A shared value
function sits on the outputs, or on TensorFlow on the layer before; its kernel tells.
"""

from __future__ import annotations

from collections.abc import Mapping

from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.heads.fcnet import ACTOR_CRITIC_MODULE, KIND, SCHEMES
from rllib_compat.networks.network import Network, own_module
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError


def network_of(
    arrays: Mapping[str, Array], scheme: str, policy: PolicyState, settings: ModelSettings
) -> Network:
    """Makes the network of canonical arrays, as `fcnet` names them.

    Raises:
        CheckpointError: The arrays are not those of such a network, or have another number of
            outputs than the action space.
    """
    build = Builder()

    def add(stack: str) -> list[str]:
        made = ["obs"]
        while f"{(name := f'{stack}.{len(made) - 1}')}.kernel" in arrays:
            made.append(_dense(build, arrays, name, made[-1], settings.activation))
        return made

    hidden = add("hidden")
    if "logits.kernel" in arrays:
        hidden.append(_dense(build, arrays, "logits", hidden[-1], settings.activation))
    logits = hidden[-1]
    outputs = len(arrays.get(f"{logits}.bias", ()))
    if "log_std.value" in arrays:
        outputs += len(arrays["log_std.value"])
        logits = build.add("free_log_std", "log_std", logits)
    _require_outputs(outputs, policy)
    if "value_hidden.0.kernel" in arrays:
        taken = add("value_hidden")[-1]
    else:
        # The last layer that is as wide as the value function's kernel is high.
        width = len(arrays.get("value.kernel", ()))
        before = hidden[-2:] if "logits.kernel" in arrays else hidden[-1:]
        fits = [name for name in before if len(arrays.get(f"{name}.bias", ())) == width]
        taken = (fits or hidden)[0]
    value = build.add("dense", "value", taken)
    made = {"action_dist_inputs": logits, "vf_preds": build.add("scalar", "vf_preds", value)}
    first = arrays.get("hidden.0.kernel", arrays.get("logits.kernel"))
    if first is None:
        raise CheckpointError("The first layer is missing.", where=KIND)
    graph = Graph({"obs": first.shape[:1]}, tuple(build.steps), made)
    sizes = [len(first), *(len(arrays[f"{name}.bias"]) for name in hidden[1:])]
    return Network(
        kind=KIND,
        summary=f"fc {'-'.join(map(str, sizes))} {settings.activation}, outputs activated",
        scheme=scheme,
        graph=graph,
        arrays=arrays,
        target=own_module(ACTOR_CRITIC_MODULE, graph, arrays),
        names=SCHEMES.get(scheme, SCHEMES["keras"]),
    )


def _dense(
    build: Builder, arrays: Mapping[str, Array], name: str, takes: str, activation: str
) -> str:
    if f"{name}.beta" in arrays:
        return build.add("sloped_dense", name, takes)
    return build.add("dense", name, takes, activation=activation)


def _require_outputs(outputs: int, policy: PolicyState) -> None:
    space = policy.action_space
    wanted = distribution_inputs(space) if space is not None else None
    if wanted is not None and wanted != outputs:
        raise CheckpointError(
            f"The network has {outputs} outputs, the action space {space} needs {wanted}.",
            where=f"policies.{policy.policy_id}.weights",
            fix="Give the right one with --action-space.",
        )
