"""The results file and its journal."""

import json

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import rota
from rota.study import grid, read_results
from rota.study.results import SCHEMA, Results, as_table, journal_of
from rota.study.runs import failed, measure
from systems import paper_example

RUNS = grid(paper_example(0.5), ["fcfs", "first-fit"], jobs=1000, seeds=2)
ROWS = [measure(run) for run in RUNS]


def test_rows_survive_the_file(tmp_path):
    """What is merged is read again, with every column, its type and every bit; the journal has gone."""
    path = tmp_path / "results.parquet"
    with Results(path) as results:
        for row in ROWS:
            results.add(row)
        results.merge(as_table(ROWS))
    table = read_results(path)
    assert dict(table.schema) == SCHEMA
    assert table["mean_response_time"].to_list() == [row["mean_response_time"] for row in ROWS]
    assert table["mean_queue_length"].to_list() == [row["mean_queue_length"] for row in ROWS]
    assert [file.name for file in tmp_path.iterdir()] == ["results.parquet"]


def test_the_journal_is_enough(tmp_path):
    """Rows that were added and never merged are there the next time, not-a-number included; a line cut short is not."""
    path = tmp_path / "results.parquet"
    odd = {**ROWS[1], "mean_response_time": float("nan"), "interval": float("inf")}
    with Results(path) as results:
        for row in (ROWS[0], odd):
            results.add(row)
    assert not path.exists()
    with journal_of(path).open("ab") as journal:
        journal.write(json.dumps(ROWS[2]).encode()[:100])
    with Results(path) as results:
        assert RUNS[0].key in results
        assert RUNS[2].key not in results
        assert_frame_equal(as_table([results[run.key] for run in RUNS[:2]]), as_table([ROWS[0], odd]))
        results.add(ROWS[2])
    with Results(path) as results:
        assert [run.key in results for run in RUNS] == [True, True, True, False]


def test_killed_between_merge_and_the_end_of_the_journal(tmp_path):
    """If a row is in both files, it counts once."""
    path = tmp_path / "results.parquet"
    with Results(path) as results:
        results.merge(as_table(ROWS[:2]))
    journal_of(path).write_text("".join(json.dumps(row) + "\n" for row in ROWS[1:3]), encoding="utf-8")
    with Results(path) as results:
        results.merge(as_table(ROWS[3:]))
    assert read_results(path)["key"].to_list() == [run.key for run in RUNS]


def test_failures_are_shown_but_not_known(tmp_path):
    """A failed run is in the table, and is tried again; its row gives way to the result."""
    path = tmp_path / "results.parquet"
    lost = failed(RUNS[0], "its worker died")
    with Results(path) as results:
        results.add(lost)
        results.merge(as_table([lost, ROWS[1]]))
    assert read_results(path)["outcome"].to_list() == ["failed", "done"]
    with Results(path) as results:
        assert RUNS[0].key not in results
        assert RUNS[1].key in results
        results.add(ROWS[0])
        results.merge(as_table(ROWS[:1]))
    assert read_results(path)["outcome"].to_list() == ["done", "done"]


def test_one_sweep_at_a_time(tmp_path):
    """A second sweep with the same output is refused as long as the first one runs."""
    path = tmp_path / "results.parquet"
    with Results(path) as first:
        first.add(ROWS[0])
        with pytest.raises(rota.RotaError, match="another sweep is writing"), Results(path):
            pass
    with Results(path) as next_one:
        assert RUNS[0].key in next_one


def test_other_files_are_left_alone(tmp_path):
    """A parquet file of another kind, or no parquet file, is not written over; no journal stays behind."""
    table, text = tmp_path / "table.parquet", tmp_path / "notes.txt"
    pl.DataFrame({"a": [1]}).write_parquet(table)
    text.write_text("my notes", encoding="utf-8")
    for path in (table, text):
        with pytest.raises(rota.BadSpec, match="not a file that rota sweep wrote"), Results(path):
            pass
    assert text.read_text(encoding="utf-8") == "my notes"
    assert {file.name for file in tmp_path.iterdir()} == {"table.parquet", "notes.txt"}
    with pytest.raises(rota.BadSpec, match="cannot be written: No such file"), Results(tmp_path / "none" / "results.parquet"):
        pass
    with pytest.raises(rota.BadSpec, match="cannot be read"):
        read_results(tmp_path / "none.parquet")


def test_a_newer_format_is_refused(tmp_path):
    """A file of a later version of the format says so."""
    path = tmp_path / "results.parquet"
    as_table(ROWS).write_parquet(path, metadata={"rota.sweep": '{"version": 99}'})
    with pytest.raises(rota.BadSpec, match="newer than 2"):
        read_results(path)


def test_in_memory():
    """Without a path nothing is written."""
    with Results(None) as results:
        results.add(ROWS[0])
        results.merge(as_table(ROWS[:1]))
        assert RUNS[0].key in results
