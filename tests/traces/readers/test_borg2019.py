"""Borg 2019: every oddity of `instance_events`, in JSON lines, CSV and parquet."""

import gzip
import json
import random
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from borg_logs import (
    ENABLE,
    EVICT,
    FAIL,
    FINISH,
    KILL,
    LOST,
    QUEUE,
    SCHEDULE,
    SECOND,
    SUBMIT,
    UPDATE_PENDING,
    UPDATE_RUNNING,
    event,
    imported_jobs,
    json_lines,
    life,
    plain_jobs,
)
from rota.errors import Infeasible
from rota.traces import import_trace
from rota.traces.spilling import Limits

SAMPLE = Path(__file__).parents[3].parent / "shared" / "data" / "borg2019_samples" / "instance_events_sample.csv.gz"
ONE = life(7, 0, 700, 710, 760)


def read(directory, events, **options):
    """Imports events given as JSON lines."""
    (directory / "events.json").write_text(json_lines(events), encoding="utf-8")
    return import_trace(directory / "events.json", directory / "jobs.parquet", **options)


def test_one_job(tmp_path):
    """Arrival at SUBMIT, size from SCHEDULE to FINISH, times in seconds as in the log; capacity is the machine of 1."""
    trace, report = read(tmp_path, ONE)
    assert imported_jobs(trace) == [(700.0, 50.0, (0.5, 0.25))]
    assert (trace.names, trace.resources, trace.capacity) == (("cpu0.5_memory0.25",), ("cpu", "memory"), [1.0, 1.0])
    assert (report.format, report.rows, report.kept, report.left_out) == ("borg2019", 3, 1, {})


def test_integers_as_strings(tmp_path):
    """64-bit integers as strings and as numbers are the same, exactly: ids beyond 2⁵³ stay apart."""
    big = 2**60
    events = life(big, 0, 700, 710, 760, text=True) + life(big + 1, 0, 701, 711, 771) + life(str(big + 2), 0, 702, 712, 782, text=True)
    trace, _ = read(tmp_path, events)
    assert [size for _, size, _ in imported_jobs(trace)] == [50, 60, 70]


def test_evictions_and_restarts(tmp_path):
    """After an eviction or a failure the job starts anew: the last SCHEDULE before FINISH counts, the first SUBMIT is the arrival."""
    times = [(700, SUBMIT), (705, SCHEDULE), (720, EVICT), (720, SUBMIT), (730, SCHEDULE), (740, FAIL), (741, SUBMIT), (750, SCHEDULE)]
    events = [event(t * SECOND, kind, request=(0.1, 0.1)) for t, kind in [*times, (790, FINISH), (791, SCHEDULE)]]
    trace, report = read(tmp_path, events)
    assert imported_jobs(trace) == [(700.0, 40.0, (0.1, 0.1))]
    assert [count for text, count in report.remarks.items() if text.startswith("started more than once")] == [1]


def test_requests(tmp_path):
    """The demand is the last non-null request at or before the start; later updates and nulls do not count."""
    events = [
        event(700 * SECOND, SUBMIT, request=(0.1, 0.1)),
        event(701 * SECOND, UPDATE_PENDING, request=(0.2, 0.3)),
        event(702 * SECOND, QUEUE),
        event(710 * SECOND, SCHEDULE),
        event(711 * SECOND, UPDATE_RUNNING, request=(0.9, 0.9)),
        event(750 * SECOND, FINISH, request=(0.8, 0.8)),
    ]
    trace, _ = read(tmp_path, events)
    assert imported_jobs(trace) == [(700.0, 40.0, (0.2, 0.3))]


