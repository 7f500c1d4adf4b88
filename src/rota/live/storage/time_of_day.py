"""Whether the time of day can be trusted.

Jobs that ended long ago are deleted, by the time of day. If the clock is a month ahead when the scheduler starts, it would delete
everything. So after a jump, since the scheduler last ran or while it runs, the time of day is trusted only once it has lasted for a day.
"""

from __future__ import annotations

import time

from rota.live.clock import boot_now
from rota.live.storage.database import Database

__all__ = ["TimeOfDay"]

_JUMP_S = 86_400.0
_TRUST_S = 86_400.0
_NOTE = "clock"


class TimeOfDay:
    """Watches the time of day of one scheduler. Call `doubt` now and then."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._offset: float | None = None  # of the time of day to the clock that is never set, as last seen
        self._since = 0.0  # when the present doubt began
        self._in_doubt = False

    def doubt(self) -> str | None:
        """None if the time of day can be trusted; otherwise the reason, once, and then ""."""
        wall, boot = time.time(), boot_now()
        expected = self._last_seen() if self._offset is None else boot + self._offset
        jumped = expected is not None and wall - expected > _JUMP_S
        self._offset = wall - boot
        if jumped:
            self._since, self._in_doubt = boot, True
            days = (wall - (expected or 0.0)) / 86_400
            return f"{days:.0f} days have passed by the time of day: if that is right, old jobs are deleted in a day; if not, set the clock"
        if self._in_doubt and boot - self._since < _TRUST_S:
            return ""
        self._in_doubt = False
        self._database.write(notes={_NOTE: wall})
        return None

    def _last_seen(self) -> float | None:
        """The time of day when this scheduler ran last; None if it never did."""
        noted: float | None = self._database.note(_NOTE)
        newest = self._database.jobs(None, None, None, 1, None)
        return noted if noted is not None or not newest else newest[0].ended or newest[0].submitted
