"""`SampleBatch` with the static method that Ray 2.x left as a stub that raises."""

from __future__ import annotations

from typing import Any

from ray.rllib.policy.sample_batch import SampleBatch as RaySampleBatch
from ray.rllib.policy.sample_batch import concat_samples

__all__ = ["SampleBatch"]


class _SameAsRays(type):
    """Batches that Ray makes are of its own class, and are instances all the same."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, RaySampleBatch)


class SampleBatch(RaySampleBatch, metaclass=_SameAsRays):  # type: ignore[misc]  # Ray has no types
    """Ray's batch."""

    concat_samples = staticmethod(concat_samples)
