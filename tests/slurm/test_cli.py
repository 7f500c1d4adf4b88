"""`rota slurm plan`, `run` and `status` on the command line, with a simulated cluster in place of Slurm."""

import json

import pytest

import rota.cli.plan
from rota.cli import main
from rota.slurm import client, shadow
from rota.slurm.errors import SlurmError
from rota.slurm.running import default_heartbeat
from rota.slurm.simulated import PlayedJob, SimulatedCluster
from slurm.small_cluster import ASKS, nodes_of


class _NoAccounting(SimulatedCluster):
    """Four nodes and some jobs, without accounting and without a file of ended jobs."""

    jobs_at_first = 6

    def __init__(self):
        super().__init__(nodes_of())
        for n in range(self.jobs_at_first):
            self.submit(PlayedJob(str(n + 1), 0.0, ASKS[n % 3], 60.0))
        self.clock = 300.0

    def accounting(self, since, partition):
        """There is no slurmdbd."""
        raise SlurmError("sacct failed: Slurm accounting storage is disabled")

    def config(self):
        """There is no file of ended jobs."""
        return "JobCompType = jobcomp/none\n"


@pytest.fixture(autouse=True)
def simulated(monkeypatch, tmp_path):
    """The commands talk to the simulated cluster, and heartbeats are in a folder of the test."""
    monkeypatch.setattr(client, "SlurmClient", _NoAccounting)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def test_plan_and_page_in_one_command(monkeypatch, tmp_path):
    """With --with-plan, `rota plan` gets the file that was just written, and the folder that it is in."""
    asked = []
    monkeypatch.setattr(rota.cli.plan, "plan", lambda file, **more: asked.append((rota.read_system(file).servers, more)))
    (tmp_path / "plans").mkdir()
    assert main(["slurm", "plan", "--output", "plans/nodes.toml", "--with-plan"]) == 0
    assert asked == [(4, {"output": "plans/", "force": False})]


@pytest.mark.parametrize(("more", "words"), [((), "needs --output"), (("--output", "x.toml", "--json"), "has no --json")])
def test_a_plan_is_made_from_a_file(more, words, capsys):
    """--with-plan has to know where the file and the plan go, and prints no JSON."""
    assert main(["slurm", "plan", "--with-plan", *more]) == 2
    assert words in capsys.readouterr().err


def test_where_jobs_were_looked_for(monkeypatch, capsys):
    """A cluster without any job: the error says what sacct, the file of ended jobs and the queue had."""
    monkeypatch.setattr(_NoAccounting, "jobs_at_first", 0)
    assert main(["slurm", "plan"]) == 1
    said = capsys.readouterr().err
    assert all(words in said for words in ("accounting storage is disabled", "JobCompType is jobcomp/none", "the queue has no jobs"))


def test_an_unknown_partition_is_seen_before_a_plan_is_made(monkeypatch, tmp_path, capsys):
    """`rota slurm run nodes.toml` plans for a minute: not for a partition without nodes."""
    assert main(["slurm", "plan", "--output", "nodes.toml"]) == 0
    monkeypatch.setattr(rota, "plan", lambda *_, **__: pytest.fail("planned"))
    assert main(["slurm", "run", "nodes.toml", "--partition", "night"]) == 2
    assert "there are: main" in capsys.readouterr().err


def _heartbeat(partition, lag_s):
    path = default_heartbeat(partition)
    path.parent.mkdir(parents=True, exist_ok=True)
    beat = {"at": 0.0, "pid": 1, "policy": "first-fit", "partition": partition, "preemption": "none", "waiting": 0, "running": 0}
    beat |= {"cycles": 1, "cycle_s": 0.1, "lag_s": lag_s, "largest_lag_s": 1.0, "starts": 9, "wait_s": 1.0, "calls": 1, "updates": 1}
    path.write_text(json.dumps(beat | {"memory_mb": 100.0}), encoding="utf-8")


@pytest.mark.parametrize(("measured", "more", "lag_s"), [(None, (), 0.7), (0.31, (), 0.31), (0.31, ("--lag", "2"), 2.0)])
def test_the_lag_of_shadow_mode(monkeypatch, measured, more, lag_s):
    """Given, or what an earlier controller of the partition measured, or 0.7 s."""
    seen = []
    monkeypatch.setattr(shadow, "run_shadow", lambda *_, lag_s, **__: seen.append(lag_s))
    if measured is not None:
        _heartbeat("main", measured)
    assert main(["slurm", "plan", "--output", "nodes.toml", "--one-node"]) == 0
    assert main(["slurm", "run", "nodes.toml", "--policy", "first-fit", "-p", "main", "--dry-run", *more]) == 0
    assert seen == [lag_s]


def test_status_says_which_partitions_have_had_a_controller(capsys):
    """Asked without a partition where a controller of `main` has run, it says how to ask for that one."""
    _heartbeat("main", 0.3)
    assert main(["slurm", "status"]) == 0
    said = capsys.readouterr()
    assert "for all partitions" in said.out
    assert "rota slurm status --partition main" in said.err
