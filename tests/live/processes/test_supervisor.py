"""The supervisor of a job, with real processes: how jobs end, what is left of them, and how they are stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from job_processes import PATH, Bench, open_bench, state_of
from rota.live.processes import records as attempts
from rota.live.processes import tree
from rota.live.resources import cgroups


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A launcher in a directory of its own."""
    with open_bench(tmp_path) as bench:
        yield bench


def numbers_in(path: Path, count: int, bench: Bench) -> list[int]:
    """The process numbers that a job wrote to a file, once they are all there."""
    bench.until(lambda: path.exists() and len(path.read_text().splitlines()) >= count)
    return [int(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(("script", "code", "how"), [("exit 0", 0, "exit"), ("exit 7", 7, "exit"), ("kill -9 $$", 137, "signal")])
def test_exit_code(bench: Bench, script: str, code: int, how: str) -> None:
    """The record tells how the main process ended: its code, or 128 + the signal."""
    end = bench.sh(script).wait()
    assert (end.state, end.exit_code, end.how, end.error, end.leftovers) == ("ended", code, how, "", False)


def test_times_and_use(bench: Bench) -> None:
    """Start and end are on the wall clock and on the boot clock, and the use of processor and memory is told."""
    before, boot_before = time.time(), time.clock_gettime(time.CLOCK_BOOTTIME)
    end = bench.launch([sys.executable, "-c", "import time; x = b'x' * 60_000_000; time.sleep(0.2); sum(range(3_000_000))"]).wait()
    assert before - 1 <= end.started <= end.ended <= time.time() + 1
    assert boot_before <= end.started_boottime <= end.ended_boottime - 0.2
    assert end.user_s + end.system_s > 0.02
    assert end.max_rss_bytes > 60_000_000


def test_command_not_found(bench: Bench) -> None:
    """A program that does not exist gives 127 and says which."""
    end = bench.launch(["no-such-program-here", "x"]).wait()
    assert (end.state, end.exit_code, end.how) == ("ended", 127, "exit")
    assert end.error == "no-such-program-here: no such program"


def test_not_executable(bench: Bench, tmp_path: Path) -> None:
    """A file without the right to execute gives 126, as does a script whose interpreter is missing."""
    plain, script = tmp_path / "plain", tmp_path / "script"
    plain.write_text("hello")
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    for path, reason in ((plain, "Permission denied"), (script, "No such file or directory")):
        end = bench.launch([str(path)]).wait()
        assert (end.exit_code, end.error) == (126, f"cannot execute {path}: {reason}")


def test_missing_directory(bench: Bench) -> None:
    """A working directory that is not there gives 126 and says which; nothing is run."""
    end = bench.sh("echo ran", cwd="/no/such/place").wait()
    assert (end.exit_code, end.error) == (126, "working directory /no/such/place: No such file or directory")
    assert bench.runs[0].output() == ""


def test_environment(bench: Bench, tmp_path: Path) -> None:
    """The job sees its own environment and what Rota tells it, and nothing of the daemon's; it starts in its directory."""
    env = {"PATH": PATH, "GREETING": "grüß\udcff dich", "ROTA_JOB_ID": "a lie"}
    run = bench.launch(["env", "-0"], job=12, attempt=3, env=env, restart=2, share={"cores": [0], "gpus": ["1", "4"]}, index=9)
    assert run.wait().exit_code == 0
    raw = (tmp_path / "output/12.log").read_bytes()
    seen = dict(os.fsdecode(entry).split("=", 1) for entry in raw.split(b"\0") if entry)
    assert seen == {
        **env,
        "ROTA_JOB_ID": "12",
        "ROTA_TYPE": "small",
        "ROTA_RESTART": "2",
        "ROTA_RUN": attempts.mark_of(bench.run, 12, 3),
        "ROTA_CORES": "0",
        "CUDA_VISIBLE_DEVICES": "1,4",
        "ROTA_ARRAY_INDEX": "9",
    }
    place = bench.launch(["pwd"], cwd=str(tmp_path))
    assert place.wait().exit_code == 0
    assert place.output() == f"{tmp_path}\n"


def test_clean_process(bench: Bench) -> None:
    """The job has no foreign descriptors, default signals, its own session, the usual umask and nothing to read."""
    script = (
        "import os, signal, sys\n"
        "blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())\n"
        "line = [x for x in open('/proc/self/status') if x.startswith('SigIgn')][0].split()[1]\n"
        "ignored = {n for n in range(1, 32) if int(line, 16) >> (n - 1) & 1} - {signal.SIGPIPE, signal.SIGXFSZ}  # Python's own\n"
        "fds = [n for n in range(3, 200) if os.path.exists(f'/proc/self/fd/{n}')]\n"
        "print(blocked, ignored, fds, os.getsid(0) == os.getpid(), oct(os.umask(0)), repr(sys.stdin.read()))\n"
    )
    run = bench.launch([sys.executable, "-I", "-S", "-c", script])
    assert run.wait().exit_code == 0
    assert run.output() == "set() set() [] True 0o22 ''\n"
    pipe = bench.launch(["/bin/sh", "-c", "grep SigIgn /proc/self/status"])
    pipe.wait()
    of_the_library = 0b11 << 31  # signals 32 and 33 belong to the C library: no program can set them
    assert int(pipe.output().split()[1], 16) & ~of_the_library == 0


def test_output_is_appended(bench: Bench, tmp_path: Path) -> None:
    """Both streams go to one file, later attempts add to it, and only the owner can read it."""
    for attempt in (1, 2):
        bench.sh(f"echo out {attempt}; echo err {attempt} >&2", job=1, attempt=attempt).wait()
    assert bench.runs[0].output() == "out 1\nerr 1\nout 2\nerr 2\n"
    assert (tmp_path / "output/1.log").stat().st_mode & 0o777 == 0o600


def test_affinity(bench: Bench) -> None:
    """The job runs on its cores and on no others."""
    core = max(os.sched_getaffinity(0))
    run = bench.launch([sys.executable, "-I", "-S", "-c", "import os; print(os.sched_getaffinity(0))"], share={"cores": [core]})
    run.wait()
    assert run.output() == f"{{{core}}}\n"


def test_impossible_cores(bench: Bench) -> None:
    """Cores that this machine does not have end the attempt with 126 and a reason."""
    end = bench.sh("true", share={"cores": [8191]}).wait()
    assert (end.exit_code, end.error) == (126, "cannot use cores [8191]: Invalid argument")


def test_memory_limit(bench: Bench) -> None:
    """A job that allocates more than its limit fails, one that allocates less does not."""
    script = "import sys; x = b'x' * int(sys.argv[1]); print(len(x))"
    share = {"memory": {"bytes": 300_000_000, "cgroup": None}}
    small, large = (bench.launch([sys.executable, "-I", "-S", "-c", script, n], share=share) for n in ("100000000", "400000000"))
    assert (small.wait().exit_code, small.output()) == (0, "100000000\n")
    assert large.wait().exit_code == 1
    assert "MemoryError" in large.output()


def test_cgroup(bench: Bench) -> None:
    """A job that is to run in a cgroup of its own does, and the group is gone after it."""
    parent = cgroups.own_group()
    if parent is None or not os.access(parent, os.W_OK):
        pytest.skip("no writable cgroup v2 here")
    group = f"{parent}/rota-test-{os.getpid()}"
    run = bench.sh("cat /proc/self/cgroup", share={"memory": {"bytes": None, "cgroup": group}})
    assert run.wait().exit_code == 0
    assert any(line.startswith("0::") and line.endswith(os.path.basename(group)) for line in run.output().splitlines())
    assert not os.path.exists(group)
    nowhere = bench.sh("true", share={"memory": {"bytes": None, "cgroup": "/proc/no-group"}}).wait()
    assert (nowhere.exit_code, nowhere.error) == (126, "cannot make its memory group: No such file or directory")


def test_detached_processes_end_with_the_job(bench: Bench, tmp_path: Path) -> None:
    """What a job leaves behind, in a session of its own and forked twice, is ended before the end is recorded."""
    note = tmp_path / "pids"
    run = bench.sh(
        f"setsid sh -c '(sleep 60 & echo $! >> {note}) & echo $$ >> {note}; exec sleep 60' & "
        f"until [ -f {note} ] && [ $(wc -l < {note}) -eq 2 ]; do sleep 0.01; done"
    )
    end = run.wait()
    assert (end.state, end.exit_code, end.leftovers) == ("ended", 0, True)
    assert [state_of(pid) for pid in numbers_in(note, 2, bench)] == ["", ""]


def test_stubborn_leftovers_are_killed(bench: Bench, tmp_path: Path) -> None:
    """A daemon of the job's that ignores SIGTERM is killed after the grace."""
    note = tmp_path / "pid"
    run = bench.sh(
        f"(trap '' TERM; setsid sh -c 'echo $$ > {note}; while :; do sleep 0.05; done' &) ; while [ ! -s {note} ]; do sleep 0.01; done",
        grace_s=0.3,
    )
    end = run.wait()
    assert (end.exit_code, end.leftovers) == (0, True)
    assert state_of(numbers_in(note, 1, bench)[0]) == ""


def test_end_with_grace(bench: Bench, tmp_path: Path) -> None:
    """SIGTERM lets a job write its checkpoint; its own exit code is recorded."""
    run = bench.sh(f"trap 'echo saved; exit 3' TERM; touch {tmp_path}/up; while :; do sleep 0.01; done", grace_s=5)
    bench.until((tmp_path / "up").exists)
    run.send(signal.SIGTERM)
    end = run.wait()
    assert (end.exit_code, end.how, end.leftovers) == (3, "exit", False)
    assert run.output().endswith("saved\n")  # the shell may remark before it that its child was terminated


def test_sigterm_ignored(bench: Bench, tmp_path: Path) -> None:
    """One that ignores SIGTERM is killed when its grace is over, and not before."""
    run = bench.sh(f"trap '' TERM; touch {tmp_path}/up; while :; do sleep 0.01; done", grace_s=0.5)
    bench.until((tmp_path / "up").exists)
    begin = time.monotonic()
    run.send(signal.SIGTERM)
    run.send(signal.SIGTERM)  # asking twice does not prolong it
    end = run.wait()
    assert (end.exit_code, end.how) == (137, "signal")
    assert time.monotonic() - begin >= 0.5


def test_end_at_once(bench: Bench, tmp_path: Path) -> None:
    """SIGQUIT kills every process without asking, also one that is suspended."""
    note = tmp_path / "pids"
    run = bench.sh(f"trap '' TERM; (setsid sleep 60 & echo $! >> {note}); echo $$ >> {note}; while :; do sleep 0.01; done", grace_s=60)
    pids = numbers_in(note, 2, bench)
    run.send(signal.SIGUSR1)
    bench.until(lambda: run.look().suspended)
    run.send(signal.SIGQUIT)
    assert run.wait().exit_code == 137
    assert [state_of(pid) for pid in pids] == ["", ""]


def test_suspend_and_resume(bench: Bench, tmp_path: Path) -> None:
    """SIGUSR1 stops the whole tree, with a grandchild in its own session and a process that was orphaned; SIGUSR2 lets it go on."""
    note = tmp_path / "pids"
    run = bench.sh(f"(setsid sh -c 'echo $$ >> {note}; sleep 60 & echo $! >> {note}; wait' &); echo $$ >> {note}; sleep 60")
    pids = numbers_in(note, 3, bench)
    run.send(signal.SIGUSR1)
    bench.until(lambda: run.look().suspended)
    # A shell that was caught between vfork and the child's exec waits in the kernel ("D"): it does not run either.
    bench.until(lambda: {state_of(pid) for pid in pids} <= {"T", "D"})
    assert {state_of(pid) for pid in tree.descendants(run.pid)} <= {"T", "D"}
    run.send(signal.SIGUSR2)
    bench.until(lambda: not run.look().suspended)
    bench.until(lambda: "T" not in [state_of(pid) for pid in pids])
    assert run.look().state == "alive"


def test_suspended_job_can_be_ended(bench: Bench, tmp_path: Path) -> None:
    """A suspended job that is told to end goes on, hears SIGTERM and ends by itself."""
    run = bench.sh(f"trap 'exit 5' TERM; touch {tmp_path}/up; while :; do sleep 0.01; done", grace_s=10)
    bench.until((tmp_path / "up").exists)
    run.send(signal.SIGUSR1)
    bench.until(lambda: run.look().suspended)
    run.send(signal.SIGTERM)
    assert run.wait().exit_code == 5


def test_forking_tree_does_not_escape(bench: Bench, tmp_path: Path) -> None:
    """A job that forks without pause, each child taking over from its parent, is caught as a whole by stop and by kill."""
    script = (
        "import os, sys, time\n"
        f"open({str(tmp_path / 'up')!r}, 'w')\n"
        "for chain in range(3):\n"
        "    if os.fork() == 0:\n"
        "        while True:\n"
        "            if os.fork(): os._exit(0)\n"
        "time.sleep(60)\n"
    )
    run = bench.launch([sys.executable, "-I", "-S", "-c", script])
    bench.until((tmp_path / "up").exists)
    time.sleep(0.1)
    run.send(signal.SIGUSR1)
    bench.until(lambda: run.look().suspended)
    # Whoever has the signal must come to its turn on a core once more to stop.
    bench.until(lambda: {state_of(pid) for pid in tree.descendants(run.pid)} <= {"T", "Z"})
    still = tree.descendants(run.pid)
    time.sleep(0.1)
    assert tree.descendants(run.pid) == still
    assert {state_of(pid) for pid in still} <= {"T", "Z"}
    run.send(signal.SIGQUIT)
    assert run.wait().exit_code == 137


def test_killed_supervisor(bench: Bench, tmp_path: Path) -> None:
    """A supervisor killed with SIGKILL takes the main process with it; the attempt is lost, and its strays can be ended."""
    note = tmp_path / "pids"
    run = bench.sh(f"setsid sleep 60 & echo $! >> {note}; echo $$ >> {note}; exec sleep 60")
    stray, main = numbers_in(note, 2, bench)
    assert run.look().pid == main
    os.kill(run.pid, signal.SIGKILL)
    assert run.wait().state == "lost"
    bench.until(lambda: state_of(main) in ("", "Z"))  # init may be slow to reap
    assert attempts.end_strays(bench.run, run.job, 2) == 0  # of another attempt
    assert state_of(stray) in ("S", "R")
    assert attempts.end_strays(bench.run, run.job, run.attempt) == 1
    bench.until(lambda: state_of(stray) in ("", "Z"))


def test_full_disk(tmp_path: Path) -> None:
    """Where there is no room for the record nothing is run; a job that runs when the disk fills up records its end all the same."""
    inside = Path(__file__).parents[1] / "full_disk.py"
    mount = ["unshare", "--mount", "--map-root-user", "--propagation", "private", "sh", "-c"]
    script = f"mount -t tmpfs -o size=256k,mode=700 tmpfs {tmp_path} && exec {sys.executable} {inside} {tmp_path}"
    if subprocess.run([*mount, f"mount -t tmpfs -o size=64k tmpfs {tmp_path}"], capture_output=True).returncode:
        pytest.skip("no small file system can be mounted here: neither root nor user namespaces are allowed")
    done = subprocess.run(
        [*mount, script], capture_output=True, text=True, timeout=30, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert done.stdout.splitlines() == [
        "before: ended 0",
        "filled while running: ended 4",
        "full: absent, ran False",
        "room again: ended 0",
    ], done.stderr
