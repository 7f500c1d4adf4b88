"""A trace: its parts, and as a workload."""

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
import rota.traces
from rota.traces import Trace, open_trace, resample, save_trace

SEED = np.random.SeedSequence(0)


def make(arrival, size, kind, types=2, **fields):
    """A trace of the given jobs; type i demands (i + 1)/10 of the CPU and all types half of the memory."""
    jobs = pl.DataFrame({"arrival": np.array(arrival, float), "size": np.array(size, float), "type": np.array(kind, np.int32)})
    demand = [[(i + 1) / 10, 0.5] for i in range(types)]
    return Trace(jobs.lazy(), tuple(f"t{i}" for i in range(types)), ("cpu", "memory"), demand, [1.0, 1.0], fields)


def many(n, seed=0, types=2):
    """Poisson arrivals with exponential sizes."""
    rng = np.random.default_rng(seed)
    return make(np.cumsum(rng.exponential(1.0, n)), rng.exponential(1.0, n), rng.integers(types, size=n), types)


def columns(trace):
    """Arrivals, sizes and types as arrays."""
    jobs = trace.jobs.collect()
    return tuple(jobs[name].to_numpy() for name in ("arrival", "size", "type"))


@st.composite
def traces(draw, fewest=2):
    """A few jobs of two types; some arrive together, all not at once."""
    gaps = draw(st.lists(st.just(0.0) | st.floats(0.01, 1e4), min_size=fewest, max_size=40).filter(lambda gaps: any(gaps[1:])))
    n = len(gaps)
    sizes = draw(st.lists(st.floats(0.001, 1e6), min_size=n, max_size=n))
    return make(np.cumsum(gaps), sizes, draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))


# -------------------------------------------------------------------------------------------------------------------- the room


def test_the_room_is_quick_to_enter():
    """`import rota.traces` loads no compiler, no SciPy and no charts; every name it promises is there all the same."""
    code = "import sys, rota.traces; print([m for m in ('numba', 'scipy', 'altair') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    assert all(hasattr(rota.traces, name) for name in rota.traces.__all__)
    assert callable(rota.traces.to_system)  # the function, not the module of this name
    assert callable(rota.traces.resample)
    with pytest.raises(AttributeError, match=r"module 'rota\.traces' has no attribute 'no_such_name'"):
        _ = rota.traces.no_such_name


# -------------------------------------------------------------------------------------------------------------------- what it is


def test_what_it_says_of_itself():
    """Count, first and last arrival, span with one mean gap at the end, types also without jobs."""
    trace = make([10, 20, 40], [1, 2, 6], [0, 0, 2], types=4)
    assert (len(trace), trace.begin, trace.end, trace.span) == (3, 10.0, 40.0, 45.0)
    assert trace.per_type["jobs"].to_list() == [2, 0, 1, 0]
    assert trace.per_type["mean_size"].to_list() == [1.5, None, 6.0, None]
    assert trace.per_type["cv"][0] == pytest.approx(1 / 3)
    assert repr(trace) == "<Trace of 3 jobs in 45 s, 4 types of cpu, memory>"
    assert not trace.demand.flags.writeable


def test_a_trace_with_a_period_has_that_span():
    """The time that a log covers may be known, and longer than the arrivals tell."""
    assert make([10, 20], [1, 1], [0, 0], period=100.0).span == 100.0


def test_an_empty_trace_says_so():
    """A trace without jobs has no first arrival; the error comes when it is asked for."""
    with pytest.raises(rota.Infeasible, match="no jobs"):
        len(make([], [], []))


# -------------------------------------------------------------------------------------------------------------------- parts of it


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_thinning_keeps_each_job_with_the_probability(share):
    """The kept are a sample: their number, their neighbours and their types are those of independent draws, within 4.5 deviations."""
    n = 200_000
    trace = many(n, types=3)
    arrival, _, kind = columns(trace)
    kept = np.isin(arrival, columns(trace.thinned(share, seed=5))[0])
    deviation = (share * (1 - share) / n) ** 0.5
    assert abs(kept.mean() - share) < 4.5 * deviation
    for lag in (1, 2, 3, 64):
        both = (kept[:-lag] & kept[lag:]).mean()
        assert abs(both - share**2) < 4.5 * (share**2 * (1 - share**2) / n) ** 0.5 + 2 * share * 4.5 * deviation
    for i in range(3):
        assert abs(kept[kind == i].mean() - share) < 4.5 * deviation * 3**0.5 * 1.01


