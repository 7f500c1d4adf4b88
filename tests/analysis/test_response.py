"""The law of the response time: closed forms, Little's law, a chain that also follows later arrivals, and simulation."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.integrate import quad
from scipy.sparse import csc_array, diags_array
from scipy.sparse.linalg import expm_multiply

import rota
from rota.analysis import TypeQueue, response
from rota.analysis.qbd import solve_levels, solve_qbd
from rota.analysis.response import erlang_response, uniform_response
from rota.policy import MSR
from rota.process import build_process
from rotas import PREEMPTIONS, paper_case, systems_and_rotas, twice_round
from truncated import queue_law

TIMES = np.array([0.0, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0])


def alone(slots, arrival_rate, service_rate=1.0):
    """A type that always has the same slots: M/M/k."""
    system = rota.System([slots], [[1]], [arrival_rate], [service_rate])
    return TypeQueue(build_process(system, MSR([[slots]])), 0, arrival_rate, service_rate)


def uniform(queue, most_steps=1e7):
    """The law of T by uniformisation, whatever the slots."""
    return uniform_response(queue, solve_levels(queue), solve_qbd(queue), most_steps)


def laws(system, policy):
    """The law of each type that arrives, with its mean by Little's law."""
    answer = rota.analyze(system, policy)
    return [(answer.response_time_distribution(int(i)), answer.response_time[i]) for i in np.flatnonzero(system.arrival_rate > 0)]


# ------------------------------------------------------------------------------------------------------------ closed forms


@pytest.mark.parametrize("solve", [uniform, erlang_response])
@pytest.mark.parametrize(("lam", "mu"), [(0.1, 1.0), (0.9, 1.0), (2.97, 3.0)])
def test_one_slot_gives_an_exponential_time(solve, lam, mu):
    """M/M/1: T is exponential of rate μ − λ."""
    law = solve(alone(1, lam, mu))
    assert law.accuracy < 1e-9
    assert law.tail(TIMES) == pytest.approx(np.exp(-(mu - lam) * TIMES), rel=1e-8, abs=1e-11)
    assert law.cdf(TIMES) == pytest.approx(1 - np.exp(-(mu - lam) * TIMES), abs=1e-10)
    assert law.decay_rate == pytest.approx(mu - lam, rel=1e-9)
    assert law.mean == pytest.approx(1 / (mu - lam), rel=1e-9)
    assert law.variance == pytest.approx(1 / (mu - lam) ** 2, rel=1e-8)
    assert law.quantile(0.95) == pytest.approx(np.log(20) / (mu - lam), rel=1e-8)


@pytest.mark.parametrize(
    ("k", "lam", "mu"), [(2, 1.0, 1.0), (2, 1.9, 1.0), (4, 3.0, 1.0), (5, 1.0, 2.0), (30, 29.0, 1.0), (200, 180.0, 1.0)]
)
def test_constant_slots(k, lam, mu):
    """M/M/k: uniformisation agrees with the closed form, also where the job runs as fast as the queue falls (k = 2, λ = μ)."""
    queue = alone(k, lam, mu)
    law, closed = uniform(queue), erlang_response(queue)
    assert law.tail(TIMES) == pytest.approx(closed.tail(TIMES), rel=1e-8, abs=1e-11)
    assert law.mean == pytest.approx(closed.mean, rel=1e-9)
    assert law.variance == pytest.approx(closed.variance, rel=1e-8)
    assert law.decay_rate == pytest.approx(closed.decay_rate, rel=1e-9)
    assert closed.accuracy < 1e-12


@pytest.mark.parametrize(("k", "lam"), [(1, 0.5), (2, 1.0), (4, 3.7)])
def test_the_closed_form_is_the_convolution(k, lam):
    """M/M/k: P(T > t) is that of a wait, which is zero or exponential, plus a run, by numerical integration."""
    law = erlang_response(alone(k, lam))
    nu = k - lam
    waits = rota.analysis.erlang_c(k, lam)
    for t in (0.3, 2.0, 9.0):
        longer, _ = quad(lambda run, t=t: np.exp(-run) * waits * np.exp(-nu * (t - run)), 0, t, epsabs=1e-13)
        assert law.tail(t) == pytest.approx(longer + np.exp(-t), rel=1e-9)


