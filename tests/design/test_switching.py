"""The choice of the switching rate: by every yardstick, with its guarantee, and the limit of ever faster switching."""

import importlib
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rota
from rota.design import choose_switching_rate, fast_switching_limit, find_design
from rota.design.switching import measure
from rota.policy import MSR
from rota.process import TIMER, build_process
from rotas import paper_case, systems_and_rotas
from systems import EXAMPLES, paper_example

YARDSTICKS = ("exact", "prediction", "upper", "lower")


def mean_response_time(system, policy, switching_rate, by="exact"):
    """E[T] at a switching rate, infinite if unstable."""
    return measure(rota.analyze(system, policy.replace(switching_rate=switching_rate), sizes="exponential"), by)


def rates_up_to(system, policy, points):
    """Switching rates over eight decades, up to ten times the fastest completion or setup."""
    process = build_process(system, policy)
    return 10 * process.rate[process.trigger != TIMER].max() * np.geomspace(1e-8, 1, points)


# ------------------------------------------------------------------------------------------------------------ nMSR and sMSR


@pytest.mark.parametrize("by", YARDSTICKS)
@pytest.mark.parametrize("preemption", ["none", "setup"])
def test_least_by_its_yardstick(preemption, by):
    """On the example the choice is the least of a fine grid by the yardstick that was asked for, and reports that value."""
    system, policy = paper_case(0.9, preemption)
    choice = choose_switching_rate(system, policy, by=by)
    assert (choice.by, choice.limit) == (by, None)
    assert choice.policy == policy.replace(switching_rate=choice.rate)
    assert choice.mean_response_time == mean_response_time(system, policy, choice.rate, by)
    others = [
        mean_response_time(system, policy, rate, by)
        for rate in [*rates_up_to(system, policy, 60), *choice.rate * np.linspace(0.9, 1.1, 21)]
    ]
    assert min(others) >= choice.mean_response_time * (1 - 1e-9)


def test_exact_by_default():
    """Small processes are tuned on the exact E[T], those of more than a thousand states on the prediction."""
    assert choose_switching_rate(*paper_case(0.9, "none")).by == "exact"
    n = 600
    system = rota.System([n], [[1], [1]], [0.4 * n, 0.4 * n], [1, 1])
    policy = MSR([[0, n], [n, 0]], [0.5, 0.5], "none", 1.0)
    assert len(build_process(system, policy)) == 2 * n + 2
    assert choose_switching_rate(system, policy).by == "prediction"


@settings(max_examples=20)
@given(systems_and_rotas("none", loop=True) | systems_and_rotas("setup", loop=True), st.sampled_from(YARDSTICKS))
def test_the_guarantee_holds(case, by):
    """By any yardstick, the exact E[T] at the chosen rate is within the guarantee of the exact best over eight decades of rates."""
    system, policy = case
    assume(len(policy.weights) > 1)
    try:
        choice = choose_switching_rate(system, policy, by=by)
    except rota.Unstable:
        assume(False)
    best = min(mean_response_time(system, policy, rate) for rate in rates_up_to(system, policy, 30))
    assert mean_response_time(system, policy, choice.rate) <= (1 + choice.guarantee) * best


def test_the_guarantee_where_the_lower_bound_is_zero():
    """At low load the theorem's lower bound says nothing; jobs take their service time all the same, so the guarantee is finite."""
    system = rota.System([2], [[2], [2]], [0.125, 0.125], [1, 1])
    policy = MSR([[0, 1], [1, 0]], [0.5, 0.5], "none", 1.0)
    choice = choose_switching_rate(system, policy, by="prediction")
    assert rota.analyze(system, choice.policy).lower.tolist() == [0, 0]
    best = choose_switching_rate(system, policy).mean_response_time
    assert mean_response_time(system, policy, choice.rate) / best - 1 < choice.guarantee < 10


