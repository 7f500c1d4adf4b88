"""`rota trace info` and `rota trace group`."""

import dataclasses
import json

import numpy as np
import polars as pl
import pytest

from rota.cli import main
from rota.traces import Trace, open_trace, save_trace
from rota.traces.info import TraceInfo, trace_info


@pytest.fixture
def file(tmp_path):
    """A small trace of four types."""
    rng = np.random.default_rng(0)
    jobs = pl.DataFrame(
        {
            "arrival": np.sort(np.floor(rng.uniform(0, 20_000, 2000))),
            "size": rng.lognormal(3, 1, 2000),
            "type": rng.choice(4, 2000, p=[0.5, 0.3, 0.15, 0.05]).astype(np.int32),
        }
    )
    demand = [(0.1, 0.1), (0.2, 0.1), (0.3, 0.3), (0.05, 0.2)]
    path = tmp_path / "jobs.parquet"
    save_trace(Trace(jobs.lazy(), ("web", "batch", "train", "odd"), ("cpu", "memory"), demand, np.ones(2)), path)
    return path


def test_tables(file, capsys):
    """The tables show the jobs, the types, the load, the sizes, the failure rate and the arrivals."""
    assert main(["trace", "info", str(file), "--types", "3"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    found = trace_info(open_trace(file))
    lines = printed.out.splitlines()
    assert lines[0].startswith("2,000 jobs in 5.5")
    assert lines[0].endswith("4 types")
    assert "Types, the 3 most frequent" in lines
    assert any(line.split()[:3] == ["web", "0.1", "0.1"] for line in lines)
    assert not any(line.startswith("  odd") for line in lines)
    assert any(line.split() == ["cpu", "1", f"{found.demand_in_use['cpu']:.4g}", f"{found.load['cpu']:.4g}"] for line in lines)
    for title in ("Sizes (s)", "Failure rate of sizes", "Index of dispersion of arrivals"):
        assert title in lines
    assert f"Batches: {found.batches:,}, mean {found.batch_mean:.4g}, largest {found.batch_max}" in printed.out


def test_json_has_the_python_names(file, capsys):
    """With --json one object has every field of `TraceInfo` under its name."""
    assert main(["trace", "info", str(file), "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    found = trace_info(open_trace(file))
    assert {field.name for field in dataclasses.fields(TraceInfo)} <= set(fields)
    assert fields["size_mean"] == found.size_mean
    assert fields["types"][0]["name"] == "web"
    assert fields["size_quantiles"]["0.5"] == found.size_quantiles[0.5]
    assert fields["dispersion"]["60.0"] == found.dispersion[60.0]


def test_pictures(file, tmp_path, capsys):
    """--pictures writes them and says where, on standard error."""
    assert main(["trace", "info", str(file), "--pictures", str(tmp_path / "p"), "--picture-format", "png"]) == 0
    printed = capsys.readouterr()
    assert "written: " in printed.err
    assert (tmp_path / "p" / "sizes.png").read_bytes().startswith(b"\x89PNG")


def test_a_file_that_is_no_trace(tmp_path, capsys):
    """A file that is not there, or is no trace, ends with code 2 and the way to make one."""
    assert main(["trace", "info", str(tmp_path / "none.parquet")]) == 2
    assert "does not exist: make one with `rota trace import`" in capsys.readouterr().err


def test_group_writes_a_trace_and_its_account(file, tmp_path, capsys):
    """`rota trace group` writes the grouped trace and prints what it cost, in words or as JSON."""
    out = tmp_path / "few.parquet"
    assert main(["trace", "group", str(file), "-o", str(out), "--clusters", "2"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("4 distinct demands became 2 types.\n")
    assert printed.out.endswith("No job was left out.\n")
    assert len(open_trace(out)) == 2000
    assert main(["trace", "group", str(file), "-o", str(out), "--top", "2", "--json"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["trace", "group", str(file), "-o", str(out), "--top", "2", "--json", "--force"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["types"] == 2
    assert fields["left_out"][0]["reason"] == "not among the kept types"
    assert open_trace(out).names == ("web", "batch")


def test_group_for_a_smaller_server(file, tmp_path, capsys):
    """--capacity takes one number per resource; what does not fit is left out and counted."""
    arguments = ["trace", "group", str(file), "-o", str(tmp_path / "s.parquet")]
    assert main([*arguments, "--capacity", "0.2", "0.2"]) == 0
    assert "larger than the server" in capsys.readouterr().out
    assert main([*arguments, "--force", "--capacity", "0.2"]) == 2
    assert "needs 2 positive numbers: cpu, memory" in capsys.readouterr().err