# ------------------------------------------------------------------------------------------------------------ Little's law


@settings(max_examples=150)
@given(case=systems_and_rotas())
def test_mean_by_littles_law(case):
    """For random systems and rotas of each kind, E[T] summed from the law is E[Q]/λ, which knows nothing of it."""
    for law, little in laws(*case):
        assert law.mean == pytest.approx(little, rel=1e-8)
        assert law.accuracy < 1e-8
        assert law.tail(0.0) == 1
        assert (np.diff(law.tail(np.linspace(0, 5 * law.mean, 40))) < 0).all()


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_moments_by_integration(preemption):
    """∫ P(T > t) dt and 2 ∫ t P(T > t) dt are the mean and the second moment; the quantile is the inverse of the law."""
    for law, little in laws(*paper_case(0.7, preemption, 0.1)):
        ends = np.concatenate([[0], np.geomspace(1e-2, 40 / law.decay_rate, 40)])
        parts = [quad(law.tail, a, b, epsabs=1e-12)[0] for a, b in pairwise(ends)]
        assert sum(parts) == pytest.approx(little, rel=1e-9)
        parts = [quad(lambda t, law=law: 2 * t * law.tail(t), a, b, epsabs=1e-11)[0] for a, b in pairwise(ends)]
        assert sum(parts) == pytest.approx(law.variance + law.mean**2, rel=1e-9)
        for p in (1e-6, 0.5, 0.95, 0.99, 0.999999):
            assert law.cdf(law.quantile(p)) == pytest.approx(p, abs=1e-11)


@pytest.mark.parametrize("load", [0.5, 0.9, 0.99])
def test_high_load(load):
    """The example without preemption, close to its edge: Little's law holds, and γ = λ(1/η − 1) with the decay rate η of the queue."""
    system, policy = paper_case(0.9, "none", 0.06)
    served = build_process(system, policy).mean_schedule * system.service_rate
    answer = rota.analyze(system.replace(arrival_rate=load * served), policy)
    for i, lam in enumerate(answer.system.arrival_rate):
        law = answer.response_time_distribution(i)
        assert law.accuracy < 1e-8
        assert law.decay_rate == pytest.approx(lam * (1 / answer.queue_length(i).decay_rate - 1), rel=1e-7)


@pytest.mark.parametrize("preemption", PREEMPTIONS)
@pytest.mark.parametrize("load", [0.2, 0.8])
def test_decay_rate(preemption, load):
    """P(T > t) falls by e^{−γ} per unit of time where it is small, whether long queues or single jobs without a slot are what makes it."""
    for law, _ in laws(*paper_case(load, preemption, 0.1)):
        first, second = law.quantile(1 - 1e-6), law.quantile(1 - 1e-8)
        slope = np.log(law.tail(first) / law.tail(second)) / (second - first)
        assert slope == pytest.approx(law.decay_rate, rel=0.02)


@settings(max_examples=30)
@given(case=systems_and_rotas(most_units=4))
def test_a_turn_at_once_is_its_steps(case):
    """The product with one matrix, for few numbers, and step by step give the same law."""
    answer = rota.analyze(*case)
    for queue in answer.queues:
        if queue.arrival_rate > 0:
            at_once = uniform(queue)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(response, "_SMALL", 0)
                by_steps = uniform(queue)
            assert at_once.tail(TIMES) == pytest.approx(by_steps.tail(TIMES), rel=1e-9, abs=1e-11)
            assert at_once.variance == pytest.approx(by_steps.variance, rel=1e-9)


def test_time_is_scaled():
    """With all rates three times as large every time is a third."""
    system, policy = paper_case(0.8, "setup", 0.2)
    slow = rota.analyze(system, policy).response_time_distribution(1)
    faster = system.replace(arrival_rate=3 * system.arrival_rate, service_rate=3 * system.service_rate)
    fast = rota.analyze(faster, policy.replace(switching_rate=0.6, setup_rate=30.0)).response_time_distribution(1)
    assert fast.tail(TIMES / 3) == pytest.approx(slow.tail(TIMES), rel=1e-9)
    assert 3 * fast.quantile(0.99) == pytest.approx(slow.quantile(0.99), rel=1e-9)


