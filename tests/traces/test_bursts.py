"""Bursts fitted to a trace: known processes are found again, Poisson arrivals stay Poisson, time scales and scaling."""

import numpy as np
import polars as pl
import pytest

import rota
from rota.simulation import SystemArrivals
from rota.traces import Trace, fit_bursts
from rota.traces.bursts import _by_width
from rota.traces.to_system import scaled_to


def trace_of(arrivals, rates, n=200_000, seed=0):
    """A trace of n jobs or a few more, made by known processes."""
    K = len(rates)
    system = rota.System([2 * K], [[k + 1] for k in range(K)], rates, [4.0] * K, arrivals=arrivals)
    parts, found = [], 0
    for part in SystemArrivals().chunks(system, np.random.SeedSequence(seed)):
        parts.append(part)
        found += len(part.times)
        if found >= n:
            break
    times, kinds, sizes, _ = (np.concatenate(column) for column in zip(*parts, strict=True))
    jobs = pl.DataFrame({"arrival": times, "size": sizes, "type": kinds.astype(np.int32)})
    return Trace(jobs.lazy(), system.names, system.resources, system.demand, system.capacity)


@pytest.mark.parametrize(
    "process",
    [
        rota.Bursts(factor=4.0, share=0.2, length=20.0),
        rota.Bursts(factor=2.0, share=0.5, length=5.0),
        rota.Bursts(factor=8.0, share=0.05, length=10.0),
        rota.Bursts(factor=10.0, share=0.1, length=1.0),
    ],
)
def test_known_bursts_are_found_again(process):
    """From 200,000 jobs: dispersion and time scale within 20 %, factor and share within 15 %; a Poisson type beside stays Poisson."""
    found, other = fit_bursts(trace_of([process, rota.Poisson()], [1.0, 0.5]))
    assert found.dispersion(1.0) == pytest.approx(process.dispersion(1.0), rel=0.2)
    assert found.at(1.0).time_scale == pytest.approx(process.at(1.0).time_scale, rel=0.2)
    assert found.factor == pytest.approx(process.factor, rel=0.15)
    assert found.share == pytest.approx(process.share, rel=0.15)
    assert other == rota.Poisson()


def test_poisson_arrivals_stay_poisson():
    """Of fifteen Poisson types, rare and frequent, none is called bursty; nor are regular arrivals, nor too few jobs."""
    regular = rota.MAP(d0=((-2.0, 2.0), (0.0, -2.0)), d1=((0.0, 0.0), (2.0, 0.0)))
    rates = [0.01, 0.001, *np.geomspace(0.1, 3.0, 14)]
    found = fit_bursts(trace_of([regular, rota.Bursts(factor=9.0, share=0.1, length=1000.0)] + [rota.Poisson()] * 14, rates, n=50_000))
    assert found == (rota.Poisson(),) * 16


def test_moments_of_counts_by_width():
    """Dispersion and third factorial cumulant at each width are those of the counts themselves."""
    rng = np.random.default_rng(0)
    window, jobs = np.unique(rng.integers(0, 2**20, 30_000), return_counts=True)
    dense = np.zeros(2**20)
    dense[window] = jobs
    widths, excess, skewed = _by_width(window, jobs, 1.0)
    for k in (0, 5, 13):
        counts = dense.reshape(-1, 2**k).sum(axis=1)
        assert widths[k] == 2**k
        assert excess[k] == pytest.approx(counts.var() / counts.mean() - 1, abs=1e-9)
        mean = counts.mean()
        third = ((counts - mean) ** 3).mean() - 3 * counts.var() + 2 * mean
        assert skewed[k] == pytest.approx(third / mean**3, rel=1e-6, abs=1e-6)


def test_a_time_scale_of_your_own():
    """With two time scales in the arrivals, the one asked for is fitted: its dispersion is that of windows of that length."""
    fast, slow = ((-1.0, 1.0), (1.0, -1.0)), ((-0.005, 0.005), (0.005, -0.005))
    both = np.kron(fast, np.eye(2)) + np.kron(np.eye(2), slow)
    rates = np.kron([1.8, 0.2], [1.5, 0.5])
    trace = trace_of([rota.MMPP(rates=tuple(rates), generator=tuple(map(tuple, both.tolist())))], [4.0])
    quick, late = (fit_bursts(trace, time_scale=scale)[0] for scale in (0.5, 100.0))
    assert quick.at(4.0).time_scale == pytest.approx(0.5)
    assert late.at(4.0).time_scale == pytest.approx(100.0)
    assert late.dispersion(4.0) > 10 * quick.dispersion(4.0)
    assert late.factor == pytest.approx(1.5, rel=0.1)
    for wrong in (0.0, -1.0, np.inf):
        with pytest.raises(rota.BadSpec, match="positive and finite"):
            fit_bursts(trace, time_scale=wrong)
    with pytest.raises(rota.BadSpec, match="the windows that the trace has enough of"):
        fit_bursts(trace, time_scale=1e9)


def test_the_system_of_a_bursty_trace():
    """`arrivals="bursts"` puts the fit into the system; thinning keeps the length of bursts, time divides it by the factor."""
    process = rota.Bursts(factor=4.0, share=0.2, length=20.0)
    trace = trace_of([process], [1.0], n=60_000)
    system = trace.system(arrivals="bursts")
    assert system.arrivals == fit_bursts(trace)
    assert trace.system().bursty == ()
    own = rota.system_load(system).load
    thin, thinned = scaled_to(trace, own / 2, by="thinning", arrivals="bursts")
    assert thinned.arrivals == system.arrivals
    refitted = fit_bursts(thin)[0]
    rate = thinned.arrival_rate[0]
    assert refitted.at(rate).time_scale == pytest.approx(thinned.arrivals[0].at(rate).time_scale, rel=0.2)
    assert refitted.dispersion(rate) == pytest.approx(thinned.dispersion[0], rel=0.2)
    late, slower = scaled_to(trace, own / 2, by="time", arrivals="bursts")
    assert slower.arrivals[0].length == pytest.approx(2 * system.arrivals[0].length)
    assert fit_bursts(late)[0].dispersion(slower.arrival_rate[0]) == pytest.approx(slower.dispersion[0], rel=1e-6)
    assert trace.system(load=own / 2, by="time", arrivals="bursts").arrivals[0].length == pytest.approx(slower.arrivals[0].length)
    with pytest.raises(rota.BadSpec, match='must be "poisson" or "bursts"'):
        trace.system(arrivals="mmpp")
    with pytest.raises(rota.BadSpec, match="a Poisson process has none"):
        trace.system(time_scale=3.0)


def test_many_jobs_at_one_moment():
    """Jobs that arrive together become bursts that are very short, of the same dispersion at all longer windows."""
    batches = rota.Poisson(batch=rota.GivenBatch(sizes=(10,)))
    rates = [1.0, 0.01]
    for rate, found in zip(rates, fit_bursts(trace_of([batches] * 2, rates, n=100_000)), strict=True):
        assert found.length < 0.1 / rate
        assert found.dispersion(rate) == pytest.approx(10.0, rel=0.2)
