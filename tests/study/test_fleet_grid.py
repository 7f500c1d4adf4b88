"""Studies of fleets: every policy with every rule, on this machine or on others, repeated from their rows."""

import json

import polars as pl
import pytest

import rota
from fleets import two_kinds
from rota.study import over_seeds, repeat, sweep

FLEET = two_kinds()
POLICIES = ["first-fit", "max-weight-np", "adaptive", "nMSR", "pinned", "partly-pinned", "split"]
MEASURED = ["policy", "seed", "outcome", "mean_response_time", "interval", "response_time", "p95"]


def test_every_policy_with_every_rule():
    """Names, designs and designs of the whole fleet, each with each rule where it has none of its own; one jobs list for all."""
    table = sweep(FLEET, POLICIES, dispatch=["jsq", "pull"], loads=[0.5], jobs=2000, workers=0)
    assert table["outcome"].to_list() == ["done"] * 12, table["error"].to_list()
    pairs = [f"{policy}, {rule}" for policy in ("first-fit", "max-weight-np", "adaptive", "nMSR") for rule in ("jsq", "pull")]
    assert table["policy"].to_list() == [*pairs, "pinned", "partly-pinned", "split, jsq", "split, pull"]
    assert table["load"].to_list() == [0.5] * 12


def test_rows_are_repeated():
    """A row holds what was designed: it is repeated bit for bit, without designing again, also at another load and with failing servers."""
    fleet = FLEET.replace(up_time=[100.0, float("inf")], down_time=[2.0, 0.0])
    table = sweep(fleet, POLICIES, dispatch=[rota.Dispatch("jsq", staleness=0.1), "random"], loads=[0.4, 0.7], jobs=2000, workers=0)
    for row in table.to_dicts():
        assert "design" not in json.loads(row["policy_json"])["fleet"].get("policy", {})
        again = repeat(row)
        assert again.mean_response_time == row["mean_response_time"]
        assert again.response_time.tolist() == row["response_time"]


def test_the_same_as_simulate():
    """A run of a study is what simulate says, and cases over seeds are those of replicate."""
    row = sweep(FLEET, [{"plain": "first-fit", "large": "max-weight-np"}], dispatch="least-wait", jobs=3000, workers=0).row(0, named=True)
    one = rota.simulate(FLEET, {"plain": "first-fit", "large": "max-weight-np"}, dispatch="least-wait", jobs=3000)
    assert row["policy"] == "first-fit + max-weight-np, least-wait"
    assert row["mean_response_time"] == one.mean_response_time
    assert len(over_seeds(sweep(FLEET, ["first-fit"], jobs=2000, seeds=3, workers=0))) == 1


def test_workers_change_nothing(tmp_path):
    """Worker processes give the table of this process; what the file holds is not run again."""
    asked = {"policies": ["first-fit", "pinned"], "dispatch": ["jsq", "round-robin"], "jobs": 2000, "seeds": 2}
    alone = sweep(FLEET, **asked, workers=0)
    output, seen = tmp_path / "results.parquet", []
    assert sweep(FLEET, **asked, workers=2, output=output).select(MEASURED).equals(alone.select(MEASURED))
    sweep(FLEET, **asked, workers=0, output=output, progress=seen.append)
    assert [at.found for at in seen] == [6]


def test_over_dask():
    """A cluster on loopback of two worker processes gives the table of this process, unchanged."""
    from distributed import LocalCluster

    asked = {"policies": ["first-fit", "pinned", "adaptive"], "dispatch": ["jsq", "pull"], "loads": [0.5, 0.8], "jobs": 2000, "seeds": 2}
    alone = sweep(FLEET, **asked, workers=0)
    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster:
        table = sweep(FLEET, **asked, scheduler=cluster.scheduler_address)
    assert table.select(MEASURED).equals(alone.select(MEASURED))
    assert table["outcome"].to_list() == ["done"] * 20


def test_what_cannot_run_is_a_row():
    """A design that is not possible on a fleet is told in its row, and the others run."""
    one = rota.Fleet.equal(rota.System([3], [[1], [2]], [1.2, 0.7], [1.0, 1.0]).scaled(load=0.9), 1)
    table = sweep(one, ["pinned", "first-fit"], jobs=2000, workers=0)
    assert table["outcome"].to_list() == ["impossible", "done"]
    assert "servers" in table["error"][0]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"policies": ["first-fit", "nonsense"]}, "policies: must be one of"),
        ({"policies": ["first-fit"], "dispatch": "nearest"}, "dispatch.rule: must be one of"),
        ({"policies": ["first-fit"], "dispatch": []}, "dispatch: must not be empty"),
        ({"policies": ["nMSR"], "switching_rates": [1.0]}, "switching_rates: are for one server"),
        ({"policies": ["sMSR"], "setup_rates": [1.0]}, "setup_rates: are for one server"),
        ({"policies": [{"plain": "first-fit"}]}, "has no policy for a kind of server"),
        ({"policies": ["first-fit"], "dispatch": rota.CustomDispatch(lambda fleet: 0.0)}, "by name: put it into a file"),
    ],
)
def test_refused(options, told):
    """Wrong names, rules and rates are found before anything runs."""
    with pytest.raises(rota.BadSpec, match=told):
        sweep(FLEET, **options, jobs=2000, workers=0)


def test_one_server_takes_no_rule():
    """A dispatch rule for one server is refused."""
    with pytest.raises(rota.BadSpec, match=r"dispatch: goes with a rota\.Fleet"):
        sweep(rota.System([1], [[1]], [0.5], [1.0]), ["fcfs"], dispatch="jsq", workers=0)


def test_the_file_of_a_plan(tmp_path):
    """The file of a plan stands for its policies and its rule."""
    from rota.policy.fleet_plan_file import FleetPlanFile, fleet_plan_file_to_json

    path = tmp_path / "plan.json"
    path.write_text(fleet_plan_file_to_json(FleetPlanFile.of(FLEET, rota.FirstFit(), rota.Dispatch("least-wait"))), encoding="utf-8")
    table = sweep(FLEET, [str(path), "first-fit"], dispatch="least-wait", jobs=2000, workers=0)
    assert table["mean_response_time"].n_unique() == 1
    assert isinstance(table, pl.DataFrame)
