"""Policies as files: what is written is read back, and what is broken is told by place and rule."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.policy import MSR, policy_from_json, policy_to_json, read_policy, save_policy
from rotas import paper_rota, systems_and_rotas, twice_round


def broken(change):
    """The problems of the paper's rota after a change to its JSON."""
    fields = json.loads(policy_to_json(paper_rota("none", names=["a", "b", "c"])))
    change(fields)
    with pytest.raises(rota.BadSpec) as caught:
        policy_from_json(json.dumps(fields), "rota.json")
    assert caught.value.source == "rota.json"
    return [(problem.place, problem.rule) for problem in caught.value.problems]


@given(systems_and_rotas(again=True), st.booleans(), st.sampled_from(["virtual", "skip"]))
def test_round_trip(case, backfill, empty_slots):
    """Any policy is read back equal, bit by bit."""
    system, policy = case
    policy = policy.replace(backfill=backfill, empty_slots=empty_slots, names=system.names)
    assert policy_from_json(policy_to_json(policy)) == policy


def test_a_loop_that_visits_a_schedule_twice(tmp_path):
    """A → B → A → C is written visit by visit, and read back equal."""
    _, policy = twice_round("none", names=["a", "b", "c"])
    save_policy(policy, tmp_path / "rota.json")
    assert read_policy(tmp_path / "rota.json") == policy
    visits = json.loads((tmp_path / "rota.json").read_text())["candidates"]
    assert [visit["weight"] for visit in visits] == [0.3, 0.45, 0.2, 0.05]
    assert visits[0]["jobs"] == visits[2]["jobs"] == {"a": 1, "b": 4}


@given(systems_and_rotas(), st.lists(st.text(min_size=1), min_size=3, max_size=3, unique=True))
def test_names_of_any_letters(case, names):
    """Types may have any names; the routes use them too."""
    _, policy = case
    policy = policy.replace(names=names[: policy.candidates.shape[1]])
    assert policy_from_json(policy_to_json(policy)) == policy


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=8))
def test_weights_keep_their_bits(parts):
    """Weights and a generator with odd digits survive any number of trips."""
    weights = np.array(parts) / sum(parts)
    policy = MSR(np.eye(len(parts), dtype=int), weights, switching_rate=sum(parts), names=[f"t{i}" for i in range(len(parts))])
    again = policy_from_json(policy_to_json(policy))
    assert again == policy
    assert policy_to_json(again) == policy_to_json(policy)


def test_without_names():
    """Types without names are called type1, type2, … in the file."""
    policy = policy_from_json(policy_to_json(paper_rota()))
    assert policy == paper_rota(names=["type1", "type2", "type3"])


def test_the_file_is_for_people():
    """The file has a version, named counts without zeros, and nothing that does not apply."""
    text = policy_to_json(paper_rota("none", 0.06, route=[[2, 0, 1], [1, 0, 2]]))
    assert json.loads(text) == {
        "rota_policy": 1,
        "policy": "msr",
        "types": ["type1", "type2", "type3"],
        "preemption": "none",
        "switching_rate": 0.06,
        "backfill": False,
        "route": [["type3", "type1", "type2"], ["type2", "type1", "type3"]],
        "opening": "late",
        "empty_slots": "virtual",
        "candidates": [{"weight": 0.5, "jobs": {"type3": 2}}, {"weight": 0.5, "jobs": {"type1": 1, "type2": 4}}],
    }
    assert text.startswith('{\n  "rota_policy": 1,\n')
    assert text.endswith("}\n")


def test_defaults_may_be_left_out():
    """A file by hand needs types, preemption, rate and candidates only."""
    text = """{"rota_policy": 1, "policy": "msr", "types": ["a", "b", "c"], "preemption": "full", "switching_rate": 2,
        "candidates": [{"weight": 0.5, "jobs": {"c": 2}}, {"weight": 0.5, "jobs": {"b": 4, "a": 1}}]}"""
    assert policy_from_json(text) == paper_rota(names=["a", "b", "c"])


CANDIDATE = {"weight": 0.5, "jobs": {"c": 1}}


