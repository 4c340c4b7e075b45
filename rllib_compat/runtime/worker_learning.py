"""What old workers learned by themselves, by their policies, which reach the learners."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rllib_compat.neutral.frozen import frozen
from rllib_compat.runtime.learner_info import NAMED, LearnerInfo, arrange
from rllib_compat.runtime.policy_mapping import ONLY_POLICY

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AnyBatch

#: From this Ray to that, what a model told stood among the statistics; since then beside them.
_MODEL_AMONG_STATS = Version("1.0"), Version("1.3")
#: Since this Ray, gradients have the name of their policy, whoever asks.
_GRADIENTS_NAMED = Version("1.12")


@frozen
class WorkerLearning:
    """Learns with a worker's policies.

    Attributes:
        policies: The policies by id.
        learns: Whether a policy, of whose steps this is a batch, learns.
        ray: The Ray in whose form it is told; None: the last one.
    """

    policies: Mapping[str, Any]
    learns: Callable[[str, object], bool]
    ray: Version | None

    def learn_on_batch(self, samples: AnyBatch) -> dict[str, Any]:
        """What each policy tells of learning from its part of a batch."""
        told = dict(self._by_policy("learn_on_batch", samples))
        since, until = _MODEL_AMONG_STATS
        for of_policy in told.values() if self.ray and since <= self.ray < until else ():
            if {"model", "learner_stats"} <= of_policy.keys():
                of_policy["learner_stats"]["model"] = of_policy.pop("model")
        return told[ONLY_POLICY] if told and self._is_unnamed(samples, NAMED) else told

    def learn_in_minibatches(
        self,
        samples: AnyBatch,
        num_sgd_iter: int,
        sgd_minibatch_size: int,
        standardize_fields: Collection[str],
    ) -> dict[str, Any]:
        """What each policy tells in the mean; see `LegacyWorker.sample_and_learn`."""
        from ray.rllib.utils.sgd import do_minibatch_sgd

        known = {name: policy for name, policy in self.policies.items() if self.learns(name, None)}
        told = do_minibatch_sgd(
            samples, known, self, num_sgd_iter, sgd_minibatch_size, standardize_fields
        )
        return arrange(LearnerInfo(told), self.ray, named=True)

    def gradients(self, samples: AnyBatch, single_agent: bool | None) -> tuple[Any, dict[str, Any]]:
        """The gradients, and what is told of them; see `LegacyWorker.compute_gradients`."""
        told = dict(self._by_policy("compute_gradients", samples))
        if single_agent or self._is_unnamed(samples, _GRADIENTS_NAMED):
            of_policy, info = told[ONLY_POLICY]
            return of_policy, {**info, "batch_count": samples.count}
        by_policy = {policy_id: of_policy for policy_id, (of_policy, _) in told.items()}
        infos = {policy_id: info for policy_id, (_, info) in told.items()}
        return by_policy, {**infos, "batch_count": samples.count}

    def _by_policy(self, method: str, samples: AnyBatch) -> Iterator[tuple[str, Any]]:
        """What each policy that learns answers for its part of a batch."""
        for policy_id, batch in samples.as_multi_agent().policy_batches.items():
            if self.learns(policy_id, batch):
                yield policy_id, getattr(self.policies[policy_id], method)(batch)

    def _is_unnamed(self, samples: AnyBatch, named: Version) -> bool:
        """Whether a batch is of one policy, and what the Ray told of it had no name."""
        return self.ray is not None and self.ray < named and not hasattr(samples, "policy_batches")
