"""The default RLModules, their parts and the catalogs that build them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.ray_versions import renames
from rllib_compat.ray_versions.configs import plain_model_config

if TYPE_CHECKING:
    import gymnasium
    from gymnasium import Space

    from rllib_compat.ray_versions.types import AlgorithmConfig, Learner, RLModule


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
    """The module of torch's action distributions."""
    return renames.resolve("torch_distribution")


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
    """The default modules of SAC and CQL."""
    names = "DefaultSACTorchRLModule", "DefaultCQLTorchRLModule"
    return renames.resolve(names[0]), renames.resolve(names[1])


def set_catalog(config: AlgorithmConfig, catalog: type) -> None:
    """Names what builds the networks of a config's default modules, in place.

    Modules that the config names stay what they are, unless their class `takes_catalogs`; so do
    catalogs.
    """
    for spec in changed_specs(config).values():
        default = spec.module_class is None or getattr(spec.module_class, "takes_catalogs", False)
        if default and spec.catalog_class is None:
            spec.catalog_class = catalog


def set_module_class(config: AlgorithmConfig, cls: type) -> None:
    """Names the class of a config's default modules, in place; others stay what they are."""
    for spec in changed_specs(config).values():
        if spec.module_class is None:
            spec.module_class = cls


def model_configs_by_policy(config: AlgorithmConfig) -> dict[str, dict[str, Any]]:
    """The model configs in a config, by policy; the one for all policies by ""."""
    of_all, spec = plain_model_config(config._model_config), config._rl_module_spec
    if spec is None:
        return {"": of_all}
    specs = getattr(spec, "rl_module_specs", None) or {"": spec}
    own = {policy: plain_model_config(of.model_config) for policy, of in specs.items()}
    return {**own, "": {**of_all, **own.get("", {})}}


def changed_specs(config: AlgorithmConfig) -> dict[str, Any]:
    """The specs of a config's modules, to be changed in place; an empty one where it has none.

    They are given by policy; under "" what all of them have.

    The property `rl_module_spec` merges the algorithm's defaults into what was set, so what was
    set is read.
    """
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec

    if config._rl_module_spec is None:
        config.rl_module(rl_module_spec=RLModuleSpec())
    spec = config._rl_module_spec
    return dict(spec.rl_module_specs) if isinstance(spec, MultiRLModuleSpec) else {"": spec}


def model_configs(learner: Learner) -> dict[str, dict[str, Any]]:
    """The model config of each of a learner's modules; Ray has a dataclass of some."""
    modules = {name: learner.module[name].unwrapped() for name in learner.module.keys()}  # noqa: SIM118 - it is no dict
    return {name: plain_model_config(module.model_config) for name, module in modules.items()}


def names_acted_with(module: RLModule) -> set[str]:
    """The weights that learners send to a module that acts.

    It may have others, too, which are those that it began with: in Ray 2.40 a head for values, and
    in every Ray where the module has a state.
    """
    others = tuple(f"{name}." for name in unsent_layers(module))
    return {name for name in module.get_state() if not f"{name}.".startswith(others)}


def unsent_layers(module: object) -> list[str]:
    """The layers of a module that learn, and that are not sent to those that act."""
    return list(getattr(module, "get_non_inference_attributes", list)())


def copy_with_critics(module: Any) -> Any:
    """A new module like one that only acts, which has its critics and targets, too."""
    args, options = module.get_ctor_args_and_kwargs()
    made = type(module)(*args, **{**options, "inference_only": False})
    return made.to(next(module.parameters()).device)


def dqn_module() -> Any:
    """The default module of DQN."""
    return renames.resolve("DefaultDQNTorchRLModule")


def dqn_catalog() -> Any:
    """What builds its networks."""
    return renames.resolve("DQNCatalog")


def network_forward(module: RLModule) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What computes the numbers that a module chooses actions by, without choosing.

    Modules of DQN and bandits give only the action by themselves.
    """
    if hasattr(module, "af"):
        return partial(q_outputs, module)
    if hasattr(module, "rate_actions"):
        return lambda batch: {"qf_preds": module.rate_actions(batch)}
    return module._forward_inference


def q_outputs(module: object, batch: Mapping[str, Any]) -> Any:
    """What a module of DQN computes, by Ray's names."""
    return renames.method(module, "compute_q_values")(batch)


def acting_layers(module: Any) -> list[Any] | None:
    """The layers that a module's distribution of actions comes from; None: it does more."""
    names = ("_forward", "_forward_exploration", "_forward_inference")
    if not _is_plain_actor_critic(module, names):
        return None
    shared = getattr(module.encoder, "encoder", None)
    return layers_of(module.encoder.actor_encoder if shared is None else shared, module.pi)


