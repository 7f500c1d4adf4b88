"""Several simulations at the same time: the compiled engine does not hold the interpreter, so threads use all cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from rota.simulation.result import Result

__all__ = ["in_threads"]

_T = TypeVar("_T")


def in_threads(
    run: Callable[..., _T],
    arguments: Sequence[tuple[Any, ...]],
    stopped: threading.Event,
    *,
    workers: int | None = None,
) -> list[_T]:
    """What a function returns for each tuple of arguments, in this order, with as many calls at a time as there are cores.

    At Ctrl-C `stopped` is set, and calls that have not begun are left out: what comes back is shorter. A function that simulates passes it
    on by raising KeyboardInterrupt where progress is reported, and returns what it has. So it is if a simulation was interrupted.
    """
    answers: list[_T] = []
    if workers == 1 or len(arguments) <= 1:
        for one in arguments:
            answers.append(run(*one))
            if _interrupted(answers[-1]):
                break
        return answers
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        tasks: list[Future[_T]] = [pool.submit(run, *one) for one in arguments]
        for task in tasks:
            try:
                answers.append(task.result())
            except KeyboardInterrupt:
                stopped.set()
                pool.shutdown(cancel_futures=True)
                answers += [one.result() for one in tasks[len(answers) :] if not one.cancelled() and one.exception() is None]
                break
            except BaseException:
                stopped.set()
                pool.shutdown(cancel_futures=True)
                raise
    return answers


def _interrupted(answer: object) -> bool:
    return isinstance(answer, Result) and answer.interrupted