# ------------------------------------------------------------------------------------------------------------ brute force


def followed(process, i, lam, mu, times, behind):
    """P(T > t) by a chain on (jobs ahead, jobs behind, state): written from the policy, without the claim that jobs behind do not count.

    Every slot is looked at: it holds one of the oldest jobs, or none. It rings at rate μ, and a job in it is done; where completions of
    the type trigger a move, a ring makes that move. At most `behind` jobs behind are followed.
    """
    law = queue_law(process, i, lam, mu)
    law = law[: int(np.flatnonzero(law.sum(axis=1) > 1e-13).max()) + 1]
    levels, N = law.shape
    slots = process.schedules[:, i]

    def place(k, b, s):
        return (k * (behind + 1) + b) * N + s

    rows, columns, values = [], [], []
    size = levels * (behind + 1) * N
    done = np.zeros(size)
    for k in range(levels):
        for b in range(behind + 1):
            for s in range(N):
                here = place(k, b, s)
                moves = np.flatnonzero(process.source == s)
                own = [m for m in moves if process.trigger[m] == i]
                total = sum(process.rate[m] for m in own)
                ways = [(int(process.target[m]), process.rate[m] / total) for m in own] or [(s, 1.0)]
                out = [(place(k, b, int(process.target[m])), process.rate[m]) for m in moves if process.trigger[m] != i]
                if b < behind:
                    out.append((place(k, b + 1, s), lam))
                for slot in range(slots[s]):
                    for target, share in ways:
                        if slot < k:
                            out.append((place(k - 1, b, target), mu * share))
                        elif slot == k:
                            done[here] += mu * share
                        elif slot <= k + b:
                            out.append((place(k, b - 1, target), mu * share))
                        else:
                            out.append((place(k, b, target), mu * share))
                for there, rate in out:
                    if there != here:
                        rows.append(here)
                        columns.append(there)
                        values.append(rate)
    rates = csc_array((values, (rows, columns)), shape=(size, size))
    backward = (rates - diags_array(rates.sum(axis=1) + done)).tocsc()
    start = np.zeros((levels, behind + 1, N))
    start[:, 0, :] = law
    return np.array([start.ravel() @ expm_multiply(backward * t, np.ones(size)) for t in times])


CASES = {
    "pMSR": paper_case(0.3, "full", 1.0),
    "nMSR": paper_case(0.3, "none", 0.5),
    "nMSR, parallel and early": paper_case(0.3, "none", 0.5, route="parallel", opening="early"),
    "sMSR": paper_case(0.3, "setup", 0.5),
    "twice round": twice_round("none", 0.3),
}


@pytest.mark.parametrize("name", CASES)
def test_jobs_behind_do_not_count(name):
    """A chain that also follows up to three later arrivals, and every slot by itself, gives the same P(T > t)."""
    system, policy = CASES[name]
    system = system.scaled(load=0.25)
    process = build_process(system, policy)
    answer = rota.analyze(system, policy)
    times = np.array([0.2, 1.0, 4.0, 15.0])
    for i in range(3):
        found = followed(process, i, system.arrival_rate[i], system.service_rate[i], times, behind=3)
        assert answer.response_time_distribution(i).tail(times) == pytest.approx(found, rel=1e-7, abs=1e-10)


# ------------------------------------------------------------------------------------------------------------ simulation


