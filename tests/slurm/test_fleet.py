"""Several kinds of nodes: the plan of a fleet on a cluster, with the dispatch rules of the simulator."""

from dataclasses import replace

import numpy as np
import pytest

import rota
from rota.policy import FleetPlanFile
from rota.simulation import Jobs, simulate
from rota.simulation.fleet.policy import as_fleet_policy
from rota.slurm.cluster_plan import cluster_plan
from rota.slurm.controller import Controller
from rota.slurm.simulated import PlayedJob, SimulatedCluster, play
from rota.slurm.world import Amounts, Do, Node

FLEET = rota.Fleet(
    count=[2, 2],
    capacity=[[16, 32, 2], [8, 16, 0]],
    demand=[[1, 1, 0], [4, 4, 0], [2, 8, 1]],
    arrival_rate=[0.9, 0.5, 0.25],
    mean_size=[6, 10, 9],
    names=["small", "wide", "gpu"],
    resources=["cores", "memory_gb", "gpus"],
    kinds=["large", "little"],
    time_unit="s",
)
ASKS = [Amounts(1, 1000), Amounts(4, 4000), Amounts(2, 8000, {"gpu": 1})]
NODES = [Node(f"n{k}", Amounts(16, 32768, {"gpu": 2}), Amounts(), "IDLE", ("main",)) for k in (1, 2)]
NODES += [Node(f"n{k}", Amounts(8, 16384), Amounts(), "IDLE", ("main",)) for k in (3, 4)]


def jobs_of(count, seed):
    """Jobs at the rates of the fleet, at times that are whole hundredths of a second."""
    random = np.random.default_rng(seed)
    rates = FLEET.arrival_rate
    times = np.round(np.cumsum(random.exponential(1 / rates.sum(), count)), 2)
    kinds = random.choice(3, count, p=rates / rates.sum())
    sizes = np.maximum(np.round(random.exponential(1 / FLEET.service_rate[kinds]), 2), 0.01)
    return times, kinds, sizes


def played(times, kinds, sizes):
    """The same as jobs for a cluster."""
    rows = zip(times, kinds, sizes, strict=True)
    return [PlayedJob(str(k + 1), float(t), ASKS[i], float(s)) for k, (t, i, s) in enumerate(rows)]


@pytest.mark.parametrize("rule", ["jsq", "best-fit", "least-wait", "pull", "round-robin"])
@pytest.mark.parametrize("policy", ["first-fit", "max-weight-np"])
def test_without_lag_the_cluster_is_the_simulated_fleet(policy, rule):
    """Nodes that are looked at all the time and start jobs at once give the mean response time of `rota.simulate` for the fleet."""
    times, kinds, sizes = jobs_of(250, seed=11)
    plan = as_fleet_policy(FLEET, policy, rule)
    result = simulate(FLEET, policy, workload=Jobs(times, kinds, sizes), dispatch=rule)
    starts, ends = play(plan, NODES, played(times, kinds, sizes), interval_s=0.01, lag_s=0.0, check=True)
    assert ends - starts == pytest.approx(sizes)
    # Looking every hundredth of a second adds up to that much to each start, and starts follow each other in busy periods.
    assert (ends - times).mean() == pytest.approx(result.mean_response_time, abs=0.05)


@pytest.mark.parametrize("design", ["pinned", "split", "random", "power-of-d"])
def test_designs_of_fleets_serve_every_job(design):
    """Pinned servers, random splitting and rules that draw: all jobs end, on nodes on which they can run, and no node is overfull."""
    times, kinds, sizes = jobs_of(200, seed=5)
    plan = as_fleet_policy(FLEET, *((design,) if design in ("pinned", "split") else ("first-fit", design)))
    starts, ends = play(plan, NODES, played(times, kinds, sizes), check=True)
    assert (starts >= times).all()
    assert (ends > starts).all()


