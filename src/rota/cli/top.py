"""`rota top`: the scheduler at a glance, on a terminal that renews itself or as plain text."""

from __future__ import annotations

import io
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import rota
from rota.cli.live_parts import command_text, connect, printable, shorten
from rota.cli.output import print_json
from rota.cli.parameters import At, Flag
from rota.display import duration

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from rota.live.http.client import Client
    from rota.live.messages import Job, JobState, ResourceUse, Status, TypeStatus

_IN_SERVICE: list[JobState] = ["starting", "running", "suspended", "stopping"]
_LEAST_JOBS = 3
_BAR = 30


def top(
    *,
    interval: float = 1.0,
    once: Flag = False,
    at: At = None,
    json: Flag = False,
) -> None:
    """Shows the scheduler live: resources, the rota, waiting and running jobs, measured beside predicted times. Ctrl-C ends it.

    Without a terminal it prints plain text, one view after the other.

    Parameters
    ----------
    interval
        Seconds between two views.
    once
        Print one view and end.
    json
        Print one view as one JSON object, and end.
    """
    if not 0.1 <= interval <= 3600:
        raise rota.BadSpec([rota.Problem("--interval", "must be between 0.1 and 3600 seconds", interval)])
    with connect(at) as client:
        if json:
            status, running = _read(client)
            print_json({"status": status.model_dump(mode="json"), "jobs": [job.model_dump(mode="json") for job in running]})
            return
        if once:
            _print(client)
            return
        try:
            _on_terminal(client, interval) if sys.stdout.isatty() else _as_text(client, interval)
        except KeyboardInterrupt:  # the way to end it
            return


def _print(client: Client) -> None:
    """One view as plain text. Written without rich, which would end the program when the reader has gone."""
    from rich.console import Console

    width = max(shutil.get_terminal_size((100, 24)).columns, 60)
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(view(*_read(client), width, height=1_000_000))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    print("\n".join(line.rstrip() for line in text.splitlines()), flush=True)


def _as_text(client: Client, interval: float) -> None:
    while True:
        _print(client)
        print("\n", flush=True)
        time.sleep(interval)


