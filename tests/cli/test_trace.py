"""`rota trace import`."""

import json

import pytest

from borg_logs import json_lines, life
from rota.cli import main
from rota.traces import open_trace

EVENTS = life(1, 0, 700, 710, 760, (0.0021, 0.25)) + life(2, 0, 705, 710, 711, (0.0022, 0.25)) + life(3, 0, 0, 0, 900)


@pytest.fixture
def log(tmp_path, monkeypatch):
    """A small Borg log in an otherwise empty directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.json").write_text(json_lines(EVENTS), encoding="utf-8")
    return tmp_path


def test_tables(log, capsys):
    """The report says what was kept and what was left out; the file is named on standard error."""
    assert main(["trace", "import", "events.json", "-o", "jobs.parquet"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "borg2019: 9 rows in 1 file, 3 jobs, 2 kept",
        "2 types of cpu, memory; arrivals from 700 s to 705 s",
        "",
        "Left out",
        "                                   jobs",
        "  submitted before the log begins     1",
    ]
    assert printed.err == "written to jobs.parquet\n"
    assert len(open_trace(log / "jobs.parquet")) == 2


def test_json(log, capsys):
    """With --json the fields of the report have their Python names; --grid makes the two demands one type."""
    assert main(["trace", "import", "*.json", "--output", "jobs.parquet", "--grid", "0.001", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    report = open_trace(log / "jobs.parquet").about["import"]
    assert fields == {"output": "jobs.parquet", "types": 1, "resources": ["cpu", "memory"], **report}


def test_an_output_that_exists_is_kept(log, capsys):
    """Nothing is written over without --force."""
    (log / "jobs.parquet").write_text("precious", encoding="utf-8")
    assert main(["trace", "import", "events.json", "-o", "jobs.parquet"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert (log / "jobs.parquet").read_text(encoding="utf-8") == "precious"
    assert main(["trace", "import", "events.json", "-o", "jobs.parquet", "--force"]) == 0
    assert len(open_trace(log / "jobs.parquet")) == 2


def test_broken_lines(log, capsys):
    """A broken line ends the import with 2 and its place; --on-error skip goes on and shows it."""
    (log / "more.json").write_text('{"time": 5\n', encoding="utf-8")
    arguments = ["trace", "import", "events.json", "more.json", "-o", "jobs.parquet", "--format", "borg2019"]
    (log / "more.json").write_text(json_lines(life(4, 0, 1, 2, 3)) + '{"time": 5\n', encoding="utf-8")
    assert main(arguments) == 2
    assert "more.json:4: is not a JSON object" in capsys.readouterr().err
    assert not (log / "jobs.parquet").exists()
    assert main([*arguments, "--on-error", "skip"]) == 0
    printed = capsys.readouterr().out
    assert "Lines that could not be read: 1\n  more.json:4: is not a JSON object" in printed


def test_a_table(log, capsys):
    """A plain table with its mapping and unit."""
    (log / "table.csv").write_text("when,long,n\n1000,500,2\n3000,500,2\n", encoding="utf-8")
    assert main(["trace", "import", "table.csv", "-o", "t.parquet", "--columns", "arrival=when,size=long,cpu=n", "--time-unit", "ms"]) == 0
    assert "1 type of cpu; arrivals from 1 s to 3 s" in capsys.readouterr().out


@pytest.mark.parametrize("columns", ["arrival", "arrival=", "=when", "arrival=when,arrival=long"])
def test_a_mapping_that_is_none(log, columns, capsys):
    """A mapping in another form is wrong use."""
    assert main(["trace", "import", "events.json", "-o", "t.parquet", "--columns", columns]) == 2
    assert "--columns: must" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["events.json"], ["events.json", "-o", "a.parquet", "--format", "borg"]])
def test_wrong_use(log, arguments, capsys):
    """No source, no output, an unknown format: 2, and nothing is written."""
    assert main(["trace", "import", *arguments]) == 2
    assert [path.name for path in log.iterdir()] == ["events.json"]


def test_unknown_content(log, capsys):
    """A file in no known format ends with 2 and a list of what was looked for."""
    (log / "notes.txt").write_text("hello\n", encoding="utf-8")
    assert main(["trace", "import", "notes.txt", "-o", "jobs.parquet"]) == 2
    assert "is in no known format; looked for\n    borg2019:" in capsys.readouterr().err


def test_no_jobs(log, capsys):
    """A log without a single whole job is a problem without an answer: 1."""
    (log / "events.json").write_text(json_lines(life(3, 0, 0, 0, 900)), encoding="utf-8")
    assert main(["trace", "import", "events.json", "-o", "jobs.parquet"]) == 1
    assert "no job was kept" in capsys.readouterr().err
