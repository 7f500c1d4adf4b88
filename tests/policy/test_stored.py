"""Plans and policies of every version that was ever written, as the release of that time wrote them: all are read."""

import json
from pathlib import Path

import pytest

import rota
from rota.policy import fleet_plan_file_to_json, plan_file_to_json, policy_to_json, read_fleet_plan_file, read_plan_file
from rota.policy.fleet_plan_file import FLEET_PLAN_VERSION
from rota.policy.plan_file import PLAN_VERSION

STORED = Path(__file__).parent / "stored"
POLICY_VERSION = json.loads(policy_to_json(rota.FCFS()))["rota_policy"]
POLICIES = sorted(STORED.glob("policy-*.json"))
FLEET_PLANS = sorted(STORED.glob("fleet-plan-*.json"))


def versions(what):
    """The versions of which there is an example."""
    return {int(path.stem.split("-")[1]) for path in STORED.glob(f"{what}-*.json")}


def test_there_is_an_example_of_every_version():
    """A new version of a format comes with an example, and the old ones stay."""
    assert versions("plan") == set(range(1, PLAN_VERSION + 1))
    assert versions("policy") == set(range(1, POLICY_VERSION + 1))
    assert {int(path.stem.split("-")[2]) for path in FLEET_PLANS} == set(range(1, FLEET_PLAN_VERSION + 1))


@pytest.mark.parametrize("path", sorted(STORED.glob("plan-*.json")), ids=lambda path: path.stem)
def test_a_stored_plan_is_read(path):
    """With its system, its settings, its load, its policy and its predictions; one of this version is written as it was."""
    plan = read_plan_file(path)
    assert (plan.system.names, plan.system.resources) == (("train", "query", "copy"), ("cores", "memory_gb", "network_gbps"))
    assert (plan.system.time_unit, plan.system.setup_time) == ("h", 0.05)
    assert (plan.live.preemption, plan.live.grace_s, plan.live.releasable) == ("suspend", 5.0, {"memory_gb": False})
    assert plan.load == pytest.approx(rota.system_load(plan.system).load)
    assert plan.policy == rota.MaxWeight("none")
    assert set(plan.predicted) == set(plan.system.names)
    if f"-{PLAN_VERSION}" in path.stem:
        assert plan_file_to_json(plan) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FLEET_PLANS, ids=[path.stem for path in FLEET_PLANS])
def test_a_stored_plan_of_a_fleet_is_read(path):
    """With its fleet, its load, what the servers run, the rule and the predictions; one of this version is written as it was."""
    plan = read_fleet_plan_file(path)
    assert (plan.fleet.kinds, plan.fleet.count.tolist(), plan.fleet.names) == (
        ("small", "gpu"),
        [40, 4],
        ("train", "render", "query", "test"),
    )
    assert plan.load == pytest.approx(rota.system_load(plan.fleet).load)
    if plan.dispatch == rota.Dispatch("pinned"):
        assert rota.analyze(plan.fleet, plan.policy).response_time.tolist() == pytest.approx(
            [plan.predicted[name]["mean"] for name in plan.fleet.names]
        )
    else:
        assert (plan.dispatch, plan.policy["gpu"]) == (rota.Dispatch("power-of-d", 3), rota.MaxWeight("none"))
    if f"-{FLEET_PLAN_VERSION}-" in path.stem:
        assert fleet_plan_file_to_json(plan) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", POLICIES, ids=[path.stem for path in POLICIES])
def test_a_stored_policy_is_read(path):
    """One of this version is written as it was."""
    policy = rota.read_policy(path)
    if f"-{POLICY_VERSION}-" in path.stem:
        assert policy_to_json(policy) == path.read_text(encoding="utf-8")


NEWER = "install a newer Rota (pip install --upgrade rota)"


@pytest.mark.parametrize(
    ("version", "rule"),
    [
        (PLAN_VERSION + 1, f"this release reads version {PLAN_VERSION} of the format, and this is a newer one: {NEWER}"),
        (0, f"this release reads version {PLAN_VERSION} of the format, and this is an older one: rota plan FILE makes a new one"),
        ("1", f"this release reads version {PLAN_VERSION} of the format: rota plan FILE makes a new one"),
    ],
)
def test_other_versions_of_a_plan_are_refused(tmp_path, version, rule):
    """With the version that is read, and the way out."""
    path = tmp_path / "plan.json"
    stored = json.loads((STORED / f"plan-{PLAN_VERSION}.json").read_text(encoding="utf-8"))
    path.write_text(json.dumps(stored | {"rota_plan": version}), encoding="utf-8")
    with pytest.raises(rota.BadSpec) as told:
        read_plan_file(path)
    (problem,) = told.value.problems
    assert (problem.place, problem.value, problem.rule) == ("rota_plan", version, rule)
