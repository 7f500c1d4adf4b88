"""What can happen to jobs: the events that `Lifecycle.handle` takes, each with all that it needs to know."""

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
]


class At(NamedTuple):
    """A moment: seconds since 1970, and on CLOCK_BOOTTIME, which is never set."""

    wall: float
    boot: float


class Change(StrEnum):
    """What a user can do to jobs."""

    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"


@dataclass(frozen=True)
class NewJobs:
    """A request was accepted (see `Lifecycle.accept`) and is written down."""

    request: Request
    jobs: Sequence[Job]
    remark: str = ""


@dataclass(frozen=True)
class ChangeJobs:
    """Jobs are cancelled, held or released; that this is wanted is written down already.

    `together`: the policy is asked once, when all have left that are to, so that none starts in the place of one that goes before it. (A
    job that came after one of them may be let in meanwhile; so the last of the queue leave first, and those that run are asked last.)
    """

    change: Change
    ids: Sequence[int]
    now: bool = False  # for cancel: SIGKILL at once
    together: bool = False


@dataclass(frozen=True)
class TimerRang:
    """The time has come at which the policy wants to be asked again."""


@dataclass(frozen=True)
class AttemptRunning:
    """An attempt has its supervisor, so from now on it is never one that was not started."""

    job: int
    attempt: int
    supervisor: int


@dataclass(frozen=True)
class AttemptOver:
    """An attempt is over, and nothing of it is left on the machine."""

    job: int
    attempt: int
    seen: Attempt


@dataclass(frozen=True)
class RetryStart:
    """A while has passed since an attempt could not be started."""

    job: int
    attempt: int


@dataclass(frozen=True)
class HandedOver:
    """Actions are written down and on their way: from now on they cannot be withdrawn."""

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
    """What the machine has of a job of an earlier daemon: its attempt, None if it has none, and its state for the scheduler.

    `since_known`: since when it is in service, as the earlier daemon wrote it, still holds.
    """

    seen: Attempt | None
    state: JobState
    since_known: bool = True


@dataclass(frozen=True)
class Recovered:
    """The jobs of an earlier daemon, and what was found of those that were in its queue.

    `policy_state` is what the policy remembered, None if that is of another plan or another boot.
    """

    jobs: Sequence[Job]
    found: Mapping[int, Found]
    policy_state: dict[str, Any] | None


Stimulus = NewJobs | ChangeJobs | TimerRang | AttemptRunning | AttemptOver | RetryStart | HandedOver | PlanInstalled | Recovered
