"""The HTTP interface of the scheduler: each address is one method of the service; errors are `{"error": text}` with a status that fits.

Answers are messages of `rota.live.messages` and are written without validation: `response_model` only describes them in /openapi.json. The
body of a submission is read and checked here, not by FastAPI, so that its size is limited while it is read and JSON is parsed once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from rota import __version__
from rota.errors import BadSpec, RotaError
from rota.live.errors import LiveError, NotReachable
from rota.live.http.tokens import Tokens
from rota.live.http.validation import problems_in
from rota.live.messages import Changed, ChangeRequest, Explanation, Id, Job, JobRequest, JobState, Name, PlanVersion, Status, Submitted

try:
    from fastapi import FastAPI, HTTPException, Path, Query, Request, Response
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import StreamingResponse
    from starlette.exceptions import HTTPException as StarletteHTTPException
    from starlette.requests import ClientDisconnect
except ImportError:
    raise RotaError("the live scheduler needs FastAPI and uvicorn, which are not installed: pip install 'rota[live]'") from None

from rota.live.http.auth import Guard, failure
from rota.live.http.openapi import Answers, complete_openapi

__all__ = ["MOST_BODY", "Scheduler", "make_app"]

MOST_BODY = 8 * 2**20  # bytes
_MOST_ROWS = 10_000
_PAGE = 10  # jobs read at a time: each may have a command line of megabytes, and other requests wait meanwhile
_LONGEST_POLL_S = 300.0
_LARGEST = 2**62  # as in Id: the integers of SQLite have 64 bits

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

_JOBS, _PLANS = TypeAdapter(list[Job]), TypeAdapter(list[PlanVersion])


class Scheduler(Protocol):
    """The methods of the service that the interface calls."""

    def submit(self, request: JobRequest) -> Submitted: ...  # noqa: D102
    def job(self, id: int) -> Job: ...  # noqa: D102
    def jobs(self, state: list[JobState] | None, type: str | None, name: str | None, limit: int, before: int | None) -> list[Job]: ...  # noqa: D102
    def cancel(self, id: int, now: bool = False) -> Job: ...  # noqa: D102
    def hold(self, id: int) -> Job: ...  # noqa: D102
    def release(self, id: int) -> Job: ...  # noqa: D102
    def change(self, request: ChangeRequest) -> Changed: ...  # noqa: D102
    async def wait(self, id: int, timeout_s: float) -> Job: ...  # noqa: D102
    def log(self, id: int, offset: int, limit: int) -> tuple[bytes, int, bool]: ...  # noqa: D102
    async def explain(self, id: int) -> Explanation: ...  # noqa: D102
    def status(self) -> Status: ...  # noqa: D102
    def plans(self) -> list[PlanVersion]: ...  # noqa: D102
    def use_plan(self, number: int) -> PlanVersion: ...  # noqa: D102
    def pin(self, pinned: bool) -> Status: ...  # noqa: D102
    def events(self, after: int, limit: int) -> list[dict[str, Any]]: ...  # noqa: D102
    def metrics(self) -> str: ...  # noqa: D102


class Health(BaseModel):
    """The answer of a scheduler that is alive."""

    ok: bool
    version: str


# ----------------------------------------------------------------------------------------------- what may stand behind the "?"


class _Query(BaseModel):
    model_config = ConfigDict(extra="forbid")  # a misspelt filter must not list everything


class _Jobs(_Query):
    state: list[JobState] | None = Field(None, description="only jobs in these states (repeat it for several)")
    type: Name | None = Field(None, description="only jobs that run as this type")
    name: Name | None = Field(None, description="only jobs of this name")
    limit: int = Field(100, ge=1, le=_MOST_ROWS)
    before: Id | None = Field(None, description="only jobs with smaller numbers, for the next page")


class _Cancel(_Query):
    now: bool = Field(False, description="kill it at once, without a grace period")


class _Wait(_Query):
    timeout_s: float = Field(30.0, ge=0, le=_LONGEST_POLL_S, allow_inf_nan=False)


class _Log(_Query):
    offset: int = Field(0, ge=0, le=_LARGEST, description="first byte")
    limit: int = Field(2**20, ge=1, le=MOST_BODY, description="at most this many bytes")


class _Pin(_Query):
    pinned: bool = Field(description="whether the plan in use stays, whatever is measured")


class _Events(_Query):
    after: int = Field(0, ge=0, le=_LARGEST, description="only events with larger numbers")
    limit: int = Field(1000, ge=1, le=_MOST_ROWS)


def _digits(text: str) -> str:
    if not (text.isascii() and text.isdecimal()):  # pydantic would also take "1_0" and " 1"
        raise ValueError("must be a whole number")
    return text


_JobId = Annotated[Id, BeforeValidator(_digits), Path(description="number of the job")]
_PlanNumber = Annotated[Id, BeforeValidator(_digits), Path(description="number of the plan")]

# ------------------------------------------------------------------------------------------------------------ the application


def make_app(service: Scheduler, *, tokens: Tokens | None = None, trusted: bool = False, most_body: int = MOST_BODY) -> FastAPI:
    """The interface to `service`, for one listener: `trusted` for the Unix socket; else see `rota.live.http.auth`.

    `app.state.closing`, once set, ends every long poll; `app.state.protected()`: whether each request needs a token now.
    """
    app = FastAPI(
        title="Rota",
        summary="The live scheduler",
        version=__version__,
        docs_url=None,  # its pages would load scripts from other servers
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.closing = asyncio.Event()
    app.state.protected = lambda: tokens is not None and tokens.required
    app.add_middleware(Guard, tokens=tokens, trusted=trusted)
    _answer_errors(app)
    known = Answers(trusted)
    _add_jobs(app, service, known, most_body)
    _add_views(app, service, known)
    _add_plans(app, service, known)
    complete_openapi(app, trusted)
    return app


def _add_jobs(app: FastAPI, service: Scheduler, known: Answers, most_body: int) -> None:
    def body(message: type[BaseModel]) -> dict[str, Any]:
        schema = {"$ref": f"#/components/schemas/{message.__name__}"}
        return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}

    @app.post("/jobs", status_code=201, response_model=Submitted, responses=known(404, 409, 413, 415, 507), openapi_extra=body(JobRequest))
    async def submit(request: Request) -> Response:
        """Queues a job, or an array of jobs."""
        return _json(service.submit(_parse(JobRequest, await _read(request, most_body))), 201)

    @app.post("/jobs/change", response_model=Changed, responses=known(413, 415, 507), openapi_extra=body(ChangeRequest))
    async def change(request: Request) -> Response:
        """Cancels, holds or releases several jobs together."""
        return _json(service.change(_parse(ChangeRequest, await _read(request, most_body))))

    @app.get("/jobs", response_model=list[Job], responses=known())
    async def jobs(query: Annotated[_Jobs, Query()]) -> Response:
        """Lists jobs, newest first, in brief: a long command line is cut. They are sent page by page, as they are read."""
        first = service.jobs(query.state, query.type, query.name, min(query.limit, _PAGE), query.before)  # raises before the answer begins

        async def pages() -> AsyncIterator[bytes]:
            page, left = first, query.limit - len(first)
            yield b"[" + _JOBS.dump_json(page)[1:-1]
            while left > 0 and len(page) == _PAGE:
                await asyncio.sleep(0)  # lets other requests run
                page = service.jobs(query.state, query.type, query.name, min(left, _PAGE), page[-1].id)
                left -= len(page)
                if page:
                    yield b"," + _JOBS.dump_json(page)[1:-1]
            yield b"]"

        return StreamingResponse(pages(), media_type="application/json")

    @app.get("/jobs/{id}", response_model=Job, responses=known(404))
    async def job(id: _JobId) -> Response:
        """Shows a job."""
        return _json(service.job(id))

    @app.post("/jobs/{id}/cancel", response_model=Job, responses=known(404, 409, 507))
    async def cancel(id: _JobId, query: Annotated[_Cancel, Query()]) -> Response:
        """Takes a job out of the queue, or ends it if it runs."""
        return _json(service.cancel(id, query.now))

    @app.post("/jobs/{id}/hold", response_model=Job, responses=known(404, 409, 507))
    async def hold(id: _JobId) -> Response:
        """Keeps a waiting job from starting."""
        return _json(service.hold(id))

    @app.post("/jobs/{id}/release", response_model=Job, responses=known(404, 409, 507))
    async def release(id: _JobId) -> Response:
        """Lets a held job wait for its turn again."""
        return _json(service.release(id))

    @app.get("/jobs/{id}/wait", response_model=Job, responses=known(404, 503))
    async def wait(id: _JobId, query: Annotated[_Wait, Query()], request: Request) -> Response:
        """Answers as soon as the job has ended, or after the timeout with the job as it is then."""
        return _json(await _finish(request, service.wait(id, query.timeout_s)))

    @app.get("/jobs/{id}/log", response_class=Response, responses=known(404, 409, log=True))
    async def log(id: _JobId, query: Annotated[_Log, Query()]) -> Response:
        """A part of the output of a job. `Rota-Ended: true`: the job has ended and the output is complete."""
        data, following, ended = service.log(id, query.offset, query.limit)
        headers = {"Rota-Next-Offset": str(following), "Rota-Ended": "true" if ended else "false"}
        return Response(data, 200, headers, "application/octet-stream")

    @app.get("/jobs/{id}/explain", response_model=Explanation, responses=known(404, 409, 503))
    async def explain(id: _JobId, request: Request) -> Response:
        """Why a job does not run yet, and when it can be expected to."""
        return _json(await _finish(request, service.explain(id)))


def _add_views(app: FastAPI, service: Scheduler, known: Answers) -> None:
    @app.get("/status", response_model=Status, responses=known())
    async def status() -> Response:
        """The scheduler at this moment."""
        return _json(service.status())

    @app.get("/events", response_class=Response, responses=known(text="application/x-ndjson"))
    async def events(query: Annotated[_Events, Query()]) -> Response:
        """The event log, oldest first: one JSON object per line."""
        lines = [json.dumps(event, separators=(",", ":")) + "\n" for event in service.events(query.after, query.limit)]
        return Response("".join(lines), media_type="application/x-ndjson")

    @app.get("/metrics", response_class=Response, responses=known(text="text/plain"))
    async def metrics() -> Response:
        """Measurements for Prometheus."""
        return Response(service.metrics(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    @app.get("/health", response_model=Health, responses=known())
    async def health() -> Response:
        """Answers while the scheduler lives."""
        return _json(Health(ok=True, version=__version__))


def _add_plans(app: FastAPI, service: Scheduler, known: Answers) -> None:
    @app.get("/plans", response_model=list[PlanVersion], responses=known())
    async def plans() -> Response:
        """All plans that are or were in use."""
        return _json_list(_PLANS, service.plans())

    @app.post("/plans/pin", response_model=Status, responses=known(409, 507))
    async def pin(query: Annotated[_Pin, Query()]) -> Response:
        """Keeps the plan in use, or lets it be replaced again."""
        return _json(service.pin(query.pinned))

    @app.post("/plans/{number}/use", response_model=PlanVersion, responses=known(404, 409, 507))
    async def use_plan(number: _PlanNumber) -> Response:
        """Goes back to an earlier plan."""
        return _json(service.use_plan(number))


# ------------------------------------------------------------------------------------------------------- requests and answers


def _json(message: BaseModel, status: int = 200) -> Response:
    return Response(message.model_dump_json(), status, media_type="application/json")


def _json_list(adapter: TypeAdapter[list[M]], messages: list[M]) -> Response:
    return Response(adapter.dump_json(messages), media_type="application/json")


async def _read(request: Request, most: int) -> bytes:
    """The body, if its Content-Type is JSON and it is not too long; its length is checked while it arrives."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, f"the body must be application/json (Content-Type is {kind[:80] or 'missing'!r})")
    declared = request.headers.get("content-length", "")
    # The connection cannot be used again, as the rest of the body is never read.
    too_long = HTTPException(413, f"the body has more than {most:,} bytes: submit fewer arguments or variables", {"Connection": "close"})
    if declared.isdecimal() and int(declared[:20]) > most:
        raise too_long
    pieces, length = [], 0
    try:
        async for piece in request.stream():
            length += len(piece)
            if length > most:
                raise too_long
            pieces.append(piece)
    except ClientDisconnect:
        raise HTTPException(400, "the connection ended before the body did") from None
    return b"".join(pieces)


