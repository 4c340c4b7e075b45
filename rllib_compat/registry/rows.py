"""A row for each algorithm that any RLlib had: what it was called, and what became of it.

Sources: `rllib/agents/registry.py` of Ray 0.5 – 1.13, `rllib/algorithms/registry.py` since.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from rllib_compat.neutral.frozen import frozen

#: The optimizers of SAC's learner, by today's names.
SOFT_ACTOR_CRITIC = ("policy", "qf", "qf_twin", "alpha")


@frozen
class Algorithm:
    """An algorithm of any RLlib.

    Attributes:
        name: The name it was last registered under, without `contrib/`.
        becomes: The current algorithm that learns the same way: itself where Ray still has it, or
            this package does (`ours` says so); empty where none does.
        ours: Whether it is this package that has it (`algorithms/`), since Ray removed it.
        new_stack_only: Whether nothing of it runs on the old API stack.
        why: Of an algorithm that Ray removed: what is different now, or what to do instead.
        undistributed: Of an algorithm whose replay is distributed: the one without that, which
            takes its place where only the old API stack can run a config.
        derives: The algorithm whose class its own was derived from, if any: their networks and
            most of their keys are the same.
        own_policy: Whether its policies had a class of their own, not that of what it derives from.
        distributes: Whether it is what it derives from, with other processes at work: only its own
            keys distinguish them.
        stems: What stood before `SUFFIXES` in its class names, its trainers' first.
        modules: The modules below `ray.rllib.agents` that its class could be imported from.
        reader: How `networks/` reads its policies, which what it becomes trains on; empty if it
            can't.
        optimizers: The optimizers of each of its policies, by today's names.
        offline: Whether it learns from recorded steps and never samples.
        replays: Whether it learns from a replay buffer that it fills itself, or (CQL) inherited.
    """

    name: str
    becomes: str = ""
    ours: bool = False
    new_stack_only: bool = False
    why: str = ""
    undistributed: str = ""
    derives: str = ""
    own_policy: bool = True
    distributes: bool = False
    stems: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    reader: str = ""
    optimizers: tuple[str, ...] = ("default_optimizer",)
    offline: bool = False
    replays: bool = False

    def __post_init__(self) -> None:
        if not self.stems:
            object.__setattr__(self, "stems", (self.name,))
        if self.ours:
            object.__setattr__(self, "becomes", self.name)

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


_OURS = "this package has it for the new API stack"
_BOOTSTRAPPED = (
    f"{_OURS}; episodes that a time limit cuts are bootstrapped, as by RLlib since Ray 2.3"
)
_NO_SEED = "this package has it; env runners are Ray's, and its workers no longer share a seed"
_ACTOR_CRITIC = ("actor", "critic")

#: Algorithms that this package has, since Ray removed them; most run on the new API stack alone.
_ours = partial(Algorithm, ours=True)
_ours_alone = partial(_ours, new_stack_only=True)


def _kept(name: str, **facts: Any) -> Algorithm:
    """An algorithm that today's Ray has under the same name."""
    return Algorithm(name, becomes=name, **facts)


