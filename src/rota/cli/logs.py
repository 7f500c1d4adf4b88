"""`rota logs`: what a job has printed, byte for byte."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

import rota
from rota.cli.live_parts import connect, outcome, parse_id
from rota.cli.output import remark
from rota.cli.parameters import At, JobId

if TYPE_CHECKING:
    from rota.live.http.client import Client

_CHUNK = 1 << 20
_POLL_S = 0.25


def logs(
    id: JobId,
    /,
    *,
    follow: Annotated[bool, Parameter(alias="-f", negative="")] = False,
    tail: int | None = None,
    at: At = None,
) -> None:
    """Prints what a job has printed so far: its standard output and standard error, as they came.

    If a job printed nothing for a known reason (the program was not found, the job was cancelled), standard error says so.

    Parameters
    ----------
    follow
        Go on until the job has ended. Ctrl-C ends the view, not the job.
    tail
        Only this many of the last lines; with --follow, these and what comes after them.
    """
    number = parse_id(id)
    if tail is not None and tail < 0:
        raise rota.BadSpec([rota.Problem("--tail", "must be at least 0", tail)])
    try:
        with connect(at) as client:
            offset = 0
            if tail is not None:
                last, offset = _last_lines(client, number, tail)
                _write(last)
            for data in _output(client, number, offset, follow):
                offset += len(data)
                _write(data)
            if not offset and (job := client.job(number)).reason:  # a program that never ran has no output
                remark(outcome(job))
    except KeyboardInterrupt:  # the way to end a view that follows
        return


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _output(client: Client, number: int, offset: int, follow: bool) -> Iterator[bytes]:
    """The output from an offset to its present end, or to the end of the job. Waits for a scheduler that is being restarted."""
    from rota.live.errors import NotReachable

    answered = False
    while True:
        try:
            data, offset, ended = client.log(number, offset=offset, limit=_CHUNK)
        except NotReachable:
            if not (follow and answered):
                raise
            time.sleep(1.0)
            continue
        answered = True
        if data:
            yield data
        if ended or not (follow or len(data) == _CHUNK):  # less than was asked for: this is the present end
            return
        if not data:
            time.sleep(_POLL_S)


def _last_lines(client: Client, number: int, lines: int) -> tuple[bytes, int]:
    """The last lines of the present output, and the offset after them."""
    kept, offset = b"", 0
    for data in _output(client, number, 0, follow=False):
        offset += len(data)
        kept = _tail(kept + data, lines)
    return kept, offset


def _tail(data: bytes, lines: int) -> bytes:
    """The last lines; one without a line end counts."""
    if not lines:
        return b""
    end = len(data) - data.endswith(b"\n")
    for _ in range(lines):
        end = data.rfind(b"\n", 0, end)
        if end < 0:
            return data
    return data[end + 1 :]
