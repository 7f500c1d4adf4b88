"""`rota show`: everything about one job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rota.cli.live_parts import amounts, clock, command_text, connect, ids_text, parse_id, printable
from rota.cli.output import print_json
from rota.cli.parameters import At, JobId, Json
from rota.display import duration

if TYPE_CHECKING:
    from rota.live.messages import Job


def show(id: JobId, /, *, at: At = None, json: Json = False) -> None:
    """Shows everything about one job."""
    number = parse_id(id)
    with connect(at) as client:
        job = client.job(number)
    if json:
        print_json(job.model_dump(mode="json"))
        return
    lines = [(label, text) for label, text in _lines(job) if text]
    width = max(len(label) for label, _ in lines)
    for label, text in lines:
        print(f"{label.ljust(width)}  {text}")


def _lines(job: Job) -> Iterator[tuple[str, str]]:
    """What there is to say, in words."""
    yield "job", str(job.id)
    yield "name", printable(job.name)
    yield "state", job.state
    yield "reason", printable(job.reason)
    yield "command", command_text(job.argv)
    yield "folder", printable(job.cwd)
    yield "type", printable(job.type)
    yield "needs", printable(amounts(job.demand))
    if job.array is not None:
        yield "array", f"index {job.index} of the array that begins with job {job.array}"
    yield "after", ids_text(job.after)
    yield "after any", ids_text(job.after_any)
    yield "submitted", clock(job.submitted)
    yield "started", clock(job.started)
    yield "ended", clock(job.ended)
    if job.run_s is not None:
        yield "ran", duration(job.run_s)
    if job.response_s is not None:
        yield "response", f"{duration(job.response_s)} from submission to end"
    if job.exit_code is not None:
        yield "exit code", str(job.exit_code)
    if job.restarts:
        yield "restarts", str(job.restarts)
    yield "cores", ids_text(job.cores or [])
    yield "GPUs", ids_text(job.gpus or [])
    if job.pid is not None:
        yield "process", str(job.pid)
    yield "output", printable(job.output)
