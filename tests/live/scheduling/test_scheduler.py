"""The scheduler: the same decisions as the simulator where every order can be carried out, and honest ones where not."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from rota.decide import decider_of, seeded
from rota.live.jobs import JobState
from rota.live.scheduling.scheduler import OWN, Decision, Scheduler, list_order
from rota.model.workload import Chunk
from rota.policy import as_policy, preempts
from rota.simulation.run import Run
from rota.simulation.workload import Jobs, PoissonArrivals
from rota.views import View
from simulated_machine import play

N = 2000
SCRATCH = {"keys", "places"}  # of a decision function by jobs: empty in a copy
NAMES = ["arrive", "start", "preempt", "finish"]


def paper(load=0.8):
    """The system of the paper's example."""
    return rota.System(
        capacity=[20, 15, 50],
        demand=[[3, 7, 1], [4, 1, 1], [10, 1, 5]],
        arrival_rate=[1.0, 1.0, 1.0],
        service_rate=[1.0, 1.0, 1.0],
    ).scaled(load=load)


def some_jobs(system, n=N, seed=5):
    """Poisson arrivals, and those of the simulator under the same seed."""
    workload_seed, _ = np.random.SeedSequence(seed).spawn(2)
    chunk = next(iter(PoissonArrivals().chunks(system, workload_seed)))
    return Jobs(chunk.times[:n], chunk.kinds[:n], chunk.sizes[:n])


def rotas(system):
    """Rotas of every kind."""
    best = rota.system_load(system)
    for preemption, rate in (("full", 1.0), ("none", 0.05), ("setup", 0.5)):
        for backfill in (False, True):
            setup = 10.0 if preemption == "setup" else None
            yield rota.MSR(best.candidates, best.weights, preemption, rate, setup_rate=setup, backfill=backfill)


def looking_at_queues(system):
    """Improved rotas of every kind, and queue-driven ones that hold a goal, grow freely, or start the oldest first."""
    best = rota.system_load(system)
    for msr in rotas(system):
        if not msr.backfill:
            yield rota.Improved(msr)
            if msr.preemption != "full":
                yield rota.Improved(msr, backfill=True)
    for options in ({"full": 0.8, "cap": 1.5, "waive": 3.0}, {"slack": 1.0, "free": 5.0}, {"full": 0.9, "order": "arrival"}):
        yield rota.Adaptive(best.candidates, **options)


POLICIES = ["fcfs", "first-fit", "easy", "max-weight", "max-weight-np", rota.RandomizedTimers(rate=1.0), *rotas(paper())]
POLICIES += looking_at_queues(paper())


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p if isinstance(p, str) else rota.policy.policy_name(p))
def test_same_machine_code_as_the_simulator(policy):
    """The state has the types that it has in the simulator, at first, with more jobs and in a copy: decisions are compiled once."""
    system, policy = paper(), as_policy(policy)
    run = Run(system, decider_of(system, policy), np.random.SeedSequence(1), batch_jobs=100)
    run.feed(Chunk(np.zeros(1), np.zeros(1, dtype=np.int64), np.ones(1), np.ones(1)))
    scheduler = Scheduler(system, policy, seeded(np.random.SeedSequence(1)), stop="suspend")
    for jobs in (0, 1, 1000):
        for id in range(len(scheduler.jobs), jobs):
            scheduler.put(id, id % 3)
        for one in (scheduler, scheduler.copy()):
            assert View(one.state, target=one.target).type == View(run.state, target=run.target).type


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p if isinstance(p, str) else rota.policy.policy_name(p))
def test_same_decisions_as_the_simulator(policy):
    """Event for event, the scheduler starts, stops and ends the jobs that the simulator does."""
    system, policy = paper(), as_policy(policy)
    jobs = some_jobs(system)
    result = rota.simulate(system, policy, workload=jobs, seed=5, jobs=N, log_jobs=N)
    simulated = [(row["time"], row["event"], row["job"]) for row in result.log.to_dicts()]
    played = [(time, NAMES[what], job) for time, what, _, job in play(system, policy, jobs, 5)]
    assert len(simulated) > 2.9 * N  # the simulator's log ends with the last arrival
    for ours, theirs in zip(played, simulated, strict=False):
        assert ours[1:] == theirs[1:]
        assert ours[0] == pytest.approx(theirs[0], rel=1e-12)


# ---------------------------------------------------------------------------------------------------------------- laws


