"""`ray.rllib.execution` of Ray 0.8.5 – 1.13: what execution plans are made of.

A plan says what a trainer does, as a flow of batches: sample, put together, learn. Its operators
work with the rollout workers of the old API stack; what only TensorFlow could do is not here.
"""

from rllib_compat.execution.concurrency_ops import Concurrently, Dequeue, Enqueue
from rllib_compat.execution.metric_ops import (
    CollectMetrics,
    OncePerTimeInterval,
    OncePerTimestepsElapsed,
    StandardMetricsReporting,
)
from rllib_compat.execution.replay_buffer import LocalReplayBuffer
from rllib_compat.execution.replay_ops import (
    MixInReplay,
    Replay,
    SimpleReplayBuffer,
    StoreToReplayBuffer,
    WaitUntilTimestepsElapsed,
)
from rllib_compat.execution.rollout_ops import (
    AsyncGradients,
    ConcatBatches,
    ParallelRollouts,
    SelectExperiences,
    StandardizeFields,
)
from rllib_compat.execution.train_ops import (
    ApplyGradients,
    AverageGradients,
    ComputeGradients,
    MultiGPUTrainOneStep,
    TrainOneStep,
    TrainTFMultiGPU,
    UpdateTargetNetwork,
)

__all__ = [
    "ApplyGradients",
    "AsyncGradients",
    "AverageGradients",
    "CollectMetrics",
    "ComputeGradients",
    "ConcatBatches",
    "Concurrently",
    "Dequeue",
    "Enqueue",
    "LocalReplayBuffer",
    "MixInReplay",
    "MultiGPUTrainOneStep",
    "OncePerTimeInterval",
    "OncePerTimestepsElapsed",
    "ParallelRollouts",
    "Replay",
    "SelectExperiences",
    "SimpleReplayBuffer",
    "StandardMetricsReporting",
    "StandardizeFields",
    "StoreToReplayBuffer",
    "TrainOneStep",
    "TrainTFMultiGPU",
    "UpdateTargetNetwork",
    "WaitUntilTimestepsElapsed",
]
