"""The fleet of a trace: its types on kinds of machines, at a load."""

import numpy as np
import polars as pl
import pytest

import rota
from rota.traces import Trace, fleet_scaled_to, read_machines


@pytest.fixture
def machines(tmp_path):
    """Four small machines and one with devices."""
    (tmp_path / "machines.csv").write_text("kind,count,gpu,cpu\nsmall,4,0,2\nlarge,1,2,4\n", encoding="utf-8")
    return tmp_path / "machines.csv"


def trace(demand=((1, 0), (1, 0.5))) -> Trace:
    """2,000 jobs of two types, one of which needs half a device."""
    rng = np.random.default_rng(0)
    jobs = pl.DataFrame(
        {
            "arrival": np.sort(rng.uniform(0, 1000, 2000)),
            "size": rng.exponential(1, 2000),
            "type": rng.choice(2, 2000, p=[0.7, 0.3]).astype(np.int32),
        }
    )
    return Trace(jobs.lazy(), ("web", "train"), ("cpu", "gpu"), demand, None)


def test_types_and_machines(machines):
    """Rates, sizes and names are those of the trace's system; counts and capacities those of the list, in the trace's order."""
    fleet = trace().fleet(machines, sizes="fitted", preemption="full")
    system = trace().system([4, 2], sizes="fitted", preemption="full")
    assert fleet.kinds == ("small", "large")
    assert fleet.count.tolist() == [4, 1]
    assert fleet.capacity.tolist() == [[2, 0], [4, 2]]
    assert fleet.sizes == system.sizes
    assert fleet.arrival_rate == pytest.approx(system.arrival_rate)
    assert fleet.runs.tolist() == [[True, False], [True, True]]
    trace().check(fleet)
    assert trace().fleet(read_machines(machines), sizes="fitted", preemption="full") == fleet


def test_scaled(machines):
    """To a load by time the same jobs come faster; by thinning some are left out; the fleet has the load, the trace its rates."""
    assert rota.system_load(trace().fleet(machines, load=0.7)).load == pytest.approx(0.7)
    made, fleet = fleet_scaled_to(trace(), machines, 0.9)
    assert len(made) == 2000
    assert rota.system_load(fleet).load == pytest.approx(0.9)
    assert made.fleet(machines).arrival_rate == pytest.approx(fleet.arrival_rate)
    low = rota.system_load(trace().fleet(machines)).load / 2
    made, fleet = fleet_scaled_to(trace(), machines, low, by="thinning", seed=1)
    assert 850 < len(made) < 1150
    assert rota.system_load(fleet).load == pytest.approx(low)
    with pytest.raises(rota.Infeasible, match=r"thinning only lowers it: to reach 0\.95, scale by time"):
        fleet_scaled_to(trace(), machines, 0.95, by="thinning")


@pytest.mark.parametrize(("how", "rule"), [({"load": -1}, "load: must be positive"), ({"load": 1, "by": "luck"}, "by: must be")])
def test_refused(machines, how, rule):
    """Loads and ways that are none."""
    with pytest.raises(rota.BadSpec, match=rule):
        fleet_scaled_to(trace(), machines, **how)


def test_types_that_fit_no_machine(machines):
    """Enough of each resource somewhere is not enough: a type must fit one machine. All that do not are one problem."""
    with pytest.raises(rota.BadSpec, match=r"jobs.web: demands more than any machine has, as do 1 other types"):
        trace([(5, 0), (1, 3)]).fleet(machines)
    with pytest.raises(rota.BadSpec, match=r"does not tell how much of these the machines have: disk"):
        Trace(trace().jobs, ("web", "train"), ("cpu", "disk"), [(1, 1), (1, 1)], None).fleet(machines)
