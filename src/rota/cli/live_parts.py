"""What the verbs that use a running scheduler share: the connection, numbers of jobs, moments and how a job is printed."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import rota
from rota.display import duration

if TYPE_CHECKING:
    from rota.live.http.client import Client
    from rota.live.messages import Job, JobState

_MOST_IDS = 100_000
_PAGE = 1000
_HOST_AND_PORT = re.compile(r"[^/\s]+:\d+")  # not an address, but a likely mistake for one


@contextmanager
def connect(at: str | None) -> Iterator[Client]:
    """The scheduler at this address: `unix:/path`, `http://host:port`, or a state directory; the one of this user if None."""
    from rota.live.http.client import Client
    from rota.live.paths import socket_path

    if at is not None and not at.startswith(("unix:", "http://", "https://")) and not _HOST_AND_PORT.fullmatch(at):
        at = f"unix:{socket_path(Path(at).expanduser().absolute())}"
    with Client(at) as client:
        yield client


# ----------------------------------------------------------------------------------------------------------------- numbers of jobs


def parse_ids(texts: Iterable[str], place: str = "ID") -> list[int]:
    """Numbers and ranges, `12 14-16 20,21`, each number once and in the order given."""
    found: dict[int, None] = {}
    for word in [part for text in texts for part in text.split(",")]:
        match = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", word.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last:
            raise rota.BadSpec([rota.Problem(place, "must be the number of a job or a range of them, 17 or 17-20", word)])
        if last - first >= _MOST_IDS:
            raise rota.BadSpec([rota.Problem(place, f"must be at most {_MOST_IDS:,} jobs at once", word)])
        found.update(dict.fromkeys(range(first, last + 1)))
    if not found:
        raise rota.BadSpec([rota.Problem(place, "is missing: give the number of a job, or several")])
    return list(found)


def parse_id(text: str) -> int:
    """The number of one job."""
    ids = parse_ids([text])
    if len(ids) > 1:
        raise rota.BadSpec([rota.Problem("ID", "must be the number of one job", text)])
    return ids[0]


def ids_text(ids: Sequence[int]) -> str:
    """Numbers in words, runs of them as ranges: `17-116, 120`."""
    runs: list[list[int]] = []
    for number in ids:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


# -------------------------------------------------------------------------------------------------------------------------- moments


def clock(moment: float | None) -> str:
    """A moment as the local date and time."""
    return "" if moment is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


# ---------------------------------------------------------------------------------------------------------------------------- jobs


def read_jobs(client: Client, states: list[JobState] | None, type: str | None, name: str | None, limit: int | None) -> list[Job]:
    """The newest jobs, up to this number, or all, page by page."""
    found: list[Job] = []
    while limit is None or len(found) < limit:
        ask = _PAGE if limit is None else min(_PAGE, limit - len(found))
        page = client.jobs(state=states, type=type, name=name, limit=ask, before=found[-1].id if found else None)
        found += page
        if len(page) < ask:
            break
    return found


def printable(text: str) -> str:
    """The text with control characters written out, so that nothing in it can control the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def command_text(argv: Sequence[str]) -> str:
    """A command as one would type it."""
    return printable(shlex.join(argv))


def shorten(text: str, width: int) -> str:
    """The text, cut to this number of characters."""
    return text if len(text) <= width else text[: width - 1] + "…"


def amounts(values: dict[str, float]) -> str:
    """`3 cores, 7 memory_gb`; resources of which nothing is asked for are left out."""
    return ", ".join(f"{value:g} {name}" for name, value in values.items() if value) or "nothing"


def exit_code_of(job: Job) -> int:
    """What `rota wait` ends with: the job's own exit code, or 125 if it was cancelled or has none."""
    if job.state == "done":
        return 0
    return (job.exit_code or 125) if job.state == "failed" else 125


def outcome(job: Job) -> str:
    """A job in one line, with its progress."""
    parts: list[str] = [job.state]
    if job.reason:
        parts.append(printable(job.reason))
    elif job.exit_code:
        parts.append(f"exit code {job.exit_code}")
    if job.run_s is not None:
        parts.append(f"ran {duration(job.run_s)}")
    return f"job {job.id}: {', '.join(parts)}"