def _is_plain_actor_critic(module: Any, names: Iterable[str]) -> bool:
    """Whether a module has the encoder of Ray's default for PPO, and its methods of some names."""
    from ray.rllib.core.models.torch.encoder import TorchActorCriticEncoder

    base: Any = renames.resolve("DefaultPPOTorchRLModule")
    own = vars(module)
    return type(getattr(module, "encoder", None)) is TorchActorCriticEncoder and all(
        name not in own and getattr(type(module), name) is getattr(base, name) for name in names
    )


def _q_layers(module: Any, prefix: str = "") -> list[Any] | None:
    """The layers that a module's Q-values come from, or its target's; None: it does more."""
    plain = type(module) is dqn_module() and not module.uses_dueling and module.num_atoms == 1
    models = (getattr(module, f"{prefix}{name}", None) for name in ("encoder", "af"))
    return layers_of(*models) if plain else None


def training_pass(module: Any) -> Any:
    """What computes a module's training pass: its own function, or its layers alone."""
    found = None
    if _is_plain_actor_critic(module, ("_forward_train",)):
        encoder, head = module.encoder, layers_of(module.pi)
        shared = getattr(encoder, "encoder", None)
        models = (encoder.actor_encoder, encoder.critic_encoder) if shared is None else (shared,)
        bodies = [layers for model in models if (layers := layers_of(model))]
        if head and len(bodies) == len(models):
            found = partial(_train_actor_critic, bodies, head)
    elif "_forward_train" not in vars(module):
        layers, targets = _q_layers(module), _q_layers(module, "_target_")
        if layers and targets:
            found = partial(_train_q_values, layers, targets, double=module.uses_double_q)
    return found or module._forward_train


def _train_actor_critic(
    bodies: list[list[Any]], head: list[Any], batch: Mapping[str, Any]
) -> dict[str, Any]:
    """What a policy and a critic, which may share layers, make of a batch."""
    features = [through(body, batch["obs"]) for body in bodies]
    return {"action_dist_inputs": through(head, features[0]), "embeddings": features[-1]}


def _train_q_values(
    layers: list[Any], targets: list[Any], batch: Mapping[str, Any], *, double: bool
) -> dict[str, Any]:
    """The Q-values of a batch, and those of the next observations, which have no gradient."""
    import torch

    with torch.no_grad():
        found = {"qf_target_next_preds": through(targets, batch["new_obs"])}
        if double:
            found["qf_next_preds"] = through(layers, batch["new_obs"])
    return found | {"qf_preds": through(layers, batch["obs"])}


def layers_of(*models: Any) -> list[Any] | None:
    """The layers of Ray's models, one behind the other; None: they are no plain ones.

    A layer is a part of four modules, each of which takes as long to call as a small layer.
    """
    from ray.rllib.core.models.torch.encoder import TorchMLPEncoder
    from ray.rllib.core.models.torch.heads import TorchMLPHead

    found = []
    for model in models:
        if type(model) not in (TorchMLPEncoder, TorchMLPHead) or getattr(
            model, "clip_log_std", False
        ):
            return None
        found += list(model.net.mlp)
    return None if have_hooks((*models, *found)) else [layer.forward for layer in found]


def have_hooks(layers: Iterable[Any]) -> bool:
    """Whether something hears of what layers compute when they are called."""
    return any(layer._forward_hooks or layer._forward_pre_hooks for layer in layers)


def through(layers: Iterable[Callable[[Any], Any]], value: Any) -> Any:
    """What comes out of layers."""
    for layer in layers:
        value = layer(value)
    return value


def q_values(module: object, batch: Mapping[str, Any]) -> Any:
    """The Q-values of a module of DQN `[B, actions]`."""
    return q_outputs(module, batch)["qf_preds"]


def has_q_values(module: RLModule) -> bool:
    """Whether `q_values` can be asked of a module."""
    return hasattr(module, renames.name_of(module, "compute_q_values"))


def chooses_by_q_values(module: RLModule) -> bool:
    """Whether actions are chosen by Q-values; a module of SAC has an actor beside them."""
    return has_q_values(module) and not hasattr(module, "pi_encoder")


#: What no Q-value of an action that may be taken is below; old models masked with -3.4e38.
_MASKED = -1e38


def explores(module: RLModule) -> bool:
    """Whether a module's policy samples actions where the algorithm's others do."""
    return bool(getattr(module, "samples_actions", True))


def set_explores(module: Any, value: bool) -> None:
    """Sets what `explores` returns; the module's exploration passes follow it."""
    if not hasattr(module, "samples_actions"):
        module._forward_exploration = partial(_explore_if_set, module, module._forward_exploration)
    module.samples_actions = value


@contextmanager
def following(module: Any, explore: bool | None) -> Iterator[None]:
    """Lets a module follow a caller's `explore` instead of its policy's own setting."""
    changed = bool(explore) and not explores(module)
    if changed:
        module.samples_actions = True
    try:
        yield
    finally:
        if changed:
            module.samples_actions = False


