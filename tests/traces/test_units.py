"""Traces and systems in units of time, and types in another order."""

import json
import warnings

import numpy as np
import polars as pl
import pytest

import rota
from rota.cli import main
from rota.errors import RotaWarning
from rota.traces import open_trace, save_trace


def trace(unit_s=None, factor=1.0):
    """600 jobs of two types, in seconds times a factor; its unit, if told."""
    rng = np.random.default_rng(1)
    kinds = rng.integers(2, size=600).astype(np.int32)
    jobs = {"arrival": np.cumsum(rng.exponential(25.0, 600)), "size": rng.exponential(np.array([20.0, 40.0])[kinds])}
    table = pl.DataFrame(jobs) * factor
    about = {} if unit_s is None else {"time_unit_s": unit_s}
    names, resources = ("small", "large"), ("cores", "memory")
    return rota.Trace(table.with_columns(type=pl.Series(kinds)).lazy(), names, resources, [[1, 2], [4, 1]], [8, 8], about)


def answer(system, workload):
    """The mean response time, in the system's unit."""
    return rota.simulate(system, "first-fit", workload=workload).mean_response_time


def test_a_trace_says_its_unit(tmp_path):
    """An imported log is in seconds, a log of `rota serve` in its plan's unit, a trace of one's own in none that is known."""
    (tmp_path / "log.csv").write_text("arrival,size,cores\n0,1,1\n5,1,2\n", encoding="utf-8")
    assert rota.read_trace(tmp_path / "log.csv").unit_s == 1
    assert rota.traces.borg_month(share=1e-5).unit_s == 1
    assert trace(3600.0).unit_s == 3600
    assert trace().unit_s is None
    assert trace(3600.0).window(0, 5).stretched(2).unit_s == 3600
    save_trace(trace(60.0), tmp_path / "jobs.parquet")
    assert open_trace(tmp_path / "jobs.parquet").unit_s == 60


def test_a_system_of_a_trace_has_its_unit():
    """`trace.system` says the unit of its rates, its file says it, and reading the file keeps it."""
    for unit_s, name in ((1.0, "s"), (60.0, "min"), (3600.0, "h"), (86400.0, "d"), (7.0, None), (None, None)):
        system = trace(unit_s).system()
        assert system.time_unit == name
        assert rota.model.spec.parse_system(system.to_toml()) == system
    assert 'time_unit = "h"' in trace(3600.0).system().to_toml()


def test_a_system_in_hours_and_a_trace_in_seconds():
    """Where both units are known the jobs are converted, looped ones too: the answer is that of one unit, times and rates scaled."""
    seconds = trace(1.0)
    system = seconds.system()
    hours = system.replace(arrival_rate=system.arrival_rate * 3600, mean_size=1 / system.service_rate / 3600, time_unit="h")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for workload, other in ((seconds, seconds), (seconds.looped(3), seconds.looped(3)), (trace(3600.0, 1 / 3600), seconds)):
            assert answer(hours, workload) == pytest.approx(answer(system, other) / 3600, rel=1e-9)
            assert answer(system, workload) == pytest.approx(answer(system, other), rel=1e-9)


@pytest.mark.parametrize(("trace_unit", "system_unit"), [(1.0, None), (None, "h"), (None, None)])
def test_units_that_are_not_known(trace_unit, system_unit):
    """If one does not say its unit, and rates and sizes are apart by orders of magnitude, that is said in numbers; if not, nothing is."""
    system = trace(1.0).system()
    hours = system.replace(arrival_rate=system.arrival_rate * 3600, mean_size=1 / system.service_rate / 3600, time_unit=system_unit)
    words = r"jobs come 0\.000278 times as often, and are 3\.6e\+03 times as large.*Are both in one unit of time\?.*is not known"
    with pytest.warns(RotaWarning, match=words):
        answer(hours, trace(trace_unit))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer(system.replace(time_unit=None), trace(trace_unit))
        answer(system.replace(time_unit=None).scaled(factor=0.2), trace(trace_unit))


def test_the_command_line_says_so_once(tmp_path, capsys):
    """`rota compare` remarks on units that cannot be right, once for all policies, and goes on."""
    save_trace(trace(1.0), tmp_path / "jobs.parquet")
    system = trace().system()
    system.replace(arrival_rate=system.arrival_rate * 3600, mean_size=1 / system.service_rate / 3600).save(tmp_path / "h.toml")
    arguments = ["compare", str(tmp_path / "h.toml"), "fcfs", "first-fit", "--workload", str(tmp_path / "jobs.parquet")]
    assert main([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err.count("Are both in one unit of time?") == 1
    assert 'time_unit = "h" at the top of its file says it' in captured.err
    assert json.loads(captured.out)["jobs"] == 600


def test_types_in_another_order(tmp_path, capsys):
    """A system with the same types and resources in another order is the same server: types are known by their names."""
    system = trace(1.0).system()
    turned = rota.System(
        capacity=system.capacity[::-1],
        demand=system.demand[::-1, ::-1],
        arrival_rate=system.arrival_rate[::-1],
        sizes=system.sizes[::-1],
        names=system.names[::-1],
        resources=system.resources[::-1],
        time_unit="s",
    )
    for workload in (trace(1.0), trace(1.0).looped(2)):
        ours, theirs = (rota.simulate(each, "first-fit", workload=workload) for each in (system, turned))
        assert ours.mean_response_time == theirs.mean_response_time
        assert ours.response_time.tolist() == theirs.response_time[::-1].tolist()
    save_trace(trace(1.0), tmp_path / "jobs.parquet")
    turned.save(tmp_path / "turned.toml")
    assert main(["compare", str(tmp_path / "turned.toml"), "fcfs", "--workload", str(tmp_path / "jobs.parquet"), "--json"]) == 0


def test_a_trace_of_other_types_is_refused_before_anything_is_printed(tmp_path, capsys):
    """`rota compare` with a trace of other types ends with 2 and no table."""
    save_trace(trace(1.0), tmp_path / "jobs.parquet")
    trace(1.0).system().replace(names=("small", "huge")).save(tmp_path / "other.toml")
    assert main(["compare", str(tmp_path / "other.toml"), "fcfs", "easy", "--workload", str(tmp_path / "jobs.parquet")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "the system has 'huge' where the trace has 'large'" in captured.err
