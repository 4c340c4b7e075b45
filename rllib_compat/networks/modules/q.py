"""Modules of DQN: with legacy Q-networks, and today's default; both may explore as the old Rays.

How actions are chosen and what a training step takes is the installed Ray's own code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, cast

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from ray.rllib.utils.schedules.scheduler import Scheduler
from torch import Tensor, nn

from rllib_compat.networks.graph import Graph
from rllib_compat.networks.modules.exploration import (
    DrawsNoise,
    NoisyLinear,
    Perturbed,
    divergence,
    divergence_of_epsilon,
    noise,
    noisy_layers,
)
from rllib_compat.networks.modules.graph_module import (
    ActorModule,
    GraphNet,
    ModuleWithTarget,
    inputs_in,
)
from rllib_compat.networks.modules.sac import NoCatalog
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import modules

#: What modules and learners of DQN call what they compute.
QF_PREDS, QF_LOGITS, QF_PROBS, ATOMS = "qf_preds", "qf_logits", "qf_probs", "atoms"
NEXT, TARGET_NEXT, TARGET_NEXT_PROBS = (
    "qf_next_preds",
    "qf_target_next_preds",
    "qf_target_next_probs",
)


class Explores(Perturbed):
    """The first base of a module of DQN that may explore by noise.

    Its `model_config` may have `soft_q_temperature`: actions are drawn by their values, divided by
    it. Noisy layers draw noise where the module explores, and for each pass of a training step.
    """

    model_config: Mapping[str, Any]
    epsilon_schedule: Any

    def actions_of(self, batch: Mapping[str, Any]) -> Tensor:
        values: Tensor = modules.q_values(self, batch)
        return values

    def moved_and_wanted(self, clean: Tensor, noisy: Tensor) -> tuple[float, float]:
        """What noise did to the actions, and what epsilon does."""
        epsilon = float(self.epsilon_schedule.get_current_value())
        return divergence(clean, noisy), divergence_of_epsilon(epsilon, clean.shape[-1])

    @contextmanager
    def noisy(self) -> Iterator[None]:
        """Computes with all noise that it explores with."""
        with noise(*self._exploring), self.with_weight_noise():
            yield

    @cached_property
    def _exploring(self) -> list[DrawsNoise]:
        """The noisy layers, found once: it explores at each step. Those of targets don't matter."""
        return noisy_layers(cast("nn.Module", self))

    def _forward_exploration(
        self, batch: dict[str, Any], t: int = 0, **_: object
    ) -> dict[str, Any]:
        temperature = self.model_config.get("soft_q_temperature")
        with self.noisy():
            return modules.explore(self, batch, t, temperature=temperature)

    def _forward_train(self, batch: dict[str, Any]) -> dict[str, Any]:
        module: Any = self
        layers = noisy_layers(module)
        if not layers:
            made: dict[str, Any] = super()._forward_train(batch)  # type: ignore[misc]  # DQN's
            return made
        # Ray computes this step's and the next one's values in one pass, with the same noise.
        now, then = batch[Columns.OBS], batch[Columns.NEXT_OBS]
        with noise(*layers):
            out = modules.q_outputs(module, {Columns.OBS: now})
            target = module.forward_target({Columns.OBS: then})
            found = {QF_PREDS: out[QF_PREDS], TARGET_NEXT: target[QF_PREDS]}
            if module.uses_double_q:
                found[NEXT] = modules.q_values(module, {Columns.OBS: then})
        if module.num_atoms > 1:
            found |= {k: out[k] for k in (QF_LOGITS, QF_PROBS)}
            found |= {ATOMS: target[ATOMS], TARGET_NEXT_PROBS: target[QF_PROBS]}
        return found


_DQN: Any = modules.dqn_module()


@public("rllib_compat.modules")
class ExploringQModule(Explores, _DQN):  # type: ignore[misc]  # Ray has no types
    """Today's default module of DQN, which may explore as the old Rays could.

    Its `model_config` is that of Ray's. With `sigma0`, the layers of both streams are noisy; with
    `parameter_noise`, a layer norm follows each hidden one of theirs, unless that says
    `layer_norm=False`.
    """

    #: Ray's catalogs, or those made from them, build its networks.
    takes_catalogs = True

    def setup(self) -> None:
        super().setup()
        self.uses_noisy = False  # Ray 2.40 has noisy layers of its own, which differ
        for head in self._parts("af", "vf"):
            _change(head, self.model_config)

    def perturbed(self) -> list[nn.Parameter]:
        """The weights of the encoder and both streams."""
        parts = self._parts("encoder", "af", "vf")
        layers = [layer for part in parts for layer in part.modules()]
        norms = [layer for layer in layers if isinstance(layer, nn.LayerNorm)]
        spared = {id(weight) for norm in norms for weight in norm.parameters()}
        return [w for part in parts for w in part.parameters() if id(w) not in spared]

    def _parts(self, *names: str) -> list[nn.Module]:
        """Those of its networks that it has: without dueling, there is no `vf`."""
        return [getattr(self, name) for name in names if hasattr(self, name)]


