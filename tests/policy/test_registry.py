"""The registry: every policy in it is simulated, saved, served, drawn and documented; a new one needs its record and its rule only."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import rota
from every_policy import SYSTEM, policy_for, policy_table
from live_service import finished, open_service, plan_of, play
from live_service import run as submit
from reference_simulator import Given, assert_agrees
from rota.decide import Description, Rule, built_in, decider_of, describe, new_state, seeded, suits
from rota.errors import Infeasible
from rota.policy import (
    DESIGNED_NAMES,
    POLICY_NAMES,
    policy_from_dict,
    policy_name,
    policy_to_dict,
    preempts,
    read_policy,
    record_named,
    record_of,
    records,
    register,
    save_policy,
)
from rota.policy.registry import unregister
from rota.report import policy_colour, response_times_against_load
from rota.report.style import policy_shape
from rota.simulation import POLICY_NAMES as NAMES_OF_SIMULATION
from rota.study import MSR_NAMES, grid, repeat
from rota.study.plan_choice import title_of
from rota.study.plan_growth import limit_of
from rota.study.plan_policies import policies_of
from rota.study.runs import measure
from toy_policy import RECORD, LastTypeFirst, last_type_first

DOCS = Path(__file__).parents[2] / "docs"
EVERY = [pytest.param(record, id=record.name) for record in records()]
MARKS = {"circle", "square", "triangle-up", "diamond", "cross", "triangle-down"}  # that Vega-Lite knows and people can tell apart


@pytest.fixture(scope="module")
def jobs():
    """A hundred jobs of both types, enough for queues."""
    rng = np.random.default_rng(4)
    times, kinds, sizes = np.cumsum(rng.exponential(0.04, 100)), (rng.random(100) < 0.4).astype(int), rng.exponential(0.1, 100)
    return Given(tuple(zip(times.tolist(), kinds.tolist(), sizes.tolist(), sizes.tolist(), strict=True)))


# ---------------------------------------------------------------------------------------------------------------- every policy


@pytest.mark.parametrize("record", EVERY)
def test_it_is_known_by_its_record(record):
    """The record is found by name and by policy; the policy has its name, and suits a system that it can run on."""
    policy = policy_for(record)
    assert record_named(record.name) is record is record_of(policy)
    assert policy_name(policy) == record.name
    assert preempts(policy) == (record.preemption != "none")
    assert suits(SYSTEM, policy)


@pytest.mark.parametrize("record", EVERY)
def test_it_is_simulated_as_the_reference_says(record, jobs):
    """The compiled engine and the reference in plain Python write the same log, bit by bit."""
    log = assert_agrees(SYSTEM, policy_for(record), jobs, seed=3)
    assert len(log) >= 300


@pytest.mark.parametrize("record", EVERY)
def test_its_decision_function_is_compiled_and_kept(record):
    """It has a rule, and its engine is one of those that are kept on disk."""
    rule = record.load_rule()
    assert isinstance(rule, Rule)
    assert rule.decide in built_in()


@pytest.mark.parametrize("record", EVERY)
def test_it_is_saved_and_read(record, tmp_path):
    """Its file is read back equal, and what a plan holds is the same."""
    policy = policy_for(record)
    save_policy(policy, tmp_path / "policy.json")
    again = read_policy(tmp_path / "policy.json")
    assert again == policy == policy_from_dict(policy_to_dict(policy))
    assert record_of(again) is record
    assert rota.compare(SYSTEM, [tmp_path / "policy.json"], jobs=200).labels == (record.name,)


@pytest.mark.parametrize("record", EVERY)
def test_it_describes_a_state(record):
    """A rota says which schedule it has and which it goes round; other policies have no places. Nothing is unproved yet."""
    policy = policy_for(record)
    says = describe(policy, new_state(SYSTEM, decider_of(SYSTEM, policy), seeded(np.random.SeedSequence(0))))
    assert isinstance(says, Description)
    assert says.unproved == 0
    if isinstance(policy, rota.MSR):
        assert says.slots == tuple(policy.candidates[0])
        assert says.schedules == tuple(map(tuple, policy.candidates.tolist()))
        assert all(row[1] > 0 for row in says.with_place_for(1))
        assert says.phase(SYSTEM.names).endswith(("small", "big"))
    elif isinstance(policy, rota.Improved):
        assert says.slots == tuple(policy.base.candidates[0])
        assert set(map(tuple, policy.base.candidates.tolist())) <= set(says.schedules)
    elif isinstance(policy, rota.Adaptive):
        assert says.slots == tuple(policy.goals[0])
        assert says.schedules == tuple(map(tuple, policy.goals.tolist()))
    else:
        assert says.slots is None
        assert says.phase(SYSTEM.names) == ""


@pytest.mark.parametrize("record", EVERY)
def test_it_is_served(record, tmp_path):
    """A real job runs to its end under it."""

    async def story():
        plan = plan_of(SYSTEM, policy_for(record), learn=False, preemption="suspend" if record.preempts else "none")
        async with open_service(tmp_path / "state", plan) as service:
            job = await finished(service, submit(service, "true", type="small"))
            assert (job.state, service.status().policy) == ("done", record.name)

    play(tmp_path, story())


@pytest.mark.parametrize("record", EVERY)
def test_it_has_words(record):
    """A title, a line of documentation, and a place in the docs."""
    assert record.title == title_of(record.name)
    assert record.policy.__doc__.partition("\n")[0].endswith((".", ":"))
    assert f"| `{record.name}` |" in (DOCS / "explanation" / "policies.md").read_text(encoding="utf-8")
    assert f'"{record.file_kind}"' in (DOCS / "reference" / "policy-file.md").read_text(encoding="utf-8")


def test_all_are_drawn():
    """Each has a colour of its own, and a mark, in a chart of all."""
    names = [record.name for record in records()]
    table = pl.DataFrame({"policy": names, "load": [0.5] * len(names), "mean_response_time": [1.0 + k for k in range(len(names))]})
    scales = colours_and_marks(response_times_against_load(table))
    assert scales == {record.name: (record.colour, record.mark) for record in records()}
    assert len({record.colour for record in records()}) == len(names)
    assert {record.mark for record in records()} <= MARKS
    assert all((policy_colour(record.name), policy_shape(record.name)) == (record.colour, record.mark) for record in records())


def test_the_table_in_the_docs():
    """The table of policies is what the records say, line by line."""
    assert policy_table() in (DOCS / "explanation" / "policies.md").read_text(encoding="utf-8")


def test_stability_with_backfilling_is_what_its_guarantee_implies():
    """The records call that rota with backfilling stable which `analyze` proves to be: the preemptive one, and no other."""
    best = rota.system_load(SYSTEM)
    for preemption, setup_rate in (("full", None), ("none", None), ("setup", 20.0)):
        msr = rota.MSR(best.candidates, best.weights, preemption, 0.1, setup_rate, backfill=True, names=SYSTEM.names)
        try:
            proved = rota.analyze(SYSTEM, msr).stable
        except Infeasible:
            proved = False
        assert record_of(msr).throughput_optimal == proved == (preemption == "full")
    preemptive = rota.MSR(best.candidates, best.weights, "full", 0.1, backfill=True)
    assert limit_of(best, preemptive, [], jobs=1000, seed=1).proved


@pytest.mark.parametrize("verb", ["simulate", "compare", "sweep", "serve"])
def test_the_help_lists_all(verb):
    """The help of a verb that takes a policy has every name, and those that are designed for the system."""
    command = [sys.executable, "-m", "rota.cli", verb, "--help"]  # a process of its own: help that was shown once is not made again
    shown = subprocess.run(command, env={**os.environ, "COLUMNS": "600"}, capture_output=True, text=True, check=True, timeout=120).stdout
    assert ", ".join(POLICY_NAMES) in shown
    assert ", ".join(DESIGNED_NAMES) in shown
    assert "{" not in shown


def test_lists_derive_from_the_records():
    """A name alone is a policy, or names a rota to be designed; a plan has each place once."""
    assert list(POLICY_NAMES) == [record.name for record in records() if not record.designed]
    improved = ["improved pMSR", "improved nMSR", "improved nMSR+backfill", "improved sMSR", "improved sMSR+backfill"]
    assert ["adaptive", *MSR_NAMES, *improved, "table", "table-np"] == [record.name for record in records() if record.designed]
    assert POLICY_NAMES is NAMES_OF_SIMULATION
    places = [record.plan for record in records() if record.plan is not None]
    assert len(set(places)) == len(places)


def test_what_no_system_suits_is_not_compared():
    """ServerFilling is compared where demands are powers of two, and nowhere else; who stops jobs only where that is free."""
    compared = policies_of(SYSTEM.with_preemption("full"), {})
    assert list(compared) == ["fcfs", "first-fit", "easy", "max-weight-np", "max-weight", "server-filling"]
    other = rota.System([9], [[1], [4]], [1.0, 1.0], [1.0, 1.0])
    assert "server-filling" not in policies_of(other.with_preemption("full"), {})
    assert list(policies_of(other.with_preemption("none"), {})) == ["fcfs", "first-fit", "easy", "max-weight-np"]


def test_a_name_is_given_once():
    """Two policies of one name are refused."""
    with pytest.raises(rota.BadSpec, match=r"name: is that of another policy.*\(got 'fcfs'\)"):
        register(records()[-1].__class__(**{**vars(RECORD), "name": "fcfs"}))


@pytest.mark.parametrize(("version", "way_out"), [(2, "pip install --upgrade rota"), (0, "rota design FILE"), ("1", "rota design FILE")])
def test_another_version_of_a_file(version, way_out):
    """A file of another version of the format is refused, with what helps."""
    with pytest.raises(rota.BadSpec, match=r"reads version 1") as caught:
        policy_from_dict({"rota_policy": version, "policy": "fcfs"}, "policy.json")
    assert way_out in str(caught.value)


# ---------------------------------------------------------------------------------------------------------------- a new policy


@pytest.fixture
def toy():
    """A policy that is known while a test runs."""
    register(RECORD)
    yield LastTypeFirst()
    unregister(RECORD.name)


def test_a_new_policy_is_simulated_and_compared(toy):
    """By its name, it decides as its function does when it is given as one's own."""
    system = SYSTEM.scaled(load=0.8)
    result = rota.simulate(system, "last-type-first", jobs=5000, seed=2)
    assert result.policy == toy
    assert result.mean_response_time == rota.simulate(system, rota.Custom(last_type_first), jobs=5000, seed=2).mean_response_time
    table = rota.compare(system, ["first-fit", "last-type-first"], jobs=5000, seed=2).table()
    assert table["policy"].to_list() == ["first-fit", "last-type-first"]
    assert table["mean_response_time"][0] != table["mean_response_time"][1]


