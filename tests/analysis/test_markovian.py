"""Queues whose arrivals have phases or batches: against truncated chains, closed forms, Poisson arrivals, bounds and simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

import rota
from rota.analysis import TypeQueue, analyze
from rota.analysis.markovian import condensed, markovian_levels, solve_markovian
from rota.analysis.max_weight import max_weight_collapse
from rota.errors import Infeasible
from rota.policy import MSR
from rota.process import build_process
from rotas import PREEMPTIONS, paper_case, systems_and_rotas
from systems import arrival_processes
from truncated import arrivals_law, mean_and_variance

BURSTS = rota.Bursts(factor=3.0, share=0.2, length=5.0)
ERLANG = rota.MAP(d0=((-2.0, 2.0), (0.0, -2.0)), d1=((0.0, 0.0), (2.0, 0.0)))
EQUAL = rota.MMPP(rates=(1.0, 1.0), generator=((-1.0, 1.0), (2.0, -2.0)))


def alone(arrivals, rate, slots=1, service_rate=1.0, **sizes):
    """A type that always has the same slots."""
    sizes = sizes or {"service_rate": [service_rate]}
    return analyze(rota.System([slots], [[1]], [rate], arrivals=[arrivals], preemption="full", **sizes), MSR([[slots]], preemption="full"))


def batch_probabilities(process):
    """P(B = 1), …, P(B = n)."""
    batch = process.batch

    def law(n):
        found = np.zeros(n)
        if batch is None:
            found[0] = 1.0
        elif isinstance(batch, rota.GeometricBatch):
            found[:] = (1 / batch.mean) * (1 - 1 / batch.mean) ** np.arange(n)
            found[found < 1e-18] = 0.0
        else:
            weights = np.ones(len(batch.sizes)) if batch.weights is None else np.array(batch.weights)
            np.add.at(found, np.array(batch.sizes) - 1, weights / weights.sum())
        return found

    return law


@settings(max_examples=60)
@given(case=systems_and_rotas(most_load=0.7, most_units=3), process=arrival_processes())
def test_law_against_a_truncated_chain(case, process):
    """Mean, variance and distribution are those of the chain on (queue length, phase, state), in which a batch arrives at once.

    The mean comes from the identity with the index of dispersion and the relative arrivals, the variance from the distribution. The bounds
    are on either side.
    """
    system, policy = case
    built = build_process(system, policy)
    i = int(np.argmax(system.arrival_rate))
    if system.arrival_rate[i] == 0 or len(built) > 8:
        return
    queue = TypeQueue(built, i, float(system.arrival_rate[i]), float(system.service_rate[i]), process)
    if queue.arrivals.dispersion > 30:  # the chain would need too many levels
        return
    found = solve_markovian(condensed(queue))
    law = arrivals_law(built, i, queue.arrivals.moves, queue.arrivals.marked, batch_probabilities(process), queue.service_rate)
    mean, variance = mean_and_variance(law)
    assert found.mean == pytest.approx(mean, rel=1e-7)
    assert found.mean_by_sum == pytest.approx(mean, rel=1e-7)
    assert found.variance == pytest.approx(variance, rel=1e-6)
    assert found.probabilities(len(law)) == pytest.approx(law, rel=1e-6, abs=1e-11)
    assert found.accuracy < 1e-8
    lower, upper = queue.bounds()
    assert lower * (1 - 1e-9) <= mean <= upper * (1 + 1e-9)
    assert lower <= queue.prediction() <= upper


@settings(max_examples=80)
@given(case=systems_and_rotas(most_load=0.98), processes=st.lists(arrival_processes(), min_size=3, max_size=3))
def test_identity_bounds_and_littles_law(case, processes):
    """At any load: the mean by the identity is the mean of the distribution, and between the bounds."""
    system, policy = case
    answer = analyze(system.replace(arrivals=processes[: len(system.names)]), policy)
    for i in np.flatnonzero(system.arrival_rate > 0):
        law = answer.queue_length(i)
        assert law.accuracy < 1e-7
        assert answer.lower[i] * (1 - 1e-9) <= law.mean <= answer.upper[i] * (1 + 1e-9)
        assert law.mean >= system.offered_work[i] * (1 - 1e-9)


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_equal_phases_are_a_poisson_process(preemption):
    """Phases of equal rates, batches of one and a MAP of one phase give the numbers of Poisson arrivals."""
    system, policy = paper_case(0.7, preemption, 0.3)
    plain = analyze(system, policy)
    one = rota.MAP(d0=((-3.0,),), d1=((3.0,),))
    same = analyze(system.replace(arrivals=[EQUAL, rota.Poisson(batch=rota.GeometricBatch(mean=1.0)), one]), policy)
    assert same.exact == pytest.approx(plain.exact, rel=1e-10)
    assert same.variance == pytest.approx(plain.variance, rel=1e-10)
    assert same.lower == pytest.approx(plain.lower, rel=1e-10)
    assert same.upper == pytest.approx(plain.upper, rel=1e-10)
    assert same.prediction == pytest.approx(plain.prediction, rel=1e-10)
    assert same.heavy_traffic_constant == pytest.approx(plain.heavy_traffic_constant, rel=1e-10)
    t = np.array([0.3, 3.0, 30.0])
    for i in range(3):
        mine, other = same.response_time_distribution(i), plain.response_time_distribution(i)
        assert mine.tail(t) == pytest.approx(other.tail(t), rel=1e-8)
        assert mine.decay_rate == pytest.approx(other.decay_rate, rel=1e-8)


@pytest.mark.parametrize("load", [0.3, 0.9, 0.999])
def test_arrivals_of_erlang_gaps(load):
    """GI/M/1: E[Q] = ρ/(1−σ) and T exponential of rate μ(1−σ), with σ = E[exp(−μ(1−σ)A)] of the gaps A."""
    gap = lambda s: (2 * load / (2 * load + s)) ** 2  # noqa: E731  # the transform of an Erlang gap
    sigma = brentq(lambda x: gap(1 - x) - x, 0, 1 - (1 - load) / 2, xtol=1e-15)
    answer = alone(ERLANG, load)
    assert answer.exact[0] == pytest.approx(load / (1 - sigma), rel=1e-9)
    assert answer.queue_length(0).decay_rate == pytest.approx(sigma, rel=1e-9)
    response = answer.response_time_distribution(0)
    t = np.array([0.5, 2.0, 10.0])
    assert response.tail(t) == pytest.approx(np.exp(-(1 - sigma) * t), rel=1e-8)
    assert response.decay_rate == pytest.approx(1 - sigma, rel=1e-8)


@pytest.mark.parametrize("batch", [rota.GeometricBatch(mean=3.0), rota.GivenBatch(sizes=(1, 6), weights=(2.0, 1.0))])
@pytest.mark.parametrize("size", [rota.Exponential(mean=0.5), rota.Erlang(mean=0.5, phases=3), rota.Fitted(mean=0.5, cv=2.0)])
def test_batches_at_one_slot(batch, size):
    """M^X/G/1: the mean wait is that of M/G/1 plus what the jobs of the own batch take, E[S](E[B²]/E[B] − 1)/(2(1−ρ))."""
    rate = 1.5
    load = rate * size.moment(1)
    answer = alone(rota.Poisson(batch=batch), rate, sizes=[size])
    wait = (rate * size.second_moment + size.moment(1) * (batch.moment(2) / batch.moment(1) - 1)) / (2 * (1 - load))
    assert answer.response_time[0] == pytest.approx(wait + size.moment(1), rel=1e-9)
    assert answer.lower[0] <= answer.exact[0] <= answer.upper[0]
    assert answer.accuracy < 1e-9


@settings(max_examples=30)
@given(case=systems_and_rotas(most_load=0.8, most_units=3), process=arrival_processes())
def test_response_times(case, process):
    """The law of the response time has the mean of Little's law, begins at 1, falls, and decays as it says."""
    system, policy = case
    i = int(np.argmax(system.arrival_rate))
    answer = analyze(system.replace(arrivals=[process] * len(system.names)), policy)
    if system.arrival_rate[i] == 0 or len(answer.process) > 12:
        return
    law = answer.response_time_distribution(i)
    assert law.accuracy < 1e-7
    tail = law.tail(np.linspace(0, 10 * law.mean, 50))
    assert tail[0] == 1
    assert (np.diff(tail) <= 1e-12).all()
    far = law.quantile(1 - 1e-6)
    slope = -np.log(law.tail(1.2 * far) / law.tail(far)) / (0.2 * far)
    assert slope == pytest.approx(law.decay_rate, rel=0.05)


