"""A3C (`rllib/agents/a3c/a3c.py` of Ray 0.5 – 1.13, `algorithms/a3c` until 2.10).

Each env runner has a learner of its own, which computes and clips the gradients of A2C's loss on
the fragment that was just sampled. The algorithm makes a step with each as it comes, and sends
that env runner the new weights, and no other one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ray.rllib.utils.metrics import (
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    SYNCH_WORKER_WEIGHTS_TIMER,
    TIMERS,
)
from ray.rllib.utils.numpy import convert_to_numpy

from rllib_compat.algorithms.a2c import A2C, A2CConfig, A2CTorchLearner
from rllib_compat.algorithms.base import register
from rllib_compat.algorithms.local_learners import (
    Weights,
    get_weights,
    sample_fragment,
    set_weights,
    sync_local_env_runner,
)
from rllib_compat.algorithms.sampling import steps_sampled
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import env_runners, learners, training_steps
from rllib_compat.runtime.policies import local_learner

if TYPE_CHECKING:
    import torch

    from rllib_compat.ray_versions.types import EnvRunner

#: Module and name of a parameter → array.
Gradients = Mapping[tuple[str, str], Any]


#: What it measures for old results: how long it waits for gradients, and makes a step with them.
WAIT_TIMER, STEP_TIMER = (TIMERS, "grad_wait"), (TIMERS, "apply_grad")


@frozen
class WorkerGradients:
    """What an env runner sends.

    Attributes:
        gradients: Arrays by the module and the parameter's name in it.
        sampled: The env runner's metrics of its fragment.
        learned: Its learner's metrics of the loss.
    """

    gradients: Gradients
    sampled: Any
    learned: Any


def compute_on_own_fragment(
    env_runner: EnvRunner, weights: Weights, timesteps: Mapping[str, int]
) -> WorkerGradients:
    """Samples a fragment with given weights and computes the gradients there, in an env runner."""
    set_weights(env_runner, weights)
    learner = local_learner(env_runner)
    episodes = sample_fragment(env_runner)
    gradients, results = learner.compute_fragment_gradients(episodes, timesteps)
    return WorkerGradients(gradients, env_runner.get_metrics(), results)


class A3C(A2C):
    """Makes a step with the gradients of each env runner as they come."""

    def training_step(self) -> Any:
        """Makes a step with each gradient that is there; waits for the first.

        On the old API stack it is A2C.
        """
        if not self.config.enable_rl_module_and_learner:
            return super().training_step()
        group = self.env_runner_group
        if group.num_remote_workers() == 0:
            self._learn_from(self._request()(self.env_runner))
        else:
            env_runners.ask_env_runners(group, self._request())
            with self.metrics.log_time(WAIT_TIMER):
                answers = env_runners.answers_of_env_runners(group, self.config.sample_timeout_s)
            for index, computed in answers:
                self._learn_from(computed)
                with self.metrics.log_time((TIMERS, SYNCH_WORKER_WEIGHTS_TIMER)):
                    env_runners.ask_env_runners(group, self._request(), only=index)
        sync_local_env_runner(self)
        return None

    def _weights(self) -> Weights:
        weights: Weights = training_steps.foreach_learner(self, get_weights)[0]
        return weights

    def _timesteps(self) -> dict[str, int]:
        return {NUM_ENV_STEPS_SAMPLED_LIFETIME: steps_sampled(self)}

    def _request(self) -> Any:
        return partial(
            compute_on_own_fragment, weights=self._weights(), timesteps=self._timesteps()
        )

    def _learn_from(self, computed: WorkerGradients) -> None:
        training_steps.log_of_env_runners(self, [computed.sampled])
        training_steps.log_of_learners(self, [computed.learned])
        step = partial(
            learners.apply_gradients, gradients=computed.gradients, timesteps=self._timesteps()
        )
        with self.metrics.log_time(STEP_TIMER):
            training_steps.foreach_learner(self, step)


class A3CConfig(A2CConfig):
    """The config of A3C.

    It has A2C's settings, but for batches: each fragment of `rollout_fragment_length` steps is one.
    """

    def validate(self) -> None:
        """Checks all settings against each other.

        Raises:
            ConfigError: Two of them contradict each other.
        """
        super().validate()
        if self.microbatch_size is not None:
            raise ConfigError(
                "A3C applies the gradients of each fragment at once, and cannot accumulate them.",
                where="microbatch_size",
                fix="Set it to None, or train with A2C.",
            )


class A3CTorchLearner(A2CTorchLearner):
    """Computes A2C's loss; in an env runner, it makes no steps with the gradients."""

    _kept: dict[Any, Any] | None = None

    def compute_fragment_gradients(
        self, episodes: list[Any], timesteps: Mapping[str, int]
    ) -> tuple[Gradients, Any]:
        """Computes clipped gradients, and metrics; makes no step. Schedules look at counters."""
        self._kept = {}
        try:
            results = training_steps.update_learner(self, episodes, timesteps)
            found = self._kept
        finally:
            self._kept = None
        named = learners.parameters_of(self).items()
        refs = ((key, self.get_param_ref(parameter)) for key, parameter in named)
        # A module without steps in the fragment has none.
        kept = {key: found[ref] for key, ref in refs if found.get(ref) is not None}
        return convert_to_numpy(kept), results

    def apply_gradients(self, gradients_dict: Mapping[Any, torch.Tensor]) -> None:
        """Applies gradients, or keeps them."""
        if self._kept is None:
            super().apply_gradients(gradients_dict)
        else:
            self._kept = dict(gradients_dict)


register(A3C, A3CConfig, A3CTorchLearner)
