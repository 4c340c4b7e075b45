"""Runs many conversions in parallel: in processes of this machine, or as tasks of Ray.

A worker imports Ray once, which takes longer than most conversions. If a worker is killed (by lack
of memory, by a signal), only its own checkpoint fails. Each conversion has a time limit.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

JobT = TypeVar("JobT")
DoneT = TypeVar("DoneT")

#: The time in s for a process to clean up.
_CLEANUP_TIME = 10
#: How often a job is tried again after its process or node is lost. Ray itself would try for ever
#: what was killed because its node had no memory left (`RAY_task_oom_retries`, Ray 2.3 on).
_RETRIES = 2
#: A task of Ray costs 2 ms, so it has as many short jobs as fill this time in s.
_BATCH_TIME = 0.25
#: How often the number of a cluster's CPUs is asked for, in s.
_CLUSTER_CHECK = 1.0


def run_in_processes(
    work: Callable[[JobT], DoneT],
    jobs: Iterable[JobT],
    died: Callable[[JobT, str], DoneT],
    *,
    processes: int,
    limit: float,
) -> Iterator[DoneT]:
    """Runs jobs in processes of this machine, and yields the results when they are ready.

    `work` is at the top level of a module. `died` returns the result for a job whose process was
    killed, and for the reason. The time limit of a job is in s.
    """
    waiting, workers = iter(jobs), list[_Process[JobT, DoneT]]()
    try:
        for job in islice(waiting, processes):
            workers.append(_Process(work, died, limit))
            workers[-1].give(job)
        while busy := [worker for worker in workers if worker.job is not None]:
            for ready in wait([worker.connection for worker in busy]):
                worker = next(w for w in busy if w.connection is ready)
                done = worker.take()
                for job in islice(waiting, 1):
                    worker.give(job)
                yield done
    finally:
        for worker in workers:
            worker.stop()


def run_on_ray(
    work: Callable[[JobT], DoneT],
    jobs: Iterable[JobT],
    died: Callable[[JobT, str], DoneT],
    *,
    address: str,
    limit: float,
    memory: Callable[[JobT], int] = lambda _: 0,
) -> Iterator[DoneT]:
    """Runs jobs in tasks of a cluster, one per CPU, on all nodes; see `run_in_processes`.

    Short jobs share a task. If its process dies, each of them gets a task of its own. `memory`
    returns the bytes that a job needs: a node runs no more tasks than it has memory for. After each
    loss, a job gets twice as much.
    """
    import ray

    from rllib_compat.ray_versions import startup

    with startup.cluster(address):
        task = ray.remote(num_cpus=1, max_retries=0, scheduling_strategy="SPREAD")(_run_batch)
        waiting, alone = iter(jobs), deque[tuple[list[JobT], int]]()
        running = dict[Any, tuple[list[JobT], int]]()
        size, most, largest, asked = 1, 0, 0, -_CLUSTER_CHECK
        while True:
            if time.monotonic() - asked >= _CLUSTER_CHECK:  # nodes come and go
                # One more task per CPU is queued, so that no CPU is idle.
                most = 2 * max(int(ray.cluster_resources().get("CPU", 1)), 1)
                largest = max(int(node["Resources"].get("memory", 0)) for node in ray.nodes())
                asked = time.monotonic()
            while len(running) < most:
                batch, retries = (
                    alone.popleft() if alone else (list(islice(waiting, size)), _RETRIES)
                )
                if not batch:
                    break
                needed = max(map(memory, batch)) << (_RETRIES - retries)
                # Tasks with equal resources share processes, so there are few sizes; what no node
                # has is not asked for, since it would never run.
                reserved = min(1 << needed.bit_length(), largest)
                ready = task.options(memory=reserved).remote(work, batch, limit)
                running[ready] = batch, retries
            if not running:
                return
            ray.wait(list(running))
            for ready in ray.wait(list(running), num_returns=len(running), timeout=0)[0]:
                batch, retries = running.pop(ready)
                try:
                    results, seconds = ray.get(ready)
                except ray.exceptions.RayError as error:
                    if len(batch) > 1:  # which job it was is seen when each runs alone
                        alone.extend(([job], _RETRIES) for job in batch)
                    elif retries:
                        alone.append((batch, retries - 1))
                    else:
                        said = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
                        yield died(batch[0], said)
                    continue
                size = min(max(int(len(batch) * _BATCH_TIME / seconds), 1), 2 * len(batch))
                for job, result in zip(batch, results, strict=True):
                    yield died(job, str(result)) if isinstance(result, TimeoutError) else result


def _run_batch(
    work: Callable[[JobT], DoneT], jobs: Sequence[JobT], limit: float
) -> tuple[list[DoneT | TimeoutError], float]:
    """Runs jobs, each within its time limit; returns the results and the time in s."""
    began, results = time.monotonic(), list[DoneT | TimeoutError]()
    for job in jobs:
        try:
            results.append(_limited(work, job, limit))
        except TimeoutError as error:
            results.append(error)
    return results, max(time.monotonic() - began, 1e-6)


class _Process(Generic[JobT, DoneT]):
    """A process that runs one job after the other."""

    def __init__(
        self, work: Callable[[JobT], DoneT], died: Callable[[JobT, str], DoneT], limit: float
    ) -> None:
        self._work, self._died, self._limit = work, died, limit
        self.job: JobT | None = None
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # Ray and torch do not support fork
        self.connection, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=_serve, args=(theirs, self._work, self._limit), daemon=True
        )
        with _child_environment():
            self._process.start()
        theirs.close()  # then the connection ends with the process

    def give(self, job: JobT) -> None:
        """Starts a job; replaces the process if it was killed."""
        if not self._process.is_alive():
            self.stop()
            self._start()
        self.job, self._began = job, time.monotonic()
        self.connection.send(job)

    def take(self) -> DoneT:
        """Waits for the result of the job."""
        assert self.job is not None
        try:
            done: DoneT = self.connection.recv()
        except (EOFError, OSError):
            self._process.join()
            why = f"the process died with exit code {self._process.exitcode}"
            if time.monotonic() - self._began > self._limit:
                why = _too_long(self._limit)
            done = self._died(self.job, why)
        self.job = None
        return done

    def stop(self) -> None:
        """Ends the process; an unfinished job leaves no files."""
        self.connection.close()
        self._process.terminate()
        self._process.join(_CLEANUP_TIME)
        self._process.kill()
        self._process.join()


@contextmanager
def _child_environment() -> Iterator[None]:
    """Sets the environment variables of Python processes that are started in the block.

    They import no modules of the working directory, as they would before they get this process's
    path (Python 3.10 ignores the variable). Each computes with one thread, unless the user set
    another number: with more, the processes spend half of their time waiting for each other.
    """
    wanted = {"PYTHONSAFEPATH": "1", "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(connection: Connection, work: Callable[[JobT], object], limit: float) -> None:
    """Runs jobs in a process until the connection ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process handles Ctrl-C
    signal.signal(signal.SIGTERM, _end)
    while True:
        try:
            job: JobT = connection.recv()
        except (EOFError, OSError):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # there are no files to remove
            return
        try:
            connection.send(_limited(work, job, limit))
        except TimeoutError:
            raise SystemExit(1) from None


class _TimeIsUpError(BaseException):
    """Nothing that handles errors on the way handles it."""


def _limited(work: Callable[[JobT], DoneT], job: JobT, limit: float) -> DoneT:
    """Runs a job within its time limit in s.

    Raises:
        TimeoutError: It exceeded the limit. Where no exception can end it (in a library's code,
            for example), the process ends a little later.
    """

    def end(*_: object) -> None:
        raise _TimeIsUpError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, limit)
    faulthandler.dump_traceback_later(limit + min(limit, _CLEANUP_TIME), exit=True)
    try:
        return work(job)
    except _TimeIsUpError:
        raise TimeoutError(_too_long(limit)) from None
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _too_long(limit: float) -> str:
    return f"it took longer than {limit:g} seconds"


def _end(*_: object) -> None:
    """Raises an exception, so that the process removes incomplete files."""
    raise SystemExit(1)
