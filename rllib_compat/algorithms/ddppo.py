"""DDPPO (`rllib/agents/ppo/ddppo.py` of Ray 0.8 – 1.13, `algorithms/ddppo` until 2.10).

Each env runner has a learner of its own, and learns from what it has sampled itself. At each
minibatch, torch averages the gradients of all of them, so that all have the same weights. Nothing
is sent to the algorithm but weights, for its users; its own learner never learns.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import ray
import torch
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.algorithms.ppo.ppo import LEARNER_RESULTS_CURR_KL_COEFF_KEY
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from torch import distributed

from rllib_compat.algorithms.base import RemovedAlgorithm, RemovedAlgorithmConfig, register
from rllib_compat.algorithms.local_learners import (
    sample_fragment,
    sync_local_env_runner,
    sync_module,
)
from rllib_compat.algorithms.sampling import on_env_runners, steps_sampled
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import env_runners, learners, training_steps
from rllib_compat.runtime.policies import local_learner

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import EnvRunner


class PeerLostError(Exception):
    """Another process has failed or has left, and there is no mean."""


def rendezvous_address(_: object = None) -> str:
    """An address on this machine where processes can meet."""
    with socket.socket() as found:
        found.bind(("", 0))
        port = found.getsockname()[1]
    return f"tcp://{ray.util.get_node_ip_address()}:{port}"


def join(address: str, backend: str, ranks: Mapping[int, int], index: int) -> None:
    """Connects this process to others, whose ranks are by their indices; waits for all of them."""
    leave()
    if len(ranks) > 1:
        distributed.init_process_group(
            backend, init_method=address, rank=ranks[index], world_size=len(ranks)
        )


def leave() -> None:
    """Disconnects this process from the others, who no longer wait for it."""
    if distributed.is_initialized():
        distributed.destroy_process_group()


def average(gradients: Sequence[Any], like: Sequence[Any]) -> list[Any]:
    """The means of gradients over all connected processes.

    Args:
        gradients: Those of this process; None where a parameter has none, which counts as zeros.
        like: The parameters, in the same order everywhere.

    Returns:
        Means; None where no process has a gradient.

    Raises:
        PeerLostError: Another process is gone.
    """
    if not distributed.is_initialized():
        return list(gradients)
    there = torch.tensor([0.0 if gradient is None else 1.0 for gradient in gradients])
    parts = [
        torch.zeros_like(parameter).reshape(-1) if gradient is None else gradient.reshape(-1)
        for gradient, parameter in zip(gradients, like, strict=True)
    ]
    # All in one: a message costs more than what is in it.
    device = parts[0].device if distributed.get_backend() == "nccl" else "cpu"
    whole = torch.cat([there.to(device), *(part.to(device) for part in parts)])
    try:
        distributed.all_reduce(whole)
    except RuntimeError as error:
        raise PeerLostError(str(error)) from error
    whole /= distributed.get_world_size()
    there, *means = whole.split([len(parts), *(len(part) for part in parts)])
    return [
        mean.to(parameter.device, parameter.dtype).reshape(parameter.shape) if known else None
        for mean, parameter, known in zip(means, like, (there > 0).tolist(), strict=True)
    ]


#: What torch averages with.
BACKENDS = ("gloo", "mpi", "nccl")


@frozen
class Member:
    """An env runner as a member of a group whose gradients are averaged.

    Attributes:
        index: Its own.
        group: The group that it has joined last.
        connected: Whether it is still connected to the others.
    """

    index: int
    group: str | None
    connected: bool


class DDPPO(RemovedAlgorithm, PPO):  # type: ignore[misc]  # Ray has no types
    """PPO whose env runners learn from their own samples, with the mean of their gradients."""

    #: The group of env runners that have the newest weights; None: the algorithm has them itself.
    _group: str | None = None

    def training_step(self) -> Any:
        """Lets each env runner sample once, and learn from it. On the old API stack it is PPO."""
        if not self.config.enable_rl_module_and_learner:
            return super().training_step()
        members = self._members()
        if self._group is None or any(
            (member.group, member.connected) != (self._group, True) for member in members
        ):
            self._join(members)
        answers = on_env_runners(self, partial(learn_on_own_fragment, steps=steps_sampled(self)))
        results = [result for result, _ in answers if result is not None]
        training_steps.log_of_learners(self, results)
        if results and self.config.keep_local_weights_in_sync:
            self._take_learner_state(("rl_module",))
        return None

    def save_to_path(self, *args: object, **kwargs: object) -> Any:
        """Saves what env runners have learned."""
        self._take_learner_state()
        return super().save_to_path(*args, **kwargs)

    def restore_from_path(self, *args: object, **kwargs: object) -> None:
        """Restores a checkpoint, from which all env runners continue."""
        self._group = None
        super().restore_from_path(*args, **kwargs)

    def set_state(self, state: object) -> None:
        """Sets a state, from which all env runners continue."""
        self._take_learner_state()
        super().set_state(state)
        self._group = None

    def _on_env_runners(self, function: Callable[..., Any], only: int | None = None) -> list[Any]:
        group = self.env_runner_group
        local = group.num_remote_workers() == 0
        chosen = {} if local or only is None else {"remote_worker_ids": [only]}
        return env_runners.foreach_env_runner(group, function, local_env_runner=local, **chosen)

    def _members(self) -> list[Member]:
        found: list[Member] = self._on_env_runners(member)
        return found

    def _join(self, members: list[Member]) -> None:
        """Makes a group of all env runners, with the newest weights and optimizers."""
        if not members:  # all have failed
            return
        self._take_learner_state(members=members)
        (state,) = training_steps.foreach_learner(self, learner_state)[:1]
        indices = [one.index for one in members]
        self._group = uuid4().hex
        (address,) = self._on_env_runners(rendezvous_address, only=indices[0])
        self._on_env_runners(
            partial(
                join_group,
                group=self._group,
                state=state,
                address=address,
                ranks={index: rank for rank, index in enumerate(indices)},
            )
        )

    def _take_learner_state(
        self, components: object = None, members: list[Member] | None = None
    ) -> None:
        """Takes what an env runner has learned into the algorithm's learner."""
        if self._group is None:
            return
        members = self._members() if members is None else members
        index = next((one.index for one in members if one.group == self._group), None)
        if index is None:  # it is lost, but for what was taken before
            return
        (state,) = self._on_env_runners(
            partial(local_learner_state, components=components), only=index
        )
        training_steps.foreach_learner(self, partial(learners.set_learner_state, state=state))
        sync_local_env_runner(self)


