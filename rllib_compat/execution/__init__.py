"""`ray.rllib.execution` of Ray 0.8.5 – 1.13: the operators of execution plans.

An execution plan defines training as a flow of batches: sample, concatenate, learn. The operators
work with the rollout workers of the old API stack. Those that need TensorFlow are missing.
"""

from rllib_compat.neutral.public import lazy_exports

_FILES = {
    "concurrency_ops": ("Concurrently", "Dequeue", "Enqueue"),
    "metric_ops": (
        "CollectMetrics",
        "OncePerTimeInterval",
        "OncePerTimestepsElapsed",
        "StandardMetricsReporting",
    ),
    "optimizers": (
        "AsyncGradientsOptimizer",
        "PolicyOptimizer",
        "SyncBatchReplayOptimizer",
        "SyncReplayOptimizer",
        "SyncSamplesOptimizer",
    ),
    "replay_buffer": ("LocalReplayBuffer",),
    "replay_ops": (
        "MixInReplay",
        "Replay",
        "SimpleReplayBuffer",
        "StoreToReplayBuffer",
        "WaitUntilTimestepsElapsed",
    ),
    "rollout_ops": (
        "AsyncGradients",
        "ConcatBatches",
        "ParallelRollouts",
        "SelectExperiences",
        "StandardizeFields",
    ),
    "train_ops": (
        "ApplyGradients",
        "AverageGradients",
        "ComputeGradients",
        "MultiGPUTrainOneStep",
        "TrainOneStep",
        "TrainTFMultiGPU",
        "UpdateTargetNetwork",
    ),
}

__getattr__, __dir__, __all__ = lazy_exports(__name__, _FILES)
