"""What can happen to jobs: the events that `Lifecycle.handle` takes, each with all the data that it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.live.actions import Action
from rota.live.jobs import Job, JobState, Request
from rota.live.processes.records import Attempt
from rota.live.resources.allocation import Allocation
from rota.policy import PlanFile

__all__ = [
    "At",
    "AttemptOver",
    "AttemptRunning",
    "Change",
    "ChangeJobs",
    "Found",
    "HandedOver",
    "NewJobs",
    "PlanInstalled",
    "Recovered",
    "RetryStart",
    "Stimulus",
    "TimerRang",
    "was_stopped",
]


class At(NamedTuple):
    """A point in time: in seconds since 1970, and on CLOCK_BOOTTIME, which is never set."""

    wall: float
    boot: float


class Change(StrEnum):
    """What a user can do to jobs."""

    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"


@dataclass(frozen=True)
class NewJobs:
    """A request was accepted (see `Lifecycle.accept`) and is in the database."""

    request: Request
    jobs: Sequence[Job]
    remark: str = ""


@dataclass(frozen=True)
class ChangeJobs:
    """Jobs are cancelled, held or released; this request is in the database already.

    `together`: the policy is asked once, after all these jobs have left, so that none of them starts in the place of another. (A job that
    depends on one of them may join the queue meanwhile. So the last jobs of the queue leave first, and running jobs are asked to end last.)
    """

    change: Change
    ids: Sequence[int]
    now: bool = False  # for cancel: SIGKILL at once
    together: bool = False


@dataclass(frozen=True)
class TimerRang:
    """The time at which the policy wants to be asked again."""


@dataclass(frozen=True)
class AttemptRunning:
    """An attempt has its supervisor: from now on it counts as started."""

    job: int
    attempt: int
    supervisor: int


@dataclass(frozen=True)
class AttemptOver:
    """An attempt is over, and none of its processes is left on the machine."""

    job: int
    attempt: int
    seen: Attempt


@dataclass(frozen=True)
class RetryStart:
    """An attempt that could not be started is to be tried again."""

    job: int
    attempt: int


@dataclass(frozen=True)
class HandedOver:
    """Actions are in the database and being carried out: from now on they cannot be withdrawn."""

    actions: Sequence[Action]


@dataclass(frozen=True)
class PlanInstalled:
    """Another plan for the same server, with its settings."""

    plan: PlanFile
    number: int
    random: NDArray[np.uint64]
    reason: str
    allocation: Allocation


class Found(NamedTuple):
    """What was found of an earlier daemon's job: its attempt (None if it has none), and its state for the scheduler.

    `since_known`: the stored time since when it is in service is still valid.
    """

    seen: Attempt | None
    state: JobState
    since_known: bool = True


@dataclass(frozen=True)
class Recovered:
    """The jobs of an earlier daemon, and what was found of those that were in its queue.

    `policy_state` is the saved state of the policy; None if it belongs to another plan or another boot.
    """

    jobs: Sequence[Job]
    found: Mapping[int, Found]
    policy_state: dict[str, Any] | None


Stimulus = NewJobs | ChangeJobs | TimerRang | AttemptRunning | AttemptOver | RetryStart | HandedOver | PlanInstalled | Recovered


def was_stopped(job: Job, seen: Attempt) -> bool:
    """Whether another attempt follows one that is over. An attempt that ended before it was asked to stop is the last one."""
    return seen.state == "ended" and seen.asked_to_end and not job.cancel and (job.state == JobState.STOPPING or seen.pid is None)
