"""The same function on many tasks, on this machine's cores. Ctrl-C ends all of it at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from multiprocessing import TimeoutError, active_children, get_context
from typing import Any, TypeVar

from rota.errors import RotaError

__all__ = ["spread"]

T = TypeVar("T")
R = TypeVar("R")


def spread(function: Callable[[T], R], tasks: Sequence[T], workers: int | None, tell: Callable[[str], None]) -> list[R]:
    """What the function makes of each task, in their order, by `workers` processes (None: one per core; 0: here)."""
    count = min(len(tasks), (os.cpu_count() or 1) if workers is None else workers)
    done: list[R] = []

    def count_up(result: R) -> None:
        done.append(result)
        tell(f"{len(done)} of {len(tasks)} runs")

    if count < 2:
        for task in tasks:
            count_up(function(task))
        return done
    with get_context("spawn").Pool(count, _ignore_interrupts) as pool:  # leaving the block ends the processes, whatever they are doing
        team = {child.pid for child in active_children()}
        results = pool.imap(function, tasks)
        while len(done) < len(tasks):
            try:
                count_up(_next(results))
            except TimeoutError:
                if not team <= {child.pid for child in active_children()}:  # the pool would wait for its task for ever
                    raise RotaError("a worker process died: is there enough memory? Try fewer with --workers") from None
    return done


def _next(results: Any) -> Any:
    return results.next(timeout=1.0)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent process