def _parse(message: type[M], body: bytes) -> M:
    try:
        return message.model_validate_json(body, strict=True)
    except ValidationError as error:
        details = error.errors(include_url=False)
        if details[0]["type"] == "json_invalid":
            raise HTTPException(400, f"the body is not valid JSON: {details[0]['ctx']['error']}") from None
        raise BadSpec(problems_in(details)) from None


async def _finish(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled when the scheduler stops or the client has disconnected."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working = asyncio.ensure_future(work)
    others = [asyncio.ensure_future(request.app.state.closing.wait()), asyncio.ensure_future(gone())]
    try:
        await asyncio.wait([working, *others], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise NotReachable("the scheduler is stopping; jobs that run keep running: ask again when it is back")
    finally:
        for task in (working, *others):
            task.cancel()
        await asyncio.gather(working, *others, return_exceptions=True)


# -------------------------------------------------------------------------------------------------------------------- errors


def _answer_errors(app: FastAPI) -> None:
    @app.exception_handler(LiveError)
    async def live(request: Request, error: LiveError) -> Response:
        return failure(error.status, str(error))

    @app.exception_handler(BadSpec)
    async def bad(request: Request, error: BadSpec) -> Response:
        # One problem per line, without a headline: the client builds the exception from it.
        return failure(422, "\n".join(map(str, error.problems)))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return failure(422, "\n".join(map(str, problems_in(error.errors()))))

    @app.exception_handler(StarletteHTTPException)
    async def http(request: Request, error: StarletteHTTPException) -> Response:
        headers = dict(error.headers or {})
        text = error.detail
        if error.status_code == 405:
            headers["Allow"] = ", ".join(sorted(_methods_at(app, request.url.path)))
            text = f"{request.method} is not possible here, only {headers['Allow']}"
        elif error.status_code == 404:
            text = f"there is nothing at {request.url.path[:200]}: see /openapi.json"
        return failure(error.status_code, text, headers)


def _methods_at(app: FastAPI, path: str) -> set[str]:
    found: set[str] = set()
    for route in app.routes:
        if route.path_regex.match(path):  # type: ignore[attr-defined]
            found |= route.methods  # type: ignore[attr-defined]
    return found
