"""`rota hold` and `rota release`: keep a job back, and let it go."""

from __future__ import annotations

from rota.cli.live_parts import At, Json, connect, parse_ids, tell_changed


def hold(*id: str, at: At = None, json: Json = False) -> int:
    """Keeps jobs back: they stay in the queue and are not started until released.

    A job that runs cannot be held.

    Parameters
    ----------
    id
        Numbers of jobs or ranges of them: 12 14-16.
    at
        The scheduler: unix:/path, http://host:port or its state directory. $ROTA_ADDRESS, or your own, if not given.
    json
        Print one JSON object instead of text.
    """
    ids = parse_ids(id)
    with connect(at) as client:
        return tell_changed(client.change("hold", ids), lambda job: job.state, json)


def release(*id: str, at: At = None, json: Json = False) -> int:
    """Lets held jobs go: they may start from now on.

    Parameters
    ----------
    id
        Numbers of jobs or ranges of them: 12 14-16.
    at
        The scheduler: unix:/path, http://host:port or its state directory. $ROTA_ADDRESS, or your own, if not given.
    json
        Print one JSON object instead of text.
    """
    ids = parse_ids(id)
    with connect(at) as client:
        return tell_changed(client.change("release", ids), lambda job: job.state, json)
