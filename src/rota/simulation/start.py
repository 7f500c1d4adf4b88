"""A state to start a simulation in: jobs that are there at time 0, those of them that run, and the state of the rota."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rota.arguments import whole
from rota.arrays import Array, Int
from rota.capacity import fits
from rota.decide.msr import PLACE
from rota.decide.state import SWITCHING
from rota.display import jobs_together
from rota.errors import BadSpec, Problem
from rota.model import System
from rota.policy import MSR, Policy, policy_name
from rota.process import build_process
from rota.simulation.run import Run
from rota.simulation.workload import what_is_left

__all__ = ["Start", "begin_in", "checked_start"]

Counts = Mapping[str, int] | Sequence[int] | Int


@dataclass(frozen=True)
class Start:
    """Jobs that are there at time 0, by type: a mapping from names to counts, or a count for each type.

    `running`: how many of them run already; if not given, the policy decides at time 0 which start. `state`: that of the modulating
    process of an MSR policy (`rota.build_process`; states 0, 1, … run the candidates in their order), 0 if not given.
    """

    present: Counts
    running: Counts | None = None
    state: int | None = None

    def in_words(self, names: Sequence[str]) -> str:
        """The jobs that are there: `1 × train + 4 × web`."""
        present = self.present
        return jobs_together([present.get(name, 0) for name in names] if isinstance(present, Mapping) else present, names)


def checked_start(system: System, policy: Policy, start: Start | Counts) -> Start:
    """The start with a count for each type, as tuples; raises `BadSpec` unless it is a state that the policy can be in."""
    given = start if isinstance(start, Start) else Start(start)
    place = "present" if isinstance(start, Start) else "start"
    present = _counts(system, place, given.present)
    running = None if given.running is None else _counts(system, "running", given.running)
    state = None if given.state is None else whole("state", given.state, 0)
    if state is not None and not isinstance(policy, MSR):
        raise BadSpec([Problem("state", f"is that of a rota, and {policy_name(policy)} is none: leave it out", state)])
    if running is not None:
        names = [name for name, some, all_ in zip(system.names, running, present, strict=True) if some > all_]
        if names:
            raise BadSpec([Problem("running", f"must not be more than the jobs present, as for {', '.join(map(repr, names))}", running)])
        if not fits(system, running):
            raise BadSpec([Problem("running", "must fit the server together", jobs_together(running, system.names))])
    if isinstance(policy, MSR):
        schedules = build_process(system, policy).schedules
        if state is not None and state >= len(schedules):
            raise BadSpec([Problem("state", f"must be a state of the rota, 0…{len(schedules) - 1}", state)])
        slots = schedules[state or 0]
        if running is not None and not policy.backfill and (np.array(running) > slots).any():
            has = jobs_together(slots, system.names)
            rule = f"must have slots in state {state or 0} of the rota, which has {has}: give the state in which they run, or leave it out"
            raise BadSpec([Problem("running", rule, jobs_together(running, system.names))])
    return Start(present, running, state)


def _counts(system: System, place: str, given: object) -> tuple[int, ...]:
    names = system.names
    if isinstance(given, Mapping):
        if unknown := [name for name in given if name not in names]:
            raise BadSpec([Problem(place, f"no such type (there are: {', '.join(names)})", unknown[0])])
        return tuple(whole(f"{place}.{name}", given.get(name, 0), 0) for name in names)
    values = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != len(names):
        raise BadSpec(
            [Problem(place, f"must be counts by name, as {{{names[0]!r}: 3}}, or a count for each of the {len(names)} types", given)]
        )
    return tuple(whole(f"{place}.{name}", value, 0) for name, value in zip(names, values, strict=True))


def begin_in(run: Run, start: Start, seed: np.random.SeedSequence) -> None:
    """Puts the jobs of a checked start into a run that has not begun. They do not count.

    What is left of a running job is drawn as seen at a random moment. Jobs that wait are in a random order.
    """
    system, draw = run.system, np.random.default_rng(seed)
    present: Int = np.array(start.present, dtype=np.int64)
    running: Int = np.array(start.running or np.zeros_like(present), dtype=np.int64)
    types = np.arange(len(present))
    kinds = np.concatenate([np.repeat(types, running), draw.permutation(np.repeat(types, present - running))])
    sizes: Array = np.empty(len(kinds))
    for i, size in enumerate(system.sizes):
        of_type = np.flatnonzero(kinds == i)
        sizes[of_type[: running[i]]] = what_is_left(size, draw, int(running[i]))
        sizes[of_type[running[i] :]] = size.sample(draw, int(present[i] - running[i]))
    if start.state is not None:
        run.state.counters[PLACE] = start.state
        run.state.mode[SWITCHING] = not run.state.data.working[start.state]
    run.begin_in(kinds, sizes, running)
