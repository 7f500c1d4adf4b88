"""An exception in the midst of a change: the daemon ends with a word on it, the jobs go on, and the next daemon finds all of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from live_service import plan_of, slots
from rota import __version__
from rota.live.errors import LiveError, NotReachable
from rota.live.faults import Faults
from rota.live.http.client import Client
from rota.live.paths import socket_path
from rota.policy import plan_file_to_json

PROGRAM = Path(__file__).with_name("faulty_daemon.py")
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
LINE = (
    "internal error, the scheduler ends: ValueError: 2 asked for, 0 of 2 are free. "
    "Jobs go on, and the next 'rota serve' finds them; please report this"
)


class Faulty:
    """A daemon with a bug in a process of its own; `client` speaks to it."""

    def __init__(self, home: Path) -> None:
        self.home, self.said = home, ""
        self.client = Client(f"unix:{socket_path(home / 'state')}")
        self._process: subprocess.Popen[str] | None = None

    def start(self, wait: bool = True) -> None:
        """Starts it."""
        words = [sys.executable, str(PROGRAM), str(self.home)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment)
        if wait:
            until(self.answers)

    def answers(self) -> bool:
        """Whether it answers."""
        try:
            return bool(self.client.status())
        except LiveError:
            return False

    def gone(self) -> int:
        """Waits for its end; its exit code."""
        assert self._process is not None
        _, self.said = self._process.communicate(timeout=60)
        return self._process.returncode

    def end(self) -> int:
        """SIGTERM, and its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self.gone()

    def close(self) -> None:
        """Ends what is left."""
        if self._process is not None and self._process.poll() is None:
            for job in self.client.jobs(limit=100):
                with contextlib.suppress(LiveError):
                    self.client.cancel(job.id, now=True)
            until(lambda: not self.client.jobs(state=["running", "stopping", "starting"]))
            self.end()
        self.client.close()


def until(true: Callable[[], Any], timeout_s: float = 60.0) -> None:
    """Waits until something is so."""
    limit = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < limit, "it did not come to pass"
        time.sleep(0.02)


@pytest.fixture
def faulty(tmp_path: Path) -> Iterator[Faulty]:
    """The daemon, not started, with its bug."""
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "bug").touch()
    plan = plan_of(slots(2, small=1, cursed=2), "first-fit", learn=False)
    (tmp_path / "plan.json").write_text(plan_file_to_json(plan))
    daemon = Faulty(tmp_path)
    try:
        yield daemon
    finally:
        (tmp_path / "bug").unlink(missing_ok=True)
        if not daemon.answers():
            daemon.start()
        daemon.close()


@pytest.mark.parametrize("where", ["in a request", "in a callback"])
def test_an_exception_inside_a_turn_ends_the_daemon(faulty: Faulty, where: str) -> None:
    """It says so in one line and ends with 1; a job that runs runs on; the next daemon knows every job and goes on with them."""
    go, home = faulty.home / "go", str(faulty.home)
    faulty.start()
    script = f"until [ -e {go} ]; do sleep 0.02; done"
    if where == "in a callback":  # the end of one job lets the other start
        (runs,) = faulty.client.submit(["/bin/sh", "-c", script], type="small", cwd=home, env=ENV).ids
        (cursed,) = faulty.client.submit(["true"], type="cursed", cwd=home, env=ENV).ids
        go.touch()
    else:
        (runs,) = faulty.client.submit(["/bin/sh", "-c", script], type="small", cwd=home, env=ENV, hold=True).ids
        with pytest.raises(NotReachable):
            faulty.client.submit(["true"], type="cursed", cwd=home, env=ENV)
        cursed = runs + 1
    assert faulty.gone() == 1
    assert LINE in faulty.said
    assert "faulty_daemon.py" in faulty.said  # where it happened
    (faulty.home / "bug").unlink()
    faulty.start()
    if where == "in a request":
        assert faulty.client.job(runs).state == "held"
        go.touch()
        faulty.client.release(runs)
    assert faulty.client.wait(runs, 20).state == "done"
    assert faulty.client.wait(cursed, 20).state == "done"  # it was written before anybody was told of it, so it runs: once
    assert [job.restarts for job in faulty.client.jobs()] == [0, 0]


def test_a_fault_that_comes_back_is_not_hurried(faulty: Faulty) -> None:
    """The second in a row makes the next daemon wait, and say so, so that a supervisor does not start it again and again; told to end, it
    does. A clean end forgets them."""
    faulty.start()
    with pytest.raises(NotReachable):
        faulty.client.submit(["true"], type="cursed", cwd="/", env=ENV)
    assert faulty.gone() == 1
    assert "in a row" not in faulty.said
    for _ in range(2):  # the job is there, so it fails at once
        faulty.start(wait=False)
        assert faulty.gone() == 1
        assert LINE in faulty.said
    assert "the scheduler ended with an internal error 2 times in a row (see faults.json): waiting 1 s" in faulty.said
    kept = json.loads((faulty.home / "state" / "faults.json").read_text())
    assert (kept["count"], kept["error"]) == (3, "ValueError: 2 asked for, 0 of 2 are free")
    (faulty.home / "bug").unlink()
    faulty.start()
    assert faulty.client.wait(1, 20).state == "done"
    assert faulty.end() == 0
    assert "the scheduler ended with an internal error 3 times in a row (see faults.json): waiting 2 s" in faulty.said
    assert not (faulty.home / "state" / "faults.json").exists()


def test_how_long_it_waits(tmp_path: Path) -> None:
    """Not after one fault, then twice as long each time up to five minutes; another version begins anew, and so does who was calm."""
    ends: list[int] = []
    faults = Faults(tmp_path, lambda text: None, ends.append)
    waits = [faults.delay_s()]
    for _ in range(12):
        faults.happened(ValueError("no such luck"))
        waits.append(faults.delay_s())
    assert waits == [0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert ends == [1] * 12
    path = tmp_path / "faults.json"
    path.write_text(json.dumps({"count": 9, "version": "0.0.0"}))
    assert faults.delay_s() == 0
    for torn in ("", "[]", '{"count": 9', "null"):
        path.write_text(torn)
        assert faults.delay_s() == 0
    path.write_text(json.dumps({"count": 9, "version": __version__}))
    assert faults.delay_s() == 128
    faults._began -= 3600.0
    faults.happened(ValueError("no such luck"))
    assert faults.count() == 1
    faults.clear()
    assert not path.exists()


def test_who_fails(tmp_path: Path) -> None:
    """A callback of the scheduler and what it reports end it; a callback of somebody else, and a connection, do not."""
    found: list[str] = []

    class Heard(Faults):
        def happened(self, error: BaseException) -> None:
            found.append(str(error))

    def raised_in(module: str, text: str) -> Callable[[], None]:
        scope: dict[str, Any] = {"__name__": module}
        exec(f"def fail():\n    raise ValueError({text!r})", scope)
        return scope["fail"]  # type: ignore[no-any-return]

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(Heard(tmp_path, lambda text: None).handle)
        loop.default_exception_handler = lambda context: None  # type: ignore[method-assign]
        for module in ("rota.live.storage.write_ahead", "uvicorn.server", "rota.live.http.server", "rota.live.processes.supervisors"):
            loop.call_soon(raised_in(module, module))
        loop.call_exception_handler({"message": "a transport", "exception": OSError("torn"), "transport": None})
        await asyncio.sleep(0.01)

    asyncio.run(main())
    assert found == ["rota.live.storage.write_ahead", "rota.live.processes.supervisors"]
