"""`rota wait`: until jobs have ended, with their exit code."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rota.arguments import parse_duration
from rota.cli.live_parts import connect, exit_code_of, ids_text, outcome, parse_ids
from rota.cli.output import print_json, remark
from rota.cli.parameters import At, JobIds, Json

if TYPE_CHECKING:
    from rota.live.http.client import Client
    from rota.live.messages import Job

_TIMED_OUT = 124
_RETRY_S = 1.0


def wait(*id: JobIds, timeout: str | None = None, at: At = None, json: Json = False) -> int:
    """Waits until jobs have ended, and ends with the exit code of the job.

    Of several jobs, with the first exit code that is not 0. 128 + n if signal n ended the job, 125 if it was cancelled, 124 after the
    timeout.

    Parameters
    ----------
    timeout
        Wait no longer than this: 90 (seconds), 5m, 1h30m.
    """
    ids = parse_ids(id)
    timeout_s = None if timeout is None else parse_duration(timeout, "--timeout")
    with connect(at) as client:
        return wait_for(client, ids, timeout_s, json)


def wait_for(client: Client, ids: Sequence[int], timeout_s: float | None = None, json: bool = False) -> int:
    """Waits for all of them, says how each ended, and returns the exit code."""
    from rota.live.messages import ENDED

    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    client.job(max(ids))  # numbers go up by one: a job that does not exist is reported now and not after hours
    code, seen = 0, []
    try:
        for number in ids:
            job = _ended(client, number, deadline)
            seen.append(job)
            if job.state not in ENDED:
                remark(f"rota: not ended after the timeout: {outcome(job)}")
                code = _TIMED_OUT
                break
            remark(outcome(job))
            code = code or exit_code_of(job)
    except KeyboardInterrupt:
        remark(f"the jobs keep running; to end them: rota cancel {ids_text(ids).replace(', ', ',')}")
        raise
    if json:
        print_json({"jobs": [job.model_dump(mode="json") for job in seen], "exit_code": code})
    return code


def _ended(client: Client, number: int, deadline: float | None) -> Job:
    """The job when it has ended or time is up. Waits also for a scheduler that is being restarted, as it keeps its jobs."""
    from rota.live.errors import NotReachable

    reported = False
    while True:
        left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
        try:
            return client.wait(number, timeout_s=left)
        except NotReachable:
            if left is not None and left <= _RETRY_S:
                raise
            if not reported:
                remark("the scheduler does not answer; waiting for it to come back")
                reported = True
            time.sleep(_RETRY_S)
