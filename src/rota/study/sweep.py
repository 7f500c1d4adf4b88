"""`sweep`: the runs of a grid, each done once, on this machine's cores or on a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.model import Fleet, System, Workload
from rota.simulation.fleet.policy import PolicyOfFleet
from rota.simulation.of_fleet import Rules
from rota.study.execute import execute
from rota.study.grid import grid
from rota.study.results import Results, as_table

if TYPE_CHECKING:
    import polars as pl

__all__ = ["SweepProgress", "sweep"]


@dataclass(frozen=True)
class SweepProgress:
    """How far a sweep has come: runs done, the `found` ones of earlier sweeps among them; seconds taken, and left by estimate.

    Reported before the first run, when there is no estimate yet, and after each.
    """

    done: int
    total: int
    found: int
    time_s: float
    left_s: float | None


def sweep(
    system: System | Fleet,
    policies: Sequence[PolicyOfFleet],
    *,
    dispatch: Rules = None,
    loads: Iterable[float] | None = None,
    switching_rates: Iterable[float] | None = None,
    setup_rates: Iterable[float] | None = None,
    jobs: float | Iterable[float] | None = None,
    seeds: int | Iterable[int] = 1,
    workload: Workload | str | Path | None = None,
    output: str | Path | None = None,
    anew: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[SweepProgress], None] | None = None,
) -> pl.DataFrame:
    """Simulates every policy at every point of a grid: one row per run, in the order of the grid, with all that is needed to repeat it.

    A policy is a name of `rota.simulation.POLICY_NAMES`, a policy or its file, your own as "module:function", or a name that is designed
    for the system at each load (`rota.policy.DESIGNED_NAMES`): an MSR ("pMSR", "nMSR", "sMSR", each with "+backfill" if wanted), with
    balanced loads and, if given, with each switching rate and setup rate; or "improved", the improved rota. Loads are those of the system
    unless given. The same seed gives the same jobs to every policy. `seeds` is how many, or a list. Each run has `jobs` jobs (a million;
    all of a workload that has an end).

    On a `rota.Fleet` every policy is combined with every rule of `dispatch`, a rule or a list of them (that of the fleet if not given, else
    "jsq"); a policy may also be a design of the whole fleet, or the name of one: "pinned", "partly-pinned", "split".

    A `workload` is the file of a trace, whose arrivals come faster or slower at other loads, or an arrival process of your own as
    "module:name"; a policy or arrival process of your own must be importable by every worker, and a hash of its source is in each row.

    `output` is a parquet file. Runs that it holds are not repeated, and what is finished is safe from any interruption: the same call goes
    on from there. Rows of other grids stay in the file. With `anew`, what is there is written over at the end instead. Runs go to
    `workers` processes, one per core unless given (0: none, all here), or to the workers of a Dask `scheduler`; the results are the same.
    """
    runs = grid(
        system,
        policies,
        dispatch=dispatch,
        loads=loads,
        switching_rates=switching_rates,
        setup_rates=setup_rates,
        jobs=jobs,
        seeds=seeds,
        workload=workload,
    )
    total = len({run.key for run in runs})
    with Results(output, anew) as results:
        missing = {run.key: run for run in runs if run.key not in results}
        found, work, began = total - len(missing), sum(run.jobs for run in missing.values()), time.perf_counter()
        fresh: dict[str, dict[str, Any]] = {}

        def tell() -> None:
            worked, elapsed = sum(row["jobs"] for row in fresh.values()), time.perf_counter() - began
            left_s = elapsed * (work / worked - 1) if worked else None
            if progress is not None:
                progress(SweepProgress(found + len(fresh), total, found, elapsed, left_s))

        tell()
        with closing(execute(list(missing.values()), workers=workers, scheduler=scheduler)) as rows:  # ends the workers, whatever happens
            for row in rows:
                results.add(row)
                fresh[row["key"]] = row
                tell()
        # A row may have been measured under another name of the policy: it gets the name of this sweep.
        table = as_table([{**(fresh.get(run.key) or results[run.key]), "policy": run.policy} for run in runs])
        results.merge(table)
    return table
