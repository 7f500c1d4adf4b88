"""What is sent to scontrol, and what happens when Slurm does not answer."""

from pathlib import Path

import pytest

from rota.cli import main
from rota.slurm.client import SlurmClient, commands_for
from rota.slurm.errors import NoSlurm, SlurmError, Unreachable
from rota.slurm.world import Action, Do
from slurm.cluster import missing


def test_stops_come_before_starts():
    """What stopped jobs free is used by those that are released after them; many jobs go into one command."""
    actions = [
        Action(Do.RELEASE, "1", "n2", "rota:on:n2"),
        Action(Do.RELEASE, "7_3", "n1", "rota:on:n1", again=True),
        Action(Do.SUSPEND, "2", "n1", "rota:suspended:n1"),
        Action(Do.RESUME, "3", "n1"),
        Action(Do.REQUEUE, "4", "n1"),
        Action(Do.HOLD, "5", note="rota:waits:small"),
        Action(Do.LEAVE, "6", note="rota:left:features"),
        Action(Do.NOTE, "8", note="rota:waits:small"),
    ]
    assert list(commands_for(actions)) == [
        "requeuehold Incomplete 4",
        "suspend 2",
        "uhold 5",
        "update JobId=1 Comment=rota:on:n2 ReqNodeList=n2",
        "update JobId=7_3 Comment=rota:on:n1 ReqNodeList=n1 StartTime=now",
        "update JobId=2 Comment=rota:suspended:n1",
        "update JobId=5 Comment=rota:waits:small ReqNodeList=",
        "update JobId=6 Comment=rota:left:features ReqNodeList=",
        "update JobId=8 Comment=rota:waits:small",
        "release 1,7_3,6",
        "resume 3",
    ]


@pytest.mark.parametrize(
    "action",
    [Action(Do.RELEASE, "1\nshutdown", "n1"), Action(Do.RELEASE, "1", "n1 Priority=9"), Action(Do.NOTE, "1", note="two words")],
)
def test_only_plain_words_are_sent(action):
    """Nothing that a name of a job or a node could carry becomes a command of its own."""
    with pytest.raises(SlurmError, match="plain words"):
        list(commands_for([action]))


def test_slurm_is_not_there(monkeypatch, capsys):
    """Without Slurm's commands, the error says what to install."""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NoSlurm, match="slurm-client"):
        SlurmClient().read()
    assert main(["slurm", "status"]) == 1
    assert "is not on this machine" in capsys.readouterr().err


@pytest.mark.skipif(bool(missing()), reason=f"no Slurm: {missing()}")
def test_a_machine_of_no_cluster(monkeypatch):
    """Without a slurm.conf, or with SLURM_CONF naming none, the error says so at once: Slurm would try for a minute."""
    monkeypatch.setenv("SLURM_CONF", "/nowhere/slurm.conf")
    with pytest.raises(NoSlurm, match="SLURM_CONF names /nowhere"):
        SlurmClient().read()
    monkeypatch.delenv("SLURM_CONF")
    if not Path("/etc/slurm/slurm.conf").exists():
        with pytest.raises(NoSlurm, match="finds no cluster"):
            SlurmClient().read()


@pytest.mark.skipif(bool(missing()), reason=f"no Slurm: {missing()}")
def test_slurmctld_does_not_answer(tmp_path, monkeypatch):
    """A cluster whose slurmctld is gone, or slow, is an error that says so, within the time limit."""
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        "ClusterName=none\nSlurmctldHost=localhost\nSlurmctldPort=1\nNodeName=n1\nPartitionName=main Nodes=n1\n", encoding="utf-8"
    )
    monkeypatch.setenv("SLURM_CONF", str(conf))
    with pytest.raises(Unreachable, match="squeue"):
        SlurmClient(time_limit_s=2.0).read()
