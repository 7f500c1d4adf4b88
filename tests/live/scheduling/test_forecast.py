"""Forecasts of starts against what is known of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import rota
from rota.decide import seeded
from rota.live.scheduling.forecast import forecast
from rota.live.scheduling.play_forward import play_forward
from rota.live.scheduling.scheduler import OWN, Scheduler
from rota.live.scheduling.starts import Starts
from rota.policy import as_policy

NOW = 1000.0


def futures(*arguments, **options):
    """The starts in simulated futures, none of which was cut; never by theory."""
    found = forecast(*arguments, by_theory=False, **{"runs": 50} | options)
    assert found.cut == ()
    return list(found.times)


def server(size, capacity=1, arrival_rate=0.3):
    """One type of jobs on so many slots."""
    return rota.System([capacity], [[1]], [arrival_rate], sizes=[size])


def floor_with(system, policy, jobs, stop="none", now=NOW):
    """A scheduler where so many jobs of type 0 arrived at `now`, numbered from 1."""
    scheduler = Scheduler(system, policy, seeded(np.random.SeedSequence(1)), stop=stop)
    scheduler.begin(now)
    for id in range(1, jobs + 1):
        scheduler.arrive(id, 0, now)
    return scheduler


@pytest.mark.parametrize(("slots", "job"), [(1, 2), (1, 6), (3, 4), (3, 9)])
def test_exponential_jobs(slots, job):
    """First come, first served on c slots: the start of the k-th that waits is a sum of k exponential times of rate c."""
    scheduler = floor_with(server(rota.Exponential(mean=1.0), slots), rota.FCFS(), job)
    starts = futures(scheduler, dict.fromkeys(range(1, slots + 1), 0.5), job, NOW + 0.5, runs=500, budget_s=20.0)
    assert len(starts) == 500
    law = stats.gamma(job - slots, scale=1 / slots)
    assert stats.kstest(starts, law.cdf).pvalue > 1e-3
    assert np.median(starts) == pytest.approx(law.median(), rel=0.15)
    assert starts == sorted(starts)


def test_what_has_been_served_counts():
    """Jobs of a fixed length: the second starts when the first has what it still needs, the third one length later."""
    scheduler = floor_with(server(rota.Deterministic(mean=2.0)), rota.FCFS(), 3)
    assert futures(scheduler, {1: 0.5}, 2, NOW + 0.5, runs=5) == pytest.approx([1.5] * 5)
    assert futures(scheduler, {1: 0.5}, 3, NOW + 0.5, runs=5) == pytest.approx([3.5] * 5)
    late = futures(scheduler, {1: 99.0}, 2, NOW + 99, runs=5)  # longer than any: the law says nothing more, the mean is taken
    assert late == pytest.approx([2.0] * 5)


def test_long_jobs_are_expected_to_be_longer():
    """With sizes that vary much, who has run for long will run for longer."""
    scheduler = floor_with(server(rota.Hyperexponential(probabilities=(0.9, 0.1), means=(0.2, 10.0))), rota.FCFS(), 2)
    young, old = (np.mean(futures(scheduler, {1: served}, 2, NOW + served, runs=400, budget_s=20.0)) for served in (0.01, 3.0))
    assert old > 4 * young
    assert old == pytest.approx(10.0, rel=0.25)


def test_it_begins_now_and_not_at_the_last_event():
    """The rota's clock rings at a time of its own: half of the way there, half of the time is left."""
    policy = rota.MSR([[0, 1], [1, 0]], [0.5, 0.5], "none", 1e-6)
    system = rota.System([1], [[1], [1]], [1e-9, 1e-9], [1.0, 1.0])
    scheduler = floor_with(system, policy, 1)
    scheduler.wake = scheduler.state.memory[1] = NOW + 100.0
    starts = futures(scheduler, {}, 1, NOW + 60, runs=20)
    assert min(starts) >= 40.0  # and then the other slot is drained, which takes a time of mean 1
    assert np.mean(starts) == pytest.approx(41.0, abs=1.0)


