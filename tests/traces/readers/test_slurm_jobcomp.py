"""Slurm's file of completed jobs, `jobcomp/filetxt`."""

import gzip

import pytest

from rota.errors import BadSpec
from rota.traces import import_trace
from slurm_logs import LOGS

TEXT = (LOGS / "jobcomp.txt").read_text()


def read(directory, text, packed=False, **options):
    """Imports a file with this text."""
    (directory / "jobs.txt").write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return import_trace(directory / "jobs.txt", directory / "jobs.parquet", **options)


@pytest.mark.parametrize("packed", [False, True])
def test_it_agrees_with_sacct(tmp_path, packed):
    """Two logs of the same real jobs give the same trace, but for the suspended job, whose suspension this file does not tell."""
    trace, report = read(tmp_path, TEXT, packed)
    other, _ = import_trace(LOGS / "sacct.txt", tmp_path / "other.parquet")
    assert (report.format, report.rows, report.kept) == ("slurm_jobcomp", 32, 25)
    assert (trace.names, trace.demand.tolist()) == (other.names, other.demand.tolist())
    mine, theirs = trace.jobs.collect(), other.jobs.collect()
    assert mine.drop("size", "estimate").equals(theirs.drop("size", "estimate"))
    apart = mine["size"] - theirs["size"]
    assert sorted(apart)[-2:] == [0, 8]  # it was suspended for 8 s
    limited = theirs["estimate"] != theirs["size"]
    assert mine["estimate"].filter(limited).equals(theirs["estimate"].filter(limited))


def test_names_with_blanks_bars_and_quotes(tmp_path):
    """A name may have blanks, bars and quotes: the fields after it are found."""
    lines = [line for line in TEXT.splitlines(keepends=True) if "Name=a name | with" in line or "Name=two words" in line]
    trace, report = read(tmp_path, "".join(lines))
    assert len(lines) == len(trace) == 2
    assert report.remarks["with licenses or generic resources other than GPUs (not counted)"] == 1


def test_broken_lines(tmp_path):
    """A line without an id, and a time that is none, are told with their line."""
    text = TEXT.splitlines(keepends=True)[0]
    lines = text + "\nnonsense\n" + text.replace("JobId=19", "JobId=20").replace("SubmitTime=2026", "SubmitTime=soon")
    with pytest.raises(BadSpec, match=r"jobs.txt:3: has no JobId="):
        read(tmp_path, lines)
    trace, report = read(tmp_path, lines, on_error="skip")
    assert [bad.place.rsplit(":", 1)[1] for bad in report.bad_places] == ["3", "4"]
    assert "SubmitTime must be a time" in report.bad_places[1].rule
    assert len(trace) == 1
