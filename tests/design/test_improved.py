"""`design_improved`: the base is the best rota found."""

import pytest

import rota
from rota.analysis import analyze
from rotas import PREEMPTIONS
from systems import paper_example


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_its_base_is_the_best_rota(preemption):
    """The base has the preemption asked for and at most the mean response time of balanced loads; gaps are filled by the model's way."""
    system = paper_example(0.8)
    options = {"setup_rate": 50.0} if preemption == "setup" else {}
    policy = rota.design_improved(system, preemption, load=rota.system_load(system), time_limit_s=5, **options)
    balanced = rota.design_policy(system, preemption, objective="load", **options)
    assert policy.base.preemption == preemption
    assert policy.backfill == (preemption != "full")
    assert analyze(system, policy.base).mean_response_time <= analyze(system, balanced).mean_response_time * (1 + 1e-3)
    assert not rota.design_improved(system, preemption, backfill=False, time_limit_s=2, **options).backfill


def test_the_model_of_the_system():
    """Preemption and setups are those of the system unless given."""
    system = paper_example(0.8).with_preemption("setup", 0.01)
    policy = rota.design_improved(system, time_limit_s=3)
    assert (policy.preemption, policy.base.setup_rate) == ("setup", 100.0)


def test_slow_setups():
    """Where setups take longer than jobs, the base stops none."""
    system = paper_example(0.8).with_preemption("setup", 3.0)
    assert rota.design_improved(system, time_limit_s=4).preemption == "none"


def test_refusals():
    """No rota, no improved rota; and one of too many states has none."""
    with pytest.raises(rota.Unstable, match="system load"):
        rota.design_improved(paper_example(1.1))
    with pytest.raises(rota.BadSpec, match="backfill"):
        rota.design_improved(paper_example(0.5), "full", backfill=True, time_limit_s=2)
