"""Rota drives a real Slurm on loopback: every job completes exactly once, no node is overfull, whatever dies in the middle."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rota
from rota.slurm.client import SlurmClient
from rota.slurm.world import Action, Do
from slurm.cluster import Group, missing, running_cluster
from slurm.real import (
    HELD,
    Allocated,
    Notes,
    controlled,
    ended_jobs,
    log_of,
    run_rota,
    start_rota,
    submit_mixed,
    wait_until_empty,
    write_plan,
)


def _check(cluster, notes, ids):
    """Each job completed exactly once, and no node had more CPUs in use than it has."""
    assert notes.ends() == sorted(ids, key=int)
    assert all(cpus <= 8 for cpus in notes.most_cpus().values()), notes.most_cpus()


def _check_room(allocated):
    """By what Slurm says, no node had more CPUs or memory allocated at any look than it has."""
    assert allocated.looks >= 5
    assert set(allocated.cpus) == {"n1", "n2", "n3", "n4"}
    assert all(cpus <= 8 for cpus in allocated.cpus.values()), allocated.cpus
    assert all(memory <= 16_000 for memory in allocated.memory_mb.values()), allocated.memory_mb


@pytest.mark.parametrize("policy", ["nMSR", "improved", "first-fit"])
def test_mixed_jobs_under_a_rota(empty_cluster, tmp_path, policy):
    """Jobs of three types on four nodes under an MSR rota, an improved one and First-Fit; the lag is measured."""
    notes = Notes(tmp_path / "notes")
    ids = submit_mixed(empty_cluster, notes, 24, *HELD)  # before the controller: together they need more than three nodes
    with Allocated(empty_cluster) as allocated, controlled(empty_cluster, tmp_path, policy):
        wait_until_empty(empty_cluster, tmp_path)
        time.sleep(1)
    _check(empty_cluster, notes, ids)
    _check_room(allocated)
    assert len({node for _, _, node, *_ in notes.read()}) == 4
    beat = json.loads((tmp_path / "beat.json").read_text())
    assert beat["starts"] > 0
    assert beat["lag_s"] >= 0
    assert "Traceback" not in log_of(tmp_path)


def test_mixed_jobs_under_slurms_own_scheduler(empty_cluster, tmp_path):
    """The same jobs, not held, under backfill: a controller that runs beside does not touch them."""
    notes = Notes(tmp_path / "notes")
    with Allocated(empty_cluster) as allocated, controlled(empty_cluster, tmp_path, "first-fit"):
        ids = submit_mixed(empty_cluster, notes, 24)
        wait_until_empty(empty_cluster, tmp_path)
    _check(empty_cluster, notes, ids)
    _check_room(allocated)
    assert "release" not in log_of(tmp_path)


def test_everything_dies_in_the_middle(empty_cluster, tmp_path):
    """The controller is killed and started again, slurmctld too, a node is drained, another one is lost with its jobs."""
    cluster, notes = empty_cluster, Notes(tmp_path / "notes")
    with controlled(cluster, tmp_path, "nMSR") as process:
        ids = submit_mixed(cluster, notes, 36, *HELD)
        cluster.wait_for("some ends", lambda: len(notes.ends()) >= 4)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    with Allocated(cluster) as allocated, controlled(cluster, tmp_path, "nMSR"):
        cluster.wait_for("the second controller", lambda: log_of(tmp_path).rpartition("nodes:")[2].count("release") > 0)
        cluster.wait_for("more ends", lambda: len(notes.ends()) >= 16)
        # SIGTERM: killed by SIGKILL it comes back with what it saved some seconds before, and runs jobs again that had ended since.
        cluster.kill("slurmctld", signal.SIGTERM)
        time.sleep(2)
        cluster.start("slurmctld")
        cluster.wait_for("slurmctld", lambda: "is UP" in cluster.run("scontrol", "ping", check=False))
        cluster.run("scontrol", "update", "nodename=n3", "state=drain", "reason=test")
        cluster.lose("n4")
        cluster.run("scontrol", "update", "nodename=n4", "state=down", "reason=lost")  # as its monitor would; Slurm alone takes longer
        after = time.strftime("%Y-%m-%dT%H:%M:%S")
        wait_until_empty(cluster, tmp_path)
    # A job of n4 that had ended, and of whose end slurmctld had not heard, is lost with the node: Slurm runs it again, and no other one.
    assert set(notes.ends()) == set(ids)
    records = [one for one in ended_jobs(cluster) if one["JobId"] in ids]
    lost = {one["JobId"] for one in records if one["JobState"] == "NODE_FAIL" and one["NodeList"] == "n4"}
    assert set(notes.ended_again()) <= lost
    assert all(nodes == {"n4"} for nodes in notes.ended_again().values())
    assert sorted((one["JobId"] for one in records if one["JobState"] == "COMPLETED"), key=int) == sorted(ids, key=int)
    assert {one["NodeList"] for one in records if one["StartTime"] > after} <= {"n1", "n2"}
    assert all(cpus <= 8 for cpus in notes.most_cpus().values()), notes.most_cpus()
    _check_room(allocated)
    assert "Traceback" not in log_of(tmp_path)


def test_an_administrator_changes_the_partition(empty_cluster, tmp_path):
    """A node is taken out of the partition, then the partition is stopped for longer than the patience: no job starts on that node, none
    is given up, and all end once when it is up again; the node that comes back gets jobs."""
    cluster, notes = empty_cluster, Notes(tmp_path / "notes")

    def now():
        return time.strftime("%Y-%m-%dT%H:%M:%S")

    with Allocated(cluster) as allocated, controlled(cluster, tmp_path, "first-fit", "--patience", "1"):
        ids = submit_mixed(cluster, notes, 24, *HELD)
        cluster.wait_for("some ends", lambda: len(notes.ends()) >= 4)
        try:
            cluster.run("scontrol", "update", "partition=main", "nodes=n[1-3]")
            time.sleep(2)  # what was released to n4 a moment before may still start
            without = now()
            cluster.wait_for("more ends", lambda: len(notes.ends()) >= 12)
            cluster.run("scontrol", "update", "partition=main", "state=down")
            time.sleep(1)
            stopped = now()
            ids += submit_mixed(cluster, notes, 12, *HELD)
            time.sleep(6)
            assert "PartitionDown" in cluster.run("squeue", "-h", "-o", "%r")
            assert "rota:left" not in cluster.run("squeue", "-h", "-o", "%k")
            back = now()
            time.sleep(1)
        finally:
            cluster.run("scontrol", "update", "partition=main", "state=up", "nodes=ALL")
        ids += submit_mixed(cluster, notes, 12, *HELD)
        wait_until_empty(cluster, tmp_path)
    _check(cluster, notes, ids)
    _check_room(allocated)
    starts = [(one["NodeList"], one["StartTime"]) for one in ended_jobs(cluster) if one["JobId"] in ids]  # a launch takes long at times
    assert not [at for node, at in starts if node == "n4" and without < at <= back]
    assert not [at for _, at in starts if stopped < at <= back]
    assert [at for node, at in starts if node == "n4" and at > back]
    assert "Traceback" not in log_of(tmp_path)


def test_slurmctld_is_slow(empty_cluster, tmp_path):
    """slurmctld does not answer for 25 s (SIGSTOP): the controller says so once, goes on when it does, and every job ends once."""
    cluster, notes = empty_cluster, Notes(tmp_path / "notes")
    with Allocated(cluster) as allocated, controlled(cluster, tmp_path, "first-fit") as process:
        ids = submit_mixed(cluster, notes, 24, *HELD)
        cluster.wait_for("some ends", lambda: len(notes.ends()) >= 4)
        slurmctld = cluster.processes["slurmctld"]
        slurmctld.send_signal(signal.SIGSTOP)
        try:
            time.sleep(25)
        finally:
            slurmctld.send_signal(signal.SIGCONT)
        wait_until_empty(cluster, tmp_path)
        assert process.poll() is None
    _check(cluster, notes, ids)
    _check_room(allocated)
    log = log_of(tmp_path)
    assert (log.count("Rota goes on when it answers"), log.count("slurmctld answers again")) == (1, 1), log
    assert "Traceback" not in log


def test_slurmctld_is_killed_in_the_middle(tmp_path):
    """slurmctld is killed by SIGKILL and comes back with a state that is some seconds old: every job completes at least once.

    Where it starts a job that still runs, it drains the node ("Duplicate jobid") or holds the job ("launch failed"): an administrator
    resumes the one and releases the other."""

    def resume():
        for line in cluster.run("squeue", "-h", "-o", "%i %r", check=False).splitlines():
            if "launch failed" in line:
                cluster.run("scontrol", "release", line.split()[0], check=False)
        for line in cluster.run("sinfo", "-h", "-N", "-o", "%N %E", check=False).splitlines():
            if "Duplicate" in line:
                cluster.run("scontrol", "update", f"nodename={line.split()[0]}", "state=resume", check=False)

    with running_cluster(Group(2)) as cluster:
        notes = Notes(tmp_path / "notes")
        with controlled(cluster, tmp_path, "first-fit"):
            ids = submit_mixed(cluster, notes, 18, *HELD)
            later = time.time() + 1
            cluster.wait_for("a state with all jobs", lambda: (cluster.directory / "state/job_state").stat().st_mtime > later)
            cluster.wait_for("some ends", lambda: len(notes.ends()) >= 4)
            cluster.kill("slurmctld", signal.SIGKILL)
            cluster.start("slurmctld")
            cluster.wait_for("slurmctld", lambda: "is UP" in cluster.run("scontrol", "ping", check=False))
            wait_until_empty(cluster, tmp_path, 400, resume)
        assert set(notes.ends()) == set(ids)


def test_two_kinds_of_nodes(tmp_path):
    """From the nodes and jobs of a cluster with two kinds of nodes to a plan of its fleet, and that plan run: each job completes once,
    where its type can run, and no node is overfull; `rota slurm plan`, `rota plan`, `rota slurm run` as a person types them."""
    kinds = (Group(2, 8, 16_000, {"gpu": 2}), Group(2, 4, 8_000))
    asks = {"gpu": ("--cpus-per-task=2", "--mem=4000", "--gres=gpu:1"), "wide": ("--cpus-per-task=3", "--mem=3000"), "one": ("--mem=900",)}
    with running_cluster(*kinds) as cluster:
        notes, plan = Notes(tmp_path / "notes"), tmp_path / "plan.json"
        before = [cluster.submit("sleep 60", *options, "--hold", "--time=1") for options in asks.values()]
        done = run_rota(cluster, "plan", "--partition", "main", "--output", str(tmp_path / "nodes.toml"))
        assert done.returncode == 0, done.stderr
        fleet = rota.read_system(tmp_path / "nodes.toml")
        assert fleet.count.tolist() == [2, 2]
        assert sorted(fleet.capacity[:, 2].tolist()) == [0, 2]
        cluster.run("scancel", *map(str, before))
        words = [sys.executable, "-m", "rota.cli", "plan", str(tmp_path / "nodes.toml"), "--jobs", "5000", "--output", str(tmp_path)]
        made = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        ids = {}
        for n in range(30):  # before the controller: together they need all nodes
            name = list(asks)[n % 3]
            ids[str(cluster.submit(notes.command(0.5 + n % 4), *asks[name], *HELD))] = name
        process = start_rota(cluster, tmp_path, "run", str(plan), "-p", "main", "--interval", "0.3", "--heartbeat", str(tmp_path / "beat"))
        try:
            wait_until_empty(cluster, tmp_path)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)
        assert notes.ends() == sorted(ids, key=int)
        where = {job: node for what, job, node, *_ in notes.read() if what == "begin"}
        assert {where[job] for job, name in ids.items() if name == "gpu"} <= {"n1", "n2"}
        assert set(where.values()) == {"n1", "n2", "n3", "n4"}
        trace = str(tmp_path / "jobs.parquet")
        imported = [sys.executable, "-m", "rota.cli", "trace", "import", str(cluster.directory / "jobcomp.txt"), "--output", trace]
        subprocess.run(imported, check=True, capture_output=True)
        done = run_rota(cluster, "plan", "-p", "main", "--trace", trace, "--output", str(tmp_path / "again.toml"))
        assert done.returncode == 0, done.stderr
        assert "the trace says nothing of gpus" in done.stderr  # Slurm notes them only with slurmdbd
        again = rota.read_system(tmp_path / "again.toml")
        assert again.count.tolist() == [2, 2]
        assert sorted(again.demand[:, 0].tolist()) == [1, 2, 3]
        assert all(cpus <= {"n1": 8, "n2": 8, "n3": 4, "n4": 4}[node] for node, cpus in notes.most_cpus().items())
        assert "release" in log_of(tmp_path)
        assert "Traceback" not in log_of(tmp_path)


def test_the_watchdog_releases_everything(empty_cluster, tmp_path):
    """The controller is killed in the middle: the watchdog gives the jobs it held to Slurm's own scheduler, and all of them run once."""
    cluster, notes = empty_cluster, Notes(tmp_path / "notes")
    with Allocated(cluster) as allocated, controlled(cluster, tmp_path, "first-fit") as controller:
        ids = submit_mixed(cluster, notes, 30, *HELD)
        cluster.wait_for("some ends", lambda: len(notes.ends()) >= 3)
        controller.send_signal(signal.SIGKILL)
        controller.wait(10)
    assert "JobHeldUser" in cluster.run("squeue", "-h", "-o", "%r")
    words = ("watch", "--partition", "main", "--limit", "2", "--interval", "0.5", "--heartbeat", str(tmp_path / "beat.json"))
    process = start_rota(cluster, tmp_path, *words)
    try:
        wait_until_empty(cluster, tmp_path)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    _check(cluster, notes, ids)
    _check_room(allocated)
    assert "no controller" in log_of(tmp_path)


