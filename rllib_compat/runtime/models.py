"""The model of Ray 0.8 – 2.x (`ModelV2`) around today's `RLModule`.

A model is a torch module with the very layers of the `RLModule`, so that `parameters()`,
`state_dict()`, hooks and `children()` are that module's; `model.rl_module` is the module itself,
and what a model does not know, the module answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from ray.rllib.models.torch.torch_modelv2 import TorchModelV2
from torch import nn

from rllib_compat.neutral.errors import CompatError
from rllib_compat.ray_versions import modules, policy_parts
from rllib_compat.registry.legacy_api import GONE, missing
from rllib_compat.runtime.recurrent_states import flatten_state, initial_state, nest_state

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import RLModule

#: How the names of layers begin that follow others: policies had a second model for those.
_TARGETS = ("_target_", "target_")


class Computed(NamedTuple):
    """What a model computes of a batch.

    Attributes:
        output: What the model gives, `[B, …]` or `[B, T, …]`.
        values: Computes what is expected after the observations; None: nothing does.
        state: The state after the batch, as the module has it.
    """

    output: Any
    values: Callable[[], Any] | None = None
    state: Any = ()


class LegacyModel(TorchModelV2, nn.Module):  # type: ignore[misc]  # Ray has no types
    """A model as legacy code calls it: `model({"obs": …}, state, seq_lens)` (Ray 0.8 – 2.x).

    It gives what actions are chosen by, and `value_function()` what is expected.

    Args:
        module: The module; it has a critic where it is the learner's.
        observation_space: What the policy takes.
        model_config: The legacy model config.
        outputs: How many numbers actions are chosen by.

    Attributes:
        rl_module: The module.
        free_log_std: Whether the standard deviation of actions is a parameter of its own.
        vf_share_layers: Whether actor and critic share layers.
    """

    #: What policies of the algorithm called their model.
    called: ClassVar[str] = "default_model"

    def __init__(
        self,
        module: RLModule,
        observation_space: Any,
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
            input_dict: `obs` `[B, …]`, or `obs_flat` where an observation has parts. With a state,
                as many steps of each sequence as the longest has, one sequence after the other.
            state: The state before each sequence, as `get_initial_state` has it, with a batch axis.
            seq_lens: How many steps each sequence has, `[sequences]`; None: one each.

        Returns:
            The output `[B, num_outputs]`, and the state after each sequence.

        Raises:
            AssertionError: A recurrent model got no state, as ever.
        """
        obs = input_dict["obs_flat"] if "obs_flat" in input_dict else input_dict["obs"]
        batch: dict[str, Any] = {"obs": self._tensor(obs)}
        if not self.rl_module.is_stateful():
            found = self._compute(batch)
            self._values = found.values
            return found.output, []
        assert len(state), "A recurrent model takes a state; begin with get_initial_state()."
        count = len(state[0]) if seq_lens is None else len(seq_lens)
        batch["obs"] = batch["obs"].reshape(count, -1, *batch["obs"].shape[1:])
        batch["state_in"] = nest_state(self.rl_module, map(self._tensor, state))
        found = self._compute(batch)
        self._values = found.values
        return found.output.flatten(0, 1), flatten_state(found.state)

    def value_function(self) -> torch.Tensor:
        """What is expected after the observations of the last call, `[B]`.

        Raises:
            NotImplementedError: Models of this algorithm have none, or nothing was computed yet.
            CompatError: This module is one that only acts; its critic is in the learner's process.
        """
        if self._values is None:
            raise NotImplementedError("There is no value function of this model, or no call yet.")
        values: torch.Tensor = self._values().reshape(-1)
        return values

    def from_batch(self, train_batch: Any, is_training: bool = True) -> Any:
        """The model's output for a batch (Ray 0.8 – 1.13).

        Args:
            train_batch: The batch; states are its `state_in_0`, ….
            is_training: Whether it is told that this is for learning.
        """
        if hasattr(train_batch, "set_training"):
            train_batch.set_training(is_training)
        return self(train_batch)

    def get_initial_state(self) -> list[torch.Tensor]:
        """The state that an episode begins with, without a batch axis; empty without any."""
        return [torch.as_tensor(part) for part in initial_state(self.rl_module)]

    @property
    def inference_view_requirements(self) -> dict[str, Any]:
        """The columns that it needs to act (Ray 1.0)."""
        views: dict[str, Any] = self.view_requirements
        return views

    def variables(self, as_dict: bool = False) -> Any:
        """The parameters: a list, or a dict by name."""
        named = dict(self.named_parameters())
        return named if as_dict else list(named.values())

    def _compute(self, batch: dict[str, Any]) -> Computed:
        """Computes a batch in the module's form."""
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
        """Sets what models with a memory told of it."""
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
        """How many numbers an output has."""
        return given

    @property
    def _device(self) -> torch.device:
        return next((p.device for p in self.rl_module.parameters()), torch.device("cpu"))

    def _tensor(self, array: Any) -> torch.Tensor:
        tensor = torch.as_tensor(array, device=self._device)
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
    """What a module's critic expects after observations, `[B]` or `[B, T]`.

    Args:
        module: The module.
        batch: The batch in the module's form.
        embeddings: What the same pass has computed already.

    Raises:
        CompatError: The module is one that only acts.
    """
    if getattr(module, "inference_only", False):
        raise CompatError(
            "The critic is with the learners, in other processes.",
            where="value_function()",
            fix="leave `num_learners` out of the config; the learner is in this process then",
        )
    return module.compute_values(batch, embeddings)


