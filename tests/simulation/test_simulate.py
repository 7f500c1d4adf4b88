"""`simulate`: exact values within narrow intervals, laws of queues, reproducibility, and what is refused."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest

import rota
from rotas import PREEMPTIONS, paper_case, paper_rota, twice_round
from systems import paper_example


def one_type(arrival_rate, servers=1, size=None):
    """One type that takes one of the servers."""
    return rota.System([servers], [[1]], [arrival_rate], sizes=[size or rota.Exponential(mean=1.0)])


def assert_covers(simulated, interval, exact, narrow=0.01):
    """The exact value lies within about four standard deviations (twice the half-width), and the half-width is narrow."""
    simulated, interval, exact = (np.atleast_1d(values) for values in (simulated, interval, exact))
    assert (interval < narrow * exact).all(), interval / exact
    assert (np.abs(simulated - exact) < 2 * interval).all(), (simulated - exact) / interval


def erlang_c(servers, work):
    """The probability that a job of M/M/k waits."""
    terms = [work**n / math.factorial(n) for n in range(servers)]
    last = work**servers / math.factorial(servers) * servers / (servers - work)
    return last / (sum(terms) + last)


# ---------------------------------------------------------------------------------------------------------------- exact values


def test_mm1():
    """M/M/1 at load 0.5: E[T] = 2, E[Q] = 1, Var T = 4, quantiles of an exponential, and half of the server in use."""
    result = rota.simulate(one_type(0.5), "fcfs", jobs=3_000_000, seed=1)
    assert_covers(result.mean_response_time, result.interval, 2.0)
    assert_covers(result.mean_queue_length, result.mean_queue_length_interval, 1.0)
    assert result.response_time_variance[0] == pytest.approx(4.0, rel=0.03)
    assert result.mean_waiting_time == pytest.approx(1.0, rel=0.02)
    for p, value in result.response_time_quantiles.items():
        assert value == pytest.approx(-2 * math.log(1 - p), rel=0.03)
    assert result.waiting_time_quantiles[0.5] < 0.02  # half of the jobs do not wait
    assert result.waiting_time_quantiles[0.9] == pytest.approx(-2 * math.log(0.1 / 0.5), rel=0.03)
    assert result.utilization == pytest.approx([0.5], rel=0.005)
    assert (result.stable, result.growth, result.interrupted) == (True, 0.0, False)


@pytest.mark.parametrize("policy", ["fcfs", "first-fit", "easy", "max-weight-np", "max-weight", "server-filling", rota.MSR([[4]])], ids=str)
def test_mmk(policy):
    """M/M/4 at load 0.75: E[T] = 1 + C(4, 3)/(4 − 3), the same jobs and the same starts under every policy that keeps servers busy."""
    result = rota.simulate(one_type(3.0, 4), policy, jobs=2_000_000, seed=2)
    assert_covers(result.mean_response_time, result.interval, 1 + erlang_c(4, 3.0) / (4 - 3))
    assert result.utilization == pytest.approx([0.75], rel=0.005)
    assert result.preemption_rate == 0


@pytest.mark.parametrize(
    "size",
    [
        rota.Deterministic(mean=1.0),
        rota.Erlang(mean=1.0, phases=3),
        rota.Hyperexponential(probabilities=(0.25, 0.75), means=(2.5, 0.5)),
        rota.LogNormal(mean=1.0, cv=1.1),
        rota.Weibull(mean=1.0, shape=0.8),
        rota.Empirical(values=(0.25, 1.75)),
    ],
    ids=lambda size: type(size).__name__,
)
def test_mg1(size):
    """M/G/1 at load 0.5, FCFS: E[wait] = λ E[S²] / (2 (1 − ρ)) (Pollaczek–Khinchine)."""
    system = one_type(0.5, size=size)
    result = rota.simulate(system, "fcfs", jobs=3_000_000, seed=3)
    exact = size.moment(1) + 0.5 * size.second_moment / (2 * (1 - 0.5))
    assert_covers(result.mean_response_time, result.interval, exact)


CASES = {
    "pMSR": paper_case(0.5, "full", 2.0),
    "nMSR": paper_case(0.5, "none", 0.5),
    "nMSR, parallel, early": paper_case(0.5, "none", 0.5, route="parallel", opening="early"),
    "sMSR": paper_case(0.5, "setup", 1.0),
}


@pytest.fixture(scope="module")
def rotas_simulated():
    """Long runs of the paper's rotas, with their exact answers."""
    return {name: (rota.analyze(*case), rota.simulate(*case, jobs=8_000_000, seed=4)) for name, case in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_rotas(name, rotas_simulated):
    """The exact E[T] of a rota, and E[Q] of each type, lie within the intervals; that of E[T] is narrower than 1 %."""
    answer, result = rotas_simulated[name]
    assert_covers(result.mean_response_time, result.interval, answer.mean_response_time)
    assert_covers(result.mean_queue_length, result.mean_queue_length_interval, answer.exact, narrow=0.02)


@pytest.mark.parametrize("name", CASES)
def test_rotas_switch_as_their_process(name, rotas_simulated):
    """Time in switching states and departures from working states per unit of time are those of the modulating process."""
    answer, result = rotas_simulated[name]
    working = answer.process.working_fraction
    policy = result.policy
    assert result.switching_fraction == pytest.approx(1 - working, abs=0.002)
    assert result.switch_rate == pytest.approx(policy.switching_rate * working, rel=0.005)


@pytest.mark.parametrize("name", CASES)
def test_littles_law(name, rotas_simulated):
    """E[Q_i] = λ_i E[T_i], up to the noise of the arrivals; and running jobs use λ_i/μ_i D_i of the resources."""
    _, result = rotas_simulated[name]
    rate, system = result.system.arrival_rate, result.system
    noise = 2 * (result.mean_queue_length_interval + rate * result.response_time_interval)
    assert (np.abs(result.mean_queue_length - rate * result.response_time) < noise).all()
    assert result.utilization == pytest.approx(system.offered_work @ system.demand / system.capacity, rel=0.005)


def test_only_policies_that_preempt_do(rotas_simulated):
    """nMSR has no preemptions, pMSR and sMSR have."""
    assert [result.preemption_rate > 0 for _, result in rotas_simulated.values()] == [True, False, False, True]


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_a_loop_that_visits_a_schedule_twice(preemption):
    """A → B → A → C: the exact E[T] and E[Q_i] lie within narrow intervals, and the weights of the visits add up."""
    system, policy = twice_round(preemption, 0.3)
    answer, result = rota.analyze(system, policy), rota.simulate(system, policy, jobs=2_000_000, seed=8)
    assert_covers(result.mean_response_time, result.interval, answer.mean_response_time, narrow=0.03)
    assert_covers(result.mean_queue_length, result.mean_queue_length_interval, answer.exact, narrow=0.05)
    assert result.switching_fraction == pytest.approx(1 - answer.process.working_fraction, abs=0.002)


def test_phase_type_sizes():
    """pMSR with Erlang and hyperexponential sizes: the exact E[T] lies within a narrow interval."""
    sizes = [
        rota.Erlang(mean=1.0, phases=2),
        rota.Hyperexponential(probabilities=(0.3, 0.7), means=(2.0, 4 / 7)),
        rota.Exponential(mean=1.0),
    ]
    base = paper_example(0.5)
    system = rota.System(base.capacity, base.demand, base.arrival_rate, sizes=sizes)
    policy = paper_rota("full", 2.0)
    answer = rota.analyze(system, policy)
    result = rota.simulate(system, policy, jobs=6_000_000, seed=5)
    assert_covers(result.mean_response_time, result.interval, answer.mean_response_time)
    assert_covers(result.mean_queue_length, result.mean_queue_length_interval, answer.exact, narrow=0.02)


def test_sizes_do_not_matter_to_scale():
    """With all rates doubled and the same seed the same things happen in half the time, bit by bit."""
    system, policy = paper_example(0.5), "first-fit"
    slow = rota.simulate(system, policy, jobs=50_000, seed=6)
    fast = rota.simulate(
        system.replace(arrival_rate=2 * system.arrival_rate, service_rate=2 * system.service_rate), policy, jobs=50_000, seed=6
    )
    assert fast.mean_response_time == slow.mean_response_time / 2
    assert fast.events == slow.events


# ---------------------------------------------------------------------------------------------------------------- the paper's figure


@pytest.fixture(scope="module")
def figure():
    """The example at load 0.95 under policies of the paper's Figure "simple", on the same jobs."""
    system = paper_example(0.95)
    policies = {
        "first-fit": "first-fit",
        "max-weight": "max-weight",
        "pMSR": rota.design_policy(system, preemption="full", objective="load").replace(switching_rate=10.0),
        "nMSR": rota.design_policy(system, preemption="none", objective="load"),
        "max-weight-np": "max-weight-np",
        "randomized-timers": "randomized-timers",
    }
    return {name: rota.simulate(system, policy, jobs=3_000_000, seed=7) for name, policy in policies.items()}


def test_first_fit_fails_where_rotas_stand(figure):
    """At load 0.95 First-Fit's queue grows without end; nMSR, which preempts no more than it, is stable: best of the non-preemptive."""
    assert not figure["first-fit"].stable
    assert not figure["max-weight-np"].stable
    assert not figure["randomized-timers"].stable
    assert figure["nMSR"].stable
    assert figure["nMSR"].preemption_rate == 0


def test_pmsr_is_close_to_max_weight(figure):
    """pMSR with a fast clock stays within a factor of 3 of MaxWeight (7.9 against 18), both far below nMSR."""
    best, rotating = figure["max-weight"].mean_response_time, figure["pMSR"].mean_response_time
    assert best < rotating < 3 * best
    assert rotating < figure["nMSR"].mean_response_time / 10


def test_backfilling_helps(figure):
    """Backfilling lowers the response time of nMSR several times at load 0.95."""
    policy = figure["nMSR"].policy.replace(backfill=True)
    result = rota.simulate(paper_example(0.95), policy, jobs=1_000_000, seed=7)
    assert result.stable
    assert result.mean_response_time < figure["nMSR"].mean_response_time / 3


# ---------------------------------------------------------------------------------------------------------------- instability


def test_an_unstable_queue_has_no_means():
    """λ = 1.5 against one server: every mean and quantile is not a number, and 0.5 jobs per unit of time pile up."""
    result = rota.simulate(one_type(1.5), "fcfs", jobs=200_000, seed=8)
    assert not result.stable
    assert result.growth == pytest.approx(0.5, rel=0.05)
    numbers = (result.mean_response_time, result.interval, result.mean_waiting_time, result.mean_slowdown)
    assert np.isnan(numbers).all()
    for values in (result.mean_queue_length, result.response_time, result.response_time_variance, result.waiting_time, result.slowdown):
        assert np.isnan(values).all()
    assert np.isnan(list(result.response_time_quantiles.values())).all()
    assert result.utilization == pytest.approx([1.0], rel=0.001)
    assert "growing, by 0." in repr(result)


def test_fcfs_is_unstable_on_the_example():
    """FCFS on the paper's example: stable at load 0.7, not at 0.9, where MaxWeight is; growth is arrivals less departures."""
    assert rota.simulate(paper_example(0.7), "fcfs", jobs=300_000).stable
    lost = rota.simulate(paper_example(0.9), "fcfs", jobs=300_000)
    assert not lost.stable
    assert lost.growth == pytest.approx(lost.unfinished.sum() / lost.simulated_time, rel=0.25)
    assert rota.simulate(paper_example(0.9), "max-weight", jobs=300_000).stable


@pytest.mark.parametrize("seed", range(6))
def test_stable_queues_are_not_called_unstable(seed):
    """M/M/1 at load 0.8 and nMSR at load 0.7 are found stable, whatever the seed."""
    assert rota.simulate(one_type(0.8), "fcfs", jobs=100_000, seed=seed).stable
    assert rota.simulate(*paper_case(0.7, "none", 0.3), jobs=400_000, seed=seed).stable


# ---------------------------------------------------------------------------------------------------------------- same seed, same result


def fields(result):
    """All that was measured, but for the computing time."""
    values = {name: value for name, value in vars(result).items() if name not in ("time_s", "system", "policy", "log")}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}


