"""The verbs that speak to a running scheduler, against the real HTTP interface on a Unix socket with a service of a few fixed answers."""

import asyncio
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.cli import live_parts, logs, main
from rota.live.errors import NoSuchJob, NoSuchPlan, Refused
from rota.live.http.api import make_app
from rota.live.http.server import serve_http
from rota.live.messages import ENDED, Changed, Explanation, Job, JobRequest, PlanVersion, ResourceUse, Status, Submitted, TypeStatus

OUTPUT = b"first\n\xff\x00\x1b[31mraw\r\nlast without end"


def job_of(number: int, state: str = "waiting", **fields) -> Job:
    """A job as the scheduler would tell of it."""
    common = {"name": "", "type": "train", "demand": {"cores": 3, "memory_gb": 7, "gpus": 0}, "argv": ["true"], "cwd": "/tmp"}
    return Job.model_validate({"id": number, "state": state, "submitted": 1.7e9, **common, **fields})


def status_of(**fields) -> Status:
    """A scheduler with three resources and two types."""
    types = [
        TypeStatus(
            name="train",
            demand={"cores": 3, "memory_gb": 7, "gpus": 0},
            waiting=4,
            running=2,
            slots=2,
            ended=7,
            planned_arrival_rate=0.01,
            planned_mean_size_s=60,
            mean_response_s=250,
            predicted_mean_response_s=7500,
            p95_response_s=3.21,
        ),
        TypeStatus(name="[red]web", waiting=0, running=0, slots=4, ended=0, planned_arrival_rate=0.1, planned_mean_size_s=1),
    ]
    common = {
        "version": "1.2",
        "policy": "nMSR+backfill",
        "plan": 2,
        "pinned": True,
        "preemption": "suspend",
        "uptime_s": 7500,
        "now": 1.7e9,
        "resources": [
            ResourceUse(name="cores", capacity=20, used=10, kept=5, enforced="affinity"),
            ResourceUse(name="memory_gb", capacity=15, used=0.1),
            ResourceUse(name="gpus", capacity=2, used=0),
        ],
        "types": types,
        "counts": {"running": 2, "waiting": 4, "done": 7},
        "phase": "2 × train + 4 × web",
        "next_switch_s": 250.0,
        "load": 1.25,
        "planned_load": 0.8,
        "warnings": ["the load is above 1: 1.250"],
    }
    return Status.model_validate({**common, **fields})


