"""`rota compare`: several policies on the same jobs."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

import rota
from rota.arguments import whole_file
from rota.cli.output import ProgressLine, finite, print_json, print_table, remark
from rota.cli.outputs import check_output
from rota.cli.parameters import (
    Flag,
    Force,
    JobCount,
    Json,
    Loops,
    OptionalOutput,
    Part,
    Seed,
    Staleness,
    SystemFile,
    WarmupLoops,
    WorkloadName,
)
from rota.cli.simulate import progress_text, remark_on_preemption, workload_of
from rota.display import interval_cells, number, per_cent, verdict_cells

if TYPE_CHECKING:
    from rota.model import Workload
    from rota.simulation import SimulationProgress
    from rota.simulation.best import Contender, RaceProgress


def compare(
    file: SystemFile,
    policies: list[str],
    /,
    *,
    jobs: JobCount = None,
    seed: Seed = 0,
    workload: WorkloadName = None,
    loops: Loops = None,
    warmup_loops: WarmupLoops = 0,
    until: Part = None,
    actual: Flag = False,
    output: OptionalOutput = None,
    force: Force = False,
    dispatch: Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")] = None,
    staleness: Staleness = None,
    json: Json = False,
) -> None:
    """Compares policies on the same jobs, with intervals for the differences that hold for all pairs of policies at once.

    Parameters
    ----------
    policies
        Names ({policies}), policy files (from: rota design -o),
        your own as module:function, or names that are designed for this system first ({designed}).
        Of a fleet also: pinned, partly-pinned or split, servers that are designed for it.
    until
        Find the best only, with as few jobs as that takes: policies that are clearly worse get fewer, and those whose mean is this near to
        that of the best (1% or 0.01) are as good. --jobs is then the most of each.
    actual
        Add what really happened to the jobs of --workload, where its log says when they started and ended.
    output
        Write the table to this file too: .csv, .tex (LaTeX), .parquet or .json, by its extension.
    dispatch
        Of a fleet: which server a job goes to, one rule or more ({dispatch}),
        or your own as module:function; every policy is simulated with every rule. The file's rule if not given, else jsq.
    """
    check_output(output, force)
    if output is not None:
        from rota.report.export import check_table_name

        check_table_name(output, "--output")
    system = rota.read_system(file)
    fleet = isinstance(system, rota.Fleet)
    if not fleet and (dispatch is not None or staleness is not None):
        raise rota.BadSpec([rota.Problem("--dispatch", "and --staleness are for a fleet: this file has one [server]")])
    played, warmup = workload_of(workload, loops, warmup_loops, None)
    if until is not None:
        if output is not None or actual:
            other = "--output" if output is not None else "--actual"
            raise rota.BadSpec([rota.Problem("--until", f"does not go with {other}: the policies have different numbers of jobs")])
        _find_best(system, policies, until, jobs, seed, played, warmup, dispatch, staleness or 0.0, json)
        return
    began = time.perf_counter()
    with ProgressLine() as line:

        def show(label: str, at: SimulationProgress) -> None:
            line.update(time.perf_counter() - began, f"{label}: {progress_text(at)}", at.compiling)

        found = rota.compare(
            system,
            policies,
            jobs=jobs,
            seed=seed,
            workload=played,
            warmup=warmup,
            actual=actual,
            progress=show,
            dispatch=dispatch,
            staleness=staleness or 0.0,
        )
    remark_on_preemption(system, [result.policy for result in found.results])
    table = found.table()
    if output is not None and found.results:
        from rota.report.export import save_table

        with whole_file(output) as place:
            save_table(table, place)
        remark(f"table written to {output}")
    jobs = found.results[0].jobs if found.results else 0
    if json:
        happened = {} if found.actual is None else {"actual": _happened(found.actual, system)}
        about = {"jobs": jobs, "seed": seed, "pairs": found.pairs, "policies": table.to_dicts(), "errors": found.errors}
        print_json(finite(about | happened))
    else:
        print(f"{jobs:,} jobs each, the same for all, seed {seed}")
        print_table(
            "Response time",
            ["policy", "mean", "±", "worse than the best by", "±", "50%", "95%", "99%", "preemptions"],
            [
                (
                    row["policy"],
                    *(
                        verdict_cells(row, 7)
                        or (
                            *interval_cells(row["mean_response_time"], row["interval"]),
                            *(
                                ("–", "")
                                if row["worse_than_best_by"] == 0
                                else interval_cells(row["worse_than_best_by"], row["worse_interval"], 4)
                            ),
                            *(f"{row[p]:.4g}" for p in ("p50", "p95", "p99")),
                        )
                    ),
                    "" if math.isnan(row["preemption_rate"]) else f"{row['preemption_rate']:.4g}",
                )
                for row in table.to_dicts()
            ],
        )
        if found.actual is not None:
            _print_by_type(found, found.actual, system)
        if found.pairs > 1:
            print(f"\n{found.at_once()}")
    for label, message in [*found.errors.items(), *found.remarks]:
        remark(f"{label}: {message}")
    if not found.results:
        raise rota.Infeasible("none of these policies can run on this system")


def _happened(actual: rota.Actual, system: rota.System | rota.Fleet) -> dict[str, object]:
    """What the log says, as plain data: by type under the type's name."""
    levels = actual.type_waiting_time_quantiles
    return {
        "jobs": actual.jobs,
        "missing": actual.missing,
        "mean_waiting_time": actual.mean_waiting_time,
        "waiting_time_quantiles": {f"p{100 * p:g}": value for p, value in actual.waiting_time_quantiles.items()},
        "types": {
            name: {
                "jobs": actual.counted[i],
                "mean_response_time": actual.response_time[i],
                "mean_waiting_time": actual.waiting_time[i],
                **{f"response_p{100 * p:g}": actual.type_response_time_quantiles[p][i] for p in levels},
                **{f"waiting_p{100 * p:g}": levels[p][i] for p in levels},
            }
            for i, name in enumerate(system.names)
        },
        "utilization": dict(zip(system.resources, actual.utilization.tolist(), strict=True)),
        "peak": dict(zip(system.resources, actual.peak.tolist(), strict=True)),
        "notes": actual.notes,
    }


