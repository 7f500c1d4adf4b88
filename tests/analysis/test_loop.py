"""Long loops: the way round them against the matrix per level, against truncated chains, and the decay rate by its equation."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import rota
from rota.analysis import TypeQueue, analyze
from rota.analysis.loop import loop_decay_rate, solve_loop
from rota.analysis.qbd import first_passage, rate_matrix, solve_qbd
from rota.policy import MSR
from rota.process import TIMER, ModulatingProcess, build_process
from rotas import PREEMPTIONS, paper_case, systems_and_rotas
from truncated import mean_and_variance, queue_law


def queues(case):
    """The queues of the types that arrive, under a loop."""
    queues = [queue for queue in analyze(*case).queues if queue.arrival_rate > 0]
    assume(queues and queues[0].process.loop is not None)
    return queues


def long_nmsr(slots, load):
    """A long loop: all slots of one type and all of another are drained in turn."""
    system = rota.System([slots], [[1], [1]], [0, 0], [1, 0.5])
    policy = MSR([[slots, 0], [0, slots]], [0.4, 0.6], "none", 0.02)
    process = build_process(system, policy)
    return system.replace(arrival_rate=load * system.service_rate * process.mean_schedule), policy


def timed_loop(slots, rates, own=False, times=1):
    """The loop of one type with these slots, left at these rates, or by its own rings, run through several times before it closes."""
    slots, rates = np.tile(slots, times), np.tile(rates, times)
    own = np.tile(own, len(slots) // np.size(own)) & (slots > 0)
    N = len(slots)
    states, table = np.arange(N), slots[:, None]
    return ModulatingProcess(
        table, table, states, states, (states + 1) % N, np.where(own, slots, rates), np.where(own, 0, TIMER), ("type1",)
    )


def queue_of(process, load):
    """The queue of its type, served at rate 1, at a load."""
    return TypeQueue(process, 0, load * float(process.mean_schedule[0]), 1.0)


@given(systems_and_rotas(loop=True))
def test_both_methods_agree(case):
    """Mean, variance, probabilities and decay rate are those of `solve_qbd` on the same loop."""
    for queue in queues(case):
        loop, levels = solve_loop(queue), solve_qbd(queue)
        assert loop.mean == pytest.approx(levels.mean, rel=1e-10)
        assert loop.mean_by_sum == pytest.approx(levels.mean_by_sum, rel=1e-10)
        assert loop.variance == pytest.approx(levels.variance, rel=1e-9)
        assert loop.decay_rate == pytest.approx(levels.decay_rate, rel=1e-9)
        assert loop.probabilities(60) == pytest.approx(levels.probabilities(60), rel=1e-9, abs=1e-14)
        assert max(loop.accuracy, levels.accuracy) <= 1e-10


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_the_example_at_high_load(preemption):
    """The two methods agree on the example at 99.9 % of what each policy can carry."""
    system, policy = paper_case(1.0, preemption, 0.05)
    system = system.replace(arrival_rate=0.999 * build_process(system, policy).mean_schedule)
    for queue in analyze(system, policy).queues:
        loop, levels = solve_loop(queue), solve_qbd(queue)
        assert loop.mean == pytest.approx(levels.mean, rel=1e-12)
        assert loop.variance == pytest.approx(levels.variance, rel=1e-8)


def test_a_long_loop():
    """On a loop of 162 states with 80 boundary levels, for which the analysis goes round the loop, both methods agree."""
    answer = analyze(*long_nmsr(80, 0.8))
    for i, queue in enumerate(answer.queues):
        loop, levels = answer.queue_length(i), solve_qbd(queue)
        assert loop.method.startswith("loop of 162 states, 80 boundary levels")
        assert loop.mean == pytest.approx(levels.mean, rel=1e-11)
        assert loop.variance == pytest.approx(levels.variance, rel=1e-9)
        assert loop.probabilities(400) == pytest.approx(levels.probabilities(400), rel=1e-8, abs=1e-15)
        assert loop.decay_rate == pytest.approx(levels.decay_rate, rel=1e-10)


def test_a_loop_against_a_truncated_chain():
    """The way round the loop has the law of the truncated chain, where the type's own completions move the loop and where another's do."""
    system, policy = paper_case(0.5, "none", 0.1)
    process = build_process(system, policy)
    for i in range(3):
        law = queue_law(process, i, system.arrival_rate[i], 1.0).sum(axis=1)
        mean, variance = mean_and_variance(law)
        found = solve_loop(TypeQueue(process, i, float(system.arrival_rate[i]), 1.0))
        assert (found.mean, found.variance) == pytest.approx((mean, variance), rel=1e-8)
        assert found.probabilities(len(law)) == pytest.approx(law, rel=1e-8, abs=1e-12)


@given(systems_and_rotas(loop=True, most_load=0.99))
def test_decay_rate_is_an_eigenvalue(case):
    """η of the loop's equation is the largest eigenvalue of R."""
    for queue in queues(case):
        rings = queue.ring_rate[:, None] * queue.after.toarray()
        G, _ = first_passage(queue.arrival_rate, queue.plain.toarray(), rings)
        R = rate_matrix(queue.arrival_rate, queue.plain.toarray(), rings, G)
        eta = loop_decay_rate(queue)
        assert 0 < eta < 1
        assert eta == pytest.approx(np.abs(np.linalg.eigvals(R)).max(), rel=1e-9)


