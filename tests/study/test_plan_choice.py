"""The rule of the recommendation, on results made for it: objectives, limits, ties, and what is said."""

from dataclasses import replace

import numpy as np
import pytest

import rota
from rota.simulation.result import RELATIVE, RESPONSES
from rota.study.plan_choice import choose
from rota.study.plan_growth import Limit
from systems import compared, paper_example

WIDE = Limit(0.95, 0.96, False)


@pytest.fixture(scope="module")
def base():
    """A run at low load, whose intervals are narrow."""
    return rota.simulate(paper_example(0.4), "first-fit", jobs=200_000, seed=2)


def made(base, *, mean=1.0, slowdown=1.0, p95=1.0, types=(1.0, 1.0, 1.0)):
    """The run with its times multiplied, each by a number of its own."""
    batches = base.batches.copy()
    batches[:, RESPONSES] *= mean
    batches[:, RELATIVE] *= slowdown
    quantiles = {level: value * (p95 if level == 0.95 else 1.0) for level, value in base.response_time_quantiles.items()}
    return replace(
        base,
        batches=batches,
        mean_response_time=base.mean_response_time * mean,
        interval=base.interval * mean,
        response_time_quantiles=quantiles,
        response_time=base.response_time * np.array(types),
        response_time_interval=base.response_time_interval * np.array(types),
    )


@pytest.fixture(scope="module")
def results(base):
    """Four policies, each the best by another objective."""
    return {
        "fcfs": made(base, mean=0.6, slowdown=2.0, p95=3.0, types=(0.8, 0.9, 4.0)),
        "first-fit": made(base, slowdown=0.6, p95=2.0, types=(1.0, 3.0, 1.0)),
        "easy": made(base, mean=2.0, p95=0.6, types=(1.5, 1.5, 1.5)),
        "nMSR": made(base, mean=1.5, slowdown=1.5, p95=1.5, types=(0.5, 0.5, 0.5)),
    }


@pytest.mark.parametrize(
    ("objective", "best", "title"),
    [
        ("mean", "fcfs", "lowest mean response time of all"),
        ("slowdown", "first-fit", "lowest mean response time by the mean size of the type of all"),
        ("p95", "easy", "lowest 95% quantile of the response time of all"),
        ("worst-type", "nMSR", "lowest largest mean response time"),
    ],
)
def test_the_objective_decides(results, objective, best, title):
    """Of the same results, each objective recommends the policy that is best by it, and the reason names it."""
    choice = choose(compared(results), dict.fromkeys(results, WIDE), 0.4, objective=objective)
    assert choice.name == best
    assert title in choice.reason
    assert (choice.excluded, choice.keeps_limits) == ({}, True)


def test_a_limit_excludes_who_may_break_it(results):
    """The best policy on average takes four times as long with type3: with a limit it is out, and the next is recommended."""
    limit = 2.0 * results["nMSR"].response_time[2] / 0.5
    choice = choose(compared(results), dict.fromkeys(results, WIDE), 0.4, limits={"type3": limit})
    assert choice.name == "first-fit"
    assert list(choice.excluded) == ["fcfs"]
    assert choice.excluded["fcfs"].startswith("'type3' takes ")
    assert "the limit is" in choice.excluded["fcfs"]
    assert "of those that keep the limits" in choice.reason
    assert f"Excluded by the limits: fcfs ({choice.excluded['fcfs']})." in choice.reason
    assert choice.keeps_limits


def test_an_interval_that_reaches_the_limit_is_not_enough(results):
    """A mean below the limit is no proof that it is kept: the upper end of its interval must be below it too."""
    first = results["first-fit"]
    mean, interval = first.response_time[0], first.response_time_interval[0]
    near = choose(
        compared({"first-fit": first, "nMSR": results["nMSR"]}), dict.fromkeys(results, WIDE), 0.4, limits={"type1": mean + interval / 2}
    )
    assert near.name == "nMSR"
    assert near.reason.startswith("It is the only one that is sure to keep the limits.")
    assert "too near to the limit of" in near.excluded["first-fit"]
    assert choose(
        compared({"first-fit": first, "nMSR": results["nMSR"]}), dict.fromkeys(results, WIDE), 0.4, limits={"type1": mean + interval}
    ).name == ("first-fit")


def test_if_none_keeps_the_limits_the_nearest_is_named(results):
    """Limits that no policy keeps: the one whose worst type is least above its limit is recommended, in words of its own."""
    limits = {"type1": 1e-3, "type3": 1e-3}
    choice = choose(compared(results), dict.fromkeys(results, WIDE), 0.4, limits=limits)
    assert choice.name == "nMSR"
    assert not choice.keeps_limits
    assert set(choice.excluded) == set(results)
    assert choice.reason.startswith("Under it 'type1' takes ")
    assert choice.reason.count("fcfs (") == 1
    assert "No policy can keep a limit below the mean size, which is 1 for 'type1'." in choice.reason


def test_the_nearest_is_not_the_luckiest(base, results):
    """A low mean with a wide interval is not nearer to a limit than a mean that is known well."""
    lucky = replace(results["nMSR"], response_time_interval=100 * base.response_time)
    choice = choose(compared({"easy": results["easy"], "nMSR": lucky}), dict.fromkeys(results, WIDE), 0.4, limits={"type1": 0.1})
    assert choice.name == "easy"


def test_a_type_without_a_mean_keeps_no_limit(base, results):
    """Too few jobs of a type: nobody knows whether its limit holds."""
    hidden = replace(base, response_time=np.array([np.nan, *base.response_time[1:]]))
    choice = choose(compared({"easy": hidden, "nMSR": results["nMSR"]}), dict.fromkeys(results, WIDE), 0.4, limits={"type1": 1e9})
    assert choice.excluded == {"easy": "too few jobs of 'type1' for a mean"}


def test_equal_policies_are_not_told_apart(base):
    """Eight policies with the same mean and noise of their own: the simplest is recommended, however lucky another one was."""
    rng, wins, names = np.random.default_rng(5), 0, ["fcfs", "first-fit", "easy", "max-weight-np", "max-weight", "nMSR+backfill", "nMSR"]
    n, scale = len(base.batches), base.batches[:, RESPONSES].mean()
    for _ in range(40):
        results = {}
        for name in names:
            batches = base.batches.copy()
            batches[:, RESPONSES] = scale * (1 + 0.2 * rng.standard_normal(n))
            mean = float(batches[:, RESPONSES].sum() / batches[:, 0].sum())
            results[name] = replace(base, batches=batches, mean_response_time=mean)
        wins += choose(compared(results), dict.fromkeys(names, WIDE), 0.4).name == "fcfs"
    assert wins >= 36
