"""Arrival processes: their rates, index of dispersion, batches, scaling, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

import rota
from rota.model.spec import parse_system
from systems import arrival_processes

SPEC = """\
[server]
cores = 8
[jobs.web]
demand = { cores = 1 }
arrival_rate = 2
arrivals = { process = "bursts", factor = 3, share = 0.2, length = 10 }
mean_size = 1
[jobs.ml]
demand = { cores = 4 }
arrivals = { process = "mmpp", rates = [1.0, 0.1], generator = [[-1.0, 1.0], [3.0, -3.0]], batch = { law = "geometric", mean = 2 } }
mean_size = 0.5
"""


def moments_of_counts(process, rate, t):
    """E[N(t)] and Var N(t) from the stationary phase on, by the moment equations of (N, phase): one exponential of a block matrix."""
    arrivals = process.at(rate)
    D, D1 = arrivals.generator, arrivals.marked
    M = len(D)
    zero = np.zeros((M, M))
    mean, second = (1.0, 1.0) if process.batch is None else (process.batch.moment(1), process.batch.moment(2))
    blocks = np.block([[D, mean * D1, second * D1], [zero, D, 2 * mean * D1], [zero, zero, D]])
    row = np.concatenate([arrivals.stationary, np.zeros(2 * M)]) @ expm(t * blocks)
    first = row[M : 2 * M].sum()
    return first, row[2 * M :].sum() - first**2


@settings(max_examples=100)
@given(process=arrival_processes(), rate=st.floats(0.1, 5))
def test_rate_and_dispersion(process, rate):
    """The rate is the one asked for, and the index of dispersion is the slope of Var N(t)/λ for large t."""
    arrivals = process.at(rate)
    assert arrivals.rate == pytest.approx(rate, rel=1e-12)
    assert arrivals.stationary @ arrivals.generator == pytest.approx(np.zeros(len(arrivals)), abs=1e-10)
    assert arrivals.stationary @ arrivals.relative_arrivals == pytest.approx(0.0, abs=1e-9)
    t = 40 * max(arrivals.time_scale, 0.1)
    (mean, variance), (_, later) = (moments_of_counts(process, rate, x * t) for x in (1, 2))
    assert mean == pytest.approx(rate * t, rel=1e-9)
    assert (later - variance) / (rate * t) == pytest.approx(arrivals.dispersion, rel=1e-6)


@given(process=arrival_processes())
def test_an_unfolded_process_brings_the_same_jobs(process):
    """Without batches, one job after the other: as many jobs per unit of the time that passes."""
    arrivals = process.at(2.0)
    moves, marked, real = arrivals.unfolded
    generator = moves + marked
    generator -= np.diag(generator.sum(axis=1))
    law = np.linalg.lstsq(np.vstack([generator.T, real]), np.append(np.zeros(len(real)), 1.0), rcond=None)[0]
    assert law[real] == pytest.approx(arrivals.stationary, abs=1e-9)
    assert law @ marked.sum(axis=1) == pytest.approx(2.0, rel=1e-9)
    assert generator.sum(axis=1) == pytest.approx(np.zeros(len(real)), abs=1e-9)


def test_dispersion_of_renewal_processes():
    """Times between arrivals that are independent have I = their squared coefficient of variation: Erlang ½, hyperexponential above 1."""
    erlang = rota.MAP(d0=((-2.0, 2.0), (0.0, -2.0)), d1=((0.0, 0.0), (2.0, 0.0)))
    assert erlang.rate == pytest.approx(1.0)
    assert erlang.dispersion(7.0) == pytest.approx(0.5)
    p, a, b = 0.2, 0.5, 4.0
    mixed = rota.MAP(d0=((-a, 0.0), (0.0, -b)), d1=((a * p, a * (1 - p)), (b * p, b * (1 - p))))
    mean, second = p / a + (1 - p) / b, 2 * (p / a**2 + (1 - p) / b**2)
    assert mixed.rate == pytest.approx(1 / mean)
    assert mixed.dispersion(1.0) == pytest.approx(second / mean**2 - 1)


def test_dispersion_of_bursts_and_batches():
    """1 + 2pq(λ₁−λ₂)²τ/λ for two phases, which grows with the rate; E[B²]/E[B] for batches, which does not."""
    bursts = rota.Bursts(factor=4.0, share=0.2, length=10.0)
    assert bursts.quiet_factor == pytest.approx(0.25)
    assert bursts.at(3.0).time_scale == pytest.approx(8.0)
    assert bursts.dispersion(3.0) == pytest.approx(1 + 2 * 0.2 * 0.8 * (12 - 0.75) ** 2 * 8.0 / 3.0)
    assert bursts.dispersion(6.0) - 1 == pytest.approx(2 * (bursts.dispersion(3.0) - 1))
    for batch in (rota.GeometricBatch(mean=3.0), rota.GivenBatch(sizes=(1, 5), weights=(3.0, 1.0))):
        process = rota.Poisson(batch=batch)
        assert process.dispersion(0.3) == pytest.approx(process.dispersion(30.0)) == pytest.approx(batch.moment(2) / batch.moment(1))


@pytest.mark.parametrize("batch", [rota.GeometricBatch(mean=2.5), rota.GivenBatch(sizes=(1, 2, 7), weights=(1.0, 2.0, 3.0))])
def test_samples_of_batches(batch):
    """Samples have the moments of the law; so has the chain of its steps."""
    sizes = batch.sample(np.random.default_rng(1), 200_000)
    assert sizes.min() >= 1
    assert sizes.mean() == pytest.approx(batch.moment(1), rel=0.01)
    assert (sizes.astype(float) ** 2).mean() == pytest.approx(batch.moment(2), rel=0.02)
    begin, go = batch.unpacked
    steps = np.linalg.inv(np.eye(len(begin)) - go)
    further = begin @ steps  # expected visits: the mean number of further jobs
    assert 1 + further.sum() == pytest.approx(batch.moment(1))
    assert begin @ (2 * steps @ steps - steps) @ np.ones(len(begin)) + 1 + 2 * further.sum() == pytest.approx(batch.moment(2))


# ------------------------------------------------------------------------------------------------------------ in a system


def test_a_spec_with_arrivals_becomes_a_system():
    """Processes land in `arrivals`; an mmpp without arrival_rate says its own, batches counted; the file comes back."""
    system = parse_system(SPEC)
    assert system.arrivals[0] == rota.Bursts(factor=3.0, share=0.2, length=10.0)
    assert system.arrival_rate == pytest.approx([2, 2 * (0.75 * 1.0 + 0.25 * 0.1)])
    assert system.bursty == ("web", "ml")
    assert system.job_types[0].arrivals == system.arrivals[0]
    assert parse_system(system.to_toml()) == system
    assert 'arrivals = { process = "bursts", factor = 3.0, share = 0.2, length = 10.0 }' in system.to_toml()


def test_scaling_keeps_the_time_scale_of_bursts():
    """Rates are multiplied and phases change as fast as before; a MAP goes faster as a whole."""
    erlang = rota.MAP(d0=((-2.0, 2.0), (0.0, -2.0)), d1=((0.0, 0.0), (2.0, 0.0)))
    system = rota.System([4], [[1], [2]], [0.5, 1.0], [1, 1], arrivals=[rota.Bursts(factor=2.0, share=0.3, length=5.0), erlang])
    faster = system.scaled(factor=2.0)
    assert faster.arrivals == system.arrivals
    for i, change in enumerate((1.0, 2.0)):
        before, after = (each.arrivals[i].at(each.arrival_rate[i]) for each in (system, faster))
        assert after.rate == pytest.approx(2 * before.rate)
        assert after.moves == pytest.approx(change * before.moves)
        assert after.marked == pytest.approx(2 * before.marked)


def test_systems_differ_by_their_arrivals():
    """Equal systems have equal arrivals; with Poisson arrivals one is as if none were given; a type that never arrives is not bursty."""
    plain = rota.System([4], [[1]], [1.0], [1.0])
    bursts = plain.replace(arrivals=[rota.Bursts(factor=2.0, share=0.3, length=5.0)])
    assert bursts != plain
    assert bursts == plain.replace(arrivals=[rota.Bursts(factor=2.0, share=0.3, length=5.0)])
    assert bursts.with_poisson_arrivals() == plain == plain.replace(arrivals=[rota.Poisson()])
    assert bursts.bursty == ("type1",)
    assert bursts.scaled(factor=0.0).bursty == () == plain.bursty
    assert plain.dispersion.tolist() == [1.0]
    assert np.isnan(bursts.scaled(factor=0.0).dispersion[0])


def test_a_notebook_shows_the_processes():
    """The table of a system has a column for arrivals, if some are not Poisson."""
    system = parse_system(SPEC)
    assert "<td" in system._repr_html_()
    assert "arrivals" in system._repr_html_()
    assert "mmpp" in system._repr_html_()
    assert "arrivals" not in system.with_poisson_arrivals()._repr_html_()


@pytest.mark.parametrize(
    ("old", "new", "place", "line", "rule"),
    [
        ("factor = 3", "factor = 30", "jobs.web.arrivals", 6, "factor × share must be at most 1"),
        ("factor = 3", "factor = 1", "jobs.web.arrivals.factor", 6, "greater than 1"),
        ("share = 0.2", "share = 1.0", "jobs.web.arrivals.share", 6, "less than 1"),
        ("length = 10", "length = 0", "jobs.web.arrivals.length", 6, "greater than 0"),
        ("length = 10", "long = 10", "jobs.web.arrivals.long", 6, "not a known key"),
        ('process = "bursts", ', "", "jobs.web.arrivals", 6, 'needs process = "…"'),
        ('"bursts"', '"burst"', "jobs.web.arrivals", 6, "none of 'poisson', 'bursts', 'mmpp', 'map'"),
        ("arrival_rate = 2\n", "", "jobs.web.arrival_rate", 3, "is missing"),
        ("mean = 2", "mean = 0.5", "jobs.ml.arrivals.batch.mean", 10, "at least 1"),
        ('"geometric"', '"binomial"', "jobs.ml.arrivals.batch", 10, "none of 'geometric', 'given'"),
        ('law = "geometric", mean = 2', 'law = "given", sizes = [0]', "jobs.ml.arrivals.batch.sizes.0", 10, "at least 1"),
        ("[[-1.0, 1.0], [3.0, -3.0]]", "[[-1.0, 1.0]]", "jobs.ml.arrivals", 10, "generator must be 2 × 2"),
        ("[[-1.0, 1.0], [3.0, -3.0]]", "[[-1.0, 1.0], [0.0, 0.0]]", "jobs.ml.arrivals", 10, "not reached from every other"),
        ("[[-1.0, 1.0], [3.0, -3.0]]", "[[-1.0, 2.0], [3.0, -3.0]]", "jobs.ml.arrivals", 10, "sum to 0"),
        ("rates = [1.0, 0.1]", "rates = [0, 0]", "jobs.ml.arrivals", 10, "need a positive one"),
        ("rates = [1.0, 0.1]", "rates = []", "jobs.ml.arrivals.rates", 10, "at least 1 entries"),
    ],
)
def test_problems_of_a_spec(old, new, place, line, rule):
    """Every mistake is named with its place, its line and the rule."""
    with pytest.raises(rota.BadSpec) as caught:
        parse_system(SPEC.replace(old, new), "server.toml")
    found = [problem for problem in caught.value.problems if problem.place == place]
    assert found, caught.value
    assert found[0].line == line
    assert rule in found[0].rule


def test_problems_of_matrices():
    """A MAP is checked as an MMPP is."""
    good = {"d0": ((-2.0, 1.0), (0.0, -2.0)), "d1": ((1.0, 0.0), (2.0, 0.0))}
    rota.MAP(**good)
    for change, rule in [
        ({"d1": ((1.0, 0.0),)}, "d1 must be 2 × 2"),
        ({"d0": ((-2.0, 1.0),)}, "d0 must be square"),
        ({"d1": ((1.0, 0.0), (1.0, 0.0))}, "sum to 0"),
        ({"d1": ((1.0, 0.0), (3.0, -1.0))}, "may be negative on its diagonal only"),
        ({"d0": ((-1.0, 1.0), (1.0, -1.0)), "d1": ((0.0, 0.0), (0.0, 0.0))}, "d1 needs a positive entry"),
        ({"d0": ((-1.0, 0.0), (0.0, -2.0)), "d1": ((1.0, 0.0), (2.0, 0.0))}, "not reached from every other one"),
    ]:
        with pytest.raises(rota.BadSpec, match=rule):
            rota.MAP(**good | change)


def test_wrong_arguments():
    """What is no list of processes, one per type, is refused with an example."""
    for arrivals, rule in [
        ([rota.Poisson()] * 2, "needs 1 entries"),
        (rota.Poisson(), "must be a list of arrival processes"),
        ("bursts", "must be a list of arrival processes"),
        ([3.0], "must be an arrival process"),
    ]:
        with pytest.raises(rota.BadSpec, match=rule):
            rota.System([4], [[1]], [1.0], [1.0], arrivals=arrivals)
    with pytest.raises(rota.BadSpec, match=r"takes its parameters by name: .*factor=…, share=…, length=…"):
        rota.Bursts(3.0)