@given(traces(), st.floats(0.01, 1), st.floats(0.01, 1), st.integers(0, 2**40))
def test_the_same_seed_thins_the_same_and_a_smaller_share_is_a_part_of_a_larger(trace, one, other, seed):
    """The draw of a job depends on the seed and its place only: thinning is repeatable, and shares are nested."""
    low, high = sorted([one, other])
    few, more = (trace.thinned(share, seed).jobs.collect() for share in (low, high))
    assert few.equals(trace.thinned(low, seed).jobs.collect())
    rows = trace.jobs.collect().rows()
    assert is_part(few.rows(), more.rows())
    assert is_part(more.rows(), rows)


def is_part(few, many):
    """Whether one list can be had from another by leaving things out."""
    left = iter(many)
    return all(row in left for row in few)


def test_another_seed_thins_otherwise_and_thinning_twice_multiplies():
    """Two seeds are two samples; a share of a share, also with one seed, is their product."""
    trace = many(40_000)
    a, b = (set(columns(trace.thinned(0.5, seed))[0]) for seed in (1, 2))
    assert len(a & b) == pytest.approx(10_000, abs=450)
    assert len(trace.thinned(0.5, 1).thinned(0.5, 1)) == pytest.approx(10_000, abs=450)


def test_thinning_keeps_the_span():
    """A sample of a log covers the same time as the log, so rates fall by the share; all of it is the trace itself."""
    trace = many(1000)
    few = trace.thinned(0.1, seed=1)
    assert few.span == trace.span
    assert few.begin >= trace.begin
    assert few.about["thinned"] == 0.1
    assert trace.thinned(1.0) is trace


@given(traces(), st.floats(0, 1), st.floats(0, 1))
def test_a_window_has_the_jobs_of_its_time(trace, one, other):
    """Windows side by side part the jobs among them, in order, with sizes and types; the span is the window's."""
    first, beyond = trace.begin, trace.begin + trace.span
    a, b = sorted([first + one * trace.span, first + other * trace.span])
    cuts = np.unique([first, a, b, beyond])
    parts = [trace.window(low, high) for low, high in pairwise(cuts)]
    assert pl.concat([part.jobs.collect() for part in parts]).equals(trace.jobs.collect())
    for part, (low, high) in zip(parts, pairwise(cuts), strict=True):
        assert part.span == high - low
        assert all(low <= arrival < high for arrival in columns(part)[0])


@given(traces(), st.floats(1e-3, 1e3))
def test_stretching_moves_arrivals_and_nothing_else(trace, factor):
    """Order, count, sizes and types stay; arrivals and span are multiplied, so the rate is divided."""
    before, after = columns(trace), columns(trace.stretched(factor))
    assert np.array_equal(after[0], before[0] * factor)
    assert np.array_equal(after[1], before[1])
    assert np.array_equal(after[2], before[2])
    assert (np.diff(after[0]) >= 0).all()
    assert trace.stretched(factor).span == pytest.approx(trace.span * factor)


@given(traces(), st.floats(0.001, 1e6))
def test_without_long_jobs(trace, limit):
    """Jobs up to the limit stay, in order; the time that the log covers stays too."""
    few = trace.without_long(limit)
    assert columns(few)[1].tolist() == [size for size in columns(trace)[1] if size <= limit]
    assert few.span == trace.span


def test_in_memory_is_the_same():
    """The jobs are read once; nothing else changes."""
    trace = many(100)
    assert trace.in_memory().jobs.collect().equals(trace.jobs.collect())
    assert trace.in_memory().names == trace.names