@pytest.mark.parametrize("stop", ["suspend", "requeue"])
@pytest.mark.parametrize("policy", [rota.MaxWeight(), rota.MSR([[1, 0], [0, 1]], [0.5, 0.5], "full", 1.0)])
def test_with_preemption(policy, stop):
    """Whoever is stopped goes on later; every job that waits starts in every future."""
    system = rota.System([2, 4], [[2, 1], [2, 1]], [0.1, 0.1], [1.0, 1.0])
    scheduler = Scheduler(system, policy, seeded(np.random.SeedSequence(1)), stop=stop)
    scheduler.begin(NOW)
    for id, kind in ((1, 0), (2, 1), (3, 1), (4, 0)):
        scheduler.arrive(id, kind, NOW)
    scheduler.arrive(5, OWN, NOW, demand=scheduler.units_of([1, 1]))
    for id in (id for id, job in scheduler.jobs.items() if job.state != "running" and job.kind != OWN):
        starts = futures(scheduler, {1: 0.2}, id, NOW + 0.2, runs=30, budget_s=20.0)
        assert len(starts) == 30
        assert all(np.isfinite(starts))
        assert starts[0] >= 0


def test_the_floor_stays_as_it_was():
    """Futures are played on copies."""
    scheduler = floor_with(server(rota.Exponential(mean=1.0)), rota.FCFS(), 5)
    before = scheduler.save(), {id: job.state for id, job in scheduler.jobs.items()}
    futures(scheduler, {}, 5, NOW, runs=10)
    assert before == (scheduler.save(), {id: job.state for id, job in scheduler.jobs.items()})


def test_without_time_there_is_no_answer():
    """And a job that never starts does not take longer than the time that was given."""
    scheduler = floor_with(server(rota.Exponential(mean=1.0)), rota.FCFS(), 5)
    assert forecast(scheduler, {}, 5, NOW, budget_s=0.0) == Starts()
    never = rota.MSR([[0, 1]], [1.0], "none", 1.0)
    system = rota.System([1], [[1], [1]], [0.5, 0.5], [1.0, 1.0])
    followed = forecast(floor_with(system, never, 1), {}, 1, NOW, budget_s=0.2)
    assert (followed.times, followed.law) == ((), None)
    assert all(0 < reached < np.inf for reached in followed.cut)
    assert followed.quantile(0.5) == (followed.cut[0], True)
    nothing = forecast(floor_with(system.replace(arrival_rate=[0.0, 0.0]), never, 1), {}, 1, NOW, runs=3)
    assert nothing == Starts(cut=(np.inf,) * 3)
    assert nothing.quantile(0.5) == (0.0, True)


def rehearsed(scheduler, served, job, now, runs, system=None, seed=77):
    """The slow reference: the scheduler itself, played forward in plain Python."""
    seeds = (np.random.SeedSequence([seed, k]) for k in range(runs))
    return [play_forward(scheduler.copy(), served, job, now, system or scheduler.system, seed, np.inf)[0] for seed in seeds]


PAIR = rota.System([4], [[1], [2]], [0.8, 0.5], [1.0, 1.0])
POLICIES = [
    "fcfs",
    "first-fit",
    "easy",
    "max-weight-np",
    "max-weight",
    rota.RandomizedTimers(rate=1.0),
    rota.MSR([[4, 0], [0, 2]], [0.5, 0.5], "none", 0.5),
    rota.MSR([[4, 0], [0, 2]], [0.5, 0.5], "none", 0.5, backfill=True),
    rota.MSR([[4, 0], [0, 2]], [0.5, 0.5], "full", 0.5),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p if isinstance(p, str) else rota.policy.policy_name(p))
def test_the_compiled_futures_are_those_of_the_floor(policy):
    """The simulator from the present state gives starts of the same law as the scheduler played in plain Python, under every policy."""
    policy = as_policy(policy)
    stop = "requeue" if rota.policy.preempts(policy) else "none"
    scheduler = Scheduler(PAIR, policy, seeded(np.random.SeedSequence(1)), stop=stop)
    scheduler.begin(NOW)
    for id in range(1, 13):
        scheduler.arrive(id, id % 2, NOW)
    waiting = [id for id, job in scheduler.jobs.items() if job.state == "waiting"]
    served = {id: 0.3 for id, job in scheduler.jobs.items() if job.state == "running"}
    for job in (waiting[0], waiting[-1]):
        starts = futures(scheduler, served, job, NOW + 0.3, runs=300, budget_s=60.0)
        assert len(starts) == 300
        assert stats.ks_2samp(starts, rehearsed(scheduler, served, job, NOW + 0.3, 300)).pvalue > 1e-3


