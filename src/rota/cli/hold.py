"""`rota hold` and `rota release`: hold jobs, and release them."""

from __future__ import annotations

from rota.cli.changing import Chosen, change
from rota.cli.parameters import At, Flag, JobIds, Json


def hold(*id: JobIds, name: str | None = None, type: str | None = None, all: Flag = False, at: At = None, json: Json = False) -> int:
    """Holds jobs: they stay in the queue and are not started until released.

    A job that runs cannot be held.

    Parameters
    ----------
    name
        In place of numbers: all waiting or blocked jobs of this name.
    type
        In place of numbers: all waiting or blocked jobs of this type; with --name, those of both.
    all
        In place of numbers: all waiting or blocked jobs.
    """
    return change(at, "hold", Chosen(id, name, type, all), lambda job: job.state, json)


def release(*id: JobIds, name: str | None = None, type: str | None = None, all: Flag = False, at: At = None, json: Json = False) -> int:
    """Releases held jobs: they may start from now on.

    Parameters
    ----------
    name
        In place of numbers: all held jobs of this name.
    type
        In place of numbers: all held jobs of this type; with --name, those of both.
    all
        In place of numbers: all held jobs.
    """
    return change(at, "release", Chosen(id, name, type, all), lambda job: job.state, json)
