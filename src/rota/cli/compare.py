"""`rota compare`: several policies on the same jobs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

import rota
from rota.cli.output import ProgressLine, check_place, finite, print_json, print_table, remark, verdict_cells
from rota.cli.simulate import progress_text, remark_on_preemption, workload_of

if TYPE_CHECKING:
    from rota.simulation import SimulationProgress


def compare(
    file: Path,
    policies: list[str],
    /,
    *,
    jobs: int | None = None,
    seed: int = 0,
    workload: str | None = None,
    loops: int | None = None,
    warmup_loops: int = 0,
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Compares policies on the same jobs, with intervals for the differences.

    Parameters
    ----------
    file
        The system, a TOML file (see: rota schema).
    policies
        Names ({policies}), policy files (from: rota design -o),
        or your own as module:function.
    jobs
        How many jobs arrive: a million, or all of --workload, if not given.
    seed
        The same seed gives the same jobs.
    workload
        The jobs: a trace (from: rota trace import) whose types are the file's, or your own arrivals as module:name. Poisson arrivals and
        the file's sizes if not given.
    loops
        Play the workload so many times over.
    warmup_loops
        Leave out so many of the loops from the start.
    output
        Write the table to this file too: .csv, .tex (LaTeX), .parquet or .json, told by its end.
    json
        Print one JSON object instead of a table.
    """
    if output is not None:
        check_place(output)
        if output.suffix not in (".csv", ".tex", ".parquet", ".json"):
            raise rota.BadSpec([rota.Problem("--output", "must end in .csv, .tex, .parquet or .json", str(output))])
    from rota.policy import as_policy

    system = rota.read_system(file)
    chosen = [as_policy(policy) for policy in policies]
    remark_on_preemption(system, chosen)
    played, warmup = workload_of(workload, loops, warmup_loops, None)
    began = time.perf_counter()
    with ProgressLine() as line:

        def show(label: str, at: SimulationProgress) -> None:
            line.update(time.perf_counter() - began, f"{label}: {progress_text(at)}", at.compiling)

        found = rota.compare(system, chosen, jobs=jobs, seed=seed, workload=played, warmup=warmup, progress=show)
    table = found.table()
    if output is not None and found.results:
        from rota.report.export import save_table

        output.parent.mkdir(parents=True, exist_ok=True)
        save_table(table, output)
        remark(f"table written to {output}")
    jobs = found.results[0].jobs if found.results else 0
    if json:
        print_json(finite({"jobs": jobs, "seed": seed, "policies": table.to_dicts(), "errors": found.errors}))
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
                            f"{row['mean_response_time']:.5g}",
                            f"{row['interval']:.2g}",
                            *(
                                ("–", "")
                                if row["worse_than_best_by"] == 0
                                else (f"{row['worse_than_best_by']:.4g}", f"{row['worse_interval']:.2g}")
                            ),
                            *(f"{row[p]:.4g}" for p in ("p50", "p95", "p99")),
                        )
                    ),
                    f"{row['preemption_rate']:.4g}",
                )
                for row in table.to_dicts()
            ],
        )
    for label, message in [*found.errors.items(), *found.remarks]:
        remark(f"{label}: {message}")
    if not found.results:
        raise rota.Infeasible("none of these policies can run on this system")
