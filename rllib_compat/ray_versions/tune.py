"""What Tune took over from `ray.train`."""

from __future__ import annotations

from typing import Any


def tune_checkpoint_config() -> Any:
    """An empty `CheckpointConfig` for Tune; in Ray 2.40 it is that of `ray.train`."""
    from ray import train, tune

    return (tune if hasattr(tune, "CheckpointConfig") else train).CheckpointConfig()


def tune_report(metrics: dict[str, Any], *, checkpoint: Any = None) -> None:
    """Reports to Tune from a function; in Ray 2.40 it is done as in `ray.train`."""
    from ray import train, tune

    (tune if hasattr(tune, "report") else train).report(metrics, checkpoint=checkpoint)
