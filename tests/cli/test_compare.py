"""`rota compare`."""

import json
import re

import numpy as np
import polars as pl
import pytest

import rota
from rota.cli import main
from rota.traces import Trace, save_trace
from rotas import paper_rota
from systems import EXAMPLES

WEB, PAPER = (str(EXAMPLES / f"{name}.toml") for name in ("web", "paper"))


def test_json_is_the_comparison_of_python(capsys):
    """With --json one object has the rows of the table, and the policies that could not run."""
    names = ["first-fit", "max-weight", "server-filling"]
    assert main(["compare", PAPER, *names, "--jobs", "20000", "--seed", "2", "--json"]) == 0
    printed = capsys.readouterr()
    fields = json.loads(printed.out)
    found = rota.compare(rota.read_system(PAPER), names, jobs=20_000, seed=2)
    assert (fields["jobs"], fields["seed"]) == (20_000, 2)
    assert [row["policy"] for row in fields["policies"]] == ["first-fit", "max-weight"]
    assert set(fields["policies"][0]) == set(found.table().columns)
    assert fields["policies"][1]["mean_response_time"] == found.results[1].mean_response_time
    assert len(fields["errors"]) == 1
    assert "powers of two" in printed.err


def test_until_finds_the_best(capsys):
    """--until prints verdicts, the same as in Python; with --json too. A table of different numbers of jobs is not written."""
    arguments = ["compare", PAPER, "fcfs", "first-fit", "max-weight", "--jobs", "200000", "--until", "2%"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "the queue grows" in printed
    assert "max-weight is best, at 95 %" in printed
    assert main([*arguments, "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    found = rota.find_best(rota.read_system(PAPER), ["fcfs", "first-fit", "max-weight"], jobs=200_000, until=0.02)
    assert fields["decided"] is found.decided is True
    assert [(row["policy"], row["verdict"], row["jobs"]) for row in fields["policies"]] == [
        (one.label, one.verdict, one.result.jobs) for one in found.contenders
    ]
    assert main([*arguments, "--output", "table.csv"]) == 2
    assert "does not go with --output" in capsys.readouterr().err


def test_until_that_is_not_decided(capsys):
    """Few jobs leave it open, which is said; if no policy is stable, the exit code is 1."""
    assert main(["compare", PAPER, "first-fit", "easy", "--jobs", "2000", "--until", "0.01%"]) == 0
    assert "Not decided" in capsys.readouterr().out
    assert main(["compare", PAPER, "fcfs", "--jobs", "100000", "--until", "1%"]) == 1
    assert "under every policy" in capsys.readouterr().err


def test_table(tmp_path, capsys):
    """The table has a row per policy, with a dash for the best and the word for an unstable one."""
    file = tmp_path / "policy.json"
    rota.save_policy(paper_rota("full", 2.0), file)
    assert main(["compare", PAPER, "max-weight", str(file), "fcfs", "--jobs", "100000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "100,000 jobs each, the same for all, seed 0"
    rows = {line.split()[0]: line.split()[1:] for line in lines[4:]}
    assert list(rows) == ["max-weight", "pMSR", "fcfs"]
    assert rows["max-weight"][2] == "–"
    assert float(rows["pMSR"][2]) > 0
    assert rows["fcfs"][0] == "unstable"


@pytest.mark.parametrize("names", [["best-fit"], ["fcfs", "first-fitt"]], ids=" ".join)
def test_unknown_policy(names, capsys):
    """An unknown name ends with 2 and names the known ones."""
    assert main(["compare", PAPER, *names]) == 2
    assert "must be one of fcfs" in capsys.readouterr().err


def test_policies_on_a_trace(tmp_path, capsys):
    """--workload, --loops and --warmup-loops: every policy plays the same jobs of the trace, and the numbers are those of Python."""
    rng = np.random.default_rng(0)
    arrival = np.cumsum(rng.exponential(1.0, 3000))
    jobs = pl.DataFrame({"arrival": arrival, "size": rng.exponential(2.5, 3000), "type": rng.integers(2, size=3000).astype(np.int32)})
    trace = Trace(jobs.lazy(), ("small", "large"), ("cores",), [[1], [2]], [5])
    save_trace(trace, tmp_path / "jobs.parquet")
    trace.system().save(tmp_path / "server.toml")
    arguments = ["compare", str(tmp_path / "server.toml"), "fcfs", "first-fit", "--workload", str(tmp_path / "jobs.parquet")]
    assert main([*arguments, "--loops", "4", "--warmup-loops", "1", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    found = rota.compare(trace.system(), ["fcfs", "first-fit"], workload=trace.looped(4), warmup=0.25)
    assert fields["jobs"] == 12_000
    assert [row["mean_response_time"] for row in fields["policies"]] == [result.mean_response_time for result in found.results]
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("3,000 jobs each, the same for all, seed 0\n")
    assert main([*arguments, "--loops", "2", "--warmup-loops", "2"]) == 2
    assert "--warmup-loops: must be at least 0 and below --loops, 2 (got 2)" in capsys.readouterr().err


@pytest.fixture(name="log")
def logged(tmp_path):
    """A trace that says when its jobs ran, with its system."""
    rows = {"arrival": [0.0, 1.0, 2.0], "size": [4.0, 2.0, 2.0], "type": [0, 1, 1], "start": [0.0, 4.0, None], "end": [4.0, 6.0, None]}
    jobs = pl.DataFrame(rows, schema_overrides={"type": pl.Int32}).lazy()
    trace = Trace(jobs, ("large", "small"), ("cores",), [[2.0], [1.0]], capacity=[2.0])
    save_trace(trace, tmp_path / "jobs.parquet")
    trace.system().save(tmp_path / "system.toml")
    return [str(tmp_path / "system.toml"), "fcfs", "--workload", str(tmp_path / "jobs.parquet")]


def test_what_really_happened(capsys, log):
    """--actual adds a row, means by type and use; remarks say what they do not mean; --json has the same and more."""
    assert main(["compare", *log, "--actual"]) == 0
    printed = capsys.readouterr()
    assert re.search(r"^  actual +4\.5 ", printed.out, re.MULTILINE)
    assert re.search(r"^  small +1 +\S+ +3$", printed.out, re.MULTILINE)  # it waited from 1 to 4
    assert "no start and end of 1 job" in printed.err
    assert main(["compare", *log, "--actual", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert [row["policy"] for row in fields["policies"]] == ["fcfs", "actual"]
    assert (fields["actual"]["missing"], fields["actual"]["types"]["small"]["mean_waiting_time"]) == (1, 3)
    assert fields["actual"]["utilization"] == {"cores": pytest.approx((4 * 2 + 2) / 6 / 2)}


def test_what_really_happened_needs_a_log(capsys, log):
    """Without a workload, with loops, with a trace that does not say it, or with --until, it is wrong use with a message."""
    for more, message in (
        (["--loops", "2"], "leave the loops out"),
        (["--until", "1%"], "--until: does not go with --actual"),
    ):
        assert main(["compare", *log, "--actual", *more]) == 2
        assert message in capsys.readouterr().err
    assert main(["compare", *log[:2], "--actual"]) == 2
    assert "must be a trace of a log" in capsys.readouterr().err


def test_the_best_on_a_fleet(capsys):
    """With --until the race takes every policy with every rule of a fleet."""
    fleet = str(EXAMPLES / "fleet.toml")
    rules = ["--dispatch", "random", "pull", "--until", "5%", "--jobs", "40000"]
    assert main(["compare", fleet, "first-fit", *rules, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["policies"]
    assert {row["policy"] for row in rows} == {"first-fit, random", "first-fit, pull"}
    assert rows[0]["policy"] == "first-fit, pull"
