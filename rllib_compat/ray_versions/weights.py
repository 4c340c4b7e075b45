"""Weights that go from learners to env runners."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm


def send_new_weights(algorithm: Algorithm, to: list[int] | None = None) -> None:
    """Sends what the learners have learned to env runners.

    Args:
        algorithm: The algorithm.
        to: The indices of those that get it, and the local one does; None: all.
    """
    from ray.rllib.utils.metrics import SYNCH_WORKER_WEIGHTS_TIMER, TIMERS

    with algorithm.metrics.log_time((TIMERS, SYNCH_WORKER_WEIGHTS_TIMER)):
        if not _copied_at_home(algorithm):
            algorithm.env_runner_group.sync_weights(
                from_worker_or_learner_group=algorithm.learner_group,
                inference_only=True,
                to_worker_indices=to,
            )


def _copied_at_home(algorithm: Algorithm) -> bool:
    """Copies weights where the only env runner and the only learner are in this process.

    Ray sends them through numpy and the object store then, too, where nobody else reads them: it
    took a sixth of DQN's time. Whatever is not as usual is left to it, errors included.

    Returns:
        Whether the env runner has the learner's weights now.
    """
    learner = algorithm.learner_group._learner
    runner = algorithm.env_runner_group.local_env_runner
    if learner is None or runner is None or algorithm.env_runner_group.num_remote_workers():
        return False
    number = learner._weights_seq_no
    if number and runner._weights_seq_no >= number:
        return True
    pairs = list(_tensors(learner, runner))
    if not pairs or None in pairs:
        return False
    for new, mine in pairs:
        mine.data.copy_(new)
    runner._weights_seq_no = number or runner._weights_seq_no
    return True


def _tensors(learner: Any, runner: Any) -> Iterator[Any]:
    """A learner's tensors and those of an env runner; None: one can't be copied as it is."""
    import torch
    from ray.rllib.core import DEFAULT_MODULE_ID
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModule

    mine: Any = getattr(runner, "module", None)
    several = isinstance(mine, MultiRLModule)
    for module_id, module in mine.items() if several else [(DEFAULT_MODULE_ID, mine)]:
        if module_id not in learner.module or not _is_usual(module):
            yield None
            return
        there = learner.module[module_id].unwrapped()
        new = there.state_dict() if _is_usual(there) else {}
        for name, tensor in module.state_dict().items():
            found: Any = new.get(name)
            fits = isinstance(found, torch.Tensor) and isinstance(tensor, torch.Tensor)
            yield (found, tensor) if fits and found.shape == tensor.shape else None


def _is_usual(module: Any) -> bool:
    """Whether a module's state is nothing but its tensors."""
    from ray.rllib.core.rl_module.torch import TorchRLModule

    kind = type(module)
    return (
        isinstance(module, TorchRLModule)
        and kind.get_state is TorchRLModule.get_state
        and kind.set_state is TorchRLModule.set_state
    )
