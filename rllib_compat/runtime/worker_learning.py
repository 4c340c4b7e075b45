"""Learning through a worker: `worker.learn_on_batch` and the like, done by the learners."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rllib_compat.neutral.frozen import frozen
from rllib_compat.runtime.learner_info import NAMED, LearnerInfo, arrange
from rllib_compat.runtime.policy_mapping import ONLY_POLICY

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AnyBatch

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
