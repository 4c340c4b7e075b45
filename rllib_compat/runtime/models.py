"""The model of Ray 0.8 – 2.x (`ModelV2`) around an `RLModule`.

A model is a torch module that shares the layers of the `RLModule`, so that `parameters()`,
`state_dict()`, hooks and `children()` are the module's. `model.rl_module` is the module, which also
has the attributes that the model lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2
from torch import nn

from rllib_compat.neutral.errors import CompatError
from rllib_compat.ray_versions import modules, policy_parts
from rllib_compat.ray_versions.types import RLModule
from rllib_compat.registry.legacy_api import GONE, missing
from rllib_compat.runtime.policy_inputs import flatten_state, initial_state, nest_state, tensor_of

#: The prefixes of target layers' names: policies had a second model for those.
_TARGETS = ("_target_", "target_")


class Computed(NamedTuple):
    """The outputs of a model for a batch.

    Attributes:
        output: The model's output, `[B, …]` or `[B, T, …]`.
        values: Computes the values of the observations; None: the model has no critic.
        state: The state after the batch, in the module's form.
    """

    output: Any
    values: Callable[[], Any] | None = None
    state: Any = ()


class LegacyModel(TorchModelV2, nn.Module):  # type: ignore[misc]  # Ray has no types
    """The model that legacy code calls: `model({"obs": …}, state, seq_lens)` (Ray 0.8 – 2.x).

    It returns the inputs of the action distribution, and `value_function()` the values.

    Attributes:
        rl_module: The module.
        free_log_std: Whether the standard deviation of actions does not depend on observations.
        vf_share_layers: Whether actor and critic share layers.
    """

    #: The name of the model in policies of the algorithm.
    called: ClassVar[str] = "default_model"

    def __init__(
        self,
        module: RLModule,
        observation_space: object,
        model_config: Mapping[str, Any],
        outputs: int,
    ) -> None:
        nn.Module.__init__(self)
        layers: Any = module
        children = layers._modules  # noqa: SLF001 - of torch
        if any(name.startswith(_TARGETS) for name in children):
            children = {n: part for n, part in children.items() if not n.startswith(_TARGETS)}
        self.__dict__ |= {
            "rl_module": module,  # not one of its own layers
            "_modules": children,
            "_parameters": layers._parameters,  # noqa: SLF001
            "_buffers": layers._buffers,  # noqa: SLF001
            "_values": None,
        }
        config = dict(model_config)
        super().__init__(observation_space, module.action_space, outputs, config, self.called)
        self.free_log_std = bool(config.get("free_log_std"))
        self.vf_share_layers = bool(config.get("vf_share_layers"))
        self.num_outputs = self._count_outputs(outputs)
        if module.is_stateful():
            self._describe_memory(config)

    def forward(
        self, input_dict: Mapping[str, Any], state: Sequence[Any] = (), seq_lens: Any = None
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Computes the model's output.

        Args:
            input_dict: `obs` `[B, …]`, or `obs_flat` if an observation has parts. With a state, the
                concatenated sequences, padded to the longest.
            state: The initial state of each sequence, as of `get_initial_state` with a batch axis.
            seq_lens: The length of each sequence, `[sequences]`; None: 1.

        Returns:
            The output `[B, num_outputs]`, and the state after each sequence.

        Raises:
            AssertionError: A recurrent model got no state; old models raised this, too.
        """
        obs = input_dict["obs_flat"] if "obs_flat" in input_dict else input_dict["obs"]
        batch: dict[str, Any] = {"obs": self._tensor(obs)}
        if not self.rl_module.is_stateful():
            found = self._compute(batch)
            self._values = found.values
            return found.output, []
        assert len(state), "A recurrent model needs a state: pass get_initial_state() at first."
        count = len(state[0]) if seq_lens is None else len(seq_lens)
        batch["obs"] = batch["obs"].reshape(count, -1, *batch["obs"].shape[1:])
        batch["state_in"] = nest_state(self.rl_module, map(self._tensor, state))
        found = self._compute(batch)
        self._values = found.values
        return found.output.flatten(0, 1), flatten_state(found.state)

    @property
    def arms(self) -> list[SimpleNamespace]:
        """The linear regression of each arm of a bandit, as its old model had them."""
        names = ("precision", "f", "covariance", "theta")
        rows = zip(*(getattr(self, name) for name in names), strict=True)
        return [SimpleNamespace(**dict(zip(names, row, strict=True))) for row in rows]

    def value_function(self) -> torch.Tensor:
        """Returns the values of the observations of the last call, `[B]`.

        Raises:
            NotImplementedError: The model has no critic, or was not called yet.
            CompatError: The critic is in the learner's process.
        """
        if self._values is None:
            raise NotImplementedError("The model has no value function, or was not called yet.")
        values: torch.Tensor = self._values().reshape(-1)
        return values

    def from_batch(self, train_batch: object, is_training: bool = True) -> Any:
        """Computes the output for a batch (Ray 0.8 – 1.13)."""
        if hasattr(train_batch, "set_training"):
            train_batch.set_training(is_training)
        return self(train_batch)

    def get_initial_state(self) -> list[torch.Tensor]:
        """Returns the initial state without a batch axis, which may be empty."""
        return [torch.as_tensor(part) for part in initial_state(self.rl_module)]

    @property
    def inference_view_requirements(self) -> dict[str, Any]:
        """The columns that the model needs for acting (Ray 1.0)."""
        views: dict[str, Any] = self.view_requirements
        return views

    def variables(self, as_dict: bool = False) -> Any:
        """Returns the parameters as a list, or as a dict by name."""
        named = dict(self.named_parameters())
        return named if as_dict else list(named.values())

    def _compute(self, batch: dict[str, Any]) -> Computed:
        """Computes the outputs for a batch in the module's form."""
        module = self.rl_module
        if modules.chooses_by_q_values(module):
            out = modules.q_outputs(module, batch)
            return Computed(out["qf_preds"], state=out.get("state_out", ()))
        values: Callable[[], Any] | None = None
        if hasattr(module, "compute_values") and not getattr(module, "inference_only", False):
            out = module.forward_train(batch)
            values = partial(values_of, module, batch, out.get("embeddings"))
        else:
            out = modules.network_forward(module)(batch)
            if hasattr(module, "compute_values"):
                values = partial(values_of, module, batch)
        output = out["action_dist_inputs"] if "action_dist_inputs" in out else out["actions"]
        return Computed(output, values, out.get("state_out", ()))

    def _describe_memory(self, config: Mapping[str, Any]) -> None:
        """Sets the attributes of recurrent models and those with attention."""
        self.action_space_struct = policy_parts.struct_of(self.action_space)
        self.__dict__["action_dim"] = int(np.prod(self.action_space.shape))
        self.cell_size = config.get("lstm_cell_size")
        self.use_prev_action = bool(config.get("lstm_use_prev_action"))
        self.use_prev_reward = bool(config.get("lstm_use_prev_reward"))
        self.use_prev_action_reward = self.use_prev_action and self.use_prev_reward
        self.__dict__["view_requirements"] = policy_parts.with_state(
            self.__dict__["view_requirements"], len(self.get_initial_state())
        )

    def _count_outputs(self, given: int) -> int | None:
        """Returns the size of the output, or None."""
        return given

    @property
    def _device(self) -> torch.device:
        return next((p.device for p in self.rl_module.parameters()), torch.device("cpu"))

    def _tensor(self, array: object) -> torch.Tensor:
        tensor = tensor_of(array, self._device)
        return (
            tensor if tensor.is_floating_point() or tensor.dtype == torch.uint8 else tensor.float()
        )

    def __getattr__(self, name: str) -> Any:
        for layers in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(layers, {}):
                return self.__dict__[layers][name]
        module = self.__dict__.get("rl_module")
        if module is None or name in GONE["model"] or not hasattr(module, name):
            raise missing(self, "model", name)
        return getattr(module, name)

    def __dir__(self) -> list[str]:
        there: set[str] = {*object.__dir__(self), *dir(self.rl_module)}
        return sorted(there - GONE["model"].keys())


