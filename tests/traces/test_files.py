"""Traces in files."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.traces import Trace, is_trace_file, open_trace, save_trace
from rota.traces.files import ROW_GROUP, trace_metadata


def make(n=5, estimate=False, **fields):
    """A small trace of two types."""
    rng = np.random.default_rng(n)
    jobs = pl.DataFrame({"arrival": np.cumsum(rng.exponential(1, n)), "size": rng.exponential(1, n), "type": rng.integers(2, size=n)})
    jobs = jobs.with_columns(pl.col("type").cast(pl.Int32))
    jobs = jobs.with_columns(estimate=pl.col("size") * 2) if estimate else jobs
    return Trace(jobs.lazy(), ("small", "large"), ("cpu", "memory"), [[0.1, 0.2], [1 / 3, 0.7]], **fields)


_numbers = st.floats(0, 1e9)
_names = st.lists(st.text(min_size=1, max_size=8).filter(lambda name: name.isprintable()), min_size=1, max_size=4, unique=True)


@given(st.data())
def test_a_saved_trace_is_the_same_when_opened(tmp_path_factory, data):
    """Jobs to the last bit, names in any script, demands, capacity and the account all survive a file."""
    names, resources = data.draw(_names), data.draw(_names)
    shape = {"min_size": len(resources), "max_size": len(resources)}
    demand = [data.draw(st.lists(_numbers, **shape)) for _ in names]
    capacity = data.draw(st.none() | st.lists(_numbers, **shape))
    rows = data.draw(st.lists(st.tuples(_numbers, _numbers, st.integers(0, len(names) - 1), _numbers), max_size=20))
    schema = {"arrival": pl.Float64, "size": pl.Float64, "type": pl.Int32}
    if data.draw(st.booleans()):
        schema["estimate"] = pl.Float64
    jobs = pl.DataFrame([row[: len(schema)] for row in sorted(rows)], schema=schema, orient="row")
    about = {"period": data.draw(_numbers), "import": {"left_out": {"π": 3}}}
    path = tmp_path_factory.mktemp("trace") / "jobs.parquet"

    save_trace(Trace(jobs.lazy(), tuple(names), tuple(resources), demand, capacity, about), path)
    found = open_trace(path)
    assert is_trace_file(path)
    assert found.jobs.collect().equals(jobs)
    assert (found.names, found.resources, found.about) == (tuple(names), tuple(resources), about)
    assert found.demand.tolist() == demand
    assert (found.capacity is None) == (capacity is None)
    assert capacity is None or list(found.capacity) == capacity


def test_a_long_trace_keeps_its_order(tmp_path):
    """More than one row group is written and read in order, and a part that was asked for lazily is what is written."""
    n = 2 * ROW_GROUP + 100
    trace = make(n)
    save_trace(trace.thinned(0.9, seed=1), tmp_path / "a.parquet")
    found = open_trace(tmp_path / "a.parquet")
    assert found.jobs.collect().equals(trace.thinned(0.9, seed=1).jobs.collect())
    assert found.jobs.collect()["arrival"].is_sorted()
    assert found.span == trace.span


def test_only_the_columns_of_a_trace_are_written(tmp_path):
    """What else a frame holds stays out; the columns come in the order of the form."""
    trace = make(estimate=True)
    wider = trace.jobs.with_columns(user=pl.lit("ada")).select("user", "estimate", "type", "size", "arrival")
    save_trace(Trace(wider, trace.names, trace.resources, trace.demand), tmp_path / "a.parquet")
    assert pl.read_parquet(tmp_path / "a.parquet").columns == ["arrival", "size", "type", "estimate"]


def test_a_trace_can_take_the_place_of_the_file_that_it_is_read_from(tmp_path):
    """The new file is whole before the old one goes."""
    path = tmp_path / "a.parquet"
    save_trace(make(1000), path)
    save_trace(open_trace(path).thinned(0.5), path)
    assert open_trace(path).jobs.collect().equals(make(1000).thinned(0.5).jobs.collect())
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize("before", [False, True], ids=["a new file", "a file that exists"])
def test_an_interrupted_save_leaves_nothing(tmp_path, before):
    """When the jobs end in an error half-way, no file appears, no part of one stays, and an older file is as it was."""
    path = tmp_path / "a.parquet"
    if before:
        save_trace(make(), path)
    trace = make(2 * ROW_GROUP)

    def tear(part):
        if part[-1] > trace.end / 2:
            raise ValueError("the disk has gone")
        return part

    torn = trace.jobs.with_columns(pl.col("arrival").map_batches(tear, return_dtype=pl.Float64, is_elementwise=True))
    with pytest.raises((pl.exceptions.PolarsError, ValueError), match="the disk has gone"):
        save_trace(Trace(torn, trace.names, trace.resources, trace.demand), path)
    assert [file.name for file in tmp_path.iterdir()] == (["a.parquet"] if before else [])
    assert not before or len(open_trace(path)) == 5


def test_a_newer_version_is_refused(tmp_path):
    """A file of a later Rota is named, with the version that this one knows."""
    path = tmp_path / "a.parquet"
    trace = make()
    table = json.loads(trace_metadata(trace)["rota.trace"])
    trace.jobs.collect().write_parquet(path, metadata={"rota.trace": json.dumps({**table, "version": table["version"] + 1})})
    assert is_trace_file(path)
    with pytest.raises(rota.BadSpec, match=r"a.parquet: 1 problem\n  version: is newer than 1, the newest this Rota knows \(got 2\)"):
        open_trace(path)


def test_a_file_that_is_not_ours(tmp_path):
    """A plain parquet file, a text, an empty file, half a parquet file, a directory and nothing at all are no traces."""
    plain, text, empty, half = (tmp_path / name for name in ("plain.parquet", "text.parquet", "empty.parquet", "half.parquet"))
    make().jobs.collect().write_parquet(plain)
    text.write_text("arrival,size\n", encoding="utf-8")
    empty.touch()
    half.write_bytes(plain.read_bytes()[:200])
    for path in (plain, text, empty, half, tmp_path):
        assert not is_trace_file(path)
        with pytest.raises(rota.BadSpec, match="is not a trace made by Rota: make one with `rota trace import`"):
            open_trace(path)
    assert not is_trace_file(tmp_path / "none.parquet")
    with pytest.raises(rota.BadSpec, match="does not exist: make one with `rota trace import`"):
        open_trace(tmp_path / "none.parquet")


def test_a_file_without_a_column(tmp_path):
    """A file that says it is a trace and lacks a column is refused with the name of the column."""
    path = tmp_path / "a.parquet"
    trace = make()
    trace.jobs.collect().drop("size").write_parquet(path, metadata=trace_metadata(trace))
    with pytest.raises(rota.BadSpec, match="columns: size missing"):
        open_trace(path)
