"""What makes a successor the algorithm that it stands in for."""

from __future__ import annotations

from rllib_compat.config.steps.step import Step

STEPS = (
    Step(
        "simple_q",
        "SimpleQ is DQN without double-Q, dueling and prioritized replay.",
        legacy=("SimpleQ",),
        sets={
            "training.double_q": False,
            "training.dueling": False,
            "training.replay_buffer_config.type": "EpisodeReplayBuffer",
        },
        fills=True,
    ),
)