def server():
    """Two resources, three types; a stopped job gives back one of the resources, or both, or none."""
    return rota.System(
        capacity=[8, 16],
        demand=[[1, 4], [3, 2], [8, 6]],
        arrival_rate=[1.0, 0.5, 0.2],
        service_rate=[1.0, 1.0, 2.0],
        resources=["cores", "memory"],
    )


def rows():
    """One resource in powers of two, as ServerFilling needs it."""
    return rota.System(capacity=[8], demand=[[1], [2], [8]], arrival_rate=[1.0, 1.0, 0.1], service_rate=[1.0, 1.0, 1.0])


CANDIDATES = [[3, 1, 0], [0, 2, 0], [0, 0, 1]]
RESTLESS = ["fcfs", "first-fit", "easy", "max-weight", "max-weight-np", "server-filling"]  # never idle while a job of a type waits


def some_policies():
    """Every policy by name, rotas of every kind included; two for each that preempts, so that plans can change."""
    found = {name: as_policy(name) for name in RESTLESS} | {"randomized-timers": rota.RandomizedTimers(rate=2.0)}
    for preemption in ("full", "none", "setup"):
        for backfill in (False, True):
            setup = {"setup_rate": 5.0} if preemption == "setup" else {}
            rota_ = rota.MSR(CANDIDATES, [0.5, 0.3, 0.2], preemption, 1.0, backfill=backfill, **setup)
            found[rota.policy.policy_name(rota_)] = rota_
    found["nMSR skip"] = rota.MSR(CANDIDATES, [0.5, 0.3, 0.2], "none", 1.0, empty_slots="skip")
    found["nMSR early"] = rota.MSR(CANDIDATES, [0.2, 0.3, 0.5], "none", 1.0, opening="early", route="parallel")
    return found


EVERY = some_policies()


LEAVING = {"end": ("running", "suspended", "stopping"), "withdraw": ("waiting",)}


