"""The covering program: linear programming over all schedules, its residuals and its proof, whole targets, large servers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import rota
from rota.capacity import cover, integer_units
from rota.capacity.covering import _near_schedules
from systems import EXAMPLES, paper_example, small_systems

COSTS = st.floats(0.05, 5)


def distance_over_all_schedules(system, target, cost):
    """min Σ π_s d_s s.t. Σ π_s s ≥ x, Σ π = 1 over every schedule there is, by scipy."""
    schedules = rota.list_schedules(system)
    answer = linprog(
        np.abs(schedules - target) @ cost,
        A_ub=-schedules.T,
        b_ub=-target,
        A_eq=np.ones((1, len(schedules))),
        b_eq=[1.0],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.status == 0
    return answer.fun


def check(system, found, target, cost):
    """It covers the target with schedules that fit, weights sum to 1, and the distance is the one of its candidates."""
    assert rota.fits(system, found.candidates).all()
    assert (found.weights > 0).all()
    assert found.weights.sum() == pytest.approx(1, abs=1e-12)
    assert (found.weights @ found.candidates >= target - 1e-7 * np.maximum(target, 1)).all()
    assert found.distance == pytest.approx(found.weights @ (np.abs(found.candidates - target) @ cost), rel=1e-12)
    assert len(found.weights) <= (target > 0).sum() + 1


@settings(deadline=None)
@given(small_systems(), st.floats(0.05, 1), st.data())
def test_no_mix_of_schedules_is_closer(system, part, data):
    """The distance is that of the linear program over all schedules, within the proved gap, whatever the costs and the target."""
    target = part * system.offered_work / rota.system_load(system).load
    cost = np.array(data.draw(st.lists(COSTS, min_size=len(target), max_size=len(target))))
    found = cover(system, target, cost, gap=1e-6)
    check(system, found, target, cost)
    best = distance_over_all_schedules(system, target, cost)
    scale = max(best, cost.max())
    assert found.distance == pytest.approx(best, abs=1e-5 * scale)
    assert found.distance - found.gap <= best + 1e-7 * scale
    assert found.gap <= 1e-5 * scale


@pytest.mark.parametrize("name", ["borg", "gpu", "paper", "vm", "web"])
def test_examples(name):
    """On every example, half way between load 0.9 and 1: covered, and proved to a ten-thousandth."""
    system = rota.read_system(EXAMPLES / f"{name}.toml").scaled(load=0.9)
    target = system.offered_work / 0.95
    found = cover(system, target, load=rota.system_load(system))
    check(system, found, target, np.ones(len(target)))
    assert found.gap <= 1e-4 * found.distance


def test_a_whole_target_that_fits_is_the_only_schedule():
    """Nothing is closer to a schedule than itself."""
    found = cover(paper_example(), [1, 2, 0])
    assert found.candidates.tolist() == [[1, 2, 0]]
    assert found.weights.tolist() == [1]
    assert found.distance == found.gap == 0


def test_of_two_types_half_a_job_each():
    """One core, two types, half of the time each: (0, 1) and (1, 0), one job away from (½, ½)."""
    system = rota.System([1.0], [[1.0], [1.0]], [0.5, 0.5], [1.0, 1.0])
    found = cover(system, [0.5, 0.5])
    assert found.candidates.tolist() == [[0, 1], [1, 0]]
    assert found.weights == pytest.approx([0.5, 0.5], abs=1e-9)
    assert found.distance == pytest.approx(1, abs=1e-9)


def test_nothing_to_cover():
    """The target 0 is covered by an empty server."""
    found = cover(paper_example(), [0, 0, 0])
    assert found.candidates.tolist() == [[0, 0, 0]]
    assert found.distance == 0


def test_types_that_do_not_arrive_are_left_out():
    """A type of target 0 has no slot in any schedule."""
    assert (cover(paper_example(), [0.5, 0, 1.0]).candidates[:, 1] == 0).all()


def test_costs_decide_which_types_move():
    """A type that is dear to move stays nearer to its target than where it is cheap."""
    system = paper_example(0.9)
    target = system.offered_work / 0.97

    def spread(cost):
        found = cover(system, target, cost)
        return found.weights @ np.abs(found.candidates - target)

    dear, cheap = spread([1, 1, 10]), spread([1, 1, 0.1])
    assert dear[2] <= cheap[2] + 1e-9


def test_a_large_server():
    """A hundred thousand cores, fifty types, thousands of jobs at once: covered and proved to a thousandth, at most a job per type away."""
    rng = np.random.default_rng(1)
    cores = rng.integers(1, 65, 50).astype(float)
    demand = np.column_stack([cores, rng.integers(1, 257, 50)])
    system = rota.System([1e5, 4e5], demand, rng.uniform(0.1, 1, 50) / cores, np.ones(50)).scaled(load=0.9)
    target = system.offered_work / 0.95
    found = cover(system, target, gap=1e-3)
    check(system, found, target, np.ones(50))
    assert found.gap <= 1e-3 * found.distance
    assert found.distance <= 50


def test_a_target_beyond_the_server_is_refused():
    """The load of the target is 1.25: scale it by 0.8 at most."""
    with pytest.raises(rota.Infeasible, match=r"scale it by at most 0\.8"):
        cover(paper_example(), np.array([0.5, 2, 1]) * 1.25)


@pytest.mark.parametrize(
    ("target", "cost", "place"),
    [([1, 1], None, "target"), ([1, -1, 0], None, "target"), ([1, np.nan, 0], None, "target"), ([1, 1, 0], [1, 0, 1], "cost")],
)
def test_misuse(target, cost, place):
    """Targets and costs are one number per type; costs are positive."""
    with pytest.raises(rota.BadSpec, match=place):
        cover(paper_example(), target, cost)


@settings(deadline=None, max_examples=50)
@given(small_systems(), st.integers(0, 2**32 - 1))
def test_schedules_by_local_search(system, seed):
    """They fit, none is worth less than the base where they start, and at prices of nothing else than distance they stay there."""
    rng = np.random.default_rng(seed)
    units = integer_units(system)
    K, R = units.demand.shape
    x = rng.uniform(0.3, 1) * system.offered_work / rota.system_load(system).load
    base, cost = np.floor(x).astype(np.int64), rng.uniform(0.1, 1, K)
    weight, noise = rng.exponential(1, (5, R)) / units.capacity, rng.uniform(-1, 1, (5, K))

    def search(y):
        values = y - cost * (1 - 2 * (x - base)), y - cost, y + cost
        found = _near_schedules(units.demand, units.capacity, base, *values, weight, noise)
        assert rota.fits(system, found).all()
        return found, np.abs(found - x) @ cost - found @ y

    y = rng.exponential(1, K)
    assert (search(y)[1] <= np.abs(base - x) @ cost - base @ y + 1e-9).all()
    found = search(np.zeros(K))[0]
    assert (found - x <= 0.5 + 1e-9).all()
    assert (found >= base).all()
