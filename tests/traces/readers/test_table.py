"""Plain tables with a mapping of columns."""

from datetime import datetime, timedelta

import polars as pl
import pytest

from borg_logs import imported_jobs
from rota.errors import BadSpec
from rota.traces import import_trace

TABLE = pl.DataFrame(
    {
        "submit": [3_000_000, 1_000_000, 2_000_000],
        "begin": [4_000_000, 1_500_000, 2_000_000],
        "finish": [5_000_000, 2_000_000, 2_250_000],
        "ncpus": [2, 4, 2],
        "mem": [0.5, None, 1.5],
        "wanted": [2_000_000, None, 3_000_000],
        "queue": ["long", "short", "long"],
    }
)


def write(table, path, how):
    """The table as a file."""
    if how == "parquet":
        table.write_parquet(path)
    else:
        table.write_csv(path, separator={"csv": ",", "semicolons": ";", "tabs": "\t"}[how])
    return path


@pytest.mark.parametrize("how", ["csv", "semicolons", "tabs", "parquet"])
def test_mapping(tmp_path, how):
    """Start and end in place of the size, times in microseconds, estimates; every other name is a resource."""
    file = write(TABLE, tmp_path / "table", how)
    columns = {"arrival": "submit", "start": "begin", "end": "finish", "cpu": "ncpus", "memory": "mem", "estimate": "wanted"}
    trace, report = import_trace(file, tmp_path / "jobs.parquet", columns=columns, time_unit="us")
    assert imported_jobs(trace) == [(1, 0.5, (4, 0)), (2, 0.25, (2, 1.5)), (3, 1, (2, 0.5))]
    assert trace.jobs.collect()["estimate"].to_list() == [0.5, 3, 2]
    assert (trace.resources, report.format) == (("cpu", "memory"), "table")
    assert report.remarks == {"without an estimate (it is then the size)": 1}


def test_types_of_the_log(tmp_path):
    """A column of types names them; where jobs of one name have several demands, the demand is added to the name."""
    file = write(TABLE, tmp_path / "table", "csv")
    columns = {"arrival": "submit", "size": "wanted", "type": "queue", "cpu": "ncpus"}
    trace, report = import_trace(file, tmp_path / "jobs.parquet", columns=columns)
    assert trace.names == ("long",)
    assert report.left_out == {"size unknown": 1}
    trace, _ = import_trace(file, tmp_path / "jobs.parquet", columns={"arrival": "submit", "size": "finish", "type": "queue", "cpu": "mem"})
    assert sorted(trace.names) == ["long_cpu0.5", "long_cpu1.5"]


def test_without_resources_a_job_asks_for_one_slot(tmp_path):
    """Arrivals and sizes alone are a trace of one type."""
    file = write(TABLE, tmp_path / "table", "csv")
    trace, _ = import_trace(file, tmp_path / "jobs.parquet", columns={"arrival": "submit", "size": "ncpus"}, time_unit="min")
    assert (trace.names, trace.demand.tolist()) == (("slots1",), [[1.0]])
    assert imported_jobs(trace)[0] == (60_000_000, 240, (1.0,))


def test_dates_of_parquet(tmp_path):
    """Dates become seconds since 1970, durations seconds."""
    begin = datetime(1970, 1, 2)
    pl.DataFrame({"arrival": [begin, begin + timedelta(hours=1)], "size": [timedelta(minutes=1)] * 2}).write_parquet(tmp_path / "table")
    trace, _ = import_trace(tmp_path / "table", tmp_path / "jobs.parquet")
    assert imported_jobs(trace) == [(86400, 60, (1,)), (90000, 60, (1,))]


def test_quotes_and_blanks(tmp_path):
    """Quoted separators, blanks around numbers, CRLF and a byte order mark are no errors; an open quote is."""
    text = '\ufeffarrival,size,type,cpu\r\n 1 ,2,"a,b",0.5\r\n\r\n2,2,"a,b" ,0.5\r\n3,2,"c,0.5\r\n'
    (tmp_path / "table").write_text(text, encoding="utf-8", newline="")
    trace, report = import_trace(tmp_path / "table", tmp_path / "jobs.parquet", on_error="skip")
    assert imported_jobs(trace) == [(1, 2, (0.5,))]
    assert trace.names == ("a,b",)
    assert [(bad.place.rsplit(":", 1)[1], bad.rule) for bad in report.bad_places] == [
        ("4", "has an open quote"),
        ("5", "has an open quote"),
    ]


@pytest.mark.parametrize(
    ("columns", "unit", "rule"),
    [
        ({"size": "wanted"}, None, "must say which column is the arrival"),
        ({"arrival": "submit", "start": "begin"}, None, "must say which column is the size"),
        ({"arrival": "submit", "size": "nothing"}, None, "is not table; looked for\n    table: .* with the columns submit, nothing"),
        ({"arrival": "submit", "size": "finish"}, "fortnights", "time_unit: must be one of ns, us"),
        ({"arrival": "submit", "size": "finish", "group": "ncpus"}, None, "is a name that the import needs itself"),
        ({"arrival": "submit", "size": "finish", "cpu": "queue"}, None, "table:2: queue must be a number \\(got 'long'\\)"),
    ],
)
def test_wrong_mappings(tmp_path, columns, unit, rule):
    """A mapping that cannot be followed is an error that says what is missing."""
    file = write(TABLE, tmp_path / "table", "csv")
    with pytest.raises(BadSpec, match=rule):
        import_trace(file, tmp_path / "jobs.parquet", columns=columns, time_unit=unit)


def test_starts_and_ends_are_kept(tmp_path):
    """A table that says when jobs started, and perhaps ended, keeps it in seconds; the end follows from start and size."""
    (tmp_path / "log.csv").write_text("came,began,left\n1,2,5\n2,5,6\n")
    columns = {"arrival": "came", "start": "began", "end": "left"}
    trace, _ = import_trace(tmp_path / "log.csv", tmp_path / "jobs.parquet", columns=columns, time_unit="min")
    assert trace.jobs.select("arrival", "start", "end", "size").collect().rows() == [(60, 120, 300, 180), (120, 300, 360, 60)]
    columns = {"arrival": "came", "start": "began", "size": "left"}
    trace, _ = import_trace(tmp_path / "log.csv", tmp_path / "more.parquet", columns=columns)
    assert trace.jobs.select("start", "end").collect().rows() == [(2, 7), (5, 11)]
