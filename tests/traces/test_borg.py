"""The Borg-like month: published facts, thinning, streaming, any length."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2, ks_2samp

from rota.errors import BadSpec, Infeasible
from rota.model import read_system
from rota.traces import borg as borg_module
from rota.traces import open_trace
from rota.traces.borg import BORG_DAYS, BorgModel, BorgProgress, borg_month, write_borg_month

MODEL = BorgModel()
EXAMPLE = Path(__file__).parents[2] / "examples" / "borg.toml"
TYPES = Path(__file__).parents[3] / "shared" / "data" / "borg2019_types.csv"


@pytest.fixture(scope="module")
def sample() -> pl.DataFrame:
    """Two percent of a month: 1.4 million jobs."""
    return borg_month(share=0.02, seed=1).jobs.collect()


def test_types_are_those_of_the_example() -> None:
    """Names and demands are those of examples/borg.toml, in the same order."""
    system = read_system(EXAMPLE)
    assert system.names == MODEL.names
    np.testing.assert_allclose(system.demand, MODEL.demand)
    np.testing.assert_allclose(1 / system.service_rate, MODEL.mean_size)


def test_types_are_the_published_ones() -> None:
    """Counts, demands and means are those of the published table."""
    if not TYPES.exists():
        pytest.skip("the published table is not here: ../shared/data/borg2019_types.csv is missing")
    table = pl.read_csv(TYPES)
    np.testing.assert_array_equal(table["jobs"], MODEL.jobs)
    np.testing.assert_allclose(table.select("cpu", "memory").to_numpy(), MODEL.demand)
    np.testing.assert_allclose(table["mean_size_s"], MODEL.mean_size)


def test_law_of_sizes_meets_quartiles_and_mean() -> None:
    """By formula: survival 3/4, 1/2, 1/4 at the published quartiles, and ∫ P(X > x) dx is the published mean without long jobs."""
    sizes = MODEL.sizes
    np.testing.assert_allclose(sizes.survival(np.array([49.554, 80.280, 169.257])), [0.75, 0.5, 0.25], atol=1e-4)
    x = np.concatenate([[1e-9], np.geomspace(1e-2, 2e5, 20_001)])
    below = np.trapezoid(sizes.survival(x), x) - 2e5 * sizes.long_jobs / sizes.jobs.sum()  # ∫ counts each long job with 2e5
    assert below == pytest.approx(310.5614 * (1 - 0.136), rel=1e-4)
    assert sizes.long_of_type.sum() == 2542


def test_failure_rate_rises_to_fifty_seconds_and_falls() -> None:
    """The failure rate of all sizes peaks within 45 to 55 s, and is less than half as high at 150 s."""
    at = np.arange(5.0, 1000.0)
    rate = -np.diff(np.log(MODEL.sizes.survival(at)))
    assert 45 <= at[rate.argmax()] <= 55
    assert (np.diff(rate[:40]) > 0).all()
    assert rate[145] < rate.max() / 2
    assert rate[900] < rate.max() / 10


def test_long_jobs_have_the_published_work_and_deviation() -> None:
    """Long jobs lie between 2e5 s and the largest size; with them work and deviation come out as published."""
    sizes, rng = MODEL.sizes, np.random.default_rng(0)
    long = sizes.sample_long(rng, 400_000)
    assert long.min() > 2e5
    assert long.max() <= 2_678_140
    share = 2542 / sizes.jobs.sum()
    assert share * long.mean() == pytest.approx(0.136 * 310.5614, rel=0.005)
    body = sizes.sample(rng, np.repeat(np.arange(10), (sizes.jobs / 20).astype(int)))
    second = np.mean(body**2) * (1 - share) + share * np.mean(long**2)
    assert np.sqrt(second - 310.5614**2) == pytest.approx(8105.39, rel=0.01)


def test_sample_has_the_published_sizes(sample: pl.DataFrame) -> None:
    """Quartiles of a generated sample within 1 %, whole microseconds, and type means without long jobs within 5 %."""
    size = sample["size"]
    for level, target in ((0.25, 49.554), (0.5, 80.280), (0.75, 169.257)):
        assert size.quantile(level) == pytest.approx(target, rel=0.01)
    assert size.min() >= 1e-6
    means = sample.filter(pl.col("size") < 2e5).group_by("type").agg(pl.col("size").mean()).sort("type")["size"]
    np.testing.assert_allclose(means, 0.864 * np.array(MODEL.mean_size), rtol=0.05)


def test_sample_has_the_published_arrivals_and_counts(sample: pl.DataFrame) -> None:
    """Quartiles of arrivals within 1 %, in order, inside the published window; counts of types as Binomial(n, share) would have them."""
    arrival = sample["arrival"]
    assert arrival.is_sorted()
    assert arrival.min() >= 600.17
    assert arrival.max() < 2_678_907.1
    for level, target in ((0.25, 577_906), (0.5, 1_255_278), (0.75, 1_937_091)):
        assert arrival.quantile(level) == pytest.approx(target, rel=0.01)
    counts = sample.group_by("type").len().sort("type")["len"].to_numpy()
    expected = 0.02 * np.array(MODEL.jobs)
    assert ((counts - expected) ** 2 / (0.98 * expected)).sum() < chi2.ppf(0.999, 10)


def test_whole_month_has_exactly_the_published_counts() -> None:
    """Before thinning, batches of each type add up to the published number of jobs, for any seed."""
    for seed in (0, 1):
        batches = borg_module._batches(MODEL, BORG_DAYS * 86_400, np.random.default_rng(seed))
        np.testing.assert_array_equal(np.bincount(batches.type, batches.jobs), MODEL.jobs)
        assert (~np.isnan(batches.size)).sum() == 2542
        assert batches.jobs.max() <= MODEL.batch_high
        assert (np.diff(batches.begin) >= 0).all()


def test_long_jobs_end_within_the_month() -> None:
    """Jobs that did not finish in the window were left out by the paper, so a long job arrives early enough."""
    batches = borg_module._batches(MODEL, BORG_DAYS * 86_400, np.random.default_rng(3))
    long = ~np.isnan(batches.size)
    assert (batches.begin[long] + batches.size[long] <= 2_678_906.02 + 1e-6).all()


def test_thinning_a_month_is_a_smaller_share_of_it() -> None:
    """A share of 0.02 thinned by 1/4 and a share of 0.005 agree: counts per type and hour, batches and sizes.

    Both are samples of one month, so the counts of a window are Poisson-like around the same mean. Were batches thinned as a whole, the
    difference of the counts would vary far more.
    """
    thinned = borg_month(share=0.02, seed=4).thinned(0.25, seed=5).jobs.collect()
    direct = borg_month(share=0.005, seed=4).jobs.collect()
    edges = np.arange(0.0, 2_679_601.0, 21_600.0)
    for kind in range(10):
        a, b = (np.histogram(jobs.filter(pl.col("type") == kind)["arrival"], edges)[0] for jobs in (thinned, direct))
        some = a + b > 20
        statistic = ((a - b)[some] ** 2 / (a + b)[some]).sum()
        assert chi2.ppf(1e-4, some.sum()) < statistic < chi2.ppf(1 - 1e-4, some.sum()), kind
    assert ks_2samp(thinned["size"], direct["size"]).pvalue > 1e-4
    gaps = [np.diff(jobs["arrival"].to_numpy()) for jobs in (thinned, direct)]
    assert ks_2samp(*gaps).pvalue > 1e-4


def test_arrivals_are_bursty_in_batches_of_one_type(sample: pl.DataFrame) -> None:
    """The index of dispersion of one type's arrivals in ten minutes is far above a Poisson process's 1, and grows with the window."""
    times = sample.filter(pl.col("type") == 1)["arrival"].to_numpy()
    found = []
    for window in (600.0, 86_400.0):
        counts = np.histogram(times, np.arange(0.0, 2_679_600.0, window))[0]
        found.append(counts.var() / counts.mean())
    assert found[1] > found[0] > 5


def test_file_holds_the_same_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written in many chunks, in order, the file holds what is generated in memory, and progress reaches the end."""
    monkeypatch.setattr(borg_module, "_CHUNK", 10_000)
    told: list[BorgProgress] = []
    written = write_borg_month(tmp_path / "month.parquet", share=0.002, seed=6, progress=told.append)
    trace = borg_month(share=0.002, seed=6)
    assert open_trace(tmp_path / "month.parquet").jobs.collect().equals(trace.jobs.collect())
    assert written.jobs.collect()["arrival"].is_sorted()
    assert written.span == trace.span == 2_679_600
    assert written.names == MODEL.names
    assert len(told) > 5
    assert told[-1] == BorgProgress(len(trace), len(trace))


def test_any_length_and_seed() -> None:
    """Three days and three months have jobs in proportion; a seed makes the trace, another makes another."""
    for days in (3.0, 93.0):
        trace = borg_month(share=0.001, days=days, seed=7)
        assert len(trace) == pytest.approx(68_909 * days / BORG_DAYS, rel=0.05)
        assert trace.end < days * 86_400
        assert trace.span == days * 86_400
    one, two, other = (borg_month(share=0.001, days=2, seed=seed).jobs.collect() for seed in (1, 1, 2))
    assert one.equals(two)
    assert not one.equals(other)


@pytest.mark.parametrize(("arguments", "where"), [({"share": 0.0}, "share"), ({"share": 1.5}, "share"), ({"days": -1.0}, "days")])
def test_wrong_arguments_are_named(arguments: dict[str, float], where: str) -> None:
    """Each wrong argument is refused by name."""
    with pytest.raises(BadSpec, match=where):
        borg_month(**arguments)  # type: ignore[arg-type]


def test_impossible_sizes_are_refused() -> None:
    """Where no mixture has the published means, the error says what to change."""
    with pytest.raises(Infeasible, match="core_median"):
        borg_month(share=0.001, model=replace(MODEL, core_median=500.0))
