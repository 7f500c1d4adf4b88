"""Column generation with many types: halves, the exact search, and what is left after an interrupt, against all schedules."""

import time

import numpy as np
import pytest
from scipy.optimize import linprog

import rota
from rota.capacity import generation, pricing
from rota.capacity.generation import Generation, _split


def many_types(seed, K, R, capacity=9, least=3):
    """K types of which at most three fit at once, so that all schedules can be listed."""
    rng = np.random.default_rng(seed)
    return rota.System(np.full(R, capacity), rng.integers(least, capacity, (K, R)), rng.random(K) + 0.01, np.ones(K))


def over_all_schedules(system):
    """The load by linear programming over all schedules, and these."""
    schedules = rota.list_schedules(system)
    answer = linprog(np.ones(len(schedules)), A_ub=-schedules.T, b_ub=-system.offered_work, method="highs")
    assert answer.status == 0
    return answer.fun, schedules


def check(best, system, truth, schedules, gap):
    """The mix attains the load, the prices prove the bound over all schedules, and the truth lies between."""
    served = best.weights @ best.candidates
    assert rota.fits(system, best.candidates).all()
    assert len(best.candidates) <= len(system.names)
    assert (served * best.load >= system.offered_work * (1 - 1e-12)).all()
    assert (schedules @ best.type_price <= 1 + 1e-9).all()
    assert best.type_price @ system.offered_work == pytest.approx(best.lower_bound, rel=1e-9)
    assert best.lower_bound * (1 - 1e-9) <= truth <= best.load * (1 + 1e-9)
    assert best.gap <= gap


@pytest.mark.parametrize(("K", "R"), [(60, 1), (60, 3), (110, 2)])
def test_many_types_over_all_schedules(K, R):
    """With many types, and halves of them, the load is that of the linear program over all schedules, and its prices prove it."""
    system = many_types(K, K, R)
    truth, schedules = over_all_schedules(system)
    best = rota.system_load(system)
    check(best, system, truth, schedules, 1e-7)
    assert best.load == pytest.approx(truth, rel=2e-7)


@pytest.mark.parametrize("seed", range(6))
def test_halves_of_few_types(monkeypatch, seed):
    """Halves of halves, down to three types, change nothing about the answer: over all schedules, for types of all sizes and rates."""
    monkeypatch.setattr(generation, "_WHOLE", 3)
    rng = np.random.default_rng(seed)
    K, R = int(rng.integers(4, 12)), int(rng.integers(1, 4))
    system = rota.System(np.full(R, 8), rng.integers(1, 9, (K, R)), 10.0 ** rng.uniform(-3, 3, K), np.ones(K))
    truth, schedules = over_all_schedules(system)
    check(rota.system_load(system), system, truth, schedules, 1e-7)


def test_without_exact_searches_the_integer_program_decides(monkeypatch):
    """Where neither branch and bound nor tables may search, the answer is the same."""
    monkeypatch.setattr(pricing, "_SHORT", 1)
    monkeypatch.setattr(pricing, "_LISTS", 1)
    monkeypatch.setattr(pricing, "_LONG", 1)
    system = many_types(1, 12, 2)
    truth, schedules = over_all_schedules(system)
    best = rota.system_load(system)
    check(best, system, truth, schedules, 1e-7)
    assert best.exact_solves > 0


def test_no_time_with_many_types():
    """With no time at all there are no halves, and the gap is honest."""
    system = many_types(2, 110, 2)
    truth, schedules = over_all_schedules(system)
    hasty = rota.system_load(system, time_limit_s=0)
    check(hasty, system, truth, schedules, np.inf)
    assert hasty.iterations == 1
    assert hasty.gap > 0.01


@pytest.mark.parametrize(("whole", "size", "solves"), [(100, 55, 1), (100, 55, 3), (30, 28, 3)])
def test_an_interrupt_within_the_halves(monkeypatch, whole, size, solves):
    """Ctrl-C while a half, or a half of a half, is solved returns what is known by then, with its gap, and with what it has found."""
    monkeypatch.setattr(generation, "_WHOLE", whole)
    system = many_types(3, 110, 2)
    truth, schedules = over_all_schedules(system)
    alone = rota.system_load(system, time_limit_s=0)
    solve, calls = Generation.solve_master, []

    def interrupted(self):
        if len(self.work) == size:
            calls.append(self.iterations)
            if len(calls) == solves:
                raise KeyboardInterrupt
        solve(self)

    monkeypatch.setattr(Generation, "solve_master", interrupted)
    best = rota.system_load(system)
    assert calls[:solves] == list(range(solves))
    check(best, system, truth, schedules, np.inf)
    assert best.gap > 1e-7
    assert best.load <= alone.load
    assert best.load < alone.load or solves == 1


def test_a_deadline_that_is_over_ends_a_generation():
    """After the deadline nothing is searched for: one solution of the master is the answer."""
    system = many_types(4, 20, 2)
    units = rota.capacity.integer_units(system)
    found = Generation(system.offered_work, units.demand, units.capacity, rota.largest_counts(system))
    found.run(0.0, time.perf_counter() - 1)
    assert found.iterations == 1
    assert found.lower <= found.upper < np.inf


@pytest.mark.parametrize("K", [2, 3, 40, 101])
def test_split(K):
    """Each type is in one half, the halves are equally many up to one, and ask for much the same of every resource."""
    asked = np.random.default_rng(K).random((K, 3))
    first, second = _split(asked)
    assert sorted([*first, *second]) == list(range(K))
    assert abs(len(first) - len(second)) <= 1
    assert np.abs(asked[first].sum(axis=0) - asked[second].sum(axis=0)).max() <= 2.0
