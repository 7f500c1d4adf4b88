"""Names of policies that are designed for the system at hand: one list, one designer each, known to all verbs."""

import numpy as np
import pytest

import rota
from rota.policy import DESIGNED_NAMES, as_policy, design_named, policy_name, records, register_designed
from rota.study import MSR_NAMES, grid
from rota.study.runs import measure
from systems import paper_example


def test_every_rota_and_every_improved_rota_has_a_designer():
    """The names of all rotas, improved and queue-driven ones can be designed; so can "improved", whichever the system needs."""
    named = {record.name for record in records() if record.policy in (rota.MSR, rota.Improved, rota.Adaptive)}
    assert set(DESIGNED_NAMES) == named | {"improved"}
    assert set(MSR_NAMES) < named


@pytest.mark.parametrize("name", MSR_NAMES)
def test_a_rota_has_what_its_name_says(name):
    """Preemption model and backfilling are those of the name, and it is the close rota unless another objective is asked for."""
    system = paper_example(0.5).with_preemption("setup", 0.1)
    policy = design_named(name, system, time_limit_s=1.0)
    assert policy_name(policy) == name
    paper = design_named(name, system, objective="load", time_limit_s=1.0)
    assert policy_name(paper) == name
    balanced = rota.design_policy(system, policy.preemption, objective="load")
    assert np.array_equal(paper.candidates, balanced.candidates)


@pytest.mark.parametrize(
    ("preemption", "name"), [("full", "improved pMSR"), ("none", "improved nMSR+backfill"), ("setup", "improved nMSR+backfill")]
)
def test_improved_goes_by_the_system(preemption, name):
    """With free preemption it is the improved pMSR, otherwise one with backfilling; its base is designed for the system, unless given."""
    system = paper_example(0.5).with_preemption(preemption, 0.1 if preemption == "setup" else None)
    policy = as_policy("improved", system)
    assert policy_name(policy) == name
    assert rota.analyze(system, policy.base).stable
    assert design_named("improved", system, base=policy.base) == policy


def test_a_new_name_is_one_line():
    """A name that is registered with its designer is simulated, and swept at each load; twice the same name is refused."""
    register_designed("toy", "toy_policy:design_toy")
    try:
        system = paper_example(0.5)
        assert rota.simulate(system, "toy", jobs=1000).policy == rota.EASY()
        rows = [measure(run) for run in grid(system, ["toy"], loads=[0.3, 0.5], jobs=1000)]
        assert [(row["policy"], row["outcome"]) for row in rows] == [("toy", "done")] * 2
        with pytest.raises(rota.BadSpec, match="each has its own"):
            register_designed("toy", "toy_policy:design_toy")
    finally:
        del DESIGNED_NAMES["toy"]
    with pytest.raises(rota.BadSpec, match="must be one of"):
        design_named("toy", paper_example())
    with pytest.raises(rota.BadSpec, match=r"must be a rota\.System"):
        design_named("nMSR", "server.toml")


def test_sweeps_design_at_each_load():
    """ "improved" has a run per load, on a rota of that load; switching rates are for rotas only."""
    runs = grid(paper_example(0.5), ["improved", "nMSR"], loads=[0.4, 0.6], switching_rates=[0.1, 0.2], jobs=2000)
    assert [run.policy for run in runs] == ["improved"] * 2 + ["nMSR"] * 4
    bases = [measure(run)["policy_json"] for run in runs[:2]]
    assert bases[0] != bases[1]
    assert all('"improved"' in text for text in bases)


def test_replications_and_simulations_design_too():
    """`simulate` and `replicate` take the names as `compare` does."""
    system = paper_example(0.4)
    assert rota.simulate(system, "improved", jobs=1000).name == "improved nMSR+backfill"
    assert rota.replicate(system, "nMSR", replications=2, jobs=1000).results[0].name == "nMSR"
