"""Theorem ht: the constant against MaxWeight, its two sides against exact chains and simulation, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import rota
from rota.analysis import max_weight_collapse
from rota.capacity import active_facets
from rotas import paper_case
from systems import paper_example, small_systems
from truncated import stationary

# Small jobs and large ones on two units: schedules (2, 0) and (0, 1), one facet with prices (½, 1).
SMALL_AND_LARGE = [rota.System([2], [[1], [2]], [0.5, 0.5], mu) for mu in ([1.0, 1.0], [1.0, 3.0], [5.0, 1.0])]


def max_weight_queues(system, levels):
    """E[Q] of MaxWeight for two types, by its plain truncated chain: at every state the schedule u ≤ Q of largest Σ u_i Q_i."""
    schedules = rota.list_schedules(system)
    q = np.stack(np.meshgrid(np.arange(levels), np.arange(levels), indexing="ij"), axis=-1).reshape(-1, 2)
    served = np.minimum(schedules, q[:, None])
    u = served[np.arange(len(q)), (served * q[:, None]).sum(axis=-1).argmax(axis=1)]
    here = np.arange(len(q))
    parts = []
    for i, step in enumerate((levels, 1)):
        up, down = q[:, i] < levels - 1, u[:, i] > 0
        parts.append((here[up], here[up] + step, np.full(up.sum(), system.arrival_rate[i])))
        parts.append((here[down], here[down] - step, system.service_rate[i] * u[down, i]))
    rows, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    law = stationary(sp.csc_array((values, (rows, columns)), shape=(len(q),) * 2)).reshape(levels, levels)
    assert max(law[-1].sum(), law[:, -1].sum()) < 1e-8
    return np.array([np.arange(levels) @ law.sum(axis=1), np.arange(levels) @ law.sum(axis=0)])


@pytest.mark.parametrize("servers", [1, 3])
def test_one_type(servers):
    """One type on k servers: MaxWeight and the rota are the same queue, (1−ρ) E[Q] → 1 and C = 1."""
    found = rota.heavy_traffic_ratio(rota.System([servers], [[1]], [0.2], [2.0]), rota.MSR([[servers]]))
    assert (found.ratio, found.msr, found.max_weight) == pytest.approx((1, 1, 1), rel=1e-9)
    assert found.tight


def test_types_that_are_alike():
    """K like types on one server: MaxWeight is an M/M/1 queue of them all; the rota, switching fast, is K queues, so C → K."""
    system = rota.System([1], [[1]] * 3, [0.2] * 3, [1.0] * 3)
    found = rota.heavy_traffic_ratio(system, rota.MSR(np.eye(3, dtype=int), [1 / 3] * 3, "full", 1e9))
    assert found.max_weight == pytest.approx(1, rel=1e-9)
    assert found.ratio == pytest.approx(3, rel=1e-6)


@pytest.mark.parametrize("system", SMALL_AND_LARGE)
def test_the_collapse_is_the_limit_of_max_weight(system):
    """Within one facet the bound is the limit of (1−ρ) Σ E[Q_i] under MaxWeight.

    Its exact chain comes within 3 % of it, extrapolated to ρ = 1 from 0.85 and 0.925, and its queues to the ray of the prices.
    """
    limit = max_weight_collapse(system, rota.system_load(system))
    assert limit.facets == 1
    near, nearer = ((1 - load) * max_weight_queues(system.scaled(load=load), levels) for load, levels in ((0.85, 120), (0.925, 240)))
    extrapolated = 2 * nearer - near
    assert extrapolated.sum() == pytest.approx(limit.total, rel=0.03)
    assert extrapolated == pytest.approx(limit.queues, rel=0.1)
    assert limit.queues[1] / limit.queues[0] == pytest.approx(2, rel=1e-9)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("system", SMALL_AND_LARGE)
def test_resource_pooling_bounds_max_weight_at_every_load(system, load):
    """Σ (y_i/μ_i) E[Q_i] ≥ Σ λ_i (y_i/μ_i)²/(1−ρ) for the exact chain of MaxWeight: the inequality that the bound rests on."""
    busy = system.scaled(load=load)
    (price,) = active_facets(busy, rota.system_load(busy)).extremes()
    weight = price / busy.service_rate
    assert weight @ max_weight_queues(busy, 160) >= busy.arrival_rate @ weight**2 / (1 - load)


@given(small_systems())
@settings(max_examples=40)
def test_the_prices_prove_the_load(system):
    """Every corner has y ≥ 0, y·u ≤ 1 for all schedules and y·(λ⊘μ) = ρ; the queues of the bound give the boundary the largest weight."""
    best = rota.system_load(system)
    facets = active_facets(system, best)
    schedules = rota.list_schedules(system)[:, facets.arriving]
    for y in facets.extremes():
        assert (y >= 0).all()
        assert (schedules @ y).max() <= 1 + 1e-7
        assert y @ system.offered_work[facets.arriving] == pytest.approx(best.load, rel=1e-7)
    q = max_weight_collapse(system, best).queues
    assert (rota.list_schedules(system) @ q).max() <= q @ system.offered_work / best.load * (1 + 1e-6)


@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_the_msr_side_is_the_limit(alpha):
    """The example's pMSR: (1−ρ) Σ E[Q_i], exactly, tends to `msr` as ρ → 1; the bound on C is their quotient."""
    system, policy = paper_case(0.9, "full", alpha)
    found = rota.heavy_traffic_ratio(system, policy)
    near = rota.analyze(system.scaled(load=0.9999), policy)
    assert 1e-4 * near.exact.sum() == pytest.approx(found.msr, rel=1e-3)
    assert found.msr == pytest.approx(3 + 1.75 / alpha, rel=1e-6)  # κ = ¼, 1 and ½ (docs/explanation/exact-analysis.md)
    assert found.ratio == found.msr / found.max_weight
    assert not found.tight  # the arrivals grow against an edge of the region, where two facets meet


