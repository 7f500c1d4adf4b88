"""`rota trace cut`, `rota trace scale` and `rota trace system`."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import rota
from rota.cli import main
from rota.traces import Trace, open_trace, save_trace

PODS = Path(__file__).parents[2].parent / "shared" / "data" / "alibaba_openb_2023" / "openb_pod_list_default.csv.gz"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory with a trace of two types on a server of (1, 1), `jobs.parquet`, and the same without a server, `free.parquet`."""
    rng = np.random.default_rng(0)
    jobs = pl.DataFrame(
        {
            "arrival": 600 + np.sort(rng.uniform(0, 10_000, 4000)),
            "size": rng.lognormal(3, 1, 4000),
            "type": rng.choice(2, 4000, p=[0.7, 0.3]).astype(np.int32),
        }
    )
    demand = [(0.1, 0.05), (0.3, 0.4)]
    for name, capacity in (("jobs", np.ones(2)), ("free", None)):
        save_trace(Trace(jobs.lazy(), ("web", "batch"), ("cpu", "memory"), demand, capacity), tmp_path / f"{name}.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -------------------------------------------------------------------------------------------------------------------- cut


def test_cut_a_window(here, capsys):
    """The jobs of the window are written, their number and the time are told, the file is named on standard error."""
    assert main(["trace", "cut", "jobs.parquet", "-o", "hour.parquet", "--begin", "2000", "--end", "5600"]) == 0
    printed = capsys.readouterr()
    whole, hour = open_trace("jobs.parquet"), open_trace("hour.parquet")
    assert hour.jobs.collect().equals(whole.window(2000, 5600).jobs.collect())
    assert hour.span == 3600
    assert printed.out == f"{len(hour):,} of 4,000 jobs, in 3,600 s\n"
    assert printed.err == "written to hour.parquet\n"


def test_a_window_says_what_time_the_log_covers(here, capsys):
    """All jobs of a window that is longer than the arrivals: the rate is over the window, and a loop as long as it."""
    assert main(["trace", "cut", "jobs.parquet", "-o", "day.parquet", "--begin", "0", "--end", "86400"]) == 0
    assert capsys.readouterr().out == "4,000 of 4,000 jobs, in 86,400 s\n"
    assert open_trace("day.parquet").span == 86_400


def test_cut_all_ways_at_once(here, capsys):
    """Window, longest, share and stretch are done in this order; with --json the numbers have names."""
    ways = ["--begin", "1000", "--longest", "50", "--share", "0.5", "--seed", "7", "--stretch", "3"]
    assert main(["trace", "cut", "jobs.parquet", "-o", "few.parquet", *ways, "--json"]) == 0
    whole = open_trace("jobs.parquet")
    wanted = whole.window(1000, whole.begin + whole.span).without_long(50).thinned(0.5, 7).stretched(3)
    fields = json.loads(capsys.readouterr().out)
    assert open_trace("few.parquet").jobs.collect().equals(wanted.jobs.collect())
    assert fields == {"output": "few.parquet", "jobs": len(wanted), "jobs_before": 4000, "span": wanted.span}


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--begin", "1e9"], 2, "--begin: leaves no jobs: the trace covers 60"),
        (["--end", "1"], 2, "--end: leaves no jobs: the trace covers 60"),
        (["--begin", "3000", "--end", "2000"], 2, "window: must begin before it ends"),
        (["--share", "2"], 2, "share: must be above 0 and at most 1"),
        (["--stretch", "0"], 2, "factor: must be positive"),
        (["--longest", "0"], 1, "none is left"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_cut_that_leaves_nothing(here, options, code, message, capsys):
    """Wrong use ends with 2, a cut without jobs with 1; nothing is written."""
    assert main(["trace", "cut", "jobs.parquet", "-o", "part.parquet", *options]) == code
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""
    assert not (here / "part.parquet").exists()


# -------------------------------------------------------------------------------------------------------------------- scale


@pytest.mark.parametrize("by", ["thinning", "time", "capacity"])
def test_scale(here, by, capsys):
    """The two files belong together: the system has the load, the trace its types, and the trace plays on the system."""
    assert main(["trace", "scale", "jobs.parquet", "--load", "0.6", "-o", "t.parquet", "--system", "s.toml", "--by", by]) == 0
    printed = capsys.readouterr()
    trace, system = open_trace("t.parquet"), rota.read_system("s.toml")
    load = rota.system_load(system).load
    assert load <= 0.6 * (1 + 1e-6)
    assert load == pytest.approx(0.6, rel=0.05 if by == "capacity" else 1e-6)
    assert printed.out.startswith(f"{len(trace):,} jobs in {trace.span:,.0f} s, 2 types, load 0.6 by {by}\n")
    assert printed.err == "written to t.parquet and s.toml\n"
    assert rota.simulate(system, "first-fit", workload=trace).jobs == len(trace)


def test_scale_tells_the_load_of_the_sample(here, capsys):
    """A thinned trace has another load than asked for, by chance: it is told, in words and as JSON."""
    arguments = ["trace", "scale", "jobs.parquet", "--load", "0.6", "-o", "t.parquet", "--system", "s.toml", "--seed", "3"]
    assert main(arguments) == 0
    own = rota.system_load(open_trace("t.parquet").system()).load
    assert f"The random sample of jobs has a load of {own:.4g}." in capsys.readouterr().out
    assert main([*arguments, "--force", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields.pop("trace_load") == pytest.approx(own)
    assert fields.pop("span") == open_trace("t.parquet").span
    kept = len(open_trace("t.parquet"))
    assert fields == {
        "output": "t.parquet",
        "system": "s.toml",
        "jobs": kept,
        "types": 2,
        "load": 0.6,
        "by": "thinning",
        "capacity": [1.0, 1.0],
    }


def test_scale_by_capacity_tells_the_server(here, capsys):
    """The server that was found is printed with its resources."""
    arguments = ["--load", "0.5", "-o", "t.parquet", "--system", "s.toml", "--by", "capacity", "--capacity", "2", "1"]
    assert main(["trace", "scale", "free.parquet", *arguments]) == 0
    cpu, memory = rota.read_system("s.toml").capacity
    assert cpu == pytest.approx(2 * memory)
    assert f"The server has cpu {cpu:.6g}, memory {memory:.6g}." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["jobs.parquet", "--load", "50"], 1, "thinning only lowers it: to reach 50, scale by time or capacity"),
        (["jobs.parquet", "--load", "-1"], 2, "load: must be positive and finite"),
        (["jobs.parquet", "--load", "0.5", "--capacity", "1"], 2, "capacity: needs 2 numbers: cpu, memory"),
        (["jobs.parquet", "--load", "0.5", "--capacity", "0.2", "1"], 2, "jobs.batch: demands more than the server has"),
        (["free.parquet", "--load", "0.5"], 2, "capacity: is not known to the trace"),
        (["none.parquet", "--load", "0.5"], 2, "does not exist: make one with `rota trace import`"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_scales_that_fail(here, arguments, code, message, capsys):
    """The reason is told, and neither file is written."""
    before = sorted(here.iterdir())
    assert main(["trace", "scale", *arguments, "-o", "t.parquet", "--system", "s.toml"]) == code
    assert message in capsys.readouterr().err
    assert sorted(here.iterdir()) == before


# -------------------------------------------------------------------------------------------------------------------- system


def test_system_prints_or_writes_the_same_file(here, capsys):
    """Without -o the TOML is printed; with it, written; both are the system of Python."""
    assert main(["trace", "system", "jobs.parquet", "--sizes", "fitted", "--preemption", "full"]) == 0
    printed = capsys.readouterr().out
    assert main(["trace", "system", "jobs.parquet", "--sizes", "fitted", "--preemption", "full", "-o", "s.toml"]) == 0
    rate = open_trace("jobs.parquet").system().arrival_rate.sum()
    assert capsys.readouterr() == (f"2 types, {rate:.4g} jobs per s, on cpu 1, memory 1\n", "written to s.toml\n")
    assert (here / "s.toml").read_text(encoding="utf-8") == printed
    assert rota.read_system("s.toml") == open_trace("jobs.parquet").system(sizes="fitted", preemption="full")


@pytest.mark.parametrize("sizes", ["mean", "empirical", "fitted"])
def test_system_as_json(here, sizes, capsys):
    """With --json the fields of the system have their Python names, the sizes those of the TOML file."""
    assert main(["trace", "system", "free.parquet", "--capacity", "2", "3", "--sizes", sizes, "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    system = open_trace("free.parquet").system([2, 3], sizes=sizes)
    assert fields["capacity"] == [2.0, 3.0]
    assert fields["arrival_rate"] == system.arrival_rate.tolist()
    assert [law["distribution"] for law in fields["sizes"]] == [{"mean": "exponential"}.get(sizes, sizes)] * 2


def test_a_system_without_a_server(here, capsys):
    """A trace that does not know the server asks for it, with the names of the resources."""
    assert main(["trace", "system", "free.parquet"]) == 2
    assert (
        "capacity: is not known to the trace: say how large the server is (--capacity, or capacity=: cpu = …, memory = …)"
        in capsys.readouterr().err
    )


# -------------------------------------------------------------------------------------------------------------------- group


def test_a_grouped_trace_keeps_the_server_that_it_was_grouped_for(here, capsys):
    """After --capacity the next verb need not be told the server again."""
    assert main(["trace", "group", "free.parquet", "-o", "few.parquet", "--clusters", "1", "--capacity", "2", "1"]) == 0
    assert main(["trace", "system", "few.parquet", "--json"]) == 0
    assert '"capacity": [2.0, 1.0]' in capsys.readouterr().out
    assert main(["trace", "group", "jobs.parquet", "-o", "known.parquet", "--top", "1"]) == 0
    assert list(open_trace("known.parquet").capacity) == [1.0, 1.0]


# -------------------------------------------------------------------------------------------------------------------- outputs

WRITERS = {
    "cut": ["trace", "cut", "jobs.parquet"],
    "group": ["trace", "group", "jobs.parquet", "--top", "1"],
    "scale": ["trace", "scale", "jobs.parquet", "--load", "0.5", "--system", "s.toml"],
    "system": ["trace", "system", "jobs.parquet"],
}


@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)
def test_outputs(here, writer, capsys):
    """No verb writes over a file without --force, into a directory that is not there, or in place of a directory."""
    (here / "out").write_text("precious", encoding="utf-8")
    for output, message in (("out", "exists already"), ("nowhere/out", "is in a directory that does not exist"), (".", "is a directory")):
        assert main([*writer, "-o", output]) == 2
        assert f"--output: {message}" in capsys.readouterr().err
    assert (here / "out").read_text(encoding="utf-8") == "precious"
    assert main([*writer, "-o", ".", "--force"]) == 2
    assert main([*writer, "-o", "out", "--force"]) == 0
    assert (here / "out").read_bytes() != b"precious"


def test_the_system_of_a_scaled_trace_is_a_file_of_its_own(here, capsys):
    """One name for two files is refused; so is a system that exists, before anything is written."""
    arguments = ["trace", "scale", "jobs.parquet", "--load", "0.5", "-o", "t.parquet", "--system"]
    assert main([*arguments, "./t.parquet"]) == 2
    assert "two files to write" in capsys.readouterr().err
    (here / "s.toml").write_text("precious", encoding="utf-8")
    assert main([*arguments, "s.toml"]) == 2
    assert "--system: exists already" in capsys.readouterr().err
    assert not (here / "t.parquet").exists()


def test_bursts_of_a_trace_are_in_its_system(here, capsys):
    """`--arrivals bursts` writes what was fitted, `--json` shows it; a time scale without it is refused."""
    times = np.repeat(np.arange(100) * 1000.0, 20) + np.tile(np.arange(20) * 2.0, 100)  # twenty jobs in 40 s, every 1000 s
    jobs = pl.DataFrame({"arrival": times, "size": 1.0, "type": np.zeros(len(times), dtype=np.int32)})
    save_trace(Trace(jobs.lazy(), ("a",), ("cores",), [[1.0]], np.array([4.0])), "bursts.parquet")
    assert main(["trace", "system", "bursts.parquet", "--arrivals", "bursts", "-o", "bursts.toml"]) == 0
    system = rota.read_system("bursts.toml")
    assert system.bursty == ("a",)
    assert 5 < system.arrivals[0].time_scale < 200
    capsys.readouterr()
    assert main(["trace", "system", "bursts.parquet", "--arrivals", "bursts", "--time-scale", "30", "--json"]) == 0
    process = json.loads(capsys.readouterr().out)["arrivals"][0]
    assert process["process"] == "bursts"
    assert process["length"] * (1 - process["share"]) == pytest.approx(30)
    assert (
        main(["trace", "scale", "bursts.parquet", "--load", "0.004", "--arrivals", "bursts", "-o", "t.parquet", "--system", "t.toml"]) == 0
    )
    assert rota.read_system("t.toml").bursty == ("a",)
    assert main(["trace", "system", "bursts.parquet", "--time-scale", "30"]) == 2
    assert "a Poisson process has none" in capsys.readouterr().err


# -------------------------------------------------------------------------------------------------------------------- all of it


def test_a_real_log_from_import_to_comparison(tmp_path, monkeypatch, capsys):
    """The pods of a GPU cluster, cut to its busy month, in ten types, at load 0.7: every command takes what the one before wrote."""
    if not PODS.exists():
        pytest.skip("needs alibaba_openb_2023/openb_pod_list_default.csv.gz in ../shared/data")
    monkeypatch.chdir(tmp_path)
    for line in (
        f"import {PODS} -o all.parquet",
        "cut all.parquet -o month.parquet --begin 10192228",
        "group month.parquet -o few.parquet --clusters 10 --capacity 96 384 8",
        "scale few.parquet --load 0.7 --by time -o busy.parquet --system busy.toml",
    ):
        assert main(["trace", *line.split()]) == 0
    capsys.readouterr()
    assert main(["compare", "busy.toml", "first-fit", "easy", "--workload", "busy.parquet", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["jobs"] == len(open_trace("few.parquet")) > 6000
    assert fields["errors"] == {}
