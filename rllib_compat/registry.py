"""Every algorithm that any RLlib had, a row for each: what it was called, and what became of it.

Sources: `rllib/agents/registry.py` of Ray 0.5 – 1.13, `rllib/algorithms/registry.py` since. What
an algorithm is *asked* (its keys, its defaults) is in `config/keys/`; how its networks are read
is in `networks/`, by the `reader` named here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from rllib_compat.neutral.errors import ConfigError

#: What follows the stem in a class name: Ray 0.6 – 1.13, Ray 0.5, Ray 2.0 on.
SUFFIXES = ("Trainer", "Agent", "")

#: The optimizers of SAC's learner, by today's names.
SOFT_ACTOR_CRITIC = ("policy", "qf", "qf_twin", "alpha")


@dataclass(frozen=True)
class Algorithm:
    """An algorithm of any RLlib.

    Attributes:
        name: The name it was last registered under, without `contrib/`.
        becomes: The algorithm of today that learns the same way: itself where Ray still has it, or
            this package does; empty where none does.
        ours: Whether it is this package that has it (`algorithms/`), since Ray removed it.
        new_stack_only: Whether nothing of it runs on the old API stack.
        why: Of an algorithm that Ray removed: what is different now, or what to do instead.
        derives: The algorithm whose class its own was derived from, if any: their networks and
            most of their keys are the same.
        stems: What stood before `SUFFIXES` in its class names, its trainers' first.
        modules: The modules below `ray.rllib.agents` that its class could be imported from.
        reader: How `networks/` reads its policies; empty if it can't.
        trains_on: Whether a converted checkpoint can be trained on. Of all others that can be
            read, only the modules are written, for inference.
        goes_on_as: Of one that is gone: the algorithm that trains its networks, if the user says
            so (`--algorithm`), since it learns in another way.
        optimizers: The optimizers of each of its policies, by today's names.
        offline: Whether it learns from recorded steps and never samples.
        replays: Whether it learns from a replay buffer that it fills itself, or (CQL) inherited.
    """

    name: str
    becomes: str = ""
    ours: bool = False
    new_stack_only: bool = False
    why: str = ""
    derives: str = ""
    stems: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    reader: str = ""
    trains_on: bool = False
    goes_on_as: str = ""
    optimizers: tuple[str, ...] = ("default_optimizer",)
    offline: bool = False
    replays: bool = False

    def __post_init__(self) -> None:
        if not self.stems:
            object.__setattr__(self, "stems", (self.name,))

    @property
    def removed(self) -> bool:
        """Whether today's Ray no longer has it."""
        return self.ours or self.becomes != self.name

    @property
    def home(self) -> str:
        """The module that its class and its config's are in, where it is trained by its name."""
        package = "rllib_compat" if self.ours else "ray.rllib"
        return f"{package}.algorithms.{self.name.lower()}"

    @property
    def soft_actor_critic(self) -> bool:
        """Whether its learner has SAC's optimizers, and a temperature."""
        return self.optimizers == SOFT_ACTOR_CRITIC


