"""What the scheduler says while it runs: lines on standard error, which nobody may be able to take.

The reader of a pipe may have gone, or not read; a disk may be full; a terminal may be held by Ctrl-S. None of these is a reason to fail or
to wait in the middle of a turn: a line that cannot be written at once is dropped, and the next one that can says how many were.
"""

from __future__ import annotations

import logging
import os
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

__all__ = ["LineWriter", "heard", "open_streams", "unfailing"]

_MOST_AT_ONCE = select.PIPE_BUF  # bytes that a pipe takes whole when it says that it can be written
_LOGGERS = ("rota.live", "uvicorn", "asyncio")


class LineWriter:
    """Writes lines with their time to a descriptor, and neither fails nor waits."""

    def __init__(self, descriptor: int = 2) -> None:
        self._descriptor, self._dropped = descriptor, 0

    def __call__(self, text: str) -> None:
        """One line, or several."""
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        missed = f"{now}  {self._dropped} lines before this one could not be written\n" if self._dropped else ""
        data = f"{missed}{now}  {text}\n".encode(errors="backslashreplace")
        try:
            while data:
                if not self._is_writable():
                    raise BlockingIOError
                data = data[os.write(self._descriptor, data[:_MOST_AT_ONCE]) :]
        except OSError:
            self._dropped += 1
        else:
            self._dropped = 0

    def _is_writable(self) -> bool:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        return any(event & select.POLLOUT for _, event in poll.poll(0))


def open_streams() -> None:
    """Opens standard streams that the caller closed on nothing: else the next file to be opened, a database say, gets their number."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free


def unfailing(tell: Callable[[str], None]) -> Callable[[str], None]:
    """The same, but what cannot be said is not said: nothing that the scheduler does depends on it."""

    def told(text: str) -> None:
        with suppress(OSError, ValueError):  # closed, full, or nobody reads
            tell(text)

    return told


@contextmanager
def heard(tell: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, `tell` hears the warnings of the HTTP server and the event loop; else they go straight to standard error."""
    handler = _Handler(tell)
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


class _Handler(logging.Handler):
    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(self.format(record))
