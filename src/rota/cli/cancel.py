"""`rota cancel`: take a job out of the queue, or end it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.cli.changing import Chosen, change
from rota.cli.parameters import At, Flag, JobIds, Json

if TYPE_CHECKING:
    from rota.live.messages import Job


def cancel(
    *id: JobIds,
    name: str | None = None,
    type: str | None = None,
    all: Flag = False,
    now: Flag = False,
    at: At = None,
    json: Json = False,
) -> int:
    """Cancels jobs: one that waits never starts, one that runs is asked to end and is killed if it does not.

    Parameters
    ----------
    name
        In place of numbers: all jobs of this name that have not ended.
    type
        In place of numbers: all jobs of this type that have not ended; with --name, those of both.
    all
        In place of numbers: all jobs that have not ended.
    now
        Kill a running job at once, without time to end by itself.
    """
    return change(at, "cancel", Chosen(id, name, type, all), _words, json, now=now)


def _words(job: Job) -> str:
    """A job that runs ends a little later than it is cancelled."""
    return job.state if job.state == "cancelled" else "asked to end"
