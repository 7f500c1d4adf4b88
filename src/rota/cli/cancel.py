"""`rota cancel`: take a job out of the queue, or end it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from rota.cli.live_parts import At, Json, connect, parse_ids, tell_changed

if TYPE_CHECKING:
    from rota.live.messages import Job


def cancel(*id: str, now: Annotated[bool, Parameter(negative="")] = False, at: At = None, json: Json = False) -> int:
    """Cancels jobs: one that waits never starts, one that runs is asked to end and is killed if it does not.

    Parameters
    ----------
    id
        Numbers of jobs or ranges of them: 12 14-16.
    now
        Kill a running job at once, without time to end by itself.
    at
        The scheduler: unix:/path, http://host:port or its state directory. $ROTA_ADDRESS, or your own, if not given.
    json
        Print one JSON object instead of text.
    """
    ids = parse_ids(id)
    with connect(at) as client:
        return tell_changed(client.change("cancel", ids, now), _words, json)


def _words(job: Job) -> str:
    """A job that runs ends a little later than it is cancelled."""
    return job.state if job.state == "cancelled" else "told to end"
