"""`rota tune`: the tables for people, the object for programs, the policy file, a trace, and what is refused."""

import json

import numpy as np
import polars as pl
import pytest

import rota
from rota.cli import main
from rota.traces import save_trace
from systems import EXAMPLES

PAPER = str(EXAMPLES / "paper.toml")


def test_the_object_is_what_python_finds(tmp_path, capsys):
    """Policy, means and rounds are those of `tune_adaptive` at the load asked for; the file is a policy that other verbs take."""
    output = tmp_path / "tuned.json"
    assert main(["tune", PAPER, "--load", "0.7", "--jobs", "20000", "--seed", "3", "--json", "-o", str(output)]) == 0
    captured = capsys.readouterr()
    fields = json.loads(captured.out)
    found = rota.tune_adaptive(rota.read_system(PAPER).scaled(load=0.7), jobs=20_000, seed=3)
    assert rota.read_policy(output) == found.policy
    assert fields["result"]["mean_response_time"] == found.result.mean_response_time
    assert fields["names"] == list(found.result.system.names)
    assert [one["settings"] for one in fields["rounds"]] == [len(one.entries) for one in found.rounds]
    assert fields["simulated"] == found.simulated
    assert len(fields["equal"]) == len(found.equal)
    assert f"policy written to {output}" in captured.err
    assert main(["simulate", PAPER, str(output), "--jobs", "20000", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["policy"] == "adaptive"


def test_tables_on_a_trace(tmp_path, capsys):
    """A trace is tuned on its first half; the tables have the rounds and the types, measured on the second."""
    rng = np.random.default_rng(1)
    system = rota.read_system(PAPER)
    n = 2400
    table = pl.DataFrame(
        {"arrival": np.cumsum(rng.exponential(1 / 2.4, n)), "size": rng.exponential(1, n), "type": rng.integers(3, size=n).astype(np.int32)}
    )
    path = tmp_path / "jobs.parquet"
    save_trace(rota.Trace(table.lazy(), system.names, system.resources, system.demand, system.capacity), path)
    assert main(["tune", PAPER, "--workload", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Adaptive: ")
    assert all(word in out for word in ("How it was found", "1,200", "Response time, on other jobs", *system.names, "all"))
    assert main(["tune", PAPER, "--workload", str(path), "--load", "0.5"]) == 2
    assert "--load: does not go with --workload" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--jobs", "100"], 2, "jobs: must be"),
        (["--load", "1.2"], 1, "is not below 1"),
        (["--workload", "nowhere.parquet"], 2, "nowhere.parquet"),
    ],
)
def test_refusals(options, code, words, capsys):
    """Too few jobs and a trace that is not there are wrong use, 2; a load that no policy carries has no answer, 1."""
    assert main(["tune", PAPER, *options]) == code
    assert words in capsys.readouterr().err


def test_a_server_of_a_fleet(capsys):
    """Of a fleet a server of one kind is tuned, with its part of the arrivals; which kind must be said."""
    fleet = str(EXAMPLES / "fleet.toml")
    assert main(["tune", fleet, "--kind", "gpu", "--jobs", "20000", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["names"] == list(rota.read_system(fleet).server("gpu").names)
    assert main(["tune", fleet, "--kind", "gpu", "--jobs", "20000"]) == 0
    assert ["test", "–", "–"] in [line.split() for line in capsys.readouterr().out.splitlines()]  # none of them come to this kind
    assert main(["tune", fleet]) == 2
    assert "--kind: is missing: this file is of a fleet, and this takes one server (kinds: small, gpu)" in capsys.readouterr().err