@pytest.mark.parametrize("wrong", [0.0, -0.1, 1.5, float("nan")])
def test_a_share_is_a_probability(wrong):
    """A share that is none is refused with its value."""
    with pytest.raises(rota.BadSpec, match="share: must be above 0 and at most 1"):
        many(3).thinned(wrong)


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), float("inf")])
def test_a_factor_is_positive(wrong):
    """So is a factor of time that is not."""
    with pytest.raises(rota.BadSpec, match="factor: must be positive and finite"):
        many(3).stretched(wrong)


def test_windows_and_loops_that_are_none():
    """A window that ends before it begins, and no loop at all."""
    with pytest.raises(rota.BadSpec, match="window: must begin before it ends"):
        many(3).window(5.0, 5.0)
    with pytest.raises(rota.BadSpec, match="loops: must be at least 1"):
        many(3).looped(0)


# -------------------------------------------------------------------------------------------------------------------- as a workload


def played(workload, system):
    """All chunks of a workload, joined."""
    chunks = list(workload.chunks(system, SEED))
    return tuple(np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("times", "kinds", "sizes", "estimates"))


@given(traces(), st.integers(1, 4))
def test_a_looped_trace_is_the_jobs_again_and_again(trace, times):
    """The first loop begins at 0 and each other one a span later; order, sizes and types are those of the trace, loop by loop."""
    arrival, size, kind = columns(trace)
    system = trace.system()
    looped = trace.looped(times)
    found = played(looped, system)
    assert len(looped) == times * len(trace) == len(found[0])
    assert found[0] == pytest.approx(np.concatenate([arrival - arrival[0] + loop * trace.span for loop in range(times)]))
    assert np.array_equal(found[1], np.tile(kind, times))
    assert np.array_equal(found[2], np.tile(size, times))
    assert np.array_equal(found[3], found[2])  # without estimates, the sizes are known
    assert (np.diff(found[0]) >= 0).all()


def test_a_looped_trace_gives_the_result_of_the_concatenated_jobs():
    """`simulate` measures the same on a looped trace as on a plain list of the same jobs."""
    trace = many(500)
    system = trace.system()
    times, kinds, sizes, _ = played(trace.looped(3), system)
    for policy in ("first-fit", "max-weight"):
        looped, plain = (rota.simulate(system, policy, workload=jobs) for jobs in (trace.looped(3), rota.Jobs(times, kinds, sizes)))
        assert looped.jobs == plain.jobs == 1500
        assert looped.mean_response_time == plain.mean_response_time
        assert looped.mean_queue_length.tolist() == plain.mean_queue_length.tolist()


def test_chunks_join_without_a_seam():
    """A trace of more than one chunk comes in order and whole, in memory and from a thinned frame."""
    trace = many(600_000)
    for part in (trace, trace.thinned(0.9)):
        arrival, size, kind = columns(part)
        found = played(part, trace.system())
        assert np.array_equal(found[0], arrival - arrival[0])
        assert np.array_equal(found[1], kind)
        assert np.array_equal(found[2], size)


def test_easy_uses_the_estimates():
    """One slot is free for 5 s before the oldest job can start: EASY fills it with a job of 3 s only if its user said so."""
    sizes = [5.0, 2.0, 3.0, 1.0]  # of half the server, all of it, half of it; the last comes much later
    jobs = pl.DataFrame({"arrival": [0.0, 0.1, 0.2, 900.0], "size": sizes, "type": np.array([0, 1, 0, 0], np.int32)})
    for estimates, finish in ((sizes, [5.0, 7.0, 3.2]), ([5.0, 2.0, 60.0, 1.0], [5.0, 7.0, 10.0])):
        known = jobs.with_columns(estimate=pl.Series(estimates))
        trace = Trace(known.lazy(), ("half", "all"), ("cpu",), [[0.5], [1.0]], [1.0])
        log = rota.simulate(trace.system(), "easy", workload=trace, log_jobs=3).log
        ends = log.filter(pl.col("event") == "finish").sort("job")["time"]
        assert ends.to_list() == pytest.approx(finish)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"names": ("t0", "x")}, "the system has 'x' where the trace has 't1'"),
        ({"resources": ("cpu", "disk")}, "the system's resources are cpu, disk, the trace's cpu, memory"),
        ({"demand": [[0.1, 0.5], [0.2, 0.6]]}, r"'t1' demands \[0.2, 0.6\] in the system and \[0.2, 0.5\] in the trace"),
    ],
    ids=["name", "resource", "demand"],
)
def test_a_system_with_other_types_is_refused(changed, message):
    """Names, resources and demands must be those of the trace: `type1` of another trace is another type."""
    trace = many(200)
    with pytest.raises(rota.BadSpec, match=f"workload: is not of the system's types: {message}; take the system made with it"):
        rota.simulate(trace.system().replace(**changed), "fcfs", workload=trace)