@pytest.mark.parametrize("policy", ["first-fit", "randomized-timers", paper_rota("none", 0.5)], ids=["first-fit", "timers", "nMSR"])
def test_same_seed_same_result(policy):
    """One seed gives one result, bit by bit; another seed gives another."""
    first, again, other = (rota.simulate(paper_example(0.4), policy, jobs=30_000, seed=seed) for seed in (1, 1, 2))
    assert repr(fields(first)) == repr(fields(again))
    assert first.mean_response_time != other.mean_response_time


def test_policies_see_the_same_jobs():
    """With one seed, arrivals (time, type, number) are the same under a policy that draws numbers and one that does not."""
    logs = [
        rota.simulate(paper_example(0.4), policy, jobs=1000, seed=3, log_jobs=1000).log
        for policy in ("fcfs", "randomized-timers", paper_rota("none", 0.5))
    ]
    arrivals = [log.filter(log["event"] == "arrive") for log in logs]
    assert len(arrivals[0]) == 1000
    assert arrivals[0].equals(arrivals[1])
    assert arrivals[0].equals(arrivals[2])


def test_checking_changes_nothing():
    """With `check` the laws are verified at each event and the result is the same."""
    system, policy = paper_case(0.5, "full", 2.0)
    plain, checked = (rota.simulate(system, policy, jobs=20_000, seed=1, check=check) for check in (False, True))
    assert repr(fields(plain)) == repr(fields(checked))


