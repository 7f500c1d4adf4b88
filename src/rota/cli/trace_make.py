"""`rota trace borg` and `rota trace resample`: traces that are made."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rota.cli.output import ProgressLine, remark
from rota.cli.outputs import check_output
from rota.cli.parameters import Force, Seed, TraceFile, TraceOutput

if TYPE_CHECKING:
    from rota.traces.borg import BorgProgress


def borg(
    *,
    output: TraceOutput,
    share: float = 1.0,
    days: float | None = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Makes a month of Borg jobs: ten types, with the published counts, sizes and bursts of the paper's trace.

    Parameters
    ----------
    share
        Keep each job with this probability: 1 is all 68.9 million, 0.0178 brings them to one server at the paper's load 0.9.
    days
        How long; the paper's 31 days if not given.
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
    file: TraceFile,
    /,
    *,
    output: TraceOutput,
    days: float,
    block: float = 21_600.0,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Makes a trace of any length out of blocks of a real one, which keeps its bursts.

    Parameters
    ----------
    days
        How long the new trace is to be.
    block
        The length of a block in seconds: what happens within it stays together.
    """
    check_output(output, force)
    from rota.traces import open_trace, save_trace
    from rota.traces import resample as drawn

    made = drawn(open_trace(file), days=days, block=block, seed=seed)
    save_trace(made, output)
    print(f"{len(made):,} jobs in {made.span:,.0f} s, {len(made.names):,} types")
    remark(f"written to {output}")