def _explore_if_set(module: Any, first: Any, batch: Mapping[str, Any], **given: Any) -> Any:
    return first(batch, **given) if module.samples_actions else module._forward_inference(batch)


def unmask_zero_q_values(module: RLModule) -> None:
    """Lets a module of DQN explore actions whose Q-value is zero, as RLlib always did.

    Ray (2.40 - 2.60) takes 0.0 for a masked action. A network that has hardly learned gives only
    zeros where the observation is zero; then Ray fails with an "invalid multinomial distribution".
    Modules that say themselves how they explore are left alone.
    """
    rays = getattr(type(module)._forward_exploration, "__module__", "").startswith("ray.")
    if rays and hasattr(module, "epsilon_schedule") and not getattr(module, "uses_noisy", False):
        module._forward_exploration = partial(explore, module, layers=_q_layers(module))


def explore(
    module: Any,
    batch: Mapping[str, Any],
    t: int,
    *,
    temperature: float | None = None,
    layers: list[Any] | None = None,
    **_: object,
) -> dict[str, Any]:
    """Chooses the best action, or with the probability epsilon any that is not masked.

    With a temperature, actions are drawn by values divided by it, in the place of the best one.
    Where `layers` are given, values are what comes out of them.
    """
    import torch

    with torch.no_grad():
        out = {"qf_preds": through(layers, batch["obs"])} if layers else q_outputs(module, batch)
    values = out["qf_preds"]
    # In numpy each draw takes a tenth of the time that it takes in torch.
    rows = values.cpu().numpy().reshape(-1, values.shape[-1])
    chosen = rows.argmax(-1)
    if temperature is not None:  # the largest of logits with Gumbel noise is a draw by them
        chosen = (rows / temperature + np.random.gumbel(size=rows.shape)).argmax(-1)
    explores = np.random.random(len(rows)) < _value_at(module.epsilon_schedule, t)
    if explores.any():
        chances = np.random.random(rows.shape) * (rows > _MASKED)
        chosen = np.where(explores, chances.argmax(-1), chosen)
    actions = torch.from_numpy(chosen.reshape(values.shape[:-1]))
    actions = actions if values.is_cpu else actions.to(values.device)
    return {"actions": actions} | {k: v for k, v in out.items() if k == "state_out"}


def _value_at(schedule: Any, t: int) -> float:
    """What a schedule is at a step; it is there afterwards. Ray makes a tensor for each step."""
    if not schedule.use_schedule:
        return float(schedule.get_current_value())
    value = float(schedule._schedule.value(t=t))
    schedule._curr_value.fill_(value)
    return value


def action_distribution(action_space: Space[Any]) -> Any:
    """The class of torch's action distribution for a space, as Ray's catalog chooses it."""
    from ray.rllib.core.models.catalog import Catalog

    made = Catalog._get_dist_cls_from_action_space(action_space=action_space, framework="torch")
    return _of_parts(made, action_space)


def _of_parts(distribution: Any, action_space: gymnasium.Space[Any]) -> Any:
    """The distribution, where a choice of a single step has its probability among other parts.

    Ray's (until 2.60 at least) takes a time of one step for a dimension too many.
    """
    import gymnasium

    if not isinstance(action_space, gymnasium.spaces.Tuple | gymnasium.spaces.Dict):
        return distribution
    import torch
    import tree

    class MultiPartDistribution(distribution):  # type: ignore[misc]
        def logp(self, value: object) -> Any:
            if isinstance(value, torch.Tensor):  # all parts in one vector
                return super().logp(value)
            children, parts = self._flat_child_distributions, tree.flatten(value)
            return sum(child.logp(part) for child, part in zip(children, parts, strict=True))

    return MultiPartDistribution


class EncoderMixin:
    """A base of a catalog, in front of Ray's, that has other encoders in the place of its own."""

    @classmethod
    def replace_encoder(
        cls, made: object, space: object, options: Mapping[str, Any], actions: object
    ) -> Any:
        """The config of an encoder, or of what makes features for an LSTM.

        Ray does not pass the action space to `get_tokenizer_config`.
        """
        del space, options, actions
        return made

    @classmethod
    def _get_dist_cls_from_action_space(
        cls, action_space: gymnasium.Space[Any], **options: object
    ) -> Any:
        made = super()._get_dist_cls_from_action_space(action_space, **options)  # type: ignore[misc]
        return made and _of_parts(made, action_space)

    @classmethod
    def _get_encoder_config(
        cls,
        observation_space: gymnasium.Space[Any],
        model_config_dict: Mapping[str, Any],
        action_space: gymnasium.Space[Any] | None = None,
    ) -> Any:
        made = super()._get_encoder_config(  # type: ignore[misc]  # of the catalog
            observation_space=observation_space,
            model_config_dict=model_config_dict,
            action_space=action_space,
        )
        return cls.replace_encoder(made, observation_space, model_config_dict, action_space)
