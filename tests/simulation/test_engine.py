"""The laws of the engine, read off its log for every policy: capacity, no job lost, order within a type, work conserved."""

import math
from collections import defaultdict

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from reference_simulator import ARRIVE, FINISH, PREEMPT, START, Given, engine_log, jobs_for
from rota.decide import decider_of, fits_one
from rota.model.workload import Chunk
from rota.policy import preempts
from rota.simulation.run import Run
from rotas import PREEMPTIONS, systems_and_rotas

POLICIES = {
    "fcfs": rota.FCFS(),
    "first-fit": rota.FirstFit(),
    "easy": rota.EASY(),
    "max-weight": rota.MaxWeight(),
    "max-weight-np": rota.MaxWeight("none"),
    "timers": rota.RandomizedTimers(rate=1.0),
    "rota": None,
    "rota with backfilling": None,
}


@st.composite
def cases(draw, policy):
    """A system, a policy (a random rota where none is given) and jobs."""
    system, msr = draw(systems_and_rotas(draw(st.sampled_from(PREEMPTIONS))))
    types = [i for i, most in enumerate(msr.candidates.max(axis=0)) if most]
    name = "rota with backfilling" if policy == "rota with backfilling" else policy
    chosen = POLICIES[name] or msr.replace(backfill=name != "rota")
    return system, chosen, draw(jobs_for(types, most=20))


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=25)
@given(data=st.data(), seed=st.integers(0, 1000))
def test_laws(name, data, seed):
    """Under every policy:

    time goes forward; every job arrives, starts and finishes once, with preemptions and resumptions in turn; what runs fits the server;
    within a type jobs start for the first time in order of arrival; each job is served for exactly its size; and a policy that does not
    preempt never does.
    """
    system, policy, jobs = data.draw(cases(name))
    log = engine_log(system, policy, jobs, seed)
    assert [entry[0] for entry in log] == sorted(entry[0] for entry in log)
    running, began, first_start = set(), {}, defaultdict(list)
    service, state = defaultdict(float), {}
    allowed = {ARRIVE: None, START: "waits", PREEMPT: "runs", FINISH: "runs"}
    for k, (time, kind, i, job) in enumerate(log):
        assert state.get(job) == allowed[kind]
        assert jobs.jobs[job][1] == i
        state[job] = {ARRIVE: "waits", START: "runs", PREEMPT: "waits", FINISH: "done"}[kind]
        if kind == START:
            if job not in began:
                first_start[i].append(job)
            began[job] = time
            running.add(job)
        elif kind in (PREEMPT, FINISH):
            service[job] += time - began[job]
            running.remove(job)
        if k + 1 == len(log) or log[k + 1][0] > time:
            used = sum((system.demand[jobs.jobs[job][1]] for job in running), np.zeros(len(system.capacity)))
            assert (used <= system.capacity + 1e-9).all()
    assert [state[job] for job in range(len(jobs.jobs))] == ["done"] * len(jobs.jobs)
    assert all(started == sorted(started) for started in first_start.values())
    for job, (_, _, size, _) in enumerate(jobs.jobs):
        assert service[job] == pytest.approx(size, rel=1e-9, abs=1e-9)
    if not preempts(policy):
        assert all(kind != PREEMPT for _, kind, _, _ in log)


def test_preempted_jobs_resume_where_they_stopped():
    """A job of size 3 that is stopped at 1 by a larger crowd, and goes on at 2, is done at 4; the youngest yields first."""
    system = rota.System([2], [[1], [2]], [1, 1], [1, 1])
    log = engine_log(system, rota.ServerFilling(), Given(((0.0, 0, 3.0, 3.0), (0.5, 0, 3.0, 3.0), (1.0, 0, 1.0, 1.0))))
    assert [(time, job) for time, kind, _, job in log if kind == FINISH] == [(3.0, 0), (3.5, 1), (4.0, 2)]
    log = engine_log(system, rota.ServerFilling(), Given(((0.0, 0, 3.0, 3.0), (1.0, 1, 1.0, 1.0))))
    assert log == [
        (0.0, ARRIVE, 0, 0),
        (0.0, START, 0, 0),
        (1.0, ARRIVE, 1, 1),
        (1.0, PREEMPT, 0, 0),
        (1.0, START, 1, 1),
        (2.0, FINISH, 1, 1),
        (2.0, START, 0, 0),
        (4.0, FINISH, 0, 0),
    ]


