"""`rota compare`: several policies on the same jobs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import rota
from rota.arguments import whole_file
from rota.cli.one_server import read_server
from rota.cli.output import ProgressLine, finite, print_json, print_table, remark
from rota.cli.outputs import check_output
from rota.cli.parameters import Force, JobCount, Json, Loops, OptionalOutput, Seed, SystemFile, WarmupLoops, WorkloadName
from rota.cli.simulate import progress_text, remark_on_preemption, workload_of
from rota.display import interval_cells, verdict_cells

if TYPE_CHECKING:
    from rota.simulation import SimulationProgress


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
    output: OptionalOutput = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Compares policies on the same jobs, with intervals for the differences that hold for all pairs of policies at once.

    Parameters
    ----------
    policies
        Names ({policies}), policy files (from: rota design -o),
        your own as module:function, or names that are designed for this system first ({designed}).
    output
        Write the table to this file too: .csv, .tex (LaTeX), .parquet or .json, by its extension.
    """
    check_output(output, force)
    if output is not None:
        from rota.report.export import check_table_name

        check_table_name(output, "--output")
    system = read_server(file)
    played, warmup = workload_of(workload, loops, warmup_loops, None)
    began = time.perf_counter()
    with ProgressLine() as line:

        def show(label: str, at: SimulationProgress) -> None:
            line.update(time.perf_counter() - began, f"{label}: {progress_text(at)}", at.compiling)

        found = rota.compare(system, policies, jobs=jobs, seed=seed, workload=played, warmup=warmup, progress=show)
    remark_on_preemption(system, [result.policy for result in found.results])
    table = found.table()
    if output is not None and found.results:
        from rota.report.export import save_table

        with whole_file(output) as place:
            save_table(table, place)
        remark(f"table written to {output}")
    jobs = found.results[0].jobs if found.results else 0
    if json:
        print_json(finite({"jobs": jobs, "seed": seed, "pairs": found.pairs, "policies": table.to_dicts(), "errors": found.errors}))
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
                    f"{row['preemption_rate']:.4g}",
                )
                for row in table.to_dicts()
            ],
        )
        if found.pairs > 1:
            print(f"\n{found.at_once()}")
    for label, message in [*found.errors.items(), *found.remarks]:
        remark(f"{label}: {message}")
    if not found.results:
        raise rota.Infeasible("none of these policies can run on this system")
