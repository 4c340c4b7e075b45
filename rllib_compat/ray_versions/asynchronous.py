"""Requests to env runners that are not waited for.

The managers of all supported Rays keep what is in flight, by no public name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

#: The tag of what `ask_env_runners` has asked; Ray asks by itself, too.
_ASKED = "asked"
#: The methods of a group that give what env runners have sampled; the first since Ray 2.49.
_FETCH = ("foreach_env_runner_async_fetch_ready", "fetch_ready_async_reqs")
#: For so many seconds at most is a sample waited for: there may be other things to do.
_PATIENCE = 0.1


def ask_env_runners(
    group: Any, function: Callable[[Any], Any], only: int | None = None, most: int = 1
) -> None:
    """Calls a function in remote env runners, and does not wait for what they answer.

    Args:
        group: The env runners.
        function: What each is called with.
        only: The index of the one to ask; None: all.
        most: An env runner that has so many calls to answer is not asked. (Ray has a limit, too:
            `max_requests_in_flight_per_env_runner`.)
    """
    manager = group._worker_manager
    busy = Counter(index for _, index in _flying(group))
    idle = [i for i in manager.actor_ids() if busy[i] < most and only in (None, i)]
    if idle:
        manager.foreach_actor_async(function, tag=_ASKED, remote_actor_ids=idle)


def answers_of_env_runners(group: Any, seconds: float | None) -> list[tuple[int, Any]]:
    """What env runners have answered that were asked; waits for the first.

    Args:
        group: The env runners.
        seconds: How long to wait; None: as long as it takes.

    Returns:
        Indices and answers; errors are handled as the config says.
    """
    wait_for_any(group, (), seconds)
    manager = group._worker_manager
    found = manager.fetch_ready_async_reqs(tags=_ASKED, timeout_seconds=0.0)
    manager.handle_remote_call_result_errors(
        found, ignore_ray_errors=group._ignore_ray_errors_on_env_runners
    )
    return [(answer.actor_id, answer.get()) for answer in found.ignore_errors()]


def wait_for_any(group: Any, others: Iterable[Any], seconds: float | None) -> None:
    """Waits until an env runner has answered, or another reference is there.

    Ray's own method waits until all are.
    """
    import ray

    waiting = [*(reference for reference, _ in _flying(group)), *others]
    if waiting:
        ray.wait(waiting, num_returns=1, timeout=seconds)


def wait_for_samples(algorithm: Any) -> None:
    """Lets IMPALA and APPO wait for a sample where none is there.

    Ray's ask again at once (2.40 - 2.60), and keep a core busy with it, which env runners on the
    same machine need. Learners have a thread of their own.
    """
    import ray
    from ray.rllib.algorithms.impala import IMPALA

    group = algorithm.env_runner_group
    if not isinstance(algorithm, IMPALA) or algorithm.learner_group is None or group is None:
        return

    def waiting(fetch: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if samples := [reference for reference, _ in _flying(group, kwargs.get("tag"))]:
                ray.wait(samples, num_returns=1, timeout=_PATIENCE)
            return fetch(*args, **kwargs)

        return call

    for name in _FETCH:
        if hasattr(group, name):
            setattr(group, name, waiting(getattr(group, name)))


def forget_requests(group: Any, seconds: float) -> None:
    """Waits until env runners have answered everything, and drops the answers."""
    import ray

    if waiting := [reference for reference, _ in _flying(group)]:
        ray.wait(waiting, num_returns=len(waiting), timeout=seconds)
        answers_of_env_runners(group, 0.0)


def healthy_env_runners(group: Any) -> int:
    """How many remote env runners answer."""
    return len(group._worker_manager.healthy_actor_ids())


def _flying(group: Any, tag: str | None = _ASKED) -> list[tuple[Any, int]]:
    """What was asked by a tag (None: any) and not answered yet, and the index of who was."""
    flying = group._worker_manager._in_flight_req_to_actor_id.items()
    return [(reference, index) for reference, (its, index) in flying if tag in (its, None)]
