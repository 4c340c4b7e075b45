"""The part of the policy object of Ray 0.5 – 2.x that needs only an `RLModule`: acting."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rllib_compat.neutral.recurrent_state import is_given
from rllib_compat.ray_versions import modules, policy_parts, sampling
from rllib_compat.registry.legacy_api import GONE, missing
from rllib_compat.runtime.batches import has_advantages
from rllib_compat.runtime.policy_inputs import (
    PolicyInputs,
    check_state,
    in_numpy,
    initial_state,
    stacked,
    state_after_step,
    tensor_of,
)

if TYPE_CHECKING:
    import torch

    from rllib_compat.ray_versions.types import AlgorithmConfig, Learner, RLModule
    from rllib_compat.runtime.models import LegacyModel

logger = logging.getLogger(__name__)


class PolicyOwner(Protocol):
    """The trainer of policies; policies of an env runner in another process have none."""

    @property
    def logdir(self) -> str:
        """The folder of the trainer's files."""

    def with_learners(self, policy: Any) -> Any:
        """Returns a policy that uses the learners."""

    def add_policy(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a policy to learners and workers."""

    def remove_policy(self, *args: Any, **kwargs: Any) -> None:
        """Removes a policy from learners and workers."""

    def local_learner(self) -> Learner | None:
        """Returns the learner, if it is in this process."""

    def config_of(self, policy_id: str) -> Mapping[str, Any]:
        """Returns the legacy config of a policy."""

    def callbacks(self) -> Any:
        """Returns the user's callbacks object."""

    def timestep(self) -> int:
        """Returns the number of environment steps that were sampled so far."""

    def get_weights(self, policies: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
        """Returns the learners' weights, by policy and name."""

    def set_weights(self, weights: Mapping[str, Mapping[str, Any]]) -> None:
        """Sets weights in learners and workers."""

    def refresh(self) -> None:
        """Sets the newest weights in the env runner of this process."""

    def weights_changed(self) -> None:
        """Notes that the learner's weights have changed."""


class PolicyConfig(dict[str, Any]):
    """A policy's config: `explore` can be set, and a warning names what has no effect.

    Args:
        config: The config.
        module: The policy's module.
    """

    def __init__(self, config: Mapping[str, Any], module: RLModule) -> None:
        super().__init__(config)
        self._module = module

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        if key == "explore":
            modules.set_explores(self._module, bool(value))
        else:
            logger.warning(
                "policy.config[%r] was set, which changes nothing: the learner has its own "
                "settings. To change it: trainer.reset_config({**trainer.config, %r: …})",
                key,
                key,
            )

    def update(self, *more: Any, **keys: Any) -> None:
        """Sets keys as `dict.update` does."""
        for key, value in dict(*more, **keys).items():
            self[key] = value

    def __reduce__(self) -> Any:
        """Is copied and pickled as a dict."""
        return dict, (dict(self),)


class ActingPolicy:
    """A policy that acts with its module, without a learner.

    Observations are preprocessed and filtered already, as workers pass them to a policy.

    Attributes:
        policy_id: Its id.
        module: The module that acts.
        action_space: The action space.
        framework: "torch" for any config.
        batch_divisibility_req: 1: batches may have any number of steps.
        distributed_world_size: None: learners are distributed, policies are not.
        action_sampler_fn: None: modules sample actions.
        action_distribution_fn: None, likewise.
    """

    framework = "torch"
    batch_divisibility_req = 1
    distributed_world_size = None
    action_sampler_fn = None
    action_distribution_fn = None

    def __init__(
        self,
        policy_id: str,
        module: RLModule,
        config: AlgorithmConfig,
        *,
        owner: PolicyOwner | None = None,
    ) -> None:
        self.policy_id = policy_id
        self.module = module
        self.action_space = module.action_space
        self._config = config
        self._owner = owner
        self._model: LegacyModel | None = None
        #: The number of sampled steps, and the steps that are added to it while it does not change.
        self._ahead = (0, 0)
        self._last_timestep: int | None = None

    def __repr__(self) -> str:
        return f"<policy {self.policy_id!r}: {type(self.module).__name__}>"

    @cached_property
    def _inputs(self) -> PolicyInputs:
        # Lazy: workers create a policy on each access, often only for its id.
        return PolicyInputs(self.module, self._config)

    # Attributes

    @cached_property
    def config(self) -> PolicyConfig:
        """The legacy config with its Ray's defaults, and the installed Ray's other keys."""
        known = dict(self._config.to_dict())
        own = dict(self._owner.config_of(self.policy_id)) if self._owner else {}
        return PolicyConfig(known | own, self.module)

    @property
    def observation_space(self) -> Any:
        """The module's space without previous steps, which are separate arguments."""
        return self._inputs.observation_space

    @property
    def observation_space_struct(self) -> Any:
        """The observation space as a structure of its parts."""
        return policy_parts.struct_of(self.observation_space)

    @property
    def action_space_struct(self) -> Any:
        """The action space as a structure of its parts."""
        return policy_parts.struct_of(self.action_space)

    @property
    def model(self) -> LegacyModel:
        """Its network as a `ModelV2`; `model.rl_module` is the module."""
        if self._model is None:
            from rllib_compat.runtime.models import make_model

            config, (_, size) = self._model_config(), self._distribution()
            module = self._module_with_critic()
            self._model = make_model(module, self.observation_space, config, size)
        return self._model

    @property
    def unwrapped_model(self) -> LegacyModel:
        """`model`: it has no wrapper."""
        return self.model

    @property
    def dist_class(self) -> Any:
        """The class of action distributions, called as `dist_class(model_out, model)`."""
        return self._distribution()[0]

    @property
    def device(self) -> torch.device:
        """The device of its module."""
        import torch

        return next((p.device for p in self.module.parameters()), torch.device("cpu"))

    @property
    def devices(self) -> list[torch.device]:
        """A list with `device`."""
        return [self.device]

    @property
    def max_seq_len(self) -> int:
        """The largest number of steps in a sequence."""
        return int(self._model_config().get("max_seq_len", 20))

    @property
    def callbacks(self) -> Any:
        """The user's callbacks object; None in another process than the trainer's."""
        return self._owner.callbacks() if self._owner else None

    @property
    def global_timestep(self) -> int:
        """The sampled steps so far, or the set number of steps, and the actions since."""
        sampled = self._owner.timestep() if self._owner else 0
        return sampled + (self._ahead[1] if self._ahead[0] == sampled else 0)

    @global_timestep.setter
    def global_timestep(self, timestep: int) -> None:
        sampled = self._owner.timestep() if self._owner else 0
        self._ahead = sampled, timestep - sampled

    def on_global_var_update(self, global_vars: Mapping[str, Any]) -> None:
        """Sets `global_timestep`; learners' schedules follow their own counters."""
        self.global_timestep = int(global_vars["timestep"])

    @property
    def view_requirements(self) -> dict[str, Any]:
        """The columns of its batches, by name."""
        return policy_parts.view_requirements(
            self.observation_space, self.action_space, self._columns(), self.get_initial_state()
        )

    @property
    def exploration(self) -> Any:
        """An exploration object of the old API stack; the module explores by itself.

        The module takes an `epsilon_schedule` that is set, and numbers of noise on actions. Other
        settings, and `set_state`, raise a `GoneError`: env runners take nothing from them.
        """
        from rllib_compat.runtime.exploration import connected

        # Policies of other processes have no such setting in their config, nor a count of steps.
        by_values = hasattr(self.module, "epsilon_schedule")
        default = {"type": "EpsilonGreedy" if by_values else "StochasticSampling"}
        settings = self.config.get("exploration_config") or default
        made = policy_parts.exploration(settings, self.action_space, self.config, self.model)
        last = self._last_timestep
        made.last_timestep = self.global_timestep if last is None else last
        return connected(made, self.module, counts=self._owner is not None)

    def get_exploration_state(self) -> dict[str, Any]:
        """Returns the state of its exploration, such as `cur_epsilon` and `last_timestep`."""
        return dict(self.exploration.get_state())

    get_exploration_info = get_exploration_state

    @property
    def exploration_info(self) -> dict[str, Any]:
        """The exploration state, by its name in Ray 0.8."""
        return self.get_exploration_state()

    @property
    def explore(self) -> bool:
        """The default of `explore` in calls."""
        return bool(self._config.explore) and modules.explores(self.module)

    def variables(self) -> list[Any]:
        """Returns the weights of its network."""
        return list(self.model.variables())

    def loss_initialized(self) -> bool:
        """Returns True: the learner has the loss."""
        return True

    def get_host(self) -> str:
        """Returns the name of this machine."""
        return socket.gethostname()

    def apply(self, func: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        """Calls `func(policy, …)`."""
        return func(self, *args, **kwargs)

    def is_recurrent(self) -> bool:
        """Whether the module has a recurrent state."""
        return bool(self.module.is_stateful())

    def get_initial_state(self) -> list[Any]:
        """Returns the initial recurrent state as a flat list of arrays, which may be empty."""
        return initial_state(self.module)

    def num_state_tensors(self) -> int:
        """Returns the number of arrays of its recurrent state."""
        return len(self.get_initial_state())

    # Acting

    def compute_actions(
        self,
        obs_batch: object,
        state_batches: Sequence[Any] | None = None,
        prev_action_batch: object = None,
        prev_reward_batch: object = None,
        info_batch: object = None,  # noqa: ARG002 - only custom policies used it
        episodes: object = None,  # noqa: ARG002
        explore: bool | None = None,
        timestep: int | None = None,
        **kwargs: object,  # noqa: ARG002
    ) -> tuple[Any, list[Any], dict[str, Any]]:
        """Computes actions for a batch.

        Args:
            obs_batch: Observations: an array or tensor `[B, …]`, or a list of them.
            state_batches: The recurrent state as the last call returned it (of attention, the last
                outputs `[B, memory, size]` of each unit); None: the initial one.
            prev_action_batch: The previous actions, for networks that use them; None: zeros.
            prev_reward_batch: The previous rewards `[B]`, likewise.
            info_batch: Ignored.
            episodes: Ignored.
            explore: Whether to sample actions; None: as in the config.
            timestep: The step for exploration schedules; None: `global_timestep`.
            **kwargs: Ignored.

        Returns:
            The actions, the state batches, and other outputs: `action_dist_inputs`, `action_logp`,
            `action_prob`, and `vf_preds` or `q_values` if the algorithm has them.
        """
        import torch
        import tree

        if self._owner:
            self._owner.refresh()
        asked, explore = explore, self.explore if explore is None else explore
        timestep = self.global_timestep if timestep is None else timestep
        batch = self._inputs.batch(obs_batch, state_batches, prev_action_batch, prev_reward_batch)
        with torch.no_grad(), modules.following(self.module, asked):
            if explore:
                out = dict(self.module.forward_exploration(batch, t=timestep))
            else:
                out = dict(self.module.forward_inference(batch))
            self._add_extras(out, batch)
            state = state_after_step(out.pop("state_out", []))
            if self.is_recurrent():
                out = {n: tree.map_structure(lambda o: o[:, 0], part) for n, part in out.items()}
            if "actions" not in out:
                kind = "exploration" if explore else "inference"
                dist_class = getattr(self.module, f"get_{kind}_action_dist_cls")()
                dist = dist_class.from_logits(out["action_dist_inputs"])
                out["actions"] = dist.sample() if explore else sampling.likeliest(dist)
                if explore:
                    out["action_logp"] = dist.logp(out["actions"])
        arrays = tree.map_structure(in_numpy, out)
        actions = arrays.pop("actions")
        logp = arrays.setdefault("action_logp", np.zeros(len(tree.flatten(actions)[0]), np.float32))
        arrays["action_prob"] = np.exp(logp)
        self._last_timestep = timestep
        self.global_timestep += len(logp)
        return actions, [in_numpy(part) for part in state], arrays

    def compute_actions_from_input_dict(
        self,
        input_dict: Mapping[str, Any],
        explore: bool | None = None,
        timestep: int | None = None,
        episodes: object = None,
        **kwargs: object,
    ) -> tuple[Any, list[Any], dict[str, Any]]:
        """Computes actions for a dict of columns: `obs`, `state_in_0`, `prev_actions` ….

        Returns:
            The same as `compute_actions`.
        """
        given = dict(input_dict.items())
        return self.compute_actions(
            given["obs"],
            [given[f"state_in_{i}"] for i in range(self.num_state_tensors())]
            if "state_in_0" in given
            else None,
            given.get("prev_actions"),
            given.get("prev_rewards"),
            explore=explore,
            timestep=timestep,
            episodes=episodes,
            **kwargs,
        )

    def compute_single_action(
        self,
        obs: object = None,
        state: Sequence[Any] | None = None,
        prev_action: object = None,
        prev_reward: object = None,
        info: object = None,
        episode: object = None,
        clip_actions: bool = False,
        explore: bool | None = None,
        timestep: int | None = None,
        *,
        input_dict: Mapping[str, Any] | None = None,
        **kwargs: object,
    ) -> tuple[Any, list[Any], dict[str, Any]]:
        """Computes the action for one observation; see `compute_actions`.

        Args:
            obs: One observation.
            state: The recurrent state, without a batch axis.
            prev_action: The previous action.
            prev_reward: The previous reward.
            info: Ignored.
            episode: Ignored.
            clip_actions: Whether to clip the action to its space (Ray 0.8 – 1.0).
            explore: Whether to sample actions; None: as in the config.
            timestep: The step for exploration schedules.
            input_dict: The columns of one step, instead of the arguments above.
            **kwargs: Ignored.

        Returns:
            The action, the state, and other outputs, all without a batch axis.
        """
        import tree

        if input_dict is not None:
            names = [f"state_in_{i}" for i in range(self.num_state_tensors())]
            obs, prev_action = input_dict["obs"], input_dict.get("prev_actions")
            prev_reward = input_dict.get("prev_rewards")
            state = [input_dict[n] for n in names] if set(names) <= set(input_dict) else None
        if isinstance(obs, list):
            obs = np.asarray(obs)
        batched = tree.map_structure(lambda o: np.asarray(o)[None], obs)
        takes_state = self.is_recurrent() and is_given(state)
        computed = self.compute_actions(
            batched,
            [p[None] for p in check_state(self.module, state)] if takes_state else None,
            None if prev_action is None else tree.map_structure(_one, prev_action),
            None if prev_reward is None else np.asarray(prev_reward)[None],
            [info],
            None if episode is None else [episode],
            explore,
            timestep,
            **kwargs,
        )
        action, after, extras = tree.map_structure(lambda value: value[0], computed)
        if clip_actions and hasattr(self.action_space, "low"):
            action = np.clip(action, self.action_space.low, self.action_space.high)
        return action, after, extras

    def compute_log_likelihoods(
        self,
        actions: object,
        obs_batch: object,
        state_batches: Sequence[Any] | None = None,
        prev_action_batch: object = None,
        prev_reward_batch: object = None,
        actions_normalized: bool = True,
        **kwargs: object,  # noqa: ARG002
    ) -> torch.Tensor:
        """Computes the log-probability (or density) of actions, `[B]`.

        Args:
            actions: The actions, as the policy returns them.
            obs_batch: The observations for the actions.
            state_batches: The recurrent states.
            prev_action_batch: The previous actions.
            prev_reward_batch: The previous rewards.
            actions_normalized: Whether actions are between -1 and 1. If not, and the config has
                `normalize_actions`, they are normalized.
            **kwargs: Ignored.
        """
        import torch
        import tree

        if not actions_normalized and self._config.normalize_actions:
            actions = policy_parts.normalized(actions, self.action_space_struct)
        batch = self._inputs.batch(obs_batch, state_batches, prev_action_batch, prev_reward_batch)
        with torch.no_grad():
            out = self._action_inputs(batch)
            out = out[:, 0] if self.is_recurrent() else out
            taken = tree.map_structure(lambda a: tensor_of(a, out.device), stacked(actions))
            found: torch.Tensor = self.dist_class(out, self.model).logp(taken)
        return found

    def extra_action_out(
        self,
        input_dict: Mapping[str, Any],
        state_batches: object,  # noqa: ARG002
        model: Any,
        action_dist: object = None,  # noqa: ARG002
    ) -> dict[str, Any]:
        """Returns `q_values`, or the `vf_preds` of the last call of `model`."""
        if modules.chooses_by_q_values(self.module):
            return {
                "q_values": in_numpy(
                    modules.q_values(self.module, self._inputs.batch(input_dict["obs"]))
                )
            }
        if hasattr(self.module, "compute_values"):
            return {"vf_preds": model.value_function()}
        return {}

    # Export

    def export_model(self, export_dir: str, onnx: int | None = None) -> str:
        """Writes the module as `model.pt`, or with an opset as `model.onnx`.

        Returns:
            The path of the file. `torch.jit.load` loads `model.pt`; its arguments are a
            `ModelV2`'s.
        """
        from rllib_compat.runtime import exports

        return str(exports.write_model(self.module, export_dir, onnx))

    def export_checkpoint(self, export_dir: str, filename_prefix: str = "model") -> str:  # noqa: ARG002
        """Writes a checkpoint that `RLModule.from_checkpoint` loads.

        Returns:
            The folder.
        """
        from rllib_compat.runtime import exports

        return str(exports.write_checkpoint(self.module, export_dir))

    def __getattr__(self, name: str) -> Any:
        own = getattr(type(self), name, None)
        if isinstance(own, property) and own.fget is not None:
            return own.fget(self)  # raises the error about the missing part
        raise missing(self, "policy", name)

    def __dir__(self) -> list[str]:
        there = [n for n in super().__dir__() if n.startswith("_") or hasattr(self, n)]
        return sorted(set(there) - GONE["policy"].keys())

    # Parts

    def _module_with_critic(self) -> RLModule:
        """Returns the module with its critics, if this process has it."""
        return self.module

    def _has_critic(self, module: RLModule) -> bool:
        return not getattr(module, "inference_only", False)

    def _model_config(self) -> dict[str, Any]:
        return dict(self.config.get("model") or {})

    def _distribution(self) -> tuple[Any, int]:
        squashed = hasattr(self.module, "pi_encoder")
        return policy_parts.distribution(self.action_space, self._model_config(), squashed)

    def _columns(self) -> list[str]:
        """Returns the columns of batches that only some algorithms have."""
        config = self._config
        if has_advantages(config):
            values = ["vf_preds"] if hasattr(self.module, "compute_values") else []
            return ["action_dist_inputs", "action_logp", "advantages", "value_targets", *values]
        return ["weights"] if hasattr(config, "n_step") else ["action_dist_inputs", "action_logp"]

    def _add_extras(self, out: dict[str, Any], batch: dict[str, Any]) -> None:
        """Adds the other outputs that old policies computed."""
        if modules.chooses_by_q_values(self.module):
            out["q_values"] = out["action_dist_inputs"] = modules.q_values(self.module, batch)
        elif hasattr(self.module, "compute_values") and "vf_preds" not in out:
            module = self._module_with_critic()
            if self._has_critic(module):
                out["vf_preds"] = module.compute_values(batch, None)  # type: ignore[attr-defined]

    def _action_inputs(self, batch: dict[str, Any]) -> Any:
        """Returns the Q-values or the inputs of the action distribution."""
        if modules.chooses_by_q_values(self.module):
            return modules.q_values(self.module, batch)
        return modules.network_forward(self.module)(batch)["action_dist_inputs"]


def _one(value: object) -> Any:
    return np.asarray(value)[None]