def test_constant_slots_do_not_need_the_states():
    """A type with the same slots in every state has the phases of its arrivals only, and the numbers of the whole process."""
    system = rota.System([4], [[1], [2]], [1.2, 0.5], [1, 1], arrivals=[BURSTS, rota.Poisson()])
    answer = analyze(system, MSR([[2, 1], [2, 0]], [0.7, 0.3], "full", 2.0))
    queue = answer.queues[0]
    assert len(condensed(queue).process) == 1
    assert "(2 of arrivals)" in answer.queue_length(0).method
    assert answer.exact[0] == pytest.approx(solve_markovian(queue).mean, rel=1e-10)
    assert markovian_levels(queue).vectors.shape[1] == 2 * markovian_levels(condensed(queue)).vectors.shape[1]


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_scaling_of_time_and_order_of_types(preemption):
    """With all rates doubled and all lengths halved queues stay and times halve; permuting types permutes answers."""
    system, policy = paper_case(0.6, preemption, 0.3)
    mmpp = rota.MMPP(rates=(1.0, 0.2), generator=((-1.0, 1.0), (0.5, -0.5)))
    bursts = system.replace(arrivals=[BURSTS, mmpp, ERLANG])
    answer = analyze(bursts, policy)
    quick = [BURSTS.changed(length=2.5), mmpp.changed(generator=((-2.0, 2.0), (1.0, -1.0))), ERLANG]
    faster = bursts.replace(arrival_rate=2 * system.arrival_rate, service_rate=2 * system.service_rate, arrivals=quick)
    setup = {} if policy.setup_rate is None else {"setup_rate": 2 * policy.setup_rate}
    twice = analyze(faster, policy.replace(switching_rate=0.6, **setup))
    assert twice.exact == pytest.approx(answer.exact, rel=1e-9)
    assert twice.mean_response_time == pytest.approx(answer.mean_response_time / 2, rel=1e-9)
    order = [2, 0, 1]
    shuffled = rota.System(
        system.capacity,
        system.demand[order],
        system.arrival_rate[order],
        system.service_rate[order],
        arrivals=[bursts.arrivals[k] for k in order],
    )
    turned = MSR(policy.candidates[:, order], policy.weights, preemption, 0.3, setup_rate=policy.setup_rate)
    if preemption != "none":  # where the order of types is that of draining
        assert analyze(shuffled, turned).exact == pytest.approx(answer.exact[order], rel=1e-9)


