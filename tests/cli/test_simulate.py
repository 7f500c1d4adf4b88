"""`rota simulate`."""

import json

import numpy as np
import polars as pl
import pytest

import rota
from rota.cli import main
from rota.traces import Trace, save_trace
from rotas import paper_rota
from systems import EXAMPLES

PAPER = str(EXAMPLES / "paper.toml")
HIDDEN = {"system", "batches", "log", "totals", "fingerprint"}


@pytest.fixture
def light(tmp_path):
    """The paper's example at two thirds of its load, as a file."""
    file = tmp_path / "light.toml"
    text = (EXAMPLES / "paper.toml").read_text(encoding="utf-8")
    system = rota.read_system(PAPER)
    for rate in system.arrival_rate.tolist():
        text = text.replace(f"arrival_rate = {rate}\n", f"arrival_rate = {rate * 2 / 3}\n")
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_json_is_the_result_of_python(light, capsys):
    """With --json every field of `Result` has its Python name and value."""
    assert main(["simulate", light, "first-fit", "--jobs", "20000", "--seed", "3", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    result = rota.simulate(rota.read_system(light), "first-fit", jobs=20_000, seed=3)
    assert set(fields) == (set(vars(result)) - HIDDEN) | {"policy", "names", "resources", "remarks"}
    assert fields["policy"] == "first-fit"
    assert fields["mean_response_time"] == result.mean_response_time
    assert fields["mean_queue_length"] == result.mean_queue_length.tolist()
    assert fields["response_time_quantiles"] == {str(p): value for p, value in result.response_time_quantiles.items()}
    assert fields["names"] == ["type1", "type2", "type3"]


def test_tables(light, capsys):
    """The tables show E[Q] and E[T] of each type with intervals, the tails, and what is in use."""
    assert main(["simulate", light, "first-fit", "--jobs", "20000"]) == 0
    printed = capsys.readouterr().out
    result = rota.simulate(rota.read_system(light), "first-fit", jobs=20_000)
    assert printed.startswith("first-fit: 20,000 jobs, ")
    assert f"Mean response time {result.mean_response_time:.5g} ± {result.interval:.2g} (95 %)" in printed
    rows = {line.split()[0]: line.split()[1:] for line in printed.splitlines() if line.startswith("  type")}
    assert rows["type2"][0] == f"{result.counted[1]:,}"
    assert rows["type2"][1] == f"{result.mean_queue_length[1]:.5g}"
    assert rows["type2"][3] == f"{result.response_time[1]:.5g}"
    assert "In use: " in printed
    assert "Switches" not in printed


def test_policy_from_a_file(light, tmp_path, capsys):
    """A designed policy is read from its file, and its switches are told."""
    file = tmp_path / "policy.json"
    rota.save_policy(paper_rota("full", 2.0), file)
    assert main(["simulate", light, str(file), "--jobs", "20000"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("pMSR: ")
    assert "Switches per unit of time: " in printed


@pytest.mark.parametrize("jobs", [200, 5000], ids=["fewer jobs than to log", "more"])
def test_log(jobs, light, tmp_path, capsys):
    """--log writes the events of the first jobs as parquet, and says so on standard error."""
    file = tmp_path / "log.parquet"
    assert main(["simulate", light, "fcfs", "--jobs", str(jobs), "--log", str(file), "--json"]) == 0
    log = pl.read_parquet(file)
    assert log.columns == ["time", "event", "type", "job"]
    assert (log["event"] == "arrive").sum() == min(jobs, 1000)
    assert f"{len(log)} events written to {file}" in capsys.readouterr().err


def test_until(light, capsys):
    """--until ends the run when the interval is narrow."""
    assert main(["simulate", light, "first-fit", "--until", "0.05", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["interval"] <= 0.05 * fields["mean_response_time"]
    assert fields["jobs"] < 1_000_000


def test_until_as_a_percentage(light, capsys):
    """5% is 0.05; the result is that of Python. Anything else is refused by name."""
    assert main(["simulate", light, "first-fit", "--until", "5%", "--until-types", "10%", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    found = rota.simulate(rota.read_system(light), "first-fit", until=0.05, until_types=0.1)
    assert (fields["jobs"], fields["mean_response_time"]) == (found.jobs, found.mean_response_time)
    assert main(["simulate", light, "first-fit", "--until", "half"]) == 2
    assert '"half" must be a part' in capsys.readouterr().err


def test_split_over_runs(light, capsys):
    """--replications auto prints the tables of one run, and says over how many the jobs were split."""
    assert main(["simulate", light, "first-fit", "--jobs", "200000", "--replications", "auto"]) == 0
    assert capsys.readouterr().out.startswith("first-fit: 200,000 jobs in 4 runs, ")
    assert main(["simulate", light, "first-fit", "--jobs", "1000", "--replications", "3", "--until", "1%"]) == 2
    assert "unless it is auto" in capsys.readouterr().err


def test_unstable(tmp_path, capsys):
    """A queue that grows gives null for every mean, a word on standard error, and exit code 1."""
    file = tmp_path / "busy.toml"
    file.write_text("[server]\ncores = 1\n[jobs.a]\ndemand = { cores = 1 }\narrival_rate = 2.0\nmean_size = 1.0\n", encoding="utf-8")
    assert main(["simulate", str(file), "fcfs", "--jobs", "50000", "--json"]) == 1
    printed = capsys.readouterr()
    fields = json.loads(printed.out)
    assert (fields["stable"], fields["mean_response_time"], fields["mean_queue_length"]) == (False, None, [None])
    assert fields["growth"] == pytest.approx(1.0, rel=0.1)
    assert printed.err.startswith("rota: ")
    assert "growing" in printed.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["best-fit"], 2, "must be one of fcfs, first-fit"),
        (["nowhere.json"], 2, "nowhere.json"),
        (["fcfs", "--jobs", "5"], 2, "jobs: must be at least 100"),
        (["fcfs", "--until", "2"], 2, "until: must be between 0 and 1"),
        (["fcfs", "--warmup", "1"], 2, "warmup: must be at least 0 and below 1"),
        (["server-filling"], 1, "powers of two"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors(arguments, code, message, capsys):
    """Wrong use ends with 2, a policy that cannot run here with 1, each with the reason."""
    assert main(["simulate", PAPER, *arguments]) == code
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""


@pytest.fixture
def replay(tmp_path, monkeypatch):
    """A directory with a trace, `jobs.parquet`, and its system, `server.toml`."""
    rng = np.random.default_rng(0)
    jobs = pl.DataFrame(
        {
            "arrival": 50 + np.cumsum(rng.exponential(1.0, 2000)),
            "size": rng.exponential(2.0, 2000),
            "type": rng.integers(2, size=2000).astype(np.int32),
        }
    )
    trace = Trace(jobs.lazy(), ("small", "large"), ("cores",), [[1], [2]], [5])
    save_trace(trace, tmp_path / "jobs.parquet")
    trace.system().save(tmp_path / "server.toml")
    monkeypatch.chdir(tmp_path)
    return trace


def test_a_trace_is_played(replay, capsys):
    """--workload plays all jobs of a trace; --jobs fewer of them."""
    arguments = ["simulate", "server.toml", "first-fit", "--workload", "jobs.parquet"]
    assert main([*arguments, "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    result = rota.simulate(replay.system(), "first-fit", workload=replay)
    assert (fields["jobs"], fields["mean_response_time"]) == (2000, result.mean_response_time)
    assert main([*arguments, "--jobs", "500"]) == 0
    assert capsys.readouterr().out.startswith("first-fit: 500 jobs, ")


def test_a_trace_is_played_in_loops(replay, capsys):
    """--loops plays it so many times over, --warmup-loops leaves the first ones out: the same as in Python."""
    arguments = ["simulate", "server.toml", "first-fit", "--workload", "jobs.parquet", "--loops", "4", "--warmup-loops", "1"]
    assert main([*arguments, "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    result = rota.simulate(replay.system(), "first-fit", workload=replay.looped(4), warmup=0.25)
    assert fields["jobs"] == 8000
    assert fields["warmup"] == pytest.approx(0.25, abs=0.01)  # whole batches
    assert fields["mean_response_time"] == result.mean_response_time
    assert main(arguments) == 0
    assert "warm-up 25% left out" in capsys.readouterr().out


def test_a_log_that_was_not_imported_is_read_all_the_same(replay, tmp_path, capsys):
    """--workload takes what `rota.read_trace` reads, if its types are those of the system."""
    lines = [f"{time},1,{cores}" for time, cores in zip(range(400), [1, 2] * 200, strict=True)]
    (tmp_path / "log.csv").write_text("arrival,size,cores\n" + "\n".join(lines) + "\n", encoding="utf-8")
    rota.read_trace("log.csv").system([5.0]).save("log.toml")
    assert main(["simulate", "log.toml", "fcfs", "--workload", "log.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["jobs"] == 400


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--loops", "2"], "--loops: goes with --workload only"),
        (["--warmup-loops", "1"], "goes with --workload only"),
        (["--workload", "jobs.parquet", "--loops", "0"], "must be at least"),
        (["--workload", "jobs.parquet", "--warmup-loops", "1"], "--warmup-loops: must be at least 0 and below --loops, 1"),
        (["--workload", "jobs.parquet", "--loops", "2", "--warmup-loops", "1", "--warmup", "0.1"], "does not go with --warmup"),
        (["--workload", "jobs.parquet", "--replications", "3"], "all runs would be one"),
        (["--workload", "none.parquet"], "none.parquet"),
        (["--workload", "server.toml"], "server.toml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_use_of_a_workload(replay, options, message, capsys):
    """Options that do not go together, and files that are no traces, end with 2."""
    assert main(["simulate", "server.toml", "fcfs", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_trace_of_other_types(replay, capsys):
    """A trace is played on a system of its own types only."""
    assert main(["simulate", PAPER, "fcfs", "--workload", "jobs.parquet"]) == 2
    assert "workload: is not of the system's types: the system's resources are cores, memory_gb" in capsys.readouterr().err


def test_from_a_state(light, capsys):
    """--start puts jobs there at time 0: the same as in Python, told above the table, and in --json; also with --replications."""
    arguments = ["simulate", light, "first-fit", "--jobs", "20000", "--start", "type1=40, type3=9"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    result = rota.simulate(rota.read_system(light), "first-fit", jobs=20_000, start={"type1": 40, "type3": 9})
    assert "At time 0: 40 × type1 + 9 × type3.\n" in printed
    assert f"Mean response time {result.mean_response_time:.5g} ± {result.interval:.2g} (95 %), all jobs that came later\n" in printed
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["start"] == {"present": [40, 0, 9], "running": None, "state": None}
    assert main([*arguments, "--replications", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["start"]["present"] == [40, 0, 9]


@pytest.mark.parametrize(
    ("start", "says"),
    [
        ("type1", "--start: must be types and counts, as train=3,web=5 (got 'type1')"),
        ("type1=-3", "--start: must be types and counts"),
        ("type1=1.5", "--start: must be types and counts"),
        ("=3", "--start: must be types and counts"),
        ("type1=1,type1=2", "--start: names a type twice"),
        ("train=3", "start: no such type (there are: type1, type2, type3)"),
    ],
)
def test_wrong_starts(light, capsys, start, says):
    """A wrong --start is wrong use, with the rule."""
    assert main(["simulate", light, "first-fit", "--jobs", "1000", "--start", start]) == 2
    assert says in capsys.readouterr().err


def test_independent_runs_of_a_fleet(capsys):
    """--replications of a fleet are those of rota.replicate, with its rule."""
    path = EXAMPLES / "fleet.toml"
    options = ["--replications", "2", "--jobs", "20000", "--dispatch", "pull"]
    assert main(["simulate", str(path), "first-fit", *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    same = rota.replicate(rota.read_system(path), "first-fit", replications=2, jobs=20_000, dispatch="pull")
    assert found["mean_response_time"] == same.mean_response_time
    assert main(["simulate", str(path), "first-fit", *options]) == 0
    assert "first-fit, pull: 2 runs of 20,000 jobs" in capsys.readouterr().out