class Watched:
    """A scheduler whose every order is checked against the laws, with what its jobs do in a dictionary of its own."""

    def __init__(self, system, policy, stop, releasable):
        self.system, self.policy, self.stop, self.releasable = system, policy, stop, releasable
        self.scheduler = Scheduler(system, policy, seeded(np.random.SeedSequence(3)), stop=stop, releasable=releasable)
        self.states, self.next, self.now, self.swaps = {}, 1, 0.0, 0
        self.obey(self.scheduler.begin(0.0))

    def of(self, *states):
        """Jobs in one of these states."""
        return [id for id, state in self.states.items() if state in states]

    def types(self, *states):
        """Those of them that the policy knows."""
        return [id for id in self.of(*states) if self.scheduler.jobs[id].kind != OWN]

    # -------------------------------------------------------------------------------------------------------- what can happen

    def play(self, what, number):
        """One event; nothing where it cannot happen now."""
        self.now += 0.1
        if what == "arrive":
            kind = number % len(self.system.names)
            self.add(kind)
        elif what == "arrive own":
            self.add(OWN, demand=np.array([1 + number % units for units in self.scheduler.state.capacity.tolist()]))
        elif what in LEAVING and (ids := self.of(*LEAVING[what])):
            self.remove(ids[number % len(ids)])
        elif what == "stopped" and (ids := self.of("stopping")):
            id = ids[number % len(ids)]
            self.states[id] = "waiting"
            self.obey(self.scheduler.stopped(id, self.now))
        elif what == "tick" and np.isfinite(self.scheduler.wake):
            self.now = max(self.now, self.scheduler.wake)
            self.obey(self.scheduler.tick(self.now))
        elif what == "look again":
            self.obey(self.scheduler.look_again(self.now))
        elif what == "swap":
            self.swap(number)
        elif what == "copy":
            self.copy()
        elif what == "restart":
            self.restart()

    def add(self, kind, demand=None):
        """A job comes."""
        id, self.next = self.next, self.next + 1
        self.states[id] = "waiting"
        self.obey(self.scheduler.arrive(id, kind, self.now, demand=demand, estimate=1.0 + id % 3))

    def remove(self, id):
        """A job leaves."""
        del self.states[id]
        self.obey(self.scheduler.leave(id, self.now))

    def swap(self, number):
        """Another plan, or the same anew: with another policy, other rules of stopping, and other resources that a stop releases."""
        if number % 2 and self.stop != "none":
            self.stop = ("suspend", "requeue")[number // 2 % 2]
            self.releasable = [bool(number // 4 >> r & 1) for r in range(len(self.system.capacity))]
        names = [name for name in EVERY if name != "server-filling" and (self.stop != "none" or not preempts(EVERY[name]))]
        if len(self.system.capacity) > 1:
            self.policy = EVERY[names[number % len(names)]]
        self.swaps += 1
        rules = {"stop": self.stop, "releasable": self.releasable}
        orders = self.scheduler.swap(self.system, self.policy, seeded(np.random.SeedSequence([7, self.swaps])), self.now, **rules)
        assert not orders.stop  # no running job is touched by a change of plan
        self.obey(orders)

    def copy(self):
        """The copy goes on alone, the original stays as it was, and then decides the same."""
        twin, before = self.scheduler.copy(), self.scheduler.copy()
        kept = self.of("waiting", "running", "suspended", "stopping")
        orders = twin.arrive(10**6, 0, self.now)
        twin.leave(10**6, self.now + 1)
        for id in kept:
            twin.leave(id, self.now + 2)
        assert not twin.jobs
        assert {id: job.state for id, job in self.scheduler.jobs.items()} == self.states
        for name, mine in self.scheduler.state._asdict().items():
            if isinstance(mine, np.ndarray) and name not in SCRATCH:
                np.testing.assert_array_equal(mine, getattr(before.state, name))
        assert before.arrive(10**6, 0, self.now) == orders

    def restart(self):
        """Another scheduler goes on with what the policy remembered."""
        old = self.scheduler
        saved = json.loads(json.dumps(old.save()))
        self.scheduler = Scheduler(self.system, self.policy, seeded(np.random.SeedSequence(4)), stop=self.stop, releasable=self.releasable)
        for job in sorted(old.jobs.values(), key=lambda job: list_order(job.state, job.sequence)):
            demand = job.demand if job.kind == OWN else None
            self.scheduler.put(job.id, job.kind, estimate=job.estimate, demand=demand, sequence=job.sequence, state=job.state)
        np.testing.assert_array_equal(self.scheduler.state.free, old.state.free)
        self.scheduler.remember(saved)
        self.obey(self.scheduler.look_again(self.now))

    # -------------------------------------------------------------------------------------------------------- what must hold

    def obey(self, orders):
        """What was ordered is done, and the laws hold."""
        for ids, was, becomes in (
            (orders.stop, "running", "suspended" if self.stop == "suspend" else "stopping"),
            (orders.resume, "suspended", "running"),
            (orders.start, "waiting", "running"),
        ):
            for id in ids:
                assert self.states[id] == was
                self.states[id] = becomes
        assert not orders.stop or (self.stop != "none" and preempts(self.policy))
        assert {id: job.state for id, job in self.scheduler.jobs.items()} == self.states
        self.check_lists()
        self.check_room(orders)
        self.check_progress()

    def held(self, id):
        """What a job holds, by its state and nothing else."""
        job = self.scheduler.jobs[id]
        kept = [0 if gives_back else 1 for gives_back in self.releasable]
        return job.demand * {"waiting": 0, "running": 1, "stopping": 1, "suspended": np.array(kept)}[self.states[id]]

    def check_lists(self):
        """The lists of each type are whole, begin with those that run, and then have the suspended ones; those that wait are in order."""
        s, scheduler = self.scheduler.state, self.scheduler
        for i in range(len(self.system.names)):
            jobs, place, before = [], int(s.oldest[i]), -1
            while place >= 0:
                assert s.older[place] == before
                jobs.append(scheduler._table.by_place[place])
                assert jobs[-1].place == place
                place, before = int(s.newer[place]), place
            assert s.newest[i] == before
            assert len(jobs) == s.system[i] == sum(job.kind == i for job in scheduler.jobs.values())
            waiting = [job for job in jobs if job.state == "waiting"]
            assert [job.sequence for job in waiting] == sorted(job.sequence for job in waiting)
            assert "suspended" not in [job.state for job in jobs[jobs.index(waiting[0]) :]] if waiting else True  # who has begun goes on
            running = [job.state == "running" for job in jobs]
            assert running == sorted(running, reverse=True)  # the running ones are the oldest
            assert sum(running) == s.running[i]
            assert s.first_waiting[i] == (jobs[sum(running)].place if sum(running) < len(jobs) else -1)
            assert list(scheduler.waiting(i)) == [job.id for job in jobs[sum(running) :]]

    def check_room(self, orders):
        """No more is in service than there is, what suspended jobs keep is given to nobody, and nobody is stopped for nothing.

        Only what other plans let suspended jobs give back can make the whole more than there is.
        """
        s = self.scheduler.state
        nothing = np.zeros(len(s.capacity), dtype=np.int64)
        used = sum((self.held(id) for id in self.states), start=nothing)
        assert (sum((self.held(id) for id in self.of("running", "stopping")), start=nothing) <= s.capacity).all()
        assert (used <= s.capacity).all() or (self.swaps and self.of("suspended"))
        for id in orders.start:
            assert (used <= s.capacity)[self.scheduler.jobs[id].demand > 0].all()
        np.testing.assert_array_equal(s.free, s.capacity - used)
        if orders.stop:  # nobody is stopped for nothing: what was decided fits as soon as those who are stopping are gone
            want = np.minimum(self.scheduler.target, s.system)
            beside = [self.held(id) for id in self.states if self.scheduler.jobs[id].kind == OWN]
            beside += [self.held(id) for id in self.types("suspended")]
            assert (want @ s.demand + sum(beside, start=0 * used) <= s.capacity).all()
            if not self.of("stopping"):
                np.testing.assert_array_equal(s.running, want)

    def check_progress(self):
        """A server that does nothing though jobs of types are there has a policy that waits for its own clock."""
        if self.types("waiting", "suspended") and not self.of("running", "stopping"):
            assert rota.policy.policy_name(self.policy) not in RESTLESS
            assert np.isfinite(self.scheduler.wake)


EVENTS = ["arrive"] * 6 + ["end"] * 4 + ["tick"] * 4 + ["stopped"] * 2 + ["arrive own", "withdraw", "swap", "copy", "restart", "look again"]
STOPS = ["none", "suspend", "requeue"]


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=12, deadline=None)
@given(
    events=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 99)), max_size=70), releases=st.tuples(st.booleans(), st.booleans())
)
def test_laws(name, stop, events, releases):
    """Whatever happens: nothing is given twice, lists are in order, nobody is stopped for nothing, and the server does not fall asleep."""
    policy = EVERY[name]
    system = rows() if name == "server-filling" else server()
    if stop == "none" and preempts(policy):
        with pytest.raises(rota.BadSpec, match="preemption is 'none'"):
            Scheduler(system, policy, seeded(np.random.SeedSequence(3)))
        return
    watched = Watched(system, policy, stop, releases[: len(system.capacity)])
    for what, number in events:
        watched.play(what, number)
    while watched.states:  # and everything comes to its end
        watched.play("stopped" if watched.of("stopping") else "end" if watched.of("running") else "tick", 0)