@pytest.mark.parametrize(
    ("field", "value", "place", "rule"),
    [
        ("rota_policy", 2, "rota_policy", "reads version 1"),
        ("rota_policy", "1", "rota_policy", "reads version 1"),
        ("policy", "lottery", "policy", "must be one of adaptive, msr, improved, fcfs"),
        ("types", [], "types", "at least 1"),
        ("types", "abc", "types", "must be a list"),
        ("types", ["a", "b", 3], "types.2", "must be a string"),
        ("types", ["a", "b", "c", "a"], "types.3", "is a duplicate"),
        ("types", ["a", "b", "d"], "candidates.0.jobs.c", "no such type (there are: a, b, d)"),
        ("preemption", "some", "preemption", "must be 'full', 'none' or 'setup'"),
        ("preemption", "setup", "setup_rate", 'is missing: preemption = "setup"'),
        ("setup_rate", 1, "setup_rate", "only with it"),
        ("setup_rate", -1, "setup_rate", "greater than 0"),
        ("switching_rate", 0, "switching_rate", "greater than 0"),
        ("switching_rate", "1", "switching_rate", "must be a number"),
        ("switching_rate", float("nan"), "switching_rate", "must be finite"),
        ("switching_rate", None, "switching_rate", "must be a number"),
        ("backfill", "yes", "backfill", "true or false"),
        ("route", "shortest", "route", "must be 'type-order', 'fastest-first', 'parallel', or one list"),
        ("route", 3, "route", "one list of all types per candidate"),
        ("route", [["a", "b", "c"]], "route", "one per candidate"),
        ("route", [["a", "b", "c"], ["a", "b"]], "route.1", "must name every type once"),
        ("opening", "soon", "opening", "must be 'late' or 'early'"),
        ("empty_slots", "wait", "empty_slots", "must be 'virtual' or 'skip'"),
        ("candidates", [], "candidates", "at least 1"),
        ("candidates", 3, "candidates", "must be a list"),
        ("candidates", [3], "candidates.0", "must be a table"),
        ("candidates", [CANDIDATE], "weights", "must sum to 1"),
        ("candidates", [CANDIDATE, CANDIDATE], "candidates", "the same schedule twice"),
        ("candidates", [CANDIDATE | {"weight": 0}], "candidates.0.weight", "greater than 0"),
        ("candidates", [{"weight": 1}], "candidates.0.jobs", "is missing"),
        ("candidates", [{"jobs": {}}], "candidates.0.weight", "is missing"),
        ("candidates", [CANDIDATE | {"jobs": {"d": 1}}], "candidates.0.jobs.d", "no such type (there are: a, b, c)"),
        ("candidates", [CANDIDATE | {"jobs": {"c": -1}}], "candidates.0.jobs.c", "at least 0"),
        ("candidates", [CANDIDATE | {"jobs": {"c": 1.5}}], "candidates.0.jobs.c", "whole number"),
        ("candidates", [CANDIDATE | {"jobs": {"c": "1"}}], "candidates.0.jobs.c", "whole number"),
        ("candidates", [CANDIDATE | {"colour": 1}], "candidates.0.colour", "not a known key"),
        ("generator", [[0, 1], [1]], "generator", "must be 2 × 2"),
        ("generator", [[0, 1], [0, 0]], "generator", "not irreducible"),
        ("generator", [[0, 1], [2, 0]], "weights", "not the stationary law"),
        ("generator", [[0, "1"], [1, 0]], "generator.0.1", "must be a number"),
        ("colour", "red", "colour", "not a known key"),
    ],
)
def test_one_problem(field, value, place, rule):
    """One change breaks one rule: the one problem reported has the place and the rule."""
    ((where, what),) = broken(lambda fields: fields.update({field: value}))
    assert where == place
    assert rule in what


@pytest.mark.parametrize("field", ["policy", "types", "preemption", "switching_rate", "candidates"])
def test_a_missing_field(field):
    """A field that must be there is reported as missing."""
    assert broken(lambda fields: fields.pop(field)) == [(field, "is missing")]


def test_all_problems_at_once():
    """A file with several problems is told all of them."""
    problems = broken(lambda fields: fields.update(switching_rate=-1, opening="soon", candidates=[{"weight": "1"}]))
    assert [place for place, _ in problems] == ["switching_rate", "opening", "candidates.0.weight", "candidates.0.jobs"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[]", 'needs "rota_policy": 1'),
        ("3", 'needs "rota_policy": 1'),
        ('{"policy": "msr"}', 'needs "rota_policy": 1'),
    ],
)
def test_not_a_policy(text, rule):
    """A text that is no policy at all is told so."""
    with pytest.raises(rota.BadSpec, match="1 problem") as caught:
        policy_from_json(text)
    assert [problem.place for problem in caught.value.problems] == ["file"]
    assert rule in str(caught.value)


def test_files(tmp_path):
    """A saved policy is read back equal; a file that cannot be read is named."""
    path = tmp_path / "rota.json"
    policy = paper_rota("setup", names=["ä", "b", "c"])
    save_policy(policy, path)
    assert read_policy(path) == policy
    assert "ä" in path.read_text(encoding="utf-8")
    path.write_bytes(b"\xff")
    with pytest.raises(rota.BadSpec, match=r"rota\.json: 1 problem\n  file: is not UTF-8 text"):
        read_policy(path)
    path.unlink()
    with pytest.raises(rota.BadSpec, match=r"rota\.json: 1 problem\n  file: cannot be read: No such file"):
        read_policy(path)
    path.write_text('{"rota_policy": 3}', encoding="utf-8")
    with pytest.raises(rota.BadSpec, match=r"rota\.json: 1 problem\n  rota_policy: .* \(got 3\)"):
        read_policy(path)


@pytest.mark.parametrize("name", ["nMSR", "improved", "first-fit"])
def test_a_name_is_not_a_file(name, tmp_path, monkeypatch):
    """Where a file is needed, the name of a policy is recognised; unless there is a file of that name."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rota.BadSpec, match="is the name of a policy, and here its file is needed"):
        read_policy(name)
    save_policy(rota.FirstFit(), name)
    assert read_policy(name) == rota.FirstFit()
