"""How far policies are from the best possible: the optimum, a bound, or a remark."""

import pytest

import rota
from rota.study.plan_optimum import Optimum, OptimumSearch, find_optimum
from systems import paper_example


def test_one_server_has_a_closed_form():
    """On one server with one type every policy that does not idle is best: E[T] = 1/(μ − λ)."""
    found = find_optimum(rota.System([1], [[1]], [0.5], [1.0], preemption="none"), 60.0)
    assert found.settled
    assert found.mean == pytest.approx(2.0, rel=0.01)
    assert found.lower_bound <= 2.0 * (1 + 1e-9)
    assert found.above(3.0) == pytest.approx(0.5, abs=0.02)


def test_no_policy_is_below_the_bound():
    """On the paper's example at load 0.5 the bound is below the simulated mean of every policy of the model, by its interval at least."""
    system = paper_example(0.5)
    bound = find_optimum(system, 60.0).lower_bound
    for name in ("first-fit", "max-weight-np", "improved"):
        result = rota.simulate(system, name, jobs=50_000)
        assert bound <= result.mean_response_time + result.interval


def test_setups_have_a_bound_only():
    """Who must set up after a stop is no better off than who need not: the optimum of full preemption is a bound."""
    system = paper_example(0.4)
    setups, full = (find_optimum(system.with_preemption(*model), 60.0) for model in (("setup", 0.1), ("full",)))
    assert not setups.settled
    assert setups.reference == setups.lower_bound == pytest.approx(full.lower_bound)


@pytest.mark.parametrize(
    ("system", "words"),
    [
        (rota.read_system("examples/gpu.toml"), "type 'finetune' has lognormal sizes"),
        (rota.System([400], [[1], [2], [3]], [40.0] * 3, [1.0] * 3, preemption="none"), "not known: "),
    ],
)
def test_what_cannot_be_solved_is_one_remark(system, words):
    """Other sizes than exponential ones, or too many states: no number, and one sentence that says why."""
    found = find_optimum(system, 5.0)
    assert (found.reference, found.above(3.0), found.settled) == (None, None, False)
    assert found.remark.startswith("How far this is from the best possible is not known: ")
    assert words in found.remark
    assert found.remark.endswith(".")
    assert ". " not in found.remark


def test_zero_seconds_leave_it_out():
    """No work, no number, no remark."""
    assert find_optimum(paper_example(0.5), 0) == Optimum()


def test_a_plan_does_not_wait_for_the_end_of_the_search(monkeypatch):
    """Asked for what it has, the search gives its bound so far once it has had its least time; without a bound yet, a remark."""
    system = paper_example(0.95)
    monkeypatch.setattr("rota.study.plan_optimum._LEAST_PART", 0.004)
    with OptimumSearch(system, 500.0) as search:
        found = search.result()
    assert not found.settled
    assert 1 < found.lower_bound < 11.4
    monkeypatch.setattr("rota.study.plan_optimum._LEAST_PART", 0.0)
    with OptimumSearch(system, 500.0) as search:
        found = search.result()
    assert found.reference is not None or found.remark.startswith("How far this is from the best possible is not known: ")
