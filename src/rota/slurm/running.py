"""`rota slurm run`: reads the cluster, asks the controller, carries out what it says, again and again.

It looks once per interval, and at once when one of its wake files changes: the log of ended jobs (jobcomp/filetxt), or a file that
job_submit.lua touches. Without them a free node waits half an interval on average until the next look.

After each cycle that went well it writes its heartbeat, a small JSON file. A watchdog (`rota slurm watch`) that finds it too old releases
all jobs to Slurm's own scheduler. The file is locked while a controller runs, so that there is one per file.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rota.arguments import write_text
from rota.errors import BadSpec, Problem
from rota.slurm.controller import Controller
from rota.slurm.errors import Unreachable
from rota.slurm.world import Action, Cluster, Do

__all__ = ["Heartbeat", "default_heartbeat", "describe", "partitions_heard_of", "read_heartbeat", "run_controller"]

_PART_OF_TIME = 1 / 3  # at most this part of the time Slurm is asked something, so that a long queue does not keep it busy
_LONGEST_REST_S = 10.0
_STEP_S = 0.02  # between two looks at the wake files
_EARLIER = 0.97  # the part of the interval until the next look: if all looks were at the same part of a second, so would all lags be
_SETTLE_S = 0.1  # after a wake: a job that has just ended, or is just being submitted, is not in Slurm's tables yet


@dataclass(frozen=True)
class Heartbeat:
    """What a controller says of itself after a cycle."""

    at: float  # seconds since 1970
    pid: int
    policy: str
    partition: str | None
    preemption: str
    waiting: int
    running: int
    cycles: int
    cycle_s: float  # the last cycle
    lag_s: float | None  # mean time from a decision to the start of the job
    largest_lag_s: float
    starts: int
    wait_s: float | None  # mean time from submission to start
    calls: int  # commands of Slurm that were run
    updates: int  # changes that were asked for
    memory_mb: float  # the most so far


def default_heartbeat(partition: str | None) -> Path:
    """Where the heartbeat is by default: in the state directory of this user."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "rota" / f"slurm-{partition or 'all'}.json"


def partitions_heard_of() -> list[str]:
    """The partitions whose controllers have left a heartbeat in the default place."""
    return sorted(path.stem.removeprefix("slurm-") for path in default_heartbeat(None).parent.glob("slurm-*.json"))


def read_heartbeat(path: Path) -> Heartbeat | None:
    """The last heartbeat; None if there is none, or none that can be read."""
    try:
        return Heartbeat(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _lock(path: Path) -> Any:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.with_suffix(".lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise BadSpec(
            [Problem("--heartbeat", "another controller runs with this file: end it first, or name another file", str(path))]
        ) from None
    return file


def run_controller(
    controller: Controller,
    cluster: Cluster,
    heartbeat: Path,
    *,
    interval_s: float = 1.0,
    wake: Sequence[Path] = (),
    log_line: Callable[[str], None] = print,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Runs until `stop` says so, or an interrupt. Slurm out of reach is waited for. `wake`: files whose changes are looked at at once."""
    lock, cycles, lost = _lock(heartbeat), 0, False
    try:
        while not stop():
            began, asked_s, seen, soon = time.monotonic(), 0.0, _versions(wake), False
            try:
                snapshot = cluster.read()
                asked_s = time.monotonic() - began
                actions = controller.handle(snapshot, snapshot.at)
                for action in actions:
                    log_line(describe(action)) if action.do != Do.NOTE else None
                decided = time.monotonic()
                for complaint in cluster.carry_out(actions):
                    log_line(f"slurm: {complaint}")
                asked_s += time.monotonic() - decided
                soon = bool(wake) and controller.ending  # what these jobs hold is free in a moment, and no file will say so
                if lost:
                    log_line("slurmctld answers again")
                cycles, lost = cycles + 1, False
                write_text(heartbeat, json.dumps(asdict(_beat(controller, cluster, cycles, time.monotonic() - began))) + "\n")
            except Unreachable as error:
                if not lost:
                    log_line(f"{error}; Rota goes on when it answers")
                lost = True
            rest_s = min(asked_s * (1 / _PART_OF_TIME - 1), _LONGEST_REST_S)  # where slurmctld takes long to answer
            time.sleep(max(rest_s, _STEP_S))
            _wait(began + _EARLIER * (min(interval_s, _SETTLE_S) if soon else interval_s), wake, seen, stop)
    finally:
        lock.close()


def _versions(files: Sequence[Path]) -> list[tuple[int, int]]:
    """What changes when a file is written to: its time and its size."""
    return [(found.st_mtime_ns, found.st_size) if (found := _stat(file)) is not None else (0, 0) for file in files]


def _stat(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except OSError:
        return None


def _wait(end: float, wake: Sequence[Path], seen: list[tuple[int, int]], stop: Callable[[], bool]) -> None:
    """Waits until this moment (monotonic), or until a wake file has changed since its version `seen`."""
    while (left := end - time.monotonic()) > 0 and not stop():
        if wake and _versions(wake) != seen:
            time.sleep(min(left, _SETTLE_S))
            return
        time.sleep(min(left, _STEP_S if wake else left))


def describe(action: Action, dry_run: bool = False) -> str:
    """A line for the log."""
    where = f" to {action.node}" if action.do == Do.RELEASE else f" on {action.node}" if action.node else ""
    note = f" ({action.note.rpartition(':')[2]})" if action.do == Do.LEAVE else ""
    return f"{time.strftime('%H:%M:%S')} {'would ' if dry_run else ''}{action.do} {action.job}{where}{note}"


def _beat(controller: Controller, cluster: Cluster, cycles: int, cycle_s: float) -> Heartbeat:
    states = [state.running.sum() for state in (queue.scheduler.state for queue in controller.queues.values())]
    waiting = controller.without_node + sum(int(queue.waiting.sum()) for queue in controller.queues.values())
    return Heartbeat(
        at=time.time(),
        pid=os.getpid(),
        policy=controller.plan.label,
        partition=controller.partition,
        preemption=controller.plan.live.preemption,
        waiting=waiting,
        running=int(sum(states)),
        cycles=cycles,
        cycle_s=round(cycle_s, 4),
        lag_s=None if (lag := controller.times.lag.mean) is None else max(lag, 0.0),
        largest_lag_s=controller.times.lag.most,
        starts=controller.times.wait.count,
        wait_s=controller.times.wait.mean,
        calls=cluster.calls,
        updates=cluster.updates,
        memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )
