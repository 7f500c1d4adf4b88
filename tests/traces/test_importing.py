"""The import as a whole: types, order, the report, what happens when it is stopped, and that the way through the disk changes nothing."""

import gzip
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from borg_logs import SECOND, SUBMIT, event, imported_jobs, json_lines, life
from rota.errors import BadSpec, Infeasible
from rota.traces import import_trace, open_trace, read_trace
from rota.traces.importing import on_grid
from rota.traces.spilling import Limits

SMALL = Limits(events=50, part=40, jobs=30)


def many_lives(count, seed=0):
    """Lives of many instances, with restarts and instances that never finish, in random order."""
    rng = np.random.default_rng(seed)
    events = []
    for i in range(count):
        submit, wait, run = rng.integers(1, 50), rng.integers(0, 30), rng.integers(1, 100)
        request = (int(rng.integers(1, 4)) / 8, int(rng.integers(1, 3)) / 8)
        whole = life(i // 3, i % 3, int(submit), int(submit + wait), int(submit + wait + run), request, text=bool(i % 2))
        events += whole if rng.random() < 0.8 else whole[:-1]
    return [events[i] for i in rng.permutation(len(events))]


def write_shards(directory, events, shards=3):
    """Events as shards in a directory of their own."""
    directory.mkdir()
    for i in range(shards):
        (directory / f"{i}.json.gz").write_bytes(gzip.compress(json_lines(events[i::shards]).encode()))
    return directory


def test_through_the_disk_it_is_the_same(tmp_path):
    """An import that must spill events and jobs gives the same file content as one in memory, and leaves nothing behind."""
    source = write_shards(tmp_path / "in", many_lives(300))
    one, first = import_trace(source, tmp_path / "one.parquet")
    two, second = import_trace(source, tmp_path / "two.parquet", limits=SMALL)
    assert one.jobs.collect().equals(two.jobs.collect())
    assert (one.names, one.demand.tolist(), first) == (two.names, two.demand.tolist(), second)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "one.parquet", "two.parquet"]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=60), st.integers(1, 20))
def test_jobs_are_sorted_stably(tmp_path_factory, rows, most):
    """Jobs come out in order of arrival, those of one instant in the order of the file, however little fits in memory."""
    directory = tmp_path_factory.mktemp("table")
    table = pl.DataFrame(rows, schema=["arrival", "size", "cpu"], orient="row")
    table.write_csv(directory / "table.csv")
    trace, _ = import_trace(directory / "table.csv", directory / "jobs.parquet", limits=Limits(jobs=most))
    assert imported_jobs(trace) == [(a, s, (c,)) for a, s, c in sorted(rows, key=lambda row: row[0])]


def test_types_are_the_distinct_demands(tmp_path):
    """Most frequent first, ties by demand, named by exact digits."""
    demands = [(0.002, 0.003)] * 2 + [(0.5, 1.0)] * 3 + [(0.001, 0.5)] * 2 + [(1 / 3, 2**-20)]
    events = [one for i, demand in enumerate(demands) for one in life(i, 0, 1, 2, 3, demand)]
    (tmp_path / "log").write_text(json_lines(events), encoding="utf-8")
    trace, _ = import_trace(tmp_path / "log", tmp_path / "jobs.parquet")
    assert trace.names == (
        "cpu0.5_memory1",
        "cpu0.001_memory0.5",
        "cpu0.002_memory0.003",
        "cpu0.3333333333333333_memory9.5367431640625e-07",
    )
    assert trace.demand.tolist() == [[0.5, 1], [0.001, 0.5], [0.002, 0.003], [1 / 3, 2**-20]]
    assert trace.per_type["jobs"].to_list() == [3, 2, 2, 1]


def test_a_hundred_thousand_types(tmp_path):
    """As many demands as jobs, over several stretches: each has its own type, and the file opens again."""
    count = 100_000
    rng = np.random.default_rng(1)
    pl.DataFrame({"arrival": rng.random(count), "size": np.ones(count), "cpu": rng.permutation(count) + 1.0}).write_parquet(
        tmp_path / "log"
    )
    trace, _ = import_trace(tmp_path / "log", tmp_path / "jobs.parquet", limits=Limits(jobs=40_000))
    assert trace.demand[:, 0].tolist() == list(range(1, count + 1))
    table = trace.jobs.collect()
    assert table["arrival"].is_sorted()
    assert table["type"].n_unique() == count


@given(st.integers(0, 10**6), st.sampled_from([0.001, 0.01, 0.25, 0.003, 2.0, 10.0]))
def test_the_grid_keeps_its_own_multiples(steps, grid):
    """A multiple of the grid stays, however it was computed; a little more goes up by one step."""
    for value in (steps * grid, steps / (1 / grid), math.fsum([grid] * min(steps, 50))):
        rounded = pl.select(on_grid(pl.lit(value), grid)).item()
        assert rounded == pytest.approx(value, rel=1e-9)
    more = pl.select(on_grid(pl.lit(steps * grid + 0.01 * grid), grid)).item()
    assert more == pytest.approx((steps + 1) * grid, rel=1e-9)


