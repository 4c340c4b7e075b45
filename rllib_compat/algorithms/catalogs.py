"""Catalogs of the networks: those of old Rays, and today's where only these can be meant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from ray.rllib.algorithms.bc.bc_catalog import BCCatalog as RayBCCatalog
from ray.rllib.algorithms.ppo.ppo_catalog import PPOCatalog as RayPPOCatalog
from ray.rllib.algorithms.sac.sac_catalog import SACCatalog as RaySACCatalog

from rllib_compat.networks import fresh
from rllib_compat.networks.modules.configured import ConfiguredModule, network_of
from rllib_compat.networks.modules.layers import (
    OF_A_HEAD,
    InitialWeightsMixin,
    OwnEncoders,
    PreviousStepsMixin,
)
from rllib_compat.networks.previous_steps import LOOKING_BACK
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.ray_versions import configs, modules
from rllib_compat.registry import keys
from rllib_compat.runtime.connectors import set_previous_steps

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


_RayDQNCatalog: Any = modules.dqn_catalog()


class PPOCatalog(PreviousStepsMixin, OwnEncoders, RayPPOCatalog):  # type: ignore[misc]  # no types
    """Today's actor-critic networks."""

    #: What builds the same for a network whose weights are there already.
    of_ray = RayPPOCatalog


class SACCatalog(OwnEncoders, RaySACCatalog):  # type: ignore[misc]
    """Today's networks of SAC."""


class DQNCatalog(OwnEncoders, _RayDQNCatalog):  # type: ignore[misc]
    """Today's networks of DQN."""


class BCCatalog(OwnEncoders, RayBCCatalog):  # type: ignore[misc]
    """Today's networks of BC."""


#: An algorithm → what builds its networks. Subclasses of these have rows of their own: BC is
#: one of MARWIL.
CATALOGS = {
    "PPO": PPOCatalog,
    "DDPPO": PPOCatalog,
    "APPO": PPOCatalog,
    "IMPALA": PPOCatalog,
    "MARWIL": PPOCatalog,
    "SAC": SACCatalog,
    "CQL": SACCatalog,
    "DQN": DQNCatalog,
    "APEX": DQNCatalog,
    "BC": BCCatalog,
}

#: What asks an LSTM to see both of the step before, until Ray 1.1.
_BOTH = "lstm_use_prev_action_reward"

#: How many actions and rewards of the steps before an attention net sees.
_ATTENDED = ("attention_use_n_prev_actions", "attention_use_n_prev_rewards")


def set_catalogs(config: AlgorithmConfig) -> None:
    """Names what builds the networks of a config's default modules, in place.

    Modules and catalogs of the user's own stay what they are, and so do converted networks.

    Args:
        config: A config of one of Ray's algorithms, on either API stack. If its LSTM is to see
            the step before (`lstm_use_prev_action`, `lstm_use_prev_reward`), it has the connector
            `PreviousSteps`, as translated configs have.
    """
    catalog = CATALOGS.get(config.algo_class.__name__)
    if catalog is not None and config.enable_rl_module_and_learner:
        modules.set_catalog(config, catalog)


def use_legacy_networks(
    config: AlgorithmConfig,
    legacy: Mapping[str, Any] | None = None,
    *,
    algorithm: str | None = None,
    legacy_ray: str | None = None,
    converted: Collection[str] = (),
) -> None:
    """Lets a config's default modules be those of the old networks, with new weights, in place.

    Modules of the user's own stay what they are, and so do converted networks, and networks that
    only today's Ray has (`fresh.only_todays`).

    Args:
        config: A config of one of Ray's algorithms, as `set_catalogs` takes it.
        legacy: The legacy config of the networks, `model` and all; None: what the config gives its
            modules is meant as an old `model`.
        algorithm: The algorithm's legacy name; None: today's.
        legacy_ray: The Ray whose networks they are; None: the last that had them.
        converted: The policies whose modules are a checkpoint's, also where Ray has their class.
    """
    set_catalogs(config)
    if legacy is None:  # without the layers that only today's critics have
        module_config = config.model_config.items()
        legacy = {"model": {k: v for k, v in module_config if not k.startswith("fusionnet_")}}
    algorithm = algorithm or config.algo_class.__name__
    if not config.enable_rl_module_and_learner or not fresh.makes(algorithm, legacy):
        return
    default = config.get_default_rl_module_spec().module_class
    looks_back = {key: bool(config.model_config.get(key)) for key in LOOKING_BACK}
    attends = {}
    if fresh.attends(algorithm, legacy):
        attends = {key: int(legacy["model"].get(key) or 0) for key in _ATTENDED}
    actions, rewards = map(int, (attends or looks_back).values())
    named = False
    for policy, spec in modules.changed_specs(config).items():
        given = spec.module_class
        if policy in converted or (converted and not policy):  # "" is the only one
            continue
        if given is not None and not getattr(given, "takes_catalogs", False):
            continue
        own = fresh.of_networks(_of_policy(legacy, policy))
        settings = ModelSettings.from_config(
            fresh.of_networks(legacy),
            {**own, "model": {**own.get("model", {}), **looks_back, **attends, _BOTH: False}},
            algorithm=algorithm,
            ray=legacy_ray,
        )
        spec.module_class = ConfiguredModule
        # Ray 2.40 adds what its algorithms include only if a spec gives none.
        module_config = {**config.model_config, **configs.plain_model_config(spec.model_config)}
        spec.model_config = {**module_config, **network_of(settings, given or default)}
        named = True
    if named and (actions or rewards):
        set_previous_steps(config, actions, rewards)


def _of_policy(legacy: Mapping[str, Any], policy: str) -> Mapping[str, Any]:
    spec = keys.policies_of(legacy).get(policy)
    found = spec[3] if isinstance(spec, (tuple, list)) and len(spec) > 3 else None
    found = getattr(spec, "config", found)
    return found if isinstance(found, Mapping) else {}


class ActorCriticCatalog(InitialWeightsMixin, PPOCatalog):
    """Today's actor-critic networks, which begin as they did."""

    def build_actor_critic_encoder(self, framework: str) -> Any:
        """The hidden layers of actor and critic."""
        return self._init_weights(super().build_actor_critic_encoder(framework))

    def build_pi_head(self, framework: str) -> Any:
        """The actor's last layer."""
        return self._init_weights(super().build_pi_head(framework), self._of_a_head)

    def build_vf_head(self, framework: str) -> Any:
        """The critic's last layer."""
        return self._init_weights(super().build_vf_head(framework), self._of_a_head)

    @property
    def _of_a_head(self) -> float | None:
        return None if self._model_config_dict.get("use_lstm") else OF_A_HEAD
