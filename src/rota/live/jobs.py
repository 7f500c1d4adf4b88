"""Jobs inside the daemon: what was asked for, what became of it, and the states in between.

The other side of the wire has its own view of a job, `messages.Job`. A diagram of the states is in docs/explanation/live-scheduler.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["BEFORE_START", "ENDED", "IN_SERVICE", "NEXT_STATES", "Cancel", "Job", "JobState", "Request"]


class JobState(StrEnum):
    """Where a job is on its way."""

    HELD = "held"  # by its user, or too large for this server
    BLOCKED = "blocked"  # it comes after others that have not ended
    WAITING = "waiting"  # in the queue
    STARTING = "starting"  # the policy has started it; its supervisor has not reported yet
    RUNNING = "running"
    SUSPENDED = "suspended"  # stopped by SIGSTOP, with what a stop does not release
    STOPPING = "stopping"  # it was asked to end, by the policy (it waits again then) or by its user
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


BEFORE_START = frozenset({JobState.HELD, JobState.BLOCKED, JobState.WAITING})
IN_SERVICE = frozenset({JobState.STARTING, JobState.RUNNING})
ENDED = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELLED})

_ENDS = ENDED
# Every step that `Lifecycle` takes. The diagram in the documentation and the tests of the lifecycle are checked against this table.
NEXT_STATES: dict[JobState, frozenset[JobState]] = {
    JobState.HELD: frozenset({JobState.BLOCKED, JobState.WAITING, JobState.CANCELLED}),
    JobState.BLOCKED: frozenset({JobState.HELD, JobState.WAITING, JobState.CANCELLED}),
    JobState.WAITING: frozenset({JobState.HELD, JobState.STARTING, JobState.CANCELLED}),
    JobState.STARTING: frozenset({JobState.RUNNING, JobState.WAITING, JobState.SUSPENDED, JobState.STOPPING, *_ENDS}),
    JobState.RUNNING: frozenset({JobState.WAITING, JobState.SUSPENDED, JobState.STOPPING, *_ENDS}),
    JobState.SUSPENDED: frozenset({JobState.RUNNING, JobState.WAITING, *_ENDS}),
    JobState.STOPPING: frozenset({JobState.WAITING, *_ENDS}),
    **{end: frozenset() for end in _ENDS},
}


class Cancel(StrEnum):
    """Whether a job is to end, and how."""

    NO = ""
    GRACEFUL = "cancel"  # SIGTERM, and SIGKILL after its grace
    NOW = "cancel now"  # SIGKILL


@dataclass(frozen=True)
class Request:
    """What was asked for; the jobs of an array share one."""

    id: int
    name: str
    argv: list[str]
    cwd: str
    env: dict[str, str]
    type: str
    demand: list[float]  # in the order of the server's resources
    estimate_s: float | None
    after: list[int]
    after_any: list[int]
    asked: list[float] | None = None  # the amounts asked for, where no type was named
    token: str = ""  # random: it signs the records of its jobs, so that none is taken for that of another job of the same number
    cut: tuple[str, ...] = ()  # fields of which only the beginning is here (see `Database.brief`); not kept


@dataclass(slots=True)
class Job:
    """A job as it is kept. Times are seconds since 1970, `*_boot` on CLOCK_BOOTTIME, which is never set."""

    id: int
    request: int
    name: str
    type: str
    state: JobState
    submitted: float
    submitted_boot: float
    boot: str  # which boot of the machine the `*_boot` times belong to
    array: int | None = None
    idx: int | None = None
    sequence: int | None = None  # its place in the queue, once it is eligible
    attempt: int = 0
    restarts: int = 0
    started: float | None = None
    since_boot: float | None = None  # in service since, if it is
    served_s: float = 0.0  # in service before that
    ended: float | None = None
    response_s: float | None = None
    exit_code: int | None = None
    pid: int | None = None
    cancel: Cancel = Cancel.NO
    reason: str = ""
    share: dict[str, list[int]] = field(default_factory=dict)  # the cores, devices … that it has, by kind; replaced, never changed
