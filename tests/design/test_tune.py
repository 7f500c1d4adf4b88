"""Tuning on the mean response time: never worse than the balanced design, and what it brings on the example."""

import signal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota
from rota.design import TuneProgress, balanced_policy, design_policy, tune_response_time
from rota.design.switching import fast_switching_limit, measure
from rotas import PREEMPTIONS, twice_round
from systems import paper_example, small_systems


def mean_response_time(system, policy):
    """E[T], exactly."""
    return rota.analyze(system, policy).mean_response_time


def setup_rate_for(preemption):
    """What an sMSR needs and the others do not."""
    return {"setup_rate": 10.0} if preemption == "setup" else {}


def balanced_and_tuned(system, preemption, **options):
    """E[T] of the balanced design and of the tuned one."""
    fields = setup_rate_for(preemption) | options
    time_limit_s = fields.pop("time_limit_s", 2.0)
    balanced = design_policy(system, preemption, objective="load", **fields)
    tuned = design_policy(system, preemption, objective="response-time", time_limit_s=time_limit_s, **fields)
    return mean_response_time(system, balanced), mean_response_time(system, tuned)


@pytest.mark.parametrize("preemption", PREEMPTIONS)
@settings(max_examples=8)
@given(small_systems(), st.floats(0.2, 0.95), st.sampled_from(["late", "early"]))
def test_never_worse(preemption, system, load, opening):
    """On random systems the tuned policy has no higher exact E[T] than the balanced one."""
    before, after = balanced_and_tuned(system.scaled(load=load), preemption, opening=opening, time_limit_s=0.5)
    assert after <= before


@settings(max_examples=5)
@given(small_systems(idle=False), st.floats(0.2, 0.9))
def test_never_worse_by_the_prediction(system, load):
    """Tuned by the prediction, no worse by the prediction."""
    system = system.scaled(load=load)
    start = design_policy(system, "none", by="prediction", objective="load")
    tuned = tune_response_time(system, start, rota.system_load(system), by="prediction", time_limit_s=0.5)
    before, after = (measure(rota.analyze(system, policy), "prediction") for policy in (start, tuned))
    assert after <= before


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_a_loop_that_visits_a_schedule_twice_is_tuned(preemption):
    """From A → B → A → C too tuning goes on, to no worse a rota."""
    system, start = twice_round(preemption, 0.3)
    tuned = tune_response_time(system, start, rota.system_load(system), keep_rate=True, time_limit_s=2.0)
    assert mean_response_time(system, tuned) < mean_response_time(system, start)


@pytest.mark.parametrize(("load", "gain"), [(0.3, 0.25), (0.5, 0.15), (0.7, 0.04), (0.9, 0.04), (0.95, 0.025)])
def test_what_it_brings_with_preemption(load, gain):
    """The example, pMSR: E[T] falls by 4.5 % at ρ = 0.9 and 2.8 % at 0.95, and by far more at low load, where (1,1,1) joins the rota."""
    before, after = balanced_and_tuned(paper_example(load), "full")
    assert gain < 1 - after / before < gain + 0.06


def test_what_it_brings_without_preemption():
    """The example, nMSR, ρ = 0.9: early opening, weights and a third schedule take away well over 60 % of E[T]."""
    before, after = balanced_and_tuned(paper_example(0.9), "none", time_limit_s=10.0)
    assert before == pytest.approx(173.762, rel=1e-5)
    assert after < 0.4 * before


def test_what_it_brings_with_setups():
    """The example, sMSR with γ = 10, ρ = 0.9: other weights and a slower clock take away 4 %."""
    before, after = balanced_and_tuned(paper_example(0.9), "setup", time_limit_s=10.0)
    assert 0.04 < 1 - after / before < 0.06


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_one_schedule_alone_is_tried(preemption):
    """At ρ = 0.2 one schedule that holds every type, without any switching, beats the balanced rota; what is found is no worse than it."""
    system = paper_example(0.2)
    before, after = balanced_and_tuned(system, preemption)
    alone = mean_response_time(system, rota.MSR([[1, 1, 1]]))
    assert after * (1 - 1e-3) <= alone < before  # a gain of less than 0.1 % is not taken


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_no_time_at_all(preemption):
    """With a time limit of 0 the answer is a policy no worse than the start."""
    before, after = balanced_and_tuned(paper_example(0.9), preemption, time_limit_s=0.0)
    assert after <= before