def test_phase_type_sizes():
    """With phase-type sizes: equal phases are Poisson, bursts are within their bounds, near load 1 as the heavy-traffic constant says."""
    system, policy = paper_case(0.7, "full", 0.3)
    system = system.replace(sizes=[rota.Erlang(mean=1.0, phases=2), rota.Fitted(mean=1.0, cv=1.5), rota.Exponential(mean=1.0)])
    plain, same = analyze(system, policy), analyze(system.replace(arrivals=[EQUAL] * 3), policy)
    assert same.exact == pytest.approx(plain.exact, rel=1e-10)
    bursts = system.replace(arrivals=[BURSTS, BURSTS.changed(batch=rota.GeometricBatch(mean=2.0)), ERLANG])
    answer = analyze(bursts, policy)
    assert (answer.lower <= answer.exact).all()
    assert (answer.exact <= answer.upper).all()
    assert (answer.exact[:2] > plain.exact[:2]).all()
    near = analyze(bursts.scaled(factor=0.9995 / 0.7), policy)
    assert (1 - near.load) * near.exact == pytest.approx(answer.heavy_traffic_constant, rel=5e-3)


def test_heavy_traffic():
    """(1−ρ) E[Q] tends to the constant, with the dispersion that bursts have at that rate; for one type alone MaxWeight has the same."""
    system, policy = paper_case(0.5, "none", 0.1)
    bursts = system.replace(arrivals=[BURSTS, rota.Poisson(batch=rota.GeometricBatch(mean=2.0)), ERLANG])
    answer = analyze(bursts, policy)
    near = analyze(bursts.scaled(factor=0.9995 * answer.largest_scaling), policy)
    last = int(np.argmax(near.load))
    assert (1 - near.load[last]) * near.exact[last] == pytest.approx(answer.heavy_traffic_constant[last], rel=5e-3)
    one = rota.System([3], [[1]], [1.0], [1.0], arrivals=[BURSTS])
    constant = analyze(one, MSR([[3]])).heavy_traffic_constant[0]
    assert constant == pytest.approx((1 + BURSTS.dispersion(3.0)) / 2)
    assert max_weight_collapse(one, rota.system_load(one)).total == pytest.approx(constant)


