"""Talks to Slurm by its commands: reads nodes and jobs, and carries actions out. Every call has a time limit.

One cycle of the controller is two questions (squeue, scontrol show node) and at most one `scontrol` that gets all changes as lines on its
standard input. slurmctld has one RPC per question, and one or two per job that is changed.

Answers are read as JSON where Slurm has that for both questions (not in 22.05, whose scontrol knows no --json), and as text elsewhere. A
long queue is always read as text, which is a tenth as long.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import time
from collections.abc import Iterator, Sequence

from rota.slurm.errors import NoSlurm, NotOperator, SlurmError, UnknownOutput, Unreachable
from rota.slurm.parsing import job_format, parse_jobs, parse_nodes
from rota.slurm.parsing_json import jobs_from_json, nodes_from_json
from rota.slurm.world import Action, Do, Node, SlurmJob, Snapshot

__all__ = ["SlurmClient", "commands_for"]

_TOGETHER = 200  # jobs in one command
_LONG = 1000  # jobs in a queue that is read as text
_ACCOUNTING = "JobID,State,Submit,Eligible,Start,End,ElapsedRaw,Timelimit,ReqTRES,AllocTRES,NNodes"
_NODES = ("scontrol", "show", "node", "--details")
_OUT_OF_REACH = re.compile(
    r"unable to contact|connection (refused|timed out)|connect failure|timed out on send|socket timed|transport", re.I
)
_NO_CONFIG = re.compile(r"establish a configuration source", re.I)
_REFUSED = re.compile(r"permission denied|invalid user id", re.I)
_ID = re.compile(r"\d+([_+]\d+)?")
_NODE_NAME = re.compile(r"[\w.-]+")
_NOTE = re.compile(r"[\w:.,=/+-]*")  # words on scontrol's standard input cannot be quoted


class SlurmClient:
    """The cluster that Slurm's commands on this machine talk to."""

    def __init__(self, *, time_limit_s: float = 20.0) -> None:
        self.time_limit_s = time_limit_s
        self.calls = 0  # commands that were run
        self.updates = 0  # changes that were asked for: about as many RPCs
        self._json: bool | None = None  # whether answers are read as JSON; None: not asked yet
        self._last = 0  # jobs that the last answer had

    def read(self) -> Snapshot:
        """The cluster now: jobs first, so that what is allocated is at least as new as they are."""
        if self._json is None:
            self._json = self._knows_json()
        try:
            jobs, nodes = self.read_json() if self._json and self._last <= _LONG else self.read_text()
        except UnknownOutput:
            if not self._json:
                raise
            self._json = False  # a form of a later Slurm, or a list that was cut off: the text says it too
            jobs, nodes = self.read_text()
        self._last = len(jobs)
        return Snapshot(nodes, jobs, time.time())

    def read_text(self) -> tuple[tuple[SlurmJob, ...], tuple[Node, ...]]:
        """Jobs and nodes, by what every Slurm prints."""
        nonce = secrets.token_hex(4)
        jobs = parse_jobs(self._run(["squeue", "--noheader", "--array", "--all", "--Format", job_format(nonce)]), nonce)
        return jobs, parse_nodes(self._run([*_NODES, "--oneliner"]))

    def read_json(self) -> tuple[tuple[SlurmJob, ...], tuple[Node, ...]]:
        """Jobs and nodes, by JSON."""
        return jobs_from_json(self._run(["squeue", "--all", "--json"])), nodes_from_json(self._run([*_NODES, "--json"]))

    def _knows_json(self) -> bool:
        """Whether scontrol answers in a JSON that Rota reads; where it does, squeue does too."""
        try:
            return bool(nodes_from_json(self._run([*_NODES, "--json"])))
        except (NoSlurm, Unreachable):
            raise
        except SlurmError:
            return False

    def carry_out(self, actions: Sequence[Action]) -> list[str]:
        """Does all of it that is possible, and returns what Slurm complained about: the next snapshot shows what came of it."""
        complaints = list[str]()
        lines = list(commands_for(actions))
        for at in range(0, len(lines), _TOGETHER):
            part = lines[at : at + _TOGETHER]
            self.updates += sum(1 + line.count(",") for line in part)
            complaints += self._tell("\n".join(part) + "\n")
        return complaints

    def accounting(self, since: str, partition: str | None) -> str:
        """What `sacct -P` prints of the jobs since this time (2026-07-01T00:00:00); an error where there is no slurmdbd."""
        words = ["sacct", "-P", "--allusers", "--allocations", "--duplicates", f"--starttime={since}", f"--format={_ACCOUNTING}"]
        return self._run([*words, *([f"--partition={partition}"] if partition else [])], SLURM_TIME_FORMAT="standard")

    def config(self) -> str:
        """What `scontrol show config` prints."""
        return self._run(["scontrol", "show", "config"])

    def _tell(self, lines: str) -> list[str]:
        done = self._call(["scontrol"], lines)
        errors = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        if any(_OUT_OF_REACH.search(line) for line in errors):
            raise Unreachable(f"slurmctld cannot be reached: {errors[0]}")
        if any(_REFUSED.search(line) for line in errors):  # jobs would stay held: better no controller than such a one
            raise NotOperator(f"{errors[0]}: run Rota as SlurmUser, as root, or as an operator (sacctmgr)")
        return errors

    def _run(self, words: Sequence[str], **environment: str) -> str:
        done = self._call(words, **environment)
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
            if any(_NO_CONFIG.search(line) for line in said):
                raise NoSlurm(f"{words[0]} finds no cluster: this machine has no slurm.conf of one, and SLURM_CONF names none")
            kind = Unreachable if any(_OUT_OF_REACH.search(line) for line in said) else SlurmError
            raise kind(f"{words[0]} failed: {'; '.join(said[:3])}")
        return done.stdout

    def _call(self, words: Sequence[str], text: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        if not self.calls and (conf := os.environ.get("SLURM_CONF")) and not os.path.exists(conf):  # Slurm would try for a minute
            raise NoSlurm(f"SLURM_CONF names {conf}, which does not exist")
        self.calls += 1
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SQUEUE_", "SCONTROL_", "SACCT_"))}
        environment |= {"SLURM_TIME_FORMAT": "%s", "LC_ALL": "C.UTF-8", **more}
        try:
            return subprocess.run(
                words, input=text, env=environment, capture_output=True, text=True, errors="replace", timeout=self.time_limit_s
            )
        except FileNotFoundError:
            raise NoSlurm(f"{words[0]} is not on this machine: install Slurm's commands (Debian: apt install slurm-client)") from None
        except subprocess.TimeoutExpired:
            raise Unreachable(f"{words[0]} took more than {self.time_limit_s:g} s: slurmctld is slow or cannot be reached") from None


def commands_for(actions: Sequence[Action]) -> Iterator[str]:
    """The lines that scontrol reads for these actions. Jobs that are stopped come first, and what they free is used after."""
    for action in actions:
        _check(action)
    # Incomplete: without it Slurm also runs a job again that has ended since the snapshot.
    for do, verb in ((Do.REQUEUE, "requeuehold Incomplete"), (Do.SUSPEND, "suspend"), (Do.HOLD, "uhold")):
        yield from _many(verb, [action.job for action in actions if action.do == do])
    for action in actions:
        words = [f"Comment={action.note}"] if action.note else []
        if action.do == Do.RELEASE:
            words += [f"ReqNodeList={action.node}", *(["StartTime=now"] if action.again else [])]
        elif action.do in (Do.HOLD, Do.LEAVE):
            words += ["ReqNodeList=", *(["StartTime=now"] if action.again else [])]
        if words:
            yield f"update JobId={action.job} {' '.join(words)}"
    yield from _many("release", [action.job for action in actions if action.do in (Do.RELEASE, Do.LEAVE)])
    yield from _many("resume", [action.job for action in actions if action.do == Do.RESUME])


def _many(verb: str, jobs: Sequence[str]) -> Iterator[str]:
    for at in range(0, len(jobs), _TOGETHER):
        yield f"{verb} {','.join(jobs[at : at + _TOGETHER])}"


def _check(action: Action) -> None:
    """Nothing but plain words goes to scontrol."""
    good = _ID.fullmatch(action.job) and _NOTE.fullmatch(action.note) and (not action.node or _NODE_NAME.fullmatch(action.node))
    if not good:
        raise SlurmError(f"{action} is not plain words, so it is not sent to scontrol")
