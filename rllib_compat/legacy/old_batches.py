"""`SampleBatch` with the static method that Ray 2.x left as a stub that raises."""

from __future__ import annotations

from ray.rllib.policy.sample_batch import SampleBatch, concat_samples

__all__ = ["SampleBatch"]

# Batches that Ray makes are of its own class: a subclass would not be theirs.
SampleBatch.concat_samples = staticmethod(concat_samples)
