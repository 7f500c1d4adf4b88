"""`rota sweep`: policies over a grid of loads and rates, each run once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rota
from rota.cli.output import ProgressLine, finite, print_json, print_table, remark
from rota.cli.outputs import check_output
from rota.cli.parameters import Force, Json, Output, SystemFile, Workers, WorkloadName
from rota.display import interval_cells, rough_duration, verdict_cells

if TYPE_CHECKING:
    from rota.study import SweepProgress


def sweep(
    file: SystemFile,
    /,
    *,
    policies: str,
    output: Output,
    loads: str | None = None,
    switching_rates: str | None = None,
    setup_rates: str | None = None,
    jobs: str | None = None,
    seeds: int = 3,
    workload: WorkloadName = None,
    dispatch: str | None = None,
    workers: Workers = None,
    scheduler: str | None = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Simulates policies over a grid of loads, switching rates, setup rates and seeds.

    Each run is a row of the output file, and no run is done twice: after Ctrl-C or a crash, the same command continues where
    it stopped. Numbers are given as 0.5,0.7 or as ranges: 0.1:0.9:0.1 in steps, 0.01:100:x10 by a factor.

    Parameters
    ----------
    policies
        With commas between them: names ({policies}), policy files
        (from: rota design -o), your own as module:function, or names of which each is designed for each point of the grid
        ({designed}). Of a fleet also: pinned, partly-pinned or split, servers that are designed for each load.
    output
        The results, a parquet file. Runs that it holds are not repeated, unless with --force; rows of other grids stay in it.
    loads
        System loads; the one of the file if not given. A trace as --workload comes faster or slower.
    switching_rates
        For policies that switch; the best one for each load if not given.
    setup_rates
        For sMSR; 1 / setup_time of the file if not given.
    jobs
        How many jobs arrive in a run: a million, or all of --workload, if not given.
    seeds
        How many seeds: 0, 1, 2, … The same seed gives the same jobs to every policy.
    dispatch
        Of a fleet: which server a job goes to, with commas between rules ({dispatch}), or your own as module:function; every policy is
        simulated with every rule. The file's rule if not given, else jsq.
    scheduler
        The address of a Dask scheduler, as tcp://10.0.0.1:8786, to run on its workers instead.
    """
    from rota.study import numbers, over_seeds
    from rota.study import sweep as run_sweep
    from rota.study.results import is_results_file

    check_output(output, force or is_results_file(output))
    system = rota.read_system(file)
    if dispatch is not None and not isinstance(system, rota.Fleet):
        raise rota.BadSpec([rota.Problem("--dispatch", "is for a fleet: this file has one [server]")])

    with ProgressLine() as line:

        def show(at: SweepProgress) -> None:
            if at.left_s is not None:
                line.update(at.time_s, f"{at.done} of {at.total} runs done, {rough_duration(round(at.left_s))} left")
            elif at.found:
                remark(f"{at.found} of {at.total} runs found in {output}")

        try:
            results = run_sweep(
                system,
                policies.split(","),
                dispatch=None if dispatch is None else dispatch.split(","),
                loads=None if loads is None else numbers(loads, "--loads"),
                switching_rates=None if switching_rates is None else numbers(switching_rates, "--switching-rates"),
                setup_rates=None if setup_rates is None else numbers(setup_rates, "--setup-rates"),
                jobs=None if jobs is None else numbers(jobs, "--jobs"),
                workload=workload,
                seeds=seeds,
                output=output,
                anew=force,
                workers=workers,
                scheduler=scheduler,
                progress=show,
            )
        except KeyboardInterrupt:
            remark("finished runs are kept: the same command continues from there")
            raise
    cases = over_seeds(results).to_dicts()
    if json:
        print_json(finite({"output": str(output), "runs": len(results), "cases": cases}))
    else:
        _print_cases(cases)
    for (policy, error), places in _errors(cases).items():
        remark(f"{policy} at load {', '.join(places)}: {error}")
    remark(f"{len(results)} runs in {output}")
    failures = results.filter(results["outcome"] == "failed")
    if len(failures):
        raise rota.RotaError(f"{len(failures)} of {len(results)} runs failed: the same command tries them again")
    if not any(case["runs"] for case in cases):
        raise rota.Infeasible("none of these policies can run on this system")


def _print_cases(cases: list[dict[str, Any]]) -> None:
    """A table with a row per case; columns that say nothing are left out."""
    optional = {"switching_rate": "switching rate", "setup_rate": "setup rate"}
    shown = [name for name in optional if any(case[name] is not None for case in cases)]
    many_jobs = len({case["jobs"] for case in cases}) > 1
    rows = []
    for case in cases:
        where = [case["policy"], f"{case['load']:.4g}", *("" if case[name] is None else f"{case[name]:.4g}" for name in shown)]
        where += [f"{case['jobs']:,}"] if many_jobs else []
        if not case["runs"]:
            what = ["cannot run", "", "", "", ""]
        else:
            what = list(verdict_cells(case, 5)) or [
                *interval_cells(case["mean_response_time"], case["interval"]),
                *(f"{case[p]:.4g}" for p in ("p50", "p95", "p99")),
            ]
        rows.append([*where, str(case["runs"]), *what, "" if case["preemption_rate"] is None else f"{case['preemption_rate']:.4g}"])
    head = ["policy", "load", *(optional[name] for name in shown), *(["jobs"] if many_jobs else [])]
    print_table("Response time", [*head, "runs", "mean", "±", "50%", "95%", "99%", "preemptions"], rows)


def _errors(cases: list[dict[str, Any]]) -> dict[tuple[str, str], list[str]]:
    """What went wrong with which policy, each once, and where."""
    found: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        if case["error"] is not None:
            rate = case["switching_rate"]
            where = f"{case['load']:.4g}" + ("" if rate is None else f" with switching rate {rate:.4g}")
            found.setdefault((case["policy"], case["error"]), []).append(where)
    return found
