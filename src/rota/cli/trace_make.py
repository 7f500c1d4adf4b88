"""`rota trace borg` and `rota trace resample`: traces that are made."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from rota.cli.output import ProgressLine, check_output, remark

if TYPE_CHECKING:
    from rota.traces.borg import BorgProgress


def borg(
    *,
    output: Annotated[Path, Parameter(alias="-o")],
    share: float = 1.0,
    days: float | None = None,
    seed: int = 0,
    force: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Makes a month of Borg jobs: ten types, with the published counts, sizes and bursts of the paper's trace.

    Parameters
    ----------
    output
        The parquet file to write.
    share
        Each job with this probability: 1 is all 68.9 million, 0.0178 brings them to one server at the paper's load 0.9.
    days
        How long; the paper's 31 days if not given.
    seed
        Another seed makes another month.
    force
        Write over a file that exists.
    """
    check_output(output, force)
    from rota.traces.borg import BORG_DAYS, write_borg_month

    began = time.perf_counter()
    with ProgressLine() as line:

        def show(at: BorgProgress) -> None:
            line.update(time.perf_counter() - began, f"{at.done:,} of {at.jobs:,} jobs")

        made = write_borg_month(output, share=share, days=BORG_DAYS if days is None else days, seed=seed, progress=show)
    print(f"{len(made):,} jobs in {made.span:,.0f} s, {len(made.names)} types")
    remark(f"written to {output}")


def resample(
    file: Path,
    /,
    *,
    output: Annotated[Path, Parameter(alias="-o")],
    days: float,
    block: float = 21_600.0,
    seed: int = 0,
    force: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Makes a trace of any length out of blocks of a real one, which keeps its bursts.

    Parameters
    ----------
    file
        The trace, a parquet file (from: rota trace import).
    output
        The parquet file to write.
    days
        How long the new trace is to be.
    block
        The length of a block in seconds: what happens within it stays together.
    seed
        Another seed draws other blocks.
    force
        Write over a file that exists.
    """
    check_output(output, force)
    from rota.traces import open_trace, save_trace
    from rota.traces import resample as drawn

    made = drawn(open_trace(file), days=days, block=block, seed=seed)
    save_trace(made, output)
    print(f"{len(made):,} jobs in {made.span:,.0f} s, {len(made.names):,} types")
    remark(f"written to {output}")
