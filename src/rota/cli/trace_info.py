"""`rota trace info`: describes a trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import rota
from rota.cli.output import finite, print_json, print_table, remark
from rota.cli.outputs import check_folder, check_output
from rota.cli.parameters import Force, Json
from rota.display import rough_duration

if TYPE_CHECKING:
    from rota.traces.info import TraceInfo


def info(
    file: Path,
    /,
    *,
    types: int = 10,
    batch_gap: float = 0.0,
    pictures: Path | None = None,
    picture_format: Literal["svg", "png", "html"] = "svg",
    force: Force = False,
    json: Json = False,
) -> None:
    """Describes a trace: jobs, types, load, sizes, and how bursty the arrivals are.

    Parameters
    ----------
    file
        The trace, a parquet file (from: rota trace import).
    types
        How many of the most frequent types to list.
    batch_gap
        Count jobs that follow each other within this many seconds as one batch.
    pictures
        Write pictures into this folder: sizes, failure rate, arrivals, index of dispersion, demands.
    picture_format
        The format of the pictures.
    """
    if types < 0 or not batch_gap >= 0:
        wrong = ("--types", types) if types < 0 else ("--batch-gap", batch_gap)
        raise rota.BadSpec([rota.Problem(wrong[0], "must be at least 0", wrong[1])])
    if pictures is not None:
        from rota.traces.pictures import picture_paths

        check_folder(pictures, "--pictures")
        for path in picture_paths(pictures, picture_format):
            check_output(path, force, "--pictures", new_folder=True)
    from rota.traces import open_trace, read_trace
    from rota.traces.detect import detect
    from rota.traces.info import trace_info

    a_log = file.is_file() and detect(file) is not None  # then it is described without an import
    found = trace_info(read_trace(file) if a_log else open_trace(file), batch_gap)
    print_json(as_fields(found, types)) if json else print_info(found, types)
    if pictures is not None:
        from rota.traces.pictures import save_pictures

        remark("written: " + ", ".join(str(path) for path in save_pictures(found, pictures, picture_format)))


def as_fields(found: TraceInfo, types: int) -> dict[str, Any]:
    """The fields of a `TraceInfo` under their Python names, with the first `types` types."""
    return finite({**vars(found), "type_count": found.types.height, "types": found.types.head(types).to_dicts()})


def print_info(found: TraceInfo, types: int) -> None:
    """The tables of `rota trace info`."""
    seconds = f"{found.span:,.0f} s" if found.span >= 1e6 else f"{found.span:,.6g} s"
    kinds = "1 type" if found.types.height == 1 else f"{found.types.height:,} types"
    print(f"{found.jobs:,} jobs in {rough_duration(found.span, 3)} ({seconds}), {kinds}")
    rows = [
        (
            row["name"],
            *(f"{row[f'demand.{name}']:.4g}" for name in found.resources),
            f"{row['jobs']:,}",
            f"{row['rate']:.4g}",
            f"{row['mean_size']:.4g}",
            f"{row['cv']:.3g}",
            f"{row['work_share']:.1%}",
        )
        for row in found.types.head(types).iter_rows(named=True)
    ]
    shown = min(types, found.types.height)
    title = "Types" if shown == found.types.height else f"Types, the {shown} most frequent"
    print_table(title, ["", *found.resources, "jobs", "per s", "mean size", "cv", "work"], rows)
    if found.load is None or found.capacity is None:
        in_use = [(name, f"{amount:.4g}") for name, amount in found.demand_in_use.items()]
        print_table("Resources in use if no job waited (no capacity is known)", ["", "mean"], in_use)
    else:
        loads = zip(found.resources, found.capacity, found.demand_in_use.values(), found.load.values(), strict=True)
        rows = [(name, f"{capacity:g}", f"{amount:.4g}", f"{load:.4g}") for name, capacity, amount, load in loads]
        print_table("Resources in use if no job waited", ["", "capacity", "mean", "load"], rows)
    print_table(
        "Sizes (s)",
        ["mean", "cv", "min", *(f"{100 * q:g}%" for q in found.size_quantiles), "max"],
        [[f"{x:.4g}" for x in (found.size_mean, found.size_cv, found.size_min, *found.size_quantiles.values(), found.size_max)]],
        left=(),
    )
    rates = [(f"{low:,.4g}", f"{high:,.4g}", f"{rate:.3g}") for low, high, rate in found.coarse_failure_rate()]
    print_table("Failure rate of sizes", ["from age (s)", "to", "per s"], rates, left=())
    windows = [rough_duration(width) for width in found.dispersion]
    print_table("Index of dispersion of arrivals", windows, [[f"{x:.4g}" for x in found.dispersion.values()]], left=())
    print(f"\nGaps between arrivals: cv {found.gap_cv:.3g}; {found.zero_gaps:.1%} are 0.")
    seen = f"the batch of a typical job has {found.batch_seen:.4g}"
    print(f"Batches: {found.batches:,}, mean {found.batch_mean:.4g}, largest {found.batch_max:,}; {seen}.")
    c = found.correlation
    print(f"Correlation with the next: gap {c['gap']:.2f}, log size {c['log_size']:.2f}, hourly arrivals {c['hourly_arrivals']:.2f}.")
    print(f"The next job is of the same type: {c['same_type']:.1%}; by chance {c['same_type_by_chance']:.1%}.")