def test_a_minimum_far_from_that_of_the_prediction():
    """At low load the prediction can lead astray by more than the search looks around; the exact minimum is found all the same."""
    system = rota.System([6, 3], [[2, 1]], [0.06033203], [0.98967508])
    policy = MSR([[1], [3]], [5 / 9, 4 / 9], "setup", 1.0, setup_rate=1.1160525876385714)
    exact, predicted = (choose_switching_rate(system, policy, by=by) for by in ("exact", "prediction"))
    assert exact.rate < 0.6 * predicted.rate
    best = min(mean_response_time(system, policy, rate) for rate in rates_up_to(system, policy, 100))
    assert exact.mean_response_time <= best * (1 + 1e-9)


@pytest.mark.parametrize("preemption", ["full", "none", "setup"])
def test_a_faster_clock_for_a_faster_world(preemption):
    """With all rates 8 times as high, the best switching rate is 8 times as high and E[T] an eighth."""
    slow, policy = paper_case(0.9, preemption)
    fast = slow.replace(arrival_rate=8 * slow.arrival_rate, service_rate=8 * slow.service_rate)
    faster = policy.replace(setup_rate=80.0) if preemption == "setup" else policy
    one, other = choose_switching_rate(slow, policy), choose_switching_rate(fast, faster)
    assert other.rate == pytest.approx(8 * one.rate, rel=1e-4)
    assert other.mean_response_time == pytest.approx(one.mean_response_time / 8, rel=1e-8)


@pytest.mark.parametrize("preemption", ["full", "none", "setup"])
def test_the_rate_of_the_policy_does_not_matter(preemption):
    """Whatever rate the policy had, the choice is the same."""
    choices = [choose_switching_rate(*paper_case(0.9, preemption, rate)) for rate in (1e-3, 50.0)]
    assert choices[0].policy == choices[1].policy


def test_a_generator_of_its_own():
    """A policy with a generator keeps its shape; only its scale is chosen."""
    system = paper_example(0.7)
    candidates = [[0, 0, 2], [1, 1, 1], [1, 4, 0]]
    shape = np.array([[-3.0, 1.0, 2.0], [1.0, -1.5, 0.5], [2.0, 1.0, -3.0]])
    policy = MSR(candidates, preemption="none", generator=shape)
    choice = choose_switching_rate(system, policy)
    scale = choice.rate / policy.switching_rate
    assert choice.policy.generator == pytest.approx(scale * shape, rel=1e-12)
    assert choice.mean_response_time <= min(mean_response_time(system, policy, choice.rate * factor) for factor in (0.5, 0.9, 1.1, 2))


def test_sizes_are_taken_as_exponential():
    """Lognormal sizes give the choice of exponential ones with their means."""
    system, policy = paper_case(0.9, "none")
    heavy = system.replace(sizes=[rota.LogNormal(mean=1.0, cv=3.0)] * 3)
    assert choose_switching_rate(heavy, policy) == choose_switching_rate(system, policy)


# ------------------------------------------------------------------------------------------------------------ where exact values end


@pytest.mark.parametrize("preemption", ["none", "setup"])
@pytest.mark.parametrize("name", ["vm", "web"])
def test_close_to_load_one(name, preemption):
    """At load 0.9999 the exact values converge, and lie between the bounds at the rate they choose."""
    system = rota.read_system(EXAMPLES / f"{name}.toml").scaled(load=0.9999)
    policy = rota.design_policy(system, preemption, setup_rate=10.0 if preemption == "setup" else None, objective="load")
    answer = rota.analyze(system, policy, sizes="exponential")
    assert answer.has_exact
    assert answer.accuracy < 1e-6
    assert (answer.lower <= answer.exact * (1 + 1e-9)).all()
    assert (answer.exact <= answer.upper * (1 + 1e-9)).all()


@pytest.fixture
def no_exact_values(monkeypatch):
    """Exact values that never converge."""

    def fail(*arguments, **options):
        raise rota.NotConverged("the first-passage equation has residual 1.0e-03, more than 1e-11")

    monkeypatch.setattr(importlib.import_module("rota.analysis.methods"), "solve_qbd", fail)
    monkeypatch.setattr(importlib.import_module("rota.analysis.analyze"), "mean_queues", fail)  # of small processes


