"""The outcome of an event: jobs to write, lines for the log, actions on the machine, and observations for statistics and the planner."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from rota.events import Event
from rota.live.actions import Action
from rota.live.jobs import Job, Request

__all__ = ["EndedJob", "Observation", "Outcome"]


class Observation(NamedTuple):
    """A job joined the queue, left it unserved, or finished; the planner learns from it. `kind` is the job's type, OWN if it has none."""

    what: Literal["arrived", "withdrawn", "finished"]
    job: Job
    kind: int
    boot: float


class EndedJob(NamedTuple):
    """A job that ended. `known`: it ran, and its run time is known."""

    job: Job
    known: bool


@dataclass
class Outcome:
    """What an event changes, and what is to be done about it."""

    changed: dict[int, Job] = field(default_factory=dict)  # to be written at once
    minor: dict[int, Job] = field(default_factory=dict)  # to be written with the next turn, or soon: after a crash it is found again
    requests: dict[int, Request] = field(default_factory=dict)  # new ones
    events: list[Event] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    withdrawn: list[Action] = field(default_factory=list)  # actions of earlier outcomes that are not to be carried out
    refused: dict[int, str] = field(default_factory=dict)  # jobs that were not changed, and why
    remarks: list[str] = field(default_factory=list)  # lines for the log of the daemon
    ended: list[EndedJob] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)
    decisions_s: list[float] = field(default_factory=list)  # how long each decision of the policy took
    starts: int = 0
    preemptions: int = 0
    swaps: int = 0
