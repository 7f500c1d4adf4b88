"""Dependencies between jobs: which jobs wait for which, and what happens when one ends.

All jobs of a request come after the same jobs. So these are looked up once per request, and each end is handled once per request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rota.live.jobs import ENDED, Job, Request

__all__ = ["Dependencies"]

_MOST_DECIDED = 10_000  # requests remembered, so that an array is not looked up job by job


@dataclass
class _Waiting:
    """A request that waits: the jobs that it waits for, and its own jobs that are blocked."""

    left: set[int]
    after: frozenset[int]
    blocked: set[int] = field(default_factory=set)


class Dependencies:
    """What requests still wait for. `find` gives a job, ended or not."""

    def __init__(self, find: Callable[[int], Job | None]) -> None:
        self._find = find
        self._waiting: dict[int, _Waiting] = {}  # by request
        self._awaited: dict[int, set[int]] = {}  # by job: the requests that wait for it
        self._decided: dict[int, str] = {}  # by request; final, because a job that has ended stays so

    def verdict(self, request: Request) -> str | None:
        """Whether jobs of this request may run: "" if so, a reason if they never will, None while they wait for others."""
        if not request.after and not request.after_any:
            return ""
        if request.id not in self._waiting and request.id not in self._decided:
            self._look(request)
        return self._decided.get(request.id)

    def block(self, request: Request, job: int) -> None:
        """Notes a job of a request that waits: `ended` returns it when the request need not wait any more."""
        self._waiting[request.id].blocked.add(job)

    def ended(self, job: Job) -> list[int]:
        """The jobs that need not wait any more after this end: they may run, or never will."""
        found: list[int] = []
        for number in sorted(self._awaited.pop(job.id, ())):
            if (waiting := self._waiting.get(number)) is None:  # an earlier end decided it
                continue
            waiting.left.discard(job.id)
            why = _why_never(job) if job.id in waiting.after else ""
            if why or not waiting.left:
                self._decide(number, why)
                found += sorted(waiting.blocked)
        return found

    def _look(self, request: Request) -> None:
        jobs = [job for id in (*request.after, *request.after_any) if (job := self._find(id)) is not None]
        after = frozenset(request.after)
        why = next((why for job in jobs if job.id in after and (why := _why_never(job))), "")
        left = {job.id for job in jobs if job.state not in ENDED}
        if why or not left:
            self._decide(request.id, why)
            return
        self._waiting[request.id] = _Waiting(left, after)
        for id in left:
            self._awaited.setdefault(id, set()).add(request.id)

    def _decide(self, request: int, why: str) -> None:
        self._waiting.pop(request, None)
        if len(self._decided) >= _MOST_DECIDED:
            self._decided.clear()
        self._decided[request] = why


def _why_never(job: Job) -> str:
    """Why a job that comes after this one never runs; "" if it may."""
    how = {"failed": "failed", "cancelled": "was cancelled"}.get(job.state)
    return f"job {job.id}, which it comes after, {how}" if how else ""
