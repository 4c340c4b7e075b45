"""R2D2: Q-learning with recurrent networks (`agents/dqn/r2d2` of Ray 1.4 – 2.0, `r2d2` until 2.10).

Kapturowski et al., "Recurrent experience replay in distributed reinforcement learning" (2019).
Sequences are replayed with the states that they begin with; targets are rescaled.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig, NotProvided
from ray.rllib.algorithms.dqn.dqn import calculate_rr_weights
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.schedules.scheduler import Scheduler
from torch.nn import functional

from rllib_compat import ray_versions
from rllib_compat.algorithms.config import DefaultsConfig
from rllib_compat.algorithms.defaults import DEFAULTS
from rllib_compat.algorithms.names import register
from rllib_compat.algorithms.recurrent_replay import WEIGHTS, Cut, Sequence, SequenceBuffer
from rllib_compat.algorithms.sampling import on_env_runners, sample_at_least, waits_for_samples
from rllib_compat.networks.modules.q import QF_PREDS
from rllib_compat.networks.modules.recurrent_q import TARGETS, R2D2Module
from rllib_compat.neutral.errors import ConfigError


class R2D2(Algorithm):  # type: ignore[misc]  # Ray has no types
    """Samples whole episodes on each env runner, keeps their sequences, learns from some."""

    @classmethod
    def get_default_config(cls) -> R2D2Config:
        """The config that it starts from."""
        return R2D2Config()

    @classmethod
    def get_default_policy_class(cls, config: Any) -> None:
        """None: the old API stack can't run it."""

    def setup(self, config: Any) -> None:
        """Builds env runners, learner and replay buffers."""
        super().setup(config)
        self._kept: dict[str, SequenceBuffer] = {}

    def training_step(self) -> None:
        """Samples and learns, each as often as the config says; sends the weights."""
        rounds, updates = calculate_rr_weights(self.config)
        for _ in range(rounds):
            self._sample()
        if not self._kept or waits_for_samples(self):
            return
        for _ in range(updates):
            self._learn()
        ray_versions.send_new_weights(self)

    def _sample(self) -> None:
        """Keeps the sequences of at least a fragment of each env runner."""
        config = self.config
        told = on_env_runners(self, partial(_play, least=config.get_rollout_fragment_length()))
        for sampled, _ in told:
            for module_id, sequence in sampled:
                if module_id not in self._kept:
                    self._kept[module_id] = config.new_buffer()
                self._kept[module_id].add(sequence)

    def _learn(self) -> None:
        """Draws sequences of each module, learns from them, and gives them other priorities."""
        config, cut = self.config, self.config.cut
        count = max(1, config.total_train_batch_size // cut.steps)
        drawn = {
            module_id: kept.sample(count, config.prioritized_replay_beta)
            for module_id, kept in self._kept.items()
        }
        batches = {
            module_id: cut.batch(sequences, weights)
            for module_id, (sequences, _, weights) in drawn.items()
        }
        ray_versions.update_learners_with_arrays(self, batches, count * cut.steps)
        if not config.prioritized_replay:
            return
        told = ray_versions.foreach_learner(self, _errors)
        for module_id, (_, places, _) in drawn.items():
            errors = np.concatenate([errors[module_id] for errors in told if module_id in errors])
            if len(errors) == len(places):  # a policy that is not trained has none
                priorities = np.abs(errors) + config.prioritized_replay_eps
                self._kept[module_id].prioritize(places, priorities)


def _play(env_runner: Any, least: int) -> tuple[list[tuple[str, Sequence]], Any]:
    """At least so many steps of an env runner, as sequences, and what it tells."""
    episodes = sample_at_least(env_runner, least)
    return list(env_runner.config.cut.of_all(episodes)), env_runner.get_metrics()


def _errors(learner: Any, *_: Any) -> Any:
    """The TD errors of a learner's last batch."""
    return learner.td_errors


class R2D2Config(DefaultsConfig):
    """The config of R2D2.

    Its module is recurrent: `rl_module(model_config={"use_lstm": True})`, or one of your own whose
    `_forward_train` gives what that of `rllib_compat.modules.R2D2Module` gives. `max_seq_len` of
    the model config says from how many steps a sequence is learned; the burn-in comes before them.

    Args:
        algo_class: The algorithm, if it is a subclass of `R2D2`.
    """

    of_the_module = ("hiddens", "dueling", "double_q", "epsilon")
    burn_in: int
    buffer_size: int

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or R2D2)
        self.epsilon: Any = [[0, 1.0], [10000, 0.02]]
        self.prioritized_replay = False
        self.prioritized_replay_alpha = 0.6
        self.prioritized_replay_beta = 0.4
        self.prioritized_replay_eps = 1e-6
        self.evaluation(evaluation_config=AlgorithmConfig.overrides(explore=False))

    def training(
        self,
        *,
        use_h_function: Any = NotProvided,
        h_function_epsilon: Any = NotProvided,
        burn_in: Any = NotProvided,
        zero_init_states: Any = NotProvided,
        double_q: Any = NotProvided,
        dueling: Any = NotProvided,
        hiddens: Any = NotProvided,
        n_step: Any = NotProvided,
        epsilon: Any = NotProvided,
        adam_epsilon: Any = NotProvided,
        target_network_update_freq: Any = NotProvided,
        tau: Any = NotProvided,
        buffer_size: Any = NotProvided,
        prioritized_replay: Any = NotProvided,
        prioritized_replay_alpha: Any = NotProvided,
        prioritized_replay_beta: Any = NotProvided,
        prioritized_replay_eps: Any = NotProvided,
        num_steps_sampled_before_learning_starts: Any = NotProvided,
        training_intensity: Any = NotProvided,
        **kwargs: Any,
    ) -> R2D2Config:
        """Sets how it learns.

        Args:
            use_h_function: Whether targets are rescaled: the network learns `h(value)`, where
                `h(x) = sign(x) (sqrt(|x| + 1) - 1) + h_function_epsilon * x`.
            h_function_epsilon: How much of the value itself is in it.
            burn_in: Over how many steps before those that it learns from the network is run.
            zero_init_states: Whether a sequence begins with zeros, wherever in its episode it is,
                or with the state that the network had there when it acted.
            double_q: Whether the network says which action comes next, and the target only what it
                is worth.
            dueling: Whether advantages and the state's value are streams of their own.
            hiddens: The sizes of the hidden layers of each stream; none: there are no streams.
            n_step: How many steps rewards are summed over. The value of the *next* step is added
                to them, discounted by as many steps, as RLlib's R2D2 did.
            epsilon: How probably it acts at random: a number, or a schedule `[[step, epsilon], …]`.
            adam_epsilon: The epsilon of Adam.
            target_network_update_freq: After how many sampled steps the target follows.
            tau: How far it goes towards the network then.
            buffer_size: How many steps are kept for replay, counted as those of `train_batch_size`.
                Checkpoints do not hold them.
            prioritized_replay: Whether sequences are drawn by their TD errors.
            prioritized_replay_alpha: How much these count.
            prioritized_replay_beta: How far importance weights make up for that.
            prioritized_replay_eps: What is added to each error.
            num_steps_sampled_before_learning_starts: After how many sampled steps it learns.
            training_intensity: How many steps are learned from for each one that is sampled, if
                env runners sampled `rollout_fragment_length` steps at a time, as Ray's DQN counts:
                whole episodes are more. None: one update for each round of all env runners.
            **kwargs: What every algorithm has. `train_batch_size` counts steps, those of the
                burn-in included.

        Returns:
            The config itself.
        """
        super().training(**kwargs)
        self.set_given(locals())
        return self

    @property
    def cut(self) -> Cut:
        """How episodes are cut into sequences."""
        length = self.model_config.get("max_seq_len", DefaultModelConfig.max_seq_len)
        return Cut(length, self.burn_in, self.zero_init_states, self.n_step, self.gamma)

    def new_buffer(self) -> SequenceBuffer:
        """An empty replay buffer; each module has one."""
        alpha = self.prioritized_replay_alpha if self.prioritized_replay else 0.0
        return SequenceBuffer(max(1, self.buffer_size // self.cut.steps), alpha)

    def get_rollout_fragment_length(self, worker_index: int = 0) -> int:
        """How many steps an env runner samples at least; by default as many as rewards sum."""
        if self.rollout_fragment_length == "auto":
            return int(self.n_step)
        return int(super().get_rollout_fragment_length(worker_index))

    def get_default_learner_class(self) -> type:
        """The learner that computes the loss."""
        return R2D2TorchLearner

    def get_default_rl_module_spec(self) -> Any:
        """Describes the module."""
        return RLModuleSpec(module_class=R2D2Module)

    def validate(self) -> None:
        """Checks all settings against each other.

        Raises:
            ConfigError: Two of them contradict each other, or nothing can run them.
        """
        super().validate()
        self.require_new_stack()
        if self.batch_mode != "complete_episodes" and not self.in_evaluation:
            raise ConfigError(
                f"R2D2 replays parts of whole episodes; batch_mode is {self.batch_mode!r}.",
                where="batch_mode",
                fix="batch_mode='complete_episodes'",
            )
        least = {"buffer_size": 1, "n_step": 1, "burn_in": 0, "h_function_epsilon": 0}
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise ConfigError(
                    f"{name} is at least {bound}, not {getattr(self, name)}.",
                    where=name,
                    fix=f"{name}={DEFAULTS['R2D2'][name]}",
                )
        Scheduler.validate(
            fixed_value_or_schedule=self.epsilon, setting_name="epsilon", description="epsilon"
        )


_WithTargets: Any = ray_versions.learner_with_targets()


class R2D2TorchLearner(ray_versions.TakesArrays, _WithTargets, TorchLearner):  # type: ignore[misc]
    """Computes the loss: what `r2d2_loss` of the torch policy computed.

    Attributes:
        td_errors: One a sequence of the last batch, by module, from which priorities are made.
    """

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """Makes one Adam."""
        config = self.config.get_config_for_module(module_id)
        parameters = self.get_parameters(self.module[module_id])
        made = torch.optim.Adam(parameters, eps=config.adam_epsilon)
        self.register_optimizer(
            module_id=module_id, optimizer=made, params=parameters, lr_or_lr_schedule=config.lr
        )

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: Any, fwd_out: Any
    ) -> Any:
        """The mean Huber loss of all steps that are learned from, weighted by importance."""
        values, targets = fwd_out[QF_PREDS], fwd_out[TARGETS]
        taken = values.gather(-1, batch[Columns.ACTIONS].long().unsqueeze(-1)).squeeze(-1)
        # What follows the last row of a sequence is not known: nothing is learned there.
        learned = batch[Columns.LOSS_MASK][:, :-1]
        taken, count = taken[:, :-1], learned.sum()
        errors = torch.where(learned, taken - _goals(values, targets, config, batch), 0.0)
        loss = (batch[WEIGHTS][:, :-1] * _huber(errors)).sum() / count
        told = {
            "total_loss": loss,
            "mean_q": taken[learned].mean(),
            "min_q": taken.min(),
            "max_q": taken.max(),
            "mean_td_error": errors.sum() / count,
        }
        self.metrics.log_dict(told, key=module_id, window=1)
        if not hasattr(self, "td_errors"):
            self.td_errors: dict[str, Any] = {}
        self.td_errors[module_id] = errors.detach().mean(-1).cpu().numpy()
        return loss


@torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
def _goals(values: Any, targets: Any, config: Any, batch: Any) -> Any:
    """What the network should have said in each row but the last, `[B, rows - 1]`."""
    best = (values if config.double_q else targets).argmax(-1, keepdim=True)
    following = targets.gather(-1, best).squeeze(-1)[:, 1:]
    rewards, ended = (batch[name][:, :-1] for name in (Columns.REWARDS, Columns.TERMINATEDS))
    following = torch.where(ended, 0.0, following)
    discount = config.gamma**config.n_step
    if not config.use_h_function:
        return rewards + discount * following
    epsilon = config.h_function_epsilon
    return rescaled(rewards + discount * original(following, epsilon), epsilon)


def rescaled(value: Any, epsilon: float) -> Any:
    """The h-function: about the value's root, so that large values stay near each other."""
    return value.sign() * ((value.abs() + 1.0).sqrt() - 1.0) + epsilon * value


def original(scaled: Any, epsilon: float) -> Any:
    """The inverse of the h-function.

    RLlib took a difference of two near numbers and divided it by `epsilon ** 2`, which cost all
    but two digits with float32. This is the same fraction, expanded by their sum.
    """
    size, one = scaled.abs(), 2.0 * epsilon + 1.0
    root = (4.0 * epsilon * size + one**2).sqrt()
    return 2.0 * scaled * (size + 2.0) / (2.0 * epsilon * size + one + root)


def _huber(errors: Any) -> Any:
    return functional.huber_loss(errors, torch.zeros_like(errors), reduction="none")


register(R2D2)