def values_of(module: Any, batch: dict[str, Any], embeddings: object = None) -> Any:
    """Computes the values of a module's critic, `[B]` or `[B, T]`.

    Raises:
        CompatError: The module has no critic, since it only acts.
    """
    if getattr(module, "inference_only", False):
        raise CompatError(
            "The critic is in the learners' processes.",
            where="value_function()",
            fix="remove `num_learners` from the config: then the learner is in this process",
        )
    return module.compute_values(batch, embeddings)


class QModel(LegacyModel):
    """The model of DQN's policies: it returns features, from which Q-values are computed.

    Sources: `agents/dqn/dqn_torch_model.py` (0.8 – 1.13).
    """

    called = "q_func"
    rl_module: Any

    @property
    def dueling(self) -> bool:
        """Whether the network computes the state's value and the advantages of actions."""
        return bool(getattr(self.rl_module, "uses_dueling", False))

    @property
    def advantage_module(self) -> Any:
        """The layers of the advantages."""
        return self.rl_module.af

    @property
    def value_module(self) -> Any:
        """The layers of the state's value; None without dueling."""
        return self.rl_module.vf if self.dueling else None

    @property
    def v_min(self) -> float:
        """The smallest value of a distributional network."""
        return float(getattr(self.rl_module, "v_min", -10.0))

    @property
    def v_max(self) -> float:
        """The largest value of a distributional network."""
        return float(getattr(self.rl_module, "v_max", 10.0))

    @property
    def sigma0(self) -> float:
        """The initial deviation of noisy layers; 0 without them."""
        return float(dict(self.rl_module.model_config).get("sigma0") or 0.0)

    def get_q_value_distributions(self, model_out: torch.Tensor) -> tuple[Any, ...]:
        """Computes the parts of Q-values.

        Args:
            model_out: The model's output, `[B, num_outputs]`.

        Returns:
            The advantages `[B, actions]`, and the logits and probabilities of atoms `[B, actions,
            atoms]`, which are ones. Of a distributional network: advantages, atoms, logits and
            probabilities.
        """
        advantages = self.rl_module.af(model_out)
        if self.rl_module.num_atoms > 1:
            found = self.rl_module.compute_advantage_distribution(advantages)
            mean = (found["atoms"] * found["probs"]).sum(-1)
            return mean, found["atoms"], found["logits"], found["probs"]
        ones = torch.ones_like(advantages)[..., None]
        return advantages, ones, ones

    def get_advantages_or_q_values(self, model_out: torch.Tensor) -> Any:
        """Computes the advantages of actions, or their Q-values without dueling (Ray 0.8)."""
        return self.get_q_value_distributions(model_out)[0]

    def get_state_value(self, model_out: torch.Tensor) -> Any:
        """Computes the value of the state, `[B, 1]`; 1 without dueling."""
        if not self.dueling:
            return torch.ones_like(model_out[:, :1])
        return self.rl_module.vf(model_out)

    def _compute(self, batch: dict[str, Any]) -> Computed:
        encoded = self.rl_module.encoder(batch)
        return Computed(encoded["encoder_out"], state=encoded.get("state_out", ()))

    def _count_outputs(self, given: int) -> int | None:  # noqa: ARG002
        zeros = torch.zeros(1, *self.rl_module.observation_space.shape, device=self._device)
        state = [part[None] for part in self.get_initial_state()]
        with torch.no_grad():
            return int(self.forward({"obs": zeros}, state)[0].shape[-1])


