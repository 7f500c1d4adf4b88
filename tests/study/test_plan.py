"""The plan: what it compares, what it recommends and why, and what it says when there is no answer."""

from dataclasses import replace

import numpy as np
import pytest

import rota
from rota.errors import BadSpec, Unstable
from rota.policy import policy_from_json, policy_to_json
from rota.study.plan_choice import choose
from rota.study.plan_growth import Limit, jobs_at, loads_around
from rota.study.plan_words import beside_the_paper
from systems import compared, paper_example

QUICK = {"jobs": 20_000, "seed": 1, "tuning_s": 0.3, "optimum_s": 0}


@pytest.fixture(scope="module")
def low():
    """The paper's example at low load."""
    return rota.plan(paper_example(0.4), **QUICK)


@pytest.fixture(scope="module")
def busy():
    """The same at a load that first come, first served cannot carry."""
    return rota.plan(paper_example(0.9), jobs=100_000, seed=1, tuning_s=0.3, optimum_s=0)


def test_policies_follow_the_preemption_model(low):
    """Without preemption only policies that never stop a job are compared; with it there are more."""
    assert list(low.results) == [
        "fcfs",
        "first-fit",
        "easy",
        "max-weight-np",
        "nMSR+backfill",
        "nMSR",
        "improved nMSR+backfill",
        "adaptive",
    ]
    assert all(result.preemption_rate == 0 for result in low.results.values())
    system = paper_example(0.3).with_preemption("setup", 0.1)
    assert {"sMSR", "sMSR+backfill", "nMSR", "nMSR+backfill"} < set(rota.plan(system, jobs=5000, tuning_s=0.05, optimum_s=0).results)


def test_the_load_is_solved_once(monkeypatch):
    """All designs of a plan, at its own load and at the others, go by one solution; close rotas also solve for the slots they aim at."""
    rota.system_load(paper_example())  # the first one of a process also compiles
    solved = []
    answer = rota.capacity.load._Search.answer
    monkeypatch.setattr(rota.capacity.load._Search, "answer", lambda search, time_s: solved.append(search) or answer(search, time_s))
    found = rota.plan(paper_example(0.6).with_preemption("setup", 0.1), jobs=5000, tuning_s=0.05, optimum_s=0)
    mix = found.system.arrival_rate / found.system.arrival_rate.sum()
    same = [search.system for search in solved if np.allclose(search.system.arrival_rate / search.system.arrival_rate.sum(), mix)]
    assert same == [found.system]


def test_low_load_needs_no_rota(low):
    """At low load a simple policy is as good as any, and the plan says so instead of selling a rota."""
    assert low.recommended_name in ("fcfs", "first-fit", "easy", "max-weight-np")
    best = min(result.mean_response_time for result in low.results.values())
    assert low.results[low.recommended_name].mean_response_time <= 1.05 * best
    assert "The rota with backfilling takes" in low.explain()


def test_high_load(busy):
    """At load 0.9 first come, first served gives up, the recommended policy does not, and the text says both."""
    assert not busy.results["fcfs"].stable
    assert busy.results[busy.recommended_name].stable
    assert "cannot carry this load" in busy.explain()
    assert busy.limits["fcfs"].grows < 0.9 < busy.limits["nMSR"].middle == 1.0
    assert busy.limits["nMSR"].proved


def test_table_has_paired_differences(busy):
    """One row per policy; the recommended one is the reference; a policy that is unstable has no difference.

    The difference of a policy that saw all jobs is that of the means; that of one that was stopped early is on the jobs that it saw.
    """
    rows = {row["policy"]: row for row in busy.table().to_dicts()}
    assert [name for name, row in rows.items() if row["recommended"]] == [busy.recommended_name]
    assert rows[busy.recommended_name]["difference"] is None
    assert rows["fcfs"]["difference"] is None
    best, stopped = rows[busy.recommended_name]["mean_response_time"], busy.comparison.stopped
    known = [name for name, row in rows.items() if row["difference"] is not None]
    assert known
    for name in known:
        on_all = rows[name]["mean_response_time"] - best
        expected = stopped[name].against[busy.recommended_name].mean if name in stopped else on_all
        assert rows[name]["difference"] == pytest.approx(expected)
        assert (busy.results[name].jobs < busy.jobs) == (name in stopped)


