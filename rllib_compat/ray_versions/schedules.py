"""Schedules of old policies, and Ray's schedulers of rates and epsilon (2.40 – 2.60)."""

from __future__ import annotations

from typing import Any


def schedule(value: object) -> Any:
    """A number, or one by timesteps, as the schedule that old policies had: `value(timestep)`."""
    from ray.rllib.utils.schedules import ConstantSchedule, PiecewiseSchedule

    if not isinstance(value, (list, tuple)):
        return ConstantSchedule(value, framework=None)
    return PiecewiseSchedule(value, framework=None, outside_value=value[-1][-1])


def schedule_of(scheduler: Any) -> Any:
    """What a scheduler follows, as an old schedule."""
    if scheduler.use_schedule:
        return scheduler._schedule
    return schedule(float(scheduler.get_current_value()))


def follow(scheduler: Any, given: object) -> None:
    """Lets a scheduler follow an old schedule from its next update on.

    Args:
        scheduler: The scheduler.
        given: An object with `value(timestep)`, or what `schedule` takes; None: the value of now.
    """
    now = float(scheduler.get_current_value())
    scheduler.framework = "torch"
    scheduler._curr_value = scheduler._create_tensor_variable(initial_value=now)
    wanted = now if given is None else given
    scheduler._schedule = wanted if hasattr(wanted, "value") else schedule(wanted)
    scheduler.use_schedule = True


def set_value(scheduler: Any, value: float) -> None:
    """Sets the value of a scheduler, until its schedule gives the next one."""
    if scheduler.use_schedule:
        scheduler._curr_value.fill_(value)
    else:
        scheduler._curr_value = value
