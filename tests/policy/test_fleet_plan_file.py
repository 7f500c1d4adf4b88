"""Plans of fleets as files: read as they were written, and what is wrong with one is said."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from fleets import described_fleets, small_fleets
from rota.policy import FleetPlanFile, fleet_plan_file_from_json, fleet_plan_file_to_json, plan_file_from_json
from systems import EXAMPLES

POLICIES = [rota.FirstFit(), rota.FCFS(), rota.MaxWeight("none"), rota.RandomizedTimers(rate=2.0)]


def example():
    """The bundled fleet."""
    return rota.read_system(EXAMPLES / "fleet.toml")


@given(fleet=described_fleets(), policies=st.lists(st.sampled_from(POLICIES), min_size=3, max_size=3), load=st.none() | st.floats(0, 3))
def test_policies_by_kind_there_and_back(fleet, policies, load):
    """Fleet, policies, rule, load and predictions are read as they were written; and the text is the same again."""
    by_kind = {kind: policies[c] if fleet.runs[c].any() else None for c, kind in enumerate(fleet.kinds)}
    dispatch = fleet.dispatch or rota.Dispatch("power-of-d", 3)
    predicted = {name: {"mean": 1.5, "p95": 3.0} for name in fleet.names}
    text = fleet_plan_file_to_json(FleetPlanFile(fleet, by_kind, dispatch, load, predicted))
    read = fleet_plan_file_from_json(text)
    assert (read.fleet, read.policy, read.dispatch, read.load, read.predicted) == (fleet, by_kind, dispatch, load, predicted)
    assert fleet_plan_file_to_json(read) == text


@given(fleet=small_fleets(), data=st.data())
@settings(max_examples=30)
def test_pinned_servers_there_and_back(fleet, data):
    """Any servers that hold a job each, and any split over the kinds on which a type can run."""
    pairs = [(c, i) for c in range(len(fleet.kinds)) for i in np.flatnonzero(fleet.runs[c])]
    chosen = data.draw(st.lists(st.sampled_from(pairs), unique_by=lambda pair: pair[0], max_size=len(fleet.kinds)))
    rows = np.eye(len(fleet.names), dtype=int)[[i for _, i in chosen]].reshape(len(chosen), len(fleet.names))
    split = fleet.runs * data.draw(st.floats(0.1, 1.0))
    pinned = rota.Pinned([c for c, _ in chosen], rows, [data.draw(st.integers(0, int(fleet.count[c]))) for c, _ in chosen], split)
    text = fleet_plan_file_to_json(FleetPlanFile(fleet, pinned, rota.Dispatch("pinned")))
    assert fleet_plan_file_from_json(text).policy == pinned


def test_designs_of_the_example():
    """Pinned servers and rotas by kind are read as they were designed, to the last digit."""
    fleet = example()
    load = rota.system_load(fleet)
    for design, rule in ((rota.design_pinned(fleet), "pinned"), (rota.design_split(fleet, load=load, time_limit_s=1.0), "random")):
        read = fleet_plan_file_from_json(fleet_plan_file_to_json(FleetPlanFile(fleet, design, rota.Dispatch(rule))))
        answers = [rota.analyze(fleet, each).exact for each in (design, read.policy)]
        np.testing.assert_array_equal(*answers)


def test_one_policy_for_all_servers():
    """It stands under every kind, so that who reads the file for one kind need not know of the others."""
    plan = FleetPlanFile.of(example(), rota.FirstFit(), rota.Dispatch("jsq"), 0.66)
    assert plan.policy == {"small": rota.FirstFit(), "gpu": rota.FirstFit()}
    raw = json.loads(fleet_plan_file_to_json(plan))
    assert raw["policies"]["gpu"] == {"rota_policy": 1, "policy": "first-fit"}
    assert raw["dispatch"] == {"rule": "jsq"}


def good(**changes):
    """The plan of the example as raw data, with changes."""
    return json.loads(fleet_plan_file_to_json(FleetPlanFile.of(example(), rota.FirstFit(), rota.Dispatch("jsq")))) | changes


PINNED = {
    "rota_policy": 1,
    "policy": "pinned",
    "kind": [0],
    "candidates": [[0, 0, 3, 0]],
    "servers": [41],
    "split": [[0, 1, 1, 1], [1, 0, 0, 0]],
}


def without(name, **changes):
    """The same without an entry."""
    return {key: value for key, value in good(**changes).items() if key != name}


@pytest.mark.parametrize(
    ("changes", "place", "rule"),
    [
        ({"more": 1}, "more", "is not a known key"),
        ({"fleet": None}, "fleet", "is missing"),
        ({"load": "high"}, "load", "must be a number"),
        ({"predicted": {"train": 3}}, "predicted", "must be a table of numbers per type"),
        ({"dispatch": {"rule": "nearest"}}, "dispatch.rule", "must be one of"),
        ({"dispatch": {"rule": "jsq", "e": 1}}, "dispatch.e", "is not a known key"),
        ({"policies": 3}, "policies", "must be a table"),
        ({"policies": {"large": None}}, "policies.large", "no such kind of server (there are: small, gpu)"),
        ({"policies": {}}, "policies.small", "needs a policy: jobs can run there"),
        ({"policy": PINNED}, "policies", "is needed, or policy, and only one of them"),
        ({"policies": {"small": {"rota_policy": 1, "policy": "sleep"}, "gpu": None}}, "policies.gpu", "needs a policy"),
    ],
)
def test_what_is_wrong_is_said(changes, place, rule):
    """The place, and the rule."""
    with pytest.raises(rota.BadSpec) as told:
        fleet_plan_file_from_json(json.dumps(good(**changes)), "plan.json")
    assert told.value.problems[0].place == place
    assert rule in told.value.problems[0].rule
    assert "plan.json" in str(told.value)


@pytest.mark.parametrize(
    ("policy", "place", "rule"),
    [
        (PINNED, "pinned.servers", "uses more servers of kind 'small' than the 40 there are"),
        (PINNED | {"candidates": [[0, 0, 4, 0]]}, "pinned.candidates", "does not fit"),
        (PINNED | {"split": [[1, 1, 1, 1]]}, "pinned", "is for another fleet"),
        ({"rota_policy": 1, "policy": "split", "policies": [None], "split": [[1, 1, 1, 1]]}, "split", "is for another fleet"),
        ({"rota_policy": 1, "policy": "first-fit"}, "policy", "must be one of pinned, split, partly-pinned"),
    ],
)
def test_designs_that_do_not_fit(policy, place, rule):
    """They are refused when the file is read."""
    with pytest.raises(rota.BadSpec) as told:
        fleet_plan_file_from_json(json.dumps(without("policies", policy=policy)))
    assert told.value.problems[0].place == place
    assert rule in told.value.problems[0].rule


def test_a_policy_is_needed():
    """By kind, or a design."""
    with pytest.raises(rota.BadSpec, match="is needed, or policy"):
        fleet_plan_file_from_json(json.dumps(without("policies")))


@pytest.mark.parametrize("text", ["3", "{}", '{"rota_plan": 1}', "no JSON"])
def test_other_files_are_refused(text):
    """Only plans of fleets are read."""
    with pytest.raises(rota.BadSpec, match="is not"):
        fleet_plan_file_from_json(text)


def test_a_plan_of_a_fleet_is_none_of_a_server():
    """`rota serve` and `rota.read_policy` say what the file is."""
    text = json.dumps(good())
    with pytest.raises(rota.BadSpec, match="is the plan of a fleet, and this takes that of one server"):
        plan_file_from_json(text)