# ---------------------------------------------------------------------------------------------------------------- examples


def machine(*demand, memory=10):
    """Two cores and some memory; each type comes at its own rate, so that MaxWeight can be steered by counts."""
    K = len(demand)
    return rota.System([2, memory], demand, [0.1] * K, [1.0] * K, resources=["cores", "memory"])


def floor_of(system, policy="max-weight", stop="suspend", releasable=(True, False)):
    """A scheduler that has begun."""
    scheduler = Scheduler(system, as_policy(policy), seeded(np.random.SeedSequence(1)), stop=stop, releasable=releasable)
    scheduler.begin(0.0)
    return scheduler


def test_memory_of_a_suspended_job_is_not_given_away():
    """MaxWeight would stop the one job for two others, but they need memory that it would keep: nobody is stopped."""
    scheduler = floor_of(machine([2, 6], [2, 6]))
    assert scheduler.arrive(1, 0, 0.0).start == [1]
    assert not scheduler.arrive(2, 1, 1.0)
    assert not scheduler.arrive(3, 1, 2.0)  # type 1 weighs more now
    assert scheduler.target.tolist() == [0, 1]
    assert scheduler.leave(1, 3.0).start == [2]


def test_cores_of_a_suspended_job_are_handed_on():
    """Where the memory is enough for both, the same decision is carried out, and the first job goes on later."""
    scheduler = floor_of(machine([2, 4], [2, 6]))
    scheduler.arrive(1, 0, 0.0)
    scheduler.arrive(2, 1, 1.0)
    orders = scheduler.arrive(3, 1, 2.0)
    assert (orders.stop, orders.start) == ([1], [2])
    assert scheduler.state.free.tolist() == [0, 0]
    orders = scheduler.leave(2, 3.0)
    assert (orders.resume, orders.start) == ([1], [])  # of equal weights the first


