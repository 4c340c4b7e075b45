"""The policy object of Ray 0.5 – 2.x around an `RLModule` and the learner that trains it.

A policy has no copies: it acts with the env runner's module, computes values and learns with the
learner's module, if that is in this process, and gets everything else from its trainer.

Env runners' own modules only act, while old workers had complete policies: their samples had the
critic's values, their weights were those of all layers, and they computed gradients. So a call in a
worker passes a reference to the learners' weights, which is resolved when a critic is needed
(`CriticModules`).
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from rllib_compat.neutral.errors import CompatError, GoneError
from rllib_compat.ray_versions import learners, modules, schedules
from rllib_compat.ray_versions.modules import copy_with_critics, names_acted_with
from rllib_compat.registry.legacy_api import missing, sentence_for
from rllib_compat.runtime.acting_policies import ActingPolicy, PolicyOwner
from rllib_compat.runtime.batches import postprocess
from rllib_compat.runtime.policy_inputs import in_numpy
from rllib_compat.runtime.policy_mapping import ONLY_POLICY, resolve_policy_id

if TYPE_CHECKING:
    import torch

    from rllib_compat.ray_versions.types import AlgorithmConfig, EnvRunner, Learner, RLModule
    from rllib_compat.runtime.models import LegacyModel
    from rllib_compat.runtime.policy_learning import PolicyLearning


#: Env runners of this process → their learners. Neither is pickled.
_LEARNERS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def local_learner(env_runner: EnvRunner) -> Any:
    """Returns the learner of an env runner in its process; it is created on first use."""
    if env_runner not in _LEARNERS:
        config = env_runner.config.copy(copy_frozen=False)
        config.learners(num_learners=0, num_gpus_per_learner=config.num_gpus_per_env_runner)
        _LEARNERS[env_runner] = config.build_learner(spaces=env_runner.get_spaces())
    return _LEARNERS[env_runner]


class CriticModules:
    """The critics of an env runner's policies: the weights of the layers that do not act."""

    def __init__(self, env_runner: EnvRunner) -> None:
        self._env_runner = env_runner
        self._learned: list[Any] = []
        self._others: dict[str, dict[str, Any]] = {}
        self._copies: dict[str, RLModule] = {}

    def set_learned(self, learned: list[Any]) -> None:
        """Sets the learners' weights that critics are taken from.

        Args:
            learned: A list with a reference to weights by policy and name; Ray does not resolve
                references in lists.
        """
        if learned != self._learned:
            self._learned, self._others = learned, {}

    def weights(self, policy_id: str, acting: RLModule) -> dict[str, Any]:
        """Returns all weights of a policy: those of its acting module, and its critic's."""
        if policy_id not in self._others:
            self._set_others(policy_id, acting, self._learned_by(policy_id))
        return {**acting.get_state(), **self._others[policy_id]}

    def set_weights(self, policy_id: str, acting: RLModule, weights: Mapping[str, Any]) -> None:
        """Sets the weights of a policy, until `set_learned` gets other ones."""
        acting.set_state(dict(weights))
        self._set_others(policy_id, acting, weights)

    def module(self, policy_id: str, acting: RLModule) -> RLModule:
        """Returns a copy of a module with its critic, or the module if there are no weights."""
        weights = self.weights(policy_id, acting)
        if not self._others[policy_id]:
            return acting
        found = self._copies.get(policy_id)
        if found is None or type(found) is not type(acting):
            found = self._copies[policy_id] = copy_with_critics(acting)
        found.set_state(weights)
        return found

    def learner(self, policy_id: str, acting: RLModule) -> Learner:
        """Returns the learner of this process, with the weights of this policy."""
        found: Learner = local_learner(self._env_runner)
        found.module[policy_id].unwrapped().set_state(self.weights(policy_id, acting))
        return found

    def update_from_learner(self, policy_id: str, acting: RLModule) -> None:
        """Sets a policy's weights to those of the learner in this process."""
        learned = local_learner(self._env_runner).module[policy_id].unwrapped()
        self.set_weights(policy_id, acting, learned.get_state())

    def _learned_by(self, policy_id: str) -> Mapping[str, Any]:
        import ray

        weights: dict[str, Any] = ray.get(self._learned[0]) if self._learned else {}
        return dict(weights.get(policy_id, {}))

    def _set_others(self, policy_id: str, acting: RLModule, weights: Mapping[str, Any]) -> None:
        sent = names_acted_with(acting)
        # Copies: arrays in Ray's object store are read-only, and stay there while referenced.
        self._others[policy_id] = {n: np.array(w) for n, w in weights.items() if n not in sent}