def simulated_times(system, policy, seed, jobs):
    """The response times of each type, of the jobs after the first fifth, from the log."""
    log = rota.simulate(system, policy, jobs=jobs, seed=seed, log_jobs=jobs).log
    arrive, finish = (log.filter(log["event"] == event).sort("job") for event in ("arrive", "finish"))
    both = arrive.join(finish, on="job").sort("job")[jobs // 5 :]
    taken, types = (both["time_right"] - both["time"]).to_numpy(), both["type"].to_numpy()
    return [taken[types == name] for name in system.names]


@pytest.mark.parametrize(("preemption", "switching_rate"), [("full", 2.0), ("none", 0.2), ("setup", 1.0)])
def test_simulation(preemption, switching_rate):
    """P(T > t) of the paper's rotas at the exact quantiles, a million jobs in twenty runs: within four standard errors, which are small."""
    system, policy = paper_case(0.5, preemption, switching_rate)
    answer = rota.analyze(system, policy)
    runs = [simulated_times(system, policy, seed, 50_000) for seed in range(20)]
    for i in range(3):
        law = answer.response_time_distribution(i)
        for p in (0.1, 0.5, 0.95, 0.99):
            counted = np.array([(run[i] > law.quantile(p)).mean() for run in runs])
            error = counted.std(ddof=1) / np.sqrt(len(runs))
            assert error < (0.1 if p < 0.99 else 0.25) * (1 - p)
            assert abs(counted.mean() - (1 - p)) < 4 * error


def test_quantiles_of_a_result():
    """The quantiles per type that `simulate` reports are the exact ones, up to noise and the width of a bucket."""
    system, policy = paper_case(0.75, "full", 2.0)
    answer, result = rota.analyze(system, policy), rota.simulate(system, policy, jobs=1_000_000, seed=1)
    for p in (0.5, 0.95, 0.99):
        exact = [answer.response_time_distribution(i).quantile(p) for i in range(3)]
        assert result.type_response_time_quantiles[p] == pytest.approx(exact, rel=0.04)


# ------------------------------------------------------------------------------------------------------------ what is refused


def test_one_time_or_many():
    """One time gives one number, an array an array of its shape; times below zero are never enough."""
    law = rota.analyze(*paper_case(0.9, "none", 0.06)).response_time_distribution(0)
    assert np.ndim(law.tail(3.0)) == 0
    assert law.tail(np.ones((2, 3))).shape == (2, 3)
    assert (law.tail(-1.0), law.cdf(-1.0), law.quantile(0.0)) == (1, 0, 0)
    assert law.tail(np.inf) == 0


@pytest.mark.parametrize("p", [-0.1, 1.0, np.nan])
def test_no_such_quantile(p):
    """A quantile is for a part of the jobs, not for all of them."""
    law = rota.analyze(*paper_case(0.9)).response_time_distribution(0)
    with pytest.raises(rota.BadSpec, match="p: must be at least 0 and below 1"):
        law.quantile(p)


def test_refusals():
    """No law for a type that never arrives, for phase-type sizes, of an unstable policy, or where it would take hours."""
    system, policy = paper_case(0.9)
    with pytest.raises(rota.Infeasible, match="never arrives"):
        rota.analyze(system.replace(arrival_rate=[0, 1, 0.5]), policy).response_time_distribution(0)
    with pytest.raises(rota.Unstable):
        rota.analyze(system.scaled(load=1.1), policy).response_time_distribution(0)
    sizes = [rota.Erlang(mean=1.0, phases=2), rota.Exponential(mean=1.0), rota.Exponential(mean=1.0)]
    sized = rota.analyze(system.replace(sizes=sizes), policy)
    with pytest.raises(rota.Infeasible, match="exponential sizes"):
        sized.response_time_distribution(0)
    assert sized.response_time_distribution(1).accuracy < 1e-8
    wide = rota.System([30_000, 1], [[1, 0], [0, 1]], [10_000.0, 0.0], [1.0, 1.0])
    large = rota.analyze(wide, MSR([[30_000, 0], [28_000, 1]], [0.5, 0.5], "none", 0.01))
    with pytest.raises(rota.Infeasible, match=r"2,003 phases and 30,000 boundary levels, which would take about .* GB: simulate"):
        large.response_time_distribution(0)


def test_too_many_steps():
    """A limit on the number of steps ends in an error that says so."""
    answer = rota.analyze(*paper_case(0.9, "none", 0.06))
    with pytest.raises(rota.NotConverged, match="steps: simulate"):
        uniform(answer.queues[1], most_steps=50)