@pytest.mark.parametrize("model", ["suspend", "requeue"])
def test_a_policy_that_stops_jobs(empty_cluster, tmp_path, model):
    """A preemptive policy suspends or requeues real jobs; all end once, and no node is overfull while they run; suspended ones keep their
    memory."""
    cluster, notes = empty_cluster, Notes(tmp_path / "notes")
    policy = tmp_path / "policy.json"  # the rota moves on about every eight seconds
    names = ("small", "wide", "memory")
    rota.save_policy(rota.MSR([[0, 2, 0], [4, 0, 1]], [0.5, 0.5], "full", switching_rate=0.25, names=names), policy)
    with Allocated(cluster) as allocated, controlled(cluster, tmp_path, str(policy), "--preemption", model, model="full"):
        ids = submit_mixed(cluster, notes, 18, *HELD, longest=6.0)
        wait_until_empty(cluster, tmp_path)
    assert set(notes.ends()) == set(ids)
    _check_room(allocated)
    stopped = set(re.findall(rf" {model} (\d+)", log_of(tmp_path)))
    assert stopped
    # A job that is requeued in the moment between its last line and its end runs again.
    assert set(notes.ended_again()) <= (stopped if model == "requeue" else set())
    assert "Traceback" not in log_of(tmp_path)


def test_a_job_that_has_ended_is_not_requeued(empty_cluster, tmp_path):
    """A job ends after the snapshot in which it ran, and Rota asks to requeue it: it does not run again."""
    cluster, notes = empty_cluster, Notes(tmp_path / "notes")
    ids = [str(cluster.submit(notes.command(0.1), "--mem=500")) for _ in range(2)]
    wait_until_empty(cluster, tmp_path)
    SlurmClient().carry_out([Action(Do.REQUEUE, id, "n1") for id in ids])
    states = re.findall(r"JobState=(\w+)", "".join(cluster.run("scontrol", "show", "job", id) for id in ids))
    assert states == ["COMPLETED", "COMPLETED"]


