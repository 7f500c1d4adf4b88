"""What the paper claims on its example system, each claim with its place, measured by exact values.

The example system (Section "Choosing a Stable MSR Policy with Low Response Time"): (0,0,2) and (1,4,0), half of the working time each. The
paper's "mean queue length" is the λ-weighted Σ (λ_i/Λ) E[Q_i]; Rota's E[T] is by Little's law. Claims about either are tested on
both.
"""

from functools import cache
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import rota
from rota.design import break_even_setup_rate, choose_switching_rate, design_policy, fast_switching_limit
from rota.policy import MSR
from rotas import paper_case, paper_rota, systems_and_rotas
from systems import paper_example, vm_example


@cache
def at(preemption, switching_rate, load=0.9, **fields):
    """The analysis of the example at a switching rate."""
    return rota.analyze(*paper_case(load, preemption, switching_rate, **fields))


def weighted(answer, queue_lengths):
    """The paper's mean queue length: Σ (λ_i/Λ) E[Q_i]."""
    lam = answer.system.arrival_rate
    return float(lam @ queue_lengths / lam.sum())


def least(value, low=0.01, high=0.085):
    """The minimum of a function of α between two rates, and where it is; the nMSR is stable up to 0.094."""
    found = minimize_scalar(lambda x: value(float(np.exp(x))), bounds=np.log([low, high]), method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x)), float(found.fun)


# ------------------------------------------------------------------------------------------ Section "Choosing a pMSR Policy"


def test_candidates_of_the_example():
    """Eq. optimization on the example: candidates (0,0,2) and (1,4,0), half of the time each, at every load (Theorem ht)."""
    for load in (0.3, 0.9, 0.99):
        policy = design_policy(paper_example(load), "full", objective="load")
        assert policy.candidates.tolist() == [[0, 0, 2], [1, 4, 0]]
        assert policy.weights == pytest.approx([0.5, 0.5], abs=1e-9)


def test_the_paper_s_rota_for_the_vm_example():
    """Appendix "An Example on the Initialization Step of MSR": the printed W and π make a stable MSR, all loads 0.655."""
    candidates = [[0, 7, 4, 10], [0, 5, 9, 5], [0, 10, 0, 0], [10, 9, 0, 0]]
    policy = MSR(candidates, [0.07633588, 0.30534351, 0.00763359, 0.61068702], switching_rate=2.0)
    answer = rota.analyze(vm_example(), policy)
    assert answer.stable
    assert answer.load == pytest.approx([0.655] * 4, rel=1e-6)


def test_faster_is_better_for_a_pmsr():
    """Figure switch:pmsr: E[T] falls strictly with α, on the example at ρ = 0.9."""
    values = [at("full", float(rate)).mean_response_time for rate in np.geomspace(0.01, 1e4, 40)]
    assert all(later < earlier for earlier, later in pairwise(values))


@given(systems_and_rotas("full", loop=True), st.floats(0.1, 10))
def test_faster_is_better_for_every_pmsr(case, rate):
    """ "Our bounds suggest that the mean response time of a pMSR policy is minimized by setting α to be arbitrarily high": on random rotas
    doubling α never makes E[Q_i] larger."""
    system, policy = case
    slow, fast = (rota.analyze(system, policy.replace(switching_rate=rate * factor)).exact for factor in (1, 2))
    assert (fast <= slow * (1 + 1e-10)).all()


def test_most_of_it_is_had_at_a_rate_of_two():
    """Figure switch:pmsr, "most of the performance benefit as long as α ≥ 2": 95.1 % of the way from α = 0.1 to α → ∞ is done at 2."""
    system, policy = paper_case(0.9)
    slow, two = (at("full", rate).mean_response_time for rate in (0.1, 2.0))
    limit = fast_switching_limit(system, policy).sum() / system.arrival_rate.sum()
    assert (slow - two) / (slow - limit) == pytest.approx(0.951, abs=5e-4)
    assert two / limit == pytest.approx(1.262, abs=5e-4)  # what is left to gain is a quarter all the same


