"""Old behavior that `AlgorithmConfig` has no setting for, and configs of many policies."""

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
    """Adds the behavior of old workers to a config of the new API stack, in place.

    It adds the preprocessing of observations, DQN's exploration by noisy nets, soft Q and parameter
    noise, callbacks in learners, legacy optimizers, the recording of logged actions, an env runner
    for RLlib's `VectorEnv`, a replay buffer with weights, CQL's learner for single batches, SAC's
    learner for discrete actions, and observation filters of IMPALA and APPO that count all
    observations.
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


#: With more policies, Ray's own cache is too slow, and loading a checkpoint needs `OverridesCache`.
MANY = 5

T = TypeVar("T")


class Interner:
    """A function that returns the first of equal values."""

    def __init__(self) -> None:
        self._seen: dict[bytes, Any] = {}

    def __call__(self, value: T) -> T:
        """Returns the value or an earlier equal one; for values that are not changed in place."""
        shared: T = self._seen.setdefault(pickle.dumps(value), value)
        return shared


@public("rllib_compat.adapters")
class OverridesCache(dict[str, Any]):
    """A dict whose copies and pickles are empty.

    `AlgorithmConfig.get_config_for_module` creates a module's config as a deep copy of the main
    one, including the cache of all earlier ones: each module with overrides doubles the time, so
    that 20 modules do not finish (Ray 2.40 – 2.60, `algorithm_config.py`). With this cache, copies
    have none.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> OverridesCache:
        """Returns an empty cache: the copy creates its own configs when needed."""
        return OverridesCache()

    def __reduce__(self) -> tuple[type[OverridesCache], tuple[()]]:
        """Pickles as an empty cache."""
        return OverridesCache, ()


def share_parts_of_policies(config: AlgorithmConfig) -> None:
    """Makes all policies share one config, and equal spaces one object.

    Whenever a module is built, `get_multi_agent_setup` gives each policy without its own config a
    deep copy of the algorithm's, including all policies: with 300 policies, this takes minutes.
    Only the old API stack reads these configs; a policy's own settings are in the overrides of its
    module. While an algorithm is built, its config is copied about 20 times. A deep copy copies
    each object once, so policies share equal spaces.
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
    """Sets an `OverridesCache` in a config with more than `MANY` overrides.

    Returns:
        Whether it was set.
    """
    if len(config.algorithm_config_overrides_per_module) <= MANY:
        return False
    configs.set_cache_of_module_configs(config, OverridesCache())
    return True
