"""The watchdog when a partition is renamed, removed or never was."""

from dataclasses import replace

import pytest
from tests.slurm.small_cluster import jobs_of, nodes_of

import rota
from rota.slurm.simulated import SimulatedCluster
from rota.slurm.watchdog import release_all, watch
from rota.slurm.world import Snapshot


class Moved(SimulatedCluster):
    """A cluster whose nodes are in another partition than its jobs."""

    def read(self) -> Snapshot:
        """What is there, with the nodes moved."""
        found = super().read()
        return replace(found, nodes=tuple(replace(node, partitions=("other",)) for node in found.nodes))


def cluster_with(count: int) -> Moved:
    """A cluster with so many held jobs in `main`."""
    cluster = Moved(nodes_of(1))
    for job in jobs_of(count, seed=1):
        cluster.submit(job)
    return cluster


def test_jobs_of_a_partition_without_nodes_are_released():
    """An administrator moved all nodes to another partition: the jobs that wait are given back all the same."""
    cluster, lines = cluster_with(3), []
    assert release_all(cluster, "main", log_line=lines.append, time_limit_s=0) == 0
    assert lines[-1].startswith("3 jobs released")


def test_watchdog_outlives_a_partition_that_is_gone(tmp_path):
    """Without nodes and jobs of that name it says so once and goes on; with --once it is an error."""
    cluster, lines, turns = cluster_with(0), [], iter([False, False, False, True])
    watch(cluster, tmp_path / "none", "main", limit_s=-1, interval_s=0, log_line=lines.append, stop=lambda: next(turns))
    assert sum("has no nodes" in line for line in lines) == 1
    with pytest.raises(rota.BadSpec, match="has no nodes"):
        watch(cluster, tmp_path / "none", "main", limit_s=-1, once=True)