class Desk:
    """A service with the answers that a test wants, and a memory of what it was asked."""

    def __init__(self) -> None:
        self.known = {number: job_of(number) for number in range(1, 8)}
        self.in_use, self.pinned = 3, False
        self.requests: list[JobRequest] = []
        self.asked: list[str] = []
        self.output, self.lines_to_come = OUTPUT, 0
        self.remark = ""

    def submit(self, request):
        """Takes the jobs in; each is done at once."""
        if request.type not in (None, "train"):
            raise rota.BadSpec([rota.Problem("type", "there is no such type (there are: train)", request.type)])
        self.requests.append(request)
        first, last = request.array or (0, 0)
        ids = [max(self.known) + 1 + i for i in range(last - first + 1)]
        self.known |= {number: job_of(number, "done", run_s=3.21) for number in ids}
        return Submitted(ids=ids, type=request.type or "train", remark=self.remark)

    def job(self, id):
        """The job of this number."""
        self.asked.append("job")
        if id not in self.known:
            raise NoSuchJob(f"there is no job {id}")
        return self.known[id]

    def jobs(self, state, type, name, limit, before):
        """The newest jobs first."""
        self.asked.append("jobs")
        found = [job for number, job in sorted(self.known.items(), reverse=True) if before is None or number < before]
        found = [job for job in found if state is None or job.state in state]
        return [job for job in found if type in (None, job.type) and name in (None, job.name)][:limit]

    def cancel(self, id, now):
        """At once, or not yet."""
        return self._change(id, "cancelled" if now else "stopping")

    def hold(self, id):
        """Held."""
        return self._change(id, "held")

    def release(self, id):
        """Released."""
        return self._change(id, "waiting")

    def change(self, request):
        """Each for itself, in the order given."""
        self.asked.append("change")
        jobs, refused = [], []
        for id in request.ids:
            try:
                jobs.append(self.cancel(id, request.now) if request.action == "cancel" else getattr(self, request.action)(id))
            except (NoSuchJob, Refused) as error:
                refused.append(str(error))
        return Changed(jobs=jobs, refused=refused)

    def _change(self, id, state):
        if self.job(id).state in ENDED:
            raise Refused(f"job {id} has ended")
        self.known[id] = self.known[id].model_copy(update={"state": state})
        return self.known[id]

    async def wait(self, id, timeout_s):
        """The job when it has ended, or after the timeout."""
        self.asked.append("wait")
        end = time.monotonic() + timeout_s
        while self.job(id).state not in ENDED and time.monotonic() < end:
            await asyncio.sleep(0.01)
        return self.known[id]

    def log(self, id, offset, limit):
        """A piece of the output; while there are lines to come, one more each time the end is asked for."""
        self.job(id)
        self.asked.append("log")
        if offset >= len(self.output) and self.lines_to_come:
            self.output, self.lines_to_come = self.output + b"more\n", self.lines_to_come - 1
        data = self.output[offset : offset + limit]
        return data, offset + len(data), not self.lines_to_come and offset + len(data) >= len(self.output)

    async def explain(self, id):
        """Always the same."""
        text = "It waits for 3 cores."
        return Explanation(id=self.job(id).id, state="waiting", text=text, ahead=2, start_median_s=250, start_p90_s=7500, runs=99)

    def status(self):
        """Always the same."""
        self.asked.append("status")
        return status_of(pinned=self.pinned)

    def plans(self):
        """Three of them."""
        return [self._plan(number) for number in (1, 2, 3)]

    def use_plan(self, number):
        """Another one."""
        if number > 3:
            raise NoSuchPlan(f"there is no plan {number}")
        self.in_use = number
        return self._plan(number)

    def _plan(self, number):
        used = number == self.in_use
        rates = {"arrival_rate": {"train": 0.01}, "mean_size_s": {"train": 60.0}}
        common = {"time": 1.7e9, "policy": "nMSR", "reason": "drift", "load": 0.8, **rates}
        return PlanVersion(number=number, in_use=used, pinned=used and self.pinned, **common)

    def pin(self, pinned):
        """Pinned or not."""
        self.pinned = pinned
        return self.status()


@contextmanager
def served(desk: Desk, directory: Path):
    """The desk behind the real HTTP interface on the socket of a state directory, in a thread."""
    ready, loop, stop = threading.Event(), asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with serve_http(make_app(desk, trusted=True), unix=directory / "rota.sock"):
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(10)
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


@pytest.fixture
def directory():
    """A state directory with a short path: that of a socket may not be long."""
    with tempfile.TemporaryDirectory(prefix="rota") as path:
        yield Path(path)


@pytest.fixture(scope="module")
def house():
    """A desk that is served, and its state directory, for all tests."""
    found = Desk()
    with tempfile.TemporaryDirectory(prefix="rota") as path, served(found, Path(path)):
        yield found, Path(path)


@pytest.fixture
def desk(house, monkeypatch):
    """A scheduler that answers, at $ROTA_ADDRESS; as new for each test."""
    found, path = house
    found.__init__()
    monkeypatch.setenv("ROTA_ADDRESS", str(path))
    monkeypatch.delenv("ROTA_TOKEN", raising=False)
    return found


@pytest.fixture
def run(capfd):
    """Runs a command line and returns its exit code, what it printed, and what it remarked."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        return (code, *capfd.readouterr())

    return call


# ------------------------------------------------------------------------------------------------------------------------- submit


def test_submit_a_type(desk, run, monkeypatch, tmp_path):
    """A command of a type becomes one request with this folder and environment, and its number is printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLOUR", "blue")
    desk.remark = "the queue is long"
    assert run("submit", "--type", "train", "--name", "first", "--", "python", "train.py") == (0, "job 8\n", "the queue is long\n")
    (request,) = desk.requests
    assert (request.argv, request.type, request.demand, request.name) == (["python", "train.py"], "train", None, "first")
    assert request.cwd == str(tmp_path)
    assert request.env == dict(os.environ)


@pytest.mark.parametrize("words", [["x", "--type", "y", "--json"], ["x", "--", "-h"], ["--help"], ["x", "", " ", "$HOME", "*", "@file"]])
def test_the_command_is_untouched(words, desk, run):
    """Everything after the first -- reaches the program as it is, also what looks like an option of ours."""
    assert run("submit", "--type", "train", "--", *words)[0] == 0
    assert desk.requests[0].argv == words


