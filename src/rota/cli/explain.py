"""`rota explain`: why a job does not run, and when it can be expected to."""

from __future__ import annotations

from rota.cli.live_parts import At, Json, connect, parse_id, printable
from rota.cli.output import print_json


def explain(id: str, /, *, at: At = None, json: Json = False) -> None:
    """Says why a job does not run, what it waits for, and when it can be expected to start.

    Parameters
    ----------
    id
        The number of the job.
    at
        The scheduler: unix:/path, http://host:port or its state directory. $ROTA_ADDRESS, or your own, if not given.
    json
        Print one JSON object instead of text.
    """
    number = parse_id(id)
    with connect(at) as client:
        found = client.explain(number)
    if json:
        print_json(found.model_dump(mode="json"))
        return
    print(f"job {found.id}: {found.state}")
    print(printable(found.text))
