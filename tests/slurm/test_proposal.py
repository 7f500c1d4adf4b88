"""From nodes and jobs to a server with types; shadow mode; what is said about a job."""

from dataclasses import replace

import numpy as np
import pytest

import rota
from rota.policy import FirstFit, PlanFile
from rota.slurm.amounts import in_plan_units
from rota.slurm.cluster_plan import cluster_plan
from rota.slurm.controller import Controller
from rota.slurm.errors import SlurmError
from rota.slurm.proposal import fleet_from_jobs, node_kinds, resources_of
from rota.slurm.recent import recent_jobs
from rota.slurm.shadow import Shadow, as_if_marked
from rota.slurm.simulated import PlayedJob, SimulatedCluster
from rota.slurm.views import count_jobs, explain
from rota.slurm.watchdog import release_all
from rota.slurm.world import Amounts, Do
from rota.traces import open_trace
from slurm.small_cluster import ASKS, SYSTEM, jobs_of, nodes_of, plan_of


def test_memory_is_in_slurms_units():
    """A job that asks for 32G has 32 memory_gb, and 32768 memory_mb, as in traces of sacct; gpus are the gres gpu."""
    asks = Amounts(3, 32 * 1024, {"gpu": 2, "fpga": 1})
    names = ("cores", "memory_gb", "memory_mb", "memory_gib", "gpus", "fpga")
    assert in_plan_units(asks, names).tolist() == [3, 32, 32768, 32, 2, 1]


def test_nodes_of_one_kind():
    """Nodes with the same resources are alike; the kind with the most CPUs comes first."""
    nodes = nodes_of(3)
    large = replace(nodes[0], name="g1", has=Amounts(64, 10**6, {"gpu": 4}))
    kinds = node_kinds([*nodes, large], "main")
    assert [kind.nodes for kind in kinds] == [("g1",), ("n1", "n2", "n3")]
    assert resources_of(kinds) == ("cores", "memory_gb", "gpus")
    assert [kind.name for kind in kinds] == ["64cpus-977g-4gpu", "8cpus-16g"]
    with pytest.raises(rota.BadSpec, match="there are: main"):
        node_kinds(nodes, "night")


class _Recent:
    """A client whose accounting and configuration are given; without accounting, sacct fails as it does without slurmdbd."""

    def __init__(self, accounting=None, jobcomp=None):
        self._accounting, self._jobcomp = accounting, jobcomp

    def accounting(self, since, partition):
        if self._accounting is None:
            raise SlurmError("sacct failed: Slurm accounting storage is disabled")
        return self._accounting

    def config(self):
        return f"JobCompLoc = {self._jobcomp}\nJobCompType = jobcomp/{'filetxt' if self._jobcomp else 'none'}\n"


SACCT = """JobID|State|Submit|Eligible|Start|End|ElapsedRaw|Timelimit|ReqTRES|AllocTRES|NNodes
7|COMPLETED|2026-07-01T10:00:00|2026-07-01T10:00:00|2026-07-01T10:00:10|2026-07-01T10:01:10|60|02:00:00|cpu=2,mem=4G,node=1|cpu=2,mem=4G,node=1|1
"""
ENDED = (
    "JobId={} UserId=a(1) GroupId=a(1) Name=x JobState=COMPLETED Partition={} TimeLimit=60 StartTime=2026-07-01T10:00:00 EndTime={}"
    " NodeList=n1 NodeCnt=1 ProcCnt=4 WorkDir=/ ReservationName= Tres=cpu=4,mem=2G,node=1,billing=4 Account= QOS= WcKey= Cluster=x"
    " SubmitTime=2026-07-01T09:59:00 EligibleTime=2026-07-01T09:59:00 DerivedExitCode=0:0 ExitCode=0:0 \n"
)


