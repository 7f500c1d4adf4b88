"""Internal errors: the daemon ends, and the next one finds everything again.

An exception in the midst of a change leaves memory and machine apart: a job is marked as running that nobody started. Recovery is good at
just that, for it is what it does after `kill -9`. So the daemon says what happened and ends at once, without writing anything more. A fault
that comes back would make a supervisor such as systemd start it again and again: so the second one in a row makes the next daemon wait, a
second at first and twice as long each time. `faults.json` in the state directory counts them.
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

_CALM_S = 600.0  # who served for so long is not in a row with those before
_LONGEST_S = 300.0
_NOT_OURS = (
    "rota.live.http.api",
    "rota.live.http.connections",
    "rota.live.http.auth",
    "rota.live.http.server",
)  # what goes wrong there concerns one connection


def report_fault(error: BaseException) -> None:
    """An internal error that changed something by half. Where no daemon runs (in tests), the loop logs it."""
    asyncio.get_running_loop().call_exception_handler({"message": "an internal error of the scheduler", "exception": error, "fault": True})


class Faults:
    """The faults of one state directory. `end` ends the process."""

    def __init__(self, directory: Path, tell: Callable[[str], None], end: Callable[[int], Any] = os._exit) -> None:
        self._path, self._tell, self._end = directory / "faults.json", tell, end
        self._began = time.monotonic()

    def count(self) -> int:
        """Faults in a row; those of another version of Rota do not count."""
        try:
            kept = json.loads(self._path.read_bytes())
            return int(kept["count"]) if kept["version"] == __version__ else 0
        except (OSError, ValueError, KeyError, TypeError):
            return 0

    def delay_s(self) -> float:
        """How long to wait before starting: not after one fault, then 1, 2, 4, … seconds."""
        count = self.count()
        return 0.0 if count < 2 else min(2.0 ** min(count - 2, 20), _LONGEST_S)

    def clear(self) -> None:
        """The daemon ends in good order."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def happened(self, error: BaseException) -> None:
        """Says what happened, notes it, and ends the process."""
        count = 1 if time.monotonic() - self._began > _CALM_S else self.count() + 1
        what = traceback.format_exception_only(error)[-1].strip()
        with contextlib.suppress(Exception):  # nothing may keep it from ending
            self._tell("".join(traceback.format_exception(error)).rstrip())
            self._tell(f"internal error, the scheduler ends: {what}. Jobs go on, and the next 'rota serve' finds them; please report this")
        with contextlib.suppress(OSError):
            draft = self._path.with_suffix(".draft")
            draft.write_text(json.dumps({"count": count, "version": __version__, "time": time.time(), "error": what}))
            draft.replace(self._path)
        self._end(1)

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """The exception handler of the daemon's loop: a callback or a task of ours that failed ends it, a connection does not."""
        error = context.get("exception")
        if error is not None and (context.get("fault") or ("handle" in context and _is_ours(error))):
            self.happened(error)
        else:
            loop.default_exception_handler(context)


def _is_ours(error: BaseException) -> bool:
    """Whether a callback of the scheduler raised it: its first frame outside asyncio is in this package."""
    modules = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__))
    first = next((name for name in modules if name.partition(".")[0] != "asyncio"), "")
    return first.startswith("rota.live.") and first not in _NOT_OURS
