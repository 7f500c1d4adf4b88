"""Internal errors: the daemon ends, and the next one recovers.

After an exception in the middle of a change, memory may not agree with the machine: a job may be marked as running that was never started.
Recovery handles exactly this case, as it does after `kill -9`. So the daemon logs the error and ends at once, without writing anything
more. If the error comes back, a service manager such as systemd would restart the daemon again and again. So from the second error in a row
on, the next daemon waits before it starts: one second at first, then twice as long each time. `faults.json` in the state directory counts
the errors.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rota import __version__

__all__ = ["Faults", "report_fault"]

_CALM_S = 600.0  # a fault after running for this long is not in a row with those before
_LONGEST_S = 300.0
_NOT_OURS = (
    "rota.live.http.api",
    "rota.live.http.connections",
    "rota.live.http.auth",
    "rota.live.http.server",
)  # an error in these modules concerns one connection only


def report_fault(error: BaseException) -> None:
    """Reports an internal error that left a change half done. Where no daemon runs (in tests), the loop logs it."""
    asyncio.get_running_loop().call_exception_handler({"message": "an internal error of the scheduler", "exception": error, "fault": True})


class Faults:
    """The faults of one state directory. `end` ends the process."""

    def __init__(self, directory: Path, log_line: Callable[[str], None], end: Callable[[int], Any] = os._exit) -> None:
        self._path, self._log_line, self._end = directory / "faults.json", log_line, end
        self._began = time.monotonic()

    def count(self) -> int:
        """Faults in a row; those of another version of Rota do not count."""
        try:
            kept = json.loads(self._path.read_bytes())
            return int(kept["count"]) if kept["version"] == __version__ else 0
        except (OSError, ValueError, KeyError, TypeError):
            return 0

    def delay_s(self) -> float:
        """How long to wait before starting: 0 after one fault, then 1, 2, 4, … seconds."""
        count = self.count()
        return 0.0 if count < 2 else min(2.0 ** min(count - 2, 20), _LONGEST_S)

    def clear(self) -> None:
        """Clears the count: the daemon ended normally."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def happened(self, error: BaseException) -> None:
        """Logs the error, counts it, and ends the process."""
        count = 1 if time.monotonic() - self._began > _CALM_S else self.count() + 1
        what = traceback.format_exception_only(error)[-1].strip()
        with contextlib.suppress(Exception):  # nothing may prevent the end
            self._log_line("".join(traceback.format_exception(error)).rstrip())
            jobs = "Jobs go on, and the next 'rota serve' finds them; please report this"
            self._log_line(f"internal error, the scheduler ends: {what}. {jobs}")
        with contextlib.suppress(OSError):
            draft = self._path.with_suffix(".draft")
            draft.write_text(json.dumps({"count": count, "version": __version__, "time": time.time(), "error": what}))
            draft.replace(self._path)
        self._end(1)

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """The exception handler of the daemon's loop: a failed callback or task of the scheduler ends it, a failed connection does not."""
        error = context.get("exception")
        if error is not None and (context.get("fault") or ("handle" in context and _is_ours(error))):
            self.happened(error)
        else:
            loop.default_exception_handler(context)


def _is_ours(error: BaseException) -> bool:
    """Whether a callback of the scheduler raised the error: its first frame outside asyncio is in this package."""
    modules = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__))
    first = next((name for name in modules if name.partition(".")[0] != "asyncio"), "")
    return first.startswith("rota.live.") and first not in _NOT_OURS
