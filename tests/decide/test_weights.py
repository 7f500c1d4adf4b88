"""MaxWeight and Stalling MaxWeight against trial of all schedules, Randomized-Timers against its definition, event by event."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from reference_simulator import PREEMPT, START, Given, assert_agrees, engine_log, jobs_for, reference_of, simulate
from rota.capacity import integer_units
from rota.decide import decider_of
from rota.decide.weights import tie_breaker
from rota.model.workload import Chunk
from rota.simulation.run import Run
from systems import small_systems


def all_types(system):
    """Every type of a system."""
    return range(len(system.names))


@pytest.mark.parametrize("preemption", ["full", "none"])
@given(data=st.data(), system=small_systems())
def test_max_weight_agrees_with_trial_of_all_schedules(preemption, data, system):
    """At each event MaxWeight runs the best of all schedules u ≤ Q; without preemption, the best that keeps what runs."""
    log = assert_agrees(system, rota.MaxWeight(preemption), data.draw(jobs_for(all_types(system))))
    assert preemption == "full" or all(kind != PREEMPT for _, kind, _, _ in log)


@pytest.mark.parametrize("preemption", ["full", "none"])
def test_max_weight_counts_many_jobs_in_fine_units(preemption):
    """Demands without a common measure are counted in very small units: what 20,000 jobs need is more than a 64-bit integer holds."""
    system = rota.System([1.0], [[np.pi / 10], [np.e / 10], [2**0.5 / 10]], [1, 1, 1], [1, 1, 1])
    assert 20_000 / 3 * float(integer_units(system).demand.sum()) > 2.0**63
    kinds = np.arange(20_000) % 3
    run = Run(system, decider_of(system, rota.MaxWeight(preemption)), np.random.SeedSequence(0), batch_jobs=10**9, check=True)
    run.feed(Chunk(np.arange(20_000) * 1e-9, kinds, np.ones(20_000), np.ones(20_000)))
    assert run.present == 20_000
    assert rota.fits(system, run.state.running)


@given(data=st.data(), system=small_systems())
def test_branch_and_bound_agrees_with_the_list(data, system):
    """Where the maximal schedules are too many to list, the branch and bound decides alike."""
    jobs = data.draw(jobs_for(all_types(system)))
    decider = decider_of(system, rota.MaxWeight())
    searching = decider._replace(data=decider.data._replace(schedules=decider.data.schedules[:0]))
    run = Run(system, searching, np.random.SeedSequence(0), batch_jobs=10**9, log_jobs=10**9, check=True)
    run.feed(Chunk(*jobs.columns()), drain=True)
    log = [(time, int(kind), int(i), int(job)) for time, kind, i, job in np.concatenate(run.log).tolist()]
    assert log == simulate(system, reference_of(system, rota.MaxWeight(), None), jobs, guide=log)


@given(data=st.data(), system=small_systems(), share=st.sampled_from([0.3, 0.5, 0.9, 0.99]))
def test_stalling_max_weight_agrees_with_trial_of_all_schedules(data, system, share):
    """Slots are refilled while they weigh enough, nothing starts from then until no job runs, and the best schedule is taken next."""
    policy, jobs = rota.StallingMaxWeight(share), data.draw(jobs_for(all_types(system)))
    log = assert_agrees(system, policy, jobs)
    assert all(kind != PREEMPT for _, kind, _, _ in log)
    decider = decider_of(system, policy)
    searching = decider._replace(data=decider.data._replace(schedules=decider.data.schedules[:0]))
    run = Run(system, searching, np.random.SeedSequence(0), batch_jobs=10**9, log_jobs=10**9, check=True)
    run.feed(Chunk(*jobs.columns()), drain=True)
    assert log == [(time, int(kind), int(i), int(job)) for time, kind, i, job in np.concatenate(run.log).tolist()]


def test_stalling_max_weight_waits_until_none_runs():
    """A server of 2: two jobs of 1 run when three of 2 come. Their schedule weighs more, so a third job of 1 waits until all have run."""
    system = rota.System([2], [[1], [2]], [1.0, 1.0], [1.0, 1.0])
    jobs = [(0.0, 0, 1.0), (0.0, 0, 3.0), (0.5, 1, 1.0), (0.5, 1, 1.0), (0.5, 1, 1.0), (0.5, 1, 1.0), (0.5, 1, 1.0), (0.6, 0, 1.0)]
    log = engine_log(system, rota.StallingMaxWeight(), Given(tuple((*job, job[2]) for job in jobs)))
    begins = {job: time for time, kind, _, job in log if kind == START}
    assert begins[2] == 3.0  # at 1 a unit is free, and job 7 does not start there
    assert begins[7] > 3.0


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, float("nan"), "half"], ids=str)
def test_stalling_max_weight_needs_a_share(share):
    """The share of the best weight is between 0 and 1."""
    with pytest.raises(rota.BadSpec, match="share"):
        rota.StallingMaxWeight(share)


@pytest.mark.parametrize("K", [1, 2, 3, 5, 8])
def test_tie_breaker_tells_small_schedules_apart(K):
    """No two small sets of jobs have the same sum, so schedules of equal weight do not tie; and the sums stay far below one job."""
    tie = tie_breaker(K)
    sets = np.stack(np.meshgrid(*[np.arange(3 if K > 5 else 4)] * K), axis=-1).reshape(-1, K)
    sums = np.sort(sets @ tie)
    assert np.diff(sums).min() > 1e-15
    assert tie.min() > 0
    assert tie.max() <= 1e-6


timers = st.builds(rota.RandomizedTimers, rate=st.floats(0.2, 5), power=st.floats(0.3, 2), floor=st.floats(1e-4, 1))


@settings(max_examples=30)
@given(data=st.data(), system=small_systems(), policy=timers, seed=st.integers(0, 2**32))
def test_randomized_timers_agrees_with_its_definition(data, system, policy, seed):
    """Slots, dummies and draws follow the definition; a running job is never stopped."""
    log = assert_agrees(system, policy, data.draw(jobs_for(all_types(system), most=10)), seed)
    assert all(kind != PREEMPT for _, kind, _, _ in log)


def test_randomized_timers_with_the_papers_parameters():
    """r = 0.01 and f = log(1+x)^0.7 are the defaults, and agree with the definition too."""
    system = rota.System([4], [[1], [3]], [1, 1], [1, 1])
    assert rota.RandomizedTimers() == rota.RandomizedTimers(rate=0.01, power=0.7, floor=1e-4)
    rng = np.random.default_rng(1)
    rows = zip(np.cumsum(rng.random(20)).tolist(), rng.integers(0, 2, 20).tolist(), *[rng.random(20).tolist()] * 2, strict=True)
    assert_agrees(system, rota.RandomizedTimers(), Given(tuple(rows)), 7)


@pytest.mark.parametrize(
    "fields", [{"rate": 0.0}, {"rate": float("inf")}, {"power": -1.0}, {"floor": 0.0}, {"floor": float("nan")}], ids=str
)
def test_randomized_timers_needs_positive_parameters(fields):
    """A parameter that is not positive and finite is named."""
    with pytest.raises(rota.BadSpec, match=next(iter(fields))):
        rota.RandomizedTimers(**fields)


def test_max_weight_needs_a_known_preemption():
    """Only "full" and "none" are known."""
    with pytest.raises(rota.BadSpec, match=r'preemption: must be "full" or "none" \(got \'setup\'\)'):
        rota.MaxWeight("setup")