def test_people_stay_in_charge(empty_cluster, tmp_path):
    """A job that an administrator holds stays held; a dependency, two nodes, an array and a job of two parts are done; explain and status
    say what is."""
    cluster, notes = empty_cluster, Notes(tmp_path / "notes")
    with controlled(cluster, tmp_path, "first-fit"):
        cluster.wait_for("the controller", (tmp_path / "beat.json").exists)
        held = cluster.submit(notes.command(0.3), "--mem=500", "--hold")
        cluster.run("scontrol", "hold", str(held))  # before it is marked: Rota would release it
        cluster.run("scontrol", "update", f"JobId={held}", "Comment=rota:waits:small")
        first = cluster.submit(notes.command(1), *HELD, "--mem=500")
        after = cluster.submit(notes.command(0.3), *HELD, "--mem=500", f"--dependency=afterok:{first}")
        both = cluster.submit(notes.command(0.3), *HELD, "--nodes=2", "--ntasks=2", "--mem=500")
        cluster.submit(notes.command(0.3), *HELD, "--array=1-3", "--mem=500")
        cluster.run("sbatch", "--output=/dev/null", "--export=NONE", *HELD, "--mem=500", "--wrap", notes.command(0.3), ":", "--mem=600")
        cluster.wait_for("the ends", lambda: len(notes.ends()) == 7)
        said = run_rota(cluster, "explain", str(held), "--partition", "main").stdout
        status = run_rota(cluster, "status", "--partition", "main", "--heartbeat", str(tmp_path / "beat.json")).stdout
    assert "held by an administrator" in said
    assert "lag from decision to start" in status
    assert {str(first), str(after), str(both)} <= set(notes.ends())
    assert str(held) not in notes.ends()


