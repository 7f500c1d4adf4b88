"""Policies tuned for one server of each kind, in the plan of a fleet."""

from dataclasses import replace

import pytest

import rota
from fleets import two_kinds
from rota.model.dispatch import make_dispatch
from rota.report.plan_files import fleet_plan_file
from rota.study.fleet_options import FleetOption
from rota.study.fleet_plan import plan_fleet
from rota.study.fleet_tuned import best_rules, tuned_options
from rota.tuning import FEWEST_JOBS
from systems import EXAMPLES

LEAST_WAIT, RANDOM = (make_dispatch(rule) for rule in ("least-wait", "random"))
_PLAIN = {"first-fit": rota.FirstFit(), "max-weight-np": rota.MaxWeight("none")}


def _quiet(step, share):
    """Progress that nobody looks at."""


def _found(fleet, rules=(LEAST_WAIT,), split=None, time_limit_s=60.0):
    return tuned_options(rota.system_load(fleet), rules, split, seed=0, time_limit_s=time_limit_s, tell=_quiet)


@pytest.fixture(scope="module")
def busy():
    """The paper's example on two servers."""
    return rota.Fleet.equal(rota.read_system(EXAMPLES / "paper.toml"), 2).scaled(load=0.9)


@pytest.fixture(scope="module")
def plan(busy):
    """A quick plan of it."""
    return plan_fleet(busy, jobs=50_000, tuning_s=1.0)


def test_the_best_rules(busy):
    """By the better of the two policies, the best first; neither a rule with one queue for all servers nor one under which queues grow."""
    rules = [make_dispatch(rule) for rule in ("random", "jsq", "best-fit", "least-wait", "pull")]
    options = [FleetOption(f"{name}, {rule.label}", policy, rule) for name, policy in _PLAIN.items() for rule in rules]
    runs = {one.name: rota.simulate(busy, one.policy, dispatch=one.dispatch, jobs=20_000) for one in options}
    means = {rule: min(runs[f"{name}, {rule.label}"].mean_response_time for name in _PLAIN) for rule in rules[:-1]}
    first, second = best_rules(options, runs)
    assert means[first] == min(means.values())
    assert means[second] == sorted(means.values())[1]
    with_one = {name: run for name, run in runs.items() if name.endswith("random")}
    assert best_rules(options, with_one) == [RANDOM]
    over = rota.simulate(busy.scaled(factor=1.5), "first-fit", dispatch="random", jobs=20_000)
    assert best_rules(options, {"first-fit, random": over}) == []


def test_tuned_for_one_server_of_each_kind():
    """The queue-driven rota of a kind is what `rota.tune_adaptive` finds for one of its servers at its part of the load."""
    fleet = two_kinds()
    load = rota.system_load(fleet)
    options, left_out = _found(fleet, (LEAST_WAIT, RANDOM), rota.design_split(fleet, time_limit_s=1.0))
    assert [option.name.split(",")[0] for option in options[:2]] == ["adaptive", "adaptive"]
    assert [option.dispatch for option in options] == [LEAST_WAIT, RANDOM] * (len(options) // 2)
    assert left_out.keys() == {"improved"} - {option.name.split(" ")[0] for option in options}
    for c, kind in enumerate(fleet.kinds):
        server = fleet.server(c, fleet.arrival_rate * load.split[c] / fleet.count[c])
        assert options[0].policy[kind] == rota.tune_adaptive(server, jobs=FEWEST_JOBS, seed=0).policy
    assert options[0].title == "Run the queue-driven rota, tuned for each kind, on every server and dispatch by least-wait"


def test_a_kind_without_jobs():
    """Servers to which the load sends nothing run First-Fit, and those on which nothing can run have no policy."""
    fleet = rota.Fleet([2, 1, 1], [[4], [4], [1]], [[2]], [1.0], [1.0], kinds=["fast", "slow", "tiny"], speed=[[10.0], [0.001], [1.0]])
    options, left_out = _found(fleet)
    used = rota.system_load(fleet).split[:, 0] > 0
    policies = options[0].policy
    assert policies["tiny"] is None
    assert isinstance(policies["fast"], rota.Adaptive)
    assert isinstance(policies["slow"], rota.Adaptive if used[1] else rota.FirstFit)
    assert left_out == {"improved": "there are no rotas to improve"}
    assert rota.simulate(fleet, policies, dispatch=LEAST_WAIT, jobs=5000).stable


def test_what_takes_too_long_is_said():
    """With a short limit the first kind is tuned, and the second is not begun."""
    options, left_out = _found(two_kinds(), time_limit_s=1e-9)
    assert not options
    assert "tuning 1 of 2 kinds of servers took" in left_out["adaptive"]


def test_a_rota_without_a_type_is_not_improved():
    """The rota of a kind may leave out a type that a rule sends there: improved it would never run such a job."""
    fleet = rota.read_system(EXAMPLES / "fleet.toml")
    split = rota.design_split(fleet, time_limit_s=1.0)
    _, left_out = _found(fleet, (LEAST_WAIT,), split, time_limit_s=1e-9)
    assert left_out["improved"].endswith("which these dispatch rules may send there")


def test_tuned_policies_are_in_the_plan(plan):
    """On two busy servers they are far better than plain policies with the same rule, on the same jobs."""
    tuned = {name: option for name, option in plan.options.items() if name.startswith("adaptive")}
    assert len(tuned) == 2
    for name, option in tuned.items():
        difference = rota.compare_pair(plan.results[name], plan.results[f"first-fit, {option.dispatch.label}"])
        assert difference.mean < 0
        assert difference.significant
    assert len({result.fingerprint for result in plan.results.values()}) == 1
    assert set(plan.table()["option"]) == set(plan.options)


def test_the_plan_file_has_the_tuned_policy(plan):
    """A simulation by the file is that of the plan."""
    name = next(name for name in plan.options if name.startswith("adaptive"))
    there = fleet_plan_file(replace(plan, recommended_name=name))
    again = rota.simulate(there.fleet, there.policy, dispatch=there.dispatch, jobs=plan.jobs, seed=plan.seed)
    assert again.mean_response_time == plan.results[name].mean_response_time
