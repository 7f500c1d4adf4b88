"""The log of the scheduler: lines on standard error, where a write may fail or block.

The reader of a pipe may have ended, or not read; a disk may be full; a terminal may be paused by Ctrl-S. The scheduler must neither fail
nor wait for that in the middle of a turn. So a line that cannot be written at once is dropped, and the next one says how many were.
"""

from __future__ import annotations

import logging
import os
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

__all__ = ["LineWriter", "log_warnings", "open_streams", "unfailing"]

_MOST_AT_ONCE = select.PIPE_BUF  # bytes that a pipe takes whole when select() says that it can be written
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
    """Opens closed standard streams on /dev/null: otherwise the next file to be opened, such as a database, would get their number."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number


def unfailing(log_line: Callable[[str], None]) -> Callable[[str], None]:
    """The same function without its errors: a line that cannot be written is dropped, because nothing else depends on it."""

    def log_or_drop(text: str) -> None:
        with suppress(OSError, ValueError):  # closed, full, or without a reader
            log_line(text)

    return log_or_drop


@contextmanager
def log_warnings(log_line: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, warnings of the HTTP server and the event loop go to `log_line` instead of straight to standard error."""
    handler = _Handler(log_line)
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


class _Handler(logging.Handler):
    def __init__(self, log_line: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._log_line = log_line

    def emit(self, record: logging.LogRecord) -> None:
        self._log_line(self.format(record))
