"""`rota types`: the job types of the plan, and what their jobs need."""

from __future__ import annotations

from rota.cli.live_parts import amounts, connect, printable
from rota.cli.output import print_json, print_table
from rota.cli.parameters import At, Json
from rota.display import duration


def types(*, at: At = None, json: Json = False) -> None:
    """Lists the job types and what a job of each needs: what to give to rota submit --type."""
    with connect(at) as client:
        found = client.status().types
    if json:
        print_json({"types": [{"name": kind.name, "demand": kind.demand} for kind in found]})
        return
    rows = []
    for kind in found:
        seen = kind.mean_size_s if kind.mean_size_s is not None else kind.planned_mean_size_s
        rows.append((printable(kind.name), printable(amounts(kind.demand)), duration(seen)))
    print_table("Job types", ("type", "needs", "runs on average"), rows, left=(0, 1))
