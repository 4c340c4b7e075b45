"""Old behaviour that no call of `AlgorithmConfig` can say, and configs of many policies."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any, TypeVar

from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import configs, replay

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


@public("rllib_compat.adapters")
def adapt_config(config: AlgorithmConfig) -> AlgorithmConfig:
    """Adds what old workers did by themselves to a config of the new API stack, in place.

    Observations are preprocessed where they are no arrays of floats, policies of DQN explore by
    noisy nets, soft Q and noise on their weights, callbacks that listen to learners are called by
    them, optimizers are what policies had, logged actions are recorded, RLlib's `VectorEnv` gets
    the env runner that takes one, replay buffers give the weights that learners ask for, CQL's
    learner takes the batches that CQL gives it, SAC's learns discrete actions on every Ray, and
    IMPALA's and APPO's observation filters count all that was seen.
    """
    from rllib_compat.runtime.connectors import add_preprocessors, may_need_preprocessors
    from rllib_compat.runtime.exploration import use_legacy_exploration
    from rllib_compat.runtime.external.envs import record_logged_actions
    from rllib_compat.runtime.learners import (
        use_callback_learner,
        use_discrete_learner,
        use_legacy_optimizer,
        use_one_batch_learner,
    )
    from rllib_compat.runtime.vector_envs import allow_vector_envs

    configs.merge_connectors_each_iteration(config)
    if may_need_preprocessors(config.env):  # else it is one of gymnasium's own
        add_preprocessors(config)
        record_logged_actions(config)
        allow_vector_envs(config)
    use_legacy_exploration(config)
    use_legacy_optimizer(config)
    use_callback_learner(config)
    use_one_batch_learner(config)
    use_discrete_learner(config)
    replay.use_weighted_buffer(config)
    return config


#: Up to here Ray's own cache is quick enough; beyond, loading a checkpoint needs `OverridesCache`.
MANY = 5

T = TypeVar("T")


class Interner:
    """Gives for each value the first one that was equal to it."""

    def __init__(self) -> None:
        self._seen: dict[bytes, Any] = {}

    def __call__(self, value: T) -> T:
        """The value, or an equal one; only for values that nobody changes in place."""
        shared: T = self._seen.setdefault(pickle.dumps(value), value)
        return shared


@public("rllib_compat.adapters")
class OverridesCache(dict[str, Any]):
    """A dict that is empty in every copy and in every pickle.

    `AlgorithmConfig.get_config_for_module` makes the config of each module as a deep copy of the
    main one, with the cache of all that were made before inside: every module with overrides
    doubles the work, and twenty of them never end (Ray 2.40 – 2.60, `algorithm_config.py`). A cache
    that is empty in every copy ends that; what it caches is the same.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> OverridesCache:
        """An empty one: the copy makes its own configs when it is asked for them."""
        return OverridesCache()

    def __reduce__(self) -> tuple[type[OverridesCache], tuple[()]]:
        """An empty one, for the same reason."""
        return OverridesCache, ()


def share_parts_of_policies(config: AlgorithmConfig) -> None:
    """Gives all policies one config, and equal spaces as one object.

    `get_multi_agent_setup` gives each policy without a config of its own a deep copy of the whole,
    with all policies inside, whenever a module is built: with 300 policies, minutes. Only the old
    API stack reads these configs; what a policy has for itself is in the overrides of its module.
    While an algorithm is built, its config is copied some twenty times. A deep copy copies an
    object once, however many hold it: so equal spaces of policies are one object.
    """
    policies = config.policies
    if not isinstance(policies, dict) or len(policies) <= MANY:
        return
    one, intern = type(config)(), Interner()
    made = {policy_id: copy.copy(spec) for policy_id, spec in policies.items()}
    for spec in made.values():
        if not spec.config:
            spec.config = one
        spec.observation_space = intern(spec.observation_space)
        spec.action_space = intern(spec.action_space)
    config.multi_agent(policies=made)


def limit_overrides_cache(config: AlgorithmConfig) -> bool:
    """Gives a config with many overrides the cache that does not grow in copies.

    Returns:
        Whether it needed one.
    """
    if len(config.algorithm_config_overrides_per_module) <= MANY:
        return False
    configs.set_cache_of_module_configs(config, OverridesCache())
    return True