def test_back_out_in_one_command(empty_cluster, tmp_path):
    """`rota slurm release-all` gives all held jobs to Slurm, and a controller that is still there does not take them back."""
    cluster, notes = empty_cluster, Notes(tmp_path / "notes")
    ids = submit_mixed(cluster, notes, 6, *HELD, longest=1.0)
    done = run_rota(cluster, "release-all", "--partition", "main")
    assert (done.returncode, done.stdout) == (0, "6 jobs released to Slurm's own scheduler\n")
    wait_until_empty(cluster, tmp_path)
    _check(cluster, notes, ids)


def test_a_user_without_rights_is_not_a_controller(empty_cluster):
    """A user who may not change the jobs of others gets an error: a controller that can release nothing must not look alive."""
    job = empty_cluster.submit("sleep 1", *HELD)
    imports = "import os; from rota.slurm.client import SlurmClient; from rota.slurm.world import Action, Do"
    code = f"{imports}; os.setuid(65534); SlurmClient().carry_out([Action(Do.LEAVE, '{job}')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "NotOperator" in done.stderr, done.stderr + done.stdout


def test_the_script_of_the_page_holds_a_partition(cluster):
    """The job_submit.lua of docs/how-to/slurm.md holds and marks the jobs of its partition, given or by default, and no others."""
    page = (Path(__file__).parents[2] / "docs/how-to/slurm.md").read_text(encoding="utf-8")
    script = re.findall(r"^```lua\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0]
    with running_cluster(Group(1), job_submit=script) as own:
        ids = [own.submit("sleep 9", "--mem=100", *more) for more in ((), ("--partition=main", "--comment=mine"), ("--partition=other",))]
        seen = {line.split("|")[0]: line for line in own.run("squeue", "-h", "-o", "%i|%k|%Q").splitlines()}
        assert [seen[str(id)].startswith(f"{id}|rota|0") for id in ids] == [True, True, False]


ONE_NODE = Path(__file__).parents[2] / "contrib/one-node-slurm/install.sh"


@pytest.mark.skipif(bool(missing()), reason=missing() or "Slurm is there")
@pytest.mark.skipif(Path("/run/systemd/system").is_dir(), reason="this machine has systemd: the test would change its services")
@pytest.mark.skipif(Path("/etc/slurm/slurm.conf").exists(), reason="this machine has a Slurm of its own")
def test_a_machine_becomes_a_one_node_slurm_and_is_one_no_more(tmp_path):
    """`install.sh` run for real: the node is idle and reached by loopback only, a job runs, a second run refuses, and all is removed."""
    before = sorted(path.name for path in Path("/etc/slurm").glob("*"))

    def run(*words):
        return subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=600)

    os.umask(0o077)  # as that of a careful administrator: Slurm's own user must still read its configuration
    made = run("sh", str(ONE_NODE), "--yes")
    try:
        assert made.returncode == 0, made.stderr
        assert "no systemd on this machine" in made.stderr
        assert run("srun", "--mem=100", "echo", "it runs").stdout == "it runs\n"
        assert run("sh", str(ONE_NODE), "--yes").returncode == 1
        listening = [line.split()[3] for line in run("ss", "-ltn").stdout.splitlines() if line.split()[3].endswith((":6817", ":6818"))]
        assert all(address.startswith("127.") for address in listening), listening
    finally:
        removed = run("sh", str(ONE_NODE), "--remove")
    assert removed.returncode == 0, removed.stderr
    assert sorted(path.name for path in Path("/etc/slurm").glob("*")) == before
    assert run("sh", str(ONE_NODE), "--remove").returncode == 1


