"""The lifecycle: random events on a simulated machine, with late turns, daemons that die, starts that fail, supervisors that vanish."""

from __future__ import annotations

import ast
import inspect
import runpy
from collections import Counter
from copy import copy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

import rota
from live_service import plan_of
from rota.decide import seeded
from rota.events import EVENTS, End, Start, decode_event, encode_event
from rota.live import lifecycle as lifecycle_module
from rota.live import new_jobs as new_jobs_module
from rota.live import recovered as recovered_module
from rota.live import recovery
from rota.live.actions import Action, Do
from rota.live.errors import NoSuchJob, Refused
from rota.live.jobs import BEFORE_START, ENDED, IN_SERVICE, NEXT_STATES, Job, JobState, is_unwanted
from rota.live.lifecycle import Lifecycle
from rota.live.messages import JobRequest
from rota.live.processes.records import Attempt
from rota.live.resources.allocation import Allocation
from rota.live.stimuli import (
    At,
    AttemptOver,
    AttemptRunning,
    Change,
    ChangeJobs,
    HandedOver,
    PlanInstalled,
    Recovered,
    RetryStart,
    TimerRang,
)

BOOT = "this boot"
# `gpus` are numbered and kept by a suspended job, `cells` are counted and given back.
SYSTEM = rota.System(
    [6, 4], [[1, 0], [3, 1], [2, 2]], [0.3, 0.2, 0.1], [1.0, 1.0, 1.0], names=("small", "large", "wide"), resources=("cells", "gpus")
)
POLICIES = {
    "none": ("first-fit", "fcfs", "max-weight-np"),
    "suspend": ("max-weight", "first-fit"),
    "requeue": ("max-weight", "first-fit"),
}


class CheckedJob(Job):
    """A job that allows no step which the table of the states does not have."""

    __slots__ = ()

    def __setattr__(self, name, value):
        if name == "state" and hasattr(self, "state") and value != self.state:
            assert value in NEXT_STATES[self.state], f"job {self.id}: {self.state} → {value}"
        super().__setattr__(name, value)


def _copy(job, kind=Job):
    return kind(**{name: getattr(job, name) for name in Job.__slots__})


@dataclass
class OnMachine:
    """An attempt on the simulated machine."""

    demand: tuple[float, ...]
    gpus: frozenset[int]
    reported: bool = False
    suspended: bool = False
    asked_to_end: bool = False