def _print_by_type(found: rota.Comparison, actual: rota.Actual, system: rota.System | rota.Fleet) -> None:
    """Waiting and response times of the most frequent types, under each policy and as it was; and what was in use."""
    shown = sorted(range(len(system.names)), key=lambda i: -int(actual.counted[i]))[:_TYPES_SHOWN]
    measured: list[tuple[str, rota.Result | rota.Actual]] = [
        *((label, one) for label, one in zip(found.labels, found.results, strict=True) if one.stable),
        ("actual", actual),
    ]
    labels = [label for label, _ in measured]
    for title, times in (
        ("Mean waiting time by type", [one.waiting_time for _, one in measured]),
        ("Mean response time by type", [one.response_time for _, one in measured]),
    ):
        rows = [(system.names[i], f"{actual.counted[i]:,}", *(number(of_type[i], 4) for of_type in times)) for i in shown]
        print_table(title, ["", "jobs", *labels], rows)
    if len(shown) < len(system.names):
        print(f"  … and {len(system.names) - len(shown):,} types with fewer jobs (--json has them)")
    rows = [(name, *(per_cent(one.utilization[r]) for _, one in measured)) for r, name in enumerate(system.resources)]
    print_table("In use", ["", *labels], rows)


def _find_best(
    system: rota.System | rota.Fleet,
    policies: list[str],
    until: float,
    jobs: int | None,
    seed: int,
    workload: Workload | None,
    warmup: float | None,
    dispatch: list[str] | None,
    staleness: float,
    json: bool,
) -> None:
    """Which policy is best, and no more."""
    with ProgressLine() as line:

        def show(at: RaceProgress) -> None:
            line.update(at.time_s, f"{at.left} policies left, {at.jobs:,} jobs each")

        found = rota.find_best(
            system,
            policies,
            until=until,
            jobs=jobs,
            seed=seed,
            workload=workload,
            warmup=warmup,
            progress=show,
            dispatch=dispatch,
            staleness=staleness,
        )
    remark_on_preemption(system, [one.policy for one in found.contenders])
    rows = [
        {
            "policy": one.label,
            "verdict": one.verdict,
            "jobs": one.result.jobs,
            "mean_response_time": one.result.mean_response_time,
            "interval": one.result.interval,
            "worse_by": one.worse_by.mean,
            "worse_interval": one.worse_by.interval,
            "than": one.than,
        }
        for one in found.contenders
    ]
    if json:
        about = {"seed": seed, "until": until, "decided": found.decided, "rounds": found.rounds, "simulated": found.simulated}
        print_json(finite(about | {"policies": rows, "errors": found.errors}))
    else:
        print_table(
            "Response time",
            ["policy", "", "jobs", "mean", "±", "worse by", "±", "than"],
            [
                (
                    one.label,
                    _IN_WORDS[one.verdict],
                    f"{one.result.jobs:,}",
                    *interval_cells(one.result.mean_response_time, one.result.interval),
                    *(("–", "") if not one.than else interval_cells(one.worse_by.mean, one.worse_by.interval, 4)),
                    one.than,
                )
                for one in found.contenders
            ],
        )
        if found.winner is not None:
            print(f"\n{_conclusion(found, found.winner)}")
    for label, message in found.errors.items():
        remark(f"{label}: {message}")
    if found.winner is None:
        raise rota.Unstable(found.no_winner())


_TYPES_SHOWN = 10
_IN_WORDS = {"best": "best", "level": "as good", "open": "not known", "worse": "worse", "growing": "the queue grows"}


def _conclusion(found: rota.Best, best: Contender) -> str:
    """What was found, in a sentence."""
    if not found.decided:
        return f"Not decided at 95 % within {best.result.jobs:,} jobs each."
    others = sum(one.verdict == "level" for one in found.contenders)
    level = f", {others} of the others within {found.until:.2%} of its mean" if others else ""
    return f"{best.label} is best{level}, at 95 %; {found.simulated:,} jobs were simulated in all."