def test_futures_have_the_bursts_of_the_system():
    """Both ways to play forward take the arrivals of the system: of the same law, and not that of Poisson arrivals."""
    plain = PAIR.replace(arrival_rate=[2.0, 0.1])
    batches = plain.replace(arrivals=[rota.Poisson(batch=rota.GeometricBatch(mean=20.0)), rota.Poisson()])
    scheduler = Scheduler(batches, as_policy("max-weight-np"), seeded(np.random.SeedSequence(1)))
    scheduler.begin(NOW)
    for job in range(1, 9):
        scheduler.arrive(job, 1, NOW)
    starts, slowly = forecast(scheduler, {}, job, NOW, runs=300, budget_s=60.0), rehearsed(scheduler, {}, job, NOW, 300)
    assert len(starts.times) == 300
    assert stats.ks_2samp(starts.times, slowly).pvalue > 1e-3
    assert stats.ks_2samp(slowly, rehearsed(scheduler, {}, job, NOW, 300, plain)).pvalue < 1e-3


@pytest.mark.parametrize(
    ("policy", "least", "most"),
    [("fcfs", 11_250, 14_000), ("first-fit", 3_600, 11_250), (rota.MSR([[4, 0], [0, 2]], [0.5, 0.5], "none", 0.5), 7_500, 10_500)],
    ids=["fcfs", "first-fit", "nMSR"],
)
def test_thirty_thousand_jobs_ahead(policy, least, most):
    """A job behind so many has a start, in as many futures as any other: when the work before it is done.

    15,000 jobs need one of the four slots, as many need two: 11,250 for all of them, 3,750 for those of its own type alone, twice that
    where the rota gives its type half of the time.
    """
    system = rota.System([4], [[1], [2]], [0.4, 0.2], [1.0, 1.0])
    scheduler = Scheduler(system, as_policy(policy), seeded(np.random.SeedSequence(1)))
    for id in range(1, 30_001):
        scheduler.put(id, id % 2)
    scheduler.begin(NOW)
    starts = futures(scheduler, {}, 30_000, NOW, runs=10, budget_s=60.0)
    assert len(starts) == 10
    assert least < np.median(starts) < most


@pytest.mark.parametrize("crowd", [2, 400])
def test_a_job_of_no_type_has_a_start(crowd):
    """Few jobs or many: it starts when what the others leave is enough for it. First come, first served: when all others have gone."""
    system = rota.System([4], [[1]], [1e-9], [1.0])
    scheduler = Scheduler(system, rota.FCFS(), seeded(np.random.SeedSequence(1)))
    scheduler.begin(NOW)
    for id in range(1, crowd + 1):
        scheduler.arrive(id, 0, NOW)
    scheduler.arrive(crowd + 1, OWN, NOW, demand=scheduler.units_of([4]))
    starts = futures(scheduler, {}, crowd + 1, NOW, runs=200, budget_s=60.0)
    assert len(starts) == 200
    last = (crowd - 4) / 4 + sum(1 / k for k in range(1, 5)) if crowd >= 4 else 1.5  # the mean of the last end on four slots
    assert np.mean(starts) == pytest.approx(last, rel=0.2)


@pytest.mark.parametrize("crowd", [6, 400])
def test_jobs_of_no_type_take_their_room(crowd):
    """One of them holds all slots: those of types start when it has ended, and not before."""
    system = rota.System([4], [[1]], [1e-9], [1.0])
    scheduler = Scheduler(system, rota.FirstFit(), seeded(np.random.SeedSequence(1)))
    scheduler.begin(NOW)
    scheduler.arrive(1, OWN, NOW, demand=scheduler.units_of([4]), estimate=50.0)
    for id in range(2, crowd + 2):
        scheduler.arrive(id, 0, NOW)
    starts = futures(scheduler, {}, 2, NOW, runs=300, budget_s=60.0)
    assert len(starts) == 300
    assert stats.kstest(starts, stats.expon(scale=50.0).cdf).pvalue > 1e-3