def _on_terminal(client: Client, interval: float) -> None:
    """The view on a screen of its own. Waits for a scheduler that is being restarted, and shows the last view with the error."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    from rota.live.errors import NotReachable

    console = Console()
    found = _read(client)  # an error here is printed without the screen
    with Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            live.update(view(*found, *console.size), refresh=True)
            time.sleep(interval)
            try:
                found = _read(client)
            except NotReachable as error:
                lost = Text(str(error), style="bold red", no_wrap=True, overflow="ellipsis")
                live.update(Group(lost, view(*found, console.width, console.height - 1)), refresh=True)
                time.sleep(interval)


def _read(client: Client) -> tuple[Status, list[Job]]:
    return client.status(), client.jobs(state=_IN_SERVICE, limit=200)


# ----------------------------------------------------------------------------------------------------------------------- the view


def view(status: Status, running: Sequence[Job], width: int, height: int) -> Group:
    """What there is to see; running jobs that do not fit into the height are counted only."""
    from rich.console import Group
    from rich.text import Text

    head = [*_head(status), *(Text(f"! {printable(warning)}", style="bold yellow") for warning in status.warnings), Text("")]
    types = [*status.types, *([status.own] if status.own else [])]
    # Lines: the head, in which warnings may be long, the resources and an empty line, the types with their head, and an empty line, a
    # head and "… more" around the jobs.
    above = sum(max(-(-len(line) // width), 1) for line in head) + len(status.resources) + 1 + len(types) + 1
    left = height - above - 3
    shown = sorted(running, key=lambda job: job.id)[: max(left, _LEAST_JOBS)]
    in_service = sum(status.counts.get(state, 0) for state in _IN_SERVICE)
    parts: list[Text | Table] = [*head, _resources(status.resources), Text(""), _types(types), Text("")]
    parts.append(_jobs(shown) if shown else Text("No job is running."))
    if (more := max(in_service, len(running)) - len(shown)) > 0:
        parts.append(Text(f"… and {more:,} more"))
    return Group(*parts)


def _head(status: Status) -> list[Text]:
    from rich.text import Text

    pinned = ", pinned" if status.pinned else ""
    first = f"rota {status.version}  {printable(status.policy)}  plan {status.plan}{pinned}  preemption {status.preemption}"
    estimate = "not known yet" if status.load is None else f"{status.load:.3f}"
    error = 0.0 if status.load_error is None else status.load_error
    high = status.load is not None and status.load - 1.645 * error >= 1  # with 95 % confidence
    load = Text("load ").append(estimate, style="bold red" if high else "bold").append(f" ± {1.96 * error:.2g}" * (error > 0))
    load.append(f", planned {status.planned_load:.3f}")
    if status.redesigning:
        load.append("  a new plan is being made", style="cyan")
    counts = [f"{count:,} {state}" for state, count in status.counts.items() if count]
    lines = [Text(f"{first}  up {duration(status.uptime_s)}", style="bold"), load.append(f"  jobs: {', '.join(counts) or 'none'}")]
    if status.load is not None and status.load_basis:
        lines.append(Text(f"  (load: {printable(status.load_basis)})", style="dim"))
    if status.phase:
        then = "" if status.next_switch_s is None else f"  next switch in {duration(status.next_switch_s)}"
        lines.append(Text("now ").append(printable(status.phase), style="bold").append(then))
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"  # a line is a line: the height is counted
    return lines


def _table(columns: Iterable[str], left: Sequence[int]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for j, column in enumerate(columns):
        table.add_column(column, justify="left" if j in left else "right", no_wrap=True, overflow="ellipsis")
    return table


def _resources(resources: Sequence[ResourceUse]) -> Table:
    table = _table(["", "", "", ""], left=(0, 1, 2, 3))
    table.show_header = False
    for resource in resources:
        free = max(resource.capacity - resource.used - resource.kept, 0.0)
        kept = f", {resource.kept:g} kept" if resource.kept else ""
        amounts = f"{resource.used:g} used{kept}, {free:g} free of {resource.capacity:g}"
        table.add_row(*_plain(resource.name), _bar(resource), *_plain(amounts, resource.enforced and f"held by {resource.enforced}"))
    return table


def _bar(resource: ResourceUse) -> Text:
    """Used, kept and free as one bar; what is not zero gets at least one character."""
    from rich.text import Text

    def cells(amount: float) -> int:
        part = min(amount / resource.capacity, 1.0) if resource.capacity > 0 else 0.0
        return max(round(part * _BAR), 1) if part > 0 else 0

    used = cells(resource.used)
    kept = min(cells(resource.kept), _BAR - used)
    return Text("█" * used, style="green").append("▒" * kept, style="yellow").append("·" * (_BAR - used - kept), style="dim")


def _types(types: Sequence[TypeStatus]) -> Table:
    table = _table(["", "waiting", "running", "slots", "mean time", "predicted", "95 % below", "predicted"], left=(0,))
    for kind in types:
        times = (kind.mean_response_s, kind.predicted_mean_response_s, kind.p95_response_s, kind.predicted_p95_response_s)
        slots = "" if kind.slots is None else str(kind.slots)
        table.add_row(*_plain(kind.name, f"{kind.waiting:,}", f"{kind.running:,}", slots, *map(_time, times)))
    return table


def _time(seconds: float | None) -> str:
    return "–" if seconds is None else duration(seconds)


def _jobs(shown: Sequence[Job]) -> Table:
    table = _table(["job", "type", "state", "ran", "command"], left=(1, 2, 4))
    for job in shown:
        title = f"{job.name}: " if job.name else ""
        command = shorten(title + command_text(job.argv), 60)  # the other columns are not to give way to it
        table.add_row(*_plain(str(job.id), job.type, job.state, _time(job.run_s), command))
    return table


def _plain(*cells: str) -> list[Text]:
    """Text as it is: a name such as [red] is no markup."""
    from rich.text import Text

    return [Text(printable(cell)) for cell in cells]
