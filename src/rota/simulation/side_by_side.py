"""Several simulations at the same time: the compiled engine does not hold the interpreter, so threads use all cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from rota.simulation.result import Result
from rota.threads import quick_turns

__all__ = ["in_threads"]

_T = TypeVar("_T")


def in_threads(
    run: Callable[..., _T],
    arguments: Iterable[tuple[Any, ...]],
    stopped: threading.Event,
    *,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[_T]:
    """What a function returns for each tuple of arguments, in this order, with as many calls at a time as there are cores.

    Arguments may be made one by one: calls go on while the next ones are made. `progress` hears how many answers there are, in order.

    At Ctrl-C `stopped` is set, and calls that have not begun are left out: what comes back is shorter. A function that simulates passes it
    on by raising KeyboardInterrupt where progress is reported, and returns what it has. So it is if a simulation was interrupted.
    """
    answers: list[_T] = []

    def add(answer: _T) -> None:
        answers.append(answer)
        if progress is not None:
            progress(len(answers))

    if workers == 1 or (isinstance(arguments, Sized) and len(arguments) <= 1):
        for one in arguments:
            add(run(*one))
            if _interrupted(answers[-1]):
                break
        return answers
    tasks: list[Future[_T]] = []
    with quick_turns(), ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        try:
            tasks.extend(pool.submit(run, *one) for one in arguments)
            for task in tasks:
                add(task.result())
        except KeyboardInterrupt:
            stopped.set()
            pool.shutdown(cancel_futures=True)
            answers += [one.result() for one in tasks[len(answers) :] if not one.cancelled() and one.exception() is None]
        except BaseException:
            stopped.set()
            pool.shutdown(cancel_futures=True)
            raise
    return answers


def _interrupted(answer: object) -> bool:
    return isinstance(answer, Result) and answer.interrupted
