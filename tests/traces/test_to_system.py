"""From a trace to a system."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from rota.traces import Trace
from rota.traces.to_system import load_of, scaled_to, to_system

DATA = Path(__file__).parents[2].parent / "shared" / "data"


def make(n=4000, seed=0, capacity=(1.0, 1.0), types=3, **more):
    """Poisson arrivals of a few types with lognormal sizes."""
    rng = np.random.default_rng(seed)
    demand = np.array([(0.3, 0.1), (0.1, 0.4), (0.2, 0.2)])[:types]
    kinds = rng.integers(types, size=n).astype(np.int32)
    jobs = pl.DataFrame({"arrival": np.cumsum(rng.exponential(0.1, n)), "size": rng.lognormal(0, 1 + kinds / 4, n), "type": kinds})
    names = tuple("abc"[:types])
    return Trace(jobs.lazy(), names, ("cpu", "memory"), demand, None if capacity is None else np.array(capacity), more)


def test_rates_and_means_are_those_of_the_trace():
    """Rates are jobs over the span, mean sizes those seen; types, demands and capacity are taken over."""
    trace = make()
    system = trace.system()
    jobs = trace.jobs.collect()
    for i, name in enumerate(trace.names):
        mine = jobs.filter(pl.col("type") == i)["size"]
        assert system.names[i] == name
        assert system.arrival_rate[i] == pytest.approx(len(mine) / trace.span)
        assert 1 / system.service_rate[i] == pytest.approx(mine.mean())
        assert isinstance(system.sizes[i], rota.Exponential)
    assert np.array_equal(system.demand, trace.demand)
    assert system.capacity.tolist() == [1.0, 1.0]
    assert trace.system([2.0, 3.0], preemption="full").capacity.tolist() == [2.0, 3.0]


@settings(max_examples=25)
@given(st.lists(st.floats(1e-6, 1e7), min_size=1, max_size=200))
def test_empirical_sizes_keep_the_mean_exactly_and_the_second_moment_nearly(sizes):
    """The buckets stand for their jobs by their mean: E[X] is exact and E[X²] at most 0.05 % too small; no value leaves its range."""
    n = len(sizes)
    jobs = pl.DataFrame({"arrival": np.arange(n, dtype=float), "size": sizes, "type": np.zeros(n, dtype=np.int32)})
    law = Trace(jobs.lazy(), ("a",), ("cpu",), [[1.0]], np.ones(1), {"period": float(n)}).system(sizes="empirical").sizes[0]
    assert law.moment(1) == pytest.approx(np.mean(sizes), rel=1e-12)
    second = np.mean(np.square(sizes))
    assert second * (1 - 5e-4) <= law.moment(2) <= second * (1 + 1e-12)
    assert min(sizes) * (1 - 1e-12) <= min(law.values)
    assert max(law.values) <= max(sizes) * (1 + 1e-12)


def test_fitted_sizes_have_the_mean_and_the_spread():
    """Fitted sizes meet mean and coefficient of variation; sizes that are all equal become a constant."""
    trace = make()
    for law, row in zip(trace.system(sizes="fitted").sizes, trace.per_type.iter_rows(named=True), strict=True):
        assert law.moment(1) == pytest.approx(row["mean_size"])
        assert law.scv**0.5 == pytest.approx(row["cv"])
    same = make().jobs.with_columns(size=pl.lit(2.0))
    constant = Trace(same, ("a", "b", "c"), ("cpu", "memory"), make().demand, np.ones(2)).system(sizes="fitted")
    assert all(law == rota.Deterministic(mean=2.0) for law in constant.sizes)


def test_a_type_without_jobs_stays_with_rate_0():
    """The types of trace and system stay the same list, so the trace can be played on the system."""
    trace = make()
    wider = Trace(trace.jobs, (*trace.names, "never"), trace.resources, np.vstack([trace.demand, [0.9, 0.9]]), np.ones(2) * 3)
    for sizes in ("mean", "fitted", "empirical"):
        system = wider.system(sizes=sizes)
        assert system.arrival_rate[3] == 0
        assert system.sizes[3] == rota.Exponential(mean=1.0)
    assert rota.simulate(system, "first-fit", workload=wider).jobs == len(wider)


def test_jobs_of_size_0_count_in_the_mean():
    """A job of size 0 joins the lowest bucket of its type; a type with nothing else is refused."""
    jobs = pl.DataFrame({"arrival": [0.0, 1.0, 2.0], "size": [0.0, 1.0, 2.0], "type": np.zeros(3, dtype=np.int32)})
    law = Trace(jobs.lazy(), ("a",), ("cpu",), [[1.0]], np.ones(1)).system(sizes="empirical").sizes[0]
    assert law.moment(1) == pytest.approx(1.0)
    with pytest.raises(rota.BadSpec, match="all jobs of type 'a' have size 0"):
        Trace(jobs.head(1).lazy(), ("a",), ("cpu",), [[1.0]], np.ones(1), {"period": 1.0}).system()


def test_without_a_capacity_the_error_says_what_to_give():
    """A trace that knows no capacity asks for it; a wrong number of resources is refused; large types are counted, not listed."""
    with pytest.raises(
        rota.BadSpec,
        match=r"capacity: is not known to the trace: say how large the server is \(--capacity, or capacity=: cpu = …, memory = …\)",
    ):
        make(capacity=None).system()
    with pytest.raises(rota.BadSpec, match="needs 2 numbers: cpu, memory"):
        make().system([1.0])
    with pytest.raises(rota.BadSpec, match=r"jobs\.a: demands more than the server has, as do 1 other types[\s\S]*grouped\(capacity=…\)"):
        make().system([0.15, 1.0])
    with pytest.raises(rota.BadSpec, match="sizes"):
        make().system(sizes="median")


def test_load_of_is_the_system_load():
    """What this room derives from `System.scaled` is `rota.system_load`."""
    system = make().system()
    assert load_of(system) == pytest.approx(rota.system_load(system).load, rel=1e-9)


@pytest.mark.parametrize("by", ["thinning", "time"])
def test_scaled_to_a_load_by_rates(by):
    """The system has the load asked for; the trace has its arrival rate, up to the chance of a sample."""
    trace = make(n=20_000)
    scaled, system = trace.scaled(load=0.6, by=by, seed=3)
    assert rota.system_load(system).load == pytest.approx(0.6, rel=1e-6)
    assert system.arrival_rate.sum() == pytest.approx(len(scaled) / scaled.span, rel=1e-9 if by == "time" else 0.1)
    assert rota.system_load(scaled.system()).load == pytest.approx(0.6, rel=1e-6 if by == "time" else 0.15)
    assert trace.system(load=0.6, by=by) == system
    assert scaled.capacity.tolist() == [1.0, 1.0]
    assert len(scaled) == len(trace) or by == "thinning"


def test_scaled_to_a_load_by_capacity():
    """The server is the smallest multiple that brings the load to 0.7 or below: a little smaller is too small. Jobs are untouched."""
    trace = make()
    scaled, system = scaled_to(trace, 0.7, by="capacity")
    assert rota.system_load(system).load <= 0.7
    factor = system.capacity / trace.capacity
    assert factor[0] == pytest.approx(factor[1])
    assert rota.system_load(system.replace(capacity=system.capacity * 0.998)).load > 0.7
    assert scaled.capacity.tolist() == system.capacity.tolist()
    assert scaled.jobs.collect().equals(trace.jobs.collect())


def test_a_large_load_by_capacity_shrinks_the_server_no_further_than_the_largest_type():
    """No factor makes a server on which a type does not fit."""
    system = to_system(make(n=50, capacity=(10.0, 10.0), period=1e5), load=0.9, by="capacity")
    assert (system.demand <= system.capacity * (1 + 1e-9)).all()
    assert system.capacity.max() == pytest.approx(0.4)


def test_thinning_cannot_raise_a_load():
    """The error tells the load there is, and the ways that lead up."""
    with pytest.raises(rota.Infeasible, match=r"thinning only lowers it: to reach 1e\+06, scale by time or capacity"):
        make().scaled(load=1e6)
    with pytest.raises(rota.BadSpec, match="by"):
        make().scaled(load=0.5, by="magic")
    with pytest.raises(rota.BadSpec, match="load"):
        make().scaled(load=0.0)


def test_a_scaled_trace_plays_on_its_system():
    """A trace and the system that belongs to it go into the simulator together, at any way of scaling."""
    for by in ("thinning", "time", "capacity"):
        trace, system = make(n=8000).scaled(load=0.5, by=by)
        result = rota.simulate(system, "first-fit", workload=trace)
        assert result.jobs == len(trace)
        assert result.utilization.max() < 0.9


def test_the_month_of_google_jobs():
    """Real sizes: mean 651 s and cv 6.4 of the finished jobs, kept by the empirical and the fitted law."""
    file = DATA / "google2011_jobs" / "google2011_jobs.parquet"
    if not file.exists():
        pytest.skip("needs google2011_jobs/google2011_jobs.parquet in ../shared/data")
    trace = google_month(file)
    for sizes, cv_error in (("empirical", 1e-3), ("fitted", 1e-9)):
        law = trace.system([1000.0], sizes=sizes).sizes[0]
        assert law.moment(1) == pytest.approx(651, abs=1)
        assert law.scv**0.5 == pytest.approx(trace.per_type["cv"][0], rel=cv_error)
        assert law.scv**0.5 == pytest.approx(6.4, abs=0.05)


def google_month(file: Path) -> Trace:
    """The finished jobs of the month as a trace of one type."""
    second = 1e6
    jobs = (
        pl.scan_parquet(file)
        .filter((pl.col("submit_us") >= 600e6) & (pl.col("end_type") == 4))
        .sort("submit_us")
        .select(arrival=pl.col("submit_us") / second, size=(pl.col("end_us") - pl.col("schedule_us")) / second, type=pl.lit(0, pl.Int32))
    )
    return Trace(jobs, ("job",), ("slots",), [[1.0]]).in_memory()