def test_recent_jobs_are_from_the_best_source(tmp_path):
    """sacct before the file of ended jobs before the queue; of the file, the partition and the days; not for nodes with gres."""
    ended, ask = tmp_path / "jobcomp.txt", {"days": 30000 / 24, "source": None, "gres": False}
    lines = [("1", "main", "2026-07-01T10:05:00"), ("2", "other", "2026-07-01T10:05:00"), ("3", "main", "1999-07-01T10:05:00")]
    ended.write_text("".join(ENDED.format(*line) for line in lines), encoding="utf-8")
    found, said = recent_jobs(_Recent(SACCT, ended), "main", tmp_path, **ask)
    assert (open_trace(found).demand.tolist(), said.partition(",")[0]) == ([[2, 4]], "sacct")
    found, said = recent_jobs(_Recent(None, ended), "main", tmp_path, **ask)
    assert open_trace(found).demand.tolist() == [[4, 2]]
    assert len(open_trace(found)) == 1
    assert str(ended) in said
    for client, gres in ((_Recent(None, ended), True), (_Recent(), False), (_Recent(None, tmp_path / "none"), False)):
        found, said = recent_jobs(client, "main", tmp_path, **ask | {"gres": gres})
        assert found is None
        assert "accounting storage is disabled" in said
    with pytest.raises(SlurmError, match="cannot be read"):
        recent_jobs(_Recent(None, tmp_path / "none"), "main", tmp_path, **ask | {"source": "jobcomp"})
    with pytest.raises(rota.BadSpec, match="--days"):
        recent_jobs(_Recent(), "main", tmp_path, **ask | {"days": 0.0})


def test_a_partition_that_is_none():
    """What is asked of a partition that no node is in is an error, not an empty answer."""
    cluster = SimulatedCluster(nodes_of(2))
    for ask in (count_jobs, lambda found, name: explain(found, "1", name)):
        with pytest.raises(rota.BadSpec, match="there are: main"):
            ask(cluster.read(), "night")
    with pytest.raises(rota.BadSpec, match="there are: main"):
        release_all(cluster, "night")


def test_a_task_of_an_array_is_named():
    """The number of an array alone is not a job: the error names its tasks."""
    cluster = SimulatedCluster(nodes_of(1))
    for id in ("7_1", "7_2", "17_1"):
        cluster.submit(PlayedJob(id, 0.0, ASKS[0], 5.0))
    with pytest.raises(rota.BadSpec, match=r"has 2 tasks or parts.*\(7_1, 7_2\)"):
        explain(cluster.read(), "7")


def test_every_job_has_a_type_that_encloses_it():
    """The types proposed from jobs enclose their requests, and the rates add up to the jobs over time and nodes."""
    cluster = SimulatedCluster(nodes_of(2))
    for n, asks in enumerate([*ASKS, *ASKS, Amounts(1, 333)]):
        cluster.submit(PlayedJob(str(n + 1), float(n), asks, 5.0))
    jobs = list(cluster.jobs.values())
    kinds = node_kinds(cluster.read().nodes, None)
    found = fleet_from_jobs(kinds, jobs, now=100.0)
    for job in jobs:
        assert (found.fleet.demand >= in_plan_units(job.asks, found.fleet.resources) - 1e-12).all(axis=1).any()
    assert (found.jobs, found.left_out) == (7, 0)
    assert found.fleet.arrival_rate.sum() == pytest.approx(7 / 100)
    assert found.fleet.server(0).arrival_rate.sum() == pytest.approx(7 / 100 / 2)
    assert len(fleet_from_jobs(kinds, jobs, now=100.0, types=2).fleet.names) == 2
    with pytest.raises(rota.Infeasible, match="trace"):
        fleet_from_jobs(kinds, [], now=100.0)


def test_types_of_several_kinds_of_nodes():
    """Requests that fit some kind of node become types; a job without devices is not rounded up to a type with devices."""
    nodes = [*nodes_of(2), replace(nodes_of(1)[0], name="g1", has=Amounts(4, 8000, {"gpu": 4}))]
    cluster = SimulatedCluster(nodes)
    asks = [Amounts(8, 9000), Amounts(4, 4000, {"gpu": 1}), Amounts(4, 4000, {"gpu": 1}), Amounts(8, 9000, {"gpu": 1}), Amounts(3, 3000)]
    for n, one in enumerate(asks):
        cluster.submit(PlayedJob(str(n + 1), float(n), one, 5.0))
    found = fleet_from_jobs(node_kinds(nodes, None), list(cluster.jobs.values()), now=100.0, types=2)
    assert found.fleet.names == ("4cores-3.907memory-1gpus", "8cores-8.79memory")
    assert found.fleet.runs.tolist() == [[False, True], [True, False]]
    assert (found.jobs, found.left_out) == (4, 1)  # no node has 8 CPUs and a GPU


