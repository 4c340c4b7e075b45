"""Which algorithm a legacy config is for, and what became of that algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from rllib_compat.config import keys as table
from rllib_compat.neutral.errors import ConfigError

# What the installed Ray still has. (TQC is not in its registry and never had a legacy form.)
TARGETS = ("PPO", "APPO", "IMPALA", "DQN", "SAC", "CQL", "MARWIL", "BC", "DreamerV3", "IQL")


@dataclass(frozen=True)
class Successor:
    """What stands in for an algorithm that Ray removed.

    Attributes:
        target: The algorithm that learns the same way, or empty if none does.
        why: What is different, or what to do.
    """

    target: str
    why: str


REMOVED: Mapping[str, Successor] = {
    "DDPPO": Successor("PPO", "PPO with several learners averages gradients as DDPPO did"),
    "SimpleQ": Successor("DQN", "DQN without double-Q, dueling and prioritized replay is SimpleQ"),
    "APEX": Successor(
        "DQN", "DQN with many env runners; its replay buffer is not distributed over actors"
    ),
    "R2D2": Successor("DQN", "DQN with an LSTM and `burn_in_len`; without the h-function"),
    "RNNSAC": Successor("SAC", "SAC with an LSTM in its model config"),
    "A2C": Successor("", "train with PPO (num_epochs=1) or IMPALA, whose losses are nearest"),
    "A3C": Successor("", "train with IMPALA or APPO, which replaced it"),
    "PG": Successor("", "train with PPO, whose loss is nearest"),
    "DDPG": Successor("", "train with SAC, the nearest actor-critic for continuous actions"),
    "APEX_DDPG": Successor("", "train with SAC and several env runners"),
    "TD3": Successor("", "train with SAC, the nearest actor-critic for continuous actions"),
    "CRR": Successor("", "train with CQL or IQL, the offline actor-critics that are left"),
    "Dreamer": Successor("", "train with DreamerV3; its hyper-parameters are not comparable"),
    "AlphaStar": Successor("", "train with PPO in a self-play league (Ray's examples show one)"),
    "QMIX": Successor("", "no value-factorising algorithm is left in RLlib"),
    "APEX_QMIX": Successor("", "no value-factorising algorithm is left in RLlib"),
    "MADDPG": Successor("", "train with SAC, one module per agent"),
    "ES": Successor("", "no evolution strategies are left in RLlib"),
    "ARS": Successor("", "no random search is left in RLlib"),
    "MAML": Successor("", "write it with Ray's DifferentiableLearner"),
    "MBMPO": Successor("", "no model-based meta-learner is left in RLlib"),
    "SlateQ": Successor("", "no recommender algorithm is left in RLlib"),
    "AlphaZero": Successor("", "no tree search is left in RLlib"),
    "LeelaChessZero": Successor("", "no tree search is left in RLlib"),
    "BanditLinTS": Successor("", "no bandits are left in RLlib"),
    "BanditLinUCB": Successor("", "no bandits are left in RLlib"),
    "DT": Successor("", "no decision transformer is left in RLlib"),
    "Random": Successor("", "write a random RLModule (Ray's examples have one)"),
}

# Class names and registry names that are not the algorithm's own name with a suffix.
_OTHER_NAMES = {
    "impala": "IMPALA",
    "apexdqn": "APEX",
    "apexddpg": "APEX_DDPG",
    "apexqmix": "APEX_QMIX",
    "qmix": "QMIX",
    "dreamer": "Dreamer",
    "lints": "BanditLinTS",
    "linucb": "BanditLinUCB",
    "randomagent": "Random",
    "random": "Random",
}

_SUFFIXES = ("Trainer", "Agent", "Config")


def find_algorithm(
    config: Mapping[str, Any], algorithm: str | type | None = None
) -> tuple[str, str]:
    """Finds the (legacy) algorithm of a config.

    Args:
        config: The legacy config.
        algorithm: Its name ("PPO", "PPOTrainer", "contrib/MADDPG") or class, if known.

    Returns:
        The name, and how it was found: "given", "by its keys" or "assumed".

    Raises:
        ConfigError: The given name is none that RLlib ever had.
    """
    if algorithm is not None:
        return _by_name(algorithm if isinstance(algorithm, str) else algorithm.__name__), "given"
    owners = [
        {home for home in homes if home in TARGETS or home in REMOVED}
        for homes in (table.homes(key) for key in config)
        if homes and "common" not in homes
    ]
    # The first in `TARGETS`, then in `REMOVED`, that has all of the config's special keys.
    for name in (*TARGETS, *REMOVED):
        if owners and all(name in owner for owner in owners):
            return name, "by its keys"
    return "PPO", "assumed"


@cache
def _names() -> dict[str, str]:
    return {name.lower(): name for name in (*TARGETS, *REMOVED)} | _OTHER_NAMES


def _by_name(given: str) -> str:
    name = given.rpartition("/")[2].rpartition(".")[2]
    candidates = [name, *(name.removesuffix(s) for s in _SUFFIXES if name.endswith(s))]
    for candidate in candidates:
        found = _names().get(candidate.lower()) or _names().get(candidate.lower().replace("_", ""))
        if found:
            return found
    raise ConfigError(
        f"{given!r} is no algorithm that RLlib ever had.",
        fix=f"Ray has {', '.join(TARGETS)}.",
    )
