"""What bursts cost, in a plan."""

import dataclasses

import pytest

import rota
from rota.study.plan_bursts import BurstCost, burst_cost

BURSTS = rota.System(
    [8],
    [[1], [4]],
    [2.0, 0.6],
    [1.0, 1.0],
    names=["web", "ml"],
    arrivals=[rota.Bursts(factor=3.0, share=0.2, length=10.0), rota.Poisson(batch=rota.GeometricBatch(mean=2.0))],
)


def test_the_cost_is_measured_beside_poisson_arrivals():
    """The same policy, rates and seed without bursts: the fields are those of the two runs, and the type is the one that spreads most."""
    result = rota.simulate(BURSTS, "first-fit", jobs=20_000, seed=1)
    cost = burst_cost(BURSTS, result, jobs=20_000, seed=1)
    beside = rota.simulate(BURSTS.with_poisson_arrivals(), "first-fit", jobs=20_000, seed=1)
    assert (cost.mean_response_time, cost.poisson) == (result.mean_response_time, beside.mean_response_time)
    assert cost.type == "web"
    assert cost.dispersion == pytest.approx(33.0)
    assert cost.ratio > 1.2
    assert cost.fields()["ratio"] == cost.ratio
    assert f"{cost.ratio:.2f} times as long" in cost.words()


def test_poisson_arrivals_cost_nothing():
    """A system without bursts has no such cost, and takes no further simulation."""
    plain = BURSTS.with_poisson_arrivals()
    result = rota.simulate(plain, "first-fit", jobs=5000, seed=1)
    assert burst_cost(plain, result, jobs=5000, seed=1) is None


def test_words():
    """One sentence, whichever way it goes."""
    cost = BurstCost(3.0, 2.0, 0.1, "web", 33.0)
    assert cost.words() == (
        "With Poisson arrivals of the same rates jobs would take 2 ± 0.1; as they arrive, 1.50 times as long "
        "(the index of dispersion is 33 for 'web')."
    )
    assert "25% shorter" in dataclasses.replace(cost, mean_response_time=1.5).words()
    assert "about the same" in dataclasses.replace(cost, mean_response_time=2.05).words()
    assert "could not be measured" in dataclasses.replace(cost, poisson=float("nan")).words()


def test_a_plan_says_what_bursts_cost():
    """The sentence is in the explanation of a plan of a bursty system, and its rota is analysed with the bursts."""
    made = rota.plan(BURSTS, jobs=5000, tuning_s=0.5)
    assert made.bursts.words() in made.explain()
    assert made.bursts.mean_response_time == made.results[made.recommended_name].mean_response_time
    assert made.analysis.system.bursty == ("web", "ml")