@given(systems_and_rotas(loop=True, most_load=0.99))
def test_decay_rate_solves_its_equation(case):
    """Going round once at η multiplies by 1: Π (λ + ν + d − λ/η − dη)/ν = 1 over the loop, η once more for each of its own rings."""
    for queue in queues(case):
        eta = loop_decay_rate(queue)
        nu, own = queue.process.exit_rate, queue.triggers
        d = np.where(own, 0.0, queue.ring_rate)
        factors = (queue.arrival_rate + nu + d - queue.arrival_rate / eta - d * eta) / nu / np.where(own, eta, 1.0)
        slope = (queue.arrival_rate / eta / (factors * nu)).max()  # how much a last digit of η can change it
        assert np.prod(factors) == pytest.approx(1, abs=1e-13 * max(slope, 1) * len(nu) ** 2)


def test_decay_rate_of_a_nearly_empty_queue():
    """At a load of a millionth the slowest state alone decides: η is that state's own root, and the law is still found."""
    for queue in analyze(*long_nmsr(30, 1e-6)).queues:
        loop, levels = solve_loop(queue), solve_qbd(queue)
        lam, nu = queue.arrival_rate, queue.process.exit_rate
        leave = nu + np.where(queue.triggers, 0, queue.ring_rate)  # by a move or downwards
        assert loop.decay_rate == pytest.approx(lam / (lam + leave.min()), rel=1e-12)
        assert loop.decay_rate == pytest.approx(levels.decay_rate, rel=1e-12)
        assert loop.mean_by_sum == pytest.approx(levels.mean_by_sum, rel=1e-12)
        assert loop.probabilities(3) == pytest.approx(levels.probabilities(3), rel=1e-12)
        assert loop.mean == pytest.approx(loop.mean_by_sum, rel=1e-8)


def test_no_decay_without_stability():
    """Above load 1 there is no such η."""
    process = build_process(*paper_case(0.9, "none", 0.06))
    with pytest.raises(rota.NotConverged, match="is the load below 1"):
        loop_decay_rate(TypeQueue(process, 0, 1.0, 1.0))


rates_far_apart = st.floats(-4, 3).map(lambda exponent: 10.0**exponent)
far_apart = st.lists(st.tuples(st.integers(0, 8), rates_far_apart, st.booleans()), min_size=2, max_size=12)


@given(far_apart, st.sampled_from([0.02, 0.3, 0.7, 0.9, 0.97]))
def test_rates_far_apart(states, load):
    """Both methods agree where some states last ten million times as long as others, to the accuracy that they report."""
    slots, rates, own = (np.array(part) for part in zip(*states, strict=True))
    assume(slots.any())
    queue = queue_of(timed_loop(slots, rates, own), load)
    loop, levels = solve_loop(queue), solve_qbd(queue)
    worst = loop.accuracy + levels.accuracy
    assert worst < 1e-6
    assert loop.mean == pytest.approx(levels.mean, rel=2 * worst + 1e-9)
    assert loop.mean_by_sum == pytest.approx(levels.mean_by_sum, rel=2 * worst + 1e-9)
    assert loop.variance == pytest.approx(levels.variance, rel=10 * worst + 1e-8)
    assert loop.probabilities(300) == pytest.approx(levels.probabilities(300), abs=1e-10)