# The order matters in one place: where a config's keys belong to several algorithms, the first is
# assumed (`keys`). Today's come first.
# fmt: off
ROWS = (
    _kept("PPO", modules=("ppo", "ppo.ppo"), reader="actor_critic"),
    _kept("APPO", derives="IMPALA", modules=("ppo", "ppo.appo"), reader="appo"),
    _kept("IMPALA", stems=("Impala", "IMPALA"), modules=("impala", "impala.impala"), reader="actor_critic"),
    _kept("DQN", modules=("dqn", "dqn.dqn"), reader="q", replays=True),
    _kept("SAC", modules=("sac", "sac.sac"), reader="sac", optimizers=SOFT_ACTOR_CRITIC, replays=True),
    _kept("CQL", derives="SAC", modules=("cql", "cql.cql"), reader="sac", optimizers=SOFT_ACTOR_CRITIC, offline=True, replays=True),
    _kept("MARWIL", modules=("marwil", "marwil.marwil"), reader="marwil", offline=True),
    _kept("BC", derives="MARWIL", own_policy=False, modules=("bc", "marwil", "marwil.bc"), reader="bc", offline=True),
    _kept("DreamerV3", optimizers=("world_model", "actor", "critic"), replays=True),
    _kept("IQL", derives="MARWIL", optimizers=("qf", "qf_twin", "policy", "value"), offline=True),
    _ours("DDPPO", why=f"{_OURS}; the loss is that of the installed Ray's PPO", derives="PPO", own_policy=False, distributes=True, modules=("ppo", "ppo.ddppo"), reader="actor_critic"),
    Algorithm("SimpleQ", becomes="DQN", why="DQN without double-Q, dueling and prioritized replay is SimpleQ", derives="DQN", modules=("dqn", "dqn.dqn", "dqn.simple_q"), reader="q", replays=True),
    _ours("APEX", why=f"{_OURS}; episodes that a time limit cuts are bootstrapped, and env runners wait while the learner owes updates", derives="DQN", own_policy=False, distributes=True, undistributed="DQN", stems=("Apex", "ApexDQN", "APEX"), modules=("dqn", "dqn.apex"), reader="q", replays=True),
    _ours_alone("R2D2", why=f"{_OURS}; the last step of each sequence is learned from, too, and episodes that a time limit cuts are bootstrapped", derives="DQN", modules=("dqn", "dqn.r2d2"), reader="q", replays=True),
    _ours_alone("RNNSAC", why=f"{_OURS}; Box actions work, of which RLlib's failed, and episodes that a time limit cuts are bootstrapped", derives="SAC", modules=("sac", "sac.rnnsac"), reader="rnnsac", optimizers=SOFT_ACTOR_CRITIC, replays=True),
    _ours("A2C", why=_BOOTSTRAPPED, derives="A3C", own_policy=False, modules=("a3c", "a3c.a2c"), reader="actor_critic"),
    _ours("A3C", why=_BOOTSTRAPPED, modules=("a3c", "a3c.a3c"), reader="actor_critic"),
    _ours("PG", why=_OURS, modules=("pg", "pg.pg"), reader="actor_critic"),
    _ours_alone("DDPG", why=_BOOTSTRAPPED, modules=("ddpg", "ddpg.ddpg"), reader="ddpg", optimizers=_ACTOR_CRITIC, replays=True),
    _ours_alone("APEX_DDPG", why=f"{_OURS}; episodes that a time limit cuts are bootstrapped, and env runners, which have no critics, set no priorities", derives="DDPG", own_policy=False, distributes=True, undistributed="DDPG", stems=("ApexDDPG",), modules=("ddpg", "ddpg.apex"), reader="ddpg", optimizers=_ACTOR_CRITIC, replays=True),
    _ours_alone("TD3", why=_BOOTSTRAPPED, derives="DDPG", own_policy=False, modules=("ddpg", "ddpg.td3"), reader="ddpg", optimizers=_ACTOR_CRITIC, replays=True),
    _ours_alone("CRR", why=_OURS, reader="crr", optimizers=_ACTOR_CRITIC, offline=True),
    Algorithm("Dreamer", why="train with DreamerV3; its hyper-parameters are not comparable", stems=("DREAMER", "Dreamer"), modules=("dreamer", "dreamer.dreamer"), replays=True),
    Algorithm("AlphaStar", why="train with PPO in a self-play league (Ray's examples show one)", derives="APPO", modules=("alpha_star", "alpha_star.alpha_star")),
    _ours_alone("QMIX", why=_BOOTSTRAPPED, stems=("QMix", "QMIX"), modules=("qmix", "qmix.qmix"), reader="qmix", replays=True),
    Algorithm("APEX_QMIX", becomes="QMIX", why="QMIX with many env runners; its replay buffer is not distributed over actors, has no priorities, and all env runners explore with the same epsilon", derives="QMIX", stems=("ApexQMix",), modules=("qmix", "qmix.apex"), replays=True),
    _ours_alone("MADDPG", why=f"{_OURS}; a step is terminal where the environment says so, no longer where the agent's info has `done` alone", reader="maddpg", optimizers=_ACTOR_CRITIC, replays=True),
    _ours_alone("ES", why=_NO_SEED, modules=("es", "es.es"), reader="evolution"),
    _ours_alone("ARS", why=_NO_SEED, modules=("ars", "ars.ars"), reader="evolution"),
    Algorithm("MAML", why="write it with Ray's DifferentiableLearner", modules=("maml", "maml.maml")),
    Algorithm("MBMPO", why="no model-based meta-learner is left in RLlib", modules=("mbmpo", "mbmpo.mbmpo")),
    Algorithm("SlateQ", why="no recommender algorithm is left in RLlib", modules=("slateq", "slateq.slateq"), replays=True),
    Algorithm("AlphaZero", why="no tree search is left in RLlib", replays=True),
    Algorithm("LeelaChessZero", why="no tree search is left in RLlib", replays=True),
    _ours_alone("BanditLinTS", why="this package has it; it draws from the posterior that it has learned, where RLlib's drew with the covariance of the prior", stems=("BanditLinTS", "LinTS"), modules=("bandit", "bandit.bandit"), reader="bandit"),
    _ours_alone("BanditLinUCB", why=_OURS, stems=("BanditLinUCB", "LinUCB"), modules=("bandit", "bandit.bandit"), reader="bandit"),
    Algorithm("DT", why="no decision transformer is left in RLlib", offline=True),
    _ours_alone("Random", why="this package has it; it plays in Ray's env runners"),
)
