"""The Python client of a running scheduler.

    with Client() as scheduler:
        job = scheduler.submit(["python", "train.py"], type="train").ids[0]
        print(scheduler.wait(job).exit_code)

It speaks HTTP over the Unix socket of the state directory, or to a TCP address, and raises the exceptions that the scheduler raised.
"""

from __future__ import annotations

import errno
import json
import os
import re
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from traceback import walk_tb
from types import TracebackType
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, TypeAdapter, ValidationError

from rota.errors import BadSpec, Problem, RotaError
from rota.live.errors import DiskFull, LiveError, NoSuchJob, NoSuchPlan, NotAllowed, NotReachable, Refused
from rota.live.http.validation import problems_in
from rota.live.messages import ENDED, Changed, ChangeRequest, Explanation, Job, JobRequest, JobState, PlanVersion, Status, Submitted
from rota.live.paths import socket_path, state_directory

try:
    import httpx
except ImportError:
    raise RotaError("the client of the scheduler needs httpx, which is not installed: pip install 'rota[live]'") from None

__all__ = ["Client"]

_ANSWER_S = 30.0  # timeout of a request that the scheduler answers at once
_CHANGE_S = 0.001  # more time for each of several jobs
_POLL_S = 60.0
_PIECE = 2**20
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 0.5

M = TypeVar("M", bound=BaseModel)

_JOBS, _PLANS = TypeAdapter(list[Job]), TypeAdapter(list[PlanVersion])


