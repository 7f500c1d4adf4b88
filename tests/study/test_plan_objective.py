"""What a plan judges policies by, and limits on single types: values, intervals, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.study.plan_objective import checked_limits, measure_of, time_words, worst_type
from rota.study.plan_policies import design_rotas
from rota.study.plan_words import above_bound
from systems import EXAMPLES, paper_example

OBJECTIVES = ["mean", "slowdown", "p95", "worst-type"]


@pytest.fixture(scope="module")
def results():
    """Two policies on the same jobs."""
    return rota.compare(paper_example(0.7), ["first-fit", "easy"], jobs=200_000, seed=3).results


def test_values_are_those_of_the_result(results):
    """Each objective is the number that its name says; the worst type is found by hand."""
    first = results[0]
    assert measure_of("mean").value(first) == first.mean_response_time
    assert measure_of("slowdown").value(first) == first.relative_response_time
    assert measure_of("p95").value(first) == first.response_time_quantiles[0.95]
    by_size = first.response_time * first.system.service_rate
    assert measure_of("worst-type").value(first) == by_size.max()
    assert worst_type(first) == int(np.argmax(by_size))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_differences_have_intervals_and_signs(results, objective):
    """The difference of two policies is that of their values, in both directions, and wider the more there are of them."""
    measure, (first, second) = measure_of(objective), results
    one, other, many = measure.difference(first, second, 1), measure.difference(second, first, 1), measure.difference(first, second, 10)
    assert one.mean == pytest.approx(measure.value(first) - measure.value(second))
    assert other.mean == pytest.approx(-one.mean)
    assert 0 < measure.interval(first) < 0.2 * measure.value(first)
    assert 0 < one.interval < many.interval < 3 * one.interval


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_intervals_are_those_of_repeated_runs(objective):
    """The interval of one run is of the size of the spread between independent runs, for every objective."""
    measure = measure_of(objective)
    runs = [rota.simulate(paper_example(0.6), "first-fit", jobs=40_000, seed=seed) for seed in range(12)]
    values, widths = np.array([measure.value(run) for run in runs]), np.array([measure.interval(run) for run in runs])
    assert 0.4 * np.median(widths) < 2.2 * values.std(ddof=1) < 2.5 * np.median(widths)


@given(st.floats(0.01, 1e6))
def test_limits_are_in_the_unit_of_the_system(hours):
    """A number is in the system's unit; a duration is converted to it."""
    system = paper_example().replace(time_unit="h")
    assert checked_limits(system, {"type1": hours}) == {"type1": hours}
    assert checked_limits(system, {"type1": f"{hours:.6f} h"})["type1"] == pytest.approx(hours, rel=1e-4)
    assert checked_limits(system, {"type2": f"{60 * hours:.6f}min"})["type2"] == pytest.approx(hours, rel=1e-4)
    assert checked_limits(system, {"type3": "1h30m", "type1": "2 d"}) == {"type3": 1.5, "type1": 48.0}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"type9": 1.0}, r"limits\.type9: no such type \(there are: type1, type2, type3\)"),
        ({"type1": -1.0}, r"limits\.type1: must be a positive time \(got -1\.0\)"),
        ({"type1": 0}, "must be a positive time"),
        ({"type1": float("nan")}, "must be a positive time"),
        ({"type1": True}, "must be a positive time"),
        ({"type1": "12h"}, r"limits\.type1: has a unit, and the system does not say its own"),
        ({"type1": "soon"}, r"limits\.type1: must be a duration: 90 \(units of time\), 90s"),
        ({"type1": "-3"}, "must be a duration"),
        (["type1"], "must be a table by type"),
        ({"type1": -1.0, "type9": 1.0}, "2 problems"),
    ],
)
def test_limits_that_mean_nothing(limits, message):
    """Every problem is named with its place and the rule."""
    with pytest.raises(rota.BadSpec, match=message):
        checked_limits(paper_example(), limits)


def test_an_unknown_objective():
    """It is refused with those that there are, before anything runs."""
    with pytest.raises(rota.BadSpec, match=r"objective: must be one of mean, slowdown, p95, worst-type \(got 'speed'\)"):
        rota.plan(paper_example(0.5), objective="speed")
    with pytest.raises(rota.BadSpec, match="objective: must be one of"):
        rota.plan(paper_example(0.5), objective=3)


def test_times_have_the_unit_that_is_known():
    """Where the system says its unit of time, words do too."""
    system = paper_example()
    assert time_words(system, 42.123, 3.21) == "42.1 ± 3.2"
    assert time_words(system.replace(time_unit="h"), 42.123) == "42.1 h"


@pytest.mark.parametrize(
    ("objective", "limits", "wanted"), [("p95", None, "p95"), ("p95", {"type1": 50.0}, "close"), ("mean", None, "close")]
)
def test_rotas_are_designed_by_the_objective(monkeypatch, objective, limits, wanted):
    """By the exact quantile if that is what the plan goes by and there are no limits, which only means can keep."""
    asked = []

    def design(*arguments, **options):
        asked.append(options.get("objective", "close"))
        return rota.design_policy(*arguments, **options)

    monkeypatch.setattr("rota.study.plan_policies.design_policy", design)
    load = rota.system_load(rota.read_system(EXAMPLES / "paper.toml").scaled(load=0.7))
    design_rotas(load, jobs=2000, seed=1, time_limit_s=1.0, limits=limits, adaptive=rota.FirstFit(), objective=objective)
    assert asked == ["load", wanted]


def test_a_mean_below_a_proved_bound():
    """Few jobs may measure a mean below what is proved: the sentence does not call that a negative part above it."""
    assert above_bound(0.042) == "4% above that"
    assert above_bound(-0.02) == "below that: so few jobs do not tell its mean"
