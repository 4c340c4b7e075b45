"""Gradients that several processes average, by torch's own means."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from typing import Any

import ray
import torch
from torch import distributed


class LostOthersError(Exception):
    """Another process has failed or has left, and there is no mean."""


def free_address(_: Any = None) -> str:
    """An address on this machine where processes can meet."""
    with socket.socket() as found:
        found.bind(("", 0))
        port = found.getsockname()[1]
    return f"tcp://{ray.util.get_node_ip_address()}:{port}"


def join(address: str, backend: str, ranks: Mapping[int, int], index: int) -> None:
    """Connects this process to others; waits for all of them.

    Args:
        address: Where they meet: on the machine of the first.
        backend: What they average with.
        ranks: The ranks of all, by their indices.
        index: That of this one.
    """
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
        LostOthersError: Another process is gone.
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
        raise LostOthersError(str(error)) from error
    whole /= distributed.get_world_size()
    there, *means = whole.split([len(parts), *(len(part) for part in parts)])
    return [
        mean.to(parameter.device, parameter.dtype).reshape(parameter.shape) if known else None
        for mean, parameter, known in zip(means, like, (there > 0).tolist(), strict=True)
    ]