def test_half_a_request(tmp_path):
    """A request with one part missing asks for nothing of it; with both missing it is none."""
    events = life(1, 0, 700, 710, 760, request=(0.5, None)) + life(2, 0, 701, 710, 760, request=(None, None)) + ONE
    trace, report = read(tmp_path, events)
    assert sorted(imported_jobs(trace)) == [(700.0, 50.0, (0.5, 0.0)), (700.0, 50.0, (0.5, 0.25))]
    assert report.left_out == {"no resource request": 1}


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (life(1, 0, 0, 710, 760), "submitted before the log begins"),
        (life(1, 0, 0, 0, 760), "submitted before the log begins"),
        (life(1, 0, 700, 710, 760)[1:], "no SUBMIT event"),
        (life(1, 0, 700, 710, 760)[::2], "no SCHEDULE before its FINISH"),
        (life(1, 0, 700, 760, 760), "no SCHEDULE before its FINISH"),
        (life(1, 0, 700, 710, 760)[:2], "not finished inside the log"),
        ([*life(1, 0, 700, 710, 760)[:2], event(2**63 - 1, FINISH)], "not finished inside the log"),
        ([event(700 * SECOND, ENABLE)], "not finished inside the log"),
        ([*life(1, 0, 700, 710, 760)[:2], event(720 * SECOND, KILL)], "ended without FINISH: killed"),
        ([*life(1, 0, 700, 710, 760)[:2], event(720 * SECOND, LOST)], "ended without FINISH: lost"),
        ([*life(1, 0, 700, 710, 760)[:2], event(720 * SECOND, FAIL)], "ended without FINISH: failed"),
        ([*life(1, 0, 700, 710, 760)[:2], event(720 * SECOND, EVICT)], "ended without FINISH: evicted"),
        (
            [*life(1, 0, 700, 710, 760)[:2], event(720 * SECOND, EVICT), event(721 * SECOND, SCHEDULE)],
            "not finished inside the log",
        ),
        (life(1, 0, 700, 710, 760, request=None), "no resource request"),
        (life(1, 0, 700, 710, 760, request=(0.0, 0.0)), "demand of zero"),
    ],
)
def test_left_out(tmp_path, events, reason):
    """What is not a whole job inside the window is left out, and the report says why."""
    trace, report = read(tmp_path, ONE + events)
    assert (len(trace), report.left_out, report.jobs) == (1, {reason: 1}, 2)
    with pytest.raises(Infeasible, match=f"no job was kept: 1 {reason}"):
        read(tmp_path, events)


def test_two_finishes(tmp_path):
    """Of an instance that finishes twice the last run counts, and that is told."""
    events = [*ONE, event(800 * SECOND, SCHEDULE, 7), event(830 * SECOND, FINISH, 7)]
    trace, report = read(tmp_path, events)
    assert imported_jobs(trace) == [(700.0, 30.0, (0.5, 0.25))]
    assert "finished more than once (the last run counts)" in report.remarks


def write(events, path, how):
    """The same events in each of the forms."""
    if how.startswith("json"):
        text = json_lines(events).encode()
        path.write_bytes(gzip.compress(text) if how == "json.gz" else text)
        return
    rows = [{**one, "constraint": ""} for one in events]
    struct = pl.Struct({"cpus": pl.Float64, "memory": pl.Float64})
    table = pl.DataFrame(rows, schema_overrides={"resource_request": struct, "machine_id": pl.Int64, "missing_type": pl.Int64})
    if how == "parquet":
        table.write_parquet(path)
        return
    flat = table.unnest("resource_request", separator=".")
    if how == "dotted parquet":
        flat.write_parquet(path)
    else:
        text = flat.write_csv().encode()
        path.write_bytes(gzip.compress(text) if how == "csv.gz" else text)


@pytest.mark.parametrize("how", ["json", "json.gz", "parquet", "dotted parquet", "csv", "csv.gz"])
def test_every_form(tmp_path, how):
    """JSON lines, CSV and parquet, packed or not, with structs or dotted columns: the same jobs."""
    events = [*ONE, *life(8, 3, 702, 720, 721.5, request=(2**-20, 3 * 2**-20)), event(900 * SECOND, SUBMIT, 9), *life(9, 1, 700, 710, 720)]
    write(events, tmp_path / "shard", how)
    trace, report = import_trace(tmp_path / "shard", tmp_path / "jobs.parquet")
    assert imported_jobs(trace) == [(arrival, size, demand) for arrival, _, _, size, demand in plain_jobs(events)]
    assert report.left_out == {"not finished inside the log": 1}