class Machine(RuleBasedStateMachine):
    """A lifecycle, a database that is written in turns, and a machine that does what it is told, late."""

    @initialize(preemption=st.sampled_from(sorted(POLICIES)), data=st.data())
    def begin(self, preemption, data):
        """A server with nothing to do."""
        new_jobs_module.Job = CheckedJob
        self.preemption, self.time = preemption, 100.0
        live = {"preemption": preemption, "releasable": {"cells": True}} if preemption == "suspend" else {"preemption": preemption}
        self.live = live
        self.plan = plan_of(SYSTEM, data.draw(st.sampled_from(POLICIES[preemption])), **live)
        self.written, self.requests = {}, {}  # the database
        self.note, self.last = None, (0, 0)
        self.gathered, self.events, self.actions = {}, [], []  # what the next turn writes, and then does
        self.machine = {}  # attempts that are there
        self.records = {}  # attempts that are over and not forgotten, with what their records say
        self.begun = Counter()  # by attempt
        self.ends = Counter()  # by job
        self.retries, self.plans = [], 1
        self.lifecycle = self.new_lifecycle()
        self.handle(Recovered([], {}, None))

    def teardown(self):
        """Whatever happened, every job can be brought to an end."""
        if hasattr(self, "lifecycle"):
            self.finish_all()
        new_jobs_module.Job = Job

    def new_lifecycle(self):
        """A daemon that starts."""
        last_job, last_request = self.last
        return Lifecycle(
            self.plan,
            self.plans,
            seeded(np.random.SeedSequence(self.plans)),
            Allocation(self.plan.system, self.plan.live),
            boot=BOOT,
            find_ended=lambda id: self.gathered.get(id) or self.written.get(id),
            find_request=self.requests.__getitem__,
            last_job=max([last_job, *self.written]),
            last_request=max([last_request, *self.requests]),
        )

    def at(self):
        """Now."""
        return At(1e9 + self.time, self.time)

    def handle(self, event):
        """An event, as the executor would pass it on; what follows gathers."""
        outcome = self.lifecycle.handle(event, self.at())
        for numbered, logged in enumerate(outcome.events):
            line = encode_event(logged, numbered, self.at().wall)
            assert EVENTS[line["event"]] is type(logged)
            assert decode_event(line) == logged
            if isinstance(logged, Start):
                self.in_order(logged.job)
        self.requests |= outcome.requests
        self.actions = [action for action in self.actions if action not in outcome.withdrawn] + outcome.actions
        self.gathered |= outcome.changed | outcome.minor
        self.events += outcome.events
        return outcome

    def in_order(self, id):
        """Of each type the oldest waiting job starts first."""
        job = self.lifecycle.jobs.get(id)
        if job is None or job.state not in IN_SERVICE or (kind := self.lifecycle.scheduled_kind(job)) < 0:
            return  # of no type, or stopped again before it began
        for other in self.lifecycle.jobs.values():
            if other.state == JobState.WAITING and self.lifecycle.scheduled_kind(other) == kind:
                assert other.sequence > job.sequence, f"job {id} starts before {other.id}, which is older"

    # ------------------------------------------------------------------------------------------------------------ users

    @rule(type=st.sampled_from(SYSTEM.names), count=st.integers(1, 4), hold=st.booleans(), data=st.data())
    def submit(self, type, count, hold, data):
        """Jobs of a type, perhaps after others."""
        known = sorted(self.ids())
        after = data.draw(st.lists(st.sampled_from(known), max_size=2, unique=True)) if known else []
        any_end = data.draw(st.booleans())
        dependencies = {"after_any" if any_end else "after": after}
        self.ask(JobRequest(argv=["true"], type=type, hold=hold, array=(1, count) if count > 1 else None, **dependencies))

    @rule(cells=st.integers(4, 6), gpus=st.integers(0, 4))
    def submit_own(self, cells, gpus):
        """A job that no type encloses."""
        self.ask(JobRequest(argv=["true"], demand={"cells": cells, "gpus": gpus}))

    def ask(self, request):
        """A request is written down before it is accepted."""
        new = self.lifecycle.accept(request, "token", self.at())
        self.requests[new.request.id] = new.request
        self.written |= {job.id: copy(job) for job in new.jobs}
        self.handle(new)

    @rule(change=st.sampled_from(Change), now=st.booleans(), data=st.data())
    def change_one(self, change, now, data):
        """Cancel, hold or release any job that ever was, and one that never was."""
        id = data.draw(st.sampled_from([*sorted(self.ids()), 10_000]))
        try:
            job = self.lifecycle.changeable(change, id)
        except (NoSuchJob, Refused):
            return
        self.write_intended(change, [job], now)
        self.handle(ChangeJobs(change, [id], now))

    @rule(change=st.sampled_from(Change), now=st.booleans(), data=st.data())
    def change_several(self, change, now, data):
        """The same to several, together."""
        ids = data.draw(st.lists(st.sampled_from(sorted(self.ids()) or [1]), max_size=6, unique=True))
        jobs = []
        for id in ids:
            try:
                jobs.append(self.lifecycle.changeable(change, id))
            except (NoSuchJob, Refused):
                continue
        self.write_intended(change, jobs, now)
        self.handle(ChangeJobs(change, [job.id for job in jobs], now, together=True))

    def write_intended(self, change, jobs, now):
        """What is wanted is written down before it is done."""
        self.write()
        plain = [_copy(job) for job in jobs]
        self.written |= {job.id: job for job in self.lifecycle.intended(change, plain, now)}

    @rule(data=st.data())
    def install_plan(self, data):
        """Another policy."""
        self.plans += 1
        self.plan = plan_of(SYSTEM, data.draw(st.sampled_from(POLICIES[self.preemption])), **self.live)
        random = seeded(np.random.SeedSequence(self.plans))
        self.handle(PlanInstalled(self.plan, self.plans, random, "another", Allocation(self.plan.system, self.plan.live)))

    # ------------------------------------------------------------------------------------------------------------ turns and daemons

    def write(self):
        """The database is brought up to date."""
        for id, job in self.gathered.items():
            self.written[id] = _copy(job)
        for event in self.events:
            if isinstance(event, End):
                self.ends[event.job] += 1
                assert self.ends[event.job] == 1, f"job {event.job} ended twice"
        self.gathered, self.events = {}, []
        self.note = self.lifecycle.scheduler.save()
        self.last = self.lifecycle.last_job, self.lifecycle.last_request

    @rule()
    def turn(self):
        """What has gathered is written, then done."""
        self.write()
        actions, self.actions = self.actions, []
        self.handle(HandedOver(actions))
        for action in sorted(actions, key=lambda action: action.do != Do.SUSPEND):  # suspensions first, as the executor does
            self.carry_out(action)

    def carry_out(self, action):
        """An action, as the executor does it."""
        do, key = action.do, (action.job, action.attempt)
        if do == Do.FORGET:
            self.records.pop(key, None)
            return
        if do == Do.RETRY:
            self.retries.append(key)
            return
        if (job := self.lifecycle.due(action)) is None:
            return
        if do == Do.START and job.cancel:
            self.handle(AttemptOver(*key, Attempt("ended", boot=BOOT)))
        elif do == Do.START:
            self.begun[key] += 1
            assert self.begun[key] == 1, f"attempt {key} was begun twice"
            assert not any(other == action.job for other, _ in self.machine), f"job {action.job} runs twice"
            numbers = job.share.get("gpus")
            self.machine[key] = OnMachine(tuple(self.lifecycle.request(job).demand), frozenset(map(int, numbers or ())))
        elif key in self.machine:
            here = self.machine[key]
            if do == Do.SUSPEND:
                here.suspended = True
            elif do == Do.RESUME:
                here.suspended = False
            else:
                here.asked_to_end = True
                here.suspended = False

    @rule()
    def crash(self):
        """The daemon dies with what it had not written; the next one finds the machine as it is."""
        self.gathered, self.events, self.actions, self.retries = {}, [], [], []
        self.lifecycle = self.new_lifecycle()
        jobs = [_copy(job, CheckedJob) for id, job in sorted(self.written.items()) if job.state not in ENDED]
        found = {}
        for job in jobs:
            if job.sequence is not None and not is_unwanted(job):
                key = (job.id, job.attempt)
                seen = None if job.state == JobState.WAITING else self.look(key)
                found[job.id] = recovery._interpret(job, seen, BOOT, True, job.pid is not None)
        self.handle(Recovered(jobs, found, self.note))
        for id, (seen, _, _) in found.items():
            if seen is not None and seen.state == "lost":
                self.machine.pop((id, self.lifecycle.jobs[id].attempt), None)
                self.handle(AttemptOver(id, self.lifecycle.jobs[id].attempt, seen))

    def look(self, key):
        """What the record of an attempt says."""
        if key in self.records:
            return self.records[key]
        if (here := self.machine.get(key)) is not None:
            return Attempt("alive", supervisor=1, boot=BOOT, suspended=here.suspended)
        return Attempt("absent")

    # ------------------------------------------------------------------------------------------------------------ the machine

    @precondition(lambda self: self.machine)
    @rule(data=st.data())
    def report_running(self, data):
        """A supervisor has claimed its attempt."""
        self.report(data.draw(st.sampled_from(sorted(self.machine))))

    def report(self, key):
        """The supervisor of an attempt reports."""
        self.machine[key].reported = True
        self.handle(AttemptRunning(*key, supervisor=7))

    @precondition(lambda self: self.machine)
    @rule(code=st.sampled_from((0, 1, 137)), data=st.data())
    def attempt_ends(self, code, data):
        """A program ends, by itself or because it was asked to."""
        self.end(data.draw(st.sampled_from(sorted(self.machine))), code)

    def end(self, key, code=0):
        """The program of an attempt ends."""
        if not self.machine[key].reported:
            self.report(key)
        here = self.machine.pop(key)
        seen = Attempt("ended", supervisor=7, boot=BOOT, pid=8, exit_code=code, ended_boottime=self.time, asked_to_end=here.asked_to_end)
        self.records[key] = seen
        self.handle(AttemptOver(*key, seen))

    @precondition(lambda self: self.machine)
    @rule(data=st.data())
    def supervisor_lost(self, data):
        """A supervisor was killed, and its job with it."""
        key = data.draw(st.sampled_from(sorted(self.machine)))
        if not self.machine[key].reported:
            self.report(key)
        del self.machine[key]
        self.records[key] = Attempt("lost", supervisor=7, boot=BOOT)
        self.handle(AttemptOver(*key, self.records[key]))

    @precondition(lambda self: any(not here.reported for here in self.machine.values()))
    @rule(data=st.data())
    def start_fails(self, data):
        """No process was to be had: it is as if the start had never been."""
        key = data.draw(st.sampled_from(sorted(key for key, here in self.machine.items() if not here.reported)))
        del self.machine[key]
        self.begun[key] -= 1
        self.handle(AttemptOver(*key, Attempt("absent")))

    @precondition(lambda self: self.retries)
    @rule()
    def retry(self):
        """A while later."""
        self.handle(RetryStart(*self.retries.pop(0)))

    @rule(seconds=st.floats(0.0, 5.0))
    def wait(self, seconds):
        """Time passes; the policy's timer rings when it is due."""
        self.time += seconds
        if self.lifecycle.wake_boot <= self.time:
            self.handle(TimerRang())

    # ------------------------------------------------------------------------------------------------------------ laws

    def ids(self):
        """Every job that ever was."""
        return set(self.written) | set(self.lifecycle.jobs)

    @invariant()
    def fits_on_the_machine(self):
        """What is on the machine fits the server at every moment, and no device has two jobs."""
        if not hasattr(self, "machine"):
            return
        used, devices = np.zeros(2), Counter()
        for here in self.machine.values():
            kept = np.array([0.0, 1.0]) if here.suspended else 1.0
            used += np.array(here.demand) * kept
            devices.update(here.gpus)
        assert (used <= SYSTEM.capacity + 1e-9).all(), f"{used} of {SYSTEM.capacity}"
        assert all(count == 1 for count in devices.values()), f"devices {devices}"

    @invariant()
    def scheduler_agrees(self):
        """The scheduler has the jobs that wait or run, and what is free is what they leave."""
        if not hasattr(self, "lifecycle"):
            return
        scheduler = self.lifecycle.scheduler
        queued = {id for id, job in self.lifecycle.jobs.items() if job.state not in (JobState.HELD, JobState.BLOCKED)}
        assert set(scheduler.jobs) == queued
        held = sum((scheduler._table.held(entry, entry.state) for entry in scheduler.jobs.values()), np.zeros(2, dtype=np.int64))
        assert (scheduler.state.free == scheduler.state.capacity - held).all()
        assert (scheduler.state.free >= 0).all()

    @invariant()
    def what_is_written_is_true(self):
        """A job that is not among what the next turn writes is in the database as it is in memory."""
        if not hasattr(self, "lifecycle"):
            return
        for id, job in self.lifecycle.jobs.items():
            if id not in self.gathered:
                assert [getattr(job, name) for name in Job.__slots__] == [getattr(self.written[id], name) for name in Job.__slots__]

    @invariant()
    def one_attempt_each(self):
        """A job has at most one attempt on the machine, and none once it has ended."""
        if not hasattr(self, "machine"):
            return
        jobs = Counter(job for job, _ in self.machine)
        assert all(count == 1 for count in jobs.values())
        for id in jobs:
            assert id in self.lifecycle.jobs, f"job {id} has ended and runs"

    def finish_all(self):
        """Everything is let go; programs end; timers ring: every job comes to its end."""
        for _ in range(2000):
            if not self.lifecycle.jobs:
                assert not self.machine
                return
            if held := [job.id for job in self.lifecycle.jobs.values() if job.state == JobState.HELD]:
                self.handle(ChangeJobs(Change.RELEASE, held, together=True))
            self.turn()
            while self.retries:
                self.handle(RetryStart(*self.retries.pop()))
                self.turn()
            for key in sorted(self.machine):
                if not self.machine[key].suspended:
                    self.end(key)
            self.time = max(self.time + 0.5, min(self.lifecycle.wake_boot, self.time + 50.0))
            if self.lifecycle.wake_boot <= self.time:
                self.handle(TimerRang())
        raise AssertionError(f"jobs without a way out: {self.lifecycle.jobs}")


