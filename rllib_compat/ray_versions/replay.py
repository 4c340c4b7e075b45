"""Replay buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rllib_compat.neutral.public import public
from rllib_compat.ray_versions.releases import at_least

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig


@public("rllib_compat.adapters")
def old_replay_buffer(name: str) -> type:
    """A replay buffer class of the old API stack that DQN can be built with.

    DQN's `validate()` puts the class where its name was, and later releases then ask whether
    "EpisodeReplayBuffer" is *in* it, as if it still were the name; so the class has to answer.
    """
    from ray.rllib.utils import replay_buffers

    base: type = getattr(replay_buffers, name)

    def contains(cls: type, part: str) -> bool:
        return part in cls.__name__

    meta = type("Named", (type(base),), {"__contains__": contains})
    made: type = meta(name, (base,), {"__module__": base.__module__})
    return made


#: Replay buffers that earlier Rays can't learn from, and those that can take their place.
_UNWEIGHTED = {
    "EpisodeReplayBuffer": "PrioritizedEpisodeReplayBuffer",
    "MultiAgentEpisodeReplayBuffer": "MultiAgentPrioritizedEpisodeReplayBuffer",
}


def weighted_buffer(kind: str) -> str | None:
    """The replay buffer to take for a plain one; None: it can be had.

    Learners ask for weights. In Ray 2.40 only the prioritized buffers give them; without any
    prioritization (`alpha=0`) they sample as evenly, and all weights are 1. Since 2.44 all do, but
    until 2.46 the plain one logs a tuple where a number belongs, and the next iteration fails.
    """
    return None if at_least("2.47") else _UNWEIGHTED.get(kind)


def use_weighted_buffer(config: AlgorithmConfig) -> None:
    """Puts a buffer that gives weights into the place of a default that gives none."""
    buffer = getattr(config, "replay_buffer_config", None) or {}
    weighted = weighted_buffer(str(buffer.get("type")))
    if weighted is not None:
        config.replay_buffer_config = {**buffer, "type": weighted, "alpha": 0.0, "beta": 0.0}
