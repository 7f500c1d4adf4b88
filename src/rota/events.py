"""The events of `events.jsonl`, the log of `rota serve`: one JSON object per line, with its number `n`, its time `t` and its name `event`.

The daemon writes them. The readers of the log (rebuilding a lost database, importing a log as a trace) use the same definitions.
`EVENTS_VERSION` is written with every `serve`, the first event of a daemon; older logs without it are of version 1, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
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
    """A daemon started, or switched to another plan."""

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
    """A job was started. `numbers` are separate keys in the log, as "cores": "0,3"; null if the job got none."""

    name: ClassVar[str] = "start"
    job: int
    attempt: int
    numbers: Mapping[str, str | None] = field(default_factory=dict)


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
    """The database was brought up to date from this log; `jobs` is the number of jobs concerned."""

    name: ClassVar[str] = "recover"
    jobs: int


_ALL = (Serve, Submit, Eligible, Start, Suspend, Resume, Requeue, End, Swap, Recover)
EVENTS: dict[str, type[Event]] = {kind.name: kind for kind in _ALL}
_KEYS = {"job_name": "name"}  # `name` is the event's name in Python, and the job's name in the log


def encode_event(event: Event, n: int, t: float) -> dict[str, Any]:
    """The event as a JSON object of the log."""
    values = {_KEYS.get(each.name, each.name): getattr(event, each.name) for each in fields(event)}  # type: ignore[arg-type]
    numbers = values.pop("numbers", {})
    return {"n": n, "t": t, "event": event.name, **values, **numbers}


def decode_event(line: Mapping[str, Any]) -> Event | None:
    """The event of a JSON object of the log; None if its kind is unknown to this version, or a required field is missing.

    Fields that a later version added are ignored.
    """
    kind = EVENTS.get(line.get("event", ""))
    if kind is None:
        return None
    keys = {each.name: _KEYS.get(each.name, each.name) for each in fields(kind)}  # type: ignore[arg-type]
    known = {name: line[key] for name, key in keys.items() if key in line}
    if "numbers" in keys:
        known["numbers"] = {key: value for key, value in line.items() if key not in ("n", "t", "event", *known)}
    try:
        return kind(**known)
    except TypeError:
        return None