def test_a_given_switching_rate_is_kept_with_preemption():
    """A pMSR is tuned in the limit of fast switching, but keeps the clock it was given: no worse if slow, better if fast."""
    system = paper_example(0.9)
    for rate, gain in [(0.5, 0.0), (4.0, 0.0), (64.0, 0.02)]:
        policy = design_policy(system, "full", switching_rate=rate, objective="response-time", time_limit_s=1.0)
        assert policy.switching_rate == rate
        before = mean_response_time(system, design_policy(system, "full", switching_rate=rate, objective="load"))
        assert mean_response_time(system, policy) <= (1 - gain) * before


def test_a_start_that_cannot_be_improved():
    """M/M/4 is what it is: the start comes back."""
    system = rota.System([4], [[1]], [3.0], [1.0])
    for preemption in PREEMPTIONS:
        start = design_policy(system, preemption, objective="load", **setup_rate_for(preemption))
        assert design_policy(system, preemption, objective="response-time", **setup_rate_for(preemption)) == start


# ------------------------------------------------------------------------------------------------------------ on the way


def test_progress():
    """The reports never go up, begin with the weights, and end with the value of the answer."""
    system = paper_example(0.9)
    start = design_policy(system, "none", objective="load")
    seen: list[TuneProgress] = []
    tuned = tune_response_time(system, start, rota.system_load(system), time_limit_s=10.0, progress=seen.append)
    values = [at.mean_response_time for at in seen]
    assert values == sorted(values, reverse=True)
    assert seen[0].step == "weights"
    assert len({at.start for at in seen}) == 1
    assert seen[0].start == pytest.approx(mean_response_time(system, start), rel=1e-12)
    assert [at.time_s for at in seen] == sorted(at.time_s for at in seen)
    assert "opening slots early" in {at.step for at in seen}
    assert mean_response_time(system, tuned) == pytest.approx(values[-1], rel=1e-12)


@pytest.mark.parametrize("preemption", ["none", "setup"])
def test_an_interrupt_keeps_the_best_so_far(preemption):
    """Ctrl-C ends the search with the best policy found until then: here a real one, at the second report."""
    system = paper_example(0.7)
    start = design_policy(system, preemption, objective="load", **setup_rate_for(preemption))
    seen: list[float] = []

    def interrupt(at: TuneProgress) -> None:
        seen.append(at.mean_response_time)
        if len(seen) == 2:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        tuned = tune_response_time(system, start, rota.system_load(system), time_limit_s=60.0, progress=interrupt)
    except KeyboardInterrupt:
        pytest.fail("the interrupt was not caught")
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(seen) == 2
    assert mean_response_time(system, tuned) == pytest.approx(seen[1], rel=1e-12)
    assert seen[1] < mean_response_time(system, start)


def test_a_pmsr_is_tuned_in_the_limit():
    """With preemption the reports are of α → ∞, which has a closed form."""
    system = paper_example(0.9)
    start = design_policy(system, "full", objective="load")
    seen: list[TuneProgress] = []
    tuned = tune_response_time(system, start, rota.system_load(system), time_limit_s=10.0, progress=seen.append)
    limit = [fast_switching_limit(system, policy).sum() / system.arrival_rate.sum() for policy in (start, tuned)]
    assert seen[0].start == pytest.approx(limit[0], rel=1e-12)
    assert seen[-1].mean_response_time == pytest.approx(limit[1], rel=1e-12)
    assert limit[1] < limit[0]


@pytest.mark.parametrize(("preemption", "setup_rate", "rate"), [("full", None, 4.0), ("none", None, 0.05), ("setup", 10.0, 0.2)])
def test_a_given_switching_rate_is_kept(preemption, setup_rate, rate):
    """With a switching rate given, tuning changes the weights and candidates only, and gains all the same."""
    system = paper_example(0.9)
    best = rota.system_load(system)
    start = balanced_policy(system, best, preemption, setup_rate=setup_rate).replace(switching_rate=rate)
    tuned = tune_response_time(system, start, best, keep_rate=True, time_limit_s=2)
    assert tuned.switching_rate == rate
    assert rota.analyze(system, tuned).mean_response_time < rota.analyze(system, start).mean_response_time


def test_own_generators_are_refused():
    """A policy with a generator of its own is not a loop, and tuning says so."""
    system = paper_example(0.9)
    start = rota.MSR([(0, 0, 2), (1, 4, 0)], generator=[[-1, 1], [1, -1]])
    with pytest.raises(rota.Infeasible, match="only loops"):
        tune_response_time(system, start, rota.system_load(system))
