"""Threads: one for the linear algebra of small matrices, and how several share the processors.

BLAS libraries spread every product over all cores. For matrices of some hundred rows the threads then wait for each other longer than they
compute, and on a busy machine a hundred times as long (104 states on two busy cores: 2.0 s for what takes one thread 0.016 s).

Where several simulations run side by side, each comes back from compiled code every millisecond or so and then waits for the interpreter.
Python gives it to the next thread after five milliseconds only, `quick_turns` after a tenth of that.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

__all__ = ["one_thread", "quick_turns", "run_last"]

_MANY = 1000  # rows from which on several threads pay, on a machine that has idle cores
_TURN_S = 0.0005
_LAST = 9  # lower the priority by so much: a thread of full priority then has eight times as much of a processor that both want
_inside = False


@contextmanager
def one_thread(rows: int = 0) -> Iterator[None]:
    """Within, or in a function that it decorates, linear algebra takes one thread: unless matrices have very many `rows`.

    The number is one for the whole process, and OpenBLAS lets only the main thread change it; elsewhere this does nothing.
    """
    global _inside
    if rows >= _MANY or _inside or threading.current_thread() is not threading.main_thread():
        yield
        return
    _inside = True
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _inside = False


@contextmanager
def quick_turns() -> Iterator[None]:
    """Within, threads of this process have the interpreter for half a millisecond at a time, if others wait for it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _TURN_S))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def run_last() -> None:
    """From now on the thread that calls this runs where other threads leave a processor idle. Linux has priorities of threads; elsewhere
    this does nothing."""
    if sys.platform == "linux":
        with suppress(OSError):
            number = threading.get_native_id()
            os.setpriority(os.PRIO_PROCESS, number, min(os.getpriority(os.PRIO_PROCESS, number) + _LAST, 19))


@cache
def _controller() -> Any:
    """The BLAS libraries of numpy and scipy; to look for them takes ten milliseconds, so it is done once."""
    import scipy.linalg  # noqa: F401 (numpy's comes with it)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