@pytest.mark.parametrize("times", [3, 1000])
def test_round_many_times_before_it_closes(times):
    """A loop run through a thousand times before it closes, 9,000 states, gives the queue that it gives when it closes at once."""
    slots, rates, own = [0, 3, 7, 6, 5, 2, 2, 1, 4], [0.01, 1.0, 0.2, 1, 1, 3.0, 0.04, 5.0, 0.5], [0, 0, 0, 1, 1, 0, 0, 1, 0]
    levels = solve_qbd(queue_of(timed_loop(slots, rates, np.array(own, dtype=bool)), 0.9))
    queue = queue_of(timed_loop(slots, rates, np.array(own, dtype=bool), times), 0.9)
    loop = solve_loop(queue)
    assert loop.method.startswith(f"loop of {9 * times} states, 7 boundary levels")
    assert loop.accuracy < 1e-9
    assert loop.mean == pytest.approx(levels.mean, rel=1e-10)
    assert loop.variance == pytest.approx(levels.variance, rel=1e-8)
    assert loop.decay_rate == pytest.approx(levels.decay_rate, rel=1e-9)
    assert loop.probabilities(500) == pytest.approx(levels.probabilities(500), rel=1e-8, abs=1e-13)


@pytest.mark.parametrize("load", [0.3, 0.9])
def test_many_slow_states_in_a_row(load):
    """Off for a hundred equal states and on for a hundred, both almost fixed times: more points are taken until the two means agree."""
    m = 100
    queue = queue_of(timed_loop(np.repeat([0, 10], m), np.full(2 * m, 0.2)), load)
    loop, levels = solve_loop(queue), solve_qbd(queue)
    assert loop.accuracy < 1e-9
    assert loop.mean == pytest.approx(levels.mean, rel=1e-9)
    assert loop.variance == pytest.approx(levels.variance, rel=1e-8)
    assert loop.probabilities(3000) == pytest.approx(levels.probabilities(3000), abs=1e-12)


@given(systems_and_rotas(loop=True))
def test_single_server_companion(case):
    """The companion that serves one job at a time has the law that a matrix per level gives it."""
    for queue in queues(case):
        loop, levels = solve_loop(queue, single_server=True), solve_qbd(queue, single_server=True)
        assert loop.mean == pytest.approx(levels.mean, rel=1e-10)
        assert loop.unused_average == pytest.approx(levels.unused_average, rel=1e-9, abs=1e-9)
        assert loop.variance == pytest.approx(levels.variance, rel=1e-9)
        assert loop.probabilities(40) == pytest.approx(levels.probabilities(40), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("load", [0.7, 0.98])
def test_levels_that_are_never_seen(load):
    """With a mean of hundreds of running jobs the lowest levels are left out, and the law is that of all levels."""
    queue = queue_of(timed_loop([420, 400, 390, 410], [2.0, 0.5, 1.0, 3.0], [False, False, True, False]), load)
    loop, levels = solve_loop(queue), solve_qbd(queue)
    assert "420 boundary levels" not in loop.method
    assert loop.mean == pytest.approx(levels.mean, rel=1e-11)
    assert loop.variance == pytest.approx(levels.variance, rel=1e-9)
    assert loop.probabilities(700) == pytest.approx(levels.probabilities(700), abs=1e-13)


def test_far_out():
    """Probabilities far below the rounding of 1 have relative digits too, and fall at the decay rate."""
    queue = queue_of(timed_loop([0, 4, 2], [1.0, 0.5, 2.0]), 0.5)
    loop, levels = solve_loop(queue), solve_qbd(queue)
    n = int(np.log(1e-20) / np.log(loop.decay_rate))
    law, expected = loop.probabilities(n), levels.probabilities(n)
    assert law == pytest.approx(expected, rel=1e-5)
    assert law[-1] / law[-2] == pytest.approx(loop.decay_rate, rel=1e-5)
    assert loop.probabilities(2).tolist() == law[:2].tolist()
    assert len(loop.probabilities(0)) == 0
