"""Designs for arrivals that are not Poisson: what is kept, what is chosen again, and what is said."""

import pytest

import rota
from rota.analysis import analyze
from rota.analysis.means import mean_queues, predicted_queues
from rota.design import fast_switching_limit, find_design, tune_response_time
from rota.process import build_process
from systems import paper_example

BURSTS = paper_example(0.7).replace(arrivals=[rota.Bursts(factor=3.0, share=0.2, length=20.0)] * 2 + [rota.Poisson()])


@pytest.mark.parametrize("objective", ["load", "close"])
def test_the_switching_rate_is_chosen_with_the_bursts(objective):
    """Candidates and weights are those of Poisson arrivals, the switching rate is the best one with the bursts; a remark says so."""
    found = find_design(BURSTS, "none", objective=objective, time_limit_s=2.0)
    assert found.objective == objective
    assert "'type1', 'type2' are not Poisson: the candidates and weights are those for Poisson arrivals" in found.remarks[-1]
    best = analyze(BURSTS, found.policy).mean_response_time
    for factor in (0.7, 0.9, 1.1, 1.4):
        other = analyze(BURSTS, found.policy.replace(switching_rate=factor * found.policy.switching_rate))
        assert not other.stable or best <= other.mean_response_time * (1 + 1e-6)
    if objective == "load":  # found without a clock
        plain = rota.design_policy(BURSTS.with_poisson_arrivals(), "none", objective="load")
        assert found.policy.candidates.tolist() == plain.candidates.tolist()
        assert best < 0.97 * analyze(BURSTS, plain).mean_response_time


def test_a_given_rate_is_kept():
    """A switching rate of one's own stays, and the remark covers it."""
    found = find_design(BURSTS, "none", objective="load", switching_rate=0.2, time_limit_s=2.0)
    assert found.policy.switching_rate == 0.2
    assert "switching rate are those for Poisson arrivals" in found.remarks[-1]


def test_full_preemption():
    """With preemption the rate is that for Poisson arrivals, and the value that is reported is with the bursts."""
    policy = rota.design_policy(BURSTS, "full", objective="load", time_limit_s=2.0)
    choice = rota.choose_switching_rate(BURSTS, policy)
    assert choice.policy.switching_rate == rota.choose_switching_rate(BURSTS.with_poisson_arrivals(), policy).rate
    assert choice.mean_response_time == pytest.approx(analyze(BURSTS, choice.policy).mean_response_time)
    assert "not Poisson" in choice.remark
    assert choice.explain() == "The switching rate is that for Poisson arrivals of the same rates."


def test_limits_are_those_with_the_bursts():
    """A limit that holds with Poisson arrivals only is refused, one that holds with the bursts is not."""
    plain = rota.design_policy(BURSTS, "none", objective="close", time_limit_s=30.0)  # ends by itself, long before
    times = analyze(BURSTS, plain).response_time
    with pytest.raises(rota.Infeasible, match="'type1' has"):
        rota.design_policy(BURSTS, "none", max_response_time={"type1": 0.4 * times[0]}, time_limit_s=2.0)
    kept = rota.design_policy(BURSTS, "none", max_response_time={"type1": 3 * times[0]}, time_limit_s=2.0)
    assert analyze(BURSTS, kept).response_time[0] <= 3 * times[0]


def test_searches_for_poisson_arrivals_refuse():
    """Compiled means and what is tuned on them never take bursts for Poisson arrivals in silence."""
    policy = rota.MSR([[0, 0, 2], [1, 4, 0]], [0.5, 0.5], switching_rate=0.2)
    process = build_process(BURSTS, policy)
    for ask in (
        lambda: mean_queues(BURSTS, process),
        lambda: predicted_queues(BURSTS, process),
        lambda: fast_switching_limit(BURSTS, policy),
        lambda: tune_response_time(BURSTS, policy, rota.system_load(BURSTS)),
    ):
        with pytest.raises(rota.Infeasible, match="for Poisson arrivals, and those of type 'type1' are not"):
            ask()


def test_exact_verbs_refuse():
    """The optimum and the chain of a policy by counts have no phase of arrivals in their states."""
    for ask in (lambda: rota.optimal_policy(BURSTS), lambda: rota.evaluate(BURSTS, "max-weight")):
        with pytest.raises(rota.Infeasible, match="arrivals of type 'type1' are not Poisson"):
            ask()
