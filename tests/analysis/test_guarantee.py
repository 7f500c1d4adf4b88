"""What is proved of policies that look at the queues: improved rotas, and rotas with full preemption that backfill."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rota
from reference_simulator import FINISH, engine_log, jobs_for
from rota.analysis import Guarantee, analyze
from rotas import paper_case, paper_rota, systems_and_rotas
from systems import paper_example


@settings(deadline=None, max_examples=40)
@given(systems_and_rotas())
def test_bounds(case):
    """The bound on the mean is the exact mean of the rota; with the others in service, it bounds each type."""
    system, base = case
    behind = analyze(system, base)
    assume(behind.stable and behind.accurate)
    found = analyze(system, rota.Improved(base))
    assert isinstance(found, Guarantee)
    assert found.mean_response_time_upper == pytest.approx(behind.mean_response_time)
    assert (found.upper >= behind.exact * (1 - 1e-9)).all()  # the whole, less what is always there of the others
    assert (found.lower <= behind.exact * (1 + 1e-9)).all()
    assert found.mean_response_time_lower <= found.mean_response_time_upper * (1 + 1e-9)
    if base.preemption == "full":
        filled = analyze(system, base.replace(backfill=True))
        assert filled.upper == pytest.approx(behind.exact)
        assert filled.per_type


def test_simulation_keeps_the_guarantee():
    """Simulated means of every type, and quantiles, are at most what is proved."""
    system = paper_example(0.8)
    policy = paper_rota(backfill=True)
    found, result = analyze(system, policy), rota.simulate(system, policy, jobs=200_000, seed=2)
    assert (result.response_time - result.response_time_interval <= found.response_time_upper).all()
    tails = found.type_response_time_quantiles_upper((0.5, 0.95))
    for level, times in tails.items():
        assert (result.type_response_time_quantiles[level] <= 1.05 * times).all()


@settings(deadline=None, max_examples=25)
@given(systems_and_rotas("full"), st.data())
def test_no_job_ends_later(case, data):
    """On the same jobs of any sizes, and the same turns of the clock, each job ends no later with backfilling."""
    system, policy = case
    served = np.flatnonzero(policy.candidates.max(axis=0) > 0)
    jobs = data.draw(jobs_for(served.tolist()))
    ends = [
        {job: time for time, kind, _, job in engine_log(system, policy.replace(backfill=backfill), jobs, seed=3) if kind == FINISH}
        for backfill in (True, False)
    ]
    assert all(ends[0][job] <= time + 1e-9 for job, time in ends[1].items())


def test_there_are_no_exact_values():
    """What only a rota has is refused, with the way out; what a search asks for is answered with no."""
    found = analyze(paper_example(0.8), rota.Improved(paper_rota()))
    for name in ("exact", "exact_means", "prediction", "quick_prediction", "variance", "mean_response_time", "single_server"):
        with pytest.raises(
            rota.Infeasible, match=r"improved pMSR looks at the queues.*mean_response_time_upper, which are proved, or simulate"
        ):
            getattr(found, name)
    with pytest.raises(rota.Infeasible, match="looks at the queues"):
        found.response_time_distribution(0)
    with pytest.raises(rota.Infeasible, match="not for its law: simulate"):
        found.type_response_time_quantiles_upper()
    assert not found.has_exact
    assert not found.accurate


def test_an_unstable_rota_proves_nothing():
    """The error names the policy and the rota's load."""
    found = analyze(paper_example(1.2), rota.Improved(paper_rota()))
    assert not found.stable
    assert found.remarks() == ()
    with pytest.raises(rota.Unstable, match=r"nothing is proved of improved pMSR, as the rota behind it is not stable: load 1.2"):
        found.require_stable()
    with pytest.raises(rota.Unstable):
        assert found.mean_response_time_upper
    assert "nothing is proved" in repr(found)
    assert "nothing is proved" in found._repr_html_()


def test_sizes():
    """Backfilling is proved for phase-type sizes too, an improved rota for exponential ones only."""
    system = rota.System([20, 15, 50], [[3, 7, 1], [4, 1, 1], [10, 1, 5]], [0.3, 1.2, 0.6], sizes=[rota.Erlang(mean=1.0, phases=2)] * 3)
    assert analyze(system, paper_rota(backfill=True)).upper == pytest.approx(analyze(system, paper_rota()).exact)
    with pytest.raises(rota.Infeasible, match="the guarantee of an improved rota is for exponential sizes"):
        analyze(system, rota.Improved(paper_rota()))
    assert analyze(system, rota.Improved(paper_rota()), sizes="exponential").stable


def test_words():
    """A person reads what is proved, per type or over all jobs."""
    system, base = paper_case(0.8, "none", 0.06)
    found = analyze(system, rota.Improved(base))
    assert "proved: that of the rota it improves" in found.explain()[0]
    assert "over all jobs" in found.explain()[1]
    assert repr(found).startswith("<Guarantee for improved nMSR: mean response time at most ")
    assert "E[T] at most" in found._repr_html_()
    assert "no job ends later" in analyze(system, paper_rota(backfill=True)).explain()[0]


def test_bounds_of_the_rota_where_exact_values_take_too_long(monkeypatch):
    """Where the exact values of a rota are refused, its proved bounds serve."""

    def refuse(self, i):
        raise rota.Infeasible("too many states")

    system, base = paper_case(0.8, "none", 0.06)
    found = analyze(system, rota.Improved(base))
    exact = analyze(system, base).mean_response_time
    monkeypatch.setattr(rota.Analysis, "_solve", refuse)
    assert exact < found.mean_response_time_upper == found.behind.little(found.behind.upper)
