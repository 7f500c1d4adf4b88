"""The events of `events.jsonl`, the log of `rota serve`: one JSON object per line, with its number `n`, its time `t` and its name `event`.

The daemon writes them. What reads the log (rebuilding a lost database, importing a log as a trace) uses the same definitions.
`EVENTS_VERSION` is written with every `serve`, the first event of a daemon; logs from before it was written are of version 1, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

__all__ = [
    "EVENTS",
    "EVENTS_VERSION",
    "Eligible",
    "End",
    "Event",
    "Recover",
    "Requeue",
    "Resume",
    "Serve",
    "Start",
    "Submit",
    "Suspend",
    "Swap",
    "decode_event",
    "encode_event",
]

EVENTS_VERSION = 1


class Event:
    """Something that happened."""

    name: ClassVar[str]


@dataclass(frozen=True, slots=True)
class Serve(Event):
    """A daemon began to serve, or goes on under another plan."""

    name: ClassVar[str] = "serve"
    version: str  # of Rota
    resources: Mapping[str, float]
    types: Mapping[str, Mapping[str, float]]  # what each job type needs
    policy: str
    time_unit_s: float
    events: int = EVENTS_VERSION


@dataclass(frozen=True, slots=True)
class Submit(Event):
    """A job was accepted."""

    name: ClassVar[str] = "submit"
    job: int
    type: str
    demand: Mapping[str, float]
    job_name: str = ""
    estimate_s: float | None = None


@dataclass(frozen=True, slots=True)
class Eligible(Event):
    """A job that was held or blocked joined the queue."""

    name: ClassVar[str] = "eligible"
    job: int


@dataclass(frozen=True, slots=True)
class Start(Event):
    """A job was started; `cores` and `gpus` are comma lists of numbers, None where none are handed out."""

    name: ClassVar[str] = "start"
    job: int
    attempt: int
    cores: str | None = None
    gpus: str | None = None


@dataclass(frozen=True, slots=True)
class Suspend(Event):
    """A running job was suspended by the policy."""

    name: ClassVar[str] = "suspend"
    job: int


@dataclass(frozen=True, slots=True)
class Resume(Event):
    """A suspended job went on."""

    name: ClassVar[str] = "resume"
    job: int


@dataclass(frozen=True, slots=True)
class Requeue(Event):
    """A running job was asked to end, to be started again later."""

    name: ClassVar[str] = "requeue"
    job: int


@dataclass(frozen=True, slots=True)
class End(Event):
    """A job has ended; `run_s` is its time in service over all attempts, None if it never ran."""

    name: ClassVar[str] = "end"
    job: int
    outcome: str
    exit_code: int | None = None
    response_s: float | None = None
    run_s: float | None = None


@dataclass(frozen=True, slots=True)
class Swap(Event):
    """Another plan came into use."""

    name: ClassVar[str] = "swap"
    plan: int
    reason: str


@dataclass(frozen=True, slots=True)
class Recover(Event):
    """The database was brought up to date from this log; so many jobs were concerned."""

    name: ClassVar[str] = "recover"
    jobs: int


_ALL = (Serve, Submit, Eligible, Start, Suspend, Resume, Requeue, End, Swap, Recover)
EVENTS: dict[str, type[Event]] = {kind.name: kind for kind in _ALL}
_KEYS = {"job_name": "name"}  # `name` is that of the event in Python, and that of the job in the log


def encode_event(event: Event, n: int, t: float) -> dict[str, Any]:
    """The object of the log."""
    body = {_KEYS.get(field.name, field.name): getattr(event, field.name) for field in fields(event)}  # type: ignore[arg-type]
    return {"n": n, "t": t, "event": event.name, **body}


def decode_event(line: Mapping[str, Any]) -> Event | None:
    """The event of an object of the log; None if it is of a kind that this version does not know, or a field that it needs is missing.

    Fields that a later version added are passed over.
    """
    kind = EVENTS.get(line.get("event", ""))
    if kind is None:
        return None
    keys = {field.name: _KEYS.get(field.name, field.name) for field in fields(kind)}  # type: ignore[arg-type]
    try:
        return kind(**{name: line[key] for name, key in keys.items() if key in line})
    except TypeError:
        return None