def test_the_limit_of_a_pmsr():
    """ "The system in this case begins to behave like a non-modulated system": at α = 10⁶ the exact values are those of the limit."""
    assert at("full", 1e6).exact == pytest.approx(fast_switching_limit(*paper_case(0.9)), rel=1e-4)
    assert at("full", 1e6).mean_response_time == pytest.approx(9.25824, rel=1e-6)


# ------------------------------------------------------------------------------------------ Appendix "Switching Rates for Preemptive MSR"


@given(
    st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda u: u[0] != u[1]),
    st.floats(0.2, 5),
    st.floats(0.2, 5),
    st.floats(0.1, 0.95),
)
def test_the_two_state_theorem(slots, x1, x2, load):
    """With Δ divided by α, not multiplied, and + β in B, the printed formulas hold, and the upper bound falls in α towards ρ/(1−ρ) + β."""
    u1, u2 = sorted(slots, reverse=True)  # "WLOG, we assume u(1) ≥ u(2)"
    mean = (x2 * u1 + x1 * u2) / (x1 + x2)
    system = rota.System([6], [[1]], [load * mean], [1.0])
    policy = MSR([[u1], [u2]], generator=[[-x1, x1], [x2, -x2]])
    bounds = []
    for alpha in (0.5, 1.0, 2.0, 40.0):
        answer = rota.analyze(system, policy.replace(switching_rate=alpha * policy.switching_rate))
        (queue,) = answer.queues
        delta = np.array([x1, -x2]) * (u1 - u2) / (alpha * (x1 + x2) ** 2)
        assert queue.relative_completions == pytest.approx(delta, rel=1e-9)
        main = load / (1 - load) + x1 * x2 * (u1 - u2) ** 2 / (alpha * mean * (1 - load) * (x1 + x2) ** 3)
        assert answer.upper[0] == pytest.approx(main + x2 * (u1 - u2) / (alpha * (x1 + x2) ** 2) + u1, rel=1e-9)
        assert answer.lower[0] == pytest.approx(max(main - x1 * (u1 - u2) / (alpha * (x1 + x2) ** 2), 0), rel=1e-9, abs=1e-12)
        bounds.append(answer.upper[0] - load / (1 - load) - u1)
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] == pytest.approx(80 * bounds[-1], rel=1e-6)  # it falls like 1/α


# ------------------------------------------------------------------------------------------ Section "Choosing an nMSR Policy"


def test_the_prediction_finds_the_best_switching_rate():
    """Figure switch:nmsr: α* Predicted "is within 2.1 %" of the true α*, and E[Q] "within 1.5 % of optimal"; ρ = 0.9.

    Against exact values: 0.01 % and 10⁻⁸ for E[T], 0.12 % and 3·10⁻⁶ for the paper's λ-weighted mean with its printed prediction. What
    the paper saw was the error of its simulation.
    """
    system, policy = paper_case(0.9, "none")
    exact, predicted = (choose_switching_rate(system, policy, by=by) for by in ("exact", "prediction"))
    assert abs(predicted.rate / exact.rate - 1) < 1e-4
    assert at("none", predicted.rate).mean_response_time / exact.mean_response_time - 1 < 1e-7

    best_rate, best = least(lambda rate: at("none", rate).weighted_queue_length)
    rate, _ = least(lambda rate: weighted(at("none", rate), at("none", rate).printed_bounds[2]))
    assert abs(rate / best_rate - 1) < 0.0013
    assert at("none", rate).weighted_queue_length / best - 1 < 3e-6


def test_the_guarantee_of_the_printed_bounds():
    """ "The difference between the minima of our upper and lower bounds is 16.3 %": the printed bounds, λ-weighted, nMSR, ρ = 0.9."""
    lower, upper = (least(lambda rate, k=k: weighted(at("none", rate), at("none", rate).printed_bounds[k]))[1] for k in (0, 1))
    assert upper / lower - 1 == pytest.approx(0.163, abs=5e-4)
    assert (lower, upper) == pytest.approx((186.5585, 216.9248), rel=1e-6)


