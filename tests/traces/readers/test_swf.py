"""SWF: the header, unknown values, processors and memory, and what became of the jobs."""

import gzip

import pytest

from borg_logs import imported_jobs
from rota.errors import BadSpec
from rota.traces import import_trace
from rota.traces.readers.swf import header_of

HEADER = """; Version: 2.2
; Computer: A made-up machine
; MaxNodes: 32
; MaxProcs: 128
;
; Note: made for a test
"""


def job(submit, run, processors=4, requested=-1, estimate=-1, memory=-1, used=-1, status=1):
    """One line of 18 fields, padded with blanks as real files are."""
    rest = [submit, 10, run, processors, -1, used, requested, estimate, memory, status, 1, 1, -1, -1, -1, -1, -1]
    return " ".join(f"{x:6}" for x in [1, *rest]) + "\n"


def read(directory, lines, header=HEADER, packed=False, **options):
    """Imports a file with these lines."""
    text = (header + "".join(lines)).encode()
    (directory / "log.swf").write_bytes(gzip.compress(text) if packed else text)
    return import_trace(directory / "log.swf", directory / "jobs.parquet", **options)


@pytest.mark.parametrize("packed", [False, True])
def test_processors_and_capacity(tmp_path, packed):
    """Requested processors, else allocated ones; MaxProcs is the capacity; no memory or requested time without any. Starts are known."""
    trace, report = read(tmp_path, [job(5, 100), job(0, 50, 4, requested=8), job(7, 70.5, -1, requested=2)], packed=packed)
    assert imported_jobs(trace) == [(0, 50, (8,)), (5, 100, (4,)), (7, 70.5, (2,))]
    assert (trace.resources, trace.capacity) == (("processors",), [128.0])
    assert trace.jobs.collect_schema().names() == ["arrival", "size", "type", "start", "end"]
    assert trace.jobs.select("start", "end").collect().rows() == [(10, 60), (15, 115), (17, 87.5)]  # each waited 10 s
    assert (report.format, report.rows, report.kept) == ("swf", 3, 3)
    assert header_of(tmp_path / "log.swf")["Computer"] == "A made-up machine"


def test_memory_is_per_processor(tmp_path):
    """Requested KB per processor times processors, else the used ones; 0 where unknown, and that is told. Its capacity is unknown."""
    trace, report = read(tmp_path, [job(0, 9, 4, memory=100), job(1, 9, 2, used=50), job(2, 9, 2)])
    assert imported_jobs(trace) == [(0, 9, (4, 400)), (1, 9, (2, 100)), (2, 9, (2, 0))]
    assert report.remarks["of unknown memory (taken as 0)"] == 1
    assert trace.capacity is None
    assert trace.about["known_capacity"] == {"processors": 128.0}


def test_estimates(tmp_path):
    """The requested time is the estimate; where unknown it is the run time, and that is told."""
    trace, report = read(tmp_path, [job(0, 9, estimate=60), job(1, 8)])
    assert trace.jobs.collect()["estimate"].to_list() == [60, 8]
    assert report.remarks["without a requested time (the estimate is then the run time)"] == 1


def test_failed_and_cancelled_jobs_are_kept_if_they_ran(tmp_path):
    """Failed and cancelled jobs that ran used the machine: they are kept and counted. The others are left out with their reasons."""
    lines = [
        *(job(0, 9), job(1, 9, status=0), job(2, 9, status=5), job(3, -1, status=5), job(4, 0, status=5)),
        *(job(5, 9, -1), job(6, 3, status=2), job(7, 3, status=3), job(-1, 3)),
    ]
    trace, report = read(tmp_path, lines)
    assert len(trace) == 3
    assert (report.remarks["failed, but ran"], report.remarks["cancelled while they ran"]) == (1, 1)
    assert report.left_out == {
        "a partial execution (the line of the whole job counts)": 2,
        "run time unknown": 1,
        "size not above 0": 1,
        "number of processors unknown": 1,
        "submit time unknown": 1,
    }


def test_broken_lines(tmp_path):
    """Too few fields and text where a number should be are told with their place; comments and blank lines count as lines."""
    lines = [job(0, 9), "\n", "1 2 3\n", job(1, 9).replace("9", "nine", 1), job(2, 9)]
    with pytest.raises(BadSpec, match=r"log.swf:9: has 3 fields, not 18"):
        read(tmp_path, lines)
    trace, report = read(tmp_path, lines, on_error="skip")
    assert [bad.place.rsplit(":", 1)[1] for bad in report.bad_places] == ["9", "10"]
    assert len(trace) == 2


def test_nodes_if_there_are_no_processors_in_the_header(tmp_path):
    """MaxNodes stands in for MaxProcs; a header without numbers tells nothing."""
    trace, _ = read(tmp_path, [job(0, 9)], header="; MaxNodes: 32\n; MaxProcs: -1\n")
    assert trace.capacity == [32.0]
    trace, _ = read(tmp_path, [job(0, 9)], header="; MaxProcs: unknown\n")
    assert trace.capacity is None
