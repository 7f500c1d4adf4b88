"""Recent jobs of a partition as a trace, from where Slurm keeps them: its accounting, or the file of jobcomp/filetxt.

Accounting knows most, and is there with slurmdbd only. The file has no generic resources without slurmdbd, so jobs of nodes that have some
would get wrong types: for such nodes it is read only if it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from rota.errors import BadSpec, Infeasible, Problem, RotaError
from rota.slurm.client import SlurmClient
from rota.slurm.errors import SlurmError

__all__ = ["Source", "recent_jobs"]

Source = Literal["sacct", "jobcomp", "queue"]


def recent_jobs(
    client: SlurmClient, partition: str | None, folder: Path, *, days: float, source: Source | None, gres: bool
) -> tuple[Path | None, str]:
    """A trace of the jobs that ended in the last days, written into the folder, and where they are from, in words.

    The trace is None if the jobs in the queue must do. `gres`: nodes have generic resources. A source that is named and has no jobs is an
    error."""
    if not 0 < days <= 3660:
        raise BadSpec([Problem("--days", "must be between 0 and 3660", days)])
    since = (datetime.now() - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S")
    if source in (None, "sacct"):
        try:
            text = client.accounting(since, partition)
            return _imported(text.splitlines(keepends=True), folder), f"sacct, the last {days:g} days"
        except RotaError as error:
            if source == "sacct":
                raise
            said = f"sacct has none ({_first_line(error)})"
    if source == "jobcomp" or (source is None and not gres):
        try:
            path = _jobcomp_file(client.config())
            return _imported(_lines(path, since, partition), folder), f"{path}, the last {days:g} days"
        except RotaError as error:
            if source == "jobcomp":
                raise
            said += f", nor has jobcomp ({_first_line(error)})"
    return None, "the queue as it is now" + ("" if source == "queue" else f"; {said}")


def _first_line(error: RotaError) -> str:
    return str(error).splitlines()[0]


def _jobcomp_file(config: str) -> Path:
    """The file of ended jobs, from what `scontrol show config` prints."""
    found = dict(re.findall(r"(?m)^(JobCompType|JobCompLoc)\s*=\s*(\S+)", config))
    if found.get("JobCompType") != "jobcomp/filetxt" or "JobCompLoc" not in found:
        raise SlurmError(f"JobCompType is {found.get('JobCompType', 'not set')}, and Rota reads jobcomp/filetxt")
    return Path(found["JobCompLoc"])


def _lines(path: Path, since: str, partition: str | None) -> Iterator[str]:
    """The lines of jobs of the partition that ended since then."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                ended = re.search(r" EndTime=(\S+)", line)
                if (partition is None or f" Partition={partition} " in line) and (ended is None or ended[1] >= since):
                    yield line
    except OSError as error:
        raise SlurmError(f"{path} cannot be read: {error.strerror}") from None


def _imported(lines: Iterator[str] | list[str], folder: Path) -> Path:
    from rota.traces import import_trace

    log, output = folder / "jobs.txt", folder / "jobs.parquet"
    with log.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    if not log.stat().st_size:
        raise Infeasible("no job ended in this time")
    import_trace(log, output, on_error="skip")
    return output