def test_the_laws_of_the_lifecycle():
    """Capacity, order, exactly once, what is written is true, and a way out for every job, under any order of events."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    run_state_machine_as_test(Machine, settings=settings(stateful_step_count=40, suppress_health_check=slow))


def test_every_state_has_a_way_out():
    """From every state an end can be reached, and from no end anything."""
    reached = set(ENDED)
    while more := {state for state, after in NEXT_STATES.items() if after & reached} - reached:
        reached |= more
    assert reached == set(JobState)
    assert all(not NEXT_STATES[end] for end in ENDED)
    assert set(NEXT_STATES) == set(JobState)
    assert BEFORE_START.isdisjoint(ENDED)


def test_it_knows_no_clock_and_no_machine():
    """The modules of the lifecycle import nothing that reads a clock, a file or the network, and nothing that waits."""
    forbidden = {"time", "os", "asyncio", "sqlite3", "socket", "subprocess", "threading", "pathlib", "signal", "random", "secrets"}
    for module in (lifecycle_module, recovered_module, new_jobs_module):
        tree = ast.parse(inspect.getsource(module))
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        assert not {name.partition(".")[0] for name in imported} & forbidden


def test_the_same_events_give_the_same_outcome():
    """Two lifecycles that are told the same, with the same times, say the same."""

    def outcomes():
        requests = {}
        lifecycle = Lifecycle(
            plan_of(SYSTEM, "max-weight", preemption="suspend", releasable={"cells": True}),
            1,
            seeded(np.random.SeedSequence(3)),
            Allocation(SYSTEM, plan_of(SYSTEM).live),
            boot=BOOT,
            find_ended=lambda id: None,
            find_request=requests.__getitem__,
        )
        found = [lifecycle.handle(Recovered([], {}, None), At(1.0, 1.0))]
        for k, type in enumerate(["small", "large", "wide", "small", "large"] * 3):
            new = lifecycle.accept(JobRequest(argv=["true"], type=type), "token", At(2.0 + k, 2.0 + k))
            requests[new.request.id] = new.request
            found.append(lifecycle.handle(new, At(2.0 + k, 2.0 + k)))
        return [(copy(outcome.actions), outcome.events, sorted(outcome.changed)) for outcome in found]

    assert outcomes() == outcomes()


def started(preemption: str, count: int, hand_over: bool) -> tuple[Lifecycle, dict]:
    """A lifecycle under MaxWeight with so many large jobs that it has started; `hand_over`: the starts are carried out."""
    requests: dict = {}
    plan = plan_of(SYSTEM, "max-weight", preemption=preemption, **({"releasable": {"cells": True}} if preemption == "suspend" else {}))
    lifecycle = Lifecycle(
        plan,
        1,
        seeded(np.random.SeedSequence(3)),
        Allocation(SYSTEM, plan.live),
        boot=BOOT,
        find_ended=lambda id: None,
        find_request=requests.__getitem__,
    )
    lifecycle.handle(Recovered([], {}, None), At(1.0, 1.0))
    outcome = arrive(lifecycle, requests, "large", count)
    if hand_over:
        lifecycle.handle(HandedOver(outcome.actions), At(2.0, 2.0))
    return lifecycle, requests


def arrive(lifecycle, requests, type, count):
    """So many jobs of a type are submitted together."""
    new = lifecycle.accept(JobRequest(argv=["true"], type=type, array=(1, count)), "token", At(2.0, 2.0))
    requests[new.request.id] = new.request
    return lifecycle.handle(new, At(2.0, 2.0))


@pytest.mark.parametrize("preemption", ["suspend", "requeue"])
def test_a_cancelled_job_that_the_policy_stops_keeps_ending(preemption):
    """It is not suspended or requeued on its way to the end, and nothing starts on what it still holds."""
    lifecycle, requests = started(preemption, 2, hand_over=True)
    lifecycle.handle(ChangeJobs(Change.CANCEL, [2]), At(3.0, 3.0))
    outcome = arrive(lifecycle, requests, "small", 20)  # MaxWeight wants six small ones now
    assert lifecycle.jobs[2].state == JobState.STOPPING
    assert not [action for action in outcome.actions if action.job == 2]
    assert lifecycle.jobs[1].state == (JobState.SUSPENDED if preemption == "suspend" else JobState.STOPPING)
    running = sum(job.state == JobState.STARTING for job in lifecycle.jobs.values())
    assert running == (3 if preemption == "suspend" else 0)  # the cells of job 2 are not free yet
    lifecycle.handle(AttemptOver(2, 1, Attempt("ended", boot=BOOT, pid=9, exit_code=143, asked_to_end=True)), At(4.0, 4.0))
    assert 2 not in lifecycle.jobs
    assert sum(job.state == JobState.STARTING for job in lifecycle.jobs.values()) > running


def test_a_job_cancelled_before_its_start_was_carried_out():
    """If the policy takes its start back it ends at once: it waits for nothing."""
    lifecycle, requests = started("suspend", 2, hand_over=False)
    lifecycle.handle(ChangeJobs(Change.CANCEL, [2]), At(3.0, 3.0))
    outcome = arrive(lifecycle, requests, "small", 20)
    assert [ended.job.id for ended in outcome.ended] == [2]
    assert Action(Do.START, 2, 1) in outcome.withdrawn
    assert End(2, "cancelled", None, outcome.ended[0].job.response_s, None) in outcome.events


def test_the_diagram_shows_every_step():
    """The picture in the documentation has the steps of the table, no more and no fewer, and is the one that its program draws."""
    pictures = Path(__file__).parents[2] / "docs" / "pictures"
    drawn = runpy.run_path(str(pictures / "job_states.py"))
    assert drawn["steps"]() == {(str(state), str(after)) for state, then in NEXT_STATES.items() for after in then}
    assert drawn["svg"]() == (pictures / "job-states.svg").read_text(encoding="utf-8")