def test_learnt_rates_and_sizes():
    """Arrivals and sizes may be others than the plan's: jobs that take three times as long start three times as late."""
    plan = server(rota.Exponential(mean=1.0))
    scheduler = floor_with(plan, rota.FCFS(), 40)
    learnt = plan.replace(sizes=[rota.Exponential(mean=3.0)])
    starts = futures(scheduler, {}, 40, NOW, system=learnt, runs=300, budget_s=60.0)
    assert stats.kstest(starts, stats.gamma(39, scale=3.0).cdf).pvalue > 1e-3


@pytest.mark.parametrize("factor", [1.0, 2.5])
def test_forecasts_are_calibrated(factor):
    """Half of all jobs start before the median, and so on, where the plan is right and where it is wrong by a factor that was learnt from
    300 jobs."""
    plan = rota.System([4], [[1], [2]], [1.2, 0.5], [1.0, 1.0])
    truth = plan.replace(sizes=[rota.Exponential(mean=factor)] * 2)
    draw, n = np.random.default_rng(5), 150
    met = dict.fromkeys((0.5, 0.8, 0.95), 0)
    for k in range(n):
        seen = [float(draw.exponential(factor, 300).mean()) for _ in range(2)]
        learnt = plan.replace(sizes=[rota.Exponential(mean=(300 * mean + 2.0) / 302) for mean in seen])  # drawn to the plan by two jobs
        scheduler = Scheduler(plan, rota.FirstFit(), seeded(np.random.SeedSequence(k)))
        scheduler.begin(NOW)
        for id in range(1, int(draw.integers(8, 40))):
            scheduler.arrive(id, int(draw.integers(2)), NOW)
        waiting = [id for id, job in scheduler.jobs.items() if job.state == "waiting"]
        job = waiting[int(draw.integers(len(waiting)))]
        starts = forecast(scheduler, {}, job, NOW, system=learnt, runs=39, budget_s=60.0, seed=k)
        actual = rehearsed(scheduler, {}, job, NOW, 1, truth, seed=1000 + k)[0]
        for p in met:
            met[p] += actual <= starts.quantile(p)[0]
    for p, count in met.items():
        assert abs(count / n - p) < 3.3 * np.sqrt(p * (1 - p) / n)


# ------------------------------------------------------------------------------------------------------------ the exact law


ROTAS = {
    "nMSR": rota.MSR([[4, 0], [0, 2]], [0.5, 0.5], "none", 0.5),
    "pMSR": rota.MSR([[4, 0], [0, 2]], [0.5, 0.5], "full", 0.5),
    "sMSR": rota.MSR([[4, 0], [0, 2]], [0.5, 0.5], "setup", 0.5, setup_rate=3.0),
}


def waiting_under(policy, seed=1, jobs=12, now=NOW, system=PAIR, stop=None):
    """A scheduler with jobs of both types, and those that wait."""
    stop = stop or ("suspend" if rota.policy.preempts(policy) else "none")
    scheduler = Scheduler(system, policy, seeded(np.random.SeedSequence(seed)), stop=stop)
    scheduler.begin(now)
    for id in range(1, jobs + 1):
        scheduler.arrive(id, id % 2, now)
    return scheduler, [id for id, job in scheduler.jobs.items() if job.state == "waiting"]