@pytest.mark.parametrize(("words", "code", "text"), [(["--print"], 0, "PartitionName=main"), (["--no"], 2, "unknown option --no")])
def test_the_script_for_one_machine(words, code, text):
    """`contrib/one-node-slurm/install.sh` prints the configuration that it would write, and refuses what it does not know."""
    done = subprocess.run(["sh", str(ONE_NODE), *words], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert text in done.stdout + done.stderr


def test_shadow_mode_changes_nothing(empty_cluster, tmp_path):
    """With --dry-run Slurm's own scheduler runs the jobs, and Rota says what it would have done and how long people would have waited."""
    cluster, notes = empty_cluster, Notes(tmp_path / "notes")
    plan = write_plan(tmp_path)
    words = ("run", str(plan), "--policy", "first-fit", "--partition", "main", "--dry-run", "--interval", "0.3")
    process = start_rota(cluster, tmp_path, *words)
    try:
        cluster.wait_for("the shadow", lambda: "nodes:" in log_of(tmp_path))
        ids = submit_mixed(cluster, notes, 24)
        wait_until_empty(cluster, tmp_path)
        time.sleep(1)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
    _check(cluster, notes, ids)
    log = log_of(tmp_path)
    assert "jobs ended. They waited" in log
    assert "would have waited" in log


def test_propose_a_plan(empty_cluster, tmp_path):
    """`rota slurm plan` writes a server like the nodes, with types from the jobs in the queue, that Rota can read."""
    cluster, notes = empty_cluster, Notes(tmp_path / "notes")
    submit_mixed(cluster, notes, 6, *HELD, "--time=1")
    ask = ("plan", "--partition", "main", "--source", "queue", "--output", str(tmp_path / "found.toml"))
    (tmp_path / "found.toml").write_text("precious", encoding="utf-8")
    assert run_rota(cluster, *ask).returncode == 2
    assert (tmp_path / "found.toml").read_text(encoding="utf-8") == "precious"
    done = run_rota(cluster, *ask, "--force")
    assert done.returncode == 0, done.stderr
    system = rota.read_system(tmp_path / "found.toml")
    assert system.count.tolist() == [4]
    assert system.capacity.tolist() == [[8, 15.625]]
    assert sorted(system.demand[:, 0].tolist()) == [1, 2, 4]


def test_propose_a_plan_from_jobs_that_have_ended(empty_cluster, tmp_path):
    """Without slurmdbd sacct has nothing: `rota slurm plan` reads the file of ended jobs; a source that has none is an error."""
    cluster, notes = empty_cluster, Notes(tmp_path / "notes")
    submit_mixed(cluster, notes, 6, longest=1.0)
    wait_until_empty(cluster, tmp_path)
    done = run_rota(cluster, "plan", "--partition", "main", "--output", str(tmp_path / "found.toml"))
    assert done.returncode == 0, done.stderr
    assert f"recent jobs: {cluster.directory}/jobcomp.txt" in done.stderr
    assert {1, 2, 4} <= set(rota.read_system(tmp_path / "found.toml").demand[:, 0].tolist())
    done = run_rota(cluster, "plan", "--partition", "main", "--source", "sacct")
    assert done.returncode == 1
    assert "accounting storage is disabled" in done.stderr