# ---------------------------------------------------------------------------------------------------------------- options


def test_until_stops_when_the_interval_is_narrow():
    """With `until` the run ends as soon as the interval is narrow enough, and no sooner; `jobs` is the most."""
    result = rota.simulate(one_type(0.5), "fcfs", jobs=50_000_000, seed=1, until=0.01)
    assert result.interval <= 0.01 * result.mean_response_time
    assert result.jobs < 5_000_000
    short = rota.simulate(one_type(0.5), "fcfs", jobs=20_000, seed=1, until=0.0001)
    assert short.jobs == 20_000


def test_warmup_as_given():
    """A given fraction is left out; what comes before it does not count."""
    result = rota.simulate(one_type(0.5), "fcfs", jobs=100_000, seed=1, warmup=0.25)
    assert result.warmup == pytest.approx(0.25, abs=0.01)
    assert result.batches[:, 0].sum() == result.counted.sum() == pytest.approx(75_000, rel=0.01)
    assert rota.simulate(one_type(0.5), "fcfs", jobs=100_000, seed=1, warmup=0.0).counted.sum() == 100_000


def test_a_list_of_jobs_has_no_warmup_but_a_given_one():
    """Ten thousand jobs at once before a light load: all count, unless the time in which they are worked off is left out."""
    rng = np.random.default_rng(0)
    times = np.concatenate([np.zeros(10_000), np.cumsum(rng.standard_exponential(190_000)) * 2])
    workload = rota.Jobs(times, np.zeros(200_000, dtype=int), rng.standard_exponential(200_000))
    whole, result = (rota.simulate(one_type(0.5), "fcfs", workload=workload, warmup=warmup) for warmup in (None, 0.15))
    assert (whole.warmup, whole.counted.tolist()) == (0.0, [200_000])
    assert whole.mean_response_time > 200
    assert result.mean_response_time == pytest.approx(2.0, rel=0.1)


