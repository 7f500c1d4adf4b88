"""`rota top`: the view as text, as JSON and on a terminal."""

import json
import os
import pty
import select
import signal
from contextlib import ExitStack

import pytest

from rota.live.messages import Status
from stub_scheduler import StubScheduler, job_of, served, start, status_of


def test_top_once(stub, run, monkeypatch):
    """One view as plain text: resources as bars, the rota, the types, the jobs in service, the load and the warnings."""
    monkeypatch.setenv("COLUMNS", "120")
    stub.pinned = True
    stub.known = {2: job_of(2, "running", run_s=250, name="[bold]x", argv=["sleep", "9"])}
    code, out, errors = run("top", "--once")
    assert (code, errors) == (0, "")
    assert "\x1b" not in out
    assert "rota 1.2  nMSR+backfill  plan 2, pinned  preemption suspend  up 2 h 5 min" in out
    assert "load 1.250, planned 0.800" in out
    assert "! the load is above 1: 1.250" in out
    assert "now 2 × train + 4 × web  next switch in 4 min 10 s" in out
    bars = {line.split()[0]: line for line in out.splitlines() if " free of " in line}
    assert "█" * 15 + "▒" * 8 + "·" * 7 in bars["cores"]
    assert "10 used, 5 kept, 5 free of 20  held by affinity" in bars["cores"]
    assert "█" + "·" * 29 in bars["memory_gb"]
    assert "·" * 30 in bars["gpus"]
    rows = [line.split() for line in out.splitlines()]
    assert ["train", "4", "2", "2", "4", "min", "10", "s", "2", "h", "5", "min", "3.2", "s", "–"] in rows
    assert ["[red]web", "0", "0", "4", "–", "–", "–", "–"] in rows
    assert ["2", "train", "running", "4", "min", "10", "s", "[bold]x:", "sleep", "9"] in rows
    assert "… and 1 more" in out


def test_top_explains_the_load(stub, run, monkeypatch):
    """How sure the load is and what it was estimated from: after a few short jobs on an idle machine it may be far off."""
    basis = "the work that arrives, not what runs now: 12 jobs came and 12 ended in the last 20 s, beside 2 of each type as planned"
    monkeypatch.setattr(stub, "status", lambda: status_of(load=1.56, load_error=1.1, load_basis=basis, warnings=[]))
    monkeypatch.setenv("COLUMNS", "160")
    _, out, _ = run("top", "--once")
    assert "load 1.560 ± 2.2, planned 0.800" in out
    assert f"(load: {basis})" in out


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_top_fits_the_width(columns, stub, run, monkeypatch):
    """No line is wider than the terminal."""
    monkeypatch.setenv("COLUMNS", columns)
    stub.known = {2: job_of(2, "running", run_s=250, argv=["x" * 300])}
    assert max(map(len, run("top", "--once")[1].splitlines())) <= int(columns)


def test_top_json(stub, run):
    """One object: the status and the jobs in service, as the messages have them."""
    stub.known = {2: job_of(2, "running", run_s=250), 3: job_of(3)}
    code, out, errors = run("top", "--json")
    found = json.loads(out)
    assert (code, errors, list(found)) == (0, "", ["status", "jobs"])
    assert Status.model_validate(found["status"]) == stub.status()
    assert [job["id"] for job in found["jobs"]] == [2]


def test_top_interval(stub, run):
    """An interval that would flood the scheduler is refused."""
    assert run("top", "--interval", "0")[0] == 2


def test_top_on_a_terminal(directory):
    """On a terminal the view has a screen of its own, outlasts a restart of the scheduler, and gives the terminal back at Ctrl-C."""
    ours, theirs = pty.openpty()
    shown = b""

    def see(part: bytes) -> None:
        """Reads until this part comes."""
        nonlocal shown
        shown = b""
        while part not in shown:
            assert select.select([ours], [], [], 30)[0], shown
            shown += os.read(ours, 65536)

    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    with ExitStack() as stack:
        stack.callback(os.close, ours)
        before = stack.enter_context(ExitStack())
        before.enter_context(served(StubScheduler(), directory))
        process = stack.enter_context(start("top", "--interval", "0.1", "--at", str(directory), stdout=theirs, env=environment))
        os.close(theirs)
        see(b"nMSR+backfill")
        assert shown.startswith(b"\x1b[?1049h")
        before.close()
        see(b"no scheduler answers")
        with served(StubScheduler(), directory):
            see(b"\x1b[1mrota 1.2")
            process.send_signal(signal.SIGINT)
            see(b"\x1b[?1049l")
            assert process.wait(timeout=30) == 0
            assert process.stderr.read() == b""