def test_what_is_kept_does_not_stop_the_server():
    """The job that should run needs memory that a suspended one keeps, and nothing else runs: so the suspended one goes on."""
    scheduler = floor_of(machine([2, 6], [2, 4], [2, 5]))
    scheduler.arrive(1, 0, 0.0)
    scheduler.arrive(2, 1, 1.0)
    assert scheduler.arrive(3, 1, 2.0).stop == [1]  # 2 runs beside the memory of 1
    for id in (4, 5, 6):
        assert not scheduler.arrive(id, 2, 3.0)  # type 2 is to run, and does not fit beside 1's memory
    assert scheduler.target.tolist() == [0, 0, 1]
    assert scheduler.leave(2, 4.0).resume == [1]
    assert scheduler.leave(1, 5.0).start == [4]


def cells():
    """Six cells; small jobs need one, large ones three and whole ones all."""
    return rota.System([6], [[1], [3], [6]], [1.0] * 3, [1.0] * 3, resources=["cells"])


def in_state(scheduler, state):
    """The jobs in a state."""
    return [job.id for job in scheduler.jobs.values() if job.state == state]


@pytest.mark.parametrize("restart", [False, True], ids=["swap", "new daemon"])
def test_suspended_jobs_that_keep_more_than_there_is(restart):
    """Seven jobs of twelve cells are suspended, and the next plan does not release cells: they go on as they fit, all the rest after."""
    scheduler = floor_of(cells(), releasable=[True])
    for kind, ids in ((0, range(1, 7)), (2, range(7, 60)), (1, range(100, 200))):
        for id in ids:
            scheduler.arrive(id, kind, 0.0)
    assert (in_state(scheduler, "running"), in_state(scheduler, "suspended")) == ([100, 101], [1, 2, 3, 4, 5, 6, 7])
    rules = {"stop": "requeue", "releasable": [False]}
    if restart:
        old, scheduler = scheduler, Scheduler(cells(), as_policy("max-weight"), seeded(np.random.SeedSequence(2)), **rules)
        for job in sorted(old.jobs.values(), key=lambda job: list_order(job.state, job.sequence)):
            scheduler.put(job.id, job.kind, sequence=job.sequence, state=job.state)
        assert not scheduler.begin(1.0)
    else:
        assert not scheduler.swap(cells(), as_policy("max-weight"), seeded(np.random.SeedSequence(2)), 1.0, **rules)
    assert scheduler.leave(100, 2.0).resume == [1, 2, 3]
    assert scheduler.leave(101, 3.0).resume == [4, 5, 6]
    for id in (1, 2, 3, 4, 5):
        assert not scheduler.leave(id, 4.0)  # job 7 needs all cells
    assert scheduler.leave(6, 5.0).resume == [7]
    assert scheduler.leave(7, 6.0).start == [102, 103]


def test_an_own_job_that_keeps_more_than_there_is():
    """The same with jobs that no type encloses."""
    scheduler = Scheduler(cells(), as_policy("max-weight"), seeded(np.random.SeedSequence(1)), stop="requeue", releasable=[False])
    for id in (1, 2):
        scheduler.put(id, OWN, demand=scheduler.units_of([4.0]), state=JobState.SUSPENDED)
    assert scheduler.begin(0.0).resume == [1]
    assert scheduler.leave(1, 1.0).resume == [2]


def test_who_was_stopped_waits_behind_the_suspended():
    """Job 1 was told to stop; jobs 2 and 3 were suspended under another plan: they go on before it, and free what they keep."""
    scheduler = Scheduler(cells(), as_policy("max-weight"), seeded(np.random.SeedSequence(1)), stop="requeue", releasable=[False])
    for id, state in ((1, JobState.STOPPING), (2, JobState.SUSPENDED), (3, JobState.SUSPENDED), (4, JobState.WAITING)):
        scheduler.put(id, 0, state=state)
    scheduler.put(10, OWN, demand=scheduler.units_of([3.0]), state=JobState.RUNNING)
    assert not scheduler.begin(0.0)  # nothing is free
    decision = scheduler.stopped(1, 1.0)
    assert (decision.resume, decision.start) == ([2, 3], [1])
    assert list(scheduler.waiting(0)) == [4]


@pytest.mark.parametrize("policy", ["fcfs", "first-fit", "easy", "max-weight-np"])
def test_a_plan_without_preemption_finishes_what_another_suspended(policy):
    """Whoever was suspended under the old plan goes on first, though the new one would not know how it fits."""
    system = machine([2, 6], [2, 4])
    scheduler = floor_of(system)
    for id, kind in ((1, 0), (2, 1), (3, 1)):
        scheduler.arrive(id, kind, 0.0)
    assert scheduler.jobs[1].state == "suspended"
    assert not scheduler.swap(system, as_policy(policy), seeded(np.random.SeedSequence(2)), 1.0)
    assert scheduler.leave(2, 2.0).resume == [1]