def test_submit_by_needs(desk, run):
    """--cores, --memory, --gpus and --need go to the server's resources of these names; nothing is asked of the others."""
    assert run("submit", "--cores", "3", "--memory", "7G", "--", "true")[0] == 0
    assert run("submit", "--gpus", "1", "--need", "cores=2", "--", "true")[0] == 0
    assert [request.demand["cores"] for request in desk.requests] == [3, 2]
    assert [request.demand["gpus"] for request in desk.requests] == [0, 1]
    assert desk.requests[0].demand["memory_gb"] == pytest.approx(7, rel=0.1)
    assert desk.requests[1].demand["memory_gb"] == 0
    assert {request.type for request in desk.requests} == {None}


def test_submit_from_a_folder_that_is_gone(desk, run, monkeypatch, tmp_path):
    """It says so; with --cwd the job is taken."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    code, _, errors = run("submit", "--type", "train", "--", "true")
    assert (code, desk.requests) == (2, [])
    assert "--cwd: the folder you are in is not there any more" in errors
    assert run("submit", "--type", "train", "--cwd", "/", "--", "true")[0] == 0


def test_submit_an_array(desk, run):
    """An array prints one range of numbers; order, hold, folder and estimate are passed on."""
    options = ["--array", "1-100", "--after", "1,3-4", "--after-any", "2", "--hold", "--cwd", "/usr", "--estimate", "90m"]
    assert run("submit", "--type", "train", *options, "--", "true") == (0, "jobs 8-107\n", "")
    (request,) = desk.requests
    assert (request.array, request.after, request.after_any, request.hold) == ((1, 100), [1, 3, 4], [2], True)
    assert (request.cwd, request.estimate_s) == ("/usr", 5400)


def test_submit_json(desk, run):
    """With --json the message is one object."""
    code, out, _ = run("submit", "--type", "train", "--json", "--", "true")
    assert (code, json.loads(out)) == (0, {"ids": [8], "type": "train", "remark": ""})


def test_submit_a_shell_line(desk, run):
    """Only --shell brings a shell in, and takes one word."""
    assert run("submit", "--type", "train", "--shell", "--", "sort a | uniq > b")[0] == 0
    assert desk.requests[0].argv == ["/bin/sh", "-c", "sort a | uniq > b"]
    code, _, errors = run("submit", "--type", "train", "--shell", "--", "sort", "a")
    assert code == 2
    assert "put the line into quotes" in errors


def test_environment(desk, run, monkeypatch):
    """--env adds to yours, --clean-env drops yours, and neither the token nor what is no text is passed on."""
    monkeypatch.setenv("MINE", "1")
    monkeypatch.setenv("ROTA_TOKEN", "secret")
    monkeypatch.setenv("STRANGE", os.fsdecode(b"\xff"))
    code, _, errors = run("submit", "--type", "train", "--env", "A=b=c", "--env=E=", "--", "true")
    assert (code, errors) == (0, "not passed on, for they are not UTF-8 text: STRANGE\n")
    env = desk.requests[0].env
    assert (env["MINE"], env["A"], env["E"]) == ("1", "b=c", "")
    assert not {"ROTA_TOKEN", "STRANGE"} & set(env)
    assert run("submit", "--type", "train", "--clean-env", "--env", "MINE", "--env", "ROTA_TOKEN", "--", "true")[0] == 0
    env = desk.requests[1].env
    assert (env["MINE"], env["ROTA_TOKEN"]) == ("1", "secret")
    assert set(env) <= {"MINE", "ROTA_TOKEN", "HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TZ", "USER"}


def test_submit_and_wait(desk, run):
    """--wait ends with the exit code of the job, after its number was printed."""
    assert run("submit", "--type", "train", "--wait", "--", "true") == (0, "job 8\n", "job 8: done, ran 3.2 s\n")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--type", "tarin", "--", "true"], "type: there is no such type (there are: train) (got 'tarin')"),
        (["--", "true"], "--type: is missing: one of train"),
        (["--type", "train", "--cores", "1", "--", "true"], "does not go with"),
        (["--type", "train", "true"], "must come after --"),
        (["--type", "train", "--"], "command: is missing"),
        (["--need", "disk=1", "--", "true"], "it has cores, memory_gb, gpus (got 'disk')"),
        (["--need", "cores", "--", "true"], "RESOURCE=AMOUNT"),
        (["--cores", "1", "--need", "cores=1", "--", "true"], "is given twice"),
        (["--cores", "many", "--", "true"], "many"),
        (["--cores", "-1", "--", "true"], "cores: must be at least 0 (got '-1')"),
        (["--memory=-7G", "--", "true"], "memory_gb: must be at least 0 (got '-7G')"),
        (["--type", "train", "--array", "5", "--", "true"], "--array: must be a range"),
        (["--type", "train", "--array", "5-1", "--", "true"], "--array: must be a range"),
        (["--type", "train", "--after", "x", "--", "true"], "--after: must be the number of a job"),
        (["--type", "train", "--estimate", "soon", "--", "true"], "--estimate: must be a duration"),
        (["--type", "train", "--env", "NO_SUCH_VARIABLE", "--", "true"], "--env: must be NAME=VALUE"),
        (["--type", "train", "--", os.fsdecode(b"\xff")], "UTF-8"),
    ],
)
def test_wrong_submissions(arguments, part, desk, run):
    """Wrong use ends with 2, says what is wrong and what there is, and submits nothing."""
    code, out, errors = run("submit", *arguments)
    assert (code, out, desk.requests) == (2, "", [])
    assert part in errors


# ------------------------------------------------------------------------------------------------------------- jobs, show, explain


def test_jobs_table(desk, run):
    """The table has a line per job, the newest first, and control characters cannot reach the terminal."""
    desk.known = {1: job_of(1, "done", run_s=250, name="a"), 2: job_of(2, argv=["echo", "\x1b[2J", "a b"], index=3, array=1)}
    code, out, errors = run("jobs")
    assert (code, errors) == (0, "")
    lines = out.splitlines()[1:]
    assert lines[1].split() == ["job", "type", "state", "submitted", "ran", "command"]
    assert [line.split()[0] for line in lines[2:]] == ["2", "1"]
    assert lines[2].endswith("[3] echo '\\x1b[2J' 'a b'")
    assert "4 min 10 s  a: true" in lines[3]


def test_jobs_filters(desk, run):
    """--state, --type, --name and --limit choose; a list that was cut says so; none is no error."""
    desk.known[3] = job_of(3, "running", name="mine")
    desk.known[4] = job_of(4, "failed", type="web")
    found = {
        ("--state", "running,failed"): [4, 3],
        ("--type", "web"): [4],
        ("--name", "mine"): [3],
        ("--limit", "2"): [7, 6],
        ("--name", "nobody"): [],
    }
    for arguments, ids in found.items():
        code, out, _ = run("jobs", *arguments, "--json")
        assert (code, [job["id"] for job in json.loads(out)["jobs"]]) == (0, ids)
    assert "--all show" in run("jobs", "--limit", "2")[2]
    assert run("jobs", "--name", "nobody") == (0, "no jobs\n", "")
    code, _, errors = run("jobs", "--state", "sleeping")
    assert code == 2
    assert "held, blocked, waiting" in errors
    assert run("jobs", "--limit", "0")[0] == 2


def test_all_jobs(desk, run):
    """--all reads page after page."""
    desk.known = {number: job_of(number, "done") for number in range(1, 2502)}
    code, out, _ = run("jobs", "--all", "--json")
    assert (code, [job["id"] for job in json.loads(out)["jobs"]]) == (0, list(range(2501, 0, -1)))
    assert desk.asked.count("jobs") == 251  # three requests, for 1000, 1000 and 501; each is read 10 at a time


def test_show(desk, run):
    """One job in words and, with --json, under the names of the message."""
    fields = {
        "run_s": 250,
        "response_s": 7500,
        "exit_code": 3,
        "cores": [0, 1, 2, 5],
        "reason": "exit code 3",
        "after": [4],
        "output": "/o",
    }
    desk.known[5] = job_of(5, "failed", **fields)
    code, out, _ = run("show", "5")
    assert code == 0
    pairs = dict(re.split(r"  +", line, maxsplit=1) for line in out.splitlines())
    assert pairs["needs"] == "3 cores, 7 memory_gb"
    assert (pairs["ran"], pairs["exit code"], pairs["cores"], pairs["after"]) == ("4 min 10 s", "3", "0-2, 5", "4")
    assert "GPUs" not in pairs
    code, out, _ = run("show", "5", "--json")
    assert Job.model_validate_json(out) == desk.known[5]


@pytest.mark.parametrize("verb", ["show", "logs", "explain", "wait", "cancel", "hold", "release"])
def test_no_such_job(verb, desk, run):
    """A number that no job has ends with 1 and the server's text; a word that is no number with 2."""
    assert run(verb, "99") == (1, "", "rota: there is no job 99\n")
    assert run(verb, "x")[0] == 2
    assert run(verb)[0] == 2


