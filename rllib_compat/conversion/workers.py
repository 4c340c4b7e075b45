"""Where many checkpoints are converted at once: in processes of this machine, or as tasks of Ray.

A worker imports Ray once, which takes longer than most conversions. One that dies (of memory, of a
signal) takes only its own checkpoint with it, and none takes longer than its limit.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

JobT = TypeVar("JobT")
DoneT = TypeVar("DoneT")

#: Seconds that a process has to clean up.
_PATIENCE = 10
#: The exit code of one that took too long, as `timeout` has it.
_TOO_LONG = 124
#: A lost node is no fault of a checkpoint.
_RETRIES = 2


def run_in_processes(
    work: Callable[[JobT], DoneT],
    jobs: Sequence[JobT],
    died: Callable[[JobT, str], DoneT],
    *,
    processes: int,
    limit: float,
) -> Iterator[DoneT]:
    """Does jobs in processes of this machine.

    Args:
        work: What is done in a process, at the top of a module.
        jobs: What it is called with.
        died: Says what became of a job whose process died, and why.
        processes: How many there are.
        limit: Seconds that a job may take.

    Yields:
        What `work` returns, as soon as it does.
    """
    waiting = list(reversed(jobs))
    workers = [_Process(work, died, limit) for _ in range(min(processes, len(waiting)))]
    try:
        for worker in workers:
            worker.give(waiting.pop())
        while busy := [worker for worker in workers if worker.job is not None]:
            for ready in wait([worker.connection for worker in busy]):
                worker = next(w for w in busy if w.connection is ready)
                yield worker.take()
                if waiting:
                    worker.give(waiting.pop())
    finally:
        for worker in workers:
            worker.stop()


def run_on_ray(
    work: Callable[[JobT], DoneT],
    jobs: Sequence[JobT],
    died: Callable[[JobT, str], DoneT],
    *,
    address: str,
    limit: float,
) -> Iterator[DoneT]:
    """Does jobs as tasks of a cluster, one a CPU, spread over its nodes.

    Args:
        work: What a task does.
        jobs: What it is called with.
        died: Says what became of a job whose task could not end, and why.
        address: The cluster's, as `ray.init` takes it.
        limit: Seconds that a job may take.

    Yields:
        What `work` returns, as soon as it does.
    """
    import ray

    from rllib_compat.ray_versions import startup

    with startup.cluster(address):
        task = ray.remote(num_cpus=1, max_retries=_RETRIES, scheduling_strategy="SPREAD")(_limited)
        waiting, running = list(reversed(jobs)), dict[Any, JobT]()
        while waiting or running:
            # One more for each CPU waits there, so that none is idle meanwhile.
            while waiting and len(running) < 2 * max(int(ray.cluster_resources().get("CPU", 1)), 1):
                job = waiting.pop()
                running[task.remote(work, job, limit)] = job
            for ready in ray.wait(list(running))[0]:
                job = running.pop(ready)
                try:
                    yield ray.get(ready)
                except ray.exceptions.RayError as error:
                    yield died(job, f"{type(error).__name__}: {str(error).splitlines()[0][:200]}")


class _Process(Generic[JobT, DoneT]):
    """A process that does one job after the other."""

    def __init__(
        self, work: Callable[[JobT], DoneT], died: Callable[[JobT, str], DoneT], limit: float
    ) -> None:
        self._work, self._died, self._limit = work, died, limit
        self.job: JobT | None = None
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # Ray and torch don't survive a fork
        self.connection, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=_serve, args=(theirs, self._work, self._limit), daemon=True
        )
        with _child_environment():
            self._process.start()
        theirs.close()  # so that the end of the process ends the connection

    def give(self, job: JobT) -> None:
        """Lets the process do a job; a process that has died is replaced."""
        if not self._process.is_alive():
            self.stop()
            self._start()
        self.job = job
        self.connection.send(job)

    def take(self) -> DoneT:
        """What became of the job."""
        assert self.job is not None
        try:
            done: DoneT = self.connection.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            why = f"the process died with exit code {code}"
            if code == _TOO_LONG:
                why = f"it took longer than {self._limit:g} seconds"
            done = self._died(self.job, why)
        self.job = None
        return done

    def stop(self) -> None:
        """Ends the process; an unfinished job leaves nothing behind."""
        self.connection.close()
        self._process.terminate()
        self._process.join(_PATIENCE)
        self._process.kill()
        self._process.join()


@contextmanager
def _child_environment() -> Iterator[None]:
    """Sets the environment variables of Python processes that are started in the block.

    They import nothing from where they start, as they would before they receive the path of this
    one (Python 3.10 does not know the variable). Each has one thread for its matrices, unless the
    user set another number: with more, the processes spend half of their time in each other's way.
    """
    wanted = {
        "PYTHONSAFEPATH": "1",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }
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
    """What a process does until the connection ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the first process's affair
    signal.signal(signal.SIGTERM, _end)
    while True:
        try:
            job: JobT = connection.recv()
        except (EOFError, OSError):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # nothing is left to remove
            return
        try:
            connection.send(_limited(work, job, limit))
        except TimeoutError:
            raise SystemExit(_TOO_LONG) from None


def _limited(work: Callable[[JobT], DoneT], job: JobT, limit: float) -> DoneT:
    """Has a job that takes longer raise a `TimeoutError`, or ends the process if it does not."""

    def end(*_: object) -> None:
        raise TimeoutError(f"it took longer than {limit:g} seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, limit)
    exit_timer = threading.Timer(limit + _PATIENCE, os._exit, (_TOO_LONG,))
    exit_timer.daemon = True
    exit_timer.start()
    try:
        return work(job)
    finally:
        exit_timer.cancel()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _end(*_: object) -> None:
    """Ends a process by an exception, so that it removes what it had begun to write."""
    raise SystemExit(1)