def _change(head: nn.Module, options: Mapping[str, Any]) -> None:
    """Makes the dense layers of a stream noisy, and puts layer norms between them."""
    sigma, on_weights = options.get("sigma0"), options.get("parameter_noise")
    norms = on_weights is not None and on_weights.get("layer_norm", True)
    for part in list(head.modules()):
        if not isinstance(part, nn.Sequential):
            continue
        layers = list(part)
        if not any(isinstance(layer, nn.Linear) for layer in layers):
            continue
        changed: list[nn.Module] = []
        width = 0
        for layer in layers:
            if not isinstance(layer, nn.Linear):  # an activation, behind a hidden layer
                changed += [layer, nn.LayerNorm(width)] if norms else [layer]
                continue
            takes, width = layer.in_features, layer.out_features
            changed.append(layer if sigma is None else NoisyLinear(takes, width, sigma))
        del part[:]
        part.extend(changed)


#: What a graph gives.
VALUES, LOGITS = "q_values", "q_logits"


@public("rllib_compat.modules")
class QModule(Explores, _DQN):  # type: ignore[misc]  # Ray has no types
    """Computes a legacy Q-network and its target network.

    Its `model_config` holds the graph (`graph`, as `Graph.to_plain` makes it), the shapes of its
    arrays (`shapes`, by name), DQN's own `double_q`, `num_atoms`, `v_min`, `v_max` and `epsilon`,
    and what `Explores` takes.

    A batch has `obs` `[B, …]`; with states `[B, T, …]` and `state_in`, a dict of `[B, …]`. What a
    network takes beside the observation is found as `graph_module.inputs_in` describes.
    """

    def __init__(self, *args: object, catalog_class: object = None, **kwargs: object) -> None:  # noqa: ARG002 (the graph is the network, no catalog chooses it)
        TorchRLModule.__init__(self, *args, catalog_class=NoCatalog, **kwargs)

    def setup(self) -> None:
        config = self.model_config
        self.graph = Graph.from_plain(config["graph"])
        self.net = GraphNet(self.graph, config["shapes"])
        self.uses_double_q = config["double_q"]
        self.num_atoms = config["num_atoms"]
        self.uses_noisy = False  # Ray 2.40 asks, for layers of its own
        self.epsilon_schedule = Scheduler(
            fixed_value_or_schedule=config.get("epsilon", 0.0), framework="torch"
        )
        self.action_dist_cls = modules.action_distribution(self.action_space)

    def perturbed(self) -> list[nn.Parameter]:
        """The network's weights."""
        return self.net.without_norms()

    # Ray's module is in the place of the base that others have these from.
    get_initial_state = ActorModule.get_initial_state
    get_non_inference_attributes = ModuleWithTarget.get_non_inference_attributes
    make_target_networks = ModuleWithTarget.make_target_networks
    get_target_network_pairs = ModuleWithTarget.get_target_network_pairs

    def compute_q_values(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The Q-values `qf_preds` `[B, actions]`, and their distributions if they have any."""
        return self._compute(self.net, batch)

    _qf = compute_q_values  # its name in Ray 2.40

    def forward_target(self, batch: dict[str, Any]) -> dict[str, Any]:
        return self._compute(self.target_net, batch)

    def critics(self, batch: dict[str, Any]) -> dict[str, Any]:
        """What the graph itself gives."""
        made: dict[str, Any] = self.net(inputs_in(self.graph, batch), self.graph.outputs)
        return made

    def _compute(self, net: GraphNet, batch: dict[str, Any]) -> dict[str, Any]:
        out = net(inputs_in(self.graph, batch))
        made = {QF_PREDS: out[VALUES].float()}
        if LOGITS in out:
            logits = out[LOGITS].float()
            low, high, atoms = (self.model_config[k] for k in ("v_min", "v_max", "num_atoms"))
            support = torch.linspace(low, high, atoms, device=logits.device)
            made |= {QF_LOGITS: logits, QF_PROBS: torch.softmax(logits, dim=-1), ATOMS: support}
        if self.graph.states:
            made[Columns.STATE_OUT] = {name: out[name] for name in self.graph.states}
        return made

    def _forward_inference(self, batch: dict[str, Any], **_: object) -> dict[str, Any]:
        out = self.compute_q_values(batch)
        actions = {Columns.ACTIONS: out[QF_PREDS].argmax(dim=-1)}
        return actions | {k: v for k, v in out.items() if k == Columns.STATE_OUT}
