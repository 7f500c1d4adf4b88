"""`rota wait`: until jobs have ended, with their exit code."""

import json
import threading
import time

import pytest

from stub_scheduler import StubScheduler, job_of, served


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ([("done", 0)], 0),
        ([("failed", 3)], 3),
        ([("failed", 137)], 137),
        ([("failed", None)], 125),
        ([("cancelled", None)], 125),
        ([("cancelled", 0)], 125),
        ([("done", 0), ("failed", 5), ("failed", 6)], 5),
    ],
)
def test_wait_ends_as_the_job(states, code, stub, run):
    """The exit code of the job, of several the first that is not 0; 125 if the job has none of its own."""
    stub.known = {number: job_of(number, state, exit_code=exit_code) for number, (state, exit_code) in enumerate(states, 1)}
    found, out, errors = run("wait", f"1-{len(states)}")
    assert (found, out) == (code, "")
    assert len(errors.splitlines()) == len(states)


def test_wait_json(stub, run):
    """One object at the end: the jobs and the exit code, also after the timeout."""
    stub.known = {1: job_of(1, "done", exit_code=0), 2: job_of(2, "failed", exit_code=5), 3: job_of(3)}
    code, out, _ = run("wait", "1-2", "--json")
    found = json.loads(out)
    assert (code, found["exit_code"], [job["state"] for job in found["jobs"]]) == (5, 5, ["done", "failed"])
    code, out, _ = run("wait", "1,3", "--timeout", "0.1s", "--json")
    found = json.loads(out)
    assert (code, found["exit_code"], [job["state"] for job in found["jobs"]]) == (124, 124, ["done", "waiting"])


def test_wait_gives_up(stub, run):
    """After the timeout it ends with 124."""
    began = time.monotonic()
    code, out, errors = run("wait", "1", "--timeout", "0.3s")
    assert (code, out) == (124, "")
    assert "not ended after the timeout: job 1: waiting" in errors
    assert 0.2 < time.monotonic() - began < 5


def test_wait_outlasts_a_restart(directory, run):
    """A scheduler that goes and comes back meanwhile keeps its jobs: waiting goes on."""
    before, later = StubScheduler(), StubScheduler()
    later.known[1] = job_of(1, "failed", exit_code=4)
    ready, over = threading.Event(), threading.Event()

    def restart() -> None:
        with served(before, directory):
            ready.set()
            while "wait" not in before.asked and not over.wait(0.01):
                pass
        time.sleep(0.3)
        with served(later, directory):
            over.wait(20)

    thread = threading.Thread(target=restart)
    thread.start()
    ready.wait(10)
    try:
        code, _, errors = run("wait", "1", "--at", str(directory))
    finally:
        over.set()
        thread.join()
    assert code == 4
    assert "waiting for it to come back" in errors
