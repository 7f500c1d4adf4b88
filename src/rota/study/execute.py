"""Runs on this machine's cores or on a Dask cluster: the rows come as they are finished, in any order.

If a worker dies, another one repeats the run it was working on. Each worker is a process with one thread for linear algebra, so
that the results do not depend on how many there are or where they run.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from rota.arguments import whole
from rota.errors import BadSpec, Problem, RotaError
from rota.study.runs import Run, failed, measure

__all__ = ["execute"]

Rows = Generator[dict[str, Any], None, None]

_DEATHS = 3  # a run fails after this many of its workers have died
_AHEAD = 1000  # runs given to a Dask scheduler before the first is done
_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
_SPAWN = get_context("spawn")


def execute(runs: Sequence[Run], *, workers: int | None = None, scheduler: str | None = None) -> Rows:
    """The rows of the runs, as they are finished: by a Dask `scheduler`, or in `workers` processes (None: one per core; 0: here)."""
    if workers is not None and workers < 0:
        raise BadSpec([Problem("workers", "must be at least 1, or 0 for this process alone", workers)])
    workers = None if workers is None else whole("workers", workers, 0)
    if scheduler is not None and workers is not None:
        raise BadSpec([Problem("workers", "does not go with a scheduler, which has workers of its own", workers)])
    if workers == 0 or not runs:
        return (measure(run) for run in runs)
    if scheduler is not None:
        return _on_dask(runs, scheduler)
    return _in_processes(runs, min(workers or _cores(), len(runs)))


# ---------------------------------------------------------------------------------------------------------------- this machine


@dataclass
class _Worker:
    process: BaseProcess
    run: Run | None = None
    ready: bool = False


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _in_processes(runs: Sequence[Run], workers: int) -> Rows:
    """Worker processes with a pipe to each, which shows which one has died and what it was running (a shared queue would not)."""
    waiting, left = deque(runs), len(runs)
    deaths, stillborn = Counter[str](), 0
    team: dict[Any, _Worker] = {}
    try:
        for _ in range(workers):
            _hire(team)
        while left:
            pipe: Any  # a Connection: the type of `wait` also allows a socket
            for pipe in wait(list(team)):
                worker = team[pipe]
                try:
                    row = pipe.recv()  # None: ready for a first run
                except (EOFError, OSError):
                    _bury(team, pipe)
                    stillborn += not worker.ready
                    if stillborn == _DEATHS:
                        raise RotaError(_NEVER_BEGAN) from None
                    _hire(team)
                    if worker.run is None:
                        continue
                    deaths[worker.run.key] += 1
                    if deaths[worker.run.key] < _DEATHS:
                        waiting.appendleft(worker.run)
                        continue
                    row = failed(worker.run, f"its worker died {_DEATHS} times: is there enough memory?")
                else:
                    worker.ready, stillborn = True, 0
                    worker.run = waiting.popleft() if waiting else None
                    if worker.run is not None:
                        with suppress(OSError):  # it died just now: the next round notices
                            pipe.send(worker.run)
                if row is not None:
                    left -= 1
                    yield row
    finally:
        for pipe in list(team):
            _bury(team, pipe)


_NEVER_BEGAN = (
    'worker processes end before they begin: in a script, make the call below `if __name__ == "__main__":`; '
    "elsewhere, use workers=0 to run in this process"
)


def _hire(team: dict[Any, _Worker]) -> None:
    here, there = _SPAWN.Pipe()
    process = _SPAWN.Process(target=_work, args=(there,), daemon=True)
    with _one_thread_each():
        process.start()
    there.close()  # now only the worker holds it: we read the end of file when it dies
    team[here] = _Worker(process)


def _bury(team: dict[Any, _Worker], pipe: Any) -> None:
    worker = team.pop(pipe)
    worker.process.kill()
    worker.process.join()
    pipe.close()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Workers started within have one thread for linear algebra: there is one of them per core already."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _work(pipe: Connection) -> None:
    """The main loop of a worker: runs what it is sent, until nothing more comes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent process
    threading.Thread(target=_die_with_parent, daemon=True).start()
    pipe.send(None)
    with suppress(EOFError, OSError):
        while True:
            pipe.send(measure(pipe.recv()))


def _die_with_parent() -> None:
    """Ends this worker when its parent has ended, however that happened: its run is no longer wanted."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


# ------------------------------------------------------------------------------------------------------------------------ Dask


def _on_dask(runs: Sequence[Run], scheduler: str) -> Rows:
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise RotaError("a Dask scheduler needs Dask, which is not installed: pip install 'rota[dask]'") from None
    try:
        client = Client(scheduler, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise RotaError(f"cannot reach a Dask scheduler at {scheduler}: {error}") from None
    with client:
        waiting = iter(runs)
        known = {}  # a future is held here until it is done: Dask drops a result without a reference
        finished = as_completed(loop=client.loop)

        def submit(count: int) -> None:
            for run in islice(waiting, count):
                future = client.submit(measure, run, key=f"rota-{run.key}", pure=True)
                known[future.key] = (future, run)
                finished.add(future)

        submit(_AHEAD)
        for future in finished:
            _, run = known.pop(future.key)
            if future.cancelled():
                raise RotaError(
                    f"the Dask scheduler at {scheduler} has gone: finished runs are kept, and the same command continues from there"
                )
            problem = future.exception()  # an error of Dask itself: `measure` returns those of the run
            yield future.result() if problem is None else failed(run, f"{type(problem).__name__}: {problem}")
            submit(1)