# The order matters in one place: where a config's keys belong to several algorithms, the first is
# assumed (`config.algorithms`). Today's come first.
_ROWS = (
    Algorithm(
        "PPO", becomes="PPO", modules=("ppo", "ppo.ppo"), reader="actor_critic", trains_on=True
    ),
    Algorithm(
        "APPO",
        becomes="APPO",
        derives="IMPALA",
        modules=("ppo", "ppo.appo"),
        reader="appo",
        trains_on=True,
    ),
    Algorithm(
        "IMPALA",
        becomes="IMPALA",
        stems=("Impala", "IMPALA"),
        modules=("impala", "impala.impala"),
        reader="actor_critic",
        trains_on=True,
    ),
    Algorithm(
        "DQN", becomes="DQN", modules=("dqn", "dqn.dqn"), reader="q", trains_on=True, replays=True
    ),
    Algorithm(
        "SAC",
        becomes="SAC",
        modules=("sac", "sac.sac"),
        reader="sac",
        trains_on=True,
        optimizers=SOFT_ACTOR_CRITIC,
        replays=True,
    ),
    Algorithm(
        "CQL",
        becomes="CQL",
        derives="SAC",
        modules=("cql", "cql.cql"),
        reader="sac",
        trains_on=True,
        optimizers=SOFT_ACTOR_CRITIC,
        offline=True,
        replays=True,
    ),
    Algorithm(
        "MARWIL",
        becomes="MARWIL",
        modules=("marwil", "marwil.marwil"),
        reader="marwil",
        trains_on=True,
        offline=True,
    ),
    Algorithm(
        "BC",
        becomes="BC",
        derives="MARWIL",
        modules=("bc", "marwil", "marwil.bc"),
        reader="bc",
        trains_on=True,
        offline=True,
    ),
    Algorithm(
        "DreamerV3",
        becomes="DreamerV3",
        optimizers=("world_model", "actor", "critic"),
        replays=True,
    ),
    Algorithm(
        "IQL",
        becomes="IQL",
        derives="MARWIL",
        optimizers=("qf", "qf_twin", "policy", "value"),
        offline=True,
    ),
    Algorithm(
        "DDPPO",
        becomes="PPO",
        why="PPO with several learners averages gradients as DDPPO did",
        derives="PPO",
        modules=("ppo", "ppo.ddppo"),
        reader="actor_critic",
    ),
    Algorithm(
        "SimpleQ",
        becomes="DQN",
        why="DQN without double-Q, dueling and prioritized replay is SimpleQ",
        derives="DQN",
        modules=("dqn", "dqn.dqn", "dqn.simple_q"),
        reader="q",
        trains_on=True,
        replays=True,
    ),
    Algorithm(
        "APEX",
        becomes="DQN",
        why="DQN with many env runners; its replay buffer is not distributed over actors",
        derives="DQN",
        stems=("Apex", "ApexDQN", "APEX"),
        modules=("dqn", "dqn.apex"),
        reader="q",
        goes_on_as="DQN",
        replays=True,
    ),
    Algorithm(
        "R2D2",
        becomes="DQN",
        why="DQN with an LSTM and `burn_in_len`; without the h-function",
        derives="DQN",
        modules=("dqn", "dqn.r2d2"),
        reader="q",
        replays=True,
    ),
    Algorithm(
        "RNNSAC",
        becomes="SAC",
        why="SAC with an LSTM in its model config",
        derives="SAC",
        modules=("sac", "sac.rnnsac"),
        optimizers=SOFT_ACTOR_CRITIC,
        replays=True,
    ),
    Algorithm(
        "A2C",
        becomes="A2C",
        ours=True,
        why="this package has it for the new API stack; episodes that a time limit cuts are "
        "bootstrapped, as by RLlib since Ray 2.3",
        derives="A3C",
        modules=("a3c", "a3c.a2c"),
        reader="actor_critic",
        trains_on=True,
    ),
    Algorithm(
        "A3C",
        why="train with IMPALA or APPO, which replaced it",
        modules=("a3c", "a3c.a3c"),
        reader="actor_critic",
        goes_on_as="A2C",
    ),
    Algorithm(
        "PG",
        becomes="PG",
        ours=True,
        why="this package has it for the new API stack",
        modules=("pg", "pg.pg"),
        reader="actor_critic",
        trains_on=True,
    ),
    Algorithm(
        "DDPG",
        becomes="DDPG",
        ours=True,
        new_stack_only=True,
        why="this package has it for the new API stack; episodes that a time limit cuts are "
        "bootstrapped, as by RLlib since Ray 2.3",
        modules=("ddpg", "ddpg.ddpg"),
        reader="ddpg",
        trains_on=True,
        optimizers=("actor", "critic"),
        replays=True,
    ),
    Algorithm(
        "APEX_DDPG",
        why="train with SAC and several env runners",
        derives="DDPG",
        stems=("ApexDDPG",),
        modules=("ddpg", "ddpg.apex"),
        reader="ddpg",
        optimizers=("actor", "critic"),
        replays=True,
    ),
    Algorithm(
        "TD3",
        becomes="TD3",
        ours=True,
        new_stack_only=True,
        why="this package has it for the new API stack; episodes that a time limit cuts are "
        "bootstrapped, as by RLlib since Ray 2.3",
        derives="DDPG",
        modules=("ddpg", "ddpg.td3"),
        reader="ddpg",
        trains_on=True,
        optimizers=("actor", "critic"),
        replays=True,
    ),
    Algorithm(
        "CRR",
        why="train with CQL or IQL, the offline actor-critics that are left",
        optimizers=("actor", "critic"),
        offline=True,
    ),
    Algorithm(
        "Dreamer",
        why="train with DreamerV3; its hyper-parameters are not comparable",
        stems=("DREAMER", "Dreamer"),
        modules=("dreamer",),
        replays=True,
    ),
    Algorithm(
        "AlphaStar",
        why="train with PPO in a self-play league (Ray's examples show one)",
        derives="APPO",
    ),
    Algorithm(
        "QMIX",
        why="no value-factorising algorithm is left in RLlib",
        stems=("QMix", "QMIX"),
        modules=("qmix",),
        replays=True,
    ),
    Algorithm(
        "APEX_QMIX",
        why="no value-factorising algorithm is left in RLlib",
        derives="QMIX",
        stems=("ApexQMix",),
        modules=("qmix",),
        replays=True,
    ),
    Algorithm("MADDPG", why="train with SAC, one module per agent", replays=True),
    Algorithm(
        "ES",
        becomes="ES",
        ours=True,
        new_stack_only=True,
        why="this package has it; env runners are Ray's, and its workers no longer share a seed",
        modules=("es", "es.es"),
        reader="evolution",
        trains_on=True,
    ),
    Algorithm(
        "ARS",
        becomes="ARS",
        ours=True,
        new_stack_only=True,
        why="this package has it; env runners are Ray's, and its workers no longer share a seed",
        modules=("ars", "ars.ars"),
        reader="evolution",
        trains_on=True,
    ),
    Algorithm("MAML", why="write it with Ray's DifferentiableLearner", modules=("maml",)),
    Algorithm("MBMPO", why="no model-based meta-learner is left in RLlib", modules=("mbmpo",)),
    Algorithm(
        "SlateQ", why="no recommender algorithm is left in RLlib", modules=("slateq",), replays=True
    ),
    Algorithm("AlphaZero", why="no tree search is left in RLlib", replays=True),
    Algorithm("LeelaChessZero", why="no tree search is left in RLlib", replays=True),
    Algorithm("BanditLinTS", why="no bandits are left in RLlib", stems=("BanditLinTS", "LinTS")),
    Algorithm("BanditLinUCB", why="no bandits are left in RLlib", stems=("BanditLinUCB", "LinUCB")),
    Algorithm("DT", why="no decision transformer is left in RLlib", offline=True),
    Algorithm("Random", why="write a random RLModule (Ray's examples have one)"),
)

