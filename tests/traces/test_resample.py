"""The resampler: what it keeps, what it loses, on made and on real arrivals."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.errors import BadSpec
from rota.traces import Trace
from rota.traces.resample import resample

JOBS_2011 = Path(__file__).parents[3] / "shared" / "data" / "google2011_jobs"


def trace_of(arrival: np.ndarray, size: np.ndarray | None = None, kind: np.ndarray | None = None) -> Trace:
    """A trace with two types; the size of job j is j unless given, so that jobs are known again."""
    n = len(arrival)
    jobs = pl.DataFrame(
        {
            "arrival": np.sort(arrival),
            "size": np.arange(1.0, n + 1) if size is None else size,
            "type": (np.arange(n) % 2 if kind is None else kind).astype(np.int32),
        }
    )
    return Trace(jobs.lazy(), ("a", "b"), ("cpu",), np.array([[1.0], [2.0]]))


def bursty(seed: int, batches: int = 2000, batch: int = 20, span: float = 2e5) -> Trace:
    """Batches of jobs at one instant, at random times."""
    rng = np.random.default_rng(seed)
    return trace_of(np.repeat(rng.random(batches) * span, batch))


def arrivals(trace: Trace) -> np.ndarray:
    """Arrival times."""
    return trace.jobs.collect()["arrival"].to_numpy()


def dispersion(times: np.ndarray, span: float, window: float) -> float:
    """The index of dispersion of counts: variance over mean of the arrivals in a window."""
    counts = np.histogram(times, np.arange(0.0, span, window))[0]
    return float(counts.var() / counts.mean())


@settings(max_examples=25)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(50, 400),
    block=st.floats(20.0, 400.0),
    span=st.floats(10.0, 5000.0),
)
def test_jobs_stay_whole_and_in_order(seed: int, n: int, block: float, span: float) -> None:
    """Any length and block: sorted, inside the span, and size and type are still those of one job."""
    made = resample(trace_of(np.random.default_rng(seed).random(n) * 1000.0), span=span, seed=seed, block=min(block, 400.0))
    jobs = made.jobs.collect()
    times = jobs["arrival"].to_numpy()
    assert (np.diff(times) >= 0).all()
    assert ((times >= 0) & (times < span)).all()
    assert (jobs["type"].to_numpy() == (jobs["size"].to_numpy() - 1) % 2).all()
    assert made.span == span


def test_batches_stay_whole() -> None:
    """Twenty jobs that arrive together come out as twenty together, or not at all."""
    made = arrivals(resample(bursty(1), seed=2, block=5000.0))
    _, counts = np.unique(made, return_counts=True)
    assert (counts % 20 == 0).all()
    assert len(made) > 20_000


def test_rate_is_kept_on_average() -> None:
    """A hundred times the length has the same jobs per second."""
    source = bursty(3)
    made = resample(source, span=100 * source.span, seed=4, block=5000.0)
    assert len(made) / made.span == pytest.approx(len(source) / source.span, rel=0.02)


def test_dispersion_is_kept_below_the_block_and_lost_by_poisson_arrivals() -> None:
    """Index of dispersion near 20 at windows up to the block's length; that of as many independent arrivals is near 1."""
    source = bursty(5)
    made = resample(source, days=10, seed=6, block=5000.0)
    poisson = np.random.default_rng(7).random(len(made)) * made.span
    for window in (50.0, 500.0, 2000.0):
        kept = dispersion(arrivals(made), made.span, window)
        assert kept == pytest.approx(dispersion(arrivals(source), source.span, window), rel=0.25), window
        assert dispersion(poisson, made.span, window) < 1.5 < 10 < kept


def test_real_arrivals_keep_their_dispersion() -> None:
    """Google 2011: windows of a minute to an hour out of blocks of six hours, within a quarter; Poisson is far below.

    A single month will not do: a few great bursts make most of the variance, and a resampled month has each of them by chance none, one or
    two times. Ten months have them as often as the real one.
    """
    files = sorted(JOBS_2011.glob("*.parquet"))
    if not files:
        pytest.skip("the real arrivals are not here: ../shared/data/google2011_jobs is missing")
    times = pl.read_parquet(files[0]).filter(pl.col("submit_us") >= 600_000_000)["submit_us"].to_numpy() / 1e6 - 600
    source = trace_of(times)
    made = resample(source, days=290, seed=1)
    assert len(made) / made.span == pytest.approx(len(source) / source.span, rel=0.05)
    for window in (60.0, 600.0, 3600.0):
        real, kept = dispersion(np.sort(times), source.span, window), dispersion(arrivals(made), made.span, window)
        poisson = dispersion(np.random.default_rng(2).random(len(made)) * made.span, made.span, window)
        assert kept == pytest.approx(real, rel=0.25), window
        assert kept > 5 * poisson, window


def test_same_seed_same_trace() -> None:
    """A seed makes the trace; another makes another."""
    source = bursty(8)
    one, two, other = (resample(source, seed=seed, block=5000.0).jobs.collect() for seed in (1, 1, 2))
    assert one.equals(two)
    assert not one.equals(other)


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"days": 0.0}, "days"),
        ({"span": -1.0}, "span"),
        ({"block": 1e9}, "block"),
        ({"block": 0.0}, "block"),
        ({"days": 1.0, "span": 5.0}, "span"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, float], where: str) -> None:
    """Each wrong argument is refused by name."""
    with pytest.raises(BadSpec, match=where):
        resample(bursty(9), **arguments)  # type: ignore[arg-type]