def test_theory_and_simulation_of_the_rota_agree(low):
    """The exact mean of the rota lies between its bounds and within the interval of the simulation, widened by half."""
    answer, result = low.analysis, low.results["nMSR"]
    assert low.exact
    assert (answer.lower <= answer.exact + 1e-9).all()
    assert (answer.exact <= answer.upper + 1e-9).all()
    assert abs(answer.mean_response_time - result.mean_response_time) < 3 * result.interval


def test_the_paper_is_beside_the_rota(low, busy):
    """The plan has both mean response times, that of its rota and that of the paper's design, and its words say that they are exact."""
    for plan in (low, busy):
        paper = rota.analyze(plan.system, rota.design_policy(plan.system, objective="load")).mean_response_time
        assert plan.balanced.exact
        assert plan.balanced.mean_response_time == pytest.approx(paper)
        assert (
            f"The rota without backfilling has a mean response time of {plan.analysis.mean_response_time:.4g}; "
            f"the paper's design, with balanced loads, has {paper:.4g} (both exact)."
        ) in plan.explain()
    assert busy.analysis.mean_response_time < busy.balanced.mean_response_time


def test_bounds_are_called_bounds(low):
    """Where a number is a lower bound, or holds for exponential sizes only, the words say so."""
    words = beside_the_paper(replace(low, balanced=replace(low.balanced, exact=False), as_given=False))
    assert (
        f"has at least {low.balanced.mean_response_time:.4g} (the first exact, the other a lower bound, if sizes were exponential)."
        in words
    )


def test_a_server_that_needs_no_switching():
    """A large server: the rota is one schedule, at all loads that allow it, and the plan copes."""
    system = rota.System([256], [[1], [4]], [80.0, 12.0], [1, 1], preemption="none", names=["small", "large"])
    found = rota.plan(system, jobs=5000, tuning_s=0.2, optimum_s=0)
    assert len(found.rota.weights) == 1
    assert found.results["nMSR"].stable
    assert found.analysis.mean_response_time < 1.02
    assert "nMSR" in found._repr_html_()


def test_grid_holds_the_own_load(low):
    """Every policy has a row at every load, and the row at the system's own load is the comparison's."""
    loads = loads_around(low.load.load)
    assert loads == sorted(loads)
    assert low.by_load.height == len(loads) * len(low.results)
    own = low.by_load.filter(low.by_load["load"] == low.load.load)
    assert own["mean_response_time"].to_list() == [result.mean_response_time for result in low.results.values()]


def test_recommended_policy_becomes_a_file(low, busy):
    """Whatever is recommended can be written down and read again."""
    for plan in (low, busy):
        assert policy_from_json(policy_to_json(plan.recommended)) == plan.recommended


def test_too_few_jobs_do_not_make_a_slow_policy_as_good():
    """A policy that is clearly slower is not called as good as the fastest only because its interval is wide."""
    system = paper_example(0.8)
    results = {name: rota.simulate(system, name, jobs=5000, seed=0) for name in ("fcfs", "first-fit")}
    slower = results["fcfs"].mean_response_time / results["first-fit"].mean_response_time
    wide = Limit(0.95, 0.96, False)
    name, *_ = choose(compared(results), dict.fromkeys(results, wide), 0.8)
    assert slower > 1.1
    assert name == "first-fit"


def test_ties_go_to_the_simplest_with_room():
    """Two policies with the same results: the simpler one, unless it leaves no room for load to grow."""
    result = rota.simulate(paper_example(0.5), "first-fit", jobs=5000)
    results = {"first-fit": result, "nMSR+backfill": result}
    wide, narrow = Limit(0.9, 0.92, False), Limit(0.5, 0.51, False)
    assert choose(compared(results), {"first-fit": wide, "nMSR+backfill": wide}, 0.5)[0] == "first-fit"
    name, reason, *_ = choose(compared(results), {"first-fit": narrow, "nMSR+backfill": wide}, 0.5)
    assert name == "nMSR+backfill"
    assert "First-Fit is simpler" in reason


