"""A real Slurm on loopback, for tests and benchmarks: munged, slurmctld and a slurmd per node, without systemd, as root.

Everything is in a directory of its own, on free ports, with a key and a socket of its own, so that several clusters can run beside each
other. `make slurm` installs the packages (Debian: slurmctld slurmd slurm-client munge).

By hand: `python tests/slurm/cluster.py` starts one, says how to talk to it, and ends it at Ctrl-C.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "scontrol", "squeue", "sbatch")
_START_S = 90.0
_DAEMON = "ROTA_TEST_DAEMON"  # in the environment of a daemon: its name

_CONF = """
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge/socket,cred_expire=60
CryptoType=crypto/munge
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool-%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd-%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=1,sched_interval=1,bf_interval=1
PriorityType=priority/basic
PreemptType=preempt/none
JobCompType=jobcomp/filetxt
JobCompLoc={directory}/jobcomp.txt
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MaxJobCount=30000
MaxArraySize=20001
MinJobAge=300
SlurmdTimeout={slurmd_timeout}
SlurmctldTimeout=10
InactiveLimit=0
KillWait=2
Waittime=0
{gres_types}{job_submit}{node_lines}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO DefMemPerCPU=1
PartitionName=other Nodes=ALL Default=NO MaxTime=INFINITE State=UP OverSubscribe=NO DefMemPerCPU=1
"""


@dataclass(frozen=True)
class Group:
    """Nodes that are alike: how many there are, and what each has."""

    count: int = 4
    cpus: int = 8
    memory_mb: int = 16_000
    gres: Mapping[str, int] = field(default_factory=dict)


def missing() -> str:
    """Why no cluster can be started here: '' if one can."""
    if os.geteuid() != 0:
        return "a Slurm on loopback is started as root, and this is another user"
    os.environ["PATH"] += ":/usr/sbin:/sbin" * ("/usr/sbin" not in os.environ["PATH"].split(":"))
    lost = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"Slurm is not installed ({', '.join(lost)} not found): make slurm installs it" if lost else ""


@dataclass
class Cluster:
    """A running cluster. `environment` is what Slurm's commands need to find it."""

    directory: Path
    nodes: int
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of commands that talk to this cluster."""
        return {**os.environ, "SLURM_CONF": str(self.directory / "slurm.conf")}

    def run(self, *words: str, check: bool = True) -> str:
        """What a command of Slurm prints."""
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=30, cwd=self.directory)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr}{done.stdout}")
        return done.stdout

    def submit(self, command: str, *options: str) -> int:
        """Submits a job that runs a line of shell, and returns its number."""
        words = ["sbatch", "--parsable", "--output=/dev/null", "--export=NONE", *options, "--wrap", command]
        return int(self.run(*words).split(";")[0])

    def start(self, name: str) -> None:
        """Starts one of the daemons: munged, slurmctld, or a node by its name."""
        conf = ("-f", str(self.directory / "slurm.conf"))
        here = self.directory / "munge"
        words = {
            "munged": ["munged", "-F", f"--socket={here}/socket", *(f"--{it}-file={here}/{it}" for it in ("key", "pid", "log", "seed"))],
            "slurmctld": ["slurmctld", "-D", *conf],
        }.get(name, ["slurmd", "-D", *conf, "-N", name])
        environment = {**self.environment, _DAEMON: name}  # what a slurmd starts for a job, slurmstepd, has it too
        with (self.directory / f"{name}.out").open("ab") as out:
            self.processes[name] = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment, start_new_session=True
            )

    def kill(self, name: str, how: int = signal.SIGKILL) -> None:
        """Ends one of the daemons and waits until it is gone; the time is long enough for slurmctld to save its state at SIGTERM."""
        process = self.processes.pop(name)
        with suppress(ProcessLookupError):
            process.send_signal(how)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)

    def lose(self, node: str) -> None:
        """A node is gone at once with all that runs on it, as if its power had failed: slurmd, then slurmstepd, then the jobs."""
        self.kill(node)
        for mark in (f"{_DAEMON}={node}", f"SLURMD_NODENAME={node}"):
            for place in _processes_of(self.directory, mark):
                with suppress(OSError):
                    os.kill(int(place.name), signal.SIGKILL)

    def wait_for(self, what: str, ready: Callable[[], bool], limit_s: float = _START_S) -> None:
        """Waits until something holds; an error with the logs if it does not in time."""
        end = time.monotonic() + limit_s
        while not ready():
            if time.monotonic() > end:
                logs = "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(self.directory.glob("*.log")))
                raise RuntimeError(f"{what}: not within {limit_s:g} s\n{self.run('sinfo', '-N', check=False)}\n{logs}")
            time.sleep(0.1)

    def idle(self) -> bool:
        """Whether all nodes are there and idle."""
        return self.run("sinfo", "-h", "-N", "-p", "main", "-o", "%T", check=False).split() == ["idle"] * self.nodes


def _free_ports(count: int) -> int:
    """The first of some free ports in a row, below those that the system gives to clients."""
    for _ in range(200):
        first = 10_000 + secrets.randbelow(20_000)
        with suppress(OSError):
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first
    raise RuntimeError("no free ports")


def _node_lines(groups: Sequence[Group], first_port: int) -> Iterator[str]:
    """The lines of slurm.conf: nodes n1, n2, … in the order of their groups."""
    number = 0
    for group in groups:
        gres = ",".join(f"{name}:{count}" for name, count in group.gres.items())
        for _ in range(group.count):
            number += 1
            has = f"CPUs={group.cpus} RealMemory={group.memory_mb}{f' Gres={gres}' if gres else ''} State=UNKNOWN"
            yield f"NodeName=n{number} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={first_port + number - 1} {has}"


def _gres_lines(groups: Sequence[Group], directory: Path) -> Iterator[str]:
    """The lines of gres.conf. A gres named gpu needs a file for each: any file that is there will do."""
    number = 0
    for group in groups:
        nodes = f"NodeName=n[{number + 1}-{number + group.count}]"
        number += group.count
        for name, count in group.gres.items():
            if name != "gpu":
                yield f"{nodes} Name={name} Count={count}"
                continue
            for gpu in range(count):
                (directory / f"gpu{gpu}").touch()
            yield f"{nodes} Name=gpu File={directory}/gpu[0-{count - 1}]"


@contextmanager
def running_cluster(
    *groups: Group, slurmd_timeout: int = 5, job_submit: str = "", more: str = "", replaced: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """A cluster from its start, with all nodes idle, to its end; four nodes of 8 CPUs if nothing is said.

    `job_submit`: a script in Lua that sees every job when it is submitted; `more`: further lines of slurm.conf; `replaced`: settings in
    place of the usual ones, by name."""
    if reason := missing():
        raise RuntimeError(reason)
    groups = groups or (Group(),)
    nodes = sum(group.count for group in groups)
    directory = Path(tempfile.mkdtemp(prefix="rota-slurm-"))
    directory.chmod(0o755)
    (directory / "munge").mkdir()
    (directory / "munge").chmod(0o755)  # whatever the umask: munged refuses a socket that not everyone can reach
    (directory / "state").mkdir()
    key = directory / "munge" / "key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    first = _free_ports(nodes + 1)
    gres = sorted({name for group in groups for name in group.gres})
    text = _CONF.format(
        directory=directory,
        host=socket.gethostname(),
        port=first + nodes,
        slurmd_timeout=slurmd_timeout,
        job_submit="JobSubmitPlugins=lua\n" if job_submit else "",
        gres_types=f"GresTypes={','.join(gres)}\n" if gres else "",
        node_lines="\n".join(_node_lines(groups, first)),
    )
    for name, value in (replaced or {}).items():
        text, found = re.subn(rf"(?m)^{name}=.*$", f"{name}={value}", text)
        if not found:
            raise RuntimeError(f"{name} is not in slurm.conf")
    (directory / "slurm.conf").write_text(text + more, encoding="utf-8")
    if gres:
        (directory / "gres.conf").write_text("\n".join(_gres_lines(groups, directory)) + "\n", encoding="utf-8")
    if job_submit:
        (directory / "job_submit.lua").write_text(job_submit, encoding="utf-8")
    (directory / "cgroup.conf").write_text("CgroupAutomount=no\n", encoding="utf-8")
    cluster = Cluster(directory, nodes)
    try:
        cluster.start("munged")
        cluster.wait_for("the socket of munged", (directory / "munge" / "socket").exists, 10)
        cluster.start("slurmctld")
        for number in range(1, nodes + 1):
            cluster.start(f"n{number}")
        cluster.wait_for(f"{nodes} idle nodes", cluster.idle)
        yield cluster
    finally:
        with suppress(RuntimeError, subprocess.TimeoutExpired):
            cluster.run("scancel", "--user=root", check=False)
        _end_jobs(directory)
        for name in reversed(list(cluster.processes)):
            cluster.kill(name, signal.SIGTERM)
        _end_jobs(directory)
        if "ROTA_KEEP_SLURM" not in os.environ:
            shutil.rmtree(directory, ignore_errors=True)


def _processes_of(directory: Path, *marks: str) -> Iterator[Path]:
    """The processes that the cluster of this directory has started, its daemons and their jobs: SLURM_CONF is its file. Not those of a
    person who gave the cluster a look, which have that too. `marks` are in their environment as well."""
    wanted = {mark.encode() for mark in (f"SLURM_CONF={directory}/slurm.conf", *marks)}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            found = (place / "environ").read_bytes().split(b"\0")
            if wanted <= set(found) and any(word.startswith((f"{_DAEMON}=".encode(), b"SLURM_JOB_ID=")) for word in found):
                yield place


def _end_jobs(directory: Path) -> None:
    """Ends what the nodes of this cluster have started and is still there."""
    for place in _processes_of(directory):
        with suppress(OSError):
            if (place / "exe").resolve().name in ("slurmstepd", "bash", "dash", "sh", "sleep"):
                os.kill(int(place.name), signal.SIGKILL)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with running_cluster() as one, suppress(KeyboardInterrupt):
        print(f"export SLURM_CONF={one.directory}/slurm.conf\n{one.run('sinfo', '-N')}Ctrl-C ends it", flush=True)
        signal.pause()
