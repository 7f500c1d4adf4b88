"""`events.jsonl`: what happened, one JSON object per line, complete over crashes.

The events are in the database first, in the transaction of what they tell; the file follows. Where a crash or a full disk left it behind,
its last whole line says from where to go on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["EventLog"]


class EventLog:
    """The file, open for appending. `last` is the number of its last event."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.last = 0
        self._repair()

    def append(self, events: Iterable[dict[str, Any]]) -> None:
        """Adds events whose numbers the file does not have yet. Raises OSError where it cannot be written; call again later."""
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
        """Cuts off a torn last line and goes to the end."""
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
        self.last = json.loads(lines[-1])["n"] if lines else 0
