"""How far policies are from the best possible: the optimum, a bound, or a remark."""

from importlib import import_module

import pytest

import rota
from rota.model import read_any_spec
from rota.model.live import LiveSettings
from rota.optimal.chain import OutOfTime
from rota.policy import plan_file_from_json, plan_file_to_json
from rota.report.plan_files import plan_file
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


@pytest.mark.parametrize("preemption", ["none", "full"])
def test_what_is_proved_holds_where_the_time_was_too_short_for_a_table(preemption):
    """A busy machine: the clock is past the limit before anything is solved, and there is a bound all the same, without a remark."""
    system = paper_example(0.8).replace(preemption=preemption)
    found = find_optimum(system, 1e-9)
    assert found.lower_bound >= 1.0 - 1e-12  # the mean size at least
    assert (found.remark, found.settled, found.table) == ("", False, None)
    assert found.lower_bound <= rota.optimal_policy(system, accuracy=1e-2).mean_response_time


def test_what_the_first_values_prove_is_not_lost(monkeypatch):
    """The time ends while the law of the first table is sought: the bound is that of the values, far above the mean size."""

    def too_slow(*_):
        raise OutOfTime

    monkeypatch.setattr(import_module("rota.optimal.optimal_policy"), "stationary_law", too_slow)
    found = find_optimum(paper_example(0.8), 60.0)
    assert 2.0 < found.lower_bound < 2.79
    assert found.table is None


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


def test_the_table_of_the_search_is_compared_and_may_be_recommended():
    """Where it is the best by a significant difference it is recommended, at other loads it is simulated too, and its plan can be read."""
    system = rota.System([4], [[1], [4]], [1.6, 0.3], [1.0, 1.0], preemption="none", names=["small", "big"])
    options = {"jobs": 200_000, "tuning_s": 0.2, "optimum_s": 60.0}
    found = rota.plan(system, table=True, **options)
    assert found.recommended_name == "table-np"
    assert found.optimum.settled
    assert abs(found.optimum.above(found.results["table-np"].mean_response_time)) < 0.1
    assert found.results["table-np"].policy == found.optimum.table
    others = [result.mean_response_time for name, result in found.results.items() if name != "table-np" and result.stable]
    assert found.results["table-np"].mean_response_time < min(others)
    rows = found.by_load.filter(found.by_load["policy"] == "table-np")
    assert len(rows) == len(found.by_load.filter(found.by_load["policy"] == "first-fit"))
    assert "a table of decisions without preemption" in found.explain()
    text = plan_file_to_json(plan_file(found, LiveSettings()))
    assert plan_file_from_json(text).policy == found.optimum.table
    assert "table-np" not in rota.plan(system, **options | {"jobs": 20_000}).results  # unless it is asked for


def test_a_table_needs_a_search_and_one_server():
    """What cannot be is refused, with the reason."""
    system = paper_example(0.5)
    with pytest.raises(rota.BadSpec, match="optimum_s: must be positive"):
        rota.plan(system, table=True, optimum_s=0)
    fleet = read_any_spec("examples/fleet.toml").fleet
    with pytest.raises(rota.BadSpec, match="table: is for one server"):
        rota.plan(fleet, table=True)