@pytest.mark.parametrize("preemption", ["full", "none", "setup"])
def test_the_prediction_where_exact_values_do_not_converge(no_exact_values, preemption):
    """Where exact values do not converge the prediction decides and the remark says so; who insists on them is told."""
    system, policy = paper_case(0.9, preemption)
    choice = choose_switching_rate(system, policy)
    assert choice.by == "prediction"
    assert choice.remark.startswith("exact values did not converge (the first-passage equation has residual")
    assert choice.remark.endswith("the prediction decided")
    if preemption != "full":
        assert choice.rate == choose_switching_rate(system, policy, by="prediction").rate
    design = find_design(system, preemption, setup_rate=10.0 if preemption == "setup" else None, time_limit_s=600.0, objective="load")
    assert len(design.remarks) == 1
    assert "did not converge" in design.remarks[0]
    with pytest.raises(rota.NotConverged, match="choose the switching rate by the prediction or a bound"):
        choose_switching_rate(system, policy, by="exact")


def test_exact_by_cost():
    """What decides is the time that exact values take: two states with two million slots are too much, a hundred with few are not."""
    n = 2_000_000
    huge = rota.System([n], [[1], [2]], [0.45 * n, 0.225 * n], [1, 1])
    choice = choose_switching_rate(huge, MSR([[n, 0], [0, n // 2]], [0.5, 0.5], "full", 1.0))
    assert (choice.by, choice.guarantee) == ("prediction", np.inf)
    assert "(2 states, up to 2,000,000 jobs of a type at once) take too long" in choice.remark
    assert choice.limit == pytest.approx(2.0, rel=1e-3)
    assert choice.limit < choice.mean_response_time <= 1.01 * choice.limit
    n = 1000  # the loss depends little on how many slots there are: here the exact choice can be computed
    fewer = rota.System([n], [[1], [2]], [0.45 * n, 0.225 * n], [1, 1])
    assert choice.rate == choose_switching_rate(fewer, MSR([[n, 0], [0, n // 2]], [0.5, 0.5], "full", 1.0), by="exact").rate
    small = rota.System([50], [[1], [1]], [20.0, 20.0], [1, 1])
    policy = MSR([[0, 50], [50, 0]], [0.5, 0.5], "none", 1.0)
    assert len(build_process(small, policy)) == 102
    assert (choose_switching_rate(small, policy).by, choose_switching_rate(small, policy).remark) == ("exact", "")


@pytest.mark.parametrize("preemption", ["full", "none", "setup"])
def test_a_time_limit_ends_the_search(preemption):
    """With no time at all the answer is by the prediction, near the best, and says why; even where exact values were asked for."""
    n = 40_000 if preemption == "full" else 60
    system = rota.System([n], [[1], [1]], [0.4 * n, 0.4 * n], [1, 1])
    policy = MSR([[0, n], [n, 0]], [0.5, 0.5], preemption, 1.0, setup_rate=10.0 if preemption == "setup" else None)
    choice = choose_switching_rate(system, policy, by="exact", time_limit_s=0.0)
    assert choice.by == "prediction"
    assert choice.remark == "exact values took longer than the time limit of 0 s: the prediction decided"
    by_cost = choose_switching_rate(system, policy, time_limit_s=0.0)
    assert (by_cost.by, "take too long" in by_cost.remark) == ("prediction", True)
    best = choose_switching_rate(system, policy, by="exact").mean_response_time
    assert mean_response_time(system, policy, choice.rate) <= 1.3 * best


def test_what_takes_less_than_a_second_is_done_in_any_case():
    """Where exact values take a fraction of a second, no time limit keeps them out."""
    system, policy = paper_case(0.9, "none")
    assert choose_switching_rate(system, policy, time_limit_s=0.0) == choose_switching_rate(system, policy)


def test_a_time_limit_must_not_be_negative():
    """A time limit that is no time is refused."""
    with pytest.raises(rota.BadSpec, match="time_limit_s: must not be negative"):
        choose_switching_rate(*paper_case(0.9, "none"), time_limit_s=-1.0)


@pytest.mark.parametrize("preemption", ["none", "setup"])
def test_weights_that_cannot_be_stable_are_found_at_once(monkeypatch, preemption):
    """Where the weights alone overload a type, no rate is tried: nothing is built or analysed."""
    system, policy = paper_case(0.9, preemption)
    for name in ("build_process", "Analysis"):
        monkeypatch.setattr(f"rota.design.switching.{name}", lambda *args, **kwargs: pytest.fail("a rate was tried"))
    with pytest.raises(rota.Unstable, match=r"^load 2\.25 of type 'type3' is not below 1 at any switching rate$"):
        choose_switching_rate(system, policy.replace(weights=[0.2, 0.8]))
    with pytest.raises(rota.Unstable, match="type 'type3' arrives but is in no schedule"):
        choose_switching_rate(system, policy.replace(candidates=[[1, 0, 0], [1, 4, 0]]))


# ------------------------------------------------------------------------------------------------------------ no choice


@pytest.mark.parametrize("preemption", ["full", "none", "setup"])
def test_one_candidate(preemption):
    """A rota of one schedule never switches: its rate is left alone and nothing is lost."""
    system = rota.System([4], [[1]], [3.0], [1.0])
    policy = MSR([[4]], preemption=preemption, setup_rate=1.0 if preemption == "setup" else None)
    choice = choose_switching_rate(system, policy)
    assert (choice.policy, choice.guarantee) == (policy, 0.0)
    assert choice.mean_response_time == pytest.approx((3 + 0.75 / 0.25 * 0.5094339622641509) / 3, rel=1e-12)  # Erlang C of M/M/4 at 3


@pytest.mark.parametrize("preemption", ["none", "setup"])
def test_no_switching_rate_is_slow_enough(preemption):
    """At a load of 1 there is none, and the error says which type and why."""
    with pytest.raises(rota.Unstable, match=r"^load 1 of type 'type[123]' is not below 1 at any switching rate$"):
        choose_switching_rate(*paper_case(1.0, preemption))


def test_an_unstable_pmsr():
    """The load of a pMSR does not depend on its switching rate: it is refused at once."""
    with pytest.raises(rota.Unstable, match=r"scale arrivals by less than 0\.9091"):
        choose_switching_rate(*paper_case(1.1))


# ------------------------------------------------------------------------------------------------------------ pMSR


@settings(max_examples=30)
@given(systems_and_rotas("full", loop=True), st.sampled_from([0.1, 0.01, 0.001]))
def test_fast_enough(case, loss):
    """For a pMSR the rate is the first of μ, 2μ, 4μ, … (μ the fastest service) that loses no more than asked for against α → ∞."""
    system, policy = case
    assume(len(policy.weights) > 1 and system.arrival_rate.any())
    choice = choose_switching_rate(system, policy, loss=loss)
    limit = fast_switching_limit(system, policy).sum() / system.arrival_rate.sum()
    doublings = np.log2(choice.rate / system.service_rate.max())
    assert doublings == round(doublings) >= 0
    assert choice.limit == pytest.approx(limit, rel=1e-12)
    assert choice.guarantee == pytest.approx(choice.mean_response_time / limit - 1, abs=1e-12)
    assert -1e-9 <= choice.guarantee <= loss
    assert doublings == 0 or mean_response_time(system, policy, choice.rate / 2) > (1 + loss) * limit


@settings(max_examples=40)
@given(systems_and_rotas("full", loop=True))
def test_the_limit_of_fast_switching(case):
    """The exact E[Q_i] at a rate of a million is the closed form to 1e-4, for every type."""
    system, policy = case
    assume(len(policy.weights) > 1)
    fast = rota.analyze(system, policy.replace(switching_rate=1e6))
    assert fast_switching_limit(system, policy) == pytest.approx(fast.exact, rel=1e-4)


def test_the_limit_of_one_schedule():
    """One schedule is its own limit: four slots are M/M/4, one slot is M/M/1."""
    system = rota.System([8, 1], [[1, 0], [2, 1]], [3.0, 0.5], [1.0, 1.0])
    policy = MSR([[4, 1]])
    assert fast_switching_limit(system, policy) == pytest.approx(rota.analyze(system, policy).exact, rel=1e-12)
    assert fast_switching_limit(system, policy)[1] == pytest.approx(1.0, rel=1e-14)


def test_the_limit_of_idle_and_overloaded_types():
    """A type that never arrives has no jobs, one that is overloaded or in no schedule has infinitely many."""
    system = rota.System([2], [[1], [1], [1]], [0.0, 1.5, 0.1], [1.0, 1.0, 1.0])
    assert fast_switching_limit(system, MSR([[1, 1, 0]])).tolist() == [0.0, np.inf, np.inf]


def test_the_words_on_a_choice():
    """A guarantee is told in per cent while it proves something, and as proving nothing beyond a factor of two."""
    good = choose_switching_rate(*paper_case(0.9, "none"), by="prediction")
    assert good.useful
    assert good.explain() == "The switching rate, chosen by the prediction, is within 14.7% of the best one: the bounds prove it."
    system = rota.System([64], [[1], [64]], [1.0, 0.001], [1.0, 0.1]).scaled(load=0.1)
    weak = choose_switching_rate(system, rota.MSR([[64, 0], [0, 1]], [0.5, 0.5], "none", 0.1), by="upper")
    assert not weak.useful
    assert "The bounds prove nothing useful about it: they allow for one that is better by a factor of" in weak.explain()
    assert choose_switching_rate(*paper_case(0.9, "none")).explain() == "The switching rate is the best one."
    assert choose_switching_rate(*paper_case(0.9)).explain().endswith("of that of ever faster switching.")


def limit_by_fractions(arrival_rate, service_rate, weights, slots):
    """E[Q] of the birth–death queue in exact arithmetic, from the product form."""
    lam, mu = Fraction(arrival_rate), Fraction(service_rate)
    pairs = [(Fraction(weight), int(u)) for weight, u in zip(weights, slots, strict=True)]
    law, total, first = Fraction(1), Fraction(1), Fraction(0)
    for q in range(1, max(slots) + 1):
        death = mu * sum(weight * min(q, u) for weight, u in pairs)
        law *= lam / death
        total, first = total + law, first + q * law
    r, beta = lam / death, max(slots)
    total, first = total + law * r / (1 - r), first + law * (beta * r / (1 - r) + r / (1 - r) ** 2)
    return float(first / total)


@pytest.mark.parametrize(("jobs", "slots"), [(0.001, 20), (30, 40), (300, 500), (700, 701), (900, 1000)])
def test_the_limit_with_thousands_of_jobs(jobs, slots):
    """With any number of offered jobs, few or thousands, the limit is that of exact fractions to 13 digits: nothing overflows."""
    system = rota.System([2 * slots], [[1], [2]], [jobs, 0.25], [1.0, 1.0])
    policy = MSR([[2 * slots, 0], [slots // 2, slots // 2]], [0.375, 0.625], switching_rate=1.0)
    expected = [limit_by_fractions(lam, 1.0, [0.375, 0.625], policy.candidates[:, i]) for i, lam in enumerate(system.arrival_rate)]
    assert fast_switching_limit(system, policy) == pytest.approx(expected, rel=1e-13)


def test_the_rate_with_thousands_of_jobs():
    """900 offered jobs of a type: the rate found is within the loss of the limit, far better than rate 1, and all numbers are finite."""
    system = rota.System([2000.0], [[1.0], [2.0]], [900.0, 450.0], [1.0, 1.0])
    policy = MSR([(2000, 0), (0, 1000)], (0.5, 0.5), "full", 1.0)
    choice = choose_switching_rate(system, policy)
    assert choice.rate > 10
    assert choice.mean_response_time < 0.5 * mean_response_time(system, policy, 1.0)
    assert choice.limit == pytest.approx(2.0, rel=1e-3)  # at load 0.9 of a thousand slots hardly a job waits; it runs half of the time
    assert choice.limit <= choice.mean_response_time <= 1.01 * choice.limit
    assert 0 <= choice.guarantee <= 0.01
