"""The simulator from a given state: jobs that are here already, some of them in service, and what the policy remembers.

The live scheduler predicts by this when a job will start. The engine and the decision functions are those of every simulation, and already
compiled where a plan was made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rota.arrays import Array, Int
from rota.decide import Decider, State
from rota.model import System
from rota.model.workload import Chunk
from rota.simulation.engine import STARTED
from rota.simulation.run import Run
from rota.simulation.server import BEGUN, NEXT_JOB, RUNNING, STOP, UNUSED, WAKE

__all__ = ["Ahead", "Present"]

_ALL = 2**62
_SERVER = ("clock", "mode", "system", "running", "free", "demand", "capacity", "service_rate", "oldest", "first_waiting", "newest")
_OF_POLICY = ("memory", "counters")
_OF_JOBS = ("newer", "older", "sequence", "finish", "estimate")


@dataclass(frozen=True, eq=False)
class Present:
    """A state to begin in. `ask`: the policy is asked at once; else when something happens, or at `wake`."""

    state: State
    kinds: Int  # (places,) the type of the job at each place, −1 where there is none
    serving: NDArray[np.bool_]  # (places,) whether it is in service
    next_sequence: int
    wake: float
    ask: bool


class Ahead(Run):
    """A simulation that begins in a given state. `remaining` (places,): what each job still needs."""

    def __init__(self, system: System, decider: Decider, present: Present, remaining: Array, seed: np.random.SeedSequence) -> None:
        super().__init__(system, decider, seed, batch_jobs=_ALL, log_jobs=_ALL)
        have, s, now = len(present.kinds), present.state, float(present.state.clock[0])
        self._make_room(have + 1024)
        jobs, server = self._jobs, self.server
        for name in _OF_JOBS:
            jobs[name][:have] = getattr(s, name)
        jobs["kind"][:have], jobs["position"], jobs["arrival"][:have] = present.kinds, -1, now
        jobs["size"][:have] = jobs["remaining"][:have] = np.maximum(remaining, 1e-300)
        self.state = self.state._replace(data=s.data, **{name: getattr(s, name).copy() for name in (*_SERVER, *_OF_POLICY)})

        unused = np.concatenate([np.arange(have, len(jobs)), np.flatnonzero(present.kinds < 0)])
        server.unused[: len(unused)] = unused
        running = np.flatnonzero(present.serving)
        self._put_in_service(running, now + jobs["remaining"][running])
        numbers = server.numbers
        numbers[UNUSED] = len(unused)
        numbers[NEXT_JOB], numbers[BEGUN] = present.next_sequence, not present.ask
        server.times[WAKE] = present.wake
        self.target[:] = s.running

    def go_on(self, chunk: Chunk, until: float) -> Array:
        """Lets the jobs of a chunk arrive, all by `until`, and goes on until then. What happened: (n, 4) time, kind, type, sequence."""
        self.server.times[STOP] = until
        self.feed(chunk, drain=True)
        entries = np.concatenate(self.log) if self.log else np.empty((0, 4))
        self.log.clear()
        return entries

    def ask_again(self, now: float) -> None:
        """Something changed outside the simulation: the policy is asked at this time, before anything else happens."""
        self.state.clock[0] = max(now, self.now)
        self.server.numbers[BEGUN] = 0

    def is_dead(self) -> bool:
        """Whether nothing will happen without an arrival: no job runs, and the policy has no timer."""
        return bool(self.server.numbers[RUNNING] == 0 and self.server.numbers[BEGUN] == 1 and not np.isfinite(self.server.times[WAKE]))

    @staticmethod
    def start_of(entries: Array, sequence: int) -> float | None:
        """When the job of this number started, by what happened."""
        found = entries[(entries[:, 1] == STARTED) & (entries[:, 3] == sequence), 0]
        return float(found[0]) if len(found) else None
