"""`measure_actual`: what a log says of its jobs, against simulations whose events are known and against plain sums."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from rota.traces import Trace

SYSTEM = rota.System(
    capacity=[8, 16],
    demand=[[1, 2], [4, 4]],
    arrival_rate=[1.0, 0.4],
    mean_size=[1.0, 3.0],
    names=["small", "large"],
    resources=["cores", "memory"],
)


def trace_of(rows, about=None, demand=SYSTEM.demand):
    """A trace of (arrival, size, type, start, end)."""
    names = {"arrival": pl.Float64, "size": pl.Float64, "type": pl.Int32, "start": pl.Float64, "end": pl.Float64}
    return Trace(pl.DataFrame(rows, schema=names, orient="row").lazy(), SYSTEM.names, SYSTEM.resources, demand, about=about or {})


def made(jobs=400, seed=1):
    """Jobs without starts and ends."""
    rng = np.random.default_rng(seed)
    arrivals, kinds = np.cumsum(rng.exponential(1 / 1.4, jobs)), rng.integers(0, 2, jobs)
    sizes = rng.exponential(np.where(kinds == 0, 1.0, 3.0))
    table = pl.DataFrame({"arrival": arrivals, "size": sizes, "type": kinds.astype(np.int32)})
    return Trace(table.lazy(), SYSTEM.names, SYSTEM.resources, SYSTEM.demand)


def with_events(trace, result):
    """The trace with the starts and ends that a simulation logged."""
    first = float(trace.begin)
    events = result.log.group_by("job").agg(
        start=pl.col("time").filter(pl.col("event") == "start").min() + first,
        end=pl.col("time").filter(pl.col("event") == "finish").max() + first,
    )
    return replace(trace, jobs=pl.concat([trace.jobs.collect(), events.sort("job").drop("job")], how="horizontal").lazy())


@pytest.mark.parametrize("policy", ["fcfs", "first-fit", "max-weight"])
def test_a_simulation_that_is_a_log(policy):
    """If the log is a simulation, with or without preemption, it measures what the simulation did: means, quantiles, use, intervals."""
    trace = made()
    system = SYSTEM.replace(preemption="full" if policy == "max-weight" else "none")
    result = rota.simulate(system, policy, workload=trace, log_jobs=len(trace))
    actual = rota.measure_actual(with_events(trace, result), system)
    for name in ("response_time", "waiting_time", "mean_response_time", "mean_waiting_time", "utilization"):
        assert getattr(actual, name) == pytest.approx(getattr(result, name), rel=1e-9)
    assert actual.mean_slowdown == pytest.approx(result.mean_slowdown, rel=1e-6)
    assert list(actual.response_time_quantiles.values()) == pytest.approx(list(result.response_time_quantiles.values()), rel=0.02)
    for level, values in result.type_waiting_time_quantiles.items():
        assert actual.type_waiting_time_quantiles[level] == pytest.approx(values, rel=0.02, abs=1e-6)
    assert (actual.peak <= 1 + 1e-9).all()
    assert (actual.missing, actual.counted.tolist()) == (0, result.counted.tolist())


def test_beside_the_policy_that_made_the_log():
    """Compared with the policy whose simulation the log is, the difference is 0, and to the others it is theirs."""
    trace = made()
    log = with_events(trace, rota.simulate(SYSTEM, "fcfs", workload=trace, log_jobs=len(trace)))
    found = rota.compare(SYSTEM, ["fcfs", "first-fit"], workload=log, actual=True)
    rows = {row["policy"]: row for row in found.table().to_dicts()}
    assert list(rows) == ["fcfs", "first-fit", "actual"]
    for column in ("mean_response_time", "interval", "worse_than_best_by", "worse_interval", "mean_waiting_time", "utilization"):
        assert rows["actual"][column] == pytest.approx(rows["fcfs"][column], rel=1e-6)
    assert found.pairs == 3
    assert "3 pairs of rows" in found.at_once()
    assert found.best.name == "first-fit"
    assert ("actual", found.actual.notes[0]) in found.remarks
    assert "actual" in found._repr_html_()


def test_the_same_jobs_after_a_warm_up():
    """With a warm-up, and with the first jobs only, what happened is that of the jobs that count for the policies."""
    trace = made(1000)
    log = with_events(trace, rota.simulate(SYSTEM, "fcfs", workload=trace, log_jobs=1000))
    found = rota.compare(SYSTEM, ["fcfs"], workload=log, jobs=600, warmup=0.25, actual=True)
    counted = found.results[0].counted.sum()
    assert found.actual.counted.sum() == counted == 600 - round(found.results[0].warmup * 600)
    table = log.jobs.collect()[600 - counted : 600]
    assert found.actual.mean_response_time == pytest.approx((table["end"] - table["arrival"]).mean())


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(1, 9), st.integers(0, 1), st.integers(0, 9), st.integers(0, 3), st.booleans()),
        min_size=1,
        max_size=30,
    ).filter(lambda jobs: any(job[-1] for job in jobs))
)
def test_plain_sums(jobs):
    """Any log: means by type, what is missing, use and peak are what plain Python finds, second by second."""
    rows = [(a, s, k, a + w, a + w + s + held) if known else (a, s, k, None, None) for a, s, k, w, held, known in jobs]
    rows.sort(key=lambda row: row[0])
    actual = rota.measure_actual(trace_of(rows), SYSTEM)
    known = [row for row in rows if row[4] is not None]
    assert (actual.jobs, actual.missing) == (len(rows), len(rows) - len(known))
    for kind in range(2):
        mine = [row for row in known if row[2] == kind]
        assert actual.counted[kind] == len(mine)
        if mine:
            assert actual.response_time[kind] == pytest.approx(np.mean([end - arrival for arrival, _, _, _, end in mine]))
            assert actual.waiting_time[kind] == pytest.approx(np.mean([end - arrival - size for arrival, size, _, _, end in mine]))
    lasts = max(row[4] for row in known) - min(row[0] for row in rows)
    work = sum(row[1] * SYSTEM.demand[row[2]] for row in known)
    assert actual.utilization == pytest.approx(work / lasts / SYSTEM.capacity)
    busy = [sum(SYSTEM.demand[k] for _, s, k, start, end in known if end - start == s and start <= t < end) for t in range(80)]
    assert actual.peak == pytest.approx(np.max([np.zeros(2) + held for held in busy], axis=0) / SYSTEM.capacity)


def test_the_order_of_types_and_resources_is_that_of_the_system():
    """A system may have its types and resources in another order than the trace."""
    rows = [(0, 2, 0, 1, 3), (1, 2, 1, 3, 5), (2, 1, 1, 5, 6)]
    turned = rota.System(
        capacity=[16, 8],
        demand=[[4, 4], [2, 1]],
        arrival_rate=[1, 1],
        mean_size=[1, 1],
        names=["large", "small"],
        resources=["memory", "cores"],
    )
    straight, other = rota.measure_actual(trace_of(rows), SYSTEM), rota.measure_actual(trace_of(rows), turned)
    assert other.response_time.tolist() == straight.response_time[::-1].tolist() == [4, 3]
    assert other.utilization.tolist() == straight.utilization[::-1].tolist()
    assert other.peak.tolist() == straight.peak[::-1].tolist()


def test_a_fleet():
    """Of a fleet, what is in use is a part of all its servers."""
    fleet = rota.Fleet(count=[2, 3], capacity=[[8, 16], [4, 0]], demand=[[2, 0]], arrival_rate=[1.0], mean_size=[1.0])
    rows = pl.DataFrame({"arrival": [0.0], "size": [2.0], "type": [0], "start": [1.0], "end": [3.0]}, schema_overrides={"type": pl.Int32})
    trace = Trace(rows.lazy(), fleet.names, fleet.resources, fleet.demand)
    found = rota.measure_actual(trace, fleet)
    assert found.utilization == pytest.approx(fleet.demand[0] * 2 / 3 / (fleet.count @ fleet.capacity))
    assert (found.mean_response_time, found.mean_waiting_time) == (3, 1)


def test_the_unit_of_the_system():
    """Times are in the unit of the system, where both are known."""
    trace = trace_of([(0, 120, 0, 60, 180)], about={"time_unit_s": 1.0})
    minutes = rota.System(
        SYSTEM.capacity, SYSTEM.demand, [1, 1], names=SYSTEM.names, resources=SYSTEM.resources, mean_size=[1, 1], time_unit="min"
    )
    assert rota.measure_actual(trace, minutes).mean_response_time == 3
    assert rota.measure_actual(trace, SYSTEM).mean_response_time == 180


def test_notes():
    """What the numbers do not mean is said: jobs without times, jobs left out, a sample, a machine larger than the server."""
    about = {"import": {"left_out": {"still running": 3}}, "grouping": [{"left_out": [{"jobs": 2}]}], "thinned": 0.5}
    rows = [(0, 5, 1, 0, 5), (0, 5, 1, 0, 5), (0, 5, 1, 0, 5), (1, 1, 0, None, None)]
    notes = " ".join(rota.measure_actual(trace_of(rows, about), SYSTEM).notes)
    for text in ("no start and end of 1 job:", "left out 5 jobs", "0.5 of the jobs", "up to 1.50 times the cores"):
        assert text in notes
    few = rota.measure_actual(trace_of(rows[:2]), SYSTEM).notes
    assert len(few) == 1


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (None, "must be a trace of a log"),
        (made(), "does not say when jobs really started and ended"),
        (made().looped(2), "is played several times"),
        (trace_of([(0, 5, 1, 0, 5)]).stretched(2.0), "does not say when jobs really started and ended"),
        (rota.Jobs(times=[0.0], kinds=[0], sizes=[1.0]), "does not say when jobs really started and ended"),
    ],
)
def test_workloads_without_it(workload, message):
    """Without a log of starts and ends there is no such row, and the message says why, before anything is simulated."""
    with pytest.raises(rota.BadSpec, match=message):
        rota.compare(SYSTEM, ["fcfs"], workload=workload, jobs=100, actual=True)


def test_no_job_has_an_end():
    """If the log says it of no job, there is nothing to measure."""
    with pytest.raises(rota.Infeasible, match="of no job"):
        rota.measure_actual(trace_of([(0, 5, 1, None, None)]), SYSTEM)


def test_it_is_saved_with_the_comparison(tmp_path):
    """A comparison with what happened is the same after it was saved and read."""
    found = rota.compare(SYSTEM, ["fcfs"], workload=trace_of([(0, 5, 1, 0, 5), (1, 2, 0, 1, 3)]), actual=True)
    rota.save_result(found, tmp_path / "found.json")
    again = rota.read_result(tmp_path / "found.json")
    assert again.actual.mean_response_time == found.actual.mean_response_time
    assert again.actual.notes == found.actual.notes
    assert again.table().drop("events_per_s").equals(found.table().drop("events_per_s"), null_equal=True)
