"""What people write about a fleet's policies and dispatch: names, dicts, designs, rules of their own; and what is refused, in words."""

import json

import numpy as np
import pytest

import rota
from rota.cli import main
from rota.model.dispatch import DISPATCH_RULES
from rota.simulation.fleet.policy import as_fleet_policy
from rota.simulation.fleet.state import FleetState
from systems import EXAMPLES

FLEET = rota.Fleet(
    count=[2, 1],
    capacity=[[4], [8]],
    demand=[[1], [6]],
    arrival_rate=[4.0, 0.3],
    service_rate=[1.0, 1.0],
    kinds=["small", "large"],
    names=["web", "train"],
)


def shortest(fleet: FleetState) -> float:
    """The server with the fewest jobs of all, of those on which the type can run."""
    i, chosen = fleet.asked[0], -1
    for m in range(fleet.kind.shape[0]):
        if fleet.up[m] == 1 and fleet.local[fleet.kind[m], i] >= 0 and (chosen < 0 or fleet.total[m] < fleet.total[chosen]):
            chosen = m
    return chosen


def the_first(fleet: FleetState) -> float:
    """Always server 0, whatever the type."""
    return 0


def outside(fleet: FleetState) -> float:
    """A server that there is not."""
    return 99


def test_default_rules():
    """The rule that is given, else that of the design, else that of the fleet, else jsq."""
    assert as_fleet_policy(FLEET, "fcfs").dispatch == rota.Dispatch("jsq")
    assert as_fleet_policy(FLEET.replace(dispatch="pull"), "fcfs").dispatch.rule == "pull"
    assert as_fleet_policy(FLEET.replace(dispatch="pull"), "fcfs", "random").dispatch.rule == "random"
    assert as_fleet_policy(FLEET, rota.design_pinned(FLEET)).label == "pinned"
    assert as_fleet_policy(FLEET, "split").dispatch.rule == "random"


def test_a_policy_by_kind():
    """Each kind has its own, and None means that no job goes there."""
    both = as_fleet_policy(FLEET, {"small": "fcfs", "large": rota.MaxWeight("none")})
    assert both.label == "fcfs + max-weight-np, jsq"
    large = rota.simulate(FLEET, {"small": None, "large": "fcfs"}, jobs=2000)
    assert large.kind_counted[0].sum() == 0
    assert large.kind_counted[1].sum() == large.counted.sum()


def test_designed_by_name():
    """A rota that is designed by its name is one for a server of each kind, with the types that run there."""
    made = as_fleet_policy(FLEET, "nMSR", "jsq")
    assert [policy.candidates.shape[1] for policy in made.policies] == [1, 2]
    assert rota.simulate(FLEET, "nMSR", jobs=3000).name == "nMSR, jsq"


def test_a_rule_of_your_own():
    """A function, or its place, is compiled and chooses: with one type and equal servers it is jsq, event by event."""
    fleet = rota.Fleet(count=[3], capacity=[[2]], demand=[[1]], arrival_rate=[4.0], service_rate=[1.0])
    own = rota.simulate(fleet, "fcfs", dispatch=rota.CustomDispatch(shortest), jobs=3000, log_jobs=500)
    jsq = rota.simulate(fleet, "fcfs", dispatch="jsq", jobs=3000, log_jobs=500)
    assert own.log.equals(jsq.log)
    assert own.name == "fcfs, shortest"


def test_rules_of_your_own_are_checked():
    """A server that there is not, or on which the type cannot run, ends the simulation with a sentence."""
    with pytest.raises(rota.Infeasible, match="named a server that there is not"):
        rota.simulate(FLEET, "fcfs", dispatch=rota.CustomDispatch(outside), jobs=200)
    with pytest.raises(rota.Infeasible, match="has failed, or on which the type cannot run"):
        rota.simulate(FLEET, "fcfs", dispatch=rota.CustomDispatch(the_first), jobs=200)
    with pytest.raises(rota.BadSpec, match="must be a function of one argument"):
        rota.CustomDispatch(7)


