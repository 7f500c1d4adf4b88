"""`rota hold` and `rota release`: keep a job back, and let it go."""

from __future__ import annotations

from rota.cli.changing import All, Chosen, change
from rota.cli.live_parts import At, Json


def hold(*id: str, name: str | None = None, type: str | None = None, all: All = False, at: At = None, json: Json = False) -> int:
    """Keeps jobs back: they stay in the queue and are not started until released.

    A job that runs cannot be held.

    Parameters
    ----------
    id
        Numbers of jobs or ranges of them: 12 14-16.
    name
        In place of numbers: all waiting or blocked jobs of this name.
    type
        In place of numbers: all waiting or blocked jobs of this type; with --name, those of both.
    all
        In place of numbers: all waiting or blocked jobs.
    at
        The scheduler: unix:/path, http://host:port or its state directory. $ROTA_ADDRESS, or your own, if not given.
    json
        Print one JSON object instead of text.
    """
    return change(at, "hold", Chosen(id, name, type, all), lambda job: job.state, json)


def release(*id: str, name: str | None = None, type: str | None = None, all: All = False, at: At = None, json: Json = False) -> int:
    """Lets held jobs go: they may start from now on.

    Parameters
    ----------
    id
        Numbers of jobs or ranges of them: 12 14-16.
    name
        In place of numbers: all held jobs of this name.
    type
        In place of numbers: all held jobs of this type; with --name, those of both.
    all
        In place of numbers: all held jobs.
    at
        The scheduler: unix:/path, http://host:port or its state directory. $ROTA_ADDRESS, or your own, if not given.
    json
        Print one JSON object instead of text.
    """
    return change(at, "release", Chosen(id, name, type, all), lambda job: job.state, json)