class Client:
    """A connection to a scheduler: that of the default state directory, or the one at "unix:/path" or "http://host:port".

    `token` is for a TCP address, by default `$ROTA_TOKEN`. Threads may share a client.
    """

    def __init__(self, address: str | None = None, token: str | None = None) -> None:
        self.address = f"unix:{socket_path(state_directory())}" if address is None else address
        token = token or os.environ.get("ROTA_TOKEN", "")
        if not token.isascii() or not token.isprintable():
            raise BadSpec([Problem("token", "has characters that no token has: check that it is complete and has nothing added")])
        secure = self.address.startswith("https://")  # without TLS no certificate is verified, and loading the certificates takes 20 ms
        if self.address.startswith("unix:/"):
            base, transport = "http://rota", httpx.HTTPTransport(uds=self.address.removeprefix("unix:"), verify=False)
        else:
            base, transport = _checked(self.address), httpx.HTTPTransport(verify=secure)
        # With an explicit transport, no proxy from the environment sees the token.
        headers = {"Authorization": f"Bearer {token}"} if token else None
        self._http = httpx.Client(base_url=base, transport=transport, headers=headers, timeout=_timeout(_ANSWER_S), trust_env=False)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; nothing happens to the scheduler or to jobs."""
        self._http.close()

    # ------------------------------------------------------------------------------------------------------------------- jobs

    def submit(
        self,
        argv: Sequence[str],
        *,
        type: str | None = None,
        demand: Mapping[str, float] | None = None,
        name: str = "",
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        array: tuple[int, int] | None = None,
        after: Iterable[int] = (),
        after_any: Iterable[int] = (),
        hold: bool = False,
        estimate_s: float | None = None,
    ) -> Submitted:
        """Queues a job, or one for each index of `array` (first and last); give `type` or `demand`.

        It runs in `cwd`, by default the current directory, with the environment `env`, by default that of this process (without
        variables that are not UTF-8 text).
        """
        if isinstance(argv, str):
            raise BadSpec([Problem("argv", 'must be a list: ["python", "train.py"]; for a shell: ["sh", "-c", "…"]', argv)])
        try:
            request = JobRequest(
                argv=list(argv),
                type=type,
                demand=None if demand is None else dict(demand),
                name=name,
                cwd=_folder(cwd),
                env=_environment() if env is None else dict(env),
                array=array,
                after=list(after),
                after_any=list(after_any),
                hold=hold,
                estimate_s=estimate_s,
            )
        except ValidationError as error:
            raise BadSpec(problems_in(error.errors(include_url=False))) from None
        body = request.model_dump_json().encode()
        return self._message(Submitted, "POST", "/jobs", content=body, headers={"Content-Type": "application/json"})

    def job(self, id: int) -> Job:
        """The job of this number."""
        return self._message(Job, "GET", f"/jobs/{int(id)}")

    def jobs(
        self,
        state: JobState | Iterable[JobState] | None = None,
        type: str | None = None,
        name: str | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> list[Job]:
        """Jobs, newest first; the next page is `before` the last number of this one."""
        states = [state] if isinstance(state, str) else None if state is None else list(state)
        if states == []:
            return []
        query = {"state": states, "type": type, "name": name, "limit": limit, "before": before}
        params = {key: value for key, value in query.items() if value is not None}
        return _JOBS.validate_json(self._ask("GET", "/jobs", params=params).content)

    def cancel(self, id: int, now: bool = False) -> Job:
        """Takes a job out of the queue, or ends it if it runs: after a grace period, or `now`."""
        return self._message(Job, "POST", f"/jobs/{int(id)}/cancel", params={"now": now})

    def hold(self, id: int) -> Job:
        """Keeps a waiting job from starting."""
        return self._message(Job, "POST", f"/jobs/{int(id)}/hold")

    def release(self, id: int) -> Job:
        """Lets a held job wait for its turn again."""
        return self._message(Job, "POST", f"/jobs/{int(id)}/release")

    def change(self, action: Literal["cancel", "hold", "release"], ids: Iterable[int], now: bool = False) -> Changed:
        """Cancels, holds or releases several jobs together: none of them starts because another one leaves."""
        try:
            request = ChangeRequest(action=action, ids=list(ids), now=now)
        except ValidationError as error:
            raise BadSpec(problems_in(error.errors(include_url=False))) from None
        body, longer = request.model_dump_json().encode(), _timeout(_ANSWER_S + len(request.ids) * _CHANGE_S)
        return self._message(Changed, "POST", "/jobs/change", content=body, headers={"Content-Type": "application/json"}, timeout=longer)

    def wait(self, id: int, timeout_s: float | None = None) -> Job:
        """Waits until the job has ended, or until the timeout: see its `state`."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = _POLL_S if until is None else min(_POLL_S, max(0.0, until - time.monotonic()))
            job = self._message(Job, "GET", f"/jobs/{int(id)}/wait", params={"timeout_s": left}, timeout=_timeout(left + _ANSWER_S))
            if job.state in ENDED or (until is not None and time.monotonic() >= until):
                return job

    def log(self, id: int, offset: int = 0, limit: int = _PIECE) -> tuple[bytes, int, bool]:
        """Output of a job from an offset on; the next offset; and whether the job has ended and the output is complete."""
        answer = self._ask("GET", f"/jobs/{int(id)}/log", params={"offset": offset, "limit": limit})
        return answer.content, int(answer.headers["Rota-Next-Offset"]), answer.headers["Rota-Ended"] == "true"

    def follow(self, id: int) -> Iterator[bytes]:
        """The output of a job from its beginning to its end, in parts as they arrive."""
        offset, pause = 0, _SHORTEST_PAUSE_S
        while True:
            data, offset, ended = self.log(id, offset)
            if data:
                yield data
                pause = _SHORTEST_PAUSE_S
            elif not ended:
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            if ended:
                return

    def explain(self, id: int) -> Explanation:
        """Why a job does not run yet, and when it can be expected to."""
        return self._message(Explanation, "GET", f"/jobs/{int(id)}/explain")

    # -------------------------------------------------------------------------------------------------------------- scheduler

    def status(self) -> Status:
        """The scheduler at this moment."""
        return self._message(Status, "GET", "/status")

    def plans(self) -> list[PlanVersion]:
        """All plans that are or were in use."""
        return _PLANS.validate_json(self._ask("GET", "/plans").content)

    def use_plan(self, number: int) -> PlanVersion:
        """Goes back to an earlier plan."""
        return self._message(PlanVersion, "POST", f"/plans/{int(number)}/use")

    def pin(self, pinned: bool = True) -> Status:
        """Keeps the plan in use, or lets it be replaced again."""
        return self._message(Status, "POST", "/plans/pin", params={"pinned": pinned})

    def events(self, after: int = 0, limit: int = 1000) -> list[dict[str, Any]]:
        """The events after number `after`, oldest first."""
        answer = self._ask("GET", "/events", params={"after": after, "limit": limit})
        # Not splitlines(), which also splits at characters that JSON allows in a line, such as U+2028.
        return [json.loads(line) for line in answer.text.split("\n") if line]

    def metrics(self) -> str:
        """Measurements in the text format of Prometheus."""
        return self._ask("GET", "/metrics").text

    # ------------------------------------------------------------------------------------------------------------------- HTTP

    def _message(self, kind: type[M], method: str, path: str, **request: Any) -> M:
        return kind.model_validate_json(self._ask(method, path, **request).content)

    def _ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **request)
        except httpx.ConnectError as error:
            raise self._not_reachable(error) from None
        except httpx.TimeoutException:
            raise NotReachable(f"the scheduler at {self.address} does not answer") from None
        except httpx.TransportError as error:
            doubt = " before it answered: the request may or may not have been carried out, see rota jobs" if method == "POST" else ""
            raise NotReachable(f"the connection to the scheduler at {self.address} broke{doubt} ({error})") from None
        if answer.is_success:
            return answer
        raise _error(answer.status_code, path, _text(answer))

    def _not_reachable(self, error: httpx.ConnectError) -> NotReachable:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, OSError):
            cause = cause.__cause__ or cause.__context__
        _close_sockets(cause)
        local = self.address.startswith("unix:")
        if not local and "SSL" in type(cause).__name__:
            why = "it does not use TLS, or not as expected; without a proxy in front of it, the address is http://…"
        elif cause is None or cause.errno in (errno.ENOENT, errno.ECONNREFUSED):
            why = "start one with: rota serve plan.json" if local else "is it running, and is the address right?"
        elif local and cause.errno in (errno.EACCES, errno.EPERM):
            return NotReachable(f"permission denied at {self.address}: this scheduler belongs to another user")
        else:
            why = cause.strerror or str(cause)
        return NotReachable(f"no scheduler answers at {self.address}: {why}")