class SACModel(LegacyModel):
    """The model of SAC's policies: it returns observations, the input of its networks.

    Sources: `agents/sac/sac_torch_model.py` (0.8 – 1.13).
    """

    called = "sac_model"
    rl_module: Any

    @property
    def discrete(self) -> bool:
        """Whether actions are discrete."""
        return hasattr(self.action_space, "n")

    @property
    def action_dim(self) -> int:
        """The size of an action, or the number of discrete actions."""
        space = self.action_space
        return int(space.n if self.discrete else np.prod(space.shape))

    @property
    def obs_ins(self) -> int:
        """The size of an observation (Ray 0.8 – 1.0, as the next two)."""
        return int(np.prod(self.obs_space.shape))

    @property
    def action_ins(self) -> int | None:
        """The size of the critics' input of actions; None for discrete actions."""
        return None if self.discrete else self.action_dim

    @property
    def action_outs(self) -> int:
        """The number of inputs of the action distribution."""
        return self.action_dim if self.discrete else 2 * self.action_dim

    def get_q_values(
        self, model_out: torch.Tensor, actions: object = None
    ) -> tuple[Any, list[Any]]:
        """Computes the Q-values of the first critic.

        Args:
            model_out: The model's output.
            actions: Actions `[B, n]`; None if they are discrete.

        Returns:
            Q-values `[B, 1]`, or `[B, actions]` for discrete actions; and an empty state.
        """
        return self._q_values("qf", model_out, actions), []

    def get_twin_q_values(
        self, model_out: torch.Tensor, actions: object = None
    ) -> tuple[Any, list[Any]]:
        """Computes the Q-values of the second critic, likewise."""
        return self._q_values("qf_twin", model_out, actions), []

    def get_action_model_outputs(
        self, model_out: torch.Tensor, *_: object
    ) -> tuple[Any, list[Any]]:
        """Computes the inputs of the action distribution, and an empty state (Ray 1.13)."""
        out = modules.network_forward(self.rl_module)({"obs": self._tensor(model_out)})
        return out["action_dist_inputs"], []

    def get_policy_output(self, model_out: torch.Tensor) -> Any:
        """Computes the inputs of the action distribution (Ray 0.8 – 1.12)."""
        return self.get_action_model_outputs(model_out)[0]

    def policy_variables(self) -> list[torch.Tensor]:
        """Returns the parameters of the actor."""
        return self._parameters_of("pi")

    def q_variables(self) -> list[torch.Tensor]:
        """Returns the parameters of both critics."""
        twin = self._parameters_of("qf_twin") if self.rl_module.twin_q else []
        return self._parameters_of("qf") + twin

    def _q_values(self, critic: str, model_out: torch.Tensor, actions: object) -> Any:
        batch = {"obs": self._tensor(model_out)}
        if actions is not None:
            batch["actions"] = self._tensor(actions)
        found = getattr(self.rl_module, critic)(
            getattr(self.rl_module, f"{critic}_encoder")(batch)["encoder_out"]
        )
        return found[:, None] if found.dim() == 1 else found

    def _parameters_of(self, name: str) -> list[torch.Tensor]:
        parts = getattr(self.rl_module, name), getattr(self.rl_module, f"{name}_encoder")
        return [p for part in parts for p in part.parameters()]

    def _compute(self, batch: dict[str, Any]) -> Computed:
        return Computed(batch["obs"])

    def _count_outputs(self, given: int) -> int | None:  # noqa: ARG002
        return None


def make_model(
    module: RLModule, observation_space: object, model_config: Mapping[str, Any], outputs: int
) -> LegacyModel:
    """Creates the model of the algorithm that a module belongs to; see `LegacyModel`."""
    kind = LegacyModel
    if hasattr(module, "pi_encoder"):
        kind = SACModel
    elif modules.has_q_values(module) and hasattr(module, "encoder"):
        kind = QModel
    return kind(module, observation_space, model_config, outputs)