def test_a_custom_policy_on_every_server():
    """A decision function of a user runs on every server; one in plain Python is refused."""

    def greedy(state, target):
        for i in range(target.shape[0]):
            target[i] = state.running[i]
        if state.system[0] > state.running[0] and state.free[0] >= state.demand[0, 0]:
            target[0] += 1
        return np.inf

    fleet = rota.Fleet(count=[2], capacity=[[1]], demand=[[1]], arrival_rate=[1.2], service_rate=[1.0])
    own = rota.simulate(fleet, rota.Custom(greedy), jobs=3000)
    assert own.mean_response_time == rota.simulate(fleet, "fcfs", jobs=3000).mean_response_time
    with pytest.raises(rota.Infeasible, match="numba compiles"):
        rota.simulate(fleet, rota.Custom(greedy, compiled=False), jobs=3000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dispatch": "shortest"}, r"dispatch.rule: must be one of \"random\", .* \(got 'shortest'\)"),
        ({"dispatch": "pinned"}, "needs pinned servers"),
        ({"dispatch": rota.Dispatch("jsq", 3)}, 'goes with rule = "power-of-d"'),
        ({"dispatch": "jsq", "staleness": -1.0}, "must be a time, not negative"),
        ({"dispatch": "random", "staleness": 1.0}, "goes with rules that look at the servers"),
        ({"dispatch": "pull", "staleness": 1.0}, "goes with rules that send jobs to servers"),
        ({"failures": {"tiny": (1.0, 1.0)}}, "there is no such kind of server"),
        ({"failures": (0.0, 1.0)}, "two positive numbers"),
        ({"policy": {"small": "fcfs"}}, "has no policy for a kind of server"),
        ({"policy": {"small": "fcfs", "large": "fcfs", "tiny": "fcfs"}}, "there is no such kind of server"),
        ({"policy": "best"}, r"policy of 'small': must be one of fcfs"),
        ({"policy": rota.MSR([[1, 1]], names=["web", "train"])}, "small"),
        ({"start": {"web": 3}}, "is for one server"),
        ({"jobs": 5}, "at least 100"),
    ],
)
def test_bad_input(arguments, message):
    """Every wrong argument is refused in words that say what to do."""
    given = {"policy": "fcfs", "jobs": 1000} | arguments
    with pytest.raises(rota.RotaError, match=message):
        rota.simulate(FLEET, given.pop("policy"), **given)


def test_one_server_takes_no_dispatch():
    """A system has one server: a rule, staleness or failures are refused."""
    for arguments in ({"dispatch": "jsq"}, {"staleness": 1.0}, {"failures": (1.0, 1.0)}):
        with pytest.raises(rota.BadSpec, match=r"goes with a rota\.Fleet"):
            rota.simulate(FLEET.server("large"), "fcfs", **arguments)
        with pytest.raises(rota.BadSpec, match=r"goes with a rota\.Fleet"):
            rota.compare(FLEET.server("large"), ["fcfs"], **arguments)


def test_types_that_no_server_takes():
    """A type whose kinds have no policy is refused, as are pinned servers without a slot for it."""
    with pytest.raises(rota.Infeasible, match="no server has a policy and can run jobs of 'train'"):
        rota.simulate(FLEET, {"small": "fcfs", "large": None})
    pinned = rota.Pinned([0], [[4, 0]], [2], [[1, 0], [0, 1]])
    with pytest.raises(rota.Infeasible, match="no slot for jobs of 'train'"):
        rota.simulate(FLEET, pinned)


def test_too_many_servers():
    """A fleet that takes more memory than there is, is refused with an estimate; nothing is allocated."""
    with pytest.raises(rota.Infeasible, match=r"1,000,000,000 servers take about [\d,.]+ GB of memory in a simulation, and this machine"):
        rota.simulate(FLEET.replace(count=[1_000_000_000 - 1, 1]), "fcfs", jobs=1000)


