"""Lets the algorithm of a trainer learn as it did in the config's Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ray.rllib.algorithms import appo, bc, cql, impala, marwil, ppo, sac

from rllib_compat.algorithms.a2c import A2CTorchLearner, AveragingLearner, ExpectingLearner
from rllib_compat.algorithms.cql import LegacyCQLLearner
from rllib_compat.algorithms.dqn import REPLAYING
from rllib_compat.algorithms.legacy_training import LegacyTraining
from rllib_compat.algorithms.marwil import LegacyMARWILLearner
from rllib_compat.algorithms.off_policy import OffPolicyAlgorithm
from rllib_compat.algorithms.ppo import PPO, LegacyPPOLearner, SharingPPOLearner
from rllib_compat.algorithms.rounds import LEGACY_REPLAY
from rllib_compat.algorithms.sac import LegacySACLearner
from rllib_compat.algorithms.sequence_replay import SequenceReplayAlgorithm
from rllib_compat.algorithms.vtrace import LegacyAPPOLearner, LegacyIMPALALearner
from rllib_compat.ray_versions import learners
from rllib_compat.runtime.learners import prepend_learner_class

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

#: An algorithm of Ray → what its learner class gets as a first base.
LEARNERS = {
    ppo.PPO: LegacyPPOLearner,
    impala.IMPALA: LegacyIMPALALearner,
    appo.APPO: LegacyAPPOLearner,
    sac.SAC: LegacySACLearner,
    cql.CQL: LegacyCQLLearner,
    marwil.MARWIL: LegacyMARWILLearner,
    bc.BC: LegacyMARWILLearner,
}
#: The modules of the bases of a learner class that is not a user's.
_OURS = {"ray", "rllib_compat", "builtins", "abc"}


class InitialRateLearner:
    """Learns at `initial_lr` until a schedule is asked for the first time; a first base.

    Torch's policies made their optimizers with `lr`, whatever `lr_schedule` said.
    """

    legacy: ClassVar[LegacyTraining]

    def build(self) -> None:
        """Builds the learner; what is restored after that brings a rate of its own."""
        super().build()  # type: ignore[misc]  # of the real learner
        assert self.legacy.initial_lr is not None
        learners.set_rate(self, self.legacy.initial_lr)


def use_legacy_learners(config: AlgorithmConfig, legacy: LegacyTraining) -> None:
    """Gives Ray's algorithms the losses and steps of an old Ray's, in place.

    A learner class of the user's own stays what it is. Several learners of PPO make today's passes:
    they have to make equally many minibatches.
    """
    replaying = (OffPolicyAlgorithm, SequenceReplayAlgorithm)
    if config.algo_class in REPLAYING or issubclass(config.algo_class, replaying):
        replay = {**config.learner_config_dict, LEGACY_REPLAY: dict(legacy.replay)}
        config.learner_config_dict = replay
    homes = {part.__module__.partition(".")[0] for part in config.learner_class.__mro__}
    if not homes <= _OURS:
        return
    if legacy.initial_lr is not None:
        prepend_learner_class(InitialRateLearner, "InitialRate", config, legacy=legacy)
    if legacy.averages_errors and issubclass(config.learner_class, A2CTorchLearner):
        prepend_learner_class(AveragingLearner, "Averaging", config)
    if legacy.expects_without_gae and issubclass(config.learner_class, A2CTorchLearner):
        prepend_learner_class(ExpectingLearner, "Expecting", config)
    first = LEARNERS.get(config.algo_class)
    if first is LegacyPPOLearner and config.num_learners > 1:
        prepend_learner_class(SharingPPOLearner, "Sharing", config)
        return
    if first is None:
        return
    prepend_learner_class(first, "Legacy", config, legacy=legacy)
    if first is LegacyAPPOLearner and not legacy.vtrace:
        learners.make_batches_in_learners(config)  # which add advantages to them
    if first is LegacyPPOLearner:
        config.algo_class = PPO
