"""MADDPG (`rllib/contrib/maddpg` of Ray 0.7 – 1.13, `algorithms/maddpg` until 2.10).

Each agent has an actor that sees what it observes, and a critic that sees the observations and
actions of all. Steps are replayed for all agents at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode

from rllib_compat.algorithms.base import (
    ActorCriticLearner,
    Batch,
    Loss,
    RemovedAlgorithm,
    RemovedAlgorithmConfig,
    register,
)
from rllib_compat.algorithms.objectives import td_targets
from rllib_compat.algorithms.replay import ReplayBuffer, RingStorage
from rllib_compat.algorithms.rounds import begin_rounds
from rllib_compat.algorithms.transitions import N_STEP, Array, Steps, transitions
from rllib_compat.networks.families.maddpg import sizes_of
from rllib_compat.networks.graph import EVERYONE
from rllib_compat.networks.modules.critics import Q_OF_POLICY, Q_VALUES, MADDPGModule
from rllib_compat.neutral import spaces
from rllib_compat.neutral.errors import ConfigError, LegacyEnvError
from rllib_compat.ray_versions import learners, training_steps

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig, SingleAgentEpisode


class TensorFlowAdam(torch.optim.Adam):
    """Adds epsilon to the root of the second moment before that is corrected; torch does it after.

    At the first step torch's epsilon of 1e-8 is one of 3e-7 here; it falls to 1e-8 in later steps.
    Its state is that of torch's.
    """

    def step(self, closure: object = None) -> Any:
        """Makes a step."""
        given = [group["eps"] for group in self.param_groups]
        for group in self.param_groups:
            known = (self.state[weight] for weight in group["params"] if self.state.get(weight))
            made = max((int(slots["step"]) for slots in known), default=0)
            group["eps"] /= (1.0 - group["betas"][1] ** (made + 1)) ** 0.5
        try:
            return super().step(closure)
        finally:
            for group, eps in zip(self.param_groups, given, strict=True):
                group["eps"] = eps


#: Module → column → a row for each step. A row of one module and the same row of another were one
#: step of the environment.
JointSteps = Mapping[str, Mapping[str, Array]]


def joint_steps(episodes: Iterable[Any], n_step: int, gamma: float) -> Iterator[JointSteps]:
    """Makes arrays of episodes, or of chunks of them; where these end, targets look less far ahead.

    Raises:
        LegacyEnvError: Not all agents acted in each step, or two follow one policy.
    """
    for episode in episodes:
        several = isinstance(episode, MultiAgentEpisode)
        parts = list(episode.agent_episodes.values()) if several else [episode]
        ids = [part.module_id or DEFAULT_MODULE_ID for part in parts]
        if len({len(part) for part in parts}) > 1:
            raise _error("has an agent that acts while another does not", ids)
        if len(set(ids)) < len(ids):
            raise _error("has two agents that follow one policy", ids)
        if parts and len(parts[0]):
            yield {i: _columns(p, n_step, gamma) for i, p in zip(ids, parts, strict=True)}


def _error(what: str, ids: Iterable[str]) -> LegacyEnvError:
    return LegacyEnvError(
        f"An episode {what} (the policies {', '.join(map(repr, ids))}), and MADDPG's critics need "
        "all agents in each step.",
        where="$.env",
        fix="Make each agent observe and act in each step, with its own policy.",
    )


def _columns(episode: SingleAgentEpisode, n_step: int, gamma: float) -> dict[str, Array]:
    steps = Steps.of(episode)
    ended = np.array([bool(info.get("done")) for info in episode.get_infos()[1:]])
    ended[-1] |= episode.is_terminated
    made = transitions(steps, ended, n_step, gamma)
    floats = (Columns.OBS, Columns.ACTIONS, Columns.NEXT_OBS)
    return {**made, **{name: np.asarray(made[name], np.float32) for name in floats}}


class JointReplayBuffer(ReplayBuffer):
    """Keeps steps of all agents, and draws them evenly."""

    def __init__(self, capacity: int) -> None:
        super().__init__(RingStorage(capacity))
        self._agents: tuple[str, ...] = ()

    def add(self, steps: JointSteps) -> None:
        """Keeps steps.

        Raises:
            LegacyEnvError: They are not of the agents that the others were of.
        """
        self._agents = self._agents or tuple(steps)
        if set(steps) != set(self._agents):
            raise _error(f"has not the agents of {', '.join(map(repr, self._agents))}", steps)
        self.keep(steps)


class MADDPG(RemovedAlgorithm, Algorithm):  # type: ignore[misc]  # Ray has no types
    """Samples a fragment on each env runner, keeps its steps, learns from steps drawn evenly."""

    def setup(self, config: AlgorithmConfig) -> None:
        """Builds env runners, learner and replay buffer."""
        super().setup(config)
        self._kept = JointReplayBuffer(self.config.buffer_size)
        self._owed = 0.0

    def training_step(self) -> None:
        """Samples; learns as often as the config says; sends the weights."""
        config = self.config
        rounds = begin_rounds(self)
        while rounds.start_next():
            sampled_rounds = rounds.sample_episodes(_arrays)
            for _, sampled in sampled_rounds:
                for steps in sampled:
                    self._kept.add(steps)
            if not sampled_rounds or not len(self._kept) or rounds.is_warming_up():
                continue
            for _ in range(self._updates(sum(steps for steps, _ in sampled_rounds))):
                drawn, _, _ = self._kept.draw(config.total_train_batch_size)
                rounds.learn(_batches(drawn), config.total_train_batch_size)
            training_steps.send_new_weights(self)
        rounds.log_metrics()

    def _updates(self, sampled: int) -> int:
        """How many updates are due after so many new steps."""
        intensity = self.config.training_intensity
        if intensity is None:
            return 1
        self._owed += intensity * sampled / self.config.total_train_batch_size
        due = int(self._owed)
        self._owed -= due
        return due


def _arrays(config: AlgorithmConfig, episodes: list[Any]) -> list[JointSteps]:
    return list(joint_steps(episodes, config.n_step, config.gamma))


def _batches(steps: JointSteps) -> dict[str, dict[str, Any]]:
    """A batch for each module: its own columns, and what its critic sees of everyone."""
    seen = (Columns.OBS, Columns.ACTIONS, Columns.NEXT_OBS)
    everyone = {agent: {name: columns[name] for name in seen} for agent, columns in steps.items()}
    return {agent: {**columns, EVERYONE: everyone} for agent, columns in steps.items()}


def _sizes(spec: Any) -> int:
    """How many numbers a critic gets of an agent."""
    return sum(sizes_of(*map(spaces.from_object, (spec.observation_space, spec.action_space))))


class MADDPGConfig(RemovedAlgorithmConfig):
    """The config of MADDPG.

    Its environment is a `MultiAgentEnv` in which all agents act in each step, and each agent has a
    policy of its own. What differs between policies is given with
    `multi_agent(algorithm_config_overrides_per_module={"policy": {"use_local_critic": True}})`.
    """

    buffer_size: int
    default_module_class = MADDPGModule
    least = {"buffer_size": 1, "n_step": 1}
    schedules = {"actor_lr": "learning rate", "critic_lr": "learning rate"}
    module_settings = {
        "actor_hiddens": "The sizes of each actor's hidden layers.",
        "actor_hidden_activation": "Their activation.",
        "critic_hiddens": "The sizes of each critic's hidden layers.",
        "critic_hidden_activation": "Their activation.",
    }
    settings = {
        "agent_id": "The place of a policy's agent among all that the critics see: a number for "
        "each policy. None: the order of the policies' names.",
        "use_local_critic": "Whether a critic sees its own agent alone, as DDPG's does.",
        "actor_lr": "The actors' learning rate, or a schedule `[[step, rate], …]`.",
        "critic_lr": "That of the critics.",
        "actor_feature_reg": "The weight of the squared logits of an actor in its loss; None: 0.",
        "n_step": "How many steps a target looks ahead.",
        "tau": "How far targets go towards their networks each time.",
        "target_network_update_freq": "After how many sampled steps they do; 0: at each update.",
        "num_steps_sampled_before_learning_starts": "After how many sampled steps it learns.",
        "buffer_size": "How many steps of the environment are kept for replay. Checkpoints do not "
        "hold them.",
        "training_intensity": "How many steps are learned from for each one that is sampled. "
        "None: one update for each fragment of all env runners.",
    }

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class)
        self.grad_clip_by = "norm"  # each variable's gradient by itself
        # Ray's check takes a step with an action of the space, where ours is one of a simplex.
        self.disable_env_checking = True

    def get_multi_rl_module_spec(self, **kwargs: object) -> Any:
        """Describes all modules, each with what its critic sees."""
        made = super().get_multi_rl_module_spec(**kwargs)
        specs = made.rl_module_specs
        # Not `get_config_for_module`, which fails on the frozen configs of env runners.
        own = self.algorithm_config_overrides_per_module
        shared = {name: getattr(self, name) for name in ("agent_id", "use_local_critic")}
        options = {name: {**shared, **own.get(name, {})} for name in specs}
        everyone = sorted(specs, key=lambda name: (options[name]["agent_id"] or 0, str(name)))
        for name, spec in specs.items():
            sees = [name] if options[name]["use_local_critic"] else everyone
            spec.model_config = {
                **spec.model_config,
                **{key: options[name][key] for key in self.module_settings if key in options[name]},
                "agent": name,
                "critic_sees": sees,
                "critic_inputs": sum(_sizes(specs[agent]) for agent in sees),
            }
        return made

    def validate(self) -> None:
        """Checks all settings against each other.

        Raises:
            ConfigError: Two of them contradict each other, or nothing can run them.
        """
        super().validate()
        if self.get_rollout_fragment_length() < self.n_step and not self.in_evaluation:
            raise ConfigError(
                f"A fragment of {self.rollout_fragment_length} steps is too short for targets of "
                f"{self.n_step} steps.",
                where="rollout_fragment_length",
                fix=f"rollout_fragment_length={self.n_step}",
            )


class MADDPGTorchLearner(learners.ArrayBatchLearner, ActorCriticLearner):
    """Computes the losses: what `MADDPGTFPolicy` computed."""

    optimizer = TensorFlowAdam

    def module_loss(
        self, module_id: str, config: AlgorithmConfig, batch: Batch, out: Batch
    ) -> Loss:
        """The sum of the actor's and the critic's losses.

        Neither has a gradient where the other one learns, so that their sum trains each alone.
        """
        targets = self._targets(module_id, config, batch)
        errors = out[Q_VALUES] - targets
        actor_loss, critic_loss = maddpg_losses(
            errors,
            out[Q_OF_POLICY],
            out[Columns.ACTION_DIST_INPUTS],
            config.actor_feature_reg or 0.0,
        )
        return actor_loss + critic_loss, {
            "actor_loss": actor_loss,
            "critic_loss": critic_loss,
            "mean_q": out[Q_VALUES].mean(),
            "mean_td_error": errors.mean(),
        }

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def _targets(self, module_id: str, config: AlgorithmConfig, batch: Batch) -> Any:
        """What the critic should have said, given what all actors that it sees would do next."""
        module = self.module[module_id].unwrapped()
        following = [batch[EVERYONE][agent][Columns.NEXT_OBS] for agent in module.critic_sees]
        acted = [
            self.module[agent].unwrapped().forward_target({Columns.OBS: seen})[Columns.ACTIONS]
            for agent, seen in zip(module.critic_sees, following, strict=True)
        ]
        return td_targets(
            batch[Columns.REWARDS],
            batch[Columns.TERMINATEDS],
            module.target_value(following, acted),
            config.gamma ** batch.get(N_STEP, config.n_step),
        )


def maddpg_losses(
    errors: torch.Tensor, policy_values: torch.Tensor, logits: torch.Tensor, feature_reg: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The losses of an actor and of its critic.

    Args:
        errors: What the critic is wrong by about the steps, `[B]`.
        policy_values: What it says of the actor's own actions, `[B]`.
        logits: What the actor gives for each action, `[B, actions]`.
        feature_reg: The weight of their squares.
    """
    return feature_reg * logits.pow(2.0).mean() - policy_values.mean(), errors.pow(2.0).mean()


register(MADDPG, MADDPGConfig, MADDPGTorchLearner)