def _close_sockets(error: BaseException | None) -> None:
    """Closes the socket that the HTTP library leaves open if it cannot connect; it is found only in the frames of the error."""
    for frame, _ in walk_tb(error.__traceback__ if error is not None else None):
        for value in frame.f_locals.values():
            if isinstance(value, socket.socket):
                value.close()


def _timeout(seconds: float) -> httpx.Timeout:
    return httpx.Timeout(_ANSWER_S, read=seconds, pool=None)


def _checked(address: str) -> str:
    """An address of a TCP port, if it is one."""
    try:
        parts = urlsplit(address)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return address
    except ValueError:
        pass
    meant = f"; did you mean http://{address}?" if re.fullmatch(r"[^/\s]+:\d+", address) else ""
    raise BadSpec([Problem("address", f'must be "unix:/path/of/rota.sock" or "http://host:port"{meant}', address)])


def _folder(cwd: str | os.PathLike[str] | None) -> str:
    try:
        return os.getcwd() if cwd is None else os.path.abspath(cwd)
    except FileNotFoundError:
        raise BadSpec([Problem("cwd", "the current directory does not exist any more: go to another, or give an absolute path")]) from None


def _environment() -> dict[str, str]:
    """The environment of this process without the token, which the database would keep, and variables that JSON cannot hold."""
    return {key: value for key, value in os.environ.items() if key != "ROTA_TOKEN" and _is_text(key) and _is_text(value)}


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {answer.status_code}: {answer.text[:200]} (is this the address of a scheduler?)"


def _error(status: int, path: str, text: str) -> RotaError:
    """The exception that the scheduler raised, by its status."""
    if status in (400, 413, 415, 422):
        lines = [line.partition(": ") for line in text.splitlines()]
        return BadSpec(Problem(place, rule) if rule else Problem("request", place) for place, _, rule in lines)
    if status == 404:
        return NoSuchPlan(text) if path.startswith("/plans/") else NoSuchJob(text)
    kinds: dict[int, type[LiveError]] = {401: NotAllowed, 403: NotAllowed, 409: Refused, 503: NotReachable, 507: DiskFull}
    return kinds.get(status, LiveError)(text)
