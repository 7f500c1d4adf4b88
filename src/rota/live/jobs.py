"""Jobs inside the daemon: what was requested, the states of a job, and its outcome.

Clients see a job as `messages.Job`. A diagram of the states is in docs/explanation/live-scheduler.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["BEFORE_START", "ENDED", "IN_SERVICE", "NEXT_STATES", "Cancel", "Job", "JobState", "Request", "is_unwanted"]


class JobState(StrEnum):
    """The state of a job."""

    HELD = "held"  # by its user, or too large for this server
    BLOCKED = "blocked"  # it comes after others that have not ended
    WAITING = "waiting"  # in the queue
    STARTING = "starting"  # the policy has started it; its supervisor has not reported yet
    RUNNING = "running"
    SUSPENDED = "suspended"  # stopped by SIGSTOP; it keeps what a stop does not release
    STOPPING = "stopping"  # asked to end, by the policy (it will wait again) or by its user
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


BEFORE_START = frozenset({JobState.HELD, JobState.BLOCKED, JobState.WAITING})
IN_SERVICE = frozenset({JobState.STARTING, JobState.RUNNING})
ENDED = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELLED})

_ENDS = ENDED
# Every change of state that `Lifecycle` makes. The diagram in the docs and the tests of the lifecycle are checked against this table.
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
    GRACEFUL = "cancel"  # SIGTERM, then SIGKILL after the grace period
    NOW = "cancel now"  # SIGKILL


@dataclass(frozen=True)
class Request:
    """What was requested; the jobs of an array share one request."""

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
    asked: list[float] | None = None  # the amounts requested, if no type was named
    token: str = ""  # random: it signs the records of the jobs, so that another job of the same number cannot be mistaken for one of these
    cut: tuple[str, ...] = ()  # fields that are cut to their beginning (see `Database.brief`); not stored


@dataclass(slots=True)
class Job:
    """A job as it is stored. Times are seconds since 1970, `*_boot` on CLOCK_BOOTTIME, which is never set."""

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
    since_boot: float | None = None  # when it went into service; None if it is not in service
    served_s: float = 0.0  # time in service before that
    ended: float | None = None
    response_s: float | None = None
    exit_code: int | None = None
    pid: int | None = None
    cancel: Cancel = Cancel.NO
    reason: str = ""
    share: dict[str, list[int]] = field(default_factory=dict)  # its cores, devices …, by kind; the dict is replaced, never changed


def is_unwanted(job: Job) -> bool:
    """Whether a job was cancelled before it started, and the daemon died before it carried that out."""
    return bool(job.cancel) and job.state in BEFORE_START
