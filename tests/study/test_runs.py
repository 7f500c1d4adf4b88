"""One run of a study."""

import dataclasses

import pytest

import rota
from rota.simulation import POLICY_NAMES
from rota.study import grid, repeat
from rota.study.runs import Run, measure, policy_from_text, policy_text
from rotas import paper_rota
from systems import paper_example

SYSTEM = paper_example(0.6)


def the_run(policy, **options) -> Run:
    """The only run of a grid."""
    (run,) = grid(SYSTEM, [policy], jobs=2000, **options)
    return run


@pytest.mark.parametrize("policy", [*POLICY_NAMES.values(), rota.RandomizedTimers(rate=0.3, power=0.5)], ids=str)
def test_policies_as_text(policy):
    """A policy without a file comes back from its text."""
    assert policy_from_text(policy_text(policy)) == policy


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ('{"policy": "first-fit"}', rota.FirstFit()),
        ('{"policy": "max-weight-np", "preemption": "none"}', rota.MaxWeight("none")),
        ('{"policy": "randomized-timers", "rate": 0.3, "power": 0.5, "floor": 0.0001}', rota.RandomizedTimers(0.3, 0.5)),
    ],
)
def test_results_of_older_releases(text, policy):
    """Rows that have the name and the fields of a policy are still repeated."""
    assert policy_from_text(text) == policy


def test_a_policy_that_is_not_known():
    """A name that this release does not know is refused, with what helps."""
    with pytest.raises(rota.BadSpec, match="repeat it with the Rota that made it"):
        policy_from_text('{"policy": "lottery"}')


def test_a_rota_as_text():
    """A rota's text is its file."""
    policy = paper_rota("none", 0.1).replace(names=SYSTEM.names, backfill=True)
    assert policy_from_text(policy_text(policy)) == policy


@pytest.mark.parametrize("change", [{"seed": 1}, {"jobs": 3000}, {"system": "…"}, {"definition": "…"}, {"rota": "0.0"}], ids=str)
def test_the_key_tells_runs_apart(change):
    """Whatever defines a run is in its key, all but the seed in its case; what people call it is not."""
    run = the_run("fcfs")
    other = dataclasses.replace(run, **change)
    assert other.key != run.key
    assert (other.case == run.case) == ("seed" in change)
    assert dataclasses.replace(run, policy="First come").key == run.key


@pytest.mark.parametrize("policy", ["first-fit", "max-weight-np", paper_rota("full", 2.0), "nMSR+backfill"], ids=str)
def test_a_row_is_what_simulate_says_and_repeats_itself(policy):
    """A row holds what was measured, and enough to measure it again, bit by bit."""
    row = measure(the_run(policy, seeds=[3]))
    again = repeat(row)
    assert (row["outcome"], row["seed"], row["rota"]) == ("done", 3, rota.__version__)
    for name in ("mean_response_time", "interval", "events", "preemption_rate", "simulated_time", "stable"):
        assert row[name] == getattr(again, name)
    assert row["mean_queue_length"] == again.mean_queue_length.tolist()
    assert row["utilization"] == again.utilization.tolist()
    assert row["p99.9"] == again.response_time_quantiles[0.999]
    if not isinstance(policy, str):
        assert row["mean_response_time"] == rota.simulate(SYSTEM, policy, jobs=2000, seed=3).mean_response_time


def test_designs_are_those_of_design_policy():
    """An MSR by name is designed for the system, with the rates asked for, and the row tells the rates it has."""
    free, fixed, setup = (
        measure(the_run(name, **rates))
        for name, rates in [
            ("nMSR", {}),
            ("pMSR", {"switching_rates": [3.0]}),
            ("sMSR+backfill", {"switching_rates": [0.5], "setup_rates": [20.0]}),
        ]
    )
    assert policy_from_text(free["policy_json"]) == rota.design_policy(SYSTEM, "none", objective="load")
    assert policy_from_text(fixed["policy_json"]) == rota.design_policy(SYSTEM, "full", switching_rate=3.0, objective="load")
    designed = rota.design_policy(SYSTEM, "setup", switching_rate=0.5, setup_rate=20.0, objective="load")
    assert policy_from_text(setup["policy_json"]) == designed.replace(backfill=True)
    assert free["switching_rate"] == rota.design_policy(SYSTEM, "none", objective="load").switching_rate
    assert (fixed["switching_rate"], fixed["setup_rate"]) == (3, None)
    assert (setup["switching_rate"], setup["setup_rate"]) == (0.5, 20)


@pytest.mark.parametrize(
    ("policy", "options", "reason"),
    [
        ("server-filling", {}, "powers of two"),
        ("pMSR", {"loads": [1.2]}, "not below 1"),
        ("nMSR", {"switching_rates": [50.0]}, "switch less often"),
        ("sMSR", {}, "setup_rate"),
        (rota.MSR([[1, 0]], names=("a", "b")), {}, "types"),
    ],
    ids=str,
)
def test_what_cannot_run_says_why(policy, options, reason):
    """A policy that cannot run here has a row with the reason, and no measurements to repeat."""
    row = measure(the_run(policy, **options))
    assert row["outcome"] == "impossible"
    assert reason in row["error"]
    with pytest.raises(rota.BadSpec, match="impossible"):
        repeat({"policy_json": None, **row})


def test_backfilling_is_simulated_at_any_switching_rate():
    """A rota that is unstable at a switching rate may not be with backfilling: that is measured, not refused."""
    assert measure(the_run("nMSR+backfill", switching_rates=[50.0]))["outcome"] == "done"


@pytest.mark.parametrize("rates", [{}, {"switching_rates": [0.1]}], ids=["designed", "given"])
def test_a_rota_that_holds_is_swept(rates):
    """By its name it is the rota of the name without holding, designed or with a rate that is given, and it holds."""
    held, filled = (policy_from_text(measure(the_run(name, **rates))["policy_json"]) for name in ("nMSR+hold", "nMSR+backfill"))
    assert held == filled.replace(backfill="hold")


def test_another_version_is_no_result():
    """A worker with another version of Rota refuses: its results would pass as those of this one."""
    row = measure(dataclasses.replace(the_run("fcfs"), rota="0.0.1"))
    assert row["outcome"] == "failed"
    assert "started with 0.0.1" in row["error"]


def test_what_goes_wrong_otherwise_is_to_be_tried_again():
    """An error that is not Rota's is told in the row, marked as failed."""
    row = measure(dataclasses.replace(the_run("fcfs"), definition="no JSON"))
    assert row["outcome"] == "failed"
    assert row["error"].startswith("JSONDecodeError: ")