def member(env_runner: EnvRunner) -> Member:
    """What an env runner has joined."""
    learner = local_learner(env_runner)
    return Member(env_runner.worker_index or 0, learner.group, learner.connected)


def learner_state(learner: Any, components: Any = None) -> Mapping[str, Any]:
    """What a learner has learned: the weights and the states of the optimizers."""
    parts = components or ("rl_module", "optimizer")
    state: Mapping[str, Any] = learner.get_state(components=list(parts))
    return state


def local_learner_state(env_runner: EnvRunner, components: object) -> Mapping[str, Any]:
    """What the learner of an env runner has learned."""
    return learner_state(local_learner(env_runner), components)


def join_group(
    env_runner: EnvRunner, group: str, state: Any, address: str, ranks: Mapping[int, int]
) -> None:
    """Lets an env runner learn with others, from a common state on."""
    learner = local_learner(env_runner)
    learners.set_learner_state(learner, state)
    sync_module(env_runner)
    join(address, env_runner.config.torch_distributed_backend, ranks, env_runner.worker_index or 0)
    learner.group, learner.connected = group, True


def learn_on_own_fragment(env_runner: EnvRunner, steps: int) -> tuple[Any, Any]:
    """Samples, learns from it with the others, and acts by that; `steps` were ever sampled by all.

    Returns:
        The metrics of its learner and of the env runner; none of the learner where another env
        runner has failed: what it had learned by then is where the next group begins.
    """
    learner = local_learner(env_runner)
    learners.copy_weights_seq_no(learner, env_runner)
    answers = None
    try:
        answers = learner.learn_with_others(sample_fragment(env_runner), steps)
    except PeerLostError:
        pass
    finally:
        if answers is None:  # the others would wait for its gradients
            learner.connected = False
            leave()
    sync_module(env_runner)
    return answers, env_runner.get_metrics()


