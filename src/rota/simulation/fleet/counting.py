"""Jobs at no server, and the batches of a fleet: integrals over time by kind of server."""

from __future__ import annotations

from typing import Any

from rota.kernel import kernel, large_kernel
from rota.simulation.fleet.state import (
    RUNS,
    SINCE,
    SYSTEM,
    FleetState,
)
from rota.simulation.server import (
    IN_BATCH,
    NEXT_JOB,
    Server,
)
from rota.simulation.tally import BATCH_BEGAN, CLOSED, LIMIT, PRESENT, SERVED, SHIFT
from rota.views import view_at

__all__ = ["close_batch", "count_coming", "count_held", "ends_batch", "flush"]


@kernel
def count_held(fleet: FleetState, i: int, change: int) -> None:
    """Counts jobs of a type that are at no server, and how long."""
    now = fleet.clock[0]
    fleet.held_area[i] += (now - fleet.held_since[i]) * fleet.held[i]
    fleet.held_since[i] = now
    fleet.held[i] += change


@kernel
def count_coming(fleet: FleetState, m: int, i: int, change: int) -> None:
    """Counts a job that is on its way to a server."""
    fleet.coming[m] += change
    fleet.total[m] += change
    fleet.present[m, i] += change


@kernel
def ends_batch(fleet: FleetState, server: Server, tally_like: Any) -> bool:
    """Counts the job that arrived; says whether it is the last of its batch."""
    numbers, tally = server.numbers, view_at(tally_like, fleet.tallies[0])
    if 0 < numbers[NEXT_JOB] <= tally.numbers[LIMIT]:
        numbers[IN_BATCH] += 1
        if numbers[IN_BATCH] == 1 << tally.numbers[SHIFT]:
            numbers[IN_BATCH] = 0
            return True
    return False


@large_kernel
def close_batch(fleet: FleetState, tally_like: Any) -> None:
    """Ends the time of a batch: the integrals of each kind, and of the jobs at no server, go into rows of their own."""
    now, shared = fleet.clock[0], view_at(tally_like, fleet.tallies[0])
    row = shared.numbers[CLOSED]
    flush(fleet, tally_like)
    for c in range(fleet.states.shape[0]):
        tally = view_at(tally_like, fleet.tallies[c])
        for k in range(tally.arrived.shape[0]):
            for what in range(2):
                tally.areas[row, what, k] = tally.area[what, k]
                tally.area[what, k] = 0.0
    for i in range(fleet.held.shape[0]):
        fleet.held_areas[row, i] = fleet.held_area[i]
        fleet.held_area[i] = 0.0
    shared.span[row, 0], shared.span[row, 1] = shared.times[BATCH_BEGAN], now
    shared.times[BATCH_BEGAN] = now
    shared.numbers[CLOSED] = row + 1


@large_kernel
def flush(fleet: FleetState, tally_like: Any) -> None:
    """Adds what the counts have been since they last changed to their time integrals, up to now, on all servers."""
    now = fleet.clock[0]
    system, running, since = fleet.at[SYSTEM], fleet.at[RUNS], fleet.at[SINCE]
    for c in range(fleet.states.shape[0]):
        tally = view_at(tally_like, fleet.tallies[c])
        for m in range(fleet.first[c], fleet.first[c + 1]):
            for k in range(tally.arrived.shape[0]):
                span = now - fleet.row_floats[m, since + k]
                tally.area[PRESENT, k] += span * fleet.rows[m, system + k]
                tally.area[SERVED, k] += span * fleet.rows[m, running + k]
                fleet.row_floats[m, since + k] = now
    for i in range(fleet.held.shape[0]):
        count_held(fleet, i, 0)