@pytest.mark.parametrize("stop", STOPS)
def test_a_plan_without_preemption_stops_nobody(stop):
    """After a change to a rota that does not preempt, jobs that it has no place for run to their end."""
    system = server()
    scheduler = Scheduler(system, EVERY["first-fit"], seeded(np.random.SeedSequence(1)), stop=stop)
    scheduler.begin(0.0)
    scheduler.arrive(1, 2, 0.0)
    assert not scheduler.swap(system, EVERY["nMSR"], seeded(np.random.SeedSequence(2)), 1.0)
    assert scheduler.arrive(2, 0, 2.0) == Decision()
    assert scheduler.leave(1, 3.0).start == [2]


def test_a_stopping_job_holds_everything_until_it_is_gone():
    """With requeue, the successor starts when the job has left, and the job waits before the younger ones of its type."""
    scheduler = floor_of(machine([2, 4], [2, 6]), stop="requeue")
    for id, kind in ((1, 0), (2, 1), (3, 1)):
        orders = scheduler.arrive(id, kind, 0.0)
    assert (orders.stop, orders.start) == ([1], [])
    assert (scheduler.state.free * scheduler.unit).tolist() == [0, 6]
    assert scheduler.stopped(1, 2.0).start == [2]
    scheduler.arrive(4, 0, 3.0)
    assert list(scheduler.waiting(0)) == [1, 4]


def test_expected_ends_outlive_a_change_of_plan():
    """EASY plans with the same ends of the running jobs before and after."""
    system = machine([1, 1], [2, 2])
    scheduler = floor_of(system, "easy", "none")
    scheduler.arrive(1, 0, 0.0, estimate=10.0)
    scheduler.arrive(2, 1, 1.0, estimate=1.0)  # reserved for time 10
    scheduler.swap(system, as_policy("easy"), seeded(np.random.SeedSequence(2)), 2.0)
    assert not scheduler.arrive(3, 0, 3.0, estimate=8.0)  # would end at 11
    assert not scheduler.arrive(4, 0, 4.0, estimate=5.0)  # of the same type, so behind job 3
    assert scheduler.leave(3, 4.5).start == [4]  # ends at 9.5


def test_own_jobs_start_where_there_is_room():
    """Jobs that no type encloses start when the policy has decided, in their order, and hold what they need."""
    scheduler = floor_of(machine([1, 4]), "fcfs", "none")
    assert scheduler.arrive(1, OWN, 0.0, demand=scheduler.units_of([1, 8])).start == [1]
    assert not scheduler.arrive(2, 0, 1.0)
    assert scheduler.arrive(3, OWN, 2.0, demand=scheduler.units_of([1, 2])).start == [3]
    assert scheduler.leave(1, 3.0).start == [2]


def test_a_job_is_put_only_once():
    """The same number twice is a mistake of the caller."""
    scheduler = floor_of(machine([1, 1]))
    scheduler.put(1, 0)
    with pytest.raises(ValueError, match="job 1 is on the scheduler already"):
        scheduler.put(1, 0)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p if isinstance(p, str) else rota.policy.policy_name(p))
def test_more_is_held_than_there_is(policy):
    """A server that was larger when its jobs started: nobody starts until enough of them have ended, and then everybody does."""
    policy = as_policy(policy)
    scheduler = Scheduler(paper(), policy, seeded(np.random.SeedSequence(1)), stop="requeue" if preempts(policy) else "none")
    for id in (1, 2):
        scheduler.put(id, OWN, demand=scheduler.units_of([20, 15, 50]), state="running")
    scheduler.begin(0.0)
    for id, kind in enumerate([0, 1, 2], start=3):
        assert not scheduler.arrive(id, kind, 0.1 * id)
    assert not scheduler.leave(1, 1.0)
    assert (scheduler.state.free == 0).all()
    started, now = scheduler.leave(2, 2.0).start, 2.0
    while len(started) < 3 and now < 1e4:
        running = [id for id, job in scheduler.jobs.items() if job.state == "running"]
        now = scheduler.wake if np.isfinite(scheduler.wake) else now + 1.0
        orders = scheduler.tick(now) if np.isfinite(scheduler.wake) else scheduler.leave(running[0], now)
        assert not orders.stop or preempts(policy)
        started += orders.start
        for id in orders.stop:
            started += scheduler.stopped(id, now).start
    assert set(started) == {3, 4, 5}
