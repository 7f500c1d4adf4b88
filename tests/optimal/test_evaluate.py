"""Evaluation of a policy by its chain: against simulation, closed forms and the optimum; and what is refused."""

import numpy as np
import pytest

import rota
from rota.decide import COMPLETION
from systems import paper_example


def first_type_first(state, target):
    """Static priority without preemption: jobs of the first type start while they fit, then those of the next."""
    if state.event[0] == COMPLETION:
        target[state.event[1]] -= 1
    for r in range(state.free.shape[0]):
        state.residual[r] = state.free[r]
    for i in range(target.shape[0]):
        while target[i] < state.system[i]:
            fits = True
            for r in range(state.residual.shape[0]):
                if state.demand[i, r] > state.residual[r]:
                    fits = False
            if not fits:
                break
            target[i] += 1
            for r in range(state.residual.shape[0]):
                state.residual[r] -= state.demand[i, r]
    return np.inf


def oldest_type(state, target):
    """One server: preempts for the oldest job of all."""
    best = -1
    for i in range(target.shape[0]):
        target[i] = 0
        if state.oldest[i] >= 0 and (best < 0 or state.sequence[state.oldest[i]] < state.sequence[state.oldest[best]]):
            best = i
    if best >= 0:
        target[best] = 1
    return np.inf


def counts_calls(state, target):
    """Keeps a number between events."""
    state.counters[0] += 1
    target[0] = min(state.system[0], 1)
    return np.inf


def asks_again(state, target):
    """Wants to be called at a time of its own."""
    target[0] = min(state.system[0], 1)
    return state.clock[0] + 1.0


def too_many(state, target):
    """Asks for more than fits."""
    target[0] = state.system[0]
    return np.inf


@pytest.mark.parametrize(
    "policy", ["max-weight", "max-weight-np", rota.Custom(first_type_first)], ids=["max-weight", "max-weight-np", "priority"]
)
def test_simulation_agrees(policy):
    """The mean number of jobs of each type is within the interval of a simulation, and the interval is narrow."""
    system = paper_example(0.6)
    exact = rota.evaluate(system, policy, accuracy=1e-3)
    result = rota.simulate(system, policy, jobs=400_000, seed=3)
    assert exact.settled
    assert result.interval < 0.02 * exact.mean_response_time
    assert abs(result.mean_response_time - exact.mean_response_time) < 2 * result.interval
    assert (np.abs(result.mean_queue_length - exact.queue_length) < 3 * result.mean_queue_length_interval).all()


def test_plain_and_compiled_functions_agree():
    """A function that numba cannot compile is called in plain Python."""

    def plain(state, target):
        vars(rota)  # which numba does not know
        return first_type_first(state, target)

    system = rota.System([2], [[1], [2]], [0.4, 0.3], [1.0, 1.0])
    fast, slow = (rota.evaluate(system, rota.Custom(f), truncation=8).queue_length for f in (first_type_first, plain))
    assert slow == pytest.approx(fast, rel=1e-9)


def test_closed_form():
    """One server, preemptive priority for the first type, as a table: the formulas of M/M/1 with priorities."""
    lam, mu = np.array([0.3, 0.25]), np.array([1.0, 1.0])
    system = rota.System([1], [[1], [1]], lam, mu)
    schedules, N = [[0, 0], [0, 1], [1, 0]], (10, 30)
    q = np.array(np.unravel_index(np.arange(11 * 31), (11, 31)))
    policy = rota.Tabulated(schedules, N, np.where(q[0] > 0, 2, np.where(q[1] > 0, 1, 0)), "full")
    exact = rota.evaluate(system, policy, accuracy=1e-6)
    first = 1 / (1 - 0.3)
    second = (1 + lam.sum() / (1 - lam.sum())) / (1 - 0.3)
    assert exact.response_time == pytest.approx([first, second], rel=1e-5)
    assert np.max(exact.truncation) > 12  # beyond the table it is read at its edge
    assert exact.unbalanced < 1e-10


def test_the_optimum_is_evaluated_as_itself():
    """The table of the best policy has the mean that the optimisation found; MaxWeight has a larger one."""
    system = paper_example(0.7)
    best = rota.optimal_policy(system, "full", accuracy=1e-3)
    own = rota.evaluate(system, best.policy, accuracy=1e-3)
    other = rota.evaluate(system, rota.MaxWeight(), accuracy=1e-3)
    assert own.mean_response_time == pytest.approx(best.mean_response_time, rel=2e-3)
    assert best.lower_bound <= own.mean_response_time * (1 + 1e-3)
    assert own.mean_response_time < other.mean_response_time


def test_words():
    """It says how far the numbers can be trusted."""
    answer = rota.evaluate(rota.System([1], [[1]], [0.5], [1.0]), "max-weight")
    assert repr(answer).startswith("<Evaluation of max-weight: mean response time 1.99")
    assert "changed the mean by less than the accuracy" in answer.explain()
    assert "<table>" in answer._repr_html_()


def test_an_unstable_policy_does_not_settle():
    """The mean grows with the truncation until memory ends it."""
    with pytest.raises(rota.NotConverged, match="may be unstable"):
        rota.evaluate(rota.System([1], [[1], [1]], [0.7, 0.4], [1.0, 1.0]), "max-weight", memory_limit_gb=0.005)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("first-fit", "goes by the order of arrival"),
        ("server-filling", "goes by the order of arrival"),
        ("randomized-timers", "draws random times"),
        (rota.MSR([[1, 0], [0, 1]], [0.5, 0.5], switching_rate=1.0), "rota.analyze"),
        (rota.Custom(oldest_type), "depend on the order in which jobs of different types arrived"),
        (rota.Custom(counts_calls), "keeps numbers between events"),
        (rota.Custom(asks_again), "times of its own"),
        (rota.Custom(too_many), "do not fit together"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_refused(policy, words):
    """Policies whose state is more than counts, each with the reason."""
    with pytest.raises(rota.Infeasible, match=words):
        rota.evaluate(rota.System([1], [[1], [1]], [0.3, 0.4], [1.0, 1.0]), policy, truncation=6)


@pytest.mark.parametrize("policy", ["stalling-max-weight", rota.Improved(rota.MSR([[4, 0], [0, 2]], [0.5, 0.5], "full", 2.0))])
def test_policies_that_remember_are_refused(policy):
    """Where decisions depend on what was decided before, the numbers of jobs are not the whole state."""
    system = rota.System([4], [[1], [2]], [1.0, 0.5], [1.0, 1.0])
    with pytest.raises(rota.Infeasible, match="has no chain on the numbers of jobs"):
        rota.evaluate(system, policy)
