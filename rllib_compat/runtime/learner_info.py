"""Learner statistics (`info/learner`) by the names and in the structure of a config's Ray.

`WorkerLearning` returns them from `worker.learn_on_batch` and the like.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from packaging.version import Version

from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.policy_id import SHARED
from rllib_compat.ray_versions.types import AnyBatch
from rllib_compat.runtime.policy_mapping import ONLY_POLICY

#: Since this Ray, a policy's numbers are below `learner_stats`.
_NESTED = Version("1.3")
#: Since this Ray, a single policy has its id, too.
NAMED = Version("1.0")
#: The config keys of algorithms with a replay buffer.
_REPLAYING = ("buffer_size", "replay_buffer_size")


class LearnerInfo(dict[str, Any]):
    """The dict below `info/learner`, which can also be read by the paths of other Rays.

    The last path was `info/learner/<policy>/learner_stats/<name>`. Until Ray 1.2, there was no
    `learner_stats`; until 0.8, a single policy had no id either.
    """

    def __missing__(self, name: str) -> Any:
        """Looks the name up where newer or older Rays had it."""
        if name == ONLY_POLICY and dict.__contains__(self, SHARED):  # the config names no policy
            return self[SHARED]
        for inner in ("learner_stats", ONLY_POLICY):
            if name != inner and dict.__contains__(self, inner):
                return self[inner][name]
        if name in ("learner_stats", ONLY_POLICY) and _is_numbers(self):
            return self
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        """Whether the value is at any of the paths; iteration has each only once."""
        return self.get(name) is not None or dict.__contains__(self, name)

    def get(self, name: Any, default: object = None) -> Any:
        """Returns the value at any of the paths, or the default."""
        try:
            return self[name]
        except KeyError:
            return default


def names_only_policy(algorithm: str, config: Mapping[str, Any]) -> bool:
    """Whether results of Ray 0.5 – 0.8 had the id of a single policy.

    Those of optimizers with a replay buffer did, DDPPO's, and PPO's on TensorFlow.
    """
    torch = config.get("use_pytorch") or config.get("framework") == "torch"
    return (
        algorithm == "DDPPO"
        or (algorithm == "PPO" and not torch)
        or not config.keys().isdisjoint(_REPLAYING)
    )


def arrange(by_policy: LearnerInfo, ray: Version | None, *, named: bool) -> LearnerInfo:
    """Arranges statistics of policies in the structure of a Ray.

    Args:
        by_policy: Policy → its `learner_stats` and other values.
        ray: The Ray; None: the last legacy one.
        named: Whether a single policy has its id also in Rays that may leave it out.
    """
    _complete(by_policy)
    if ray is None or ray >= _NESTED:
        return by_policy
    numbers = {policy: numbers_of(of_policy) for policy, of_policy in by_policy.items()}
    if ray < NAMED and not named and set(numbers) == {ONLY_POLICY}:
        return LearnerInfo(numbers[ONLY_POLICY])
    return LearnerInfo(numbers)


def numbers_of(of_policy: Any) -> Any:
    """Returns a policy's numbers and its model's metrics, as until Ray 1.2."""
    stats = dict.get(of_policy, "learner_stats") if isinstance(of_policy, dict) else None
    if stats is None:
        return of_policy
    errors = {name: of_policy[name] for name in ("td_error",) if dict.__contains__(of_policy, name)}
    return LearnerInfo({**stats, **errors, "model": of_policy.get("model", {})})


def _is_numbers(stats: Mapping[str, Any]) -> bool:
    return any(isinstance(value, (int, float)) for value in stats.values())


def _complete(by_policy: Mapping[str, Any]) -> None:
    """Adds the values that old policies returned beside `learner_stats`, empty or 0."""
    for of_policy in by_policy.values():
        stats = dict.get(of_policy, "learner_stats") if isinstance(of_policy, dict) else None
        if not isinstance(stats, dict):
            continue
        stats.setdefault("allreduce_latency", 0.0)
        for name in ("custom_metrics", "model"):
            of_policy.setdefault(name, {})
        of_policy.setdefault(
            "num_agent_steps_trained", float(stats.get("num_module_steps_trained", 0))
        )


# The current name of a learner's value → its legacy name, below `learner_stats`.
LEARNER_STATS = {
    "default_optimizer_learning_rate": "cur_lr",
    "curr_kl_coeff": "cur_kl_coeff",
    "mean_kl_loss": "kl",
    "curr_entropy_coeff": "entropy_coeff",
    "gradients_default_optimizer_global_norm": "grad_gnorm",
    "qf_mean": "mean_q",
    "qf_max": "max_q",
    "qf_min": "min_q",
    "td_error_mean": "mean_td_error",
    "pi_loss": "policy_loss",
    "vf_explained_variance": "vf_explained_var",
    "moving_avg_sqd_adv_norm": "moving_average_sqd_adv_norm",
}
# The same for the losses of SAC and CQL.
ACTOR_CRITIC_STATS = {"policy_loss": "actor_loss", "qf_loss": "critic_loss"}

# Values that learners log by their old names: the rates of this iteration. By the current names,
# Ray logs those of the next one.
USED = ("cur_lr", "entropy_coeff", "cur_kl_coeff")

# Values that a learner logs for each of its modules, also for those that it has not trained.
HELD = {
    "num_trainable_parameters",
    "num_non_trainable_parameters",
    "curr_entropy_coeff",
    "curr_kl_coeff",
    *USED,
}


def learner_stats(stats: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a learner's values by their legacy names."""
    names = LEARNER_STATS | (ACTOR_CRITIC_STATS if "alpha_value" in stats else {})
    found = {names.get(name, name): value for name, value in stats.items()}
    if "qf_twin_loss" in stats:  # old Rays logged the mean of both critics
        found["critic_loss"] = (stats["qf_loss"] + stats["qf_twin_loss"]) / 2
    return found | {name: stats[name] for name in USED if name in stats}