def test_explain(desk, run):
    """The words of the scheduler; its numbers with --json."""
    code, out, _ = run("explain", "3")
    assert code == 0
    assert out == "job 3: waiting\nIt waits for 3 cores.\n"
    assert json.loads(run("explain", "3", "--json")[1])["start_median_s"] == 250
    assert run("explain", "3-4")[0] == 2


# --------------------------------------------------------------------------------------------------------------------------- logs


def test_logs_are_bytes(desk, capfdbinary):
    """The output arrives byte for byte, whole, its last lines or none of them."""
    for arguments, expected in [
        ([], OUTPUT),
        (["--tail", "1"], b"last without end"),
        (["--tail", "2"], OUTPUT[6:]),
        (["--tail", "9"], OUTPUT),
        (["--tail", "0"], b""),
    ]:
        assert main(["logs", "1", *arguments]) == 0
        assert capfdbinary.readouterr() == (expected, b"")


def test_logs_of_a_program_that_never_ran(desk, capfdbinary):
    """There is no output, and the reason is told on standard error."""
    desk.output = b""
    desk.known[1] = job_of(1, "failed", exit_code=127, reason="tarin: no such program")
    for options in ([], ["-f"], ["--tail", "3"]):
        assert main(["logs", *options, "1"]) == 0
        assert capfdbinary.readouterr() == (b"", b"job 1: failed, tarin: no such program\n")
    desk.known[1] = job_of(1, "done", exit_code=0)
    assert main(["logs", "1"]) == 0
    assert capfdbinary.readouterr() == (b"", b"")


