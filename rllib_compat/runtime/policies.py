"""The policy object of Ray 0.5 – 2.x around today's `RLModule` and the learner that trains it.

A policy holds no second copy of anything: it acts with the module of the env runner, judges and
learns with that of the learner, where that is in this process, and asks its trainer for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.neutral.errors import CompatError
from rllib_compat.ray_versions import learners, modules, policy_parts
from rllib_compat.registry.legacy_api import missing
from rllib_compat.runtime.acting_policies import ActingPolicy
from rllib_compat.runtime.policy_inputs import in_numpy
from rllib_compat.runtime.postprocessing import postprocess

if TYPE_CHECKING:
    import torch

    from rllib_compat.ray_versions.types import AlgorithmConfig, Learner, RLModule
    from rllib_compat.runtime.models import LegacyModel
    from rllib_compat.runtime.policy_learning import PolicyLearning
    from rllib_compat.runtime.policy_owner import PolicyOwner
    from rllib_compat.runtime.whole_modules import WholeModules

#: What policies told beside the statistics of a step.
_OF_LEARNING = ("td_error", "mean_td_error")


class LegacyPolicy(ActingPolicy):
    """A policy as legacy code uses it (`policy/{policy,torch_policy}.py` of Ray 0.5 – 2.x).

    Args:
        policy_id: Its id; the module has the same one.
        module: The `RLModule` that acts.
        config: The algorithm's config.
        owner: What reaches the trainer; None where there is none in this process.
        learner: The learner that holds the module, where there is no owner to ask.
        whole: What has its critic, and a learner, where there is neither; None: nothing.
    """

    def __init__(
        self,
        policy_id: str,
        module: RLModule,
        config: AlgorithmConfig,
        *,
        owner: PolicyOwner | None = None,
        learner: Learner | None = None,
        whole: WholeModules | None = None,
    ) -> None:
        super().__init__(policy_id, module, config, owner=owner)
        self._learner = learner
        self._whole = whole
        self._buffers: dict[int, Any] = {}

    # What it tells of its training

    @property
    def model(self) -> LegacyModel:
        """Its network as a `ModelV2`; `model.rl_module` is the learner's module, if it is here."""
        if self._model is None and (learner := self._learner_in_reach()) is not None:
            super().model.__dict__ |= learners.temperature(learner, self.policy_id)
        return super().model

    @property
    def model_gpu_towers(self) -> list[LegacyModel]:
        """The one model: learners are several where there are several devices."""
        return [self.model]

    @property
    def multi_gpu_param_groups(self) -> list[set[int]]:
        """For each optimizer, the places of its parameters among those of the model."""
        places = {id(held): at for at, held in enumerate(self.model.parameters())}
        return [
            {
                places[id(p)]
                for group in made.param_groups
                for p in group["params"]
                if id(p) in places
            }
            for made in self.optimizer()
        ]

    @property
    def cur_lr(self) -> float:
        """The learning rate of its optimizer, of a policy that has one."""
        optimizers = self.optimizer()
        if len(optimizers) != 1:
            raise missing(self, "policy", "cur_lr")
        return float(optimizers[0].param_groups[0]["lr"])

    @property
    def lr_schedule(self) -> Any:
        """What its learning rate follows, by timesteps; the learner's rate is `cur_lr`."""
        return self._schedule("lr")

    @property
    def entropy_coeff_schedule(self) -> Any:
        """What `entropy_coeff` follows, likewise."""
        return self._schedule("entropy_coeff")

    @property
    def entropy_coeff(self) -> float:
        """The weight of the entropy in its loss."""
        return self._coefficient("entropy_coeff")

    @property
    def kl_coeff(self) -> float:
        """The weight of PPO's KL penalty."""
        return self._coefficient("kl_coeff")

    kl_coeff_val = kl_coeff

    @property
    def kl_target(self) -> float:
        """What PPO's KL coefficient follows."""
        if not hasattr(self._config, "kl_target"):
            raise missing(self, "policy", "kl_target")
        return float(self._config.kl_target)

    def update_kl(self, sampled_kl: float) -> float:
        """Moves PPO's KL coefficient, and returns it.

        Args:
            sampled_kl: How far the policy has gone. The coefficient grows by half beyond twice the
                target, and is halved below half of it.
        """
        value, target = self.kl_coeff, self.kl_target
        value *= 1.5 if sampled_kl > 2 * target else 0.5 if sampled_kl < 0.5 * target else 1.0
        learners.set_coefficient(self._learner_here(), self.policy_id, "kl_coeff", value)
        return value

    # How it learns

    def postprocess_trajectory(
        self,
        sample_batch: Any,
        other_agent_batches: Any = None,  # noqa: ARG002
        episode: Any = None,  # noqa: ARG002
    ) -> Any:
        """Adds to the steps of one chunk of an episode what is learned from, and returns them.

        With a critic: `advantages` and `value_targets`. What replays: rewards and next observations
        of `n_step` steps, and `weights`.
        """
        postprocess(sample_batch, self._config, self._value_after)
        return sample_batch

    def loss(self, model: Any, dist_class: Any, train_batch: Any) -> torch.Tensor:  # noqa: ARG002
        """The learner's loss of a batch, whatever `model` and `dist_class` are given."""
        found: torch.Tensor = self._learning().loss(train_batch)
        return found

    def compute_gradients(self, postprocessed_batch: Any) -> tuple[list[Any], dict[str, Any]]:
        """The clipped gradients of a batch's loss.

        Returns:
            A tensor for each parameter, None for those that the loss does not depend on; and
            `learner_stats`.
        """
        gradients, told = self._learning().gradients(postprocessed_batch)
        for name in _OF_LEARNING:
            told.pop(name, None)
        return gradients, {"learner_stats": self._with_rates(told)}

    def apply_gradients(self, gradients: Sequence[Any]) -> None:
        """Makes a step of the optimizers with gradients as `compute_gradients` gave them."""
        self._learning().apply(gradients)
        self._changed()

    def learn_on_batch(self, postprocessed_batch: Any) -> dict[str, Any]:
        """Makes one step with a batch as workers sample it.

        Returns:
            `learner_stats`, and what else old policies told.
        """
        learning = self._learning()
        gradients, told = learning.gradients(postprocessed_batch)
        learning.apply(gradients)
        self._changed()
        more = {name: told.pop(name) for name in _OF_LEARNING if name in told}
        if "td_error" in more:
            more["td_error"] = np.ravel(in_numpy(more["td_error"])).astype(np.float32)
        return {
            "learner_stats": self._with_rates(told),
            **more,
            "model": self.model.metrics(),
            "custom_metrics": {},
            "num_agent_steps_trained": _count(postprocessed_batch),
        }

    def load_batch_into_buffer(self, batch: Any, buffer_index: int = 0) -> int:
        """Keeps a batch for `learn_on_loaded_batch`; returns how many steps it has."""
        self._buffers[buffer_index] = batch
        return _count(batch)

    def get_num_samples_loaded_into_buffer(self, buffer_index: int = 0) -> int:
        """How many steps the batch in a buffer has."""
        return _count(self._buffers[buffer_index]) if buffer_index in self._buffers else 0

    def learn_on_loaded_batch(self, offset: int = 0, buffer_index: int = 0) -> dict[str, Any]:
        """Learns from a batch that was loaded: from `offset` on, as many steps as a minibatch."""
        batch = self._buffers[buffer_index]
        size = self._config.minibatch_size or _count(batch)
        whole = offset == 0 and size >= _count(batch)
        return self.learn_on_batch(batch if whole else batch.slice(offset, offset + size))

    def learn_on_batch_from_replay_buffer(
        self, replay_actor: Any, policy_id: str
    ) -> dict[str, Any]:
        """Learns from what a replay actor gives for a policy."""
        import ray

        batch = ray.get(replay_actor.replay.remote(policy_id=policy_id))
        return {} if batch is None else self.learn_on_batch(batch)

    def update_target(self, tau: float | None = None) -> None:
        """Moves target networks towards the others, by the config's `tau` where none is given."""
        config = self._config
        learners.move_targets(self._learning().module, config.tau if tau is None else tau)

    def optimizer(self) -> list[torch.optim.Optimizer]:
        """The optimizers of the module."""
        return self._learning().optimizers

    def extra_grad_process(self, optimizer: Any, loss: Any) -> dict[str, Any]:  # noqa: ARG002
        """Nothing: the learner clips gradients."""
        return {}

    def extra_compute_grad_fetches(self) -> dict[str, Any]:
        """What is told beside gradients: nothing of its own."""
        return {"learner_stats": {}}

    def extra_grad_info(self, train_batch: Any) -> dict[str, Any]:  # noqa: ARG002
        """What is told of the last update."""
        return dict(self.model.tower_stats)

    def get_tower_stats(self, stats_name: str) -> list[Any]:
        """What the loss left in the model under a name; a list of one, as there is one model."""
        stats = self.model.tower_stats
        if stats_name not in stats:
            raise AssertionError(f"No {stats_name!r} among {', '.join(stats) or 'no statistics'}.")
        return [stats[stats_name]]

    # What it saves

    def get_weights(self) -> dict[str, Any]:
        """The weights by name, as arrays."""
        if self._owner is None:
            whole = self._whole
            return dict(
                whole.weights(self.policy_id, self.module) if whole else self.module.get_state()
            )
        return dict(self._owner.get_weights([self.policy_id])[self.policy_id])

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """Sets the weights by name."""
        if self._owner is not None:
            self._owner.set_weights({self.policy_id: weights})
        elif self._whole is not None:
            self._whole.set_weights(self.policy_id, self.module, weights)
        else:
            self.module.set_state(dict(weights))

    def get_state(self) -> dict[str, Any]:
        """Weights, what its optimizers hold, and how far its training and exploration are."""
        state: dict[str, Any] = {"global_timestep": self.global_timestep}
        state["weights"] = self.get_weights()
        if self._learner_in_reach() is not None:
            state["_optimizer_variables"] = self._learning().optimizer_states()
            state["_exploration_state"] = self.get_exploration_state()
            if hasattr(self, "kl_coeff"):
                state["current_kl_coeff"] = self.kl_coeff
        return state

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Sets what `get_state` returned; a state of Ray 0.8 – 1.2 has weights among the rest."""
        if (weights := state.get("weights")) is None:
            known = self.get_weights()
            weights = {name: value for name, value in state.items() if name in known} or state
        self.set_weights(weights)
        if self._learner_in_reach() is not None:
            if "_optimizer_variables" in state:
                self._learning().set_optimizer_states(state["_optimizer_variables"])
            if "current_kl_coeff" in state and hasattr(self, "kl_coeff"):
                value = float(state["current_kl_coeff"])
                learners.set_coefficient(self._learner_here(), self.policy_id, "kl_coeff", value)
        self.global_timestep = int(state.get("global_timestep", self.global_timestep))

    # Its parts

    def _learner_in_reach(self) -> Learner | None:
        return self._learner or (self._owner.local_learner() if self._owner else None)

    def _learner_here(self) -> Learner:
        learner = self._learner_in_reach()
        if learner is None and self._owner is None and self._whole is not None:
            return self._whole.learner(self.policy_id, self.module)
        if learner is None:
            raise CompatError(
                f"The policy {self.policy_id!r} is trained in another process.",
                where="policy",
                fix="leave `num_learners` out of the config, and ask trainer.get_policy()",
            )
        return learner

    def _learning(self) -> PolicyLearning:
        from rllib_compat.runtime.policy_learning import PolicyLearning

        return PolicyLearning(self._learner_here(), self.policy_id)

    def _whole_module(self) -> RLModule:
        learner = self._learner_in_reach()
        if learner is None:
            whole = self._whole
            return whole.module(self.policy_id, self.module) if whole else self.module
        found: RLModule = learner.module[self.policy_id].unwrapped()
        return found

    def _has_critic(self, module: RLModule) -> bool:
        alone = self._learner_in_reach() is None and module is self.module
        return super()._has_critic(module) and not (alone and modules.unsent_layers(module))

    def _changed(self) -> None:
        if self._owner:
            self._owner.weights_changed()
        elif self._whole and not self._learner:
            self._whole.take_learned(self.policy_id, self.module)

    def _coefficient(self, name: str) -> float:
        value = learners.coefficient(self._learner_here(), self.policy_id, name)
        if value is None:
            raise missing(self, "policy", name)
        return value

    def _schedule(self, name: str) -> Any:
        if (value := getattr(self._config, name, None)) is None:
            raise missing(self, "policy", f"{name}_schedule")
        return policy_parts.schedule(value)

    def _with_rates(self, told: Mapping[str, Any]) -> dict[str, Any]:
        used = {"cur_lr": "cur_lr", "cur_kl_coeff": "kl_coeff", "entropy_coeff": "entropy_coeff"}
        rates = {name: getattr(self, own) for name, own in used.items() if hasattr(self, own)}
        stats = {"allreduce_latency": 0.0, **told, **rates}
        self.model.__dict__["tower_stats"] = stats
        return stats

    def _value_after(self, batch: Any) -> float:
        """What is expected after the last step of a chunk: 0 where the episode ended with it."""
        columns = dict(batch.items())  # `batch["dones"]` is `terminateds` since Ray 2.1
        ends = columns["terminateds" if "terminateds" in columns else "dones"]
        if bool(np.asarray(ends)[-1]):
            return 0.0
        states = [np.asarray(batch[f"state_out_{i}"])[-1:] for i in range(self.num_state_tensors())]
        last = [np.asarray(batch[name])[-1:] for name in ("new_obs", "actions", "rewards")]
        extras = self.compute_actions(last[0], states, last[1], last[2], explore=False)[2]
        return float(extras["vf_preds"][0]) if "vf_preds" in extras else 0.0


def _count(batch: Any) -> int:
    """How many steps a batch has, padding among them, as ever."""
    return len(batch["rewards"])
