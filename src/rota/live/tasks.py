"""Background tasks of the daemon: kept alive while they run, reported when they fail (which ends the daemon), ended together."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

from rota.live.faults import report_fault

__all__ = ["Tasks"]


class Tasks:
    """Coroutines that run in the background. Nothing awaits them, so a failure is written to `log_line`."""

    def __init__(self, log_line: Callable[[str], None]) -> None:
        self._log_line = log_line
        self._running: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs a coroutine in the present event loop."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)  # the loop itself holds tasks only weakly
        task.add_done_callback(self._done)

    async def close(self) -> None:
        """Ends all of them."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log_line(f"an error of the scheduler: {traceback.format_exception_only(error)[-1].strip()}")
            report_fault(error)