def test_logs_follow(desk, capfdbinary):
    """-f goes on until the job has ended, from the last lines if asked."""
    desk.output, desk.lines_to_come = b"a\nb\n", 2
    assert main(["logs", "-f", "--tail", "1", "1"]) == 0
    assert capfdbinary.readouterr().out == b"b\nmore\nmore\n"
    assert main(["logs", "--tail", "-1", "1"]) == 2


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"bc"]), max_size=30).map(b"".join), st.integers(0, 10))
def test_last_lines(data, lines):
    """The last lines of any bytes are those that splitting at newlines gives."""
    pieces = [piece for piece in re.split(rb"(?<=\n)", data) if piece]
    assert logs._tail(data, lines) == b"".join(pieces[len(pieces) - lines :] if lines < len(pieces) else pieces)


# -------------------------------------------------------------------------------------------------------- cancel, hold, release, wait


def test_cancel(desk, run):
    """Several jobs and ranges; one that refuses is told and the others are cancelled all the same."""
    desk.known[3] = job_of(3, "done")
    code, out, errors = run("cancel", "2-4", "6")
    assert (code, out, errors) == (1, "jobs 2, 4, 6: told to end\n", "rota: job 3 has ended\n")
    assert run("cancel", "--now", "7") == (0, "job 7: cancelled\n", "")
    code, out, _ = run("cancel", "1", "--json")
    assert [job["state"] for job in json.loads(out)["jobs"]] == ["stopping"]


def test_hold_and_release(desk, run):
    """A job is held and released."""
    assert run("hold", "1", "2") == (0, "jobs 1-2: held\n", "")
    assert run("release", "1,2") == (0, "jobs 1-2: waiting\n", "")


