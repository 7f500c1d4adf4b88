"""The invariants of a fleet after an event, for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from rota.kernel import large_kernel
from rota.simulation.engine import check_lists
from rota.simulation.fleet.one_server import load
from rota.simulation.fleet.state import (
    ENDS,
    INSIDE,
    TRANSIT_FIRST,
    FleetState,
)
from rota.simulation.server import (
    RUNNING,
    Server,
    heap_base,
)

__all__ = ["check_all"]


@large_kernel
def check_all(fleet: FleetState, state_like: Any, server: Server) -> None:
    """Checks the invariants of all servers after an event; used in tests."""
    inside = 0
    for m in range(fleet.kind.shape[0]):
        state = load(fleet, server, state_like, m)
        if check_lists(state, state.target, server) != server.numbers[RUNNING]:
            raise AssertionError("the heap does not hold the running jobs")
        ending = server.ends[heap_base(server)] if server.numbers[RUNNING] > 0 else np.inf
        if fleet.keys[ENDS, m] != ending:
            raise AssertionError("the next end of a job is not known")
        here = 0
        for k in range(state.target.shape[0]):
            here += state.system[k]
            if fleet.present[m, fleet.types[fleet.kind[m], k]] < state.system[k]:
                raise AssertionError("the dispatcher's count of jobs is wrong")
            job = state.oldest[k]
            while job >= 0:
                if fleet.place[job] != m:
                    raise AssertionError("a job is at another server")
                job = state.newer[job]
        if fleet.total[m] != here + fleet.coming[m] or (here > 0 and fleet.up[m] == 0):
            raise AssertionError("jobs are at a server that has failed, or were not counted")
        inside += here
    held = 0
    for q in range(fleet.held_first.shape[0]):
        job = fleet.held_first[q]
        while job >= 0:
            held += 1
            job = server.jobs[job]["newer"]
    job = fleet.numbers[TRANSIT_FIRST]
    while job >= 0:
        held += 1
        job = server.jobs[job]["newer"]
    counted = 0
    for i in range(fleet.held.shape[0]):
        counted += fleet.held[i]
    if held != counted or inside + held != fleet.numbers[INSIDE]:
        raise AssertionError("a job was lost")