@pytest.mark.parametrize("steps", [2, 57, 999, 1001])
def test_the_grid_gives_decimal_numbers(steps):
    """On the grid of 0.001 the result is the decimal number itself, so that names are short."""
    assert pl.select(on_grid(pl.lit(steps * 0.001), 0.001)).item() == float(f"{steps}e-3")
    assert pl.select(on_grid(pl.lit(steps * 0.001 - 0.0005), 0.001)).item() == float(f"{steps}e-3")


def test_grid_at_the_import(tmp_path):
    """Demands are rounded up at the source: 0.002 stays, 2⁻²⁰ becomes 0.001, nothing stays nothing."""
    events = life(1, 0, 1, 2, 3, (0.002, 0.0021)) + life(2, 0, 1, 2, 3, (2**-20, 0.0))
    (tmp_path / "log").write_text(json_lines(events), encoding="utf-8")
    trace, _ = import_trace(tmp_path / "log", tmp_path / "jobs.parquet", grid=0.001)
    assert sorted(trace.names) == ["cpu0.001_memory0", "cpu0.002_memory0.003"]
    assert trace.about["grid"] == 0.001


# ------------------------------------------------------------------------------------------------------ lines that are broken

BROKEN = [
    ('{"time": "700000000", "type": 0, "collection_id"', "is not a JSON object of the expected form"),
    ("[1, 2]", "is not a JSON object of the expected form"),
    ("NaN", "is not a JSON object of the expected form"),
    ('{"time": NaN}', "is not a JSON object of the expected form"),
    ('{"time": 5} {"time": 6}', "is not a JSON object of the expected form"),
    ("\x01\x02", "is not a JSON object of the expected form"),
    ('{"time": "soon", "type": 0, "collection_id": 1, "instance_index": 0}', "time must be a whole number"),
    ('{"time": 5, "type": 0, "collection_id": 1}', "instance_index is missing"),
    ('{"time": -5, "type": 0, "collection_id": 1, "instance_index": 0}', "time must be at least 0"),
    (json_lines([event(5, 0, request=(-0.1, 0))]).strip(), "resource_request.cpus must be at least 0"),
    (json_lines([event(5, 0, request=("much", 0))]).strip(), "resource_request.cpus must be a number"),
]


@pytest.mark.parametrize(("line", "rule"), BROKEN)
def test_a_broken_line_stops_the_import_or_is_skipped(tmp_path, line, rule):
    """Each kind of broken line is told with its place, also after a blank line; nothing is written if the import stops."""
    lines = json_lines(life(1, 0, 1, 2, 3)).splitlines()
    (tmp_path / "log").write_text("\n".join([lines[0], "", line, *lines[1:]]) + "\n", encoding="utf-8")
    with pytest.raises(BadSpec, match=rf"log:3: {rule}"):
        import_trace(tmp_path / "log", tmp_path / "jobs.parquet", format="borg2019")
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
    trace, report = import_trace(tmp_path / "log", tmp_path / "jobs.parquet", format="borg2019", on_error="skip")
    assert len(trace) == 1
    assert (report.bad_lines, report.rows) == (1, 3)
    assert report.bad_places[0].place == f"{tmp_path / 'log'}:3"
    assert trace.about["import"]["bad_lines"] == 1


def test_a_half_written_last_line(tmp_path):
    """A file that was cut while it was written: its last line is bad, the rest is there."""
    text = json_lines(life(1, 0, 1, 2, 3) + life(2, 0, 1, 2, 3))
    (tmp_path / "log").write_text(text[:-30], encoding="utf-8")
    trace, report = import_trace(tmp_path / "log", tmp_path / "jobs.parquet", on_error="skip")
    assert (len(trace), report.bad_lines, report.bad_places[0].place) == (1, 1, f"{tmp_path / 'log'}:6")
    assert report.left_out == {"not finished inside the log": 1}


def test_many_broken_lines_are_counted_and_the_first_few_shown(tmp_path):
    """All are counted; five are shown."""
    (tmp_path / "log").write_text(json_lines(life(1, 0, 1, 2, 3)) + "oops\n" * 1000, encoding="utf-8")
    _, report = import_trace(tmp_path / "log", tmp_path / "jobs.parquet", on_error="skip")
    assert (report.bad_lines, len(report.bad_places)) == (1000, 5)
    with pytest.raises(BadSpec, match="995 more that cannot be read"):
        import_trace(tmp_path / "log", tmp_path / "other.parquet")


def test_a_torn_shard_among_sound_ones(tmp_path):
    """A shard whose gzip stream ends early stops the import, or gives what is before the tear."""
    source = write_shards(tmp_path / "in", many_lives(100))
    whole, _ = import_trace(source, tmp_path / "whole.parquet")
    shard = source / "1.json.gz"
    shard.write_bytes(shard.read_bytes()[:-200])
    with pytest.raises(BadSpec, match=r"1.json.gz:\d+: the compressed file ends in the middle of this line"):
        import_trace(source, tmp_path / "jobs.parquet")
    trace, report = import_trace(source, tmp_path / "jobs.parquet", on_error="skip")
    assert report.bad_lines == 1
    assert 0 < len(trace) < len(whole)


