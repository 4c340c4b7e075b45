"""Advantages and value targets of policy gradients, as `compute_advantages` of Ray 0.5 – 2.x.

Unlike the piece that PPO has today, nothing is standardized.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import tree
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.evaluation.postprocessing import Postprocessing
from ray.rllib.utils.postprocessing.zero_padding import (
    split_and_zero_pad_n_episodes,
    unpad_data_if_necessary,
)

from rllib_compat.ray_versions import connectors
from rllib_compat.ray_versions import episodes as episode_columns
from rllib_compat.ray_versions.tensors import as_tensor
from rllib_compat.runtime.batches import advantages

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig, RLModule

Array = np.ndarray[Any, np.dtype[Any]]

#: Of how many steps values are computed at once, where a config has no minibatches; and of how many
#: numbers in observations, where these steps have fewer.
_STEPS, _NUMBERS = 128, 2**20


class Advantages(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    """Adds advantages and value targets to a learner's batch; the last piece of its pipeline.

    Episodes have one step more at their end (`AddOneTsToEpisodesAndTruncate`), whose value is what
    was expected after the last real one. A config without `use_critic` (or where it is False) has
    no values: advantages are discounted returns. Without `use_gae`, it is taken that nothing
    follows a chunk, unless it `expects_without_gae`; so it was in the old Rays.
    """

    def __init__(self, config: AlgorithmConfig) -> None:
        super().__init__()
        self._config = config
        self.expects_without_gae = False

    def __call__(
        self, *, rl_module: Any, batch: Mapping[str, Any], episodes: list[Any], **_: object
    ) -> Any:
        """Adds both columns to the batch of each module."""
        chunks = list(self.single_agent_episode_iterator(episodes, agents_that_stepped_only=False))
        for module_id, columns in batch.items():
            lengths = [len(chunk) for chunk in chunks if chunk.module_id in (None, module_id)]
            self.add(rl_module[module_id].unwrapped(), module_id, columns, lengths)
        return batch

    def add(self, module: Any, module_id: str, columns: dict[str, Any], lengths: list[int]) -> None:
        """Adds both columns to those of a module, in which chunks have such lengths."""
        for name, column in self.columns(module, module_id, columns, lengths).items():
            if module.is_stateful():
                column = _pad(column, lengths, module)
            device = columns[Columns.REWARDS].device
            columns[name] = torch.as_tensor(column, dtype=torch.float32, device=device)

    def columns(
        self, module: Any, module_id: str, columns: Mapping[str, Any], lengths: list[int]
    ) -> dict[str, Array]:
        """Both columns of all chunks, one after the other, by the columns of a module."""
        config = self._config.get_config_for_module(module_id)
        computed = None
        if getattr(config, "use_critic", False):
            computed = values(module, columns, config.minibatch_size or _STEPS)
        gae = computed is not None and config.use_gae
        weights = config.gamma, config.lambda_ if gae else 1.0
        expects = gae or (computed is not None and self.expects_without_gae)
        return _columns(columns, lengths, computed, weights, expects=expects)


class TrainBatches:
    """Makes batches of episodes for a learner, with advantages: in the place of its pipeline.

    Steps of one agent that are arrays become columns at once, without those that were added for
    their values. What else there is goes through the pipeline, which takes as long as an update of
    a small network.
    """

    def __init__(self, pipeline: Any, config: AlgorithmConfig) -> None:
        self._pipeline, self.advantages = pipeline, Advantages(config)
        pipeline.append(self.advantages)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipeline, name)

    def __call__(
        self, *, rl_module: Any, batch: dict[str, Any], episodes: list[Any], **more: object
    ) -> Any:
        """Makes the batch of each module."""
        columns = None
        if not batch and connectors.only_makes_batches(self._pipeline, Advantages):
            columns = episode_columns.columns_with_last_values(episodes)
        if columns is None or (module := rl_module[DEFAULT_MODULE_ID].unwrapped()).is_stateful():
            return self._pipeline(rl_module=rl_module, batch=batch, episodes=episodes, **more)
        device = connectors.device_of_tensors(self._pipeline)
        seen = {name: as_tensor(column, device) for name, column in columns.items()}
        lengths = [len(episode) + 1 for episode in episodes]
        columns |= self.advantages.columns(module, DEFAULT_MODULE_ID, seen, lengths)
        real = columns.pop(Columns.LOSS_MASK)
        made = {name: as_tensor(column[real], device) for name, column in columns.items()}
        return {DEFAULT_MODULE_ID: made}


def values(module: Any, columns: Mapping[str, Any], steps: int) -> torch.Tensor:
    """What a critic expects before each step of a batch, computed by parts.

    Activations of a whole batch of images would take gigabytes.

    Args:
        module: It computes values, on its device.
        columns: The batch, on any device.
        steps: How many steps a part has at least; of small observations it has more.
    """
    device = next(module.parameters()).device
    taken = {name: c for name, c in columns.items() if name != Columns.INFOS}  # no tensors
    parts = tree.flatten(taken[Columns.OBS])
    numbers = sum(part[:1].numel() for part in parts)  # of a row: a step, or a sequence of steps
    size = max(1, steps // taken[Columns.REWARDS][:1].numel(), _NUMBERS // max(numbers, 1))
    with torch.no_grad():
        if len(parts[0]) <= size and device == parts[0].device:
            whole: torch.Tensor = module.compute_values(taken)
            return whole
        computed = [
            module.compute_values(
                tree.map_structure(lambda c, at=at: c[at : at + size].to(device), taken)
            ).to(parts[0].device)
            for at in range(0, len(parts[0]), size)
        ]
    return torch.cat(computed)


def _columns(
    columns: Mapping[str, Any],
    lengths: list[int],
    computed: Any,
    weights: tuple[float, float],
    *,
    expects: bool,
) -> dict[str, Array]:
    """Both columns of all chunks, one after the other.

    Args:
        columns: The batch.
        lengths: The lengths of the chunks, each with the step that was added.
        computed: The values; None: there is no critic.
        weights: Gamma and lambda.
        expects: Whether the last value stands for what follows a chunk.
    """

    def flat(column: torch.Tensor) -> Array:
        found: Array = unpad_data_if_necessary(lengths, column.detach().cpu().numpy())
        return found

    rewards, ended = flat(columns[Columns.REWARDS]), flat(columns[Columns.TERMINATEDS])
    values = np.zeros_like(rewards) if computed is None else flat(computed)
    # Numbers of Python: chunks may be a few steps long, and numpy takes longer to cut one out.
    gains, expected, over = rewards.tolist(), values.tolist(), ended.tolist()
    found: list[float] = []
    for length in lengths:
        begin, last = len(found), len(found) + length - 1  # the step that was added
        goes_on = expects and True not in over[begin:last]
        after = expected[last] if goes_on else 0.0
        steps = gains[begin:last], expected[begin:last]
        found += *advantages(*steps, after, *weights), 0.0
    made = np.array(found, np.float32)
    targets = np.zeros_like(made) if computed is None else made + values
    return {Postprocessing.ADVANTAGES: made, Postprocessing.VALUE_TARGETS: targets}


def _pad(column: Array, lengths: list[int], module: RLModule) -> Array:
    """A flat column as sequences, padded with zeros, as recurrent modules take it."""
    parts = split_and_zero_pad_n_episodes(
        column, episode_lens=lengths, max_seq_len=module.model_config["max_seq_len"]
    )
    return np.stack(parts, axis=0)
