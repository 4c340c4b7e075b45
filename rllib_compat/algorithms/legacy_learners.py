"""Lets the algorithm of a trainer learn as it did in the config's Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ray.rllib.algorithms import appo, bc, cql, impala, marwil, ppo, sac

from rllib_compat.algorithms.cql import OldCQLLearner
from rllib_compat.algorithms.dqn import REPLAYING
from rllib_compat.algorithms.legacy_training import Ways
from rllib_compat.algorithms.marwil import OldMARWILLearner
from rllib_compat.algorithms.off_policy import AS_BEFORE, ReplaysColumns
from rllib_compat.algorithms.ppo import PPO, OldPPOLearner
from rllib_compat.algorithms.sac import OldSACLearner
from rllib_compat.algorithms.vtrace import OldAPPOLearner, OldIMPALALearner
from rllib_compat.ray_versions import learners
from rllib_compat.runtime.learners import put_before

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

#: An algorithm of Ray → what its learner class gets as a first base.
LEARNERS = {
    ppo.PPO: OldPPOLearner,
    impala.IMPALA: OldIMPALALearner,
    appo.APPO: OldAPPOLearner,
    sac.SAC: OldSACLearner,
    cql.CQL: OldCQLLearner,
    marwil.MARWIL: OldMARWILLearner,
    bc.BC: OldMARWILLearner,
}
#: Where the classes are that a learner class of nobody else is made of.
_OURS = {"ray", "rllib_compat", "builtins", "abc"}


class StartingLearner:
    """Learns at `first_lr` until a schedule is asked for the first time; a first base.

    Torch's policies made their optimizers with `lr`, whatever `lr_schedule` said.
    """

    ways: ClassVar[Ways]

    def build(self) -> None:
        """Builds the learner; what is restored after that brings a rate of its own."""
        super().build()  # type: ignore[misc]  # of the real learner
        assert self.ways.first_lr is not None
        learners.set_rate(self, self.ways.first_lr)


def learn_as_before(config: AlgorithmConfig, ways: Ways) -> None:
    """Gives Ray's algorithms the losses and steps of an old Ray's, in place.

    A learner class of the user's own stays what it is. Several learners of PPO make today's passes:
    they have to make equally many minibatches.

    Args:
        config: A config of the new API stack.
        ways: Those of its Ray.
    """
    if config.algo_class in REPLAYING or issubclass(config.algo_class, ReplaysColumns):
        config.learner_config_dict = {**config.learner_config_dict, AS_BEFORE: True}
    homes = {part.__module__.partition(".")[0] for part in config.learner_class.__mro__}
    if not homes <= _OURS:
        return
    if ways.first_lr is not None:
        put_before(StartingLearner, "Starting", config, ways=ways)
    first = LEARNERS.get(config.algo_class)
    if first is None or (first is OldPPOLearner and config.num_learners > 1):
        return
    put_before(first, "Old", config, ways=ways)
    if first is OldAPPOLearner and not ways.traces:
        learners.make_batches_in_learners(config)  # which add advantages to them
    if first is OldPPOLearner:
        config.algo_class = PPO
