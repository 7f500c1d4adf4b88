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
_lock = threading.Lock()
_inside = 0
_limit: Any = None


@contextmanager
def one_thread(rows: int = 0) -> Iterator[None]:
    """Within, or in a function that it decorates, linear algebra takes one thread: unless matrices have very many `rows`.

    The number of threads is one for the whole process, so it is set by whoever comes first and set back by whoever leaves last.
    """
    global _inside, _limit
    if rows >= _MANY:
        yield
        return
    with _lock:
        if _inside == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limit.restore_original_limits()


@cache
def _controller() -> Any:
    """The BLAS libraries of numpy and scipy; to look for them takes ten milliseconds, so it is done once."""
    import scipy.linalg  # noqa: F401 (numpy's comes with it)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
