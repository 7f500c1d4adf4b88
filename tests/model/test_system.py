"""`System`: what it holds, what it refuses, and the systems made from it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from systems import paper_example, small_systems

GOOD = {"capacity": [4, 8], "demand": [[1, 2], [2, 1]], "arrival_rate": [1, 2], "service_rate": [1, 4]}


def test_fields_are_arrays_with_default_names():
    """A system holds float arrays in the shapes of the glossary, and names types and resources if nobody did."""
    system = rota.System(**GOOD)
    assert (system.capacity.shape, system.demand.shape, system.arrival_rate.shape, system.service_rate.shape) == ((2,), (2, 2), (2,), (2,))
    assert system.names == ("type1", "type2")
    assert system.resources == ("resource1", "resource2")
    assert system.sizes == (rota.Exponential(mean=1.0), rota.Exponential(mean=0.25))
    assert system.offered_work.tolist() == [1.0, 0.5]
    assert (system.preemption, system.setup_time) == ("none", None)


def test_arrays_are_read_only_copies():
    """Nothing changes a system: not its own arrays, nor those it was made from."""
    capacity = np.array([4.0, 8.0])
    system = rota.System(**GOOD | {"capacity": capacity})
    capacity[0] = 99
    assert system.capacity[0] == 4
    for field in (system.capacity, system.demand, system.arrival_rate, system.service_rate):
        with pytest.raises(ValueError, match="read-only"):
            field[0] = 1
    with pytest.raises(AttributeError):
        system.names = ()


def test_sizes_give_the_service_rates():
    """With distributions in place of rates, the service rate is one over the mean."""
    sizes = [rota.LogNormal(mean=4.0, cv=2.0), rota.Deterministic(mean=0.5)]
    system = rota.System(**GOOD | {"service_rate": None}, sizes=sizes)
    assert system.service_rate.tolist() == [0.25, 2.0]
    assert system.sizes == tuple(sizes)


def test_job_types_name_their_parts():
    """`job_types` shows each type with its demands by resource."""
    first = rota.System(**GOOD, names=["a", "b"], resources=["cores", "memory"]).job_types[0]
    assert first == rota.JobType("a", {"cores": 1.0, "memory": 2.0}, 1.0, rota.Exponential(mean=1.0))


@pytest.mark.parametrize(
    ("change", "place", "rule"),
    [
        ({"capacity": [0, 8]}, "server.resource1", "positive and finite"),
        ({"capacity": [math.inf, 8]}, "server.resource1", "positive and finite"),
        ({"capacity": [4]}, "capacity", "needs 2 entries"),
        ({"capacity": []}, "capacity", "non-empty list"),
        ({"capacity": "many"}, "capacity", "must be numbers"),
        ({"demand": [1, 2]}, "demand", "non-empty table"),
        ({"demand": [[1, 2], [2]]}, "demand", "regular shape"),
        ({"demand": [[1, 2], [2, -1]]}, "jobs.type2.demand.resource2", "not negative"),
        ({"demand": [[1, 2], [2, math.nan]]}, "jobs.type2.demand.resource2", "finite"),
        ({"demand": [[1, 2], [0, 0]]}, "jobs.type2.demand", "at least one resource"),
        ({"demand": [[1, 2], [5, 1]]}, "jobs.type2.demand.resource1", "can never run"),
        ({"arrival_rate": [1, -1]}, "jobs.type2.arrival_rate", "not negative"),
        ({"arrival_rate": [1]}, "arrival_rate", "needs 2 entries"),
        ({"service_rate": [1, 0]}, "service_rate[1]", "positive and finite"),
        ({"service_rate": [1, 1, 1]}, "service_rate", "needs 2 entries"),
        ({"service_rate": None}, "service_rate", "either service_rate, mean_size or sizes"),
        ({"sizes": [rota.Exponential(mean=1.0)] * 2}, "service_rate", "only one of them"),
        ({"service_rate": None, "sizes": [rota.Exponential(mean=1.0)]}, "sizes", "needs 2 entries"),
        ({"service_rate": None, "sizes": [rota.Exponential(mean=1e-320)] * 2}, "jobs.type1.size", "positive mean"),
        ({"names": ["a", "a"]}, "names[1]", "duplicate"),
        ({"names": ["a", ""]}, "names[1]", "non-empty string"),
        ({"names": ["a", 2]}, "names[1]", "non-empty string"),
        ({"names": ["a"]}, "names", "needs 2 entries"),
        ({"resources": ["r", "r"]}, "resources[1]", "duplicate"),
        ({"preemption": "some"}, "preemption.model", '"full", "none" or "setup"'),
        ({"preemption": "setup"}, "preemption.setup_time", 'goes with model = "setup"'),
        ({"setup_time": 1.0}, "preemption.setup_time", "only with it"),
        ({"preemption": "setup", "setup_time": -1.0}, "preemption.setup_time", "positive and finite"),
    ],
)
def test_a_broken_rule_is_reported_with_its_place(change, place, rule):
    """Each argument that breaks a rule raises `BadSpec`, which names the argument and the rule."""
    with pytest.raises(rota.BadSpec) as caught:
        rota.System(**GOOD | change)
    assert place in {problem.place for problem in caught.value.problems}
    assert rule in str(caught.value)


def test_all_problems_at_once():
    """Problems of different fields come together, and the error is also a ValueError."""
    with pytest.raises(ValueError, match=r"^4 problems\n") as caught:
        rota.System(capacity=[0, 8], demand=[[0, -2]], arrival_rate=[-1], service_rate=[1], preemption="some")
    assert [problem.place for problem in caught.value.problems] == [
        "server.resource1",
        "jobs.type1.arrival_rate",
        "jobs.type1.demand.resource2",
        "preemption.model",
    ]


def test_a_demand_may_exceed_the_capacity_by_rounding_only():
    """0.1 + 0.2 is let into 0.3, although floating point says it is more; 0.3001 is not."""
    rota.System([0.3], [[0.1 + 0.2]], [1], [1])
    with pytest.raises(rota.BadSpec, match="can never run"):
        rota.System([0.3], [[0.3001]], [1], [1])


@given(small_systems(), st.floats(0, 100))
def test_scaled_by_a_factor(system, factor):
    """Scaling by a factor multiplies arrival rates and leaves the rest."""
    scaled = system.scaled(factor=factor)
    assert np.array_equal(scaled.arrival_rate, system.arrival_rate * factor)
    assert (scaled.sizes, scaled.names, scaled.preemption) == (system.sizes, system.names, system.preemption)
    assert np.array_equal(scaled.demand, system.demand)


@given(small_systems(), st.floats(0.01, 3))
def test_scaled_to_a_load(system, load):
    """A system scaled to a load has that load, as far as both loads are proved (1e-7 each)."""
    assert rota.system_load(system.scaled(load=load)).load == pytest.approx(load, rel=2e-7)


def test_scaled_wants_one_number():
    """Both, none, a negative or an infinite number is refused, and so is a load for a system without arrivals."""
    system = paper_example()
    for wrong in ({}, {"factor": 1, "load": 1}, {"factor": -1}, {"load": math.nan}, {"factor": math.inf}):
        with pytest.raises(rota.BadSpec, match="scaled"):
            system.scaled(**wrong)
    with pytest.raises(rota.BadSpec, match="without arrivals"):
        system.scaled(factor=0).scaled(load=0.5)


def test_with_preemption():
    """Another preemption model, the same system otherwise, under the same rules."""
    system = paper_example()
    setup = system.with_preemption("setup", 0.1)
    assert (setup.preemption, setup.setup_time) == ("setup", 0.1)
    assert setup.with_preemption("none") == system
    with pytest.raises(rota.BadSpec, match="setup_time"):
        system.with_preemption("full", 0.1)


@given(small_systems())
def test_replace(system):
    """A replaced field is the new one, every other is kept, and the rules hold for the copy."""
    changes = {
        "capacity": 2 * system.capacity,
        "demand": system.demand / 2,
        "arrival_rate": 3 * system.arrival_rate,
        "names": tuple("abcd"[: len(system.names)]),
        "resources": tuple("xyz"[: len(system.resources)]),
        "preemption": "full",
    }
    assert system.replace() == system
    for field, value in changes.items():
        changed = system.replace(**{field: value})
        assert np.array_equal(getattr(changed, field), value)
        assert changed.replace(**{field: getattr(system, field)}) == system
    with pytest.raises(rota.BadSpec, match="arrival_rate"):
        system.replace(arrival_rate=[-1] * len(system.names))
    with pytest.raises(TypeError, match="colour"):
        system.replace(colour="red")


def test_replace_takes_rates_or_sizes():
    """New service rates replace the sizes, new sizes the rates; both at once are refused, as always."""
    system = paper_example().replace(sizes=[rota.Deterministic(mean=2.0)] * 3)
    assert system.service_rate.tolist() == [0.5] * 3
    faster = system.replace(service_rate=[4, 5, 8])
    assert faster.service_rate.tolist() == [4, 5, 8]
    assert faster.sizes == tuple(rota.Exponential(mean=1 / rate) for rate in (4, 5, 8))
    with pytest.raises(rota.BadSpec, match="only one of them"):
        system.replace(service_rate=[1, 1, 1], sizes=system.sizes)


def test_short_representation():
    """The short form names the server, the jobs and the preemption model."""
    system = rota.System(**GOOD, names=["a", "b"], resources=["cores", "gpus"])
    assert repr(system) == "<System: 4 cores, 8 gpus; jobs a, b; preemption none>"


def test_equality_looks_at_every_field():
    """Equal systems are equal and hash alike; a change anywhere makes them differ."""
    system = rota.System(**GOOD)
    assert system == rota.System(**GOOD)
    assert hash(system) == hash(rota.System(**GOOD))
    assert system != "system"
    changes = [
        {"capacity": [4, 9]},
        {"demand": [[1, 2], [2, 2]]},
        {"arrival_rate": [1, 3]},
        {"service_rate": [1, 5]},
        {"names": ["a", "b"]},
        {"resources": ["a", "b"]},
        {"preemption": "full"},
        {"preemption": "setup", "setup_time": 1.0},
    ]
    for change in changes:
        assert system != rota.System(**GOOD | change)


def test_save_writes_what_read_system_reads(tmp_path):
    """A saved system is read back equal."""
    system = paper_example(0.9)
    system.save(tmp_path / "server.toml")
    assert rota.read_system(tmp_path / "server.toml") == system
