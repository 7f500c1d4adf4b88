"""The dispatch rule of a fleet's plan on real nodes: the compiled functions of the simulator, on arrays that show these nodes.

The arrays are those of a simulated fleet (`rota.simulation.fleet.FleetState`). What its engine would count, jobs and free resources, is
copied from the schedulers of the nodes. A server of the plan that the cluster does not have, or that does not work now, is one that has
failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rota.simulation.fleet.build import build
from rota.simulation.fleet.compiled import Asked
from rota.simulation.fleet.policy import FleetPolicy
from rota.simulation.fleet.state import FREE, QUEUE, RUNS, SERVER, SYSTEM, TYPE
from rota.slurm.node_queue import NodeQueue

__all__ = ["FleetRule"]


class FleetRule:
    """Which node a job goes to under the rule of a fleet. `nodes`: the names of those of each kind, in order."""

    def __init__(self, policy: FleetPolicy, nodes: Sequence[Sequence[str]], seed: np.random.SeedSequence) -> None:
        fleet = policy.fleet
        count = np.maximum(fleet.count, [len(names) for names in nodes])
        rule = policy.dispatch.replace(staleness=0.0, cost=0.0)
        self._policy = replace(policy, fleet=fleet.replace(count=count), dispatch=rule)
        self._state = build(self._policy, seed).fleet
        self._asked = Asked(self._state, rule.load())
        first = self._state.first
        self._number = {name: int(first[c]) + k for c, names in enumerate(nodes) for k, name in enumerate(names)}
        self._name = {number: name for name, number in self._number.items()}
        self._queues: Mapping[str, NodeQueue] = {}

    def look(self, queues: Mapping[str, NodeQueue]) -> None:
        """The nodes as they are now; those without a queue do not work."""
        s, self._queues = self._state, queues
        s.up[:] = 0
        s.up[[self._number[name] for name in queues]] = 1
        for c in range(len(s.working)):
            s.working[c] = s.up[s.first[c] : s.first[c + 1]].sum() if (s.local[c] >= 0).any() else 0
        for number in range(len(s.up)):
            self._look_at(number)

    def changed(self, name: str) -> None:
        """Looks at this node again."""
        self._look_at(self._number[name])

    def _look_at(self, m: int) -> None:
        s = self._state
        if s.up[m]:
            queue, row, c = self._queues[self._name[m]], s.rows[m], s.kind[m]
            own = queue.scheduler.state
            _K, R = own.demand.shape
            here = queue.types >= 0
            s.need[c, here, :R], s.capacity[c, :R], s.size[c, :R] = own.demand, own.capacity, own.capacity  # in the scheduler's units
            for place, values in ((SYSTEM, own.system), (RUNS, own.running), (FREE, own.free)):
                row[s.at[place] : s.at[place] + len(values)] = values
            s.present[m, here] = own.system
            s.total[m] = own.system.sum()
        s.asked[SERVER] = m
        self._asked.look()

    def queue_of(self, kind: int) -> int:
        """The queue of a new job: the only one of its type, or one of them at random, by their parts."""
        return self._asked.queue_of(kind)

    def choose(self, kind: int, queue: int) -> str | None:
        """The node that the rule chooses; None if the job has to wait."""
        self._state.asked[TYPE], self._state.asked[QUEUE] = kind, queue
        m = self._asked.choose()
        return None if m < 0 else self._name[m]

    def better(self, kind: int) -> None:
        """A job stays where it was sent, as in the simulator."""
        return

    def hopeless(self, kind: int, queue: int) -> bool:
        """No node that works can run the type, or, for pinned servers, none has a slot for this queue."""
        s = self._state
        kinds = s.queue_kind[queue] == 1
        good = (s.up == 1) & kinds[s.kind] & (s.local[s.kind, kind] >= 0)
        if self._policy.pinned is not None:
            good &= s.slots[:, kind] > 0
        return not good.any()
