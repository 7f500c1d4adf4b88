"""`rota explain`: why a job does not run, and when it can be expected to."""

from __future__ import annotations

from rota.cli.live_parts import connect, parse_id, printable
from rota.cli.output import print_json
from rota.cli.parameters import At, JobId, Json


def explain(id: JobId, /, *, at: At = None, json: Json = False) -> None:
    """Says why a job does not run, what it waits for, and when it can be expected to start."""
    number = parse_id(id)
    with connect(at) as client:
        found = client.explain(number)
    if json:
        print_json(found.model_dump(mode="json"))
        return
    print(f"job {found.id}: {found.state}")
    print(printable(found.text))
