"""`rota reproduce`: the figures and tables of the paper, from scratch."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

import rota
from rota.cli.output import ProgressLine, print_json, print_table, remark
from rota.cli.outputs import check_folder
from rota.cli.parameters import Flag, Force, Json, Output, Seed, Workers


def reproduce(
    *figures: str,
    output: Output = Path("reproduced"),
    effort: Literal["full", "fast", "smoke"] = "full",
    fast: Flag = False,
    trace: Path | None = None,
    seed: Seed = 0,
    workers: Workers = None,
    force: Force = False,
    list: Flag = False,
    json: Json = False,
) -> None:
    """Redraws the figures and tables of the paper from scratch.

    Each gets a folder with its data (CSV, parquet), its pictures (SVG, PNG, HTML) and a text: what the paper says, what we got, the
    difference and why. index.html and README.md show all of them. A figure that the folder has already, made with the same options, is not
    made again, unless with --force; interrupted with Ctrl-C, only the current one is lost.

    Parameters
    ----------
    figures
        Their names (see --list), or all; all of them if none is given.
    output
        The folder.
    effort
        How much is computed: full takes a quarter of an hour on two cores, fast a few minutes, smoke some seconds; what smoke draws
        means nothing.
    fast
        The same as --effort fast.
    trace
        For the Borg figure: a trace in place of the made month, a parquet file (from: rota trace import).
    list
        Print the names of the figures, and make none.
    """
    from rota.study.reproduce import EFFORTS, FIGURES, Settings, figures_named

    if list:
        if json:
            print_json({"figures": [{"name": figure.name, "title": figure.title, "place": figure.place} for figure in FIGURES.values()]})
        else:
            print_table("Figures", ["name", "title"], [[figure.name, figure.title] for figure in FIGURES.values()], left=(0, 1))
        return
    if workers is not None and workers < 0:
        raise rota.BadSpec([rota.Problem("--workers", "must be at least 1, or 0 for this process alone", workers)])
    chosen = figures_named(figures)
    check_folder(output)
    from rota.report.reproduced import redraw

    rows = []
    with ProgressLine() as line:
        began = time.perf_counter()
        at = [chosen[0].name]
        settings = Settings(
            EFFORTS["fast" if fast else effort],
            workers,
            seed,
            trace,
            lambda text: line.update(time.perf_counter() - began, f"{at[0]}: {text}"),
        )
        try:
            for k, done in enumerate(redraw(output, chosen, settings, force=force)):
                rows.append(done)
                remark(f"{done.figure.name}: " + (f"found in {output}" if done.found else f"{done.time_s:.1f} s"))
                at[0] = chosen[min(k + 1, len(chosen) - 1)].name
        except KeyboardInterrupt:
            remark(f"{len(rows)} of {len(chosen)} figures are in {output}: the same command continues from there")
            raise
    if json:
        named = [{"name": r.figure.name, "found": r.found, "time_s": r.time_s, "agrees": r.agrees, "findings": r.findings} for r in rows]
        print_json({"output": str(output), "index": str(output / "index.html"), "figures": named})
    else:
        cells = [[r.figure.name, f"{r.agrees} of {r.findings}", "found" if r.found else f"{r.time_s:.1f} s"] for r in rows]
        print_table("Redrawn", ["figure", "agrees with the paper", "time"], cells)
    remark(f"all of it: {output / 'index.html'}")