def test_nodes_that_are_too_small_are_refused():
    """A plan for a larger server than every node says what the nodes have."""
    large = SYSTEM.replace(capacity=[64, 15])
    with pytest.raises(rota.BadSpec, match=r"server.cores: no node has as much \(at most 8\)"):
        cluster_plan(PlanFile(large, FirstFit())).check_nodes(nodes_of(), "main")
    with pytest.raises(rota.BadSpec, match="has no nodes"):
        cluster_plan(PlanFile(SYSTEM, FirstFit())).check_nodes(nodes_of(), "night")


def test_shadow_mode_finds_its_own_waits():
    """Where the cluster is run by the very plan that the shadow has, the shadow finds the waits that there were."""
    plan, cluster = plan_of("first-fit"), SimulatedCluster(nodes_of(), lag_s=0.5)
    controller, shadow = Controller(plan), Shadow(plan, "main")
    jobs = jobs_of(120, seed=2)
    while len(cluster.ended) < len(jobs):
        for job in [job for job in jobs if cluster.clock < job.submitted <= cluster.clock + 1]:
            cluster.submit(job)
        cluster.advance(cluster.clock + 1)
        snapshot = cluster.read()
        shadow.note(snapshot)
        cluster.carry_out(controller.handle(snapshot, snapshot.at))
    shadow.note(cluster.read())
    waits = shadow.waits(1.0, 0.5)
    assert waits is not None
    assert waits.jobs + waits.unseen == 120
    assert waits.unseen <= sum(job.run_s < 1 for job in jobs)
    real = np.mean([cluster.ended[job.id][0] - job.submitted for job in jobs])
    assert waits.slurm_wait_s == pytest.approx(real, abs=0.3)
    assert waits.rota_wait_s == pytest.approx(waits.slurm_wait_s, abs=0.5)
    assert f"{waits.jobs} jobs ended" in shadow.report(1.0, 0.5)


def test_a_snapshot_as_if_rota_had_the_partition():
    """Pending jobs look held by Rota, running ones released by it; jobs held by people or with dependencies stay as they are."""
    cluster = SimulatedCluster(nodes_of(1))
    for n in range(4):
        cluster.submit(PlayedJob(str(n + 1), 0.0, ASKS[0], 50.0), comment="")
    jobs = cluster.jobs
    jobs["1"] = replace(jobs["1"], priority=5, reason="Priority")
    jobs["2"] = replace(jobs["2"], state="R", node="n1", priority=5)
    jobs["4"] = replace(jobs["4"], priority=5, reason="Dependency", dependency="afterok:1")
    seen = as_if_marked(cluster.read(), "main")
    assert [job.comment for job in seen.jobs] == ["rota", "rota:on:n1", "", ""]
    actions = Controller(plan_of("first-fit"), partition="main").handle(seen, 0.0)
    assert [(action.do, action.job) for action in actions] == [(Do.RELEASE, "1")]


def test_jobs_explained():
    """Each state of a job has its words, and a job that is not there is wrong use."""
    cluster = SimulatedCluster(nodes_of(1))
    for n in range(5):
        cluster.submit(PlayedJob(str(n + 1), float(n), ASKS[1], 50.0))
    controller = Controller(plan_of("first-fit"), partition="main")
    assert "no controller has looked" in explain(cluster.read(), "1").text
    cluster.carry_out(controller.handle(cluster.read(), 5.0))
    cluster.advance(6.0)
    snapshot = cluster.read()
    assert explain(snapshot, "1").text == "It is running on n1."
    assert "type wide: 2 older jobs of this type wait before it, 3 wait in all" in explain(snapshot, "5").text
    assert "its comment is not rota" in explain(replace(snapshot, jobs=(replace(snapshot.jobs[4], comment="x"),)), "5").text
    assert count_jobs(snapshot, "main")["waiting"] == 3
    with pytest.raises(rota.BadSpec, match="no such job"):
        explain(snapshot, "99")
