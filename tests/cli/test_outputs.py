"""Where results are to be written: a bad place is told before the work, by every verb that writes."""

import numpy as np
import polars as pl
import pytest

import rota
from rota.cli import main
from rota.traces import save_trace
from systems import EXAMPLES

PAPER = str(EXAMPLES / "paper.toml")
VERBS = {
    "plan": ["plan", PAPER, "-o"],
    "design": ["design", PAPER, "-o"],
    "simulate": ["simulate", PAPER, "fcfs", "--log"],
    "sweep": ["sweep", PAPER, "--policies", "fcfs", "--seeds", "1", "-o"],
    "reproduce": ["reproduce", "queues", "--effort", "smoke", "-o"],
    "trace borg": ["trace", "borg", "--share", "1e-5", "-o"],
    "trace cut": ["trace", "cut", "jobs.parquet", "--begin", "0", "--end", "50", "-o"],
    "trace group": ["trace", "group", "jobs.parquet", "--top", "1", "-o"],
    "trace import": ["trace", "import", "log.csv", "-o"],
    "trace system": ["trace", "system", "jobs.parquet", "-o"],
    "trace scale": ["trace", "scale", "jobs.parquet", "--load", "0.1", "--system", "scaled.toml", "-o"],
}


@pytest.fixture
def no_work(tmp_path, monkeypatch):
    """A folder with a trace and a log, in which any work at all would fail."""
    jobs = pl.DataFrame({"arrival": np.arange(100.0), "size": np.ones(100), "type": np.zeros(100, np.int32)})
    save_trace(rota.Trace(jobs.lazy(), ("a",), ("cores",), [[1.0]], [4.0]), tmp_path / "jobs.parquet")
    (tmp_path / "log.csv").write_text("arrival,size,cores\n0,1,1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def work(*_arguments, **_options):
        raise AssertionError("work was begun")

    for place in ("rota.plan", "rota.design_policy", "rota.simulate", "rota.study.sweep"):
        monkeypatch.setattr(place, work)
    for place in ("rota.traces.write_borg_month", "rota.traces.grouping.group_types", "rota.report.reproduced.redraw"):
        monkeypatch.setattr(place, work)
    return tmp_path


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_where_a_folder_should_be(no_work, capsys, verb):
    """A path through a file is refused by every verb, with 2, before anything is computed."""
    (no_work / "file").touch()
    assert main([*VERBS[verb], str(no_work / "file" / "below" / "out")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "a folder" in captured.err or "directory" in captured.err


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ("plan", "reproduce")])
def test_a_folder_where_a_file_should_be(no_work, capsys, verb):
    """A folder is refused as the name of a file."""
    assert main([*VERBS[verb], str(no_work)]) == 2
    assert "is a directory: name a file in it" in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
def test_a_place_where_nobody_can_write(no_work, capsys, verb):
    """A folder that takes no files is noticed by trying, before the work, whoever runs it."""
    assert main([*VERBS[verb], "/proc/out" if verb != "plan" else "/proc/"]) == 2
    assert "cannot be written" in capsys.readouterr().err
