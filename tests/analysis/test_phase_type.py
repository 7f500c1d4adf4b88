"""Phase-type sizes: Pollaczek–Khinchine, truncated chains, exponential sizes as a special case, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from rota.analysis import TypeQueue, analyze
from rota.analysis.phase_type import phase_count, solve_phase_type
from rota.analysis.qbd import solve_qbd
from rota.policy import MSR
from rota.process import build_process
from rotas import paper_rota, systems_and_rotas
from systems import paper_example
from truncated import mean_and_variance, phase_law

SIZES = [
    rota.Erlang(mean=0.8, phases=2),
    rota.Erlang(mean=1.5, phases=3),
    rota.Hyperexponential(probabilities=(0.2, 0.8), means=(3.0, 0.5)),
    rota.Coxian(rates=(2.0, 0.5), proceed=(0.3,)),
    rota.PhaseType(initial=(0.5, 0.5), generator=((-2.0, 1.0), (0.5, -1.0))),  # may go back to a phase
]


def on(slots, weights, size, load, **fields):
    """One type of that size whose slots change: the queue at a load."""
    system = rota.System([max(slots)], [[1]], [1.0], sizes=[size])
    process = build_process(system, MSR([[u] for u in slots], weights, **fields))
    mu = float(system.service_rate[0])
    return TypeQueue(process, 0, load * mu * float(process.mean_schedule[0]), mu)


@pytest.mark.parametrize("size", SIZES, ids=repr)
@pytest.mark.parametrize("rho", [0.3, 0.9])
def test_pollaczek_khinchine(size, rho):
    """One slot is M/PH/1: E[Q] = ρ + λ²E[S²]/(2(1−ρ)) for every size."""
    queue = on([1], None, size, rho)
    lam = queue.arrival_rate
    found = solve_phase_type(queue, size)
    assert found.mean == pytest.approx(rho + lam**2 * size.moment(2) / (2 * (1 - rho)), rel=1e-10)
    assert found.probabilities(1)[0] == pytest.approx(1 - rho, rel=1e-10)
    # The law of the number in system, by the third moment: Var[Q] from the transform of Pollaczek and Khinchine.
    waiting = lam * size.moment(2) / (2 * (1 - rho))
    second = 2 * waiting**2 + lam * size.moment(3) / (3 * (1 - rho))
    time_2 = second + 2 * waiting * size.moment(1) + size.moment(2)
    assert found.variance == pytest.approx(lam**2 * time_2 + found.mean - found.mean**2, rel=1e-9)


@pytest.mark.parametrize("size", SIZES, ids=repr)
@pytest.mark.parametrize("slots", [[1, 2], [0, 2], [2, 3], [0, 1, 3]], ids=str)
def test_law_against_a_truncated_chain(size, slots):
    """Mean, variance and distribution are those of the chain that follows every job that ever started, the oldest u_s of which run."""
    weights = np.arange(1, len(slots) + 1) / sum(range(1, len(slots) + 1))
    queue = on(slots, weights, size, 0.55, switching_rate=1.5)
    law = phase_law(queue.process, 0, queue.arrival_rate, size)
    mean, variance = mean_and_variance(law)
    found = solve_phase_type(queue, size)
    assert (found.mean, found.variance) == pytest.approx((mean, variance), rel=1e-8)
    assert found.probabilities(len(law)) == pytest.approx(law, rel=1e-8, abs=1e-12)
    assert found.accuracy <= 1e-10


def test_setups_against_a_truncated_chain():
    """Under an sMSR, where jobs are interrupted by setups, the same holds."""
    size = rota.Hyperexponential(probabilities=(0.3, 0.7), means=(2.0, 0.4))
    system = rota.System([2], [[1], [2]], [0.5, 0.1], sizes=[size, rota.Exponential(mean=1.0)])
    answer = analyze(system, MSR([[2, 0], [0, 1]], [0.7, 0.3], "setup", 0.8, setup_rate=5.0))
    law = phase_law(answer.process, 0, 0.5, size)
    assert answer.exact[0] == pytest.approx(mean_and_variance(law)[0], rel=1e-8)
    assert answer.queue_length_distribution(0, len(law)) == pytest.approx(law, rel=1e-8, abs=1e-12)


@settings(max_examples=30)
@given(systems_and_rotas("full", most_units=4) | systems_and_rotas("setup", most_units=4), st.integers(1, 2))
def test_exponential_sizes_in_disguise(case, phases):
    """An exponential size, written with one phase or with two that do not differ, gives the law of the exponential one."""
    for queue in analyze(*case).queues:
        if queue.arrival_rate == 0:
            continue
        mu = queue.service_rate
        size = rota.Hyperexponential(probabilities=(1 / phases,) * phases, means=(1 / mu,) * phases)
        same, plain = solve_phase_type(queue, size), solve_qbd(queue)
        assert same.mean == pytest.approx(plain.mean, rel=1e-9)
        assert same.variance == pytest.approx(plain.variance, rel=1e-8)
        assert same.probabilities(40) == pytest.approx(plain.probabilities(40), rel=1e-8, abs=1e-13)
        assert same.decay_rate == pytest.approx(plain.decay_rate, rel=1e-8)


def test_variable_sizes_wait_longer():
    """For one mean, E[Q] of one slot grows with the variation of the sizes; a mix of types is analysed each in its way."""
    sizes = [rota.Erlang(mean=1.0, phases=4), rota.Exponential(mean=1.0), rota.Fitted(mean=1.0, cv=2.0)]
    system = rota.System([1, 1, 1], np.eye(3), [0.8] * 3, sizes=sizes)
    erlang, exponential, variable = analyze(system, MSR([[1, 1, 1]])).exact
    assert erlang < exponential < variable
    assert [erlang, exponential, variable] == pytest.approx([0.8 + 3.2 * (1 + cv2) / 2 for cv2 in (0.25, 1, 4)], rel=1e-9)


# ------------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(("slots", "phases"), [([2, 5], 2), ([1, 3], 3), ([0, 3], 4)])
def test_phase_count(slots, phases):
    """The announced number of phases is that of the matrix: N · multisets of the oldest m · orders of the other β − m."""
    queue = on(slots, [0.5, 0.5], rota.Erlang(mean=1.0, phases=phases), 0.5, switching_rate=1.0)
    needed = phase_count(queue, phases)
    assert solve_phase_type(queue, rota.Erlang(mean=1.0, phases=phases)).method.startswith(f"phase-type, {needed} phases")


def test_a_state_space_too_large():
    """Too many phases are refused with their number and the way out."""
    size = rota.Erlang(mean=1.0, phases=3)
    system = rota.System([12], [[1]], [1.0], sizes=[size])
    answer = analyze(system, MSR([[1], [12]], [0.5, 0.5], switching_rate=1.0))
    with pytest.raises(rota.Infeasible, match=r'1,062,882 phases, more than 2,500: .* sizes="exponential"'):
        answer.queue_length(0)
    assert analyze(system, answer.policy, sizes="exponential").exact[0] > 1


def test_sizes_that_are_not_phase_type():
    """Lognormal sizes are refused with the ways out, unless they are taken as exponential."""
    system = paper_example(0.5).replace(sizes=[rota.LogNormal(mean=1.0, cv=3.0)] * 3)
    with pytest.raises(rota.Infeasible, match=r"type 'type1' has lognormal sizes: .* Fit one \(rota.Fitted\), simulate, or"):
        analyze(system, paper_rota())
    assert analyze(system, paper_rota(), sizes="exponential").exact == pytest.approx(analyze(paper_example(0.5), paper_rota()).exact)


def test_an_nmsr_with_phase_type_sizes():
    """Completions of a phase-type job cannot move the process (Appendix phase-type); of an exponential one they can."""
    erlang, plain = rota.Erlang(mean=1.0, phases=2), rota.Exponential(mean=1.0)
    policy = paper_rota("none", 0.05)
    with pytest.raises(rota.Infeasible, match="type 'type2' has phase-type sizes and its completions move the process"):
        analyze(paper_example(0.5).replace(sizes=[plain, erlang, plain]), policy)
    growing = MSR([[1, 0], [1, 1]], [0.5, 0.5], "none", 1.0)  # type 1 keeps its slot
    system = rota.System([2], [[1], [1]], [0.5, 0.2], sizes=[erlang, plain])
    assert analyze(system, growing).exact[0] == pytest.approx(0.5 + 0.25 * 1.5 / 2 / 0.5, rel=1e-10)


def test_what_is_for_exponential_sizes_only():
    """The prediction, the printed bounds and the companion are refused for other sizes, with the ways out."""
    system = paper_example(0.5).replace(sizes=[rota.Erlang(mean=1.0, phases=2)] * 3)
    answer = analyze(system, paper_rota())
    for field in ("prediction", "printed_bounds", "single_server"):
        with pytest.raises(rota.Infeasible, match=r'are for exponential sizes: use lower, upper and exact, or .* sizes="exponential"'):
            getattr(answer, field)
    assert answer.load == pytest.approx([0.5] * 3, rel=1e-14)
