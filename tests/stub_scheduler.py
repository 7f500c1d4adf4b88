"""A scheduler of a few fixed answers behind the real HTTP interface, for tests of what speaks to one; and `rota` as a process beside it."""

import asyncio
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import rota
from rota.live.errors import NoSuchJob, NoSuchPlan, Refused
from rota.live.http.api import make_app
from rota.live.http.server import serve_http
from rota.live.messages import ENDED, Changed, Explanation, Job, JobRequest, PlanVersion, ResourceUse, Status, Submitted, TypeStatus

OUTPUT = b"first\n\xff\x00\x1b[31mraw\r\nlast without end"
PROGRAM = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from rota.cli.__main__ import run; run()"


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


class StubScheduler:
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
def served(stub: StubScheduler, directory: Path):
    """It stands behind the real HTTP interface on the socket of a state directory, in a thread."""
    ready, loop, stop = threading.Event(), asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with serve_http(make_app(stub, trusted=True), unix=directory / "rota.sock"):
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
    """Waits until the stub has been asked something."""
    end = time.monotonic() + 30
    while not asked():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.02)
