"""Plan files: what `rota serve` runs, in one JSON object, read as it was written."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.model.live import LiveSettings
from rota.policy import PlanFile, plan_file_from_json, plan_file_to_json, read_plan_file
from rotas import systems_and_rotas
from systems import paper_example

LIVE = st.builds(
    LiveSettings,
    time_unit=st.sampled_from(["s", "min", "h", "d"]),
    preemption=st.sampled_from(["none", "suspend", "requeue"]),
    releasable=st.just({}) | st.just({"resource1": True}),
    grace_s=st.floats(0, 86400),
    memory_limit=st.sampled_from(["auto", "cgroup", "rlimit", "none"]),
    learn=st.booleans(),
    window=st.none() | st.floats(0.1, 1e6),
    keep_days=st.floats(0.1, 1e4),
)


@given(case=systems_and_rotas(), live=LIVE, load=st.none() | st.floats(0, 3), mean=st.floats(0, 1e6))
def test_there_and_back(case, live, load, mean):
    """A plan is read as it was written: system, rota, settings, load and predictions; and the text is the same again."""
    system, policy = case
    predicted = {name: {"mean": mean, "p95": 2 * mean} for name in system.names}
    text = plan_file_to_json(PlanFile(system, policy, live, load, predicted))
    read = plan_file_from_json(text)
    assert (read.live, read.load, read.predicted) == (live, load, predicted)
    assert read.policy == policy.replace(names=system.names)
    for field in ("capacity", "demand", "arrival_rate", "service_rate"):
        np.testing.assert_allclose(getattr(read.system, field), getattr(system, field), rtol=1e-12)
    assert (read.system.names, read.system.resources) == (system.names, system.resources)
    assert plan_file_to_json(read) == text


@pytest.mark.parametrize(
    "policy", [rota.FCFS(), rota.FirstFit(), rota.EASY(), rota.MaxWeight(preemption="none"), rota.RandomizedTimers(rate=2.0)]
)
def test_policies_without_a_rota(policy):
    """They have a plan, too."""
    system = rota.System([2], [[1]], [1.0], [1.0])
    assert plan_file_from_json(plan_file_to_json(PlanFile(system, policy))).policy == policy


def good():
    """A plan as raw data."""
    return json.loads(plan_file_to_json(PlanFile(rota.System([2], [[1]], [1.0], [1.0]), rota.FCFS())))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"rota_plan": 2}, "this release reads version 1"),
        ({"rota_plan": None, "rota_policy": 1}, "this release reads version 1"),
        ({"extra": 1}, "extra: is not a known key"),
        ({"system": None}, "system: is missing"),
        ({"policy": 3}, "policy: is missing"),
        ({"load": "much"}, "load: must be a number"),
        ({"load": True}, "load: must be a number"),
        ({"predicted": {"type1": 3}}, "predicted: must be a table of numbers per type"),
        ({"predicted": []}, "predicted: must be a table"),
        ({"live": {"preemption": "sometimes"}}, "live.preemption"),
        ({"live": {"releasable": {"gold": True}}}, "live.releasable.gold: the server has no such resource"),
        ({"system": {"server": {"cores": 1}}}, "jobs: is missing"),
        ({"policy": {"rota_policy": 1, "policy": "chance"}}, "policy"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, change, text):
    """With the file's name and the place in it."""
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(good() | change))
    with pytest.raises(rota.BadSpec, match=text) as told:
        read_plan_file(file)
    assert str(file) in str(told.value)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("{", "is not JSON"),
        ("[]", 'it needs "rota_plan": 1'),
        ('{"rota_policy": 1, "policy": "fcfs"}', "is a policy and not a plan: rota serve SYSTEM.toml --policy FILE runs it"),
    ],
)
def test_what_is_no_plan(tmp_path, text, rule):
    """Other files are refused, and the text says where a plan comes from."""
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(rota.BadSpec, match=rule):
        read_plan_file(file)
    with pytest.raises(rota.BadSpec, match="cannot be read"):
        read_plan_file(tmp_path / "nowhere.json")


def test_a_plan_is_a_policy_file_too(tmp_path):
    """Where a policy is read, a plan gives its policy: `rota simulate FILE plan.json`."""
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(good()))
    assert rota.read_policy(file) == rota.FCFS()


def test_a_plan_keeps_the_unit_of_its_system():
    """The unit of time is in the file, seconds too, and one that nobody said stays unsaid; two that differ are refused."""
    system = paper_example(0.5)
    for unit in (None, "s", "h"):
        plan = PlanFile(system.replace(time_unit=unit), rota.FCFS())
        again = plan_file_from_json(plan_file_to_json(plan))
        assert again.system.time_unit == plan.system.time_unit == unit
        assert again.live.unit_s == plan.live.unit_s == {None: 1, "s": 1, "h": 3600}[unit]
    said = PlanFile(system, rota.FCFS(), LiveSettings(time_unit="min"))
    assert said.system.time_unit == "min"
    with pytest.raises(rota.BadSpec, match=r'live.time_unit: is not the "h" of the system'):
        PlanFile(system.replace(time_unit="h"), rota.FCFS(), LiveSettings(time_unit="min"))


def test_two_units_in_one_file():
    """A spec may say its unit at the top or under [live], not two of them."""
    text = paper_example(0.5).to_toml().replace("version = 1", 'version = 1\ntime_unit = "h"')
    assert rota.model.spec.parse_system(text).time_unit == "h"
    assert rota.model.spec.parse_system(text + '[live]\ntime_unit = "h"\n').time_unit == "h"
    with pytest.raises(rota.BadSpec, match=r'live.time_unit: is not time_unit = "h" at the top'):
        rota.model.spec.parse_system(text + '[live]\ntime_unit = "min"\n')


def test_settings_in_place_of_those_of_the_file():
    """What is given takes the place of the entry of the same name; a unit of time is that of the system too; a wrong value is refused."""
    plan = PlanFile(paper_example(0.5), rota.FCFS(), LiveSettings(grace_s=3.0, learn=False))
    changed = plan.with_settings({"grace_s": 7.0, "time_unit": "h"})
    assert (changed.live.grace_s, changed.live.learn) == (7.0, False)
    assert changed.system.time_unit == changed.live.time_unit == "h"
    assert plan.with_settings({}).live == plan.live
    with pytest.raises(rota.BadSpec, match="grace_s"):
        plan.with_settings({"grace_s": -1.0})