def test_a_damaged_parquet_shard(tmp_path):
    """Data pages that cannot be read stop the import, or only that file is lost from there on; the report says so."""
    rows = pl.DataFrame(life(1, 0, 1, 2, 3), schema_overrides={"machine_id": pl.Int64, "missing_type": pl.Int64}).drop("constraint")
    rows.write_parquet(tmp_path / "a.parquet")
    rows.with_columns(collection_id=pl.lit(2, dtype=pl.Int64)).write_parquet(tmp_path / "b.parquet", compression="zstd")
    damaged = bytearray((tmp_path / "b.parquet").read_bytes())
    damaged[4:60] = b"\xff" * 56
    (tmp_path / "b.parquet").write_bytes(damaged)
    source = str(tmp_path / "*.parquet")
    with pytest.raises(BadSpec, match=r"b.parquet:1: the parquet file is damaged from this row on"):
        import_trace(source, tmp_path / "jobs")
    trace, report = import_trace(source, tmp_path / "jobs", on_error="skip")
    assert (len(trace), report.bad_lines) == (1, 1)


# --------------------------------------------------------------------------------------------------- the report, and the end


def test_the_report_is_in_the_trace(tmp_path):
    """What was kept and left out stays with the file."""
    source = write_shards(tmp_path / "in", [*many_lives(60), event(900 * SECOND, SUBMIT, 999)])
    trace, report = import_trace(source, tmp_path / "jobs.parquet")
    assert open_trace(tmp_path / "jobs.parquet").about["import"] == report.as_dict()
    assert report.jobs == 61 == report.kept + sum(report.left_out.values())
    assert len(trace) == report.kept
    assert report.files == 3


def test_progress(tmp_path):
    """The callback sees the bytes read of all bytes, then the joining and the sorting, each to its end."""
    source = write_shards(tmp_path / "in", many_lives(100))
    seen = []
    import_trace(source, tmp_path / "jobs.parquet", progress=seen.append, limits=SMALL)
    last = {at.step: at for at in seen}
    assert list(last) == ["reading", "joining events", "sorting"]
    assert all(at.done == at.total for at in last.values())
    assert last["joining events"].total > 1
    assert last["reading"].total == sum(path.stat().st_size for path in source.iterdir())


@pytest.mark.parametrize("step", ["reading", "joining events", "sorting"])
def test_an_interrupt_leaves_nothing(tmp_path, step):
    """Ctrl-C at any step: no output, no temporary directory; an output that was there stays as it was."""
    source = write_shards(tmp_path / "in", many_lives(100))
    (tmp_path / "jobs.parquet").write_text("old", encoding="utf-8")

    def interrupt(at):
        if at.step == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_trace(source, tmp_path / "jobs.parquet", progress=interrupt, limits=SMALL)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "jobs.parquet"]
    assert (tmp_path / "jobs.parquet").read_text(encoding="utf-8") == "old"


def test_a_log_without_jobs(tmp_path):
    """If nothing is kept there is no trace, and the reasons are told."""
    (tmp_path / "log").write_text(json_lines(life(1, 0, 0, 2, 3)), encoding="utf-8")
    with pytest.raises(Infeasible, match="no job was kept: 1 submitted before the log begins"):
        import_trace(tmp_path / "log", tmp_path / "jobs.parquet")


@pytest.mark.parametrize(
    ("options", "rule"),
    [({"grid": 0.0}, "grid: must be positive"), ({"grid": math.inf}, "grid"), ({"on_error": "ignore"}, 'must be "stop" or "skip"')],
)
def test_wrong_options(tmp_path, options, rule):
    """Options out of range are refused before anything is read."""
    with pytest.raises(BadSpec, match=rule):
        import_trace(tmp_path / "log", tmp_path / "jobs.parquet", **options)


def test_no_directory_for_the_output(tmp_path):
    """The output's directory must exist."""
    with pytest.raises(BadSpec, match="is in a directory that does not exist"):
        import_trace(tmp_path / "log", tmp_path / "none" / "jobs.parquet")


def test_read_trace(tmp_path):
    """`rota.read_trace` opens a trace, or imports a log for as long as the process lives."""
    (tmp_path / "log").write_text(json_lines(life(1, 0, 1, 2, 3)), encoding="utf-8")
    made, _ = import_trace(tmp_path / "log", tmp_path / "jobs.parquet")
    for trace in (read_trace(tmp_path / "jobs.parquet"), rota.read_trace(tmp_path / "log"), read_trace(str(tmp_path / "log"), "borg2019")):
        assert isinstance(trace, rota.Trace)
        assert imported_jobs(trace) == imported_jobs(made)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jobs.parquet", "log"]
    with pytest.raises(BadSpec, match="grid: is for the import of a log"):
        read_trace(tmp_path / "jobs.parquet", grid=0.1)