#: From the first Ray to before the second, a model's metrics were among `learner_stats`.
_MODEL_AMONG_STATS = Version("1.0"), Version("1.3")
#: Since this Ray, gradients are always keyed by policy.
_GRADIENTS_NAMED = Version("1.12")


@frozen
class WorkerLearning:
    """Learns with a worker's policies.

    Attributes:
        policies: The policies by id.
        learns: Whether a policy learns from a batch: takes its id and the batch.
        ray: The Ray whose form results have; None: the last legacy one.
    """

    policies: Mapping[str, Any]
    learns: Callable[[str, object], bool]
    ray: Version | None

    def learn_on_batch(self, samples: AnyBatch) -> dict[str, Any]:
        """Learns from a batch, and returns the statistics by policy."""
        stats = dict(self._by_policy("learn_on_batch", samples))
        since, until = _MODEL_AMONG_STATS
        for of_policy in stats.values() if self.ray and since <= self.ray < until else ():
            if {"model", "learner_stats"} <= of_policy.keys():
                of_policy["learner_stats"]["model"] = of_policy.pop("model")
        return stats[ONLY_POLICY] if stats and self._is_unnamed(samples, NAMED) else stats

    def learn_in_minibatches(
        self,
        samples: AnyBatch,
        num_sgd_iter: int,
        sgd_minibatch_size: int,
        standardize_fields: Collection[str],
    ) -> dict[str, Any]:
        """Learns in minibatches, and returns mean statistics; see `sample_and_learn`."""
        from ray.rllib.utils.sgd import do_minibatch_sgd

        known = {name: policy for name, policy in self.policies.items() if self.learns(name, None)}
        stats = do_minibatch_sgd(
            samples, known, self, num_sgd_iter, sgd_minibatch_size, standardize_fields
        )
        return arrange(LearnerInfo(stats), self.ray, named=True)

    def gradients(self, samples: AnyBatch, single_agent: bool | None) -> tuple[Any, dict[str, Any]]:
        """Computes gradients and their statistics; see `LegacyWorker.compute_gradients`."""
        computed = dict(self._by_policy("compute_gradients", samples))
        if single_agent or self._is_unnamed(samples, _GRADIENTS_NAMED):
            of_policy, info = computed[ONLY_POLICY]
            return of_policy, {**info, "batch_count": samples.count}
        by_policy = {policy_id: of_policy for policy_id, (of_policy, _) in computed.items()}
        infos = {policy_id: info for policy_id, (_, info) in computed.items()}
        return by_policy, {**infos, "batch_count": samples.count}

    def _by_policy(self, method: str, samples: AnyBatch) -> Iterator[tuple[str, Any]]:
        """Calls a method of each policy that learns with its part of a batch."""
        for policy_id, batch in samples.as_multi_agent().policy_batches.items():
            if self.learns(policy_id, batch):
                yield policy_id, getattr(self.policies[policy_id], method)(batch)

    def _is_unnamed(self, samples: AnyBatch, named: Version) -> bool:
        """Whether a batch is of one policy, and the Ray did not key its results by policy."""
        return self.ray is not None and self.ray < named and not hasattr(samples, "policy_batches")