class QModel(LegacyModel):
    """The model of DQN's policies: it gives features, of which Q-values are computed.

    Sources: `agents/dqn/dqn_torch_model.py` (0.8 – 1.13).
    """

    called = "q_func"
    rl_module: Any

    @property
    def dueling(self) -> bool:
        """Whether the value of a state is computed beside the advantages of actions."""
        return bool(getattr(self.rl_module, "uses_dueling", False))

    @property
    def advantage_module(self) -> Any:
        """The layers of the advantages."""
        return self.rl_module.af

    @property
    def value_module(self) -> Any:
        """The layers of the state's value; None without."""
        return self.rl_module.vf if self.dueling else None

    @property
    def v_min(self) -> float:
        """The least value of a distributional network."""
        return float(getattr(self.rl_module, "v_min", -10.0))

    @property
    def v_max(self) -> float:
        """The greatest value of a distributional network."""
        return float(getattr(self.rl_module, "v_max", 10.0))

    @property
    def sigma0(self) -> float:
        """The first deviation of noisy layers; 0 without."""
        return float(dict(self.rl_module.model_config).get("sigma0") or 0.0)

    def get_q_value_distributions(self, model_out: torch.Tensor) -> tuple[Any, ...]:
        """What Q-values are made of.

        Args:
            model_out: What the model gave, `[B, num_outputs]`.

        Returns:
            The advantages of the actions `[B, actions]`, and for each of their atoms the logits and
            probabilities `[B, actions, atoms]`; of a network that is not distributional, ones. Of a
            distributional one: advantages, the support, logits and probabilities.
        """
        advantages = self.rl_module.af(model_out)
        if self.rl_module.num_atoms > 1:
            found = self.rl_module.compute_advantage_distribution(advantages)
            mean = (found["atoms"] * found["probs"]).sum(-1)
            return mean, found["atoms"], found["logits"], found["probs"]
        ones = torch.ones_like(advantages)[..., None]
        return advantages, ones, ones

    def get_advantages_or_q_values(self, model_out: torch.Tensor) -> Any:
        """The advantages of actions, or without dueling their Q-values (Ray 0.8)."""
        return self.get_q_value_distributions(model_out)[0]

    def get_state_value(self, model_out: torch.Tensor) -> Any:
        """The value of the state beside the advantages, `[B, 1]`; 1 in a network that has none."""
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
    """The model of SAC's policies: it gives observations, which its networks take.

    Sources: `agents/sac/sac_torch_model.py` (0.8 – 1.13).
    """

    called = "sac_model"
    rl_module: Any

    @property
    def discrete(self) -> bool:
        """Whether actions are choices."""
        return hasattr(self.action_space, "n")

    @property
    def action_dim(self) -> int:
        """How many numbers an action has, or how many choices there are."""
        space = self.action_space
        return int(space.n if self.discrete else np.prod(space.shape))

    @property
    def obs_ins(self) -> int:
        """How many numbers an observation has (Ray 0.8 – 1.0, as the next two)."""
        return int(np.prod(self.obs_space.shape))

    @property
    def action_ins(self) -> int | None:
        """How many numbers of actions critics take; None where actions are discrete."""
        return None if self.discrete else self.action_dim

    @property
    def action_outs(self) -> int:
        """How many numbers actions are chosen by."""
        return self.action_dim if self.discrete else 2 * self.action_dim

    def get_q_values(self, model_out: torch.Tensor, actions: Any = None) -> tuple[Any, list[Any]]:
        """What the first critic says.

        Args:
            model_out: What the model gave.
            actions: Actions `[B, n]`; None where they are discrete.

        Returns:
            Q-values `[B, 1]`, or `[B, actions]` of discrete actions; and no state.
        """
        return self._says("qf", model_out, actions), []

    def get_twin_q_values(
        self, model_out: torch.Tensor, actions: Any = None
    ) -> tuple[Any, list[Any]]:
        """What the second critic says, likewise."""
        return self._says("qf_twin", model_out, actions), []

    def get_action_model_outputs(
        self, model_out: torch.Tensor, *_: object
    ) -> tuple[Any, list[Any]]:
        """What actions are chosen by, and no state (Ray 1.13)."""
        out = modules.network_forward(self.rl_module)({"obs": self._tensor(model_out)})
        return out["action_dist_inputs"], []

    def get_policy_output(self, model_out: torch.Tensor) -> Any:
        """What actions are chosen by (Ray 0.8 – 1.12)."""
        return self.get_action_model_outputs(model_out)[0]

    def policy_variables(self) -> list[torch.Tensor]:
        """The parameters of the actor."""
        return self._parameters_of("pi")

    def q_variables(self) -> list[torch.Tensor]:
        """The parameters of both critics."""
        twin = self._parameters_of("qf_twin") if self.rl_module.twin_q else []
        return self._parameters_of("qf") + twin

    def _says(self, critic: str, model_out: torch.Tensor, actions: Any) -> Any:
        batch = {"obs": self._tensor(model_out)}
        if actions is not None:
            batch["actions"] = self._tensor(actions)
        said = getattr(self.rl_module, critic)(
            getattr(self.rl_module, f"{critic}_encoder")(batch)["encoder_out"]
        )
        return said[:, None] if said.dim() == 1 else said

    def _parameters_of(self, name: str) -> list[torch.Tensor]:
        parts = getattr(self.rl_module, name), getattr(self.rl_module, f"{name}_encoder")
        return [p for part in parts for p in part.parameters()]

    def _compute(self, batch: dict[str, Any]) -> Computed:
        return Computed(batch["obs"])

    def _count_outputs(self, given: int) -> int | None:  # noqa: ARG002
        return None


def make_model(
    module: RLModule, observation_space: Any, model_config: Mapping[str, Any], outputs: int
) -> LegacyModel:
    """The model of the policy that had such a module's network; see `LegacyModel`."""
    kind = LegacyModel
    if hasattr(module, "pi_encoder"):
        kind = SACModel
    elif modules.has_q_values(module) and hasattr(module, "encoder"):
        kind = QModel
    return kind(module, observation_space, model_config, outputs)
