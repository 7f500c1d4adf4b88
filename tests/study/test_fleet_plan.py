"""The plan of a fleet: what it compares, recommends and says, and how many servers keep a target."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import rota
from fleets import two_kinds
from rota.analysis import mean_waiting
from rota.policy import fleet_plan_file_from_json, fleet_plan_file_to_json
from rota.report.fleet_page import fleet_plan_html
from rota.report.plan_files import fleet_plan_file
from rota.study.fleet_options import baseline_of, options_of
from systems import EXAMPLES


@pytest.fixture(scope="module")
def plan():
    """A quick plan."""
    return rota.plan(two_kinds(), jobs=20_000, tuning_s=0.5, targets={"type2": 1.2})


def test_what_is_compared():
    """Policies and rules from the simplest to the most complex, the file's own rule among them, and designs with exact values."""
    fleet = two_kinds().replace(dispatch=rota.Dispatch("power-of-d", 3, cost=0.1))
    options, left_out = options_of(fleet, rota.system_load(fleet), time_limit_s=1.0)
    names = [option.name for option in options]
    assert names[:3] == ["first-fit, random, cost 0.1", "first-fit, power-of-d 3, cost 0.1", "first-fit, power-of-d, cost 0.1"]
    assert "first-fit, pull" in names  # a job that is pulled is on no way
    assert names[-2:] == ["pinned", "split rotas"]
    assert not left_out
    assert baseline_of(fleet, dict.fromkeys(names)) == "first-fit, power-of-d 3, cost 0.1"
    assert [option.known is None for option in options[-2:]] == [False, True]  # what a way costs is not in the exact value
    free = two_kinds()
    for option in options_of(free, rota.system_load(free), time_limit_s=1.0)[0][-2:]:
        assert option.known.mean_response_time == pytest.approx(rota.analyze(free, option.policy).mean_response_time)
    assert baseline_of(fleet.replace(dispatch="pinned"), dict.fromkeys(names)) == "pinned"
    assert baseline_of(fleet.replace(dispatch=None), dict.fromkeys(names)) is None


def test_a_design_that_is_not_there_is_said():
    """Pinned servers do not exist for one server that has to turn: the plan goes on with one that turns."""
    fleet = rota.Fleet.equal(rota.read_system(EXAMPLES / "paper.toml"), 1)
    options, left_out = options_of(fleet, rota.system_load(fleet), time_limit_s=1.0)
    assert "pinned" not in [option.name for option in options]
    assert "no pinned servers were found" in left_out["pinned"]
    assert [option.name for option in options[-2:]] == ["partly pinned", "split rotas"]


def test_partly_pinned_servers_where_there_are_no_pinned_ones():
    """On three busy servers one has to turn: the plan simulates that beside its exact value, and its page and file can recommend it."""
    fleet = rota.Fleet.equal(rota.read_system(EXAMPLES / "paper.toml"), 3).scaled(load=0.9)
    found = rota.plan(fleet, jobs=100_000, tuning_s=1.0)
    assert "pinned" in found.left_out
    option, result = found.options["partly pinned"], found.results["partly pinned"]
    assert option.known.mean_response_time == pytest.approx(rota.analyze(fleet, option.policy).mean_response_time)
    assert abs(result.mean_response_time - option.known.mean_response_time) <= 3 * result.interval
    other = replace(found, recommended_name="partly pinned")
    assert other.explain().startswith("Pin most servers, each to one set of jobs, and let the others turn: mean response time")
    assert "1 server: turns: " in fleet_plan_html(other)
    assert fleet_plan_file_from_json(fleet_plan_file_to_json(fleet_plan_file(other))).policy == option.policy