def test_completions_come_before_arrivals():
    """A job that comes at the very time at which the server becomes free starts at once."""
    system = rota.System([1], [[1]], [1], [1])
    log = engine_log(system, rota.FCFS(), Given(((0.0, 0, 1.0, 1.0), (1.0, 0, 1.0, 1.0))))
    assert [(time, kind) for time, kind, _, _ in log] == [(0, ARRIVE), (0, START), (1, FINISH), (1, ARRIVE), (1, START), (2, FINISH)]


@settings(max_examples=15)
@given(jobs=jobs_for([0, 1], most=25), cuts=st.lists(st.integers(1, 24), max_size=5), batch=st.integers(1, 10))
def test_chunks_and_batches_do_not_change_events(jobs, cuts, batch):
    """The same jobs in chunks of any lengths, and with batches of any length, give the same log, bit by bit."""
    system = rota.System([3], [[1], [2]], [1, 1], [1, 1])
    policy = rota.RandomizedTimers(rate=2.0)
    cuts = [cut for cut in cuts if cut < len(jobs.jobs)]
    assert engine_log(system, policy, jobs, 3, cuts=cuts, batch_jobs=batch) == engine_log(system, policy, jobs, 3)


# ---------------------------------------------------------------------------------------------------------------- policies of one's own


def own_first_fit(state, target):
    """First-Fit as a user would write it."""
    K, R = state.demand.shape
    if state.event[0] == 2:  # a completion
        target[state.event[1]] -= 1
    for i in range(K):
        state.next_up[i] = state.first_waiting[i]
    for r in range(R):
        state.residual[r] = state.free[r]
    while True:
        best = -1
        for i in range(K):
            job = state.next_up[i]
            fits = job >= 0
            for r in range(R):
                fits = fits and state.demand[i, r] <= state.residual[r]
            if fits and (best < 0 or state.sequence[job] < state.sequence[state.next_up[best]]):
                best = i
        if best < 0:
            return math.inf
        target[best] += 1
        state.next_up[best] = state.newer[state.next_up[best]]
        for r in range(R):
            state.residual[r] -= state.demand[best, r]


def own_first_fit_with_a_set(state, target):
    """First-Fit by means that numba does not know: sorted() with a key, and f-strings of floats."""
    if state.event[0] == 2:
        target[state.event[1]] -= 1
    free = state.free.copy()
    waiting = []
    for i in range(len(target)):
        job = state.first_waiting[i]
        while job >= 0:
            waiting.append({"sequence": state.sequence[job], "type": i, "why": f"{state.clock[0]:.3f}"})
            job = state.newer[job]
    for job in sorted(waiting, key=lambda job: job["sequence"]):
        if (state.demand[job["type"]] <= free).all():
            free -= state.demand[job["type"]]
            target[job["type"]] += 1
    return math.inf


def in_turns(state, target):
    """One type at a time, for one unit of time each."""
    if state.event[0] in (0, 3):
        state.counters[0] += 1
        state.memory[0] = state.clock[0] + 1.0
    for i in range(len(target)):
        target[i] = 1 if (state.counters[0] - 1) % len(target) == i else 0
    return state.memory[0]


SYSTEM = rota.System([4, 3], [[1, 1], [2, 1], [3, 2]], [1, 1, 1], [1, 1, 1])


def random_jobs(n, types=3, seed=0):
    """Random jobs at a high load."""
    rng = np.random.default_rng(seed)
    sizes = rng.standard_exponential(n)
    return Given(tuple(zip(np.cumsum(rng.random(n)).tolist(), rng.integers(0, types, n).tolist(), *[sizes.tolist()] * 2, strict=True)))