def test_a_system_with_more_types_is_refused():
    """The number of types is told instead of all their names."""
    trace, other = many(200), many(200, types=3)
    with pytest.raises(rota.BadSpec, match="the system has 3 types, the trace 2"):
        rota.simulate(other.system(), "fcfs", workload=trace)


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        (([0, 2, 1], [1, 1, 1], [0, 0, 1]), "sorted by arrival"),
        (([0, 1, 2], [1, 1, 1], [0, 2, 1]), r"types of jobs must be 0…1 \(got \(0, 2\)\)"),
        (([0, 1, 2], [1, 1, 1], [0, -1, 1]), "types of jobs must be 0…1"),
        (([0, 1, 2], [1, -1, 1], [0, 0, 1]), r"sizes must be finite and at least 0 \(got -1.0\)"),
        (([0, 1, 2], [1, np.nan, 1], [0, 0, 1]), "sizes must be finite"),
    ],
    ids=["order", "type", "negative type", "size", "not a number"],
)
def test_jobs_that_cannot_be_played(jobs, message):
    """A trace of one's own making is checked as it is played: nothing wrong reaches the engine."""
    system = make([0, 1], [1, 1], [0, 1]).system()
    with pytest.raises(rota.BadSpec, match=f"trace: .*{message}"):
        list(make(*jobs).chunks(system, SEED))


def test_a_system_may_have_another_server_and_other_rates():
    """What the trace does not say of its types is free: capacity, rates, preemption."""
    trace = many(200)
    system = trace.system([2.0, 1.0], preemption="full").scaled(factor=0.5)
    assert rota.simulate(system, "fcfs", workload=trace).jobs == 200


# ---------------------------------------------------------------------------------------------------------------- what happened


def happened():
    """A trace that says when its jobs started and ended."""
    times = {"arrival": [0.0, 5.0], "size": [4.0, 6.0], "type": [0, 0], "start": [1.0, 5.0], "end": [5.0, None]}
    return Trace(pl.DataFrame(times, schema_overrides={"type": pl.Int32}).lazy(), ("a",), ("cores",), [[1.0]])


def test_starts_and_ends_stay_where_arrivals_stay(tmp_path):
    """Parts of a trace, fewer types and the file keep what happened; what moves arrivals does not."""
    trace = happened()
    save_trace(trace, tmp_path / "jobs.parquet")
    for same in (open_trace(tmp_path / "jobs.parquet"), trace.window(0, 10), trace.grouped(top=1), trace.thinned(1), trace.without_long(9)):
        assert same.has_actual
        assert same.jobs.select("start", "end").collect().rows() == [(1, 5), (5, None)]
    assert not trace.stretched(2).has_actual
    assert not resample(trace, span=20, block=2.0).has_actual


def test_starts_and_ends_do_not_change_what_is_played():
    """A trace plays the same with and without them."""
    trace = happened()
    system = trace.system([1])
    bare = replace(trace, jobs=trace.jobs.drop("start", "end"))
    first, second = (rota.simulate(system, "fcfs", workload=one) for one in (trace, bare))
    assert (first.mean_response_time, first.fingerprint) == (second.mean_response_time, second.fingerprint)