def test_the_printed_lower_bound_is_above_the_truth():
    """Theorem msr-bound as printed, nMSR, ρ = 0.9, α = 0.06: E[Q_1] "≥ 139.96" is 139.447; with the state after the ring, ≥ 139.07."""
    answer = at("none", 0.06)
    assert answer.printed_bounds[0][0] == pytest.approx(139.96, abs=5e-3)
    assert answer.exact[0] == pytest.approx(139.4474, rel=1e-6)
    assert answer.lower[0] == pytest.approx(139.07, abs=5e-3)


def test_the_guarantee_of_the_right_bounds():
    """With the bounds that hold (the state after the ring) and Little's law the difference of the minima is 14.4 %."""
    lower, upper = (
        least(lambda rate, name=name: at("none", rate).little(getattr(at("none", rate), name)))[1] for name in ("lower", "upper")
    )
    assert upper / lower - 1 == pytest.approx(0.144, abs=5e-4)
    assert choose_switching_rate(*paper_case(0.9, "none"), by="upper").guarantee == pytest.approx(upper / lower - 1, rel=1e-6)


def test_too_fast_and_too_slow():
    """Figure switch:nmsr: "choosing the wrong α can easily increase E[Q] by an order of magnitude or even result in instability"."""
    best = choose_switching_rate(*paper_case(0.9, "none"))
    values = [at("none", float(rate)).mean_response_time for rate in best.rate * np.geomspace(0.05, 1.7, 30)]
    turn = int(np.argmin(values))
    assert values[: turn + 1] == sorted(values[: turn + 1], reverse=True)
    assert values[turn:] == sorted(values[turn:])
    assert at("none", best.rate / 20).mean_response_time > 10 * best.mean_response_time
    assert at("none", best.rate * 1.77).mean_response_time > 10 * best.mean_response_time
    assert not at("none", best.rate * 1.8).stable


def test_switching_routes_do_matter():
    """Against "the choice of switching routes had a minimal impact on mean queue length" (same section), on the paper's own example.

    Each at its best α, ρ = 0.9: the order of draining changes E[T] from 173.8 to 218.3, and opening slots as soon as there is room, which
    is as nonpreemptive, brings it down to 53.5. In the λ-weighted mean that the paper measures the orders differ as much.
    """
    orders = [paper_rota("none", route=[[2, 0, 1], order]) for order in permutations(range(3))]
    found = [choose_switching_rate(paper_example(0.9), policy) for policy in orders]
    times = sorted({round(choice.mean_response_time, 6) for choice in found})
    assert times == pytest.approx([173.762, 218.258], rel=1e-5)
    early = choose_switching_rate(paper_example(0.9), paper_rota("none", opening="early"))
    assert early.mean_response_time == pytest.approx(53.4829, rel=1e-5)
    parallel = choose_switching_rate(paper_example(0.9), paper_rota("none", route="parallel"))
    assert parallel.mean_response_time == pytest.approx(167.573, rel=1e-5)

    first, second = (
        least(lambda rate, route=route: at("none", rate, route=route).weighted_queue_length, high=0.07)[1]
        for route in (((2, 0, 1), (0, 1, 2)), ((2, 0, 1), (1, 0, 2)))
    )
    assert second / first > 1.2


# ------------------------------------------------------------------------------------------ Section "Choosing an sMSR Policy"


def test_faster_setups_are_better():
    """Figure smsr: each at its best α, E[T] of the sMSR falls with γ, from above the nMSR to near the pMSR."""
    rates = [0.5, 1.0, 2.0, 4.0, 16.0, 1e2, 1e3, 1e4, 1e5]
    values = [choose_switching_rate(*paper_case(0.9, "setup", setup_rate=rate)).mean_response_time for rate in rates]
    assert all(later < earlier for earlier, later in pairwise(values))
    nmsr = choose_switching_rate(*paper_case(0.9, "none")).mean_response_time
    pmsr = at("full", 1e6).mean_response_time
    assert values[0] > nmsr > values[3]
    assert pmsr < values[-1] < 1.02 * pmsr


