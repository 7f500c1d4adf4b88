"""Actions on the machine: the lifecycle decides them, and the executor carries them out once they are in the database."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

__all__ = ["Action", "Do"]


class Do(StrEnum):
    """What to do with an attempt of a job."""

    START = "start"
    SUSPEND = "suspend"
    RESUME = "resume"
    REQUEUE = "requeue"  # ask it to end; it starts again later
    END = "end"  # ask it to end, because its user cancelled it
    KILL = "kill"
    FORGET = "forget"  # remove its record: its end is known
    RETRY = "retry"  # it could not be started: try again in a while


class Action(NamedTuple):
    """Something to do with one attempt of one job."""

    do: Do
    job: int
    attempt: int
