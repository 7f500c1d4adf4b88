"""The description of a trace, and its pictures."""

import itertools
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.traces import Trace, info
from rota.traces.info import trace_info
from rota.traces.pictures import draw_info, save_pictures

DATA = Path(__file__).parents[2].parent / "shared" / "data"


def make(arrival, size=None, kinds=None, demand=((0.5, 0.25), (0.1, 0.1)), capacity=(1.0, 2.0), **about):
    """A trace from lists."""
    n = len(arrival)
    jobs = pl.DataFrame(
        {
            "arrival": np.array(arrival, dtype=float),
            "size": np.ones(n) if size is None else np.array(size, dtype=float),
            "type": np.zeros(n, dtype=np.int32) if kinds is None else np.array(kinds, dtype=np.int32),
        }
    )
    names = tuple("abcdef"[: len(demand)])
    return Trace(jobs.lazy(), names, ("cpu", "memory"), np.array(demand), None if capacity is None else np.array(capacity), about)


def test_types_and_load():
    """Types come most frequent first; the load is size times demand over span and capacity."""
    found = trace_info(make([0, 1, 2, 3], [1, 2, 3, 10], [1, 1, 1, 0], period=10.0))
    assert found.types["name"].to_list() == ["b", "a"]
    assert found.types["jobs"].to_list() == [3, 1]
    assert found.types["rate"].to_list() == pytest.approx([0.3, 0.1])
    assert found.types["mean_size"].to_list() == [2.0, 10.0]
    assert found.demand_in_use == pytest.approx({"cpu": (6 * 0.1 + 10 * 0.5) / 10, "memory": (6 * 0.1 + 10 * 0.25) / 10})
    assert found.load == pytest.approx({"cpu": 0.56, "memory": 0.155})
    assert found.types["work_share"].to_list() == pytest.approx([0.6 / 5.6, 5 / 5.6])
    assert trace_info(make([0, 1], capacity=None)).load is None


@settings(max_examples=30)
@given(st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=300))
def test_sizes_against_numpy(sizes):
    """Moments are exact; quantiles are within half a percent of an order statistic; the tail is P(size > x)."""
    found = trace_info(make(np.arange(len(sizes)), sizes))
    assert found.size_mean == pytest.approx(np.mean(sizes))
    assert found.size_cv == pytest.approx(np.std(sizes) / np.mean(sizes), rel=1e-6, abs=1e-6)
    assert (found.size_min, found.size_max) == (min(sizes), max(sizes))
    for q, value in found.size_quantiles.items():
        assert value == pytest.approx(np.quantile(sizes, q, method="inverted_cdf"), rel=6e-3)
    for x, above in found.size_tail:
        assert above == pytest.approx(np.mean(np.array(sizes) > x))


def test_failure_rate_of_exponential_sizes_is_flat():
    """Exponential sizes have failure rate 1/mean at every age; the endings add up to the jobs."""
    sizes = np.random.default_rng(1).exponential(50.0, 200_000)
    low, high, rate, ends = trace_info(make(np.arange(len(sizes)), sizes)).failure_rate.T
    assert ends.sum() == len(sizes)
    assert (high > low).all()
    many = ends > 2000
    assert rate[many] == pytest.approx(np.full(many.sum(), 1 / 50), rel=0.1)


def test_failure_rate_of_one_bin_by_hand():
    """Sizes 1, 1.1 and 3: in [1, 2^¼) two end in the time 0 + 0.1 + (2^¼ − 1); in [2^1.5, 2^1.75) one ends in 3 − 2^1.5."""
    bins = trace_info(make([0, 1, 2], [1.0, 1.1, 3.0])).failure_rate
    assert bins[:, 3].tolist() == [2, 1]
    assert bins[0, 2] == pytest.approx(2 / (0.1 + 2**0.25 - 1))
    assert bins[1, 2] == pytest.approx(1 / (3 - 2**1.5))


def test_batches_and_gaps(monkeypatch):
    """Batches are runs of equal arrivals, also across the chunks they are read in; jobs close together are one batch if asked."""
    arrival = [0, 0, 0, 1, 2, 2, 2, 2, 5, 5.001]
    for chunk in (1 << 18, 3, 2, 1):
        monkeypatch.setattr(info, "_CHUNK", chunk)
        found = trace_info(make(arrival))
        assert (found.batches, found.batch_max) == (5, 4)
        assert found.batch_mean == pytest.approx(10 / 5)
        assert found.batch_seen == pytest.approx((9 + 1 + 16 + 1 + 1) / 10)
        assert found.zero_gaps == pytest.approx(5 / 9)
        gaps = np.diff(arrival)
        assert found.gap_cv == pytest.approx(gaps.std() / gaps.mean())
    near = trace_info(make(arrival), batch_gap=0.01)
    assert (near.batches, near.batch_max) == (4, 4)