def test_comparison_of_policies_and_rules():
    """Every policy with every rule on the same jobs; what is not possible is in the errors; rules are checked first."""
    found = rota.compare(FLEET, ["fcfs", "pinned", "server-filling"], dispatch=["jsq", "pull"], jobs=3000, staleness=0.5)
    assert found.labels == ("fcfs, jsq, staleness 0.5", "fcfs, pull", "pinned")
    assert set(found.errors) == {"server-filling, jsq", "server-filling, pull"}
    with pytest.raises(rota.BadSpec, match="must be one of"):
        rota.compare(FLEET, ["fcfs"], dispatch=["jsq", "best"])
    with pytest.raises(rota.BadSpec, match="must not be empty"):
        rota.compare(FLEET, ["fcfs"], dispatch=[])


def test_verbs(capsys, tmp_path):
    """`rota simulate` and `rota compare` take the file of a fleet; wrong rules and options of one server have exit code 2."""
    file, one = str(EXAMPLES / "fleet.toml"), str(EXAMPLES / "paper.toml")
    assert main(["simulate", file, "first-fit", "--dispatch", "jsq", "--jobs", "5000", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["policy"], answer["dispatch"], answer["kinds"]) == ("first-fit, jsq", "jsq", ["small", "gpu"])
    log = tmp_path / "log.parquet"
    assert main(["simulate", file, "pinned", "--jobs", "5000", "--log", str(log)]) == 0
    assert log.exists()
    assert "Kinds of servers" in capsys.readouterr().out
    assert main(["compare", file, "first-fit", "--dispatch", "jsq", "pull", "--jobs", "5000"]) == 0
    assert "first-fit, pull" in capsys.readouterr().out
    for words in (
        ["simulate", file, "fcfs", "--dispatch", "best"],
        ["simulate", one, "fcfs", "--dispatch", "jsq"],
        ["compare", one, "fcfs", "--dispatch", "jsq"],
    ):
        assert main(words) == 2
    assert main(["simulate", file, "fcfs", "--start", "train=3"]) == 2


def test_the_page_has_the_table_of_rules():
    """The table of the rules in the documentation is that of the records."""
    page = (EXAMPLES.parent / "docs" / "explanation" / "fleets.md").read_text(encoding="utf-8")
    for record in DISPATCH_RULES.values():
        assert f"| `{record.name}` | {record.title} |" in page


def test_files_keep_staleness_cost_and_failures(tmp_path):
    """What a simulation needs is in the file of a fleet and comes back; one of the two times of failures alone is refused."""
    fleet = FLEET.replace(dispatch=rota.Dispatch("jsq", staleness=0.5, cost=0.1), up_time=[100.0, np.inf], down_time=[2.0, 0.0])
    fleet.save(tmp_path / "fleet.toml")
    assert rota.read_system(tmp_path / "fleet.toml") == fleet
    with pytest.raises(rota.BadSpec, match="up_time: must be positive and finite, and so must down_time"):
        FLEET.replace(up_time=[100.0, np.inf])
    with pytest.raises(rota.BadSpec, match="a rule of your own"):
        FLEET.replace(dispatch=rota.CustomDispatch(shortest)).to_toml()


def test_a_rota_that_never_runs_a_type_is_sent_none_of_it():
    """Rotas are designed for what the split of the load sends; rules that may send others there are refused: those would wait for ever."""
    fleet = rota.Fleet(
        [12, 4],
        capacity=[[16], [64]],
        demand=[[2], [16], [33]],
        arrival_rate=[40.0, 6.0, 0.5],
        service_rate=[1.0, 1.0, 1.0],
        names=["a", "b", "c"],
        kinds=["thin", "fat"],
    )
    for policy in ("nMSR", "improved nMSR"):
        with pytest.raises(rota.Infeasible, match="the rota of 'thin' servers never runs jobs of 'a', which 'least-wait' may send there"):
            rota.simulate(fleet, policy, dispatch="least-wait", jobs=1000)
    assert rota.simulate(fleet, "nMSR", dispatch="random", jobs=5000).stable
    assert rota.simulate(fleet, "nMSR+backfill", dispatch="least-wait", jobs=5000).stable