#: Values that policies returned beside `learner_stats`.
_TD_ERRORS = ("td_error", "mean_td_error")


class LegacyPolicy(ActingPolicy):
    """A policy as legacy code uses it (`policy/{policy,torch_policy}.py` of Ray 0.5 – 2.x).

    Args:
        policy_id: Its id; the module has the same one.
        module: The `RLModule` that acts.
        config: The algorithm's config.
        owner: The trainer's view of its policies; None in another process.
        learner: The learner with the module, if there is no owner.
        critics: The critics and learner, if there is neither; None: there are none.
    """

    def __init__(
        self,
        policy_id: str,
        module: RLModule,
        config: AlgorithmConfig,
        *,
        owner: PolicyOwner | None = None,
        learner: Learner | None = None,
        critics: CriticModules | None = None,
    ) -> None:
        super().__init__(policy_id, module, config, owner=owner)
        self._learner = learner
        self._critics = critics
        self._buffers: dict[int, Any] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if sentence_for("policy", name) and not hasattr(type(self), name):
            raise missing(self, "policy", name)
        of_class = getattr(type(self), name, None)
        is_computed = isinstance(of_class, (property, cached_property))
        if is_computed and not getattr(of_class, "fset", None):
            raise GoneError(
                f"`policy.{name}` can be read and not set: the learner has its own.",
                where=f"policy.{name}",
                fix="train with another config: trainer.reset_config({**trainer.config, KEY: …})",
            )
        super().__setattr__(name, value)

    # Training state

    @property
    def model(self) -> LegacyModel:
        """Its network as a `ModelV2`; `model.rl_module` is a local learner's module."""
        if self._model is None and (learner := self._find_learner()) is not None:
            super().model.__dict__ |= learners.temperature(learner, self.policy_id)
        return super().model

    @property
    def model_gpu_towers(self) -> list[LegacyModel]:
        """A list with the model: with several devices there are several learners instead."""
        return [self.model]

    @property
    def multi_gpu_param_groups(self) -> list[set[int]]:
        """For each optimizer, the indices of its parameters among those of the model."""
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
        """The learning rate of its optimizer, if it has exactly one."""
        optimizers = self.optimizer()
        if len(optimizers) != 1:
            raise missing(self, "policy", "cur_lr")
        return float(optimizers[0].param_groups[0]["lr"])

    @cur_lr.setter
    def cur_lr(self, rate: float) -> None:
        if len(self.optimizer()) != 1:
            raise missing(self, "policy", "cur_lr")
        learners.set_learning_rate(self._require_learner(), self.policy_id, float(rate))

    @property
    def lr_schedule(self) -> Any:
        """The schedule of its learning rate by timesteps; the current rate is `cur_lr`.

        One that is set decides from the next update on, as in old Rays.
        """
        return self._schedule("lr")

    @lr_schedule.setter
    def lr_schedule(self, schedule: object) -> None:
        self._follow("lr", schedule)

    @property
    def entropy_coeff_schedule(self) -> Any:
        """The schedule of `entropy_coeff` by timesteps; see `lr_schedule`."""
        return self._schedule("entropy_coeff")

    @entropy_coeff_schedule.setter
    def entropy_coeff_schedule(self, schedule: object) -> None:
        self._follow("entropy_coeff", schedule)

    @property
    def entropy_coeff(self) -> float:
        """The weight of the entropy in its loss."""
        return self._coefficient("entropy_coeff")

    @entropy_coeff.setter
    def entropy_coeff(self, value: float) -> None:
        self._set_coefficient("entropy_coeff", value)

    @property
    def kl_coeff(self) -> float:
        """The weight of PPO's KL penalty."""
        return self._coefficient("kl_coeff")

    @kl_coeff.setter
    def kl_coeff(self, value: float) -> None:
        self._set_coefficient("kl_coeff", value)

    kl_coeff_val = kl_coeff
    # Their names since Ray 1.9.
    _lr_schedule = lr_schedule
    _entropy_coeff_schedule = entropy_coeff_schedule

    @property
    def kl_target(self) -> float:
        """The target of PPO's KL divergence."""
        if not hasattr(self._config, "kl_target"):
            raise missing(self, "policy", "kl_target")
        return float(self._config.kl_target)

    def update_kl(self, sampled_kl: float) -> float:
        """Updates PPO's KL coefficient, and returns it.

        Args:
            sampled_kl: The measured KL divergence. Above twice the target, the coefficient is
                multiplied by 1.5; below half the target, it is halved.
        """
        value, target = self.kl_coeff, self.kl_target
        value *= 1.5 if sampled_kl > 2 * target else 0.5 if sampled_kl < 0.5 * target else 1.0
        self.kl_coeff = value
        return value

    # Learning

    def postprocess_trajectory(
        self,
        sample_batch: dict[str, Any],
        other_agent_batches: Any = None,  # noqa: ARG002
        episode: Any = None,  # noqa: ARG002
    ) -> Any:
        """Adds the columns for training to one chunk of an episode, in place, and returns it.

        With a critic, these are `advantages` and `value_targets`. With a replay buffer, rewards and
        next observations become those of `n_step` steps, and `weights` are added.
        """
        postprocess(sample_batch, self._config, self._value_after)
        return sample_batch

    def loss(self, model: Any, dist_class: Any, train_batch: Mapping[str, Any]) -> torch.Tensor:  # noqa: ARG002
        """Computes the learner's loss of a batch; ignores `model` and `dist_class`."""
        found: torch.Tensor = self._learning().loss(train_batch)
        return found

    def compute_gradients(
        self, postprocessed_batch: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Computes the clipped gradients of a batch's loss.

        Returns:
            A tensor for each parameter, None for those that the loss does not depend on; and
            `learner_stats`.
        """
        gradients, stats = self._learning().gradients(postprocessed_batch)
        for name in _TD_ERRORS:
            stats.pop(name, None)
        return gradients, {"learner_stats": self._with_rates(stats)}

    def apply_gradients(self, gradients: Sequence[Any]) -> None:
        """Makes a step of the optimizers with the gradients of `compute_gradients`."""
        self._learning().apply(gradients)
        self._changed()

    def learn_on_batch(self, postprocessed_batch: Mapping[str, Any]) -> dict[str, Any]:
        """Makes one optimizer step with a batch that workers have sampled.

        Returns:
            `learner_stats` and the other values that old policies returned.
        """
        learning = self._learning()
        gradients, stats = learning.gradients(postprocessed_batch)
        learning.apply(gradients)
        self._changed()
        more = {name: stats.pop(name) for name in _TD_ERRORS if name in stats}
        if "td_error" in more:
            more["td_error"] = np.ravel(in_numpy(more["td_error"])).astype(np.float32)
        return {
            "learner_stats": self._with_rates(stats),
            **more,
            "model": self.model.metrics(),
            "custom_metrics": {},
            "num_agent_steps_trained": _count(postprocessed_batch),
        }

    def load_batch_into_buffer(self, batch: Mapping[str, Any], buffer_index: int = 0) -> int:
        """Stores a batch for `learn_on_loaded_batch`, and returns its number of steps."""
        self._buffers[buffer_index] = batch
        return _count(batch)

    def get_num_samples_loaded_into_buffer(self, buffer_index: int = 0) -> int:
        """Returns the number of steps of the batch in a buffer."""
        return _count(self._buffers[buffer_index]) if buffer_index in self._buffers else 0

    def learn_on_loaded_batch(self, offset: int = 0, buffer_index: int = 0) -> dict[str, Any]:
        """Learns from a minibatch of a loaded batch, which starts at `offset`."""
        batch = self._buffers[buffer_index]
        size = self._config.minibatch_size or _count(batch)
        whole = offset == 0 and size >= _count(batch)
        return self.learn_on_batch(batch if whole else batch.slice(offset, offset + size))

    def learn_on_batch_from_replay_buffer(
        self, replay_actor: Any, policy_id: str
    ) -> dict[str, Any]:
        """Learns from a batch of a replay actor."""
        import ray

        batch = ray.get(replay_actor.replay.remote(policy_id=policy_id))
        return {} if batch is None else self.learn_on_batch(batch)

    def update_target(self, tau: float | None = None) -> None:
        """Updates the target networks by `tau`, by default the config's."""
        config = self._config
        learners.move_targets(self._learning().module, config.tau if tau is None else tau)

    def optimizer(self) -> list[torch.optim.Optimizer]:
        """The optimizers of the module."""
        return self._learning().optimizers

    _optimizers = property(optimizer)

    def extra_grad_process(self, optimizer: Any, loss: Any) -> dict[str, Any]:  # noqa: ARG002
        """Returns an empty dict: the learner clips gradients."""
        return {}

    def extra_compute_grad_fetches(self) -> dict[str, Any]:
        """Returns empty `learner_stats`."""
        return {"learner_stats": {}}

    def extra_grad_info(self, train_batch: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Returns the statistics of the last update."""
        return dict(self.model.tower_stats)

    def get_tower_stats(self, stats_name: str) -> list[Any]:
        """Returns a list with the model's statistic of a name."""
        stats = self.model.tower_stats
        if stats_name not in stats:
            known = ", ".join(stats) or "none"
            raise AssertionError(f"There is no statistic {stats_name!r}; there are: {known}.")
        return [stats[stats_name]]

    # State

    def get_weights(self) -> dict[str, Any]:
        """Returns the weights by name, as arrays."""
        if self._owner is None:
            whole = self._critics
            return dict(
                whole.weights(self.policy_id, self.module) if whole else self.module.get_state()
            )
        return dict(self._owner.get_weights([self.policy_id])[self.policy_id])

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """Sets the weights by name."""
        if self._owner is not None:
            self._owner.set_weights({self.policy_id: weights})
        elif self._critics is not None:
            self._critics.set_weights(self.policy_id, self.module, weights)
        else:
            self.module.set_state(dict(weights))

    def get_state(self) -> dict[str, Any]:
        """Returns weights, optimizer states, and the progress of training and exploration."""
        state: dict[str, Any] = {"global_timestep": self.global_timestep}
        state["weights"] = self.get_weights()
        if self._find_learner() is not None:
            state["_optimizer_variables"] = self._learning().optimizer_states()
            state["_exploration_state"] = self.get_exploration_state()
            if hasattr(self, "kl_coeff"):
                state["current_kl_coeff"] = self.kl_coeff
        return state

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Sets a state of `get_state`; one of Ray 0.8 – 1.2 has the weights at its top level."""
        if (weights := state.get("weights")) is None:
            known = self.get_weights()
            weights = {name: value for name, value in state.items() if name in known} or state
        self.set_weights(weights)
        if self._find_learner() is not None:
            if "_optimizer_variables" in state:
                self._learning().set_optimizer_states(state["_optimizer_variables"])
            if "current_kl_coeff" in state and hasattr(self, "kl_coeff"):
                self.kl_coeff = state["current_kl_coeff"]
        self.global_timestep = int(state.get("global_timestep", self.global_timestep))

    # Access to learners

    def _find_learner(self) -> Learner | None:
        return self._learner or (self._owner.local_learner() if self._owner else None)

    def _require_learner(self) -> Learner:
        learner = self._find_learner()
        if learner is None and self._owner is None and self._critics is not None:
            return self._critics.learner(self.policy_id, self.module)
        if learner is None:
            raise CompatError(
                f"The learner of policy {self.policy_id!r} is in another process.",
                where="policy",
                fix="remove `num_learners` from the config, and call trainer.get_policy()",
            )
        return learner

    def _learning(self) -> PolicyLearning:
        from rllib_compat.runtime.policy_learning import PolicyLearning

        return PolicyLearning(self._require_learner(), self.policy_id)

    def _module_with_critic(self) -> RLModule:
        learner = self._find_learner()
        if learner is None:
            whole = self._critics
            return whole.module(self.policy_id, self.module) if whole else self.module
        found: RLModule = learner.module[self.policy_id].unwrapped()
        return found

    def _has_critic(self, module: RLModule) -> bool:
        alone = self._find_learner() is None and module is self.module
        return super()._has_critic(module) and not (alone and modules.unsent_layers(module))

    def _changed(self) -> None:
        if self._owner:
            self._owner.weights_changed()
        elif self._critics and not self._learner:
            self._critics.update_from_learner(self.policy_id, self.module)

    def _coefficient(self, name: str) -> float:
        value = learners.coefficient(self._require_learner(), self.policy_id, name)
        if value is None:
            raise missing(self, "policy", name)
        return value

    def _set_coefficient(self, name: str, value: float) -> None:
        self._coefficient(name)  # raises an error where the loss has none
        learners.set_coefficient(self._require_learner(), self.policy_id, name, float(value))

    def _schedule(self, name: str) -> Any:
        if (learner := self._find_learner()) is not None:
            scheduler = learners.scheduler(learner, self.policy_id, name)
            if scheduler is not None:
                return schedules.schedule_of(scheduler)
        if (value := getattr(self._config, name, None)) is None:
            raise missing(self, "policy", f"{name}_schedule")
        return schedules.schedule(value)

    def _follow(self, name: str, schedule: object) -> None:
        scheduler = learners.scheduler(self._require_learner(), self.policy_id, name)
        if scheduler is None:
            raise missing(self, "policy", f"{name}_schedule")
        schedules.follow(scheduler, schedule)

    def _with_rates(self, stats: Mapping[str, Any]) -> dict[str, Any]:
        used = {"cur_lr": "cur_lr", "cur_kl_coeff": "kl_coeff", "entropy_coeff": "entropy_coeff"}
        rates = {name: getattr(self, own) for name, own in used.items() if hasattr(self, own)}
        stats = {"allreduce_latency": 0.0, **stats, **rates}
        self.model.__dict__["tower_stats"] = stats
        return stats

    def _value_after(self, batch: Mapping[str, Any]) -> float:
        """Returns the value after the last step of a chunk: 0 if the episode ended with it."""
        columns = dict(batch.items())  # `batch["dones"]` is `terminateds` since Ray 2.1
        ends = columns["terminateds" if "terminateds" in columns else "dones"]
        if bool(np.asarray(ends)[-1]):
            return 0.0
        states = [np.asarray(batch[f"state_out_{i}"])[-1:] for i in range(self.num_state_tensors())]
        last = [np.asarray(batch[name])[-1:] for name in ("new_obs", "actions", "rewards")]
        extras = self.compute_actions(last[0], states, last[1], last[2], explore=False)[2]
        return float(extras["vf_preds"][0]) if "vf_preds" in extras else 0.0


def _count(batch: Mapping[str, Any]) -> int:
    """Returns a batch's number of steps, including padding as old Rays did."""
    return len(batch["rewards"])


if TYPE_CHECKING:
    _Dict = dict[str, LegacyPolicy]
else:

    class _Dict(MutableMapping, dict):
        """A dict for `isinstance`, whose items are computed: the dict itself stays empty."""


class LegacyPolicies(_Dict):
    """The policies of an env runner by id; each is created on access.

    Adding or removing a policy of a trainer's local worker does the same in the learners.

    Args:
        env_runner: The env runner; its module may be replaced at any time.
        policies: The trainer's view of its policies; None in another process.
        critics: The critics of the policies without a trainer; None: there are none.
    """

    #: Where the map of Ray 1.4 – 2.9 stored policies on disk; this one stores none.
    extension = path = ""
    policy_states_are_swappable = False

    def __init__(
        self,
        env_runner: EnvRunner,
        policies: PolicyOwner | None = None,
        critics: CriticModules | None = None,
    ) -> None:
        self._env_runner = env_runner
        self._policies = policies
        self._critics = critics

    def __getitem__(self, policy_id: str) -> LegacyPolicy:
        modules = self._modules()
        policy_id = resolve_policy_id(policy_id, modules)
        config = self._env_runner.config
        policy = LegacyPolicy(policy_id, modules[policy_id], config, critics=self._critics)
        return policy if self._policies is None else self._policies.with_learners(policy)

    def __setitem__(self, policy_id: str, policy: LegacyPolicy) -> None:
        """Adds a policy with the weights of another one, or sets an existing policy's weights."""
        if policy_id in self:
            self[policy_id].set_weights(policy.get_weights())
        else:
            self._owner("add_policy").add_policy(policy_id, policy=policy)

    def __delitem__(self, policy_id: str) -> None:
        """Removes a policy from learners and workers."""
        self._owner("remove_policy").remove_policy(policy_id)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules())

    def __len__(self) -> int:
        return len(self._modules())

    def __repr__(self) -> str:
        return f"<policies {', '.join(self)}>"

    def copy(self) -> dict[str, LegacyPolicy]:
        """The policies as a dict."""
        return dict(self)

    def create_policy(
        self,
        policy_id: str,
        policy_cls: type | None = None,
        observation_space: object = None,
        action_space: object = None,
        config_override: Mapping[str, Any] | None = None,
        merged_config: object = None,  # noqa: ARG002 - the trainer's config with the override
    ) -> None:
        """Adds a policy to learners and workers; see `Trainer.add_policy`."""
        self._owner("add_policy").add_policy(
            policy_id,
            policy_cls,
            observation_space=observation_space,
            action_space=action_space,
            config=config_override,
        )

    @property
    def cache(self) -> dict[str, LegacyPolicy]:
        """The policies that are in memory: all of them."""
        return dict(self)

    @property
    def deque(self) -> collections.deque[str]:
        """The ids of the policies that are in memory."""
        return collections.deque(self)

    @property
    def valid_keys(self) -> set[str]:
        """The ids of all policies."""
        return set(self)

    @property
    def capacity(self) -> int:
        """The number of policies that fit in memory: all."""
        return len(self)

    @property
    def policy_specs(self) -> dict[str, Any]:
        """The `PolicySpec` of each policy."""
        from ray.rllib.policy.policy import PolicySpec

        return {
            policy_id: PolicySpec(
                policy_class=LegacyPolicy,
                observation_space=module.observation_space,
                action_space=module.action_space,
                config={},
            )
            for policy_id, module in self._modules().items()
        }

    @property
    def policy_config(self) -> dict[str, Any]:
        """The config of the env runner."""
        return dict(self._env_runner.config.to_dict())

    @property
    def worker_index(self) -> int:
        """The number of the worker."""
        return int(self._env_runner.worker_index or 0)

    @property
    def num_workers(self) -> int:
        """The number of remote workers."""
        return int(self._env_runner.config.num_env_runners or 0)

    @property
    def seed(self) -> int | None:
        """The seed of the config."""
        found: int | None = self._env_runner.config.seed
        return found

    def _owner(self, name: str) -> PolicyOwner:
        if self._policies is None:
            raise missing(self, "remote worker", name)
        return self._policies

    def __getattr__(self, name: str) -> Any:
        raise missing(self, "policy_map", name)

    def _modules(self) -> dict[str, Any]:
        module = self._env_runner.module
        return dict(module.items()) if hasattr(module, "items") else {ONLY_POLICY: module}
