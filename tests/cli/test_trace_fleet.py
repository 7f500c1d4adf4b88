"""`rota trace fleet`."""

import json

import numpy as np
import polars as pl
import pytest

import rota
from rota.cli import main
from rota.traces import Trace, open_trace, save_trace


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory with a trace of two types, `jobs.parquet`, and a list of five machines, `machines.csv`."""
    rng = np.random.default_rng(0)
    jobs = pl.DataFrame(
        {"arrival": np.sort(rng.uniform(0, 1000, 500)), "size": rng.exponential(1, 500), "type": rng.choice(2, 500).astype(np.int32)}
    )
    save_trace(Trace(jobs.lazy(), ("web", "batch"), ("cpu", "disk"), [(1, 1), (2, 1)], None), tmp_path / "jobs.parquet")
    (tmp_path / "machines.csv").write_text("kind,count,cpu\nsmall,4,2\nlarge,1,8\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


COMMAND = ["trace", "fleet", "jobs.parquet", "--machines", "machines.csv", "--each", "disk=4"]


def test_written(here, capsys):
    """The file is that of the Python function; kinds and numbers are told."""
    assert main([*COMMAND, "-o", "fleet.toml"]) == 0
    printed = capsys.readouterr()
    assert rota.read_system("fleet.toml") == open_trace("jobs.parquet").fleet("machines.csv", each={"disk": 4.0})
    assert printed.out.splitlines()[0].startswith("5 servers of 2 kinds; 2 types, 0.")
    assert printed.err == "written to fleet.toml\n"


def test_printed(here, capsys):
    """Without an output the file is printed; as JSON the numbers have names."""
    assert main(COMMAND) == 0
    text = capsys.readouterr().out
    assert text == open_trace("jobs.parquet").fleet("machines.csv", each={"disk": 4.0}).to_toml()
    assert main([*COMMAND, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["servers"] == 5
    assert found["kinds"] == ["small", "large"]


def test_at_a_load(here, capsys):
    """The fleet has the load, and with the factor that is told the trace has it too."""
    assert main([*COMMAND, "--load", "0.8", "-o", "fleet.toml"]) == 0
    told = capsys.readouterr().err.splitlines()
    fleet = rota.read_system("fleet.toml")
    assert rota.system_load(fleet).load == pytest.approx(0.8)
    command = told[0].removeprefix("the trace at this load: rota ").removesuffix(" …").split()
    assert main([*command, "fast.parquet"]) == 0
    made = open_trace("fast.parquet")
    made.check(fleet)
    assert made.fleet("machines.csv", each={"disk": 4.0}).arrival_rate == pytest.approx(fleet.arrival_rate, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--each", "disk"], 2, "--each: must be a resource and an amount, as disk=1"),
        (["--each", "gpu=1"], 2, "each.gpu: is no resource of the trace"),
        ([], 2, "does not tell how much of these the machines have: disk"),
        (["--each", "disk=4", "--load", "-1"], 2, "load: must be positive and finite"),
        (["--each", "disk=4", "-o", "-", "--json"], 2, "both go to standard output"),
        (["--each", "disk=4", "-o", "machines.csv"], 2, "machines.csv"),
    ],
)
def test_wrong_use(here, options, code, message, capsys):
    """Each is told, and nothing is written."""
    assert main(["trace", "fleet", "jobs.parquet", "--machines", "machines.csv", *options]) == code
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in here.iterdir()) == ["jobs.parquet", "machines.csv"]
