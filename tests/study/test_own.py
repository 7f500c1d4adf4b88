"""Policies and workloads of a user's own in studies."""

import json
import sys

import numpy as np
import polars as pl
import pytest

import rota
from rota.study import grid, over_seeds, read_results, repeat, sweep
from rota.study.runs import measure
from rota.traces import save_trace
from systems import paper_example

SYSTEM = paper_example(0.6)


@pytest.fixture
def trace(tmp_path):
    """A trace of 500 jobs of the paper's types, and its file."""
    rng = np.random.default_rng(5)
    kinds = rng.choice(3, 500, p=SYSTEM.arrival_rate / SYSTEM.arrival_rate.sum())
    jobs = {
        "arrival": np.cumsum(rng.exponential(1 / SYSTEM.arrival_rate.sum(), 500)),
        "size": rng.exponential(1 / SYSTEM.service_rate[kinds]),
    }
    table = pl.DataFrame({**jobs, "type": kinds.astype(np.int32)})
    found = rota.Trace(table.lazy(), SYSTEM.names, SYSTEM.resources, SYSTEM.demand, SYSTEM.capacity)
    save_trace(found, tmp_path / "jobs.parquet")
    return found, tmp_path / "jobs.parquet"


def test_your_own_policy_in_a_sweep(own, tmp_path):
    """A policy of your own by name: in two processes as in none; each row has the hash of its source and repeats itself."""
    name, _ = own
    asked = {"loads": [0.5, 0.6], "jobs": 2000, "seeds": 2}
    alone = sweep(SYSTEM, [f"{name}:small_first", f"{name}:big_first"], **asked, workers=0)
    shared = sweep(SYSTEM, [f"{name}:small_first", f"{name}:big_first"], **asked, workers=2, output=tmp_path / "r.parquet")
    assert alone["outcome"].to_list() == ["done"] * 8
    assert alone["policy"].unique(maintain_order=True).to_list() == ["small_first", "big_first"]
    assert alone["mean_response_time"].to_list() == shared["mean_response_time"].to_list()
    row = read_results(tmp_path / "r.parquet").row(3, named=True)
    assert json.loads(row["policy_json"]).keys() == {"custom", "source"}
    assert repeat(row).mean_response_time == row["mean_response_time"]


def test_a_policy_that_was_given_is_found_by_its_name(own):
    """A `Custom` whose function, or which itself, is in a module needs no name; one of a notebook is refused with the way out."""
    name, _ = own
    by_name = grid(SYSTEM, [f"{name}:small_first", f"{name}:big_first"])
    module = sys.modules[name]
    given = grid(SYSTEM, [rota.Custom(module.small_first, name="mine"), module.big_first])
    assert [run.key for run in by_name] == [run.key for run in given]
    assert given[0].policy == "mine"
    for policy in (rota.Custom(lambda _state, _target: 0.0), rota.Custom(module.in_order, data=np.array([2, 1, 0]))):
        with pytest.raises(rota.BadSpec, match=r"put it into a file, say mine\.py"):
            grid(SYSTEM, [policy])


def test_an_edited_policy_is_another_run(own):
    """A change of the source changes the key; a worker that has another source says so, and its row is tried again."""
    name, file = own
    (before,) = grid(SYSTEM, [f"{name}:small_first"], jobs=2000)
    done = measure(before)
    file.write_text(file.read_text(encoding="utf-8") + "\n# another line\n", encoding="utf-8")
    (after,) = grid(SYSTEM, [f"{name}:small_first"], jobs=2000)
    assert before.key != after.key
    assert measure(before)["outcome"] == "failed"
    assert "has changed since the study began" in measure(before)["error"]
    with pytest.raises(rota.BadSpec, match="has changed since"):
        repeat(done)


def test_a_sweep_takes_a_trace(trace, tmp_path):
    """The jobs of a file, at other loads in shorter time; one seed where the policy draws nothing; rows repeat themselves."""
    jobs, path = trace
    table = sweep(SYSTEM, ["first-fit", "pMSR"], workload=path, loads=[0.3, 0.4], seeds=2, workers=0)
    assert table.select("policy", "load", "seed").rows() == [
        ("first-fit", 0.3, 0), ("first-fit", 0.4, 0), ("pMSR", 0.3, 0), ("pMSR", 0.3, 1), ("pMSR", 0.4, 0), ("pMSR", 0.4, 1)
    ]  # fmt: skip
    assert table["jobs"].unique().to_list() == [500]
    now = rota.system_load(SYSTEM).load
    alone = rota.simulate(SYSTEM.scaled(load=0.4), "first-fit", workload=jobs.stretched(now / 0.4))
    assert table["mean_response_time"][1] == pytest.approx(alone.mean_response_time, rel=1e-12)
    row = table.row(5, named=True)
    assert repeat(row).mean_response_time == row["mean_response_time"]
    assert over_seeds(table)["runs"].to_list() == [1, 1, 2, 2]


def test_a_trace_by_its_content(trace, tmp_path):
    """The same trace elsewhere is the same run; another one in its place is not."""
    jobs, path = trace
    (here,) = grid(SYSTEM, ["fcfs"], workload=path)
    (tmp_path / "other").mkdir()
    path.rename(tmp_path / "other" / "moved.parquet")
    (there,) = grid(SYSTEM, ["fcfs"], workload=tmp_path / "other" / "moved.parquet")
    assert here.key == there.key
    assert measure(here)["outcome"] == "failed"
    save_trace(jobs.stretched(2), path)
    assert grid(SYSTEM, ["fcfs"], workload=path)[0].key != here.key
    assert "has changed since" in measure(here)["error"]


def test_a_sweep_takes_your_own_arrivals(own):
    """An arrival process by name, every seed another stream, in processes too."""
    name, _ = own
    table = sweep(SYSTEM, ["first-fit"], workload=f"{name}:Pairs", jobs=2000, seeds=2, workers=2)
    expected = [rota.simulate(SYSTEM, "first-fit", workload=sys.modules[name].Pairs(), jobs=2000, seed=seed) for seed in (0, 1)]
    assert table["mean_response_time"].to_list() == [result.mean_response_time for result in expected]
    assert expected[0].mean_response_time != expected[1].mean_response_time


def test_workloads_that_no_worker_finds(trace):
    """A trace in memory, or a list of jobs, is refused before anything runs, with the way out."""
    for given in (trace[0], rota.Jobs([1.0], [0], [1.0])):
        with pytest.raises(rota.BadSpec, match=r"rota.traces.save_trace writes one"):
            grid(SYSTEM, ["fcfs"], workload=given)
    with pytest.raises(rota.BadSpec, match="not of the system's types"):
        grid(rota.System([1], [[1]], [0.5], [1.0]), ["fcfs"], workload=trace[1])


def test_rows_of_the_first_version_are_read(tmp_path):
    """Results without the newer columns are read, with nothing in them, and their runs are not repeated."""
    path = tmp_path / "results.parquet"
    table = sweep(SYSTEM, ["fcfs"], jobs=2000, workers=0)
    table.drop("workload").write_parquet(path, metadata={"rota.sweep": '{"version": 1}'})
    assert read_results(path).equals(table)
    seen = []
    sweep(SYSTEM, ["fcfs"], jobs=2000, workers=0, output=path, progress=seen.append)
    assert seen[0].found == 1
