"""A fleet in Python: what it is, what it refuses, and the servers that it is made of."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given

import rota
from fleets import described_fleets, small_fleets
from systems import paper_example

FIELDS = {
    "count": [40, 4],
    "capacity": [[32, 128, 0], [64, 512, 8]],
    "demand": [[8, 64, 2], [16, 24, 0], [4, 40, 0]],
    "arrival_rate": [2.5, 12.0, 60.0],
    "service_rate": [0.25, 0.5, 1.0],
    "names": ["train", "render", "query"],
    "resources": ["cores", "memory", "gpus"],
    "kinds": ["small", "gpu"],
    "only": [None, None, ["small"]],
    "speed": [[1, 1, 1], [1, 3, 1]],
}


def fleet_of(**changes) -> rota.Fleet:
    """The fleet above, with changes."""
    return rota.Fleet(**{**FIELDS, **changes})


def refused(**changes) -> list[rota.Problem]:
    """The problems of the fleet with these changes."""
    with pytest.raises(rota.BadSpec) as error:
        fleet_of(**changes)
    return list(error.value.problems)


def test_where_types_run():
    """Where they fit and `only` allows it."""
    fleet = fleet_of()
    assert fleet.runs.tolist() == [[False, True, True], [True, True, False]]
    assert fleet.servers == 44
    assert repr(fleet) == "<Fleet: 40 small + 4 gpu; jobs train, render, query; preemption none>"
    assert "3 × as fast" in fleet._repr_html_()
    assert fleet.kind_index("gpu") == fleet.kind_index(1) == 1
    for wrong in ("tpu", 2, -1, True, None):
        with pytest.raises(rota.BadSpec, match=r"kind: must be a name \(small, gpu\) or a number 0…1"):
            fleet.kind_index(wrong)


def test_one_server_of_a_kind():
    """Its system has the types that run there with their running times there, and the resources that it has."""
    fleet = fleet_of()
    gpu = fleet.server("gpu")
    assert gpu.names == ("train", "render")
    assert gpu.capacity.tolist() == [64, 512, 8]
    assert gpu.service_rate == pytest.approx([0.25, 1.5])
    assert gpu.arrival_rate == pytest.approx([2.5 / 4, 12 / 44])
    small = fleet.server(0)
    assert (small.names, small.resources) == (("render", "query"), ("cores", "memory"))
    assert small.arrival_rate == pytest.approx([12 / 44, 60 / 40])
    assert fleet.server("gpu", [0.5, 1.0, 0.0]).arrival_rate.tolist() == [0.5, 1.0]
    with pytest.raises(rota.BadSpec, match="must be 0 for types that cannot run on this kind: query"):
        fleet.server("gpu", [0.5, 1.0, 1.0])
    with pytest.raises(rota.BadSpec, match="needs 3 numbers"):
        fleet.server("gpu", [0.5])
    with pytest.raises(rota.BadSpec, match=r"servers\.gpu: no type can run on this kind"):
        fleet_of(demand=[[8, 64, 0]] * 3, only=[["small"]] * 3, speed=None).server("gpu")


@given(small_fleets())
def test_arrivals_are_spread_over_all_servers(fleet):
    """The arrivals at the servers together are those of the fleet."""
    total = np.zeros(len(fleet.names))
    for c, count in enumerate(fleet.count):
        if fleet.runs[c].any():
            server = fleet.server(c)
            for name, rate in zip(server.names, server.arrival_rate, strict=True):
                total[fleet.type_index(name)] += count * rate
    assert total == pytest.approx(fleet.arrival_rate)


def test_equal_servers():
    """`Fleet.equal` is the system, several times; one of its servers is the system at a part of the rates."""
    system = paper_example()
    fleet = rota.Fleet.equal(system, 5)
    assert fleet.count.tolist() == [5]
    assert fleet.server(0) == system.scaled(factor=1 / 5)
    assert rota.Fleet.equal(system, 1).server("server") == system


def test_same_fleets_are_equal():
    """And have the same hash; any other field makes another fleet."""
    fleet = fleet_of()
    assert fleet == fleet_of()
    assert hash(fleet) == hash(fleet_of())
    for changes in (
        {"count": [40, 5]},
        {"speed": None},
        {"only": None},
        {"dispatch": "jsq"},
        {"kinds": ["little", "gpu"], "only": None},
        {"capacity": [[32, 128, 0], [64, 512, 9]]},
        {"preemption": "full"},
        {"arrival_rate": [2.5, 12.0, 61.0]},
    ):
        assert fleet_of(**changes) != fleet
    assert fleet != "a fleet"


def test_a_fleet_does_not_change():
    """Arrays and fields are read-only, and arrays are copies."""
    count = np.array([40, 4])
    fleet = fleet_of(count=count)
    count[0] = 1
    assert fleet.count[0] == 40
    for name in ("count", "capacity", "demand", "arrival_rate", "service_rate", "speed"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(fleet, name)[0] = 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        fleet.kinds = ("a", "b")


@given(described_fleets())
def test_replace_keeps_everything_else(fleet):
    """A copy is equal; other rates change only the rates."""
    assert fleet.replace() == fleet
    other = fleet.replace(arrival_rate=fleet.arrival_rate / 2)
    assert other.replace(arrival_rate=fleet.arrival_rate) == fleet
    assert fleet.scaled(factor=0.5) == other
    assert fleet.with_preemption("full").preemption == "full"
    assert fleet.with_poisson_arrivals().bursty == ()


def test_dispatch():
    """By name or as an object; power-of-d compares two servers if nothing else is said."""
    assert fleet_of(dispatch="power-of-d").dispatch == rota.Dispatch("power-of-d", 2)
    assert fleet_of(dispatch=rota.Dispatch("power-of-d", 3)).dispatch.d == 3
    assert fleet_of(dispatch="pull").dispatch == rota.Dispatch("pull")
    assert fleet_of().dispatch is None
    rule = 'must be one of "random", "round-robin", "jsq", "power-of-d", "best-fit", "least-wait", "pull", "pinned"'
    assert refused(dispatch="fastest") == [rota.Problem("dispatch.rule", rule, "fastest")]
    for d in (0, 1.5, True, "2"):
        assert refused(dispatch=rota.Dispatch("power-of-d", d))[0].rule == "must be a whole number of at least 1"
    assert refused(dispatch=rota.Dispatch("jsq", 2))[0].rule == 'goes with rule = "power-of-d", and only with it'


@pytest.mark.parametrize("count", [0, -3, 2 * 10**9])
def test_counts_without_sense(count):
    """None, fewer than none and absurdly many are refused with the rule."""
    (problem,) = refused(count=[40, count])
    assert (problem.place, problem.value) == ("servers.gpu.count", count)
    assert problem.rule == "must be a whole number from 1 to 1,000,000,000: leave a kind out of which there is no server"


@pytest.mark.parametrize(
    ("changes", "place", "rule"),
    [
        ({"count": [1.5, 4]}, "count", "must be whole numbers"),
        ({"count": "many"}, "count", "must be whole numbers"),
        ({"count": [4]}, "count", "needs 2 entries"),
        ({"capacity": [32, 128]}, "capacity", "must be a non-empty table of numbers, one row per kind of server"),
        ({"capacity": [[32, -1, 0], [64, 512, 8]]}, "servers.small.memory", "must be finite and not negative"),
        ({"capacity": [[0, 0, 0], [64, 512, 8]], "only": None}, "servers.small", "needs a positive amount of at least one resource"),
        ({"demand": [[8, 64]] * 3}, "demand", "needs 3 columns, as capacity is 2 × 3"),
        ({"kinds": ["a"]}, "kinds", "needs 2 entries"),
        ({"kinds": "ab"}, "kinds", "must be a list of names"),
        ({"kinds": ["a", "a"], "only": None}, "kinds[1]", "is a duplicate"),
        ({"kinds": ["a", ""], "only": None}, "kinds[1]", "must be a non-empty string"),
        ({"resources": ["cores", "memory", "count"]}, "resources", "must not have the name that a table of servers uses"),
        ({"only": ["gpu", None, None]}, "only", "must be a list of 3 entries"),
        ({"only": "gpu"}, "only", "must be a list of 3 entries"),
        ({"only": [None, None, ["tpu"]]}, "jobs.query.only", "there is no such kind of server (there are: small, gpu)"),
        ({"only": [["small"], None, None]}, "jobs.train.demand", "fits no kind of server, so a job of this type can never run: 'small'"),
        ({"only": [["small", "gpu"], None, None]}, "jobs.train.only", "names a kind on which a job of this type can never run"),
        ({"only": [None, None, []]}, "jobs.query.only", "must name at least one kind of server"),
        ({"speed": [[2, 1, 1], [1, 3, 1]]}, "jobs.train.speed.small", "is a speed on a kind on which no job of this type fits"),
        ({"speed": [[1, 1, 1], [1, 3, 2]]}, "jobs.query.speed.gpu", "is a speed on a kind that is not in only"),
        ({"speed": [[1, 1, 1], [1, -3, 1]]}, "jobs.render.speed.gpu", "must be positive and finite: 2 halves the running time"),
        ({"speed": [[1, 1], [1, 3]]}, "speed", "needs 2 × 3 numbers"),
        ({"demand": [[8, 64, 9], [16, 24, 0], [4, 40, 0]]}, "jobs.train.demand", "fits no kind of server"),
        ({"demand": [[0, 0, 0], [16, 24, 0], [4, 40, 0]]}, "jobs.train.demand", "must be positive for at least one resource"),
        ({"arrival_rate": [1.0]}, "arrival_rate", "needs 3 entries"),
        ({"preemption": "some"}, "preemption.model", 'must be "full", "none" or "setup"'),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_fleets(changes, place, rule):
    """What makes no fleet is refused, with its place and the rule."""
    problem = refused(**changes)[0]
    assert problem.place == place
    assert problem.rule.startswith(rule)


def test_where_a_type_lacks_what():
    """A type that fits no kind is told what each kind lacks."""
    (problem,) = refused(demand=[[8, 64, 9], [16, 24, 0], [4, 40, 0]])
    assert problem.rule.endswith("can never run: 'small' has no 'gpus'; 'gpu' has 8 of 'gpus', and it needs 9")


@pytest.mark.parametrize(
    "verb",
    [
        lambda fleet: rota.list_schedules(fleet),
        lambda fleet: rota.build_process(fleet, rota.MSR([[1, 0, 0]], [1.0])),
        lambda fleet: rota.tune_adaptive(fleet),
    ],
    ids=["schedules", "process", "tune"],
)
def test_what_takes_one_server_refuses_a_fleet(verb):
    """With what can be done with a fleet instead."""
    with pytest.raises(rota.BadSpec, match=r"system: must be one server: a fleet has rota.system_load, .*fleet\.server\(kind\)"):
        verb(fleet_of())


@pytest.mark.parametrize("verb", [rota.simulate, rota.optimal_policy, rota.sweep], ids=lambda verb: verb.__name__)
def test_other_verbs_refuse_it_too(verb):
    """None of them fails in another way."""
    with pytest.raises(rota.BadSpec):
        verb(fleet_of(), *(["fcfs"] if verb is not rota.optimal_policy else []), **({"jobs": 10} if verb is rota.simulate else {}))