@pytest.fixture(scope="module")
def built_in():
    """The built-in First-Fit on some jobs."""
    return engine_log(SYSTEM, rota.FirstFit(), random_jobs(60))


@pytest.mark.parametrize("compiled", [True, False, None])
def test_own_policy_is_as_good_as_built_in(compiled, built_in):
    """First-Fit by a user, compiled or plain, gives the log of the built-in one."""
    assert engine_log(SYSTEM, rota.Custom(own_first_fit, compiled=compiled), random_jobs(60)) == built_in


def test_own_policy_that_cannot_be_compiled(built_in):
    """A function that numba cannot compile runs as plain Python, unless compilation was asked for."""
    assert engine_log(SYSTEM, rota.Custom(own_first_fit_with_a_set), random_jobs(60)) == built_in
    with pytest.raises(numba.core.errors.UnsupportedBytecodeError):
        engine_log(SYSTEM, rota.Custom(own_first_fit_with_a_set, compiled=True), random_jobs(60))


@pytest.mark.parametrize("compiled", [True, False])
def test_own_policy_with_a_timer(compiled):
    """Three types in turns of one unit: type 0 runs from 0 to 1 and from 3 to 3.5, type 1 from 1 to 1.5, type 2 has no jobs."""
    log = engine_log(SYSTEM, rota.Custom(in_turns, compiled=compiled), Given(((0.0, 0, 1.5, 1.5), (0.0, 1, 0.5, 0.5))))
    assert log == [
        (0.0, ARRIVE, 0, 0),
        (0.0, START, 0, 0),
        (0.0, ARRIVE, 1, 1),
        (1.0, PREEMPT, 0, 0),
        (1.0, START, 1, 1),
        (1.5, FINISH, 1, 1),
        (3.0, START, 0, 0),
        (3.5, FINISH, 0, 0),
    ]


def too_many(state, target):
    """All jobs at once, whatever fits."""
    for i in range(len(target)):
        target[i] = state.system[i]
    return math.inf


def negative(state, target):
    """Fewer than no job."""
    target[0] = -1
    return math.inf


def late(state, target):
    """Wants to be asked yesterday."""
    return state.clock[0] - 1.0


def generous(state, target):
    """More of the first type than there are, in words: as many as there can be."""
    target[0] = 4 if state.system[1] == 0 else 0
    target[1] = 0 if state.system[1] == 0 else 1
    return math.inf


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("decide", "rule"),
    [(too_many, "more jobs than fit the server"), (negative, "a negative number of jobs"), (late, "not later than now")],
    ids=["too many", "negative", "late"],
)
def test_wrong_decisions_are_refused(decide, rule, compiled):
    """A decision that does not fit, is negative, or asks for a time that has passed ends the simulation with the reason."""
    with pytest.raises(rota.Infeasible, match=rule):
        engine_log(SYSTEM, rota.Custom(decide, compiled=compiled), random_jobs(60))


def forgets(state, target):
    """Returns nothing."""
    target[0] = 0


def forgets_at_times(state, target):
    """Returns nothing when a job comes."""
    return None if state.event[0] == 1 else math.inf


def says_never(state, target):
    """Returns a word."""
    return "never"


def returns_an_array(state, target):
    """Returns the clock as it is, an array."""
    return state.clock


def not_a_number(state, target):
    """Returns nan."""
    return math.inf - math.inf * len(target)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("decide", "rule"),
    [
        (forgets, "'forgets' return.* None"),
        (forgets_at_times, "'forgets_at_times' return.* None"),
        (says_never, "'says_never' return.*['(]never"),
        (returns_an_array, "'returns_an_array' return.*array"),
        (not_a_number, "returned nan"),
    ],
)
def test_what_is_no_time_is_refused(decide, rule, compiled):
    """A decision function that returns None, always or at times, or a word, an array or nan: an error that says so and what to return."""
    with pytest.raises(rota.Infeasible, match=rule) as caught:
        engine_log(SYSTEM, rota.Custom(decide, compiled=compiled), random_jobs(60))
    assert "numpy.inf for never" in str(caught.value)


