"""`rota warm-up`: compiles ahead, for images, packages and the impatient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from rota.cli.output import ProgressLine, remark

if TYPE_CHECKING:
    from rota.study.warm_up import WarmUpProgress


def warm_up(*, processes: Annotated[int | None, Parameter(alias="-p")] = None) -> None:
    """Compiles ahead what plans, simulations and the scheduler run, so that the first of each need not wait for it.

    The machine code is kept beside Rota's own files if they can be written, for all users of this installation; else in a folder of the
    user, or in NUMBA_CACHE_DIR. What is there already is not compiled again.

    Parameters
    ----------
    processes
        How many processes compile at the same time; one per core if not given.
    """
    from rota.study.warm_up import kept_in, warm_up

    with ProgressLine() as line:

        def show(at: WarmUpProgress) -> None:
            line.update(at.time_s, f"{at.done} of {at.total} parts compiled, the last one {at.part}, {at.time_s:.0f} s")

        warm_up(processes=processes, progress=show)
    remark(f"compiled, and kept in {kept_in()}")