def test_jobs_by_name_and_type(desk, run):
    """--name, --type and --all stand for the jobs to which there is anything to do, and are counted first."""
    desk.known = {
        1: job_of(1, "running", name="a"),
        2: job_of(2, "held", name="a"),
        3: job_of(3, name="a", type="web"),
        4: job_of(4, name="b"),
        5: job_of(5, "done", name="a"),
    }
    assert run("hold", "--name", "a") == (0, "job 3: held\n", "1 job to hold\n")
    assert run("release", "--name", "a", "--type", "web") == (0, "job 3: waiting\n", "1 job to release\n")
    assert run("release", "--type", "train") == (0, "job 2: waiting\n", "1 job to release\n")
    assert run("cancel", "--all", "--name", "a", "--now") == (0, "jobs 1-3: cancelled\n", "3 jobs to cancel\n")
    assert run("cancel", "--all", "--now") == (0, "job 4: cancelled\n", "1 job to cancel\n")
    assert run("cancel", "--all") == (0, "", "0 jobs to cancel\n")
    code, out, _ = run("cancel", "--all", "--json")
    assert (code, json.loads(out)) == (0, {"jobs": [], "refused": []})
    assert desk.asked.count("change") == 5


def test_all_of_many_jobs(desk, run):
    """--all reads every page and changes them in one request."""
    desk.known = {number: job_of(number) for number in range(1, 2502)}
    assert run("hold", "--all") == (0, "jobs 1-2501: held\n", "2,501 jobs to hold\n")
    assert desk.asked.count("change") == 1


@pytest.mark.parametrize("verb", ["cancel", "hold", "release"])
def test_numbers_or_a_choice(verb, desk, run):
    """Numbers do not go with --name, --type or --all; one of them there must be; --all is written out."""
    for choice in (["--all"], ["--name", "a"], ["--type", "train"]):
        code, out, errors = run(verb, "1", *choice)
        assert (code, out) == (2, "")
        assert "ID: does not go with --name, --type or --all (got '1')" in errors
    assert "ID: is missing: give the number of a job, or several, or --name, --type or --all" in run(verb)[2]
    assert run(verb, "--al")[0] == run(verb, "-a")[0] == 2
    assert "change" not in desk.asked


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
def test_wait_ends_as_the_job(states, code, desk, run):
    """The exit code of the job, of several the first that is not 0; 125 if the job has none of its own."""
    desk.known = {number: job_of(number, state, exit_code=exit_code) for number, (state, exit_code) in enumerate(states, 1)}
    found, out, errors = run("wait", f"1-{len(states)}")
    assert (found, out) == (code, "")
    assert len(errors.splitlines()) == len(states)


def test_wait_json(desk, run):
    """One object at the end: the jobs and the exit code, also after the timeout."""
    desk.known = {1: job_of(1, "done", exit_code=0), 2: job_of(2, "failed", exit_code=5), 3: job_of(3)}
    code, out, _ = run("wait", "1-2", "--json")
    found = json.loads(out)
    assert (code, found["exit_code"], [job["state"] for job in found["jobs"]]) == (5, 5, ["done", "failed"])
    code, out, _ = run("wait", "1,3", "--timeout", "0.1s", "--json")
    found = json.loads(out)
    assert (code, found["exit_code"], [job["state"] for job in found["jobs"]]) == (124, 124, ["done", "waiting"])


def test_wait_gives_up(desk, run):
    """After the timeout it ends with 124."""
    began = time.monotonic()
    code, out, errors = run("wait", "1", "--timeout", "0.3s")
    assert (code, out) == (124, "")
    assert "not ended after the timeout: job 1: waiting" in errors
    assert 0.2 < time.monotonic() - began < 5


def test_wait_outlasts_a_restart(directory, run):
    """A scheduler that goes and comes back meanwhile keeps its jobs: waiting goes on."""
    before, later = Desk(), Desk()
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


# -------------------------------------------------------------------------------------------------------------------- plan-history


def test_plan_history(desk, run):
    """The list marks the plan in use; --use, --undo and --pin change it."""
    code, out, _ = run("plan-history")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if "in use" in line] == ["in"]
    assert run("plan-history", "--undo", "--pin")[0] == 0
    assert (desk.in_use, desk.pinned) == (2, True)
    code, out, _ = run("plan-history", "--use", "1", "--json")
    assert [plan["number"] for plan in json.loads(out)["plans"] if plan["in_use"] and plan["pinned"]] == [1]
    assert run("plan-history", "--undo") == (1, "", "rota: there is no plan before 1, the present one\n")
    assert run("plan-history", "--unpin")[0] == 0
    assert not desk.pinned
    assert run("plan-history", "--use", "9") == (1, "", "rota: there is no plan 9\n")
    assert run("plan-history", "--use", "1", "--undo")[0] == 2


# ---------------------------------------------------------------------------------------------------------------------------- top


