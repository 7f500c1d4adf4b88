"""One thread for the linear algebra of small matrices.

BLAS libraries spread every product over all cores. For matrices of some hundred rows the threads then wait for each other longer than they
compute, and on a busy machine a hundred times as long (104 states on two busy cores: 2.0 s for what takes one thread 0.016 s).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["one_thread"]

_MANY = 1000  # rows from which on several threads pay, on a machine that has idle cores
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


@cache
def _controller() -> Any:
    """The BLAS libraries of numpy and scipy; to look for them takes ten milliseconds, so it is done once."""
    import scipy.linalg  # noqa: F401 (numpy's comes with it)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