def test_overload_says_by_how_much_and_what_to_do():
    """A load above 1 has no plan; the message has the excess, the scaling and the capacity, and that capacity is enough."""
    system = paper_example(1.2)
    with pytest.raises(Unstable, match=r"20\.0% more than .* less than 0\.8333.*'resource1' from 20 to (\d+)") as caught:
        rota.plan(system, **QUICK)
    cores = float(str(caught.value).split("from 20 to ")[1].split(",")[0])
    assert rota.system_load(system.replace(capacity=[cores, *system.capacity[1:]])).load <= 0.95


def test_too_few_jobs():
    """A handful of jobs says nothing."""
    with pytest.raises(BadSpec, match="at least 5000"):
        rota.plan(paper_example(0.5), jobs=100)


def test_notebook(low):
    """A plan shows itself as sentences and a table."""
    shown = low._repr_html_()
    assert shown.startswith("<p>Run ")
    assert "<table" in shown
    assert repr(low).startswith("<Plan: ")
    assert np.isfinite(low.time_s)


def test_no_policy_is_recommended_that_starves_a_type():
    """Jobs that need the whole server hardly ever start under First-Fit: its low mean over the others does not make it the choice."""
    system = rota.System([20], [[1], [20]], [16.0, 0.0003], [1.0, 0.05], names=["small", "large"])
    results = {name: rota.simulate(system, name, jobs=8_000_000) for name in ("first-fit", "easy")}
    assert not (results["first-fit"].stable and np.isfinite(results["first-fit"].interval))
    name, reason, *_ = choose(compared(results), dict.fromkeys(results, Limit(0.95, 0.96, False)), 0.8)
    assert name == "easy"
    assert reason.startswith("It is the only one")
    assert np.isfinite(results["easy"].response_time).all()


def test_a_plan_says_which_types_do_worse(low):
    """Every type that takes much longer than under another policy is named, who loses most first; what is within the error is not."""
    name, other = low.recommended_name, next(n for n in low.results if n != low.recommended_name and low.results[n].stable)
    times = {name: np.array([4.0, 1.0, 9.0]), other: np.array([2.0, 1.0, 3.0])}
    results = [
        replace(
            result,
            response_time=times.get(label, np.array([5.0, 5.0, 9.5])),
            response_time_interval=np.full(3, 0.1),
            waiting_time=times.get(label, np.ones(3)) - 0.5,
        )
        for label, result in low.results.items()
    ]
    hours = replace(low, system=low.system.replace(time_unit="h"), comparison=replace(low.comparison, results=tuple(results)))
    assert [(row.type, row.mean, row.other, row.other_mean) for row in hours.worse_off] == [
        ("type3", 9.0, other, 3.0),
        ("type1", 4.0, other, 2.0),
    ]
    first, second = hours.explain().split("\n")[1:3]
    assert first.startswith(
        "Type 'type3' does worse than under another policy: 9 ± 0.1 h on average, of which 8.5 h waiting; 3 ± 0.1 h under"
    )
    assert second.startswith("Type 'type1' does worse than under another policy: 4 ± 0.1 h")
    unsure = [replace(result, response_time_interval=np.full(3, 30.0)) for result in results]
    assert replace(hours, comparison=replace(low.comparison, results=tuple(unsure))).worse_off == ()


def test_the_improved_rota_takes_part(low, busy):
    """It is compared at every load, its limit is proved, and its simulated mean keeps the proved bound: the exact mean of its base."""
    for plan in (low, busy):
        result = plan.results["improved nMSR+backfill"]
        assert result.policy.base == plan.rota
        assert result.mean_response_time <= plan.analysis.mean_response_time + result.interval
        assert plan.limits["improved nMSR+backfill"].proved
        assert plan.by_load.filter(plan.by_load["policy"] == "improved nMSR+backfill").height == len(loads_around(plan.load.load))


