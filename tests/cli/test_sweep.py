"""`rota sweep`."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

import rota
from rota.cli import main
from rota.cli.output import ProgressLine
from rota.study import over_seeds, read_results, sweep
from rota.study.results import journal_of
from rotas import paper_rota
from systems import EXAMPLES

PAPER, WEB = (str(EXAMPLES / f"{name}.toml") for name in ("paper", "web"))
HERE = ["--workers", "0"]


FLEET = str(EXAMPLES / "fleet.toml")


def test_a_fleet(tmp_path, capsys):
    """Every policy with every rule at every load, and a table of them; a rule for one server is refused."""
    path = tmp_path / "results.parquet"
    options = ["--policies", "first-fit,pinned", "--dispatch", "jsq,pull", "--loads", "0.5", "--jobs", "30000", "--seeds", "2"]
    assert main(["sweep", FLEET, *options, "-o", str(path), "--json", *HERE]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert [case["policy"] for case in fields["cases"]] == ["first-fit, jsq", "first-fit, pull", "pinned"]
    grid = {"dispatch": ["jsq", "pull"], "loads": [0.5], "jobs": 30_000, "seeds": 2}
    found = sweep(rota.read_system(FLEET), ["first-fit", "pinned"], **grid, workers=0)
    assert fields["cases"] == over_seeds(found).to_dicts()
    assert main(["sweep", PAPER, "--policies", "fcfs", "--dispatch", "jsq", "-o", str(tmp_path / "b.parquet")]) == 2
    assert "--dispatch: is for a fleet" in capsys.readouterr().err


def test_json_is_the_table_of_python(tmp_path, capsys):
    """With --json one object has the cases of the sweep; the file has its runs."""
    path = tmp_path / "results.parquet"
    options = ["--policies", "first-fit,pMSR,server-filling", "--loads", "0.5:0.7:0.2", "--switching-rates", "0.5,5", "--jobs", "2e3"]
    assert main(["sweep", PAPER, *options, "--seeds", "2", "-o", str(path), "--json", *HERE]) == 0
    printed = capsys.readouterr()
    fields = json.loads(printed.out)
    grid = {"loads": [0.5, 0.7], "switching_rates": [0.5, 5], "jobs": 2000, "seeds": 2}
    found = sweep(rota.read_system(PAPER), ["first-fit", "pMSR", "server-filling"], **grid, workers=0)
    assert fields["runs"] == len(found) == len(read_results(path)) == 2 * (2 + 4 + 2)
    assert fields["cases"] == over_seeds(found).to_dicts()
    remarks = [line for line in printed.err.splitlines() if "runs done" not in line]  # a slow machine shows how far it is
    assert remarks == [
        "server-filling at load 0.5, 0.7: ServerFilling needs one resource, and demands and capacity that are powers of two of one unit",
        f"16 runs in {path}",
    ]


def test_table(tmp_path, capsys):
    """The table has a row per case; a policy file keeps its name, what is unstable or cannot run says so."""
    file = tmp_path / "plan.json"
    rota.save_policy(paper_rota("full", 2.0), file)
    options = ["--policies", f"{file},fcfs,nMSR", "--loads", "0.5,2", "--jobs", "20000", "--seeds", "2"]
    assert main(["sweep", PAPER, *options, "-o", str(tmp_path / "results.parquet"), *HERE]) == 0
    printed = capsys.readouterr()
    title, head, *rows = printed.out.splitlines()[1:]
    assert title == "Response time"
    assert head.split() == ["policy", "load", "switching", "rate", "runs", "mean", "±", "50%", "95%", "99%", "preemptions"]
    assert [row.split()[:2] for row in rows] == [[name, load] for name in (str(file), "fcfs", "nMSR") for load in ("0.5", "2")]
    assert "unstable" in rows[1]
    assert "unstable" in rows[3]
    assert rows[5].split() == ["nMSR", "2", "0", "cannot", "run"]
    assert "nMSR at load 2: the system load 2 is not below 1" in printed.err


def test_numbers_of_jobs(tmp_path, capsys):
    """Several numbers of jobs have a column."""
    assert main(["sweep", WEB, "--policies", "fcfs", "--jobs", "1e3,2e3", "-o", str(tmp_path / "r.parquet"), *HERE]) == 0
    assert "1,000" in (printed := capsys.readouterr().out)
    assert "2,000" in printed


def test_what_was_found(tmp_path, capsys):
    """A sweep that goes on says how much is there already."""
    path = tmp_path / "results.parquet"
    begun = ["sweep", WEB, "--policies", "first-fit", "-o", str(path), *HERE]
    assert main([*begun, "--jobs", "1000"]) == 0
    assert capsys.readouterr().err.splitlines() == [f"3 runs in {path}"]
    assert main([*begun, "--jobs", "1e3,2e3"]) == 0
    assert capsys.readouterr().err.splitlines() == [f"3 of 6 runs found in {path}", f"6 runs in {path}"]


def test_progress(tmp_path, capsys, monkeypatch):
    """A line says how far it is and how long it will take; here at once, not only after a second, so that a fast machine shows it too."""
    monkeypatch.setattr("rota.cli.sweep.ProgressLine", partial(ProgressLine, after_s=0.0))
    options = ["--policies", "first-fit", "--jobs", "1e4", "--seeds", "2"]
    assert main(["sweep", PAPER, *options, "-o", str(tmp_path / "results.parquet"), *HERE]) == 0
    assert re.match(r"1 of 2 runs done, \d+ s left\n", capsys.readouterr().err)


def test_an_interrupt_says_how_to_go_on(tmp_path):
    """Ctrl-C ends with 130 and leaves the finished runs in the journal."""
    path = tmp_path / "results.parquet"
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from rota.cli.__main__ import run; run()"
    options = ["--policies", "first-fit", "--jobs", "1e3,1e9", "--seeds", "1", "--workers", "1", "-o", str(path)]
    process = subprocess.Popen(
        [sys.executable, "-c", program, "sweep", PAPER, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not (journal_of(path).exists() and journal_of(path).stat().st_size):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers get it too
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors.splitlines()[-2:] == ["finished runs are kept: the same command continues from there", "rota: interrupted"]
    assert "Traceback" not in errors
    assert journal_of(path).read_text(encoding="utf-8").count("\n") == 1


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (["--policies", "best-fit"], "policies: must be one of fcfs"),
        (["--policies", "fcfs", "--loads", "low"], "--loads: must be numbers"),
        (["--policies", "fcfs", "--switching-rates", "1"], "no policy here switches"),
        (["--policies", "fcfs", "--workers", "-1"], "workers: must be at least 1"),
        (["--policies", "fcfs", "--scheduler", "tcp://127.0.0.1:1", *HERE], "does not go with a scheduler"),
    ],
    ids=" ".join,
)
def test_wrong_use(options, rule, tmp_path, capsys):
    """A mistake ends with 2, says what is wrong, and leaves no files."""
    assert main(["sweep", PAPER, *options, "-o", str(tmp_path / "results.parquet")]) == 2
    assert rule in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_nothing_that_can_run(tmp_path, capsys):
    """If no policy can run, the exit code is 1."""
    assert main(["sweep", PAPER, "--policies", "server-filling", "--jobs", "1000", "-o", str(tmp_path / "r.parquet"), *HERE]) == 1
    assert "none of these policies can run" in capsys.readouterr().err