def test_top_once(desk, run, monkeypatch):
    """One view as plain text: resources as bars, the rota, the types, the jobs in service, the load and the warnings."""
    monkeypatch.setenv("COLUMNS", "120")
    desk.pinned = True
    desk.known = {2: job_of(2, "running", run_s=250, name="[bold]x", argv=["sleep", "9"])}
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


def test_top_explains_the_load(desk, run, monkeypatch):
    """How sure the load is and what it was estimated from: after a few short jobs on an idle machine it may be far off."""
    basis = "the work that arrives, not what runs now: 12 jobs came and 12 ended in the last 20 s, beside 2 of each type as planned"
    monkeypatch.setattr(desk, "status", lambda: status_of(load=1.56, load_error=1.1, load_basis=basis, warnings=[]))
    monkeypatch.setenv("COLUMNS", "160")
    _, out, _ = run("top", "--once")
    assert "load 1.560 ± 2.2, planned 0.800" in out
    assert f"(load: {basis})" in out


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_top_fits_the_width(columns, desk, run, monkeypatch):
    """No line is wider than the terminal."""
    monkeypatch.setenv("COLUMNS", columns)
    desk.known = {2: job_of(2, "running", run_s=250, argv=["x" * 300])}
    assert max(map(len, run("top", "--once")[1].splitlines())) <= int(columns)


def test_types(desk, run):
    """What a job of each type needs, and how long it runs on average; needs alone with --json."""
    code, out, _ = run("types")
    assert code == 0
    assert [re.split(r"  +", line.strip()) for line in out.splitlines()[2:]] == [
        ["type", "needs", "runs on average"],
        ["train", "3 cores, 7 memory_gb", "1 min"],
        ["[red]web", "nothing", "1.0 s"],
    ]
    found = json.loads(run("types", "--json")[1])
    assert found["types"][0] == {"name": "train", "demand": {"cores": 3, "memory_gb": 7, "gpus": 0}}


def test_top_json(desk, run):
    """One object: the status and the jobs in service, as the messages have them."""
    desk.known = {2: job_of(2, "running", run_s=250), 3: job_of(3)}
    code, out, errors = run("top", "--json")
    found = json.loads(out)
    assert (code, errors, list(found)) == (0, "", ["status", "jobs"])
    assert Status.model_validate(found["status"]) == desk.status()
    assert [job["id"] for job in found["jobs"]] == [2]


def test_top_interval(desk, run):
    """An interval that would flood the scheduler is refused."""
    assert run("top", "--interval", "0")[0] == 2


# ------------------------------------------------------------------------------------------------------- real processes and signals

PROGRAM = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from rota.cli.__main__ import run; run()"


@contextmanager
def start(*arguments: str, **options):
    """`rota …` as a process that hears Ctrl-C, and that is never left behind."""
    with subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], stderr=subprocess.PIPE, **options) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def until(asked, process) -> None:
    """Waits until the desk has been asked something."""
    end = time.monotonic() + 30
    while not asked():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(("arguments", "code"), [(["logs", "-f", "1"], 0), (["top", "--interval", "0.1"], 0), (["wait", "1"], 130)])
def test_an_interrupt(arguments, code, desk):
    """Ctrl-C ends a view quietly, and `rota wait` with 130 and a word about the job, which goes on."""
    desk.lines_to_come = 10**6
    with start(*arguments, stdout=subprocess.PIPE) as process:
        until(lambda: len(desk.asked) > 1, process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, b"Traceback" in errors) == (code, False)
    assert errors == (b"jobs go on without you; to end them: rota cancel 1\nrota: interrupted\n" if code else b"")


@pytest.mark.parametrize("arguments", [["logs", "-f", "1"], ["top", "--interval", "0.1"]])
def test_a_reader_that_leaves(arguments, desk):
    """`rota logs -f 1 | head` ends quietly."""
    desk.lines_to_come = 10**6
    with start(*arguments, stdout=subprocess.PIPE) as process:
        process.stdout.read(1)
        process.stdout.close()
        assert process.wait(timeout=30) == 0
        assert process.stderr.read() == b""


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
        before.enter_context(served(Desk(), directory))
        process = stack.enter_context(start("top", "--interval", "0.1", "--at", str(directory), stdout=theirs, env=environment))
        os.close(theirs)
        see(b"nMSR+backfill")
        assert shown.startswith(b"\x1b[?1049h")
        before.close()
        see(b"no scheduler answers")
        with served(Desk(), directory):
            see(b"\x1b[1mrota 1.2")
            process.send_signal(signal.SIGINT)
            see(b"\x1b[?1049l")
            assert process.wait(timeout=30) == 0
            assert process.stderr.read() == b""