def test_the_recommendation(plan):
    """No option is significantly better by more than 1 %, and the sentences say its numbers."""
    best = min(result.mean_response_time for result in plan.results.values() if result.stable)
    assert plan.result.mean_response_time <= 1.1 * best
    for name in plan.results:
        if name != plan.recommended_name and plan.results[name].stable:
            difference = plan.difference(name)
            assert difference.mean >= -0.01 * plan.result.mean_response_time or not difference.significant
    first = plan.explain().split("\n")[0]
    assert f"mean response time {plan.result.mean_response_time:.4g} ± {plan.result.interval:.2g} min" in first
    assert plan.lower_bound <= plan.result.mean_response_time + plan.result.interval
    assert plan.baseline == "first-fit, power-of-d"
    assert "The file names" in plan.explain() or "the one that the file names" in plan.explain()


def test_the_same_jobs_for_all(plan):
    """Every option saw the same jobs, and the table has a row for each."""
    assert len({result.fingerprint for result in plan.results.values()}) == 1
    table = plan.table()
    assert table["option"].to_list() == list(plan.results)
    assert table.filter("recommended")["option"].to_list() == [plan.recommended_name]
    assert "<table>" in plan._repr_html_()
    exact = table.filter(pl.col("option") == "pinned").row(0, named=True)
    assert abs(exact["mean_response_time"] - exact["exact"]) <= 3 * exact["interval"]


def test_one_more_server(plan):
    """Load by its own program, pinned by a design of its own."""
    assert {more.kind for more in plan.one_more} == {"plain", "large"}
    for more in plan.one_more:
        c = plan.fleet.kinds.index(more.kind)
        fleet = plan.fleet.replace(count=plan.fleet.count + np.eye(2, dtype=int)[c])
        load = rota.system_load(fleet)
        assert more.load == pytest.approx(load.load)
        assert more.carries[0] - 1e-6 <= plan.load.load / load.load - 1 <= more.carries[1] + 1e-6
        assert more.pinned == pytest.approx(rota.analyze(fleet, rota.design_pinned(fleet, load=load)).mean_response_time)
        assert more.result.fleet.count.tolist() == fleet.count.tolist()


def test_other_numbers_of_servers(plan):
    """Today's is among them; loads fall, values are above the bound, within their intervals."""
    rows = plan.by_servers.to_dicts()
    assert [row["count"] for row in rows if row["today"]] == [[4, 2]]
    assert [row["servers"] for row in rows] == sorted(row["servers"] for row in rows)
    for row in rows:
        assert row["load"] == pytest.approx(rota.system_load(plan.fleet.replace(count=row["count"])).load)
        if row["stable"]:
            assert row["mean_response_time"] + row["interval"] >= row["bound"]
        if row["pinned"] is not None:
            assert row["pinned"] >= row["bound"] - 1e-9


def test_the_target_is_kept(plan):
    """By the whole interval, on another seed too; one server less of a kind is not sure to keep it, and pinned servers keep it exactly."""
    enough = plan.enough
    assert enough.estimate.response_time[1] + enough.estimate.response_time_interval[1] <= 1.2
    fleet = plan.fleet.replace(count=list(enough.count))
    again = rota.simulate(fleet, plan.recommended.policy, dispatch=plan.recommended.dispatch, jobs=60_000, seed=99)
    assert again.response_time[1] - again.response_time_interval[1] <= 1.2
    there = fleet.replace(count=list(enough.pinned))
    assert rota.analyze(there, rota.design_pinned(there)).response_time[1] <= 1.2
    assert "Target type2=1.2 min" in plan.explain()
    assert "(exact, so proved)" in plan.explain()


def test_the_least_number_of_equal_servers():
    """One type, one slot each: pinned servers are M/M/k, and so is a central queue. Erlang's formula says how many are needed."""
    fleet = rota.Fleet([7], [[1]], [[1]], [6.0], [1.0], kinds=["one"], dispatch="pull")
    target = 1.05
    needed = next(k for k in range(7, 30) if 1 + mean_waiting(k, 6.0) / 6.0 <= target)
    found = rota.plan(fleet, jobs=100_000, tuning_s=0.5, targets={"type1": target})
    assert found.enough.pinned == (needed,)
    assert found.enough.known.response_time[0] == pytest.approx(1 + mean_waiting(needed, 6.0) / 6.0)
    assert not found.enough.kept_today
    assert abs(found.enough.count[0] - needed) <= 1  # simulated, with an interval