REQUEST = st.none() | st.tuples(st.sampled_from([0.0, 2**-20, 0.125, 0.3]), st.sampled_from([0.0, 0.25, 0.1]))
EVENT = st.builds(
    event,
    st.integers(0, 12).map(lambda t: t * SECOND),
    st.integers(0, 10) | st.sampled_from([SUBMIT, SCHEDULE, FINISH]),
    st.integers(1, 3),
    st.integers(0, 1),
    REQUEST,
    text=st.booleans(),
)
LIFE = st.builds(
    lambda collection, submit, wait, run, request: life(collection, 0, submit, submit + wait, submit + wait + run, request),
    st.integers(1, 9),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 9),
    REQUEST,
)


@settings(max_examples=40)
@given(st.lists(EVENT | LIFE, max_size=40), st.randoms(use_true_random=False), st.integers(1, 4))
def test_random_lives_in_shuffled_shards(tmp_path_factory, parts, chance, shards):
    """Events in any order over any number of shards give the jobs of the plain reading, in memory and through the disk."""
    events = [one for part in parts for one in (part if isinstance(part, list) else [part])]
    chance.shuffle(events)
    directory = tmp_path_factory.mktemp("borg")
    (directory / "in").mkdir()
    for shard in range(shards):
        (directory / "in" / f"{shard}.json").write_text(json_lines(events[shard::shards]), encoding="utf-8")
    expected = [(arrival, size, demand) for arrival, _, _, size, demand in plain_jobs(events)]
    for limits in (Limits(), Limits(events=3, part=4, jobs=2)):
        if not expected:
            with pytest.raises((Infeasible, ValueError)):
                import_trace(directory / "in", directory / "jobs.parquet", limits=limits)
            continue
        trace, report = import_trace(directory / "in", directory / "jobs.parquet", limits=limits)
        assert imported_jobs(trace) == expected
        assert report.rows == len(events)
        assert report.jobs == len({(int(one["collection_id"]), int(one["instance_index"])) for one in events})


def test_unknown_codes_and_missing_keys_are_bad_lines(tmp_path):
    """A code above 10, a missing id, a fraction of a microsecond: lines that cannot be read, each with its place and the value."""
    broken = [event(700 * SECOND, 11), {**event(700, SUBMIT), "collection_id": None}, {**event(700, SUBMIT), "time": 1.5}]
    events = [*ONE, *broken]
    _, report = read(tmp_path, events, on_error="skip")
    assert [str(bad).split("events.json:")[1] for bad in report.bad_places] == [
        "4: type must be at most 10 (got '11')",
        "5: collection_id is missing",
        "6: time must be a whole number (got '1.5')",
    ]
    assert (report.bad_lines, report.kept, report.rows) == (3, 1, 3)


def test_many_lines_of_several_blocks(tmp_path, monkeypatch):
    """A file of many blocks: the same jobs, and a bad line far inside has its right number."""
    from rota.traces.readers import text

    monkeypatch.setattr(text.text_blocks, "__defaults__", (4096,))
    chance = random.Random(4)
    events = [one for i in range(400) for one in life(i, 0, chance.randrange(1, 999), 1000, 1000 + chance.randrange(1, 99))]
    lines = json_lines(events).splitlines()
    lines[777] = lines[777][:50]
    (tmp_path / "events.json").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(text, "_CHUNK", 1000)
    trace, report = import_trace(tmp_path / "events.json", tmp_path / "jobs.parquet", on_error="skip")
    assert report.bad_places[0].place.endswith("events.json:778")
    sound = [json.loads(line) for i, line in enumerate(lines) if i != 777]
    assert imported_jobs(trace) == [(arrival, size, demand) for arrival, _, _, size, demand in plain_jobs(sound)]


def test_real_rows(tmp_path):
    """The public sample of single events: every row is read, and every instance is kept or left out for a reason."""
    if not SAMPLE.exists():
        pytest.skip("the sample of Borg 2019 events (../shared/data/borg2019_samples) is not here")
    rows = pl.read_csv(SAMPLE)
    _, report = import_trace(SAMPLE, tmp_path / "jobs.parquet")
    assert (report.format, report.rows, report.bad_lines) == ("borg2019", 999, 0)
    assert report.jobs == rows.select("collection_id", "instance_index").n_unique()