def test_simulation_agrees():
    """Queues, response times and their quantiles of a rota with bursts, batches and regular arrivals are those of a simulation."""
    system, policy = paper_case(0.5, "none", 0.5)
    bursts = system.replace(
        arrivals=[rota.Bursts(factor=2.0, share=0.3, length=2.0), rota.Poisson(batch=rota.GeometricBatch(mean=4.0)), ERLANG]
    )
    answer, result = analyze(bursts, policy), rota.simulate(bursts, policy, jobs=400_000, seed=5)
    assert result.interval < 0.05 * result.mean_response_time
    assert abs(result.mean_response_time - answer.mean_response_time) < 1.5 * result.interval
    assert (np.abs(result.mean_queue_length - answer.exact) < 1.5 * result.mean_queue_length_interval).all()
    for p, quantiles in answer.type_response_time_quantiles((0.5, 0.95)).items():
        assert result.type_response_time_quantiles[p] == pytest.approx(quantiles, rel=0.1)
    poisson = analyze(system, policy)
    assert abs(result.mean_response_time - poisson.mean_response_time) > 3 * result.interval


def test_what_is_for_poisson_arrivals_says_so():
    """The paper's printed bounds, the single-server companion and relative values refuse, with the way out."""
    system, policy = paper_case(0.6, "none", 0.3)
    bursts = system.replace(arrivals=[BURSTS, rota.Poisson(), rota.Poisson()])
    answer = analyze(bursts, policy)
    for ask in (lambda: answer.single_server, lambda: answer.printed_bounds, lambda: rota.relative_values(bursts, policy)):
        with pytest.raises(rota.Infeasible, match=r"'type1' are not: .*with_poisson_arrivals"):
            ask()
    assert answer.exact[1:] == pytest.approx(analyze(system, policy).exact[1:], rel=1e-12)
    assert answer.exact_means == pytest.approx(answer.exact)
    assert answer.quick_prediction == pytest.approx(answer.prediction)


def test_too_many_phases():
    """Large batches at many states are refused with what they would take; the bounds remain."""
    system, policy = paper_case(0.6, "none", 0.3)
    many = rota.Poisson(batch=rota.GivenBatch(sizes=(1, 1000)))
    answer = analyze(system.replace(arrivals=[many] * 3), policy)
    assert not answer.has_exact
    with pytest.raises(rota.Infeasible, match="9,000 phases"):
        answer.queue_length(0)
    assert (answer.lower <= answer.upper).all()


def test_what_is_for_poisson_arrivals_only():
    """The queue over time, and what is proved of improved rotas, are refused with a way out."""
    system = rota.System([2], [[1]], [1.0], [1.0], arrivals=[BURSTS])
    base = rota.MSR([[2]], [1.0], "none", 1.0)
    with pytest.raises(Infeasible, match="the queue over time is for Poisson arrivals"):
        rota.analyze(system, base).queue_length_at(0, 1.0)
    with pytest.raises(Infeasible, match="what is proved of improved rotas is for Poisson arrivals"):
        rota.analyze(system, rota.Improved(base))
