"""When a job starts and ends: closed forms, a chain that follows every slot, linear systems for the mean, the law of response times."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from scipy.sparse import csc_array, diags_array
from scipy.sparse.linalg import expm_multiply

import rota
from rota.analysis import forecast_job
from rota.analysis.qbd import solve_levels
from rota.process import build_process
from rotas import PREEMPTIONS, paper_case, systems_and_rotas, twice_round

TIMES = np.array([0.0, 0.01, 0.3, 1.0, 4.0, 15.0, 60.0])
CASES = {
    "pMSR": paper_case(0.3, "full", 1.0),
    "nMSR": paper_case(0.3, "none", 0.5),
    "nMSR, parallel and early": paper_case(0.3, "none", 0.5, route="parallel", opening="early"),
    "sMSR": paper_case(0.3, "setup", 0.5),
    "twice round": twice_round("none", 0.3),
}


def job_chain(process, i, lam, mu, ahead, behind):
    """The generator (without what ends the job) on (jobs ahead, jobs behind, state), and the places where the job runs.

    Written from the policy, slot by slot: a slot holds one of the oldest jobs, or none, and rings at rate μ. At most `behind` later
    arrivals are followed.
    """
    N, slots = len(process), process.schedules[:, i]
    shape = (ahead + 1, behind + 1, N)
    rates: dict[tuple[int, int], float] = {}
    done = np.zeros(shape)
    for k, b, s in np.ndindex(*shape):
        here = int(np.ravel_multi_index((k, b, s), shape))
        moves = np.flatnonzero(process.source == s)
        own = [m for m in moves if process.trigger[m] == i]
        total = sum(process.rate[m] for m in own)
        ways = [(int(process.target[m]), process.rate[m] / total) for m in own] or [(s, 1.0)]
        out = [((k, b, int(process.target[m])), process.rate[m]) for m in moves if process.trigger[m] != i]
        out += [((k, b + 1, s), lam)] if b < behind else []
        for slot in range(slots[s]):
            for target, share in ways:
                if slot == k:
                    done[k, b, s] += mu * share
                else:
                    there = (k - 1, b, target) if slot < k else (k, b - 1, target) if slot <= k + b else (k, b, target)
                    out.append((there, mu * share))
        for there, rate in out:
            place = int(np.ravel_multi_index(there, shape))
            if place != here:
                rates[here, place] = rates.get((here, place), 0.0) + rate
    pairs, values = np.array(list(rates)), np.array(list(rates.values()))
    size = int(np.prod(shape))
    matrix = csc_array((values, (pairs[:, 0], pairs[:, 1])), shape=(size, size))
    runs = (np.arange(ahead + 1)[:, None, None] < slots) & np.ones(shape, dtype=bool)
    return (matrix - diags_array(matrix.sum(axis=1) + done.ravel())).tocsc(), runs, shape


@pytest.mark.parametrize("name", CASES)
def test_a_chain_that_follows_every_slot(name):
    """Start and end from each state equal those of a chain with every slot and two later arrivals, for few and for many jobs ahead."""
    system, policy = CASES[name]
    process, answer = build_process(system, policy), rota.analyze(system, policy)
    for i, ahead in ((0, 0), (1, 2), (1, 6), (2, 3)):
        Q, runs, shape = job_chain(process, i, system.arrival_rate[i], system.service_rate[i], ahead, behind=2)
        waits = np.flatnonzero(~runs.ravel())
        waiting = Q[waits][:, waits]
        for t in (0.4, 5.0):
            not_done = expm_multiply(Q * t, np.ones(Q.shape[0])).reshape(shape)[ahead, 0]
            not_started = np.zeros(Q.shape[0])
            not_started[waits] = expm_multiply(waiting * t, np.ones(len(waits)))
            not_started = not_started.reshape(shape)[ahead, 0]
            found = [answer.forecast(i, ahead=ahead, state=s) for s in range(len(process))]
            assert [f.end.tail(t) for f in found] == pytest.approx(not_done, rel=1e-8, abs=1e-11)
            assert [f.start.tail(t) for f in found] == pytest.approx(not_started, rel=1e-8, abs=1e-11)


@pytest.mark.parametrize(("slots", "ahead"), [(1, 1), (1, 6), (3, 3), (3, 50), (20, 25)])
def test_constant_slots(slots, ahead):
    """c slots, all taken: the start is a sum of k − c + 1 exponential times of rate cμ, and the job then runs for one of rate μ."""
    system = rota.System([slots], [[1]], [0.1], [0.5])
    found = rota.forecast(system, rota.MSR([[slots]]), 0, ahead=ahead)
    law = stats.gamma(ahead - slots + 1, scale=1 / (0.5 * slots))
    assert found.start.tail(TIMES) == pytest.approx(law.sf(TIMES), rel=1e-8, abs=1e-11)
    assert found.start.mean == pytest.approx(law.mean(), rel=1e-10)
    assert found.end.mean == pytest.approx(law.mean() + 2.0, rel=1e-10)
    for p in (0.01, 0.5, 0.8, 0.95, 0.999):
        assert found.start.quantile(p) == pytest.approx(law.ppf(p), rel=1e-7)


def test_a_free_slot():
    """Fewer jobs ahead than slots: the job starts at once, with certainty, and its end is exponential."""
    system = rota.System([3], [[1]], [0.1], [0.5])
    found = rota.forecast(system, rota.MSR([[3]]), 0, ahead=2)
    assert found.start.mean == found.start.quantile(0.99) == 0
    assert found.start.cdf(TIMES).tolist() == [1.0] * len(TIMES)
    assert found.end.tail(TIMES) == pytest.approx(np.exp(-0.5 * TIMES), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_mixed_over_what_an_arrival_sees(name):
    """An arrival finds k jobs and state s with probability π_k(s): mixed by this, the end is the response time, to 1e-9."""
    system, policy = CASES[name]
    answer = rota.analyze(system.scaled(load=0.2), policy)
    for i in range(3):
        levels = solve_levels(answer.queues[i])
        vectors = list(levels.vectors)
        while vectors[-1].sum() > 1e-12:
            vectors.append(vectors[-1] @ levels.rate_matrix)
        ends = [(v.sum(), answer.forecast(i, ahead=k, state=v / v.sum()).end) for k, v in enumerate(vectors)]
        mixed = sum(share * end.tail(TIMES) for share, end in ends)
        law = answer.response_time_distribution(i)
        assert mixed == pytest.approx(law.tail(TIMES), abs=1e-9)
        assert sum(share * end.mean for share, end in ends) == pytest.approx(law.mean, rel=1e-7)


def mean_start(process, i, mu, ahead):
    """E[start] from each state, by first steps: −S_k m_k = 1 + c m_{k−1}(s⁺) over the states in which the job waits behind k others."""
    slots = process.schedules[:, i]
    after, plain = np.zeros((len(process),) * 2), np.zeros((len(process),) * 2)
    for source, target, rate, trigger in zip(process.source, process.target, process.rate, process.trigger, strict=True):
        (after if trigger == i else plain)[source, target] += rate
    rings = np.where(after.sum(axis=1) > 0, 0.0, mu * slots)  # those that move nothing
    below = np.zeros(len(process))
    for k in range(ahead + 1):
        here = np.flatnonzero(slots <= k)
        leaves = plain.sum(axis=1) + mu * slots
        S = np.diag(leaves) - plain
        gain = 1 + after @ below + rings * below
        means = np.zeros(len(process))
        if len(here):
            means[here] = np.linalg.solve(S[np.ix_(here, here)], gain[here])
        below = means
    return below


@settings(max_examples=60)
@given(case=systems_and_rotas(), ahead=st.integers(0, 12), data=st.data())
def test_random_rotas(case, ahead, data):
    """The mean start is that of linear systems; it grows with the jobs ahead; who is not stopped runs for 1/μ; quantiles invert the law."""
    system, policy = case
    process, answer = build_process(system, policy), rota.analyze(system, policy)
    i = data.draw(st.sampled_from(np.flatnonzero(process.schedules.max(axis=0) > 0).tolist()))
    s = data.draw(st.integers(0, len(process) - 1))
    found, behind = (answer.forecast(i, ahead=k, state=s) for k in (ahead, ahead + 1))
    assert found.start.mean == pytest.approx(mean_start(process, i, system.service_rate[i], ahead)[s], rel=1e-9, abs=1e-12)
    assert (behind.start.tail(TIMES) >= found.start.tail(TIMES) - 1e-12).all()
    assert (found.end.tail(TIMES) >= found.start.tail(TIMES) - 1e-12).all()
    if policy.preemption == "none":
        assert found.end.mean == pytest.approx(found.start.mean + 1 / system.service_rate[i], rel=1e-9)
    for p in (0.5, 0.8, 0.95):
        if found.start.tail(0.0) > 1 - p:
            assert found.start.cdf(found.start.quantile(p)) == pytest.approx(p, abs=1e-9)


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_a_known_next_move(preemption):
    """Mixed over the exponential time of the next move, the laws that know it give those that do not; where it opens a slot, they jump."""
    system, policy = paper_case(0.5, preemption, 0.4)
    answer = rota.analyze(system, policy)
    process = answer.process
    rate = process.rate[process.source == 0].sum()
    for i, ahead in ((1, 3), (2, 1), (2, 4)):
        plain = answer.forecast(i, ahead=ahead, state=0)
        for law in ("start", "end"):

            def known(tau, of, law=law, i=i, ahead=ahead):
                return of(getattr(answer.forecast(i, ahead=ahead, state=0, next_move=tau), law))

            for t in (0.7, 3.0):
                before = quad(
                    lambda tau, t=t, known=known: rate * np.exp(-rate * tau) * known(tau, lambda x: x.tail(t)), 0, t, epsabs=1e-9
                )[0]
                later = np.exp(-rate * t) * known(t + 1e-9, lambda x, t=t: x.tail(t))  # before the move its time does not matter
                assert before + later == pytest.approx(getattr(plain, law).tail(t), abs=1e-7)
            ends = [0.0, 2.0, 8.0, 40.0, 120.0]
            parts = [
                quad(lambda tau, known=known: rate * np.exp(-rate * tau) * known(tau, lambda x: x.mean), a, b, epsabs=1e-8)[0]
                for a, b in itertools.pairwise(ends)
            ]
            assert sum(parts) == pytest.approx(getattr(plain, law).mean, rel=1e-5)
    if preemption == "full":  # type 1 has no slot in state 0 and four in state 1: with three jobs ahead it starts at the move
        found = answer.forecast(1, ahead=3, state=0, next_move=2.5)
        assert found.start.quantile(0.01) == found.start.quantile(0.99) == 2.5
        assert found.start.cdf([2.4999, 2.5]) == pytest.approx([0.0, 1.0], abs=1e-12)
        assert found.start.mean == pytest.approx(2.5)


def test_a_law_of_the_state():
    """A law of the state mixes the states; without one it is the stationary law."""
    system, policy = paper_case(0.5, "none", 0.4)
    answer = rota.analyze(system, policy)
    each = np.array([answer.forecast("type2", ahead=4, state=s).start.tail(TIMES) for s in range(len(answer.process))])
    law = np.arange(1.0, len(answer.process) + 1)
    law /= law.sum()
    assert answer.forecast(1, ahead=4, state=law).start.tail(TIMES) == pytest.approx(law @ each, rel=1e-9)
    assert rota.forecast(system, policy, 1, ahead=4).start.tail(TIMES) == pytest.approx(answer.process.stationary @ each, rel=1e-9)


def test_time_is_scaled():
    """With all rates three times as large every time is a third."""
    system, policy = paper_case(0.8, "setup", 0.2)
    slow = rota.forecast(system, policy, 1, ahead=7, state=0, next_move=3.0)
    faster = system.replace(arrival_rate=3 * system.arrival_rate, service_rate=3 * system.service_rate)
    fast = rota.forecast(faster, policy.replace(switching_rate=0.6, setup_rate=30.0), 1, ahead=7, state=0, next_move=1.0)
    assert fast.start.tail(TIMES / 3) == pytest.approx(slow.start.tail(TIMES), rel=1e-9, abs=1e-13)
    assert 3 * fast.end.quantile(0.95) == pytest.approx(slow.end.quantile(0.95), rel=1e-9)


def test_it_needs_no_stability_and_shows_itself():
    """At twice the load that the server can bear a job still has a start: who comes later does not matter."""
    system, policy = paper_case(0.5, "none", 0.4)
    same = rota.forecast(system.scaled(load=2.0), policy, 0, ahead=3, state=1)
    assert same.start.mean == pytest.approx(rota.forecast(system, policy, 0, ahead=3, state=1).start.mean, rel=1e-12)
    assert repr(same).startswith("<Forecast: starts within ")
    assert "<td" in same._repr_html_()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"ahead": -1}, "ahead: must be at least 0"),
        ({"ahead": 1.5}, "ahead: must be a whole number"),
        ({"state": 99}, "state: must be a state of the process, 0…"),
        ({"state": [0.5, 0.5]}, "probabilities that sum to 1"),
        ({"state": "working"}, "probabilities that sum to 1"),
        ({"next_move": 1.0}, "next_move: is known only in a state"),
        ({"state": 0, "next_move": -1.0}, "next_move: must be a time from now"),
        ({"state": 2, "next_move": 1.0}, "not a completion"),
        ({"type": "tpye"}, "no such type"),
    ],
)
def test_wrong_arguments(wrong, says):
    """What is wrong is named with its rule."""
    system, policy = paper_case(0.5, "none", 0.4)
    with pytest.raises(rota.BadSpec, match=says):
        rota.forecast(system, policy, **({"type": 1, "ahead": 3} | wrong))


def test_what_has_no_forecast():
    """Other policies, other sizes, types without a slot, and laws that would take hours are refused with the way out."""
    system, policy = paper_case(0.5, "full", 0.4)
    with pytest.raises(rota.Infeasible, match=r"use rota\.simulate"):
        rota.forecast(system, rota.FirstFit(), 0, ahead=1)
    with pytest.raises(rota.Infeasible, match="backfilling"):
        rota.forecast(system, policy.replace(backfill=True), 0, ahead=1)
    erlang = system.replace(sizes=[rota.Erlang(mean=1.0, phases=2)] * 3)
    with pytest.raises(rota.Infeasible, match="a forecast is for exponential sizes"):
        rota.forecast(erlang, policy, 0, ahead=1)
    assert rota.forecast(erlang, policy, 0, ahead=1, sizes="exponential").start.mean > 0
    with pytest.raises(rota.Infeasible, match="in no schedule"):
        rota.forecast(system, rota.MSR([[1, 4, 0]]), 2, ahead=1)
    slow = rota.analyze(system, policy.replace(switching_rate=1e-9))
    with pytest.raises(rota.Infeasible, match="simulate"):
        forecast_job(slow.queues[1], 3, 0, most_s=0.01)
    with pytest.raises(rota.Infeasible, match="leave next_move out"):
        forecast_job(slow.queues[2], 3, 0, 1e9, most_s=0.01)
