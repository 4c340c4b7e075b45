"""BanditLinUCB: a linear bandit that adds a bonus for what is not known of an arm. See `bandit`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
import tree
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.utils.metrics import (
    ALL_MODULES,
    ENV_RUNNER_SAMPLING_TIMER,
    LEARNER_RESULTS,
    LEARNER_UPDATE_TIMER,
    TIMERS,
)

from rllib_compat.algorithms.base import (
    GradientFreeLearner,
    RemovedAlgorithm,
    RemovedAlgorithmConfig,
    register,
)
from rllib_compat.algorithms.sampling import sample_at_least
from rllib_compat.networks.families.bandit import ITEM
from rllib_compat.networks.modules.bandit import LinearBanditModule
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import env_runners, learners, training_steps
from rllib_compat.ray_versions.metrics import add_up

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig


class Bandit(RemovedAlgorithm, Algorithm):  # type: ignore[misc]  # Ray has no types
    """Learns linear rewards, step by step, and chooses by what it knows of them."""

    def setup(self, config: AlgorithmConfig) -> None:
        """Builds env runners and learner; what is regretted is counted from now on."""
        super().setup(config)
        self._regrets: dict[str, float] = {}

    def training_step(self) -> None:
        """Samples a train batch, adds it to the posterior, and sends that to the env runners.

        A batch is a single step by default. Where the algorithm's process samples, that is done for
        all steps of an iteration, before anybody asks what was counted: it takes as long as a step.
        """
        size = self.config.total_train_batch_size
        if not env_runners.has_only_a_local_one(self.env_runner_group):
            self._learn_from(training_steps.sample_episodes(self, size))
            return
        runner = self.env_runner_group.local_env_runner
        asked = self.config.min_sample_timesteps_per_iteration or 0
        sampled = 0
        while sampled < max(1, asked):
            with self.metrics.log_time((TIMERS, ENV_RUNNER_SAMPLING_TIMER)):
                episodes = sample_at_least(runner, size)
            self._learn_from(episodes)
            sampled += sum(map(len, episodes))
        training_steps.log_of_env_runners(self, [runner.get_metrics()])

    def _learn_from(self, episodes: list[Any]) -> None:
        if not episodes:  # every env runner has failed
            return
        steps = steps_of(episodes)
        with self.metrics.log_time((TIMERS, LEARNER_UPDATE_TIMER)):
            training_steps.foreach_learner(self, partial(BanditLearner.observe, steps=steps))
        latency = self.metrics.peek((TIMERS, LEARNER_UPDATE_TIMER))
        env_runners.send_weights(self, self.env_runner_group)
        module_steps = sum(len(rewards) for _, _, rewards, _ in steps.values())
        for whose, count in (("env", sum(map(len, episodes))), ("module", module_steps)):
            for name in (f"num_{whose}_steps_trained", f"num_{whose}_steps_trained_lifetime"):
                add_up(self.metrics, (LEARNER_RESULTS, ALL_MODULES, name), count)
        for module_id, (_, _, _, regrets) in steps.items():
            key = (LEARNER_RESULTS, module_id, "update_latency")
            self.metrics.log_value(key, latency, window=1)
            if regrets is not None:
                total = self._regrets[module_id] = self._regrets.get(module_id, 0.0) + float(
                    regrets.sum()
                )
                key = (LEARNER_RESULTS, module_id, "cumulative_regret")
                self.metrics.log_value(key, total, window=1)


def steps_of(episodes: list[Any]) -> dict[str, tuple[Any, Any, Any, Any]]:
    """The steps of episodes for each module: observations, actions, rewards, regrets.

    Regrets are None unless the environment has `regret` in the infos of all steps.
    """
    found: dict[str, list[tuple[Any, ...]]] = {}
    chunks = ConnectorV2.single_agent_episode_iterator(episodes, agents_that_stepped_only=False)
    for chunk in chunks:
        if not len(chunk):
            continue
        infos = [info if isinstance(info, dict) else {} for info in chunk.get_infos()[1:]]
        regrets = [info.get("regret") for info in infos]
        column = (
            [chunk.get_observations(at) for at in range(len(chunk))],
            np.asarray(chunk.get_actions()),
            np.asarray(chunk.get_rewards(), np.float32),
            regrets,
        )
        found.setdefault(chunk.module_id or DEFAULT_MODULE_ID, []).append(column)
    steps = {}
    for module_id, columns in found.items():
        seen, actions, rewards, regrets = (list(part) for part in zip(*columns, strict=True))
        known = [regret for part in regrets for regret in part]
        steps[module_id] = (
            tree.map_structure(lambda *rows: np.stack(rows), *[o for part in seen for o in part]),
            np.concatenate(actions),
            np.concatenate(rewards),
            None if None in known else np.asarray(known, np.float64),
        )
    return steps


class BanditLearner(GradientFreeLearner):
    """Keeps the posterior."""

    def observe(self, steps: dict[str, Any]) -> None:
        """Adds steps, as `steps_of` gives them, to the posterior of each module."""
        for module_id, (seen, actions, rewards, _) in steps.items():
            if self.should_module_be_updated(module_id):
                given = (seen, actions, rewards)
                to_device = partial(torch.as_tensor, device=learners.device_of(self))
                arrays = tree.map_structure(to_device, given)
                self.module[module_id].unwrapped().learn(*arrays)


class BanditConfig(RemovedAlgorithmConfig):
    """The config of a linear bandit."""

    #: Whether weights are drawn from the posterior, instead of adding a bonus.
    sampling: ClassVar[bool]
    #: A Dict with this part reaches the module as it is (`runtime.connectors`).
    keeps_observations: ClassVar[tuple[str, ...]] = (ITEM,)

    positive = ("alpha", "lambda_")
    default_module_class = LinearBanditModule
    default_learner_class = BanditLearner
    module_settings = {
        "alpha": "What the posterior covariance is multiplied by: more of it explores more.",
        "lambda_": "The prior precision of the weights. None: 1.0, or 0.1 where the observation "
        "has a table of items.",
    }

    @property
    def _model_config_auto_includes(self) -> dict[str, Any]:
        return {**super()._model_config_auto_includes, "sampling": self.sampling}

    def validate(self) -> None:
        """Checks all settings against each other.

        Raises:
            ConfigError: It can't run so.
        """
        super().validate()
        if self.num_learners > 1:
            raise ConfigError(
                "A bandit's posterior needs a single local learner.",
                where="num_learners",
                fix="set num_learners=0",
            )


class BanditLinUCB(Bandit):
    """Chooses by what is expected, and a bonus for what is not known."""


class BanditLinUCBConfig(BanditConfig):
    """The config of BanditLinUCB."""

    sampling = False


register(BanditLinUCB, BanditLinUCBConfig)