def test_log():
    """The log of the first jobs has time, event, type and job, in order of time; also when fewer jobs come than were to be logged."""
    system = paper_example(0.5)
    log = rota.simulate(system, "first-fit", jobs=1000, seed=1, log_jobs=50).log
    assert log.columns == ["time", "event", "type", "job"]
    assert log["time"].is_sorted()
    assert log.filter(log["event"] == "arrive")["job"].to_list() == list(range(50))
    assert set(log["event"]) == {"arrive", "start", "finish"}
    assert set(log["type"]) <= set(system.names)
    assert rota.simulate(system, "first-fit", jobs=1000, seed=1).log is None
    short = rota.simulate(system, "first-fit", jobs=200, seed=1, log_jobs=5000).log
    assert (short["event"] == "arrive").sum() == 200


def test_a_short_list_of_jobs_is_measured():
    """Given jobs count by their own number: three hundred jobs of size 1 that never wait have response time 1."""
    workload = rota.Jobs(np.arange(300) * 2.0, np.zeros(300, dtype=int), np.ones(300))
    result = rota.simulate(one_type(0.5), "fcfs", workload=workload)
    assert result.jobs == 300
    assert result.mean_response_time == 1.0
    assert result.mean_slowdown == 1.0
    assert result.mean_waiting_time == 0.0


def test_progress_tells_how_far():
    """Progress goes up to the number of jobs."""
    seen = []
    rota.simulate(one_type(0.5), "fcfs", jobs=200_000, progress=seen.append)
    assert [at.done for at in seen] == sorted(at.done for at in seen)
    assert (seen[-1].done, seen[-1].jobs) == (200_000, 200_000)
    assert len(seen) > 2


def test_ctrl_c_keeps_what_was_measured():
    """An interrupt ends the run, and the result has what was measured before it."""

    def stop(at):
        if at.done > 300_000:
            raise KeyboardInterrupt

    try:
        result = rota.simulate(one_type(0.5), "fcfs", jobs=10_000_000, progress=stop)
    except KeyboardInterrupt:  # pytest would end at once
        pytest.fail("what was measured is lost")
    assert result.interrupted
    assert 300_000 < result.jobs < 500_000
    assert result.mean_response_time == pytest.approx(2.0, rel=0.2)