@pytest.mark.parametrize("name", ROTAS)
def test_the_exact_law_is_that_of_the_futures(name):
    """In a working state, whose next move is known, and in a switching state: the exact law of the start and simulated futures agree."""
    seen = set()
    for seed in range(4):
        scheduler, waiting = waiting_under(ROTAS[name], seed)
        now = NOW
        for _ in range(seed % 2 + seed % 3):  # on to another state
            if np.isfinite(scheduler.wake):
                now = scheduler.wake
                scheduler.tick(now)
        waiting = [id for id, job in scheduler.jobs.items() if job.state in ("waiting", "suspended")]
        seen.add(int(scheduler.state.counters[0]))
        for job in (waiting[0], waiting[-1]):
            exact = forecast(scheduler, {}, job, now + 0.1)
            assert exact.law is not None
            times = np.array(futures(scheduler, {}, job, now + 0.1, runs=400, budget_s=60.0))
            for p in (0.5, 0.8, 0.95):
                point, bound = exact.quantile(p)
                assert not bound
                at_most, before = exact.law.cdf(point * (1 + 1e-9)), exact.law.cdf(point * (1 - 1e-9))  # where it jumps they differ
                error = 4.5 * np.sqrt(p * (1 - p) / len(times))
                assert before - error <= (times <= point * (1 + 1e-9)).mean() <= at_most + error
    assert len(seen) > 1


def test_when_theory_does_not_hold():
    """Backfilling, other sizes or rates than the plan's, own jobs, stops that begin anew, other policies: futures are simulated."""
    scheduler, waiting = waiting_under(ROTAS["nMSR"])
    job = waiting[-1]

    def exact(scheduler=scheduler, job=job, system=None):
        return forecast(scheduler, {}, job, NOW, system=system, runs=2).law is not None

    assert exact()
    assert exact(system=PAIR.replace(service_rate=[1.05, 0.95]))
    assert not exact(system=PAIR.replace(service_rate=[1.5, 1.0]))
    assert not exact(system=PAIR.replace(sizes=[rota.Erlang(mean=1.0, phases=2)] * 2))
    for policy, stop in ((ROTAS["nMSR"].replace(backfill=True), None), (rota.FirstFit(), None), (ROTAS["pMSR"], "requeue")):
        other, waits = waiting_under(policy, stop=stop)
        assert not exact(other, waits[-1])
    preemptive, waits = waiting_under(ROTAS["pMSR"])
    assert exact(preemptive, waits[-1], PAIR.replace(service_rate=[1.5, 1.0]))  # no completion moves it
    scheduler.arrive(99, OWN, NOW, demand=scheduler.units_of([1]))
    assert not exact()
    assert not exact(job=99)


def test_theory_is_calibrated():
    """Jobs of a rota start within what the exact law says as often as it says, from states at random moments."""
    met, n = dict.fromkeys((0.5, 0.8, 0.95), 0), 200
    for k in range(n):
        scheduler, waiting = waiting_under(ROTAS["nMSR"], seed=k, jobs=6 + k % 20)
        job = waiting[k % len(waiting)]
        now = NOW + 0.05 * (k % 5)
        starts = forecast(scheduler, {}, job, now)
        assert starts.law is not None
        actual = futures(scheduler, {}, job, now, runs=1, budget_s=60.0, seed=5000 + k)[0]
        for p in met:
            met[p] += actual <= starts.quantile(p)[0] * (1 + 1e-9)
    for p, count in met.items():
        assert abs(count / n - p) < 3.3 * np.sqrt(p * (1 - p) / n)


def test_points_of_few_futures():
    """Of n futures the point between them at p(n + 1); beyond the last one there is only a bound; what has passed is left out."""
    starts = Starts(times=(1.0, 2.0, 3.0), cut=(9.0,))
    assert starts.quantile(0.5) == (2.5, False)
    assert starts.quantile(0.6) == (3.0, False)
    assert starts.quantile(0.8) == (9.0, True)
    assert Starts(times=(1.0, 2.0, 3.0)).quantile(0.8) == (3.0, True)
    assert Starts(times=(1.0, 2.0, 3.0)).in_seconds(60.0, 90.0).quantile(0.5) == (60.0, False)
    assert Starts(times=(1.0,)).in_seconds(1.0, 2.0).quantile(0.95) == (0.0, False)
    law = rota.forecast(rota.System([1], [[1]], [0.1], [1.0]), rota.MSR([[1]]), 0, ahead=1).start
    for passed in (0.0, 3.0):  # exponential: what has passed does not matter
        assert Starts(law=law).in_seconds(1.0, passed).quantile(0.8)[0] == pytest.approx(np.log(5), rel=1e-6)