def test_a_new_policy_is_saved_and_swept(toy, tmp_path):
    """Its file is read back, and a sweep takes it by name."""
    save_policy(toy, tmp_path / "toy.json")
    assert read_policy(tmp_path / "toy.json") == toy
    (run,) = grid(SYSTEM, ["last-type-first"], loads=[0.5], jobs=2000)
    row = measure(run)
    assert (row["policy"], row["outcome"]) == ("last-type-first", "done")
    assert repeat(row).policy == toy


def test_a_new_policy_is_planned_and_drawn(toy):
    """A plan compares it at its place, with its title; a chart has its colour and mark; the help lists it."""
    plan = rota.plan(SYSTEM.scaled(load=0.5).with_preemption("none"), jobs=5000, tuning_s=0.05, optimum_s=0)
    assert list(plan.results)[:4] == ["fcfs", "first-fit", "last-type-first", "easy"]
    assert not plan.limits["last-type-first"].proved
    assert title_of("last-type-first") == "the last type first"
    assert colours_and_marks(response_times_against_load(plan.by_load))["last-type-first"] == ("#123456", "cross")


def test_a_new_policy_is_served_and_listed(toy, tmp_path, capsys, monkeypatch):
    """Real jobs run under it, and the messages of the verbs know it."""

    async def story():
        async with open_service(tmp_path / "state", plan_of(SYSTEM, "last-type-first", learn=False)) as service:
            assert (await finished(service, submit(service, "true", type="big"))).state == "done"
            assert service.status().policy == "last-type-first"

    play(tmp_path, story())
    with pytest.raises(rota.BadSpec, match=r"must be one of .*last-type-first"):
        rota.simulate(SYSTEM, "no-such-policy")


def test_an_unknown_policy_is_gone():
    """Outside of such a test the toy is not known: nothing else was changed to add it."""
    assert record_named("last-type-first") is None
    with pytest.raises(rota.BadSpec, match="must be a policy"):
        policy_name(LastTypeFirst())


def colours_and_marks(chart):
    """Colour and mark of each policy in a chart."""
    found = {"color": {}, "shape": {}}

    def look(part):
        if isinstance(part, dict):
            for channel, known in found.items():
                scale = part.get(channel, {}).get("scale") if isinstance(part.get(channel), dict) else None
                if scale and "domain" in scale and part[channel].get("field") == "policy":
                    known.update(zip(scale["domain"], scale["range"], strict=True))
            for value in part.values():
                look(value)
        elif isinstance(part, list):
            for value in part:
                look(value)

    look(chart.to_dict())
    return {name: (colour, found["shape"][name]) for name, colour in found["color"].items()}
