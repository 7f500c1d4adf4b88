"""The launcher and the claim of an attempt: each is carried out once, whatever dies in between."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job_processes import Bench, Run, open_bench, state_of
from rota.live.errors import LiveError
from rota.live.processes import forkserver
from rota.live.processes import records as attempts
from rota.live.processes.launcher import Launcher, Program


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A launcher in a directory of its own."""
    with open_bench(tmp_path) as bench:
        yield bench


def test_same_attempt_runs_once(bench: Bench, tmp_path: Path) -> None:
    """Two orders for one attempt, sent together, run the job once; another attempt runs it again."""
    for attempt in (1, 1, 1, 2):
        bench.launcher.launch(Program(7, attempt, ["/bin/sh", "-c", f"echo {attempt} >> {tmp_path}/ran"], {}, "/"))
    bench.until(lambda: len(bench.runs) == 4)
    for run in bench.runs:
        assert run.wait().state in ("alive", "ended")
    bench.until(lambda: all(run.look().state == "ended" for run in bench.runs))
    assert sorted((tmp_path / "ran").read_text().split()) == ["1", "2"]


def test_order_of_answers(bench: Bench) -> None:
    """Orders are answered in the order in which they were given, far beyond what fits the socket's buffer, and none stays unanswered."""
    env = {"FILLER": "x" * 20_000}
    for job in range(1, 61):
        bench.launcher.launch(Program(job, 1, ["true"], env, "/"))
    assert len(bench.launcher.unanswered) == 60
    bench.until(lambda: len(bench.runs) == 60, timeout_s=20)
    assert [run.job for run in bench.runs] == list(range(1, 61))
    assert not bench.launcher.unanswered
    assert {run.wait().exit_code for run in bench.runs} == {0}


def test_pidfd_of_one_that_ended_long_ago(bench: Bench) -> None:
    """The pidfd that comes with an answer names the supervisor even if that was reaped before the answer is read."""
    bench.launcher.launch(Program(1, 1, ["true"], {}, "/"))
    path = Path(attempts.record_path(bench.run, 1, 1))
    while not path.exists() or attempts.look(bench.run, 1, 1).state != "ended":
        pass  # the event loop stands still meanwhile
    bench.until(lambda: bench.runs)
    assert bench.runs[0].wait().exit_code == 0


def test_no_zombies(bench: Bench) -> None:
    """The launcher reaps its supervisors while it waits for orders."""
    runs = [bench.launch(["true"]) for _ in range(5)]
    for run in runs:
        run.wait()
    bench.until(lambda: all(state_of(run.pid) == "" for run in runs))


def test_launcher_killed(bench: Bench) -> None:
    """When the launcher dies the supervisors go on, the daemon is told, and another launcher carries on."""
    long, short = bench.launch(["sleep", "60"]), bench.sh("sleep 0.3; exit 6")
    bench.until(lambda: long.look().state == short.look().state == "alive")
    os.kill(bench.launcher.pid, signal.SIGKILL)
    bench.until(lambda: bench.died == 1)
    bench.launcher.launch(Program(3, 1, ["true"], {}, "/"))
    assert list(bench.launcher.unanswered) == [(3, 1)]
    bench.launcher = bench.start()
    assert short.wait().exit_code == 6
    assert long.look().state == "alive"
    assert attempts.look(bench.run, 3, 1).state == "absent"
    assert bench.launch(["true"], job=3).wait().exit_code == 0


def test_exactly_once_while_launchers_die(bench: Bench, tmp_path: Path) -> None:
    """Launchers are killed at odd moments and unanswered orders without a record sent again: every job runs exactly once."""
    chance, jobs = random.Random(7), range(1, 101)
    for job in jobs:
        bench.launcher.launch(Program(job, 1, ["/bin/sh", "-c", f"echo {job} >> {tmp_path}/ran"], {}, "/"))
    for deaths in range(1, 9):
        pause = asyncio.sleep(chance.random() * 0.05)
        bench.loop.run(pause)
        os.kill(bench.launcher.pid, signal.SIGKILL)
        bench.until(lambda deaths=deaths: bench.died == deaths)
        unanswered, bench.launcher = bench.launcher.unanswered, bench.start()
        for order in unanswered.values():
            if attempts.look(bench.run, order.job, order.attempt).state == "absent":
                bench.launcher.launch(order)
    bench.until(lambda: not bench.launcher.unanswered)
    bench.until(lambda: all(attempts.look(bench.run, job, 1).state == "ended" for job in jobs))
    assert sorted(map(int, (tmp_path / "ran").read_text().split())) == list(jobs)


