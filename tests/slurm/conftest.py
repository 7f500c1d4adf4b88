"""A real Slurm on loopback, one for all tests of a process; where there is none, its tests are skipped, and the summary says so."""

import pytest

from slurm.cluster import missing, running_cluster


@pytest.fixture(scope="session")
def cluster():
    """Four nodes of 8 CPUs and 16,000 MB."""
    if reason := missing():
        pytest.skip(f"no Slurm: {reason}")
    with running_cluster() as found:
        yield found


@pytest.fixture
def empty_cluster(cluster, monkeypatch):
    """The cluster with no jobs and all nodes idle; Slurm's commands of this process talk to it."""
    monkeypatch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
    yield cluster
    for name in ("slurmctld", "n1", "n2", "n3", "n4"):
        if name not in cluster.processes:
            cluster.start(name)
    cluster.wait_for("slurmctld", lambda: "is UP" in cluster.run("scontrol", "ping", check=False))
    cluster.run("scancel", "--user=root", check=False)
    for name in ("n1", "n2", "n3", "n4"):
        cluster.run("scontrol", "update", f"nodename={name}", "state=resume", check=False)
    cluster.wait_for("idle nodes", cluster.idle)
