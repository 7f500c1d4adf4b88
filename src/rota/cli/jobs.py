"""`rota jobs`: what waits, runs and has ended."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import rota
from rota.cli.live_parts import clock, command_text, connect, printable, read_jobs, shorten
from rota.cli.output import print_json, print_table, remark
from rota.cli.parameters import At, Flag, Json
from rota.display import duration

if TYPE_CHECKING:
    from rota.live.messages import Job, JobState


def jobs(
    *,
    state: str | None = None,
    type: str | None = None,
    name: str | None = None,
    limit: int = 50,
    all: Flag = False,
    at: At = None,
    json: Json = False,
) -> None:
    """Lists jobs, the newest first.

    Parameters
    ----------
    state
        Only jobs in these states, with commas between them: held, blocked, waiting, starting, running, suspended, stopping, done, failed,
        cancelled.
    type
        Only jobs of this type.
    name
        Only jobs of this name.
    limit
        How many.
    all
        All of them, however many.
    """
    states = None if state is None else _states(state)
    if limit < 1:
        raise rota.BadSpec([rota.Problem("--limit", "must be at least 1", limit)])
    with connect(at) as client:
        found = read_jobs(client, states, type, name, None if all else limit)
    if json:
        print_json({"jobs": [job.model_dump(mode="json") for job in found]})
        return
    _print(found)
    if not all and len(found) == limit:
        remark(f"the newest {limit:,}; --limit and --all show more")


def _states(text: str) -> list[JobState]:
    from rota.live.messages import STATES

    words = [word.strip() for word in text.split(",")]
    if wrong := [word for word in words if word not in STATES]:
        raise rota.BadSpec([rota.Problem("--state", f"must be one of {', '.join(STATES)}", word) for word in wrong])
    return [state for state in STATES if state in words]


def _print(found: list[Job]) -> None:
    rows = []
    for job in found:
        ran = "" if job.run_s is None else duration(job.run_s)
        index = "" if job.index is None else f"[{job.index}] "
        title = f"{printable(job.name)}: " if job.name else ""
        rows.append((str(job.id), printable(job.type), job.state, clock(job.submitted), ran, f"{index}{title}{command_text(job.argv)}"))
    head = ("job", "type", "state", "submitted", "ran", "command")
    if sys.stdout.isatty():  # one line each; a file or another program gets the whole command
        taken = sum(max(len(row[j]) for row in [head, *rows]) for j in range(5)) + 2 * 6
        rows = [(*row[:5], shorten(row[5], max(shutil.get_terminal_size().columns - taken, 20))) for row in rows]
    print_table("Jobs", head, rows, left=(1, 2, 3, 5)) if rows else print("no jobs")