def test_dispersion_of_a_poisson_process_is_1_and_of_batches_their_size():
    """Index of dispersion: 1 for Poisson arrivals, 4 for Poisson batches of 4, at every window with enough data."""
    rng = np.random.default_rng(2)
    single = np.cumsum(rng.exponential(0.25, 400_000))
    for size in (1, 4):
        found = trace_info(make(np.repeat(single, size)))
        assert list(found.dispersion) == [1.0, 10.0, 60.0, 600.0, 3600.0]
        assert [found.dispersion[w] for w in (1.0, 10.0, 60.0)] == pytest.approx([size] * 3, rel=0.06)
        assert found.hourly_arrivals.sum() <= len(single) * size
        assert found.hourly_arrivals.mean() == pytest.approx(size * 14_400, rel=0.02)
        assert found.batch_mean == pytest.approx(size)


def test_correlation_with_the_next():
    """Sizes and types that repeat are seen as such; independent ones are not."""
    rng = np.random.default_rng(3)
    arrival = np.cumsum(rng.exponential(1.0, 20_000))
    sizes, kinds = np.repeat(rng.lognormal(0, 1, 5000), 4), np.repeat(rng.integers(2, size=5000), 4)
    found = trace_info(make(arrival, sizes, kinds)).correlation
    assert found["log_size"] == pytest.approx(0.75, abs=0.03)
    assert found["same_type"] == pytest.approx(0.75 + 0.125, abs=0.02)
    assert found["same_type_by_chance"] == pytest.approx(0.5, abs=0.02)
    assert abs(found["gap"]) < 0.03


def test_pictures_are_written(tmp_path):
    """Every picture is drawn for a long trace, and written as SVG; HTML carries what it needs."""
    rng = np.random.default_rng(4)
    arrival = np.cumsum(rng.exponential(20.0, 5000))
    found = trace_info(make(arrival, rng.lognormal(3, 1, 5000), rng.integers(2, size=5000)))
    files = save_pictures(found, tmp_path / "pictures", "svg")
    assert [file.name for file in files] == ["sizes.svg", "failure-rate.svg", "arrivals.svg", "dispersion.svg", "demands.svg"]
    assert all("<svg" in file.read_text(encoding="utf-8") for file in files)


def test_pictures_of_next_to_nothing():
    """A trace too small for a picture has fewer of them, and no error."""
    assert set(draw_info(trace_info(make([0.0, 1.0], [1.0, 1.0])))) <= {"sizes", "failure-rate", "demands"}


def test_the_month_of_google_jobs():
    """Real arrivals and sizes: 668,088 arrivals after 600 s, finished sizes of mean 651 s, cv 6.4, median 109 s."""
    file = DATA / "google2011_jobs" / "google2011_jobs.parquet"
    if not file.exists():
        pytest.skip("needs google2011_jobs/google2011_jobs.parquet in ../shared/data")
    raw = pl.read_parquet(file).filter(pl.col("submit_us") >= 600e6).sort("submit_us")
    every = trace_info(make(raw["submit_us"] / 1e6, demand=[(1.0, 1.0)]))
    assert every.jobs == 668_088
    assert every.dispersion[86400.0] > every.dispersion[3600.0] > every.dispersion[60.0] > 1.5
    done = raw.filter(pl.col("end_type") == 4)
    found = trace_info(make(done["submit_us"] / 1e6, (done["end_us"] - done["schedule_us"]) / 1e6, demand=[(1.0, 1.0)]))
    assert found.jobs == 385_503
    assert found.size_mean == pytest.approx(651, abs=1)
    assert found.size_cv == pytest.approx(6.4, abs=0.05)
    assert found.size_quantiles[0.5] == pytest.approx(109, rel=0.006)
    low, _, rate, _ = found.failure_rate[found.failure_rate[:, 3] > 1000].T
    assert 16 <= low[rate.argmax()] <= 32  # rises to about 25 s, then falls


def test_coarse_failure_rate_keeps_ends_and_time():
    """Wider bins have the jobs that end over the time spent, so that a flat rate stays flat."""
    sizes = np.random.default_rng(0).exponential(2.0, 100_000)
    found = trace_info(make(np.arange(len(sizes)), sizes)).coarse_failure_rate()
    assert [high / low for low, high, _ in found] == pytest.approx([4.0] * len(found))
    assert all(after[0] == pytest.approx(before[1]) for before, after in itertools.pairwise(found))
    assert [rate for low, _, rate in found if 0.1 < low < 5] == pytest.approx([0.5] * 3, rel=0.05)