def test_fewer_servers_than_today():
    """Where today's servers keep the target, how many of them do."""
    fleet = rota.Fleet([20], [[1]], [[1]], [6.0], [1.0], kinds=["one"])
    needed = next(k for k in range(7, 30) if 1 + mean_waiting(k, 6.0) / 6.0 <= 1.3)
    found = rota.plan(fleet, jobs=100_000, tuning_s=0.5, targets={"mean": 1.3})
    assert found.enough.kept_today
    assert found.enough.pinned == (needed,)
    assert "today's servers keep it under" in found.explain()
    assert f"{found.enough.count[0]} 'one' servers (today 20)" in found.explain()


def test_the_file_of_the_plan(plan):
    """It holds the fleet, the rule and the policy, and a simulation by it is the one of the plan."""
    read = fleet_plan_file_from_json(fleet_plan_file_to_json(fleet_plan_file(plan)))
    assert (read.fleet, read.dispatch, read.load) == (plan.fleet, plan.recommended.dispatch, plan.load.load)
    again = rota.simulate(read.fleet, read.policy, dispatch=read.dispatch, jobs=plan.jobs, seed=plan.seed)
    assert again.mean_response_time == plan.result.mean_response_time
    assert read.predicted["type1"]["mean"] == plan.result.response_time[0]


def test_simulate_takes_the_file(plan, tmp_path):
    """As a policy, with its rule; another rule may be given; another fleet is refused."""
    path = tmp_path / "plan.json"
    path.write_text(fleet_plan_file_to_json(fleet_plan_file(plan)), encoding="utf-8")
    again = rota.simulate(plan.fleet, path, jobs=plan.jobs, seed=plan.seed)
    assert (again.mean_response_time, again.dispatch) == (plan.result.mean_response_time, plan.recommended.dispatch)
    assert rota.simulate(plan.fleet, path, dispatch="jsq", jobs=5000).dispatch.rule == "jsq"
    with pytest.raises(rota.BadSpec, match="is the plan of another fleet: its job types are type1, type2, and here they are a, b"):
        rota.simulate(plan.fleet.replace(names=["a", "b"]), path)
    with pytest.raises(rota.BadSpec, match="is the plan of a fleet, and this takes a policy of one server"):
        rota.simulate(plan.fleet.server("large"), path)


def test_limits_and_objectives():
    """As for one server: what may not keep a limit is excluded, and another measure may be chosen by."""
    found = rota.plan(two_kinds(), jobs=20_000, tuning_s=0.5, objective="p95", limits={"type1": 0.01})
    assert not found.keeps_limits
    assert found.explain().startswith("No option is sure to keep the limits; nearest is ")
    assert "No policy can keep a limit below the mean running time on the fastest servers, which is 0.5 min for 'type1'." in found.explain()
    assert set(found.excluded) == {name for name, result in found.results.items() if result.stable}
    assert found.objective == "p95"


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"jobs": 100}, "jobs: must be at least 5000"),
        ({"jobs": 1.5}, "jobs: must be a whole number"),
        ({"tuning_s": 0}, "tuning_s: must be positive"),
        ({"objective": "speed"}, "objective: must be one of"),
        ({"limits": {"x": 1}}, "limits.x: no such type"),
    ],
)
def test_bad_arguments(options, rule):
    """Each is refused before any work."""
    with pytest.raises(rota.BadSpec) as told:
        rota.plan(two_kinds(), **options)
    assert rule in str(told.value)


def test_nothing_arrives():
    """There is nothing to plan."""
    with pytest.raises(rota.Infeasible, match="no jobs arrive"):
        rota.plan(two_kinds().replace(arrival_rate=[0, 0]))


def test_progress_goes_one_way():
    """From 0 to near 1, with words."""
    told = []
    rota.plan(two_kinds(), jobs=5000, tuning_s=0.3, progress=told.append)
    parts = [at.part for at in told]
    assert parts == sorted(parts)
    assert parts[0] == 0
    assert parts[-1] > 0.9
