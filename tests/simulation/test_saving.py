"""Results as files."""

import dataclasses
import json

import numpy as np
import polars as pl
import pytest

import rota
from rotas import paper_rota
from systems import paper_example

SYSTEM = paper_example(0.6)


def same(first, second):
    """Two values agree, arrays and numbers bit for bit."""
    assert type(first) is type(second)
    if isinstance(first, np.ndarray):
        assert first.dtype == second.dtype
        np.testing.assert_array_equal(first, second)
    elif isinstance(first, pl.DataFrame):
        assert first.equals(second)
    elif isinstance(first, dict):
        assert list(first) == list(second)
        for key in first:
            same(first[key], second[key])
    elif isinstance(first, tuple):
        assert len(first) == len(second)
        for a, b in zip(first, second, strict=True):
            same(a, b)
    elif isinstance(first, rota.Result | rota.Comparison | rota.simulation.Replications):
        for field in dataclasses.fields(first):
            same(getattr(first, field.name), getattr(second, field.name))
    elif isinstance(first, float):
        assert first == second or (np.isnan(first) and np.isnan(second))
    else:
        assert first == second


@pytest.fixture(scope="module")
def comparison():
    """Policies of every kind: without a file, a rota, an unstable one, and one that cannot run."""
    slow = paper_rota("none", 5.0).replace(names=SYSTEM.names)
    return rota.compare(SYSTEM, ["first-fit", paper_rota("full", 2.0).replace(names=SYSTEM.names), slow, "server-filling"], jobs=2000)


def test_a_comparison_comes_back(comparison, tmp_path):
    """Saved and read, a comparison is what it was, and so are its table, its best and its differences."""
    rota.save_result(comparison, tmp_path / "compared.json")
    again = rota.read_result(tmp_path / "compared.json")
    same(comparison, again)
    assert again.table().equals(comparison.table())
    assert again.best.name == comparison.best.name
    assert rota.compare_pair(*again.results[:2]) == rota.compare_pair(*comparison.results[:2])


def test_a_result_comes_back(tmp_path):
    """A result with its log of events; quantiles keep their levels."""
    result = rota.simulate(SYSTEM, rota.RandomizedTimers(rate=0.5), jobs=2000, log_jobs=20)
    rota.save_result(result, tmp_path / "result.json")
    same(result, rota.read_result(tmp_path / "result.json"))


def test_replications_come_back(tmp_path):
    """Independent runs, and the interval of their spread."""
    runs = rota.replicate(SYSTEM, "fcfs", replications=2, jobs=2000)
    rota.save_result(runs, tmp_path / "runs.json")
    again = rota.read_result(tmp_path / "runs.json")
    same(runs, again)
    assert again.interval == runs.interval


def test_a_policy_of_your_own_is_known_by_its_name(own, tmp_path):
    """The function is not in the file: what was measured is, with the policy's name; running it says where it was."""
    name, _ = own
    result = rota.simulate(SYSTEM, f"{name}:small_first", jobs=2000)
    rota.save_result(result, tmp_path / "result.json")
    again = rota.read_result(tmp_path / "result.json")
    assert (again.name, again.mean_response_time) == ("small_first", result.mean_response_time)
    with pytest.raises(rota.RotaError, match=f"holds no functions: it was {name}:small_first"):
        rota.simulate(SYSTEM, again.policy, jobs=2000)
    rota.save_result(rota.simulate(SYSTEM, rota.Custom(result.policy.decide, data=(1, 2)), jobs=2000), tmp_path / "result.json")
    assert rota.read_result(tmp_path / "result.json").name == "custom"


def test_the_file_says_its_versions(comparison, tmp_path):
    """The version of the format and that of Rota; what another version wrote is refused with both."""
    path = tmp_path / "compared.json"
    rota.save_result(comparison, path)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert (content["rota_result"], content["rota"]) == (1, rota.__version__)

    def refused(changed, rule):
        path.write_text(changed if isinstance(changed, str) else json.dumps(changed), encoding="utf-8")
        with pytest.raises(rota.BadSpec, match=rule):
            rota.read_result(path)

    refused({**content, "rota_result": 99}, "this release reads version 1")
    refused(
        {**content, "saved": {"record": "Comparison", "fields": {"colour": 1}}},
        rf"colour: is not a field(.|\n)*written by Rota {rota.__version__}",
    )
    refused({**content, "saved": {"record": "Comparison", "fields": {}}}, "results: is missing")
    refused({**content, "saved": {"record": "Nonsense", "fields": {}}}, "is damaged")
    refused({**content, "saved": 3}, "it holds no result")
    refused({**content, "saved": {"what": 3}}, "does not know")
    refused({"policy": 1}, "is not a result of Rota")
    refused("[", "is not JSON")
    with pytest.raises(rota.BadSpec, match="must be a Result, a Comparison or Replications"):
        rota.save_result(comparison.table(), path)
    with pytest.raises(rota.BadSpec, match="cannot be written"):
        rota.save_result(comparison, tmp_path / "none" / "compared.json")