@pytest.mark.parametrize("rate", [0.5, 2.0, 10.0])
def test_an_smsr_tends_to_the_pmsr(rate):
    """ "As γ grows … the performance approaches": at the same α the difference from the pMSR goes to 0, like 1/γ."""
    target = at("full", rate).exact
    near, nearer = (at("setup", rate, setup_rate=setup_rate).exact - target for setup_rate in (1e5, 1e6))
    assert (near > 0).all()
    assert nearer == pytest.approx(near / 10, rel=0.02)
    assert (nearer < 1e-3 * target).all()


def test_when_to_preempt():
    """Figure smsr: the sMSR is better "when γ is significantly higher than μ_i"; they are equal at γ = 2.307 μ, ρ = 0.9."""
    rate = break_even_setup_rate(paper_example(0.9))
    assert rate == pytest.approx(2.307, abs=5e-4)
    smsr = choose_switching_rate(*paper_case(0.9, "setup", setup_rate=rate)).mean_response_time
    nmsr = choose_switching_rate(*paper_case(0.9, "none")).mean_response_time
    assert smsr == pytest.approx(nmsr, rel=1e-4)
    assert choose_switching_rate(*paper_case(0.9, "setup", setup_rate=2.5)).mean_response_time < nmsr
    assert choose_switching_rate(*paper_case(0.9, "setup", setup_rate=2.1)).mean_response_time > nmsr


# ------------------------------------------------------------------------------------------ heavy traffic


@pytest.mark.parametrize(("preemption", "rate"), [("full", 2.0), ("none", 0.06), ("setup", 0.5)])
def test_heavy_traffic(preemption, rate):
    """ "Our bounds show that E[Q_i] scales as Θ(1/(1−ρ_i))": (1−ρ_i)E[Q_i] tends to a constant, as fast as 1−ρ_i."""
    policy = paper_rota(preemption, rate)
    system = paper_example(1.0)
    full = system.arrival_rate / rota.analyze(system, policy).load  # each type as busy as it can be
    constant = rota.analyze(system.replace(arrival_rate=0.5 * full), policy).heavy_traffic_constant
    off = []
    for load in (0.999, 0.9999):
        answer = rota.analyze(system.replace(arrival_rate=load * full), policy)
        assert answer.load == pytest.approx([load] * 3, rel=1e-12)
        off.append(np.abs((1 - load) * answer.exact - constant))
    assert (off[0] < 2e-3 * constant).all()
    assert off[1] == pytest.approx(off[0] / 10, rel=0.02)


def test_the_constant_of_heavy_traffic():
    """For a pMSR the constant is 1 + a/α: 1 as in M/M/1, and what switching costs; a = (1/4, 1, 1/2) on the example."""
    for rate in (0.1, 1.0, 2.0, 100.0):
        assert (at("full", rate).heavy_traffic_constant - 1) * rate == pytest.approx([0.25, 1.0, 0.5], rel=1e-9)


def test_the_mix_of_the_first_example():
    """§1.1: as many 4-core as 2-core jobs on 8 cores, one second each. No policy completes three of them per second but 2⅔ (load 1.125 at
    1.5 + 1.5); three per second are of one 4-core job to two 2-core jobs."""
    system = rota.System([8], [[4], [2]], [1.5, 1.5], [1.0, 1.0])
    best = rota.system_load(system)
    assert best.load == pytest.approx(1.125, rel=1e-12)
    assert best.gap <= 1e-9
    no_wastage = MSR([[2, 0], [0, 4]], [2 / 3, 1 / 3], switching_rate=1.0)
    assert 3 * rota.analyze(system, no_wastage).largest_scaling == pytest.approx(8 / 3, rel=1e-12)
    assert rota.system_load(system.replace(arrival_rate=[1.0, 2.0])).load == pytest.approx(1, rel=1e-12)
