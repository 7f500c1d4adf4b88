"""`analyze`: the paper's numbers, laws that hold for every rota, high loads, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import rota
from rota.analysis import analyze, analyze_process
from rota.policy import MSR
from rota.process import build_process
from rotas import PREEMPTIONS, paper_case, paper_rota, systems_and_rotas, twice_round
from systems import paper_example
from truncated import mean_and_variance, queue_law

# ------------------------------------------------------------------------------------------------------------ the paper


@pytest.mark.parametrize(
    ("preemption", "switching_rate", "exact"),
    [
        ("full", 2.0, [10.12500, 15.00380, 11.68193]),
        ("none", 0.06, [139.44740, 170.06116, 251.67201]),
    ],
)
def test_numbers_of_the_example(preemption, switching_rate, exact):
    """NOTES: E[Q_i] of the example at ρ = 0.9, all printed digits."""
    answer = analyze(*paper_case(0.9, preemption, switching_rate))
    assert answer.exact == pytest.approx(exact, abs=5.0001e-6)
    assert answer.accuracy <= 1e-10


def test_loads_of_the_example():
    """The pMSR of the example has the load of the system in every type; an nMSR has more, as it spends time on switching."""
    assert analyze(*paper_case(0.9)).load == pytest.approx([0.9] * 3, rel=1e-14)
    nmsr = analyze(*paper_case(0.9, "none", 0.06))
    assert (nmsr.load > 0.9).all()
    assert nmsr.stable


def test_mean_response_time_is_by_littles_law():
    """NOTES 1: E[T] = Σ E[Q_i]/Λ; the λ-weighted mean queue length of the figures has its own name."""
    answer = analyze(*paper_case(0.9))
    assert answer.mean_response_time == pytest.approx((10.12500 + 15.00380 + 11.68193) / (0.9 * 3.5), abs=1e-5)
    assert answer.response_time == pytest.approx(answer.exact / [0.45, 1.8, 0.9], rel=1e-14)
    assert answer.weighted_queue_length == pytest.approx((0.45 * 10.125 + 1.8 * 15.0038 + 0.9 * 11.68193) / 3.15, abs=1e-5)
    assert answer.little(np.array([1.0, 2, 3])) == pytest.approx(6 / 3.15, rel=1e-14)


def test_predicted_switching_rate_of_the_nmsr():
    """The paper, nMSR at ρ = 0.9: α* of the printed prediction gives a mean queue length within 1.5 % of the optimum over α."""

    def best(value):
        options = {"xatol": 1e-6}
        return minimize_scalar(lambda x: value(math.exp(x)), bounds=(math.log(0.01), math.log(0.075)), method="bounded", options=options)

    def exact(alpha):
        return analyze(*paper_case(0.9, "none", alpha)).weighted_queue_length

    def predicted(alpha):
        answer = analyze(*paper_case(0.9, "none", alpha))
        return float(answer.system.arrival_rate @ answer.printed_bounds[2])

    optimum = best(exact).fun
    chosen = exact(math.exp(best(predicted).x))
    assert optimum <= chosen * (1 + 1e-9)
    assert chosen <= 1.015 * optimum


def test_high_switching_rates_are_best_for_the_pmsr():
    """The paper: under a pMSR E[Q] falls with α, and α ≥ 2 brings most of it."""
    lengths = [analyze(*paper_case(0.9, "full", alpha)).weighted_queue_length for alpha in (0.02, 0.2, 2, 20, 2000)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] - lengths[2] > 0.98 * (lengths[0] - lengths[4])


def test_fast_setups_make_a_pmsr():
    """The paper: as γ grows an sMSR tends to the pMSR, at the rate 1/γ."""
    goal = analyze(*paper_case(0.9)).exact
    off = [np.abs(analyze(*paper_case(0.9, "setup", 2.0, setup_rate=gamma)).exact / goal - 1).max() for gamma in (1e4, 1e5, 1e6)]
    assert off[2] < 1e-4
    assert off[0] / off[1] == pytest.approx(10, rel=0.1)
    assert off[1] / off[2] == pytest.approx(10, rel=0.01)


# ------------------------------------------------------------------------------------------------------------ laws


@given(systems_and_rotas(most_load=0.97))
def test_bounds_bracket_the_exact_value(case):
    """lower ≤ exact ≤ upper and lower ≤ prediction ≤ upper, for every kind of rota (Theorem msr-bound as NOTES 3 has it)."""
    answer = analyze(*case)
    slack = 1e-10 * (1 + answer.upper)
    assert (answer.lower <= answer.exact + slack).all()
    assert (answer.exact <= answer.upper + slack).all()
    assert (answer.lower <= answer.prediction).all()
    assert (answer.prediction <= answer.upper).all()


@given(systems_and_rotas(most_load=0.97))
def test_difference_to_the_single_server(case):
    """Theorem msr-difference: the MSR-1 companion has at most as many jobs, and at most β_i fewer."""
    answer = analyze(*case)
    beta = answer.process.schedules.max(axis=0)
    slack = 1e-10 * (1 + answer.exact)
    assert (answer.single_server <= answer.exact + slack).all()
    assert (answer.exact <= answer.single_server + beta + slack).all()


@settings(max_examples=30)
@given(systems_and_rotas())
def test_unused_relative_completions(case):
    """Remark marc: E_U[Δ(ν)] is that of the truncated chain of the MSR-1 companion, and the remark gives its mean queue length."""
    system, _ = case
    answer = analyze(*case)
    for i in np.flatnonzero(system.arrival_rate):
        queue = answer.queues[i]
        law = queue_law(answer.process, i, system.arrival_rate[i], system.service_rate[i], single_server=True)
        rings = law[0] * queue.ring_rate  # service is unused when nobody is there
        after = [queue.after_ring[s] for s in range(len(answer.process))]
        unused = rings @ after / rings.sum()
        scale = max(np.abs(queue.relative_completions).max(), 1e-12)
        assert answer.unused_relative_completions[i] == pytest.approx(unused, rel=1e-8, abs=1e-9 * scale)
        by_remark = (queue.load + queue.ring_average()) / (1 - queue.load) - unused
        assert by_remark == pytest.approx(mean_and_variance(law.sum(axis=1))[0], rel=1e-7, abs=1e-9 * scale)
        assert queue.relative_completions.min() - 1e-9 * scale <= unused <= queue.relative_completions.max() + 1e-9 * scale


def test_unused_relative_completions_without_arrivals():
    """Where nobody arrives every ring is unused service, so E_U[Δ(ν)] is E[Δ(ν)]."""
    system, policy = paper_case(0.5, "none", 0.1)
    answer = analyze(system.replace(arrival_rate=[0.0, 1.0, 0.5]), policy)
    assert answer.unused_relative_completions[0] == answer.queues[0].ring_average()
    with pytest.raises(rota.Unstable):
        _ = analyze(paper_example(1.2), policy).unused_relative_completions


@settings(max_examples=30)
@given(systems_and_rotas(again=True))
def test_analysis_against_truncated_chains(case):
    """Means, variances and distributions of all types are those of the truncated chains of their process."""
    system, _ = case
    answer = analyze(*case)
    for i in range(len(system.names)):
        if system.arrival_rate[i] == 0:
            continue
        law = queue_law(answer.process, i, system.arrival_rate[i], system.service_rate[i]).sum(axis=1)
        mean, variance = mean_and_variance(law)
        assert (answer.exact[i], answer.variance[i]) == pytest.approx((mean, variance), rel=1e-8)
        assert answer.queue_length_distribution(i, len(law)) == pytest.approx(law, rel=1e-8, abs=1e-12)
        # Slots hold no job for 1 − ρ_i of their time.
        busy = queue_law(answer.process, i, system.arrival_rate[i], system.service_rate[i])
        held = np.minimum(np.arange(len(busy))[:, None], answer.process.schedules[:, i])
        assert answer.idle_slots[i] == pytest.approx(1 - (busy * held).sum() / answer.process.mean_schedule[i], rel=1e-9)


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_a_loop_that_visits_a_schedule_twice(preemption):
    """A → B → A → C: means and variances are those of the truncated chains, and not those of the loop A → B → C."""
    system, policy = twice_round(preemption, 0.3)
    answer = analyze(system, policy)
    for i in range(3):
        law = queue_law(answer.process, i, system.arrival_rate[i], 1.0).sum(axis=1)
        assert (answer.exact[i], answer.variance[i]) == pytest.approx(mean_and_variance(law), rel=1e-8)
    once = policy.replace(candidates=policy.candidates[[0, 1, 3]], weights=[0.5, 0.45, 0.05])
    assert np.abs(analyze(system, once).exact / answer.exact - 1).max() > 0.02


@given(systems_and_rotas(), st.floats(0.01, 100))
def test_scaling_all_rates(case, c):
    """All rates times c: the same queue lengths, times shorter by c."""
    system, policy = case
    setup_rate = None if policy.setup_rate is None else c * policy.setup_rate
    faster = policy.replace(switching_rate=c * policy.switching_rate, setup_rate=setup_rate)
    one = analyze(system, policy)
    other = analyze(system.replace(arrival_rate=c * system.arrival_rate, service_rate=c * system.service_rate), faster)
    assert other.exact == pytest.approx(one.exact, rel=1e-9)
    assert other.variance == pytest.approx(one.variance, rel=1e-8)
    assert other.lower == pytest.approx(one.lower, rel=1e-9, abs=1e-9)
    assert other.upper == pytest.approx(one.upper, rel=1e-9)
    assert other.prediction == pytest.approx(one.prediction, rel=1e-9)
    if system.arrival_rate.any():
        assert other.mean_response_time == pytest.approx(one.mean_response_time / c, rel=1e-9)


@given(systems_and_rotas(), st.randoms(use_true_random=False))
def test_permuting_types(case, random):
    """Types in another order, routes told in their terms: the same answers in that order."""
    system, policy = case
    order = list(range(len(system.names)))
    random.shuffle(order)
    place = np.argsort(order)
    # An order by name or by time depends on the numbering, so it is spelled out; early opening asks the types in order, so not here.
    route = policy.route
    if isinstance(route, str) and route != "parallel":
        n = len(policy.weights)
        route = [list(range(len(order)))] * n
    base = policy.replace(route=route, opening="late")
    moved = base.replace(
        candidates=policy.candidates[:, order],
        route=route if isinstance(route, str) else [[int(place[i]) for i in one] for one in route],
    )
    permuted = system.replace(
        demand=system.demand[order],
        arrival_rate=system.arrival_rate[order],
        sizes=[system.sizes[i] for i in order],
        names=[system.names[i] for i in order],
    )
    one, other = analyze(system, base), analyze(permuted, moved)
    if not one.stable:
        assert not other.stable
        return
    assert other.load == pytest.approx(one.load[order], rel=1e-12)
    assert other.exact == pytest.approx(one.exact[order], rel=1e-9)
    assert other.upper == pytest.approx(one.upper[order], rel=1e-9)
    assert other.variance == pytest.approx(one.variance[order], rel=1e-8)


@given(systems_and_rotas(), st.integers(1, 3))
def test_where_the_rota_begins_does_not_matter(case, shift):
    """The loop begun at another candidate is the same policy."""
    system, policy = case
    if policy.generator is not None:
        policy = policy.replace(generator=None)
    turn = np.roll(np.arange(len(policy.weights)), shift)
    route = policy.route if isinstance(policy.route, str) else [policy.route[s] for s in turn]
    turned = policy.replace(candidates=policy.candidates[turn], weights=policy.weights[turn], route=route)
    one, other = analyze(system, policy), analyze(system, turned)
    if one.stable:
        assert other.exact == pytest.approx(one.exact, rel=1e-9)


# ------------------------------------------------------------------------------------------------------------ high loads


@pytest.mark.parametrize(("preemption", "switching_rate"), [("full", 2.0), ("none", 0.01), ("none", 0.2), ("setup", 0.1)])
def test_heavy_traffic(preemption, switching_rate):
    """At ρ = 0.99, 0.999, 0.9999 the answer has accuracy 1e-8, and (1−ρ)E[Q] tends to the constant as fast as 1−ρ."""
    system, policy = paper_case(1.0, preemption, switching_rate)
    most = system.service_rate * build_process(system, policy).mean_schedule
    off = []
    for rho in (0.99, 0.999, 0.9999):
        answer = analyze(system.replace(arrival_rate=rho * most), policy)
        assert answer.load == pytest.approx([rho] * 3, rel=1e-12)
        assert answer.accuracy <= 1e-8
        assert (answer.lower <= answer.exact).all()
        assert (answer.exact <= answer.upper).all()
        off.append(np.abs((1 - rho) * answer.exact - answer.heavy_traffic_constant))
    assert off[1] == pytest.approx(off[0] / 10, rel=0.1)
    assert off[2] == pytest.approx(off[1] / 10, rel=0.01)


def test_mm1_at_very_high_load():
    """At ρ = 0.9999 the closed form of M/M/1 comes out to 1e-10."""
    answer = analyze(rota.System([1], [[1]], [0.9999], [1]), MSR([[1]]))
    assert answer.exact == pytest.approx(9999, rel=1e-10)
    assert answer.variance == pytest.approx(9999 * 10000, rel=1e-9)


# ------------------------------------------------------------------------------------------------------------ special cases


def test_one_candidate_is_a_multiserver_queue_per_type():
    """A rota of one schedule that never switches: types wait in M/M/k queues of their own."""
    answer = analyze(paper_example(0.2), MSR([[1, 4, 0]]))
    assert answer.load[:2] == pytest.approx([0.1, 0.1], rel=1e-14)
    system = paper_example(0.2).replace(arrival_rate=[0.5, 2.0, 0])
    a, k = 2.0, 4
    waiting = (a**k / math.factorial(k) / 0.5) / (sum(a**j / math.factorial(j) for j in range(k)) + a**k / math.factorial(k) / 0.5)
    assert analyze(system, MSR([[1, 4, 0]])).exact == pytest.approx([1, a + waiting, 0], rel=1e-12)


def test_a_type_that_never_arrives():
    """It has load, queue and bounds 0 and no response time, served or not; the others do not notice."""
    system = paper_example(0.9).replace(arrival_rate=[0.45, 0, 0.9])
    answer, full = analyze(system, paper_rota()), analyze(*paper_case(0.9))
    assert answer.exact[[0, 2]] == pytest.approx(full.exact[[0, 2]], rel=1e-14)
    assert (answer.load[1], answer.exact[1], answer.variance[1], answer.lower[1], answer.upper[1]) == (0, 0, 0, 0, 0)
    assert answer.single_server[1] == 0
    assert np.isnan(answer.response_time[1])
    assert answer.queue_length_distribution(1, 4).tolist() == [1, 0, 0, 0]
    assert answer.mean_response_time == pytest.approx(answer.exact.sum() / 1.35, rel=1e-14)
    assert analyze(system.replace(arrival_rate=[0.1, 0, 0]), MSR([[1, 4, 0]])).exact[2] == 0


def test_a_type_that_is_never_served():
    """Its load is infinite, and the error says that no schedule has it."""
    answer = analyze(paper_example(0.2), MSR([[1, 4, 0]]))
    assert answer.load[2] == math.inf
    assert (answer.stable, answer.largest_scaling, answer.margin) == (False, 0, -math.inf)
    assert (answer.lower[2], answer.upper[2]) == (math.inf, math.inf)
    with pytest.raises(rota.Unstable, match="type 'type3' arrives but is in no schedule of the policy"):
        _ = answer.exact


@pytest.mark.parametrize("load", [1.0, 1.25])
def test_an_unstable_policy(load):
    """At load 1 and above there is no exact answer; the error names the type, its load and the largest stable scaling."""
    answer = analyze(*paper_case(load))
    assert not answer.stable
    assert answer.largest_scaling == pytest.approx(1 / load, rel=1e-14)
    assert answer.margin == pytest.approx(1 - load, abs=1e-14)
    assert np.isinf(answer.upper).all()
    for ask in ("exact", "variance", "mean_response_time", "single_server", "accuracy"):
        with pytest.raises(rota.Unstable) as caught:
            getattr(answer, ask)
        assert str(caught.value).startswith(f"load {load:.4g} of type 'type")
        assert f"is not below 1: scale arrivals by less than {1 / load:.4g}" in str(caught.value)


def test_the_largest_scaling_is_the_largest():
    """Just below the scaling the policy is stable, just above it is not."""
    system, policy = paper_case(0.9, "none", 0.05)
    most = analyze(system, policy).largest_scaling
    assert analyze(system.scaled(factor=0.9999 * most), policy).stable
    assert not analyze(system.scaled(factor=1.0001 * most), policy).stable
    assert analyze(system.scaled(factor=0), policy).largest_scaling == math.inf


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_any_process_can_be_analysed(preemption):
    """A process alone gives the same answers as its policy."""
    system, policy = paper_case(0.5, preemption, 0.1)
    answer = analyze_process(system, build_process(system, policy))
    assert answer.policy is None
    assert answer.exact.tolist() == analyze(system, policy).exact.tolist()


# ------------------------------------------------------------------------------------------------------------ refusals


def test_what_depends_on_the_queues_is_refused():
    """Backfilling and skipping empty slots have no exact analysis, and the errors say what to do."""
    system = paper_example(0.5)
    with pytest.raises(rota.Infeasible, match=r"backfilling depends on the queues.*or simulate"):
        analyze(system, paper_rota("none", 0.05, backfill=True))
    with pytest.raises(rota.Infeasible, match="is not one"):
        analyze(system, rota.FirstFit())
    with pytest.raises(rota.Infeasible, match='analyze with empty_slots="virtual", or simulate'):
        analyze(system, paper_rota("none", 0.05, empty_slots="skip"))
    assert analyze(system, paper_rota(empty_slots="skip")).stable  # a pMSR never waits for a slot


def changed(process, **fields):
    """The process with some fields changed; `held` follows the schedules."""
    return replace(process, **({"held": fields["schedules"]} if "schedules" in fields else {}), **fields)


def by_rate(process, factor):
    """Moves by completions at other rates than those of the jobs."""
    return changed(process, rate=np.where(process.trigger >= 0, factor, 1.0) * process.rate)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (lambda p: changed(p, schedules=p.schedules * 3), rota.Infeasible, r"state \[.*\] does not fit the server: it needs"),
        (
            lambda p: changed(p, schedules=np.pad(p.schedules, ((0, 0), (0, 1))), names=(*p.names, "d")),
            rota.BadSpec,
            "differ from those of the",
        ),
        (lambda p: changed(p, names=("a", "b", "c")), rota.BadSpec, r"names: differ .*type1, type2, type3"),
        (lambda p: by_rate(p, 2.0), rota.Infeasible, r"completions of 'type3' move state .* at rate 4, but its 2 slots complete at rate 2"),
        (
            lambda p: changed(p, target=np.where(p.target == 1, 2, p.target)),
            rota.Infeasible,
            r"not irreducible: states 0 and 1 .* lead back",
        ),
        (lambda p: "nMSR", rota.BadSpec, "must be a ModulatingProcess: rota.build_process makes one"),
    ],
)
def test_a_process_that_is_none_for_the_system(change, error, says):
    """An overfull schedule, other types, completions at other rates, a reducible chain: each is refused, with what is wrong."""
    system, policy = paper_case(0.5, "none", 0.1)
    with pytest.raises(error, match=says):
        analyze_process(system, change(build_process(system, policy)))


@given(systems_and_rotas())
def test_every_process_that_is_built_is_one_for_its_system(case):
    """What `build_process` makes passes the check of `analyze_process`."""
    analyze_process(case[0], build_process(*case))


@pytest.mark.parametrize("policy", ["first-fit", rota.FirstFit(), rota.MaxWeight(), None, 3])
def test_only_msr_policies_are_analysed(policy):
    """Any other policy is refused, with the functions that take it."""
    with pytest.raises(rota.Infeasible, match=r"analysis is for MSR policies.*use rota\.simulate or rota\.compare"):
        analyze(paper_example(0.5), policy)


def test_types_by_name():
    """A type's law is asked for by its name or number; an unknown one is told which there are."""
    answer = analyze(*paper_case(0.5))
    assert answer.queue_length("type2") is answer.queue_length(1)
    assert answer.queue_length_distribution("type3", 5).tolist() == answer.queue_length_distribution(2, 5).tolist()
    with pytest.raises(rota.BadSpec, match=r"no such type \(there are: type1, type2, type3\) \(got 'api'\)"):
        answer.queue_length("api")
    for wrong in (3, -1, 1.0, True, None):
        with pytest.raises(rota.BadSpec, match=r"must be a name \(type1, type2, type3\) or a number 0…2"):
            answer.queue_length_distribution(wrong)


def test_wrong_arguments():
    """Unknown ways to take sizes, a policy for another system, and candidates that do not fit are refused."""
    with pytest.raises(rota.BadSpec, match='sizes: must be "as given" or "exponential"'):
        analyze(paper_example(0.5), paper_rota(), sizes="normal")
    with pytest.raises(rota.BadSpec, match="needs 3 counts per candidate"):
        analyze(paper_example(0.5), MSR([[1]]))
    with pytest.raises(rota.Infeasible, match="does not fit the server"):
        analyze(paper_example(0.5), MSR([[9, 9, 9]]))


def test_too_large_for_an_exact_answer():
    """Beyond what can be solved the error says how large it is; bounds and prediction are still there."""
    n = 10_000
    system = rota.System([n], [[1], [1]], [200, 200], [1, 1])
    answer = analyze(system, MSR([[n, 0], [0, n]], [0.5, 0.5], "none", 0.01))
    with pytest.raises(rota.Infeasible, match=r"'type1' needs 20,002 phases and 10,000 boundary levels.* GB: .* or simulate"):
        answer.queue_length(0)
    assert (answer.lower <= answer.prediction).all()
    assert np.isfinite(answer.upper).all()