class DDPPOConfig(RemovedAlgorithmConfig, PPOConfig):  # type: ignore[misc]
    """The config of DDPPO: PPO's, but for batches.

    `train_batch_size_per_learner` is how many steps each env runner samples and learns from, if
    `rollout_fragment_length` does not say how many each of its environments makes.
    """

    new_stack_only = False
    settings = {
        "keep_local_weights_in_sync": "Whether the algorithm takes the weights after each step; "
        "else only when it is saved.",
        "torch_distributed_backend": "What averages gradients: gloo, mpi or nccl.",
    }

    def get_rollout_fragment_length(self, worker_index: int = 0) -> int:  # noqa: ARG002
        """How many steps each environment of an env runner makes."""
        if self.rollout_fragment_length != "auto":
            return int(self.rollout_fragment_length)
        batch = self.train_batch_size_per_learner or self.train_batch_size
        return max(1, int(batch) // int(self.num_envs_per_env_runner))

    def steps_of_an_env_runner(self) -> int:
        """How many steps an env runner samples and learns from."""
        return self.get_rollout_fragment_length() * int(self.num_envs_per_env_runner)

    def validate_train_batch_size_vs_rollout_fragment_length(self) -> None:
        """Nothing: there is no batch of all env runners."""

    def validate(self) -> None:
        """Checks all settings against each other.

        Raises:
            ConfigError: It can't run so.
        """
        super().validate()
        if self.in_evaluation or not self.enable_rl_module_and_learner:
            return
        for wrong, where, found, fix in (
            (
                self.batch_mode != "truncate_episodes",
                "batch_mode",
                "Env runners of DDPPO learn from equally many steps, not from whole episodes.",
                'batch_mode="truncate_episodes"',
            ),
            (
                self.torch_distributed_backend not in BACKENDS,
                "torch_distributed_backend",
                f"torch does not average with {self.torch_distributed_backend!r}.",
                f"Set it to one of {', '.join(BACKENDS)}.",
            ),
            (
                bool(self.num_learners or self.num_gpus_per_learner),
                "num_learners",
                "Env runners of DDPPO learn themselves; other learners have nothing to do.",
                "num_learners=0, num_gpus_per_learner=0; num_gpus_per_env_runner gives GPUs to env "
                "runners",
            ),
            (
                (self.minibatch_size or 0) > self.steps_of_an_env_runner(),
                "minibatch_size",
                f"A minibatch of {self.minibatch_size} does not fit into the "
                f"{self.steps_of_an_env_runner()} steps of an env runner.",
                "Make it smaller; it is each env runner's own.",
            ),
            (
                not issubclass(self.learner_class, DDPPOTorchLearner),
                "learner_class",
                f"{self.learner_class.__name__} does not average gradients.",
                "Derive it from DDPPOTorchLearner.",
            ),
        ):
            if wrong:
                raise ConfigError(found, where=where, fix=fix)


class DDPPOTorchLearner(learners.GradientClippingLearner, PPOTorchLearner):  # type: ignore[misc]
    """Computes PPO's loss, and makes its steps with the mean of all env runners' gradients."""

    #: The group that it has joined last.
    group: str | None = None
    #: Whether it averages with the others.
    connected: bool = False

    def learn_with_others(self, episodes: list[Any], steps: int) -> Any:
        """Learns from episodes in as many minibatches as all others do; returns its metrics.

        A minibatch of a recurrent module has one sequence at least, however small it is to be.
        """
        config = self.config
        whole = config.steps_of_an_env_runner()
        modules = [module.unwrapped() for module in self.module.values()]
        sequences = [m.model_config["max_seq_len"] for m in modules if m.is_stateful()]
        size = max([config.minibatch_size or whole, *sequences])
        return training_steps.update_learner(
            self,
            episodes,
            {"num_env_steps_sampled_lifetime": steps},
            num_epochs=config.num_epochs,
            minibatch_size=size,
            shuffle_batch_per_epoch=config.shuffle_batch_per_epoch,
            # They would wait for each other forever: episodes have a step more at their ends.
            num_total_minibatches=config.num_epochs * -(-whole // size),
        )

    def apply_gradients(self, gradients_dict: Mapping[Any, torch.Tensor]) -> None:
        """Makes a step with the mean of these gradients and the others', which are clipped, too."""
        super().apply_gradients(self.average_gradients(gradients_dict))

    def _update_module_kl_coeff(self, *, module_id: str, **_: object) -> None:
        """Nothing: the weight of a KL penalty stays as it is, for all env runners alike."""
        weight = float(self.curr_kl_coeffs_per_module[module_id])
        self.metrics.log_value((module_id, LEARNER_RESULTS_CURR_KL_COEFF_KEY), weight, window=1)

    def average_gradients(self, gradients_dict: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """The means of these gradients and the others'; waits for them."""
        if not self.connected:
            return gradients_dict
        named = sorted(learners.parameters_of(self).items())
        parameters = [parameter for _, parameter in named]
        refs = [self.get_param_ref(parameter) for parameter in parameters]
        means = average([gradients_dict.get(ref) for ref in refs], parameters)
        return {ref: mean for ref, mean in zip(refs, means, strict=True) if mean is not None}


register(DDPPO, DDPPOConfig, DDPPOTorchLearner)
