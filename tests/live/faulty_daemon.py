"""Run by a test: a daemon with a bug. It fails whenever it is to start a job of type `cursed` while the file `bug` is there."""

import asyncio
import sys
from pathlib import Path

from rota.live.daemon import run_daemon
from rota.live.resources.allocation import Allocation
from rota.live.standard_error import LineWriter
from rota.policy import read_plan_file

home = Path(sys.argv[1])
take = Allocation.take


def fail(self, job, demand):
    """The bug: in the midst of carrying out a decision."""
    if job.type == "cursed" and (home / "bug").exists():
        raise ValueError("2 asked for, 0 of 2 are free")
    take(self, job, demand)


Allocation.take = fail
asyncio.run(run_daemon(home / "state", read_plan_file(home / "plan.json"), log_line=LineWriter()))
