"""Fully connected policies without a value function."""

from __future__ import annotations

from collections.abc import Mapping

from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.heads.fcnet import KIND, SCHEMES, add_hidden
from rllib_compat.networks.network import Network, own_module

#: Modules of ours, by whether the output is the action itself.
MODULES = {
    False: "rllib_compat.modules:ActorModule",
    True: "rllib_compat.modules:PolicyModule",
}


def policy_only(
    arrays: Mapping[str, Array],
    activation: str,
    scheme: str,
    *,
    deterministic: bool = False,
    unused: tuple[str, ...] = (),
) -> Network:
    """The network of a policy that only acts.

    Args:
        arrays: The canonical arrays of `fcnet`, without those of a value function.
        activation: The hidden layers' activation by its legacy name.
        scheme: The naming scheme in which the arrays were found.
        deterministic: Whether the last layer's output is the action, not what a distribution
            takes.
        unused: What the checkpoint has of a value function that was never trained.
    """
    build, layers = Builder(), 0
    while f"hidden.{layers}.kernel" in arrays:
        layers += 1
    out = build.add("dense", "logits", add_hidden(build, "hidden", layers, "obs", activation))
    if "log_std.value" in arrays:
        out = build.add("free_log_std", "log_std", out)
    outputs = {"action_dist_inputs": out} | ({"actions": out} if deterministic else {})
    kernels = [arrays[f"hidden.{i}.kernel"] for i in range(layers)] + [arrays["logits.kernel"]]
    graph = Graph({"obs": kernels[0].shape[:1]}, tuple(build.steps), outputs)
    sizes = "-".join(str(n) for n in [len(kernels[0]), *(k.shape[1] for k in kernels)])
    free = ", free log std" if "log_std.value" in arrays else ""
    return Network(
        kind=KIND,
        summary=f"fc {sizes} {activation}{free}, no value function",
        scheme=scheme,
        graph=graph,
        arrays=arrays,
        target=own_module(MODULES[deterministic], graph, arrays),
        names=SCHEMES.get(scheme, SCHEMES["keras"]),
        unused=unused,
    )
