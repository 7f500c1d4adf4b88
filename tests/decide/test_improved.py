"""Improved rotas: the reference event by event, the guarantee, and what they refuse."""

import numpy as np
import pytest
from hypothesis import assume, given, settings

import rota
from reference_simulator import Given, Improved, assert_agrees
from rota.analysis import analyze
from rotas import PREEMPTIONS, paper_case, paper_example, systems_and_rotas


@settings(deadline=None, max_examples=25)
@given(systems_and_rotas())
def test_as_the_reference(case):
    """On random rotas the compiled function and the definition in plain Python write the same log."""
    system, base = case
    assume(analyze(system, base).load.max() < 0.95)
    rng = np.random.default_rng(5)
    served = np.flatnonzero(base.candidates.max(axis=0) > 0)  # others never start
    times, kinds = np.cumsum(rng.exponential(0.3, 40)), rng.choice(served, 40)
    sizes = rng.exponential(1 / system.service_rate[kinds])
    given_jobs = Given(tuple(zip(times.tolist(), kinds.tolist(), sizes.tolist(), sizes.tolist(), strict=True)))
    assert_agrees(system, rota.Improved(base), given_jobs, seed=2)
    if base.preemption != "full":
        assert_agrees(system, rota.Improved(base, backfill=True), given_jobs, seed=2)


@settings(deadline=None, max_examples=40)
@given(systems_and_rotas())
def test_the_drift_of_the_proof(case):
    """In every state that it visits the relative values of the base fall at least as fast as under the base itself: η − Σ q."""
    system, base = case
    assume(base.preemption != "full" and analyze(system, base).load.max() < 0.95)
    check_drift(system, rota.Improved(base))
    if base.preemption != "full":
        check_drift(system, rota.Improved(base, backfill=True))


def check_drift(system, policy, most=5):
    """Visits all states (jobs, state of the base, setups, whether the base turns by itself) with at most so many jobs of each type."""
    reference = Improved(system, policy, np.random.SeedSequence(0))
    values, K = reference.values, len(system.names)
    process, eta = values.process, sum(found.mean for found in values.types)
    served = process.schedules.max(axis=0) > 0
    slots = process.schedules.tolist()

    def chosen(q, place, setups, runs):
        reference.place, reference.setups = place, list(setups)
        reference._choose(slots, list(q), list(runs))
        run = sum(min(n, u) for n, u in zip(q, slots[reference.place], strict=True))
        return q, reference.place, tuple(reference.setups), sum(q) > 0 and run == 0 and not any(reference.setups)

    def plus(vector, i, n):
        return tuple(count + n * (j == i) for j, count in enumerate(vector))

    start = chosen((0,) * K, 0, (0,) * K, (0,) * K)
    seen, waiting = {start}, [start]
    while waiting:
        q, place, setups, follows = state = waiting.pop()
        runs = [min(n, u) for n, u in zip(q, slots[place], strict=True)]
        moves = []
        for i in np.flatnonzero(served & (system.arrival_rate > 0)):
            moves.append((system.arrival_rate[i], chosen(plus(q, i, 1), place, setups, runs)))
            if runs[i]:
                reference.place = place
                reference._shorten(i)
                moves.append((runs[i] * system.service_rate[i], chosen(plus(q, i, -1), reference.place, setups, plus(runs, i, -1))))
            if setups[i]:
                moves.append((setups[i] * policy.base.setup_rate, chosen(q, place, plus(setups, i, -1), runs)))
        if follows:
            reference.place = place
            moves += [(rate, (q, where, setups, True)) for rate, where in reference._moves(runs) if rate > 0]
        here = values(q)[place]
        terms = [rate * (values(then[0])[then[1]] - here) for rate, then in moves]
        size = sum(map(abs, terms)) + eta + sum(q)
        assert sum(terms) <= eta - sum(q) + 1e-7 * size, state
        for _, then in moves:
            if then not in seen and max(then[0]) <= most:
                seen.add(then)
                waiting.append(then)


@pytest.mark.parametrize("preemption", PREEMPTIONS)
@pytest.mark.parametrize("load", [0.5, 0.8, 0.9])
def test_never_worse_than_its_base(preemption, load):
    """The simulated mean is below the exact mean of the base."""
    system = paper_example(load)
    base = rota.design_policy(system, preemption, objective="load", setup_rate=2.0 if preemption == "setup" else None)
    result = rota.simulate(system, rota.Improved(base), jobs=200_000, seed=3)
    assert result.stable
    assert result.mean_response_time - result.interval <= analyze(system, base).mean_response_time


def test_backfilling_on_top():
    """With backfilling the mean is below that of the base too, and here below that without: the base has one schedule only."""
    system = rota.System([4], [[1], [2]], [1.2, 0.5], [1.0, 1.0])
    base = rota.MSR([[2, 1]], preemption="none")
    plain, filled = (rota.simulate(system, rota.Improved(base, backfill), jobs=200_000, seed=3) for backfill in (False, True))
    assert filled.mean_response_time + filled.interval < plain.mean_response_time - plain.interval
    assert abs(plain.mean_response_time - analyze(system, base).mean_response_time) < 2 * plain.interval


@pytest.mark.parametrize("preemption", ["none", "setup"])
def test_no_jobs_are_forgotten(preemption):
    """When arrivals end, all jobs are served, also those that have no slot in the best state."""
    system, base = paper_case(0.8, preemption, 0.06)
    result = rota.simulate(system, rota.Improved(base), jobs=5_000, seed=1, warmup=0)
    assert not np.any(result.unfinished)


def test_setups_are_for_jobs_that_stop():
    """With very slow setups hardly any job is stopped; with fast ones many are."""
    system = paper_example(0.6)
    few, many = (
        rota.simulate(system, rota.Improved(rota.MSR([[0, 0, 2], [1, 4, 0]], [0.5, 0.5], "setup", 0.05, rate)), jobs=50_000, seed=1)
        for rate in (0.5, 50.0)
    )
    assert 0 < 5 * few.preemption_rate < many.preemption_rate


def test_refusals():
    """The base is a rota without backfilling."""
    _, base = paper_case(0.8, "none", 0.06)
    with pytest.raises(rota.BadSpec, match=r"base: must be a rota\.MSR"):
        rota.Improved("first-fit")
    with pytest.raises(rota.BadSpec, match="must not backfill"):
        rota.Improved(base.replace(backfill=True))
    with pytest.raises(rota.BadSpec, match="backfill: goes without full preemption"):
        rota.Improved(paper_case(0.8, "full", 0.5)[1], backfill=True)
    with pytest.raises(rota.BadSpec, match="backfill: must be True or False"):
        rota.Improved(base, backfill="hold")
    assert rota.Improved(base) == rota.Improved(base) != rota.Improved(base, backfill=True)
