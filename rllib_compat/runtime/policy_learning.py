"""Learning through a policy: `learn_on_batch` and the like, done by the module's learner.

`compute_gradients`, `apply_gradients`, `learn_on_batch` and `loss` took batches as workers sampled
and `postprocess_trajectory` completed them (`policy/torch_policy.py` of Ray 0.8 – 2.x). They do not
advance schedules, target networks or the KL coefficient: execution plans did that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from rllib_compat.neutral.errors import CompatError
from rllib_compat.ray_versions import learners
from rllib_compat.ray_versions.types import Learner
from rllib_compat.runtime.batches import has_advantages
from rllib_compat.runtime.learner_info import HELD, learner_stats
from rllib_compat.runtime.policy_inputs import in_numpy, nest_state, tensor_of

Array = np.ndarray[Any, np.dtype[Any]]


class PolicyLearning:
    """Learns with one module of a learner.

    Attributes:
        module: The module, with its critics and targets.
        config: The settings of this module.
    """

    def __init__(self, learner: Learner, policy_id: str) -> None:
        self._learner: Any = learner
        self._policy_id = policy_id
        self.module: Any = learner.module[policy_id].unwrapped()
        self.config: Any = learner.config.get_config_for_module(policy_id)

    @property
    def optimizers(self) -> list[torch.optim.Optimizer]:
        """The optimizers of the module."""
        return [made for _, made in self._learner.get_optimizers_for_module(self._policy_id)]

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of these optimizers by name: the module's, and learned coefficients."""
        names = {id(p): name for name, p in self.module.named_parameters()}
        found: dict[str, Any] = {}
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    found[names.get(id(parameter), f"coefficient_{len(found)}")] = parameter
        return found

    def loss(self, batch: Mapping[str, Any]) -> Any:
        """Computes the loss of a batch, a scalar tensor."""
        with learners.separate_statistics(self._learner, self._policy_id):
            return self._losses(batch)[self._policy_id]

    def gradients(self, batch: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Computes the clipped gradients of a batch's loss, and statistics.

        Args:
            batch: The batch; of a recurrent policy as padded sequences with `seq_lens`, or as the
            steps of episodes.

        Returns:
            A tensor for each of `parameters`, None for those that the loss does not depend on; and
            the statistics by their legacy names.
        """
        with learners.separate_statistics(self._learner, self._policy_id) as stats:
            by_reference = self._learner.compute_gradients(self._losses(batch))
            clipped = self._learner.postprocess_gradients(by_reference)
        reference = self._learner.get_param_ref
        found = [clipped.get(reference(p)) for p in self.parameters.values()]
        return found, learner_stats({n: v for n, v in stats.items() if n not in HELD})

    def apply(self, gradients: Sequence[Any]) -> None:
        """Makes a step of each optimizer; a gradient of None skips its parameter."""
        given = {}
        for parameter, gradient in zip(self.parameters.values(), gradients, strict=True):
            parameter.grad = None
            if gradient is not None:
                tensor = torch.as_tensor(gradient, dtype=parameter.dtype, device=parameter.device)
                given[self._learner.get_param_ref(parameter)] = tensor
        learners.step(self._learner, given)

    def optimizer_states(self) -> list[dict[str, Any]]:
        """Returns the optimizers' states, as arrays."""
        import tree

        return [tree.map_structure(in_numpy, made.state_dict()) for made in self.optimizers]

    def set_optimizer_states(self, states: Sequence[Any]) -> None:
        """Sets what `optimizer_states` returned; a policy that is not trained has no optimizers."""
        import tree

        if not self.optimizers:
            return
        for made, state in zip(self.optimizers, states, strict=True):
            made.load_state_dict(tree.map_structure(_of_array, state))

    def _losses(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        if has_advantages(self.config) and "advantages" not in batch:
            raise CompatError(
                "The batch has no column `advantages`, and this policy's loss needs it.",
                where="learn_on_batch()",
                fix="pass a batch of trainer.workers.local_worker().sample(); or add `vf_preds` of "
                "policy.compute_actions() to each episode's batch, and call "
                "policy.postprocess_trajectory() with it",
            )
        columns = {self._policy_id: self._columns(batch)}
        out = self._learner.module.forward_train(columns)
        losses: dict[str, Any] = self._learner.compute_losses(fwd_out=out, batch=columns)
        return losses

    def _columns(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Converts a legacy batch to the columns that Ray's losses take."""
        columns = dict(batch.items())  # `batch["dones"]` is `terminateds` since Ray 2.1
        lengths = columns.pop("seq_lens", None)
        found = {n: c for n, c in columns.items() if n in _STRUCTURES or _is_numeric(c)}
        if "dones" in found:
            found.setdefault("terminateds", found.pop("dones"))
        count = len(found["actions"] if "actions" in found else found["rewards"])
        found.setdefault("truncateds", np.zeros(count, bool))
        found.setdefault("weights", np.ones(count, np.float32))
        n_step = getattr(self.config, "n_step", 1)
        found.setdefault("n_step", np.full(count, n_step if isinstance(n_step, int) else 1.0))
        device = next(self.module.parameters()).device
        tensors = {name: _tensor(column, device) for name, column in found.items()}
        if "terminateds" in tensors:  # integers in Ray 1.0
            tensors["terminateds"] = tensors["terminateds"].bool()
        if self.module.is_stateful():
            return self._in_sequences(tensors, lengths)
        return {"loss_mask": torch.ones(count, dtype=torch.bool, device=device), **tensors}

    def _in_sequences(self, columns: dict[str, Any], lengths: object) -> dict[str, Any]:
        """Returns columns `[sequences, T, …]`, initial states, and the mask without padding."""
        states = [name for name in columns if name.startswith("state_in_")]
        rest = {n: c for n, c in columns.items() if not n.startswith("state_")}
        if lengths is None:
            longest = int(dict(self.config.model_config).get("max_seq_len", 20))
            starts, lengths = _cut(rest, longest)
            rows = [np.arange(s, s + n) for s, n in zip(starts, lengths, strict=True)]
            rest = {name: _padded(column, rows) for name, column in rest.items()}
            columns = {name: columns[name][starts] for name in states}
        device = next(self.module.parameters()).device
        lengths = torch.as_tensor(np.asarray(lengths), device=device).long()
        cut = {n: c.reshape(len(lengths), -1, *c.shape[1:]) for n, c in rest.items()}
        steps = next(iter(cut.values())).shape[1]
        mask = torch.arange(steps, device=device)[None] < lengths[:, None]
        ordered = sorted(states, key=lambda name: int(name.rpartition("_")[2]))
        given = [columns[name] for name in ordered]
        if not given:
            states_in = _repeated(self.module.get_initial_state(), len(lengths), device)
            return {**cut, "state_in": states_in, "loss_mask": mask}
        return {**cut, "state_in": nest_state(self.module, given), "loss_mask": mask}


#: Columns that may have parts.
_STRUCTURES = ("obs", "new_obs", "actions")


def _is_numeric(column: object) -> bool:
    return isinstance(column, torch.Tensor) or np.asarray(column).dtype.kind in "fiub"


def _tensor(column: object, device: torch.device) -> Any:
    """Converts a column to tensors, and float64 to float32."""
    import tree

    def convert(part: object) -> torch.Tensor:
        if isinstance(part, np.ndarray) and not part.flags.writeable:
            part = part.copy()  # read-only from Ray's object store
        tensor = tensor_of(part, device)
        return tensor.float() if tensor.dtype == torch.float64 else tensor

    return tree.map_structure(convert, column)


def _cut(columns: Mapping[str, Any], longest: int) -> tuple[Array, Array]:
    """Returns the start and length of each sequence; none spans two episodes."""
    count = len(columns["rewards"])
    begins = np.zeros(count, bool)
    begins[0] = True
    for name in ("eps_id", "unroll_id", "agent_index"):
        if name in columns:
            ids = np.asarray(columns[name].cpu())
            begins[1:] |= ids[1:] != ids[:-1]
    starts: list[int] = []
    edges = [*np.flatnonzero(begins), count]
    for start, end in pairwise(edges):
        starts += range(start, end, longest)
    return np.array(starts), np.diff([*starts, count])


def _padded(column: torch.Tensor, rows: Iterable[Array]) -> torch.Tensor:
    parts = [column[torch.as_tensor(chosen)] for chosen in rows]
    return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True).flatten(0, 1)


def _repeated(state: object, count: int, device: torch.device) -> Any:
    import tree

    return tree.map_structure(
        lambda part: torch.as_tensor(part, device=device)[None].repeat_interleave(count, 0), state
    )


def _of_array(value: object) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    # Ray 2.44 and 2.48 convert lists of names to arrays, too.
    return value.tolist() if value.dtype.kind in "US" else tensor_of(value)