def test_the_optimum_is_beside_every_policy():
    """On a small system the plan says how far each policy is from the best possible, and the words say the same."""
    system = rota.System([2], [[1], [2]], [0.5, 0.3], [1.0, 1.0], preemption="none", names=["small", "large"])
    found = rota.plan(system, jobs=20_000, tuning_s=0.1, optimum_s=60)
    assert found.optimum.settled
    rows = {row["policy"]: row for row in found.table().to_dicts()}
    for name, result in found.results.items():
        assert rows[name]["above_optimum"] == pytest.approx(result.mean_response_time / found.optimum.mean - 1)
        assert result.mean_response_time + result.interval >= found.optimum.lower_bound
    above = rows[found.recommended_name]["above_optimum"]
    assert (
        f"The best policy possible has a mean response time of {found.optimum.mean:.4g}: this one is {above:.0%} above it."
        in found.explain()
    )


def test_a_plan_under_a_limit():
    """A limit that some policies break: they are excluded with the reason, in the table too, and the policy to run keeps it."""
    system = paper_example(0.8)
    free = rota.plan(system, jobs=50_000, seed=1, tuning_s=0.2, optimum_s=0)
    slow = max((result.response_time + result.response_time_interval)[2] for result in free.results.values() if result.stable)
    limit = float(free.results["first-fit"].response_time[2] + 2 * free.results["first-fit"].response_time_interval[2])
    assert limit < slow
    found = rota.plan(system, objective="worst-type", limits={"type3": limit}, jobs=50_000, seed=1, tuning_s=0.2, optimum_s=0)
    chosen = found.results[found.recommended_name]
    assert found.keeps_limits
    assert chosen.response_time[2] + chosen.response_time_interval[2] <= limit
    assert found.recommended_name not in found.excluded
    assert found.excluded
    rows = {row["policy"]: row for row in found.table().to_dicts()}
    assert all(rows[name]["excluded"] == text for name, text in found.excluded.items())
    assert "Excluded by the limits: " in found.explain()
    assert found.explain().startswith("Run ")
    assert rows[found.recommended_name]["objective"] == pytest.approx((chosen.response_time * system.service_rate).max())


def test_a_plan_says_what_it_does_not_know():
    """A policy whose mean has no interval is not said to be as good, nor better or worse: its error is not known."""
    system = rota.System([20], [[1], [20]], [16.0, 0.0003], [1.0, 0.05], names=["small", "large"])
    found = rota.plan(system, jobs=20_000, tuning_s=0.1, optimum_s=0)
    assert "large" in found.results[found.recommended_name].unknown
    assert any(sentence.startswith("Only ") and "'large'" in sentence for sentence in found.explain().split("\n")[:3])
    assert found.table()["unknown"].to_list() == [["large"]] * len(found.results)


def test_fewer_jobs_at_low_loads():
    """Jobs at another load fall with the load, never below a fifth, nor below what the rarest type needs for a mean."""
    system = paper_example(0.9)
    few = [jobs_at(at, system, 200_000) for at in (0.3, 0.5, 0.7, 0.8, 0.95)]
    assert few == sorted(few)
    assert few[0] == 40_000
    assert few[-2:] == [200_000, 200_000]
    rare = rota.System([2], [[1], [1]], [1.0, 0.002], [1.0, 1.0])
    enough = jobs_at(0.3, rare, 200_000)
    assert enough > 40_000
    assert enough * 0.8 * 0.002 / 1.002 >= 100 * (1 - 1e-3)


def test_policies_that_lose_clearly_see_fewer_jobs(busy):
    """The table says how many jobs each policy saw; the recommended one saw all, and so did every other that may be as good."""
    rows = {row["policy"]: row for row in busy.table().to_dicts()}
    assert rows[busy.recommended_name]["jobs"] == busy.jobs == 100_000
    assert rows["fcfs"]["jobs"] < busy.jobs
    for name, row in rows.items():
        early = name in busy.comparison.stopped
        assert (row["jobs"] < busy.jobs) == early
        if early and row["stable"]:
            assert row["difference"] - row["difference_interval"] > 0.1 * rows[busy.recommended_name]["mean_response_time"] * 0.8
    shown = rota.plan(paper_example(0.9), jobs=20_000, tuning_s=0.1, optimum_s=0, limits={"type1": 1e9})
    assert all(one.why == "growing" for one in shown.comparison.stopped.values())
