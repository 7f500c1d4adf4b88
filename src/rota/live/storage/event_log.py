"""`events.jsonl`: the log of events, one JSON object per line, complete across crashes.

Events are written to the database first, in one transaction with the changes that they describe; the file follows. If a crash or a full
disk left the file behind, its last complete line says where to continue.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rota.live.errors import Damaged

__all__ = ["EventLog"]


class EventLog:
    """The file, open for appending. `last` is the number of its last event."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self.last = 0
        try:
            self._repair()
        except BaseException:
            os.close(self._file)
            raise

    def append(self, events: Iterable[dict[str, Any]]) -> None:
        """Adds events whose numbers the file does not have yet. Raises OSError if it cannot be written; call again later."""
        new = [event for event in events if event["n"] > self.last]
        if not new:
            return
        text = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in new).encode()
        try:
            while text:
                text = text[os.write(self._file, text) :]
        except OSError:
            self._repair()
            raise
        self.last = new[-1]["n"]

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)

    def _repair(self) -> None:
        """Removes an incomplete last line and goes to the end."""
        end = os.lseek(self._file, 0, os.SEEK_END)
        tail, start = b"", end
        while start > 0 and tail.count(b"\n") < 2:
            step = min(65536, start)
            start -= step
            tail = os.pread(self._file, step, start) + tail
        whole = tail.rfind(b"\n") + 1
        if start + whole < end:
            os.ftruncate(self._file, start + whole)
        os.lseek(self._file, 0, os.SEEK_END)
        lines = tail[:whole].splitlines()
        self.last = self._number_of(lines[-1]) if lines else 0

    def _number_of(self, line: bytes) -> int:
        try:
            event = json.loads(line)
            if isinstance(event["n"], int):
                return int(event["n"])
        except (ValueError, KeyError, TypeError):
            pass
        raise Damaged(
            f"the last line of {self._path} is not an event: {line[:80].decode(errors='replace')!r}; remove the lines at its end "
            "that are not events, or move the file away (the database has its newest events)"
        )
