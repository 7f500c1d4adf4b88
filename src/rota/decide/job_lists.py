"""The list of the jobs of a type, from old to new, in the arrays of a `State`: a job joins it at the end and leaves it anywhere.

Plain Python: the live scheduler calls these as they are, and the simulator compiles them into its engine.
"""

from __future__ import annotations

from rota.decide.state import State

__all__ = ["link", "link_behind", "unlink"]


def link(state: State, job: int, i: int) -> None:
    """A job joins the end of the list of type i; it waits."""
    last = state.newest[i]
    state.newer[job], state.older[job] = -1, last
    if last >= 0:
        state.newer[last] = job
    else:
        state.oldest[i] = job
    state.newest[i] = job
    if state.first_waiting[i] < 0:
        state.first_waiting[i] = job


def link_behind(state: State, job: int, i: int, before: int) -> None:
    """A job that waits joins the list of type i behind another job that does not run."""
    behind = state.newer[before]
    state.newer[job], state.older[job] = behind, before
    state.newer[before] = job
    if behind >= 0:
        state.older[behind] = job
    else:
        state.newest[i] = job


def unlink(state: State, job: int, i: int) -> None:
    """A job leaves the list of type i, whether it runs or waits."""
    before, behind = state.older[job], state.newer[job]
    if before >= 0:
        state.newer[before] = behind
    else:
        state.oldest[i] = behind
    if behind >= 0:
        state.older[behind] = before
    else:
        state.newest[i] = before
    if state.first_waiting[i] == job:
        state.first_waiting[i] = behind