def test_a_type_that_never_arrives():
    """A type without arrivals has an empty queue and no response time; the others are as without it."""
    with_idle = rota.System([1], [[1], [1]], [0.5, 0.0], [1.0, 1.0])
    result = rota.simulate(with_idle, "fcfs", jobs=50_000, seed=1)
    assert result.mean_queue_length[1] == 0
    assert np.isnan(result.response_time[1])
    assert result.mean_response_time == rota.simulate(one_type(0.5), "fcfs", jobs=50_000, seed=1).mean_response_time


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"jobs": 99}, "jobs"),
        ({"until": 0.0}, "until"),
        ({"until": 1.0}, "until"),
        ({"warmup": 1.0}, "warmup"),
        ({"warmup": -0.1}, "warmup"),
    ],
    ids=str,
)
def test_bad_options(options, place):
    """An option out of its range is named, with the rule."""
    with pytest.raises(rota.BadSpec, match=f"{place}: must be"):
        rota.simulate(one_type(0.5), "fcfs", **options)


def test_unknown_policy():
    """An unknown name is answered with those that are known."""
    with pytest.raises(rota.BadSpec, match="first-fit, easy"):
        rota.simulate(one_type(0.5), "best-fit")


def test_nothing_arrives():
    """Without arrivals there is nothing to simulate, whether they are of the model or given."""
    with pytest.raises(rota.Infeasible, match="no jobs arrive"):
        rota.simulate(one_type(0.0), "fcfs")
    with pytest.raises(rota.Infeasible, match="has no jobs"):
        rota.simulate(one_type(0.5), "fcfs", workload=rota.Jobs([], [], []))


def test_result_in_words():
    """A result prints its policy, mean and interval."""
    result = rota.simulate(one_type(0.5), "fcfs", jobs=10_000)
    assert repr(result).startswith("<Result of fcfs: mean response time ")
    assert result.name == "fcfs"
    assert replace(result, time_s=2.0).events_per_s == result.events / 2


def test_moments_and_quantiles_of_every_measure_and_type():
    """For M/M/1, response times are exponential: variance mean², median mean·ln 2; waiting and slowdown are measured per type, too."""
    result = rota.simulate(rota.System([1], [[1]], [0.5], [1.0]), "fcfs", jobs=400_000, seed=3)
    assert result.response_time_variance[0] == pytest.approx(4.0, rel=0.05)
    assert result.type_response_time_quantiles[0.5][0] == pytest.approx(2 * np.log(2), rel=0.02)
    assert result.waiting_time_variance[0] == pytest.approx(3.0, rel=0.06)  # P(wait) = ½, then exponential with mean 2
    assert result.type_waiting_time_quantiles[0.9][0] == pytest.approx(2 * np.log(5), rel=0.03)
    assert (result.type_slowdown_quantiles[0.5] >= 1).all()


def test_unused_service_is_what_the_load_leaves():
    """Of the slots that an MSR opens for a type, the part 1 − ρ_i finds no job; other policies have no slots."""
    system = rota.System([2], [[1]], [1.0], [1.0])
    policy = rota.MSR([[2]])
    assert rota.simulate(system, policy, jobs=200_000, seed=1).unused_service[0] == pytest.approx(0.5, abs=0.01)
    assert np.isnan(rota.simulate(system, "fcfs", jobs=1000, seed=1).unused_service).all()


def test_the_pace_of_the_machine_does_not_show(monkeypatch):
    """However the jobs are cut into pieces, which depends on the speed of the machine, the result is the same, bit for bit."""
    runs = []
    for patience in (1e-9, 1e9):
        monkeypatch.setattr(sys.modules["rota.simulation.playing"], "_PATIENCE_S", patience)
        runs.append(rota.simulate(paper_example(0.8), "max-weight", jobs=30_000, seed=3))
    slow, fast = (vars(result) for result in runs)
    for name in slow.keys() - {"time_s", "system", "policy"}:
        assert repr(slow[name]) == repr(fast[name]), name


def test_the_log_follows_its_jobs_to_their_end():
    """Every logged job arrives, starts and finishes in the log, though later jobs came before it was done."""
    log = rota.simulate(paper_example(0.8), "max-weight", jobs=20_000, log_jobs=50).log
    for event in ("arrive", "finish"):
        assert sorted(log.filter(log["event"] == event)["job"]) == list(range(50))
    assert set(log.filter(log["event"] == "start")["job"]) == set(range(50))


def test_very_many_types():
    """With thousands of types, memory stays bounded; tails are measured over all types together."""
    K = 3000
    system = rota.System(capacity=[100], demand=np.ones((K, 1)), arrival_rate=np.full(K, 90 / K), service_rate=np.ones(K))
    result = rota.simulate(system, "first-fit", jobs=20_000)
    assert result.response_time_quantiles[0.5] == pytest.approx(math.log(2), rel=0.3)
    assert np.isnan(result.type_response_time_quantiles[0.5]).all()
