"""The class names that trainers had, and the modules that they stood in. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

# What stood before "Trainer" or "Agent" in a class name, or was all of it (Ray 2.0) → algorithm.
STEMS: Mapping[str, str] = {
    "A2C": "A2C",
    "A3C": "A3C",
    "APEX": "APEX",
    "APPO": "APPO",
    "ARS": "ARS",
    "AlphaStar": "AlphaStar",
    "AlphaZero": "AlphaZero",
    "Apex": "APEX",
    "ApexDDPG": "APEX_DDPG",
    "ApexDQN": "APEX",
    "ApexQMix": "APEX_QMIX",
    "BC": "BC",
    "BanditLinTS": "BanditLinTS",
    "BanditLinUCB": "BanditLinUCB",
    "CQL": "CQL",
    "CRR": "CRR",
    "DDPG": "DDPG",
    "DDPPO": "DDPPO",
    "DQN": "DQN",
    "DREAMER": "Dreamer",
    "DT": "DT",
    "Dreamer": "Dreamer",
    "DreamerV3": "DreamerV3",
    "ES": "ES",
    "IMPALA": "IMPALA",
    "IQL": "IQL",
    "Impala": "IMPALA",
    "LeelaChessZero": "LeelaChessZero",
    "LinTS": "BanditLinTS",
    "LinUCB": "BanditLinUCB",
    "MADDPG": "MADDPG",
    "MAML": "MAML",
    "MARWIL": "MARWIL",
    "MBMPO": "MBMPO",
    "PG": "PG",
    "PPO": "PPO",
    "QMIX": "QMIX",
    "QMix": "QMIX",
    "R2D2": "R2D2",
    "RNNSAC": "RNNSAC",
    "Random": "Random",
    "SAC": "SAC",
    "SimpleQ": "SimpleQ",
    "SlateQ": "SlateQ",
    "TD3": "TD3",
}

# A module below `ray.rllib.agents` → the stems of the classes in it, the one with the module's
# `DEFAULT_CONFIG` first.
MODULES: Mapping[str, tuple[str, ...]] = {
    "a3c": ("A3C", "A2C"),
    "a3c.a2c": ("A2C",),
    "a3c.a3c": ("A3C",),
    "ars": ("ARS",),
    "ars.ars": ("ARS",),
    "bc": ("BC",),
    "cql": ("CQL",),
    "cql.cql": ("CQL",),
    "ddpg": ("DDPG", "ApexDDPG", "TD3"),
    "ddpg.apex": ("ApexDDPG",),
    "ddpg.ddpg": ("DDPG",),
    "ddpg.td3": ("TD3",),
    "dqn": ("DQN", "Apex", "SimpleQ", "R2D2"),
    "dqn.apex": ("Apex",),
    "dqn.dqn": ("DQN", "SimpleQ"),
    "dqn.r2d2": ("R2D2",),
    "dqn.simple_q": ("SimpleQ",),
    "dreamer": ("DREAMER",),
    "es": ("ES",),
    "es.es": ("ES",),
    "impala": ("Impala",),
    "impala.impala": ("Impala",),
    "maml": ("MAML",),
    "marwil": ("MARWIL", "BC"),
    "marwil.bc": ("BC",),
    "marwil.marwil": ("MARWIL",),
    "mbmpo": ("MBMPO",),
    "pg": ("PG",),
    "pg.pg": ("PG",),
    "ppo": ("PPO", "APPO", "DDPPO"),
    "ppo.appo": ("APPO",),
    "ppo.ddppo": ("DDPPO",),
    "ppo.ppo": ("PPO",),
    "qmix": ("QMix", "ApexQMix"),
    "sac": ("SAC", "RNNSAC"),
    "sac.rnnsac": ("RNNSAC",),
    "sac.sac": ("SAC",),
    "slateq": ("SlateQ",),
}

SUFFIXES = ("Trainer", "Agent", "")


@cache
def class_names() -> Mapping[str, str]:
    """Every class name of every era → its algorithm."""
    return {f"{stem}{suffix}": name for stem, name in STEMS.items() for suffix in SUFFIXES}