def test_closing_leaves_jobs(bench: Bench) -> None:
    """A launcher that is closed ends; its jobs do not."""
    run = bench.sh("sleep 0.3; exit 2")
    bench.loop.run(bench.launcher.close())
    assert state_of(bench.launcher.pid) == ""
    assert run.wait().exit_code == 2
    assert bench.died == 0


def test_next_launcher_waits_for_claims(bench: Bench, tmp_path: Path) -> None:
    """A launcher is ready only when the lock is free: no older launcher, and no supervisor that has not claimed its attempt."""
    with pytest.raises(LiveError, match=r"launcher\.lock is still held after 0\.3 s"):
        bench.start(patience_s=0.3)
    run = bench.launch(["sleep", "60"])
    bench.until(lambda: run.look().state == "alive")
    with open(tmp_path / "launcher.lock") as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    bench.loop.run(bench.launcher.close())
    with open(tmp_path / "launcher.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the running job does not hold it: its attempt is claimed
    assert run.look().state == "alive"


def test_inherited_lock_until_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A supervisor that cannot go on with its claim keeps the launcher's lock, also when its launcher is dead."""
    slow = tmp_path / "slow.py"
    os.mkfifo(tmp_path / "gate")  # opening it to write waits for a reader
    slow.write_text(
        f"import runpy, sys\nsys.path.append({str(Path(forkserver.__file__).parents[3])!r})\n"
        "from rota.live.processes.records import Record\n"
        f"claim = Record.claim\nRecord.claim = lambda *of: (open({str(tmp_path / 'gate')!r}, 'w').close(), claim(*of))[1]\n"
        f"runpy.run_path({forkserver.__file__!r}, run_name='__main__')\n"
    )
    monkeypatch.setattr(forkserver, "__file__", str(slow))
    with open_bench(tmp_path) as bench:
        run = bench.launch(["true"])
        os.kill(bench.launcher.pid, signal.SIGKILL)
        bench.until(lambda: bench.died)
        with open(tmp_path / "launcher.lock") as lock:
            with pytest.raises(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            assert run.look().state == "absent"
            with open(tmp_path / "gate"):
                fcntl.flock(lock, fcntl.LOCK_EX)
                assert run.look().state != "absent"
                assert run.wait().exit_code == 0


def test_daemon_killed(tmp_path: Path) -> None:
    """A daemon killed with SIGKILL leaves its jobs; its launcher ends; another process adopts a job by its record and can end it."""
    script = (
        "import asyncio, sys\n"
        "from rota.live.processes.launcher import Launcher, Program\n"
        "async def main():\n"
        "    launcher = await Launcher.start(sys.argv[1], lambda *spawned: print(launcher.pid, flush=True))\n"
        "    launcher.launch(Program(1, 1, ['sleep', '60'], {}, '/'))\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout is not None
        launcher = int(daemon.stdout.readline())
        daemon.kill()
    with open_bench(tmp_path) as bench:
        assert state_of(launcher) in ("", "Z")
        seen, pidfd = attempts.adopt(bench.run, 1, 1)
        assert seen.state == "alive"
        assert seen.supervisor is not None
        assert pidfd is not None
        run = Run(bench, 1, 1, seen.supervisor, pidfd)
        bench.runs.append(run)
        run.send(signal.SIGTERM)
        assert run.wait().exit_code == 143


def test_no_process_to_be_had() -> None:
    """Where no process can be forked the order is refused with the reason, and nothing is run."""
    script = (
        "import os, resource, socket, sys\n"
        "from rota.live.processes.forkserver import serve\n"
        "if os.geteuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)  # the limit does not hold for root\n"
        "resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))\n"
        "try:\n"
        "    os.waitpid(os.fork() or os._exit(0), 0); sys.exit('forked')\n"
        "except BlockingIOError: pass\n"
        "serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])\n"
    )
    ours, theirs = socket.socketpair()
    with tempfile.TemporaryDirectory() as directory, ours, theirs:
        os.mkdir(f"{directory}/run")
        for path in (directory, f"{directory}/run"):
            os.chmod(path, 0o777)
        argv = [sys.executable, "-c", script, str(theirs.fileno()), directory]
        with subprocess.Popen(argv, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE) as launcher:
            theirs.close()
            ready = ours.recv(24)
            if not ready and launcher.communicate()[1] == b"forked\n":
                pytest.skip("the number of processes cannot be limited for this user")
            ours.sendall(Program(5, 2, ["true"], {}, "/").encode())
            answer = ours.recv(24)
            ours.close()
        assert forkserver.REPLY.unpack(ready) == (0, 0, launcher.pid)
        assert forkserver.REPLY.unpack(answer) == (5, 2, -errno.EAGAIN)
        assert attempts.look(f"{directory}/run", 5, 2).state == "absent"


def test_launcher_is_light() -> None:
    """The launcher imports nothing heavy, for every supervisor is a copy of it."""
    code = (
        "import runpy, sys; sys.argv = ['x', '0', '/']\n"
        f"runpy.run_path({forkserver.__file__!r}, run_name='light')\n"
        "print(sorted(sys.modules.keys() & {'numpy', 'pydantic', 'asyncio', 'dataclasses', 'inspect', 'logging', 'subprocess', 'pathlib'}))"
    )
    root = str(Path(forkserver.__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {root!r})\n{code}"], capture_output=True, text=True
    )
    assert done.stdout == "[]\n", done.stderr


def test_launcher_imports_the_standard_library_only() -> None:
    """All that the launcher loads, started as it is by the daemon, is of the standard library, of the processes and of the kinds."""
    code = "import sys; before = set(sys.modules)\nimport rota.live.processes.forkserver\nprint(*(set(sys.modules) - before))"
    root = str(Path(forkserver.__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({root!r})\n{code}"], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert {name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names | {"rota"}} == set()
    ours = {name for name in loaded if name.startswith("rota.") and name != "rota.live"}
    assert "rota.live.resources.kinds" in ours
    assert {name for name in ours if not name.startswith(("rota.live.processes", "rota.live.resources"))} == set()
    kinds = {f"rota.live.resources.{path.stem}" for path in (Path(root) / "rota/live/resources").glob("*.py")}
    assert kinds - ours == {f"rota.live.resources.{name}" for name in ("__init__", "allocation", "amounts")}


def test_start_says_why_it_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A launcher that cannot begin is an error at once, not a wait."""
    (tmp_path / "launcher.lock").mkdir()
    with pytest.raises(LiveError, match="ended at once"):
        asyncio.run(Launcher.start(tmp_path, lambda *spawned: None))
    assert "IsADirectoryError" in capfd.readouterr().err


def test_record_states(tmp_path: Path) -> None:
    """A record is absent, then alive as long as its lock is held, then lost, or ended if an end was written; it is claimed once."""
    run = str(tmp_path)
    assert attempts.look(run, 1, 1).state == "absent"
    with subprocess.Popen([sys.executable, "-c", CLAIM, run], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.read(1) == b"c"
        assert attempts.look(run, 1, 1).state == "alive"
        assert attempts.look(run, 1, 1).supervisor == child.pid
        with pytest.raises(FileExistsError):
            attempts.Record.claim(run, 1, 1, "boot")
        assert os.listdir(run) == ["1.1"]  # no draft is left
        seen, pidfd = attempts.adopt(run, 1, 1)
        assert pidfd is not None
        os.close(pidfd)
        child.communicate()
    assert attempts.adopt(run, 1, 1) == (seen._replace(state="lost"), None)
    attempts.remove(run, 1, 1)
    attempts.remove(run, 1, 1)
    assert attempts.look(run, 1, 1).state == "absent"


CLAIM = """
import os, sys
from rota.live.processes.records import Record
record = Record.claim(sys.argv[1], 1, 1, "boot")
if os.fork() == 0:  # a child does not hold the lock, nor does its end release it
    os._exit(0)
os.wait()
os.write(1, b"c")
os.read(0, 1)
"""


@given(error=st.text(max_size=5000), code=st.integers(0, 255))
def test_records_fit_their_places(tmp_path_factory: pytest.TempPathFactory, error: str, code: int) -> None:
    """Whatever the reason says, the records fit: none runs into the next, and what was written is read."""
    run = str(tmp_path_factory.mktemp("run"))
    record = attempts.Record.claim(run, 2**62, 3, "b" * 36)
    try:
        record.write("started", pid=4_194_304, started=1e9 / 3, started_boottime=1e6 / 3)
        record.write("failed", error=error)
        assert error.startswith(record.read("failed")["error"])
        record.write(
            "ended", exit_code=code, error=error, how="signal", ended=1e10 / 3, ended_boottime=1e6 / 3, user_s=1 / 3, system_s=1 / 3
        )
        seen = attempts.look(run, 2**62, 3)
        assert (seen.state, seen.exit_code, seen.pid) == ("ended", code, 4_194_304)
        assert error[:100].startswith(seen.error[:100])
        assert os.path.getsize(record.path) == 4096
    finally:
        record.withdraw()
