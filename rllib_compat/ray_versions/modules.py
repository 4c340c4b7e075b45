"""The default RLModules: where they are, and what their parts are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

#: What BC's default module called its encoder and its head, newest first.
BC_MODULE_NAMES = (("_encoder", "_pi_head"), ("encoder", "pi"))


def bc_module_names() -> tuple[str, str]:
    """What the installed BC's default module calls its encoder and its head.

    They were renamed with the module's file; a look for it needs no import of Ray.
    """
    from importlib import metadata  # slow to import

    try:
        ray = metadata.distribution("ray")
    except metadata.PackageNotFoundError:
        return BC_MODULE_NAMES[0]
    file = "ray/rllib/algorithms/bc/torch/default_bc_torch_rl_module.py"
    return BC_MODULE_NAMES[0 if Path(str(ray.locate_file(file))).exists() else 1]


def torch_distributions() -> Any:
    """The module of torch's action distributions; it was below `ray.rllib.models` in Ray 2.40."""
    try:
        from ray.rllib.core.distribution.torch import torch_distribution
    except ImportError:
        from ray.rllib.models.torch import torch_distributions as torch_distribution
    return torch_distribution


def target_network_logits() -> str:
    """Under which name APPO's learner looks for what a target network gives.

    In Ray 2.40 the name was one of APPO's own.
    """
    from ray.rllib.algorithms.appo import appo
    from ray.rllib.core.rl_module import apis

    if hasattr(apis, "TARGET_NETWORK_ACTION_DIST_INPUTS"):
        return str(apis.TARGET_NETWORK_ACTION_DIST_INPUTS)
    return str(appo.TARGET_ACTION_DIST_LOGITS_KEY)


def soft_actor_critic_modules() -> tuple[Any, Any]:
    """The default modules of SAC and CQL; both had no `Default` in their names in Ray 2.40."""
    try:
        from ray.rllib.algorithms.cql.torch.default_cql_torch_rl_module import (
            DefaultCQLTorchRLModule as CQLModule,
        )
        from ray.rllib.algorithms.sac.torch.default_sac_torch_rl_module import (
            DefaultSACTorchRLModule as SACModule,
        )
    except ImportError:
        from ray.rllib.algorithms.cql.torch.cql_torch_rl_module import CQLTorchRLModule as CQLModule
        from ray.rllib.algorithms.sac.torch.sac_torch_rl_module import SACTorchRLModule as SACModule
    return SACModule, CQLModule


def trains_discrete_sac() -> bool:
    """Whether today's SAC learns discrete actions; Ray 2.40 does not."""
    module, _ = soft_actor_critic_modules()
    return hasattr(module, "_forward_train_discrete")


def set_catalog(config: AlgorithmConfig, catalog: type) -> None:
    """Names what builds the networks of a config's default modules, in place.

    Modules that the config names stay what they are, and so do catalogs. The property
    `rl_module_spec` merges the algorithm's defaults into what was told, so what was told is read.
    """
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec

    told = config._rl_module_spec
    if told is None:
        config.rl_module(rl_module_spec=RLModuleSpec(catalog_class=catalog))
        return
    several = isinstance(told, MultiRLModuleSpec)
    for spec in told.rl_module_specs.values() if several else [told]:
        if spec.module_class is None and spec.catalog_class is None:
            spec.catalog_class = catalog


def dqn_module() -> Any:
    """The default module of DQN; it was called after Rainbow in Ray 2.40."""
    try:
        from ray.rllib.algorithms.dqn.torch import default_dqn_torch_rl_module as module
    except ImportError:
        from ray.rllib.algorithms.dqn.torch import dqn_rainbow_torch_rl_module as module

        return module.DQNRainbowTorchRLModule
    return module.DefaultDQNTorchRLModule


def network_forward(module: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What computes the numbers that a module chooses actions by, without choosing.

    Modules of DQN give only the action by themselves; their Q-values have a public name since a
    release after 2.40.
    """
    if hasattr(module, "af"):
        found = module.compute_q_values if hasattr(module, "compute_q_values") else module._qf
    else:
        found = module._forward_inference
    return found  # type: ignore[no-any-return]  # Ray has no types


def q_values(module: Any, batch: Mapping[str, Any]) -> Any:
    """The Q-values of a default DQN module `[B, actions]`; the method was `_qf` in Ray 2.40."""
    compute = getattr(module, "compute_q_values", None) or module._qf
    return compute(batch)["qf_preds"]


def has_q_values(module: Any) -> bool:
    """Whether `q_values` can be asked of a module."""
    return hasattr(module, "compute_q_values") or hasattr(module, "_qf")


#: What no Q-value of an action that may be taken is below; old models masked with -3.4e38.
_MASKED = -1e38


def explore_zeros(module: Any) -> None:
    """Lets a module of DQN explore actions whose Q-value is zero, as RLlib always did.

    Ray (2.40 - 2.60) takes 0.0 for a masked action. A network that has hardly learned gives only
    zeros where the observation is zero; then Ray dies of an "invalid multinomial distribution".
    """
    if hasattr(module, "epsilon_schedule") and not getattr(module, "uses_noisy", False):
        module._forward_exploration = partial(explore, module)


def explore(module: Any, batch: Mapping[str, Any], t: int, **_: Any) -> dict[str, Any]:
    """Chooses the best action, or with the probability epsilon any that is not masked."""
    import torch

    out = (getattr(module, "compute_q_values", None) or module._qf)(batch)
    values = out["qf_preds"]
    module.epsilon_schedule.update(t)
    allowed = (values > _MASKED).float().reshape(-1, values.shape[-1])
    greedy = values.argmax(dim=-1)
    drawn = torch.multinomial(allowed, 1).reshape(greedy.shape)
    explores = torch.rand(greedy.shape, device=greedy.device)
    chosen = torch.where(explores < module.epsilon_schedule.get_current_value(), drawn, greedy)
    return {"actions": chosen} | {k: v for k, v in out.items() if k == "state_out"}


def action_distribution(action_space: Any) -> Any:
    """The class of torch's action distribution for a space, as Ray's catalog chooses it."""
    from ray.rllib.core.models.catalog import Catalog

    return Catalog._get_dist_cls_from_action_space(action_space=action_space, framework="torch")