def reads_behind_the_end(state, target):
    """Looks at one type more than there are."""
    for i in range(len(target) + 1):
        if state.system[i] < 0:
            return 0.0
    return math.inf


def writes_behind_the_end(state, target):
    """Decides for one type more than there are."""
    target[len(target)] = 0
    return math.inf


def asks_for_a_type_too_many(state, target):
    """Leaves it to a function of Rota to look at one type more than there are."""
    for i in range(len(target) + 1):
        if fits_one(state.demand, state.free, i):
            target[0] = 0
    return math.inf


@pytest.mark.parametrize(
    ("decide", "compiled"),
    [
        (reads_behind_the_end, True),
        (reads_behind_the_end, False),
        (writes_behind_the_end, True),
        (writes_behind_the_end, False),
        (asks_for_a_type_too_many, True),
    ],
)
def test_indexes_out_of_bounds_are_refused(decide, compiled):
    """With `check=True` compiled code looks at bounds as plain Python does, also in the functions of Rota that are called."""
    with pytest.raises(rota.Infeasible, match=f"{decide.__name__}' used an index out of bounds.*compiled=False"):
        rota.simulate(SYSTEM, rota.Custom(decide, compiled=compiled), jobs=100, check=True)


def test_bounds_are_looked_at_in_what_a_closure_holds():
    """A compiled function that a closure holds looks at bounds too, and functions may call themselves."""

    @numba.njit
    def count_down(values, i):
        return count_down(values, i - 1) if i > 0 else values[99]

    def outer(state, target):
        target[0] = count_down(state.counters, 3)
        return math.inf

    with pytest.raises(rota.Infeasible, match="out of bounds"):
        rota.simulate(SYSTEM, rota.Custom(outer, compiled=True), jobs=100, check=True)


def test_checking_does_not_change_the_run():
    """A right policy gives the same run with its bounds checked, and a function that numba got from the user may be checked too."""
    own = numba.njit(own_first_fit)
    results = [rota.simulate(SYSTEM.scaled(load=0.5), rota.Custom(own), jobs=500, check=check) for check in (True, False)]
    assert results[0].mean_response_time == results[1].mean_response_time


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"decide": "first-fit"}, "decide: must be a function of two arguments"),
        ({"decide": lambda state: math.inf}, "decide: must be a function of two arguments"),
        ({"decide": too_many, "memory": -1}, "memory: must be at least 0"),
        ({"decide": too_many, "counters": 2.5}, "counters: must be a whole number"),
        ({"decide": too_many, "compiled": "yes"}, "compiled: must be True, False"),
    ],
)
def test_own_policy_that_is_none(fields, rule):
    """What cannot be a decision function is refused when the policy is made."""
    with pytest.raises(rota.BadSpec, match=rule):
        rota.Custom(**fields)


def test_own_policy_as_an_object(built_in):
    """An object that can be called is a decision function too; it runs as plain Python."""

    class Own:
        def __call__(self, state, target):
            return own_first_fit(state, target)

    assert engine_log(SYSTEM, rota.Custom(Own()), random_jobs(60)) == built_in


def does_nothing(state, target):
    """Lets nobody run, and never wants to be asked."""
    return math.inf


def test_a_policy_under_which_nothing_will_ever_happen():
    """A run that is to go on until no job is left ends when nothing runs, comes or rings: no job is made up to end."""
    run = Run(
        SYSTEM, decider_of(SYSTEM, rota.Custom(does_nothing, compiled=False)), np.random.SeedSequence(0), batch_jobs=100, compiled=False
    )
    run.feed(Chunk(*random_jobs(10).columns()), drain=True)
    assert run.present == 10
    assert run.now < math.inf


def test_more_slots_than_jobs_are_no_error():
    """A target above the number of jobs means: all there are."""
    log = engine_log(SYSTEM, rota.Custom(generous, compiled=False), Given(((0.0, 0, 2.0, 2.0), (1.0, 1, 1.0, 1.0))))
    assert [(time, kind) for time, kind, _, _ in log][2:] == [(1, ARRIVE), (1, PREEMPT), (1, START), (2, FINISH), (2, START), (3, FINISH)]