#: Name → row.
ALGORITHMS = MappingProxyType({row.name: row for row in _ROWS})


def find(given: str) -> Algorithm:
    """Finds an algorithm by a name of any era.

    Args:
        given: A registered name ("PPO", "contrib/MADDPG"), or the name of a trainer's or config's
            class, dotted or not ("PPOTrainer", "ray.rllib.agents.dqn.apex.ApexTrainer").

    Raises:
        ConfigError: RLlib never had an algorithm of that name.
    """
    name = given.rpartition("/")[2].rpartition(".")[2]
    endings = (suffix for suffix in ("", "Trainer", "Agent", "Config") if name.endswith(suffix))
    for candidate in (name[: len(name) - len(ending)].lower() for ending in endings):
        found = _by_lower_case().get(candidate) or _by_lower_case().get(candidate.replace("_", ""))
        if found:
            return found
    raise ConfigError(
        f"RLlib never had an algorithm called {given!r}.",
        fix=f"Ray has {', '.join(row.name for row in todays())}.",
    )


def of(name: str | None) -> Algorithm:
    """The row of a name as `find` gave it.

    Raises:
        KeyError: It is not one of `ALGORITHMS`.
    """
    return ALGORITHMS[name or ""]


@cache
def _by_lower_case() -> dict[str, Algorithm]:
    return {name.lower(): row for row in _ROWS for name in (row.name, *row.stems)}


@cache
def class_names() -> MappingProxyType[str, str]:
    """Every class name of every era → its algorithm."""
    return MappingProxyType(
        {f"{stem}{suffix}": row.name for row in _ROWS for stem in row.stems for suffix in SUFFIXES}
    )


@cache
def modules() -> MappingProxyType[str, tuple[Algorithm, ...]]:
    """A module below `ray.rllib.agents` → the algorithms in it.

    The first is the one whose `DEFAULT_CONFIG` the module held: the others there derive from it,
    or (APPO, in PPO's folder) from one that lived elsewhere.
    """
    places: dict[str, list[Algorithm]] = {}
    for row in sorted(_ROWS, key=lambda row: bool(row.derives)):
        for place in row.modules:
            places.setdefault(place, []).append(row)
    return MappingProxyType({place: tuple(rows) for place, rows in sorted(places.items())})


def todays() -> Iterator[Algorithm]:
    """The algorithms that today's Ray has; TQC is not registered, and has no legacy form."""
    return (row for row in _ROWS if not row.removed)


def trained() -> Iterator[Algorithm]:
    """The algorithms that are trained by their own names: today's, and those of this package."""
    return (row for row in _ROWS if row.becomes == row.name)


def family(name: str) -> tuple[str, ...]:
    """An algorithm and all that derive from it: `family("DQN")` holds DQN, SimpleQ, APEX, R2D2."""
    found = [name]
    for parent in found:  # grows as it is read
        found += [row.name for row in _ROWS if row.derives == parent]
    return tuple(found)


def replaying() -> tuple[str, ...]:
    """The algorithms with a replay buffer that today's Ray has, or something in the place of."""
    return tuple(row.name for row in _ROWS if row.replays and row.becomes)