def test_help_imports_nothing_heavy():
    """`rota --help` and the help of a verb load neither the client nor the messages."""
    text = "import sys; from rota.cli import main; main(['--help']); main(['submit', '--help']); print([m for m in sys.modules if {}])"
    text = text.format("m in ('httpx', 'fastapi', 'uvicorn', 'rota.live.messages', 'rota.live.http.client')")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, encoding="utf-8", timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# ------------------------------------------------------------------------------------------------------------- addresses and tokens


def test_addresses(desk, house, run, monkeypatch):
    """The scheduler is found by $ROTA_ADDRESS, by --at as a directory or a socket, and by $ROTA_DIR."""
    _, directory = house
    assert run("show", "1")[0] == 0
    monkeypatch.delenv("ROTA_ADDRESS")
    assert run("show", "1", "--at", str(directory))[0] == 0
    assert run("show", "1", "--at", f"unix:{directory}/rota.sock")[0] == 0
    monkeypatch.setenv("ROTA_DIR", str(directory))
    assert run("show", "1")[0] == 0


@pytest.mark.parametrize("address", ["127.0.0.1:7791", "server:80", "[::1]:80"])
def test_an_address_without_its_beginning(address, run, monkeypatch):
    """Host and port alone are no folder: the text says what was meant."""
    monkeypatch.setenv("ROTA_ADDRESS", address)
    code, _, errors = run("jobs")
    assert code == 2
    assert f"did you mean http://{address}?" in errors


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # httpcore leaves a socket that found nobody to the collector
def test_nobody_there(directory, run):
    """Without a scheduler every verb ends with 1 and says so."""
    for arguments in [["jobs"], ["top"], ["submit", "--type", "a", "--", "true"], ["wait", "1"], ["plan-history"]]:
        code, out, errors = run(*arguments[:1], "--at", str(directory), *arguments[1:])
        assert (code, out) == (1, "")
        assert errors.startswith("rota: ")
        assert "rota serve" in errors


def test_tokens(directory, run, monkeypatch):
    """A token is made, listed by its name and taken back; the file holds no token."""
    monkeypatch.delenv("ROTA_ADDRESS", raising=False)
    monkeypatch.setenv("ROTA_DIR", str(directory))
    code, out, errors = run("token", "add", "laptop")
    assert code == 0
    assert "not shown again" in errors
    assert run("token", "list") == (0, "laptop\n", "")
    assert not any(out.strip() in path.read_text() for path in directory.iterdir())
    assert run("token", "add", "laptop")[0] == 2
    for at in (str(directory), f"unix:{directory}/rota.sock"):
        assert json.loads(run("token", "list", "--at", at, "--json")[1]) == {"names": ["laptop"]}
    assert run("token", "remove", "laptop") == (0, "", "removed: laptop\n")
    assert run("token", "remove", "laptop")[0] == 2
    for at in (str(directory / "none"), "http://127.0.0.1:1"):
        assert run("token", "list", "--at", at)[0] == 2


# ----------------------------------------------------------------------------------------------------------------------- the words


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.0234, "23 ms"),
        (3.21, "3.2 s"),
        (9.96, "10 s"),
        (59.7, "1 min"),
        (250, "4 min 10 s"),
        (3599.6, "1 h"),
        (7500, "2 h 5 min"),
        (86399, "1 d"),
        (100 * 86400 + 4 * 3600, "100 d 4 h"),
    ],
)
def test_durations(seconds, text):
    """Durations are written for people, with two parts at most."""
    assert live_parts.duration(seconds) == text


@given(st.floats(0.01, 1e8))
def test_a_duration_reads_back(seconds):
    """What is written can be read, and is right to a twentieth."""
    assert live_parts.parse_duration(live_parts.duration(seconds), "it") == pytest.approx(seconds, rel=0.05)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=20, unique=True))
def test_numbers_read_back(ids):
    """Numbers of jobs written as ranges are the same numbers."""
    assert live_parts.parse_ids([live_parts.ids_text(ids)]) == ids