def test_a_type_with_slots_to_spare_does_not_count():
    """Slots beyond the need of a type at the boundary leave its queue finite in the limit."""
    system = rota.System([3], [[1], [2]], [0.1, 0.5], [1.0, 1.0])
    policy = rota.MSR([[1, 1]])
    assert rota.system_load(system).load == pytest.approx(0.5)
    found = rota.heavy_traffic_ratio(system, policy)
    assert found.msr == pytest.approx(1, rel=1e-9)


def test_only_the_mix_counts():
    """The ratio is that of the direction in which arrivals grow: the same from any load, also from above 1."""
    _, policy = paper_case(0.9)
    values = [rota.heavy_traffic_ratio(paper_example(load), policy).ratio for load in (0.2, 0.9, 1.7)]
    assert values == pytest.approx([values[0]] * 3, rel=1e-6)


def test_by_simulation():
    """The example at load 0.9: MaxWeight simulated is above its lower bound, so the ratio is below the C that is proved."""
    system, policy = paper_case(0.5)
    proved = rota.heavy_traffic_ratio(system, policy)
    found = rota.heavy_traffic_ratio(system, policy, max_weight="simulation", load=0.9, jobs=400_000, seed=3)
    assert (found.method, found.load) == ("simulation", 0.9)
    assert found.msr == pytest.approx(0.1 * rota.analyze(paper_example(0.9), policy).exact.sum(), rel=1e-9)
    assert 0 < found.interval < 0.15 * found.ratio
    assert found.ratio + found.interval < proved.ratio


def test_the_words_say_which():
    """The explanation names the method and, for the bound, whether it is the limit."""
    system, policy = paper_case(0.5)
    assert "at most 4.06 times that of MaxWeight" in rota.heavy_traffic_ratio(system, policy).explain()
    assert "a lower bound, state-space collapse onto several facets" in rota.heavy_traffic_ratio(system, policy).explain()
    one = rota.heavy_traffic_ratio(SMALL_AND_LARGE[0], rota.design_policy(SMALL_AND_LARGE[0].scaled(load=0.9), "full", objective="load"))
    assert "tends to" in one.explain()
    assert "onto one facet" in one.explain()
    simulated = rota.heavy_traffic_ratio(system, policy, max_weight="simulation", load=0.5, jobs=20_000)
    assert "MaxWeight by simulation" in simulated.explain()
    assert "At load 0.5" in simulated.explain()


def test_what_is_refused():
    """A policy that switches at a cost is not stable up to load 1; arrivals must be; options have their values."""
    system, policy = paper_case(0.5)
    with pytest.raises(rota.Infeasible, match=r"stable up to load 0\.93.* only.*loses no time on switching"):
        rota.heavy_traffic_ratio(system, policy.replace(preemption="none", switching_rate=0.06))
    with pytest.raises(rota.Infeasible, match="no jobs arrive"):
        rota.heavy_traffic_ratio(paper_example(0.0), policy)
    with pytest.raises(rota.Infeasible, match="analysis is for MSR policies"):
        rota.heavy_traffic_ratio(system, "max-weight")
    with pytest.raises(rota.BadSpec, match='must be "collapse" or "simulation"'):
        rota.heavy_traffic_ratio(system, policy, max_weight="exact")
    with pytest.raises(rota.BadSpec, match="load: must be between 0 and 1"):
        rota.heavy_traffic_ratio(system, policy, max_weight="simulation", load=1.0)
    many = rota.System([200] * 3, np.random.default_rng(0).integers(1, 20, (8, 3)), [1.0] * 8, [1.0] * 8)
    with pytest.raises(rota.Infeasible, match=r"more than 20,000 .*max_weight=\"simulation\""):
        rota.heavy_traffic_ratio(many, rota.design_policy(many.scaled(load=0.5), "full", switching_rate=1.0, objective="load"))