def test_a_node_is_of_the_largest_kind_that_it_encloses():
    """Nodes with more than a kind has are of that kind, nodes with less than every kind of none."""
    plan = cluster_plan(as_fleet_policy(FLEET, "first-fit", "pull"))
    large, small = NODES[0], NODES[2]
    assert [plan.kind_of(node) for node in NODES] == [0, 0, 1, 1]
    assert plan.kind_of(replace(large, has=Amounts(64, 10**6, {"gpu": 8}))) == 0
    assert plan.kind_of(replace(large, has=Amounts(64, 10**6, {"gpu": 1}))) == 1
    assert plan.kind_of(replace(small, has=Amounts(4, 16384))) is None
    with pytest.raises(rota.BadSpec, match=r"jobs.gpu: no node of the partition"):
        plan.check_nodes(NODES[2:], "main")
    assert "2 nodes of kind large, and there are 1" in plan.remarks(plan.nodes(NODES[1:], "main"))[0]


def test_a_job_that_asks_for_what_the_plan_does_not_know_has_no_type():
    """A gres that is no resource of the plan: the job is left to Slurm, which knows where it is."""
    plan = cluster_plan(as_fleet_policy(FLEET, "first-fit", "pull"))
    assert [plan.type_of(asks) for asks in ASKS] == [0, 1, 2]
    assert plan.type_of(Amounts(1, 1000, {"fpga": 1})) is None
    assert plan.type_of(Amounts(1, 1000, {"gpu": 2})) is None


def _world(policy, *rule):
    cluster = SimulatedCluster(NODES, lag_s=0.3)
    return cluster, Controller(as_fleet_policy(FLEET, policy, *rule), partition="main", patience_s=5.0)


def _cycles(cluster, controller, count):
    actions = []
    for _ in range(count):
        cluster.advance(cluster.clock + 1)
        found = controller.handle(cluster.read(), cluster.clock)
        cluster.carry_out(found)
        actions += found
    return actions


def test_jobs_of_lost_nodes_go_to_others_of_their_kind():
    """Both large nodes run gpu jobs; one is lost: its jobs run again on the other one, and none on a small node."""
    cluster, controller = _world("first-fit", "pull")
    for n in range(4):
        cluster.submit(PlayedJob(str(n + 1), 0.0, ASKS[2], 20.0))
    _cycles(cluster, controller, 2)
    assert {job.node for job in cluster.jobs.values()} == {"n1", "n2"}
    cluster.lose("n1")
    _cycles(cluster, controller, 80)
    assert {node for _, _, node in cluster.ended.values()} == {"n2"}
    assert len(cluster.ended) == 4


@pytest.mark.parametrize(("policy", "rule"), [("first-fit", ("pull",)), ("first-fit", ("jsq",)), ("pinned", ())])
def test_jobs_that_no_node_can_run_any_more_are_left_to_slurm(policy, rule):
    """All large nodes are gone: gpu jobs are not held back by Rota, and other jobs go on."""
    cluster, controller = _world(policy, *rule)
    cluster.lose("n1")
    cluster.lose("n2")
    cluster.submit(PlayedJob("1", 0.0, ASKS[2], 5.0))
    left = [action for action in _cycles(cluster, controller, 2) if action.do == Do.LEAVE]
    assert [(action.job, action.note) for action in left] == [("1", "rota:left:no-node-works-for-it")]


def test_a_controller_of_a_fleet_goes_on_where_another_one_was():
    """A second controller takes over in the middle: it starts nothing twice, and all jobs end."""
    cluster, controller = _world("first-fit", "pull")
    times, kinds, sizes = jobs_of(40, seed=3)
    for job in played(0 * times, kinds, sizes):
        cluster.submit(job)
    _cycles(cluster, controller, 3)
    running = {id for id, job in cluster.jobs.items() if job.state == "R"}
    other = Controller(as_fleet_policy(FLEET, "first-fit", "pull"), partition="main")
    again = other.handle(cluster.read(), cluster.clock)
    assert not {action.job for action in again if action.do == Do.RELEASE} & running
    cluster.carry_out(again)
    _cycles(cluster, other, 400)
    assert not cluster.jobs


def test_partly_pinned_servers():
    """A plan with servers of which a part is pinned runs on a cluster: all jobs end."""
    plan = cluster_plan(FleetPlanFile.of(FLEET, rota.design_partly_pinned(FLEET), rota.Dispatch("pinned")))
    cluster, controller = SimulatedCluster(NODES, lag_s=0.3), Controller(plan, partition="main", patience_s=5.0)
    times, kinds, sizes = jobs_of(60, seed=5)
    for job in played(0 * times, kinds, sizes):
        cluster.submit(job)
    _cycles(cluster, controller, 600)
    assert not cluster.jobs
