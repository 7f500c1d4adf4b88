"""Google 2011: the official parts of `task_events`, and the two condensed tables."""

import gzip
from pathlib import Path

import polars as pl
import pytest

from borg_logs import imported_jobs
from rota.errors import BadSpec
from rota.traces import import_trace

DATA = Path(__file__).parents[3].parent / "shared" / "data"
SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL, LOST, UPDATE_PENDING, UPDATE_RUNNING = range(9)


def line(time_s, kind, job=3418309, task=0, request=("0.125", "0.07446", "0.0004244")):
    """One line as in the log: 13 fields without a header; empty where unknown."""
    return f"{round(time_s * 1e6)},,{job},{task},4155527081,{kind},70s3v5qRyCO/1PCdI6fVXnrW8FU/w+5CKRSa72xgcIo=,3,9,{','.join(request)},0\n"


def read(directory, lines, **options):
    """Imports lines given as a packed part."""
    (directory / "part-00000-of-00500.csv.gz").write_bytes(gzip.compress("".join(lines).encode()))
    return import_trace(directory / "part-00000-of-00500.csv.gz", directory / "jobs.parquet", **options)


def test_events_with_the_codes_of_2011(tmp_path):
    """SCHEDULE is 1 and FINISH 4 here; a restart counts from its last SCHEDULE; updates before the start change the demand."""
    lines = [
        *(line(700, SUBMIT), line(701, UPDATE_PENDING, request=("0.25", "0.5", "0")), line(702, SCHEDULE, request=("", "", ""))),
        *(line(710, EVICT), line(710, SUBMIT, request=("", "", "")), line(720, SCHEDULE, request=("", "", "")), line(725, UPDATE_RUNNING)),
        *(line(750, FINISH), line(0, SUBMIT, 5), line(0, SCHEDULE, 5), line(800, FINISH, 5)),
        *(line(700, SUBMIT, 6), line(710, SCHEDULE, 6), line(720, KILL, 6)),
    ]
    trace, report = read(tmp_path, reversed(lines))
    # The eviction at 710 repeats the request of the task, and it is the last one before the start at 720.
    assert imported_jobs(trace) == [(700.0, 30.0, (0.125, 0.07446, 0.0004244))]
    assert (trace.resources, trace.capacity) == (("cpu", "memory", "disk"), [1.0, 1.0, 1.0])
    assert report.left_out == {"submitted before the log begins": 1, "ended without FINISH: killed": 1}


def test_broken_lines(tmp_path):
    """Lines with too few fields, or with text for a number, have their place; the import stops, or goes on without them."""
    lines = [line(700, SUBMIT), line(710, SCHEDULE)[:40] + "\n", line(711, SCHEDULE), "x" + line(712, SCHEDULE), line(750, FINISH)]
    with pytest.raises(BadSpec, match=r"part-00000-of-00500.csv.gz:2: has 7 fields, not 13") as stopped:
        read(tmp_path, lines)
    assert "skip" in str(stopped.value)
    assert not (tmp_path / "jobs.parquet").exists()
    trace, report = read(tmp_path, lines, on_error="skip")
    assert imported_jobs(trace) == [(700.0, 39.0, (0.125, 0.07446, 0.0004244))]
    assert [bad.rule for bad in report.bad_places] == ["has 7 fields, not 13", "time must be a whole number"]
    assert report.bad_places[1].place.endswith("csv.gz:4")


TASKS = {
    "job_id": [1, 1, 2, 3, 4, 5],
    "task_index": [0, 1, 0, 0, 0, 0],
    "submit_us": [700_000_000, 700_000_000, 0, 800_000_000, 900_000_000, 950_000_000],
    "first_schedule_us": [701_000_000, 701_000_000, 0, None, 901_000_000, 951_000_000],
    "last_schedule_us": [701_000_000, 705_000_000, 0, None, 901_000_000, 990_000_000],
    "end_us": [711_000_000, 725_000_000, 730_000_000, None, 950_000_000, 980_000_000],
    "end_type": [FINISH, FINISH, FINISH, None, LOST, FINISH],
    "n_schedules": [1, 2, 1, 0, 1, 2],
    "sched_class": [0] * 6,
    "priority": [0] * 6,
    "cpu": [0.1, 0.1, 0.1, 0.1, 0.1, 0.1],
    "mem": [0.2, 0.3, 0.2, 0.2, 0.2, 0.2],
    "disk": [0.0, None, 0.0, 0.0, 0.0, 0.0],
}


def test_condensed_tasks(tmp_path):
    """One row per task: the size is from the last SCHEDULE to the FINISH; what did not finish, or came before the log, is left out."""
    pl.DataFrame(TASKS).write_parquet(tmp_path / "tasks.parquet")
    trace, report = import_trace(tmp_path / "tasks.parquet", tmp_path / "jobs.parquet")
    assert imported_jobs(trace) == [(700.0, 10.0, (0.1, 0.2, 0.0)), (700.0, 20.0, (0.1, 0.3, 0.0))]
    assert report.left_out == {
        "submitted before the log begins": 1,
        "not finished inside the log": 1,
        "ended without FINISH: lost": 1,
        "size not above 0": 1,
    }


def test_condensed_jobs(tmp_path):
    """Jobs without demands ask for one slot each; no machine tells how many there are."""
    rows = {
        "job_id": [1, 2, 3],
        "submit_us": [700_000_000, 0, 690_000_000],
        "schedule_us": [701_000_000, 0, 695_000_000],
        "end_us": [711_000_000, None, 699_000_000],
        "end_type": [FINISH, None, KILL],
    }
    pl.DataFrame(rows).write_parquet(tmp_path / "log.parquet")
    trace, report = import_trace(tmp_path / "log.parquet", tmp_path / "jobs.parquet")
    assert imported_jobs(trace) == [(700.0, 10.0, (1.0,))]
    assert (trace.names, trace.resources, trace.capacity) == (("slots1",), ("slots",), None)
    assert report.left_out == {"not finished inside the log": 1, "ended without FINISH: killed": 1}


def test_real_tasks(tmp_path):
    """The first 83 minutes of the real log: 46,587 tasks submitted inside the window, 38,062 of them finished there."""
    file = DATA / "google2011_tasks_part0" / "google2011_tasks_part0.parquet"
    if not file.exists():
        pytest.skip("the real tasks of 2011 (../shared/data/google2011_tasks_part0) are not here")
    trace, report = import_trace(file, tmp_path / "jobs.parquet")
    assert report.jobs == 190_926
    assert report.kept + report.left_out["size not above 0"] == 38_062
    submitted = pl.read_parquet(file).filter(pl.col("submit_us") > 0)
    assert submitted.height == 46_587
    assert trace.begin == submitted.filter(pl.col("end_type") == FINISH)["submit_us"].min() / 1e6


def test_real_jobs(tmp_path):
    """The real month of jobs: 385,503 finished, mean size 651 s."""
    file = DATA / "google2011_jobs" / "google2011_jobs.parquet"
    if not file.exists():
        pytest.skip("the real jobs of 2011 (../shared/data/google2011_jobs) are not here")
    trace, report = import_trace(file, tmp_path / "jobs.parquet")
    assert (report.kept, report.jobs) == (385_503, 672_074)
    assert trace.per_type["mean_size"].item() == pytest.approx(651, abs=1)
