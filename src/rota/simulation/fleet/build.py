"""The arrays of a fleet at the start of a run: the row of every server, the states of the kinds, queues, and how much memory that takes."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from rota.arrays import Array, Int
from rota.capacity import integer_units, largest_counts
from rota.decide import Decider, State, new_state, seeded
from rota.errors import Infeasible
from rota.model import System
from rota.simulation.fleet.policy import FleetPolicy
from rota.simulation.fleet.state import (
    ANY_SERVER,
    BY_SLOT,
    CAME,
    CENTRAL,
    CHOICES,
    DELAY,
    FIRST_QUEUE,
    FREE,
    LINE,
    LINES,
    LINES_PER_JOB,
    MODE,
    NEXT_LOOK,
    OLDEST,
    OWN,
    PERIOD,
    RUNS,
    SERVER_LINE,
    SINCE,
    SYSTEM,
    TRANSIT_FIRST,
    TRANSIT_LAST,
    FleetState,
    in_lines,
)
from rota.simulation.fleet.tournament import new_tournaments

__all__ = ["Built", "build", "memory_needed"]

_NUMBERS, _TIMES, _OWN = 9, 4, 64  # lengths of `FleetState.numbers` and `times`; numbers that a rule of your own may keep
_NOTHING = 1e-12  # a smaller part of a type is rounding
_PART_OF_MEMORY = 0.5  # of the machine's, that a fleet may take


class Layout(NamedTuple):
    """Where the parts of a row begin, and its length. What is looked at when a batch is closed stands together."""

    system: int
    running: int
    since: int
    free: int
    oldest: int
    first_waiting: int
    newest: int
    target: int
    mode: int
    random: int
    memory: int
    counters: int
    length: int


class Built(NamedTuple):
    """The state of a fleet, and for each kind the state that shows the server at hand, with its target and `since` of the tally."""

    fleet: FleetState
    states: list[State]
    targets: list[Int]
    since: list[Array]


def _layout(K: int, R: int, deciders: list[Decider | None]) -> Layout:
    memory = max((decider.memory for decider in deciders if decider is not None), default=0)
    counters = max((decider.counters for decider in deciders if decider is not None), default=0)
    lengths = [K, K, K, R, K, K, K, K, 2, 4, max(memory, 1), max(counters, 1)]
    ends = np.cumsum(lengths).tolist()
    length = -(-ends[-1] // 8) * 8  # whole cache lines
    return Layout._make([0, *ends[:-1], length])


def memory_needed(policy: FleetPolicy, layout: Layout) -> int:
    """Bytes that the servers take, without jobs."""
    K, queues = len(policy.fleet.names), _queues(policy)[0]
    trees = FIRST_QUEUE + (len(queues) if policy.dispatch.load().look is not None else 0)
    pinned = K if policy.pinned is not None else 0
    return policy.fleet.servers * 8 * (layout.length + K + pinned + 8 + 4 * trees)


def check_memory(policy: FleetPolicy, layout: Layout) -> None:
    """Raises `Infeasible` if the servers take more memory than there is."""
    need = memory_needed(policy, layout)
    have = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if need > _PART_OF_MEMORY * have:
        raise Infeasible(
            f"{policy.fleet.servers:,} servers take about {need / 1e9:.1f} GB of memory in a simulation, and this machine has "
            f"{have / 1e9:.1f} GB: simulate a smaller part of the fleet, with fleet.replace(count=…) and as much less of the arrivals"
        )


def build(policy: FleetPolicy, seed: np.random.SeedSequence) -> Built:
    """The arrays of a fleet without jobs. Server 0 has the random stream that a server by itself has with this seed."""
    fleet, deciders = policy.fleet, policy.deciders()
    C, K, R, M = len(fleet.kinds), len(fleet.names), len(fleet.resources), fleet.servers
    at = _layout(K, R, deciders)
    check_memory(policy, at)
    streams, dispatcher, failing = seed.spawn(3)
    first = np.concatenate([[0], np.cumsum(fleet.count)]).astype(np.int64)
    current = np.zeros((C, at.length), dtype=np.int64)
    rows = in_lines((M, at.length), np.dtype(np.int64))
    clock = np.zeros(1)
    need, capacity = np.zeros((C, K, R), dtype=np.int64), np.zeros((C, R), dtype=np.int64)
    size = np.zeros((C, R))
    local = np.full((C, K), -1, dtype=np.int64)
    types = np.full((C, K), -1, dtype=np.int64)
    run_time, share = np.full((C, K), np.inf), np.zeros((C, K))
    states, targets, since = [], [], []
    for c, (system, decider) in enumerate(zip(policy.systems, deciders, strict=True)):
        if system is None or decider is None:  # no job comes here, and no policy is asked
            system, decider = next(s for s in policy.systems if s is not None), _NO_POLICY
            here = np.zeros(0, dtype=np.int64)
        else:
            here = np.flatnonzero(fleet.runs[c])
        state, target, begun = _shown(new_state(system, decider, seeded(seed)), current[c], at, clock)
        states.append(state)
        targets.append(target[: len(here)])
        since.append(begun[: len(here)])
        rows[first[c] : first[c + 1]] = current[c]
        if len(here):
            units = integer_units(system)
            k, r = units.demand.shape
            need[c, here, :r], capacity[c, :r], size[c, :r] = units.demand, units.capacity, system.capacity * units.per_unit
            local[c, here], types[c, : len(here)] = np.arange(k), here
            run_time[c, here] = 1 / system.service_rate
            share[c, here] = (system.demand / system.capacity).max(axis=1)
    words = streams.generate_state(4 * M, np.uint64).reshape(M, 4)
    words[0] = seeded(seed)
    rows[:, at.random : at.random + 4] = words.view(np.int64)
    return Built(
        _fleet_state(policy, at, rows, current, first, clock, need, capacity, size, local, types, run_time, share, dispatcher, failing),
        states,
        targets,
        since,
    )


def most_at_once(system: System) -> int:
    """A bound on the jobs that run on a server at a time: if each took the least that any type takes of a resource."""
    units = integer_units(system)
    by_resource = [int(have // need) for have, need in zip(units.capacity, units.demand.min(axis=0), strict=True) if need > 0]
    return min([int(np.sum(largest_counts(system))), *by_resource])


def _never(state: State, target: Int) -> float:
    return np.inf


_NO_POLICY = Decider("none", _never, 0, 1, 1)


def _shown(state: State, current: Int, at: Layout, clock: Array) -> tuple[State, Int, Array]:
    """A state whose arrays are parts of the row at hand, with the same values; its target, and `since` of its tally."""
    K = len(state.system)
    floats, words = current.view(np.float64), current.view(np.uint64)
    names = ("system", "running", "free", "oldest", "first_waiting", "newest", "mode", "counters")
    shown: dict[str, Any] = {}
    for name in names:
        old = getattr(state, name)
        shown[name] = current[getattr(at, name) : getattr(at, name) + len(old)]
        shown[name][:] = old
    own = floats[at.memory : at.memory + len(state.memory)]
    random = words[at.random : at.random + 4]
    new = state._replace(clock=clock, memory=own, random=random, **shown)
    return new, current[at.target : at.target + K], floats[at.since : at.since + K]


def _queues(policy: FleetPolicy) -> tuple[list[tuple[int, tuple[int, ...], float]], list[int]]:
    """The queues (type, kinds, part of the type) in order of their types, and where those of each type begin."""
    fleet, runs = policy.fleet, policy.runs
    found: list[tuple[int, tuple[int, ...], float]] = []
    begins = [0]
    pinned = () if policy.pinned is None else policy.pinned.queues(fleet)
    for i in range(len(fleet.names)):
        turns = np.zeros(0) if policy.turns is None else policy.turns[:, i]
        rest = 1.0 - float(turns.sum())
        own = [(i, queue.kinds, queue.share * rest) for queue in pinned if queue.type == i and queue.share * rest > _NOTHING]
        own += [(i, (int(c),), float(turns[c])) for c in np.flatnonzero(turns)]
        found += own or [(i, tuple(np.flatnonzero(runs[:, i]).tolist()), 1.0)]
        begins.append(len(found))
    return found, begins


def _fleet_state(
    policy: FleetPolicy,
    at: Layout,
    rows: Int,
    current: Int,
    first: Int,
    clock: Array,
    need: Int,
    capacity: Int,
    size: Array,
    local: Int,
    types: Int,
    run_time: Array,
    share: Array,
    dispatcher: np.random.SeedSequence,
    failing: np.random.SeedSequence,
) -> FleetState:
    fleet, rule = policy.fleet, policy.dispatch
    C, K, M = len(fleet.kinds), len(fleet.names), fleet.servers
    found, begins = _queues(policy)
    Q = len(found)
    queue_kind = np.zeros((Q, C), dtype=np.int64)
    for q, (i, kinds, _) in enumerate(found):
        turns = policy.turns is not None and len(kinds) == 1 and policy.turns[kinds[0], i] > 0
        queue_kind[q, list(kinds)] = ANY_SERVER if turns else BY_SLOT
    parts_of = [np.cumsum([part for _, _, part in found[a:b]]) for a, b in pairwise(begins)]
    looks, central = rule.load().look is not None, rule.record.central
    keys, winners, levels = new_tournaments(FIRST_QUEUE + (Q if looks else 0), M)
    numbers = np.zeros(_NUMBERS, dtype=np.int64)
    numbers[CENTRAL], numbers[CHOICES], numbers[TRANSIT_FIRST], numbers[TRANSIT_LAST] = central, rule.d or 0, -1, -1
    places = [0 if system is None else most_at_once(system) for system in policy.systems]
    heap_size = np.array([-(-most // LINE) * LINE for most in places], dtype=np.int64)  # each in cache lines of its own
    heap_first = np.cumsum(heap_size * fleet.count) - heap_size * fleet.count
    most = max(places)
    fails = bool(np.isfinite(policy.failures[:, 0]).any())
    numbers[CAME] = 0 if fails or central else -1
    numbers[LINES], numbers[LINES_PER_JOB] = (most + K) * (2 * most + 2) + 4, 2 * most + 4 if fails else 4
    times = np.zeros(_TIMES)
    times[PERIOD], times[NEXT_LOOK], times[DELAY] = rule.staleness, rule.staleness or np.inf, rule.cost
    part_at = {SYSTEM: at.system, RUNS: at.running, FREE: at.free, OLDEST: at.oldest, MODE: at.mode, SINCE: at.since, OWN: at.memory}
    offsets = np.array([part_at[part] for part in range(len(part_at))], dtype=np.int64)
    parts = np.zeros((K, C)) if policy.split is None else np.cumsum(np.ascontiguousarray((policy.split * (local >= 0)).T), axis=1)
    parts /= np.maximum(parts[:, -1:], 1e-300)
    working = np.where((local >= 0).any(axis=1), fleet.count, 0)

    servers = in_lines((M,), SERVER_LINE)
    servers["kind"], servers["up"] = np.repeat(np.arange(C), fleet.count), 1
    servers["wake"] = servers["switch_time"] = np.inf

    def zeros(*shape: int) -> Int:
        return np.zeros(shape, dtype=np.int64)

    return FleetState(
        clock=clock,
        asked=zeros(3),
        kind=servers["kind"],
        first=first,
        up=servers["up"],
        working=working.astype(np.int64),
        present=zeros(M, K),
        total=servers["total"],
        coming=servers["coming"],
        local=local,
        types=types,
        need=need,
        capacity=capacity,
        size=size,
        run_time=run_time,
        share=share,
        speed=np.array(fleet.speed),
        parts=parts,
        turn=zeros(K),
        slots=policy.slots(),
        queue_type=np.array([i for i, _, _ in found], dtype=np.int64),
        first_queue=np.array(begins, dtype=np.int64),
        queue_part=np.concatenate(parts_of) if parts_of else np.zeros(0),
        queue_kind=queue_kind,
        keys=keys,
        winners=winners,
        levels=levels,
        numbers=numbers,
        times=times,
        random=seeded(dispatcher),
        memory=np.zeros(_OWN),
        counters=zeros(_OWN),
        at=offsets,
        rows=rows,
        row_floats=rows.view(np.float64),
        current=current,
        states=zeros(C),
        tallies=zeros(C),
        in_service=servers["in_service"],
        heap_first=heap_first,
        heap_size=heap_size,
        wake=servers["wake"],
        last_event=servers["last_event"],
        switch_time=servers["switch_time"],
        mean_time=np.array(policy.failures),
        fails=seeded(failing),
        stale=zeros(M),
        is_stale=zeros(M),
        arrived=zeros(K),
        held=zeros(K),
        held_since=np.zeros(K),
        held_area=np.zeros(K),
        held_areas=np.zeros((0, K)),
        held_first=np.full(Q, -1, dtype=np.int64),
        held_last=np.full(Q, -1, dtype=np.int64),
        place=zeros(0),
        order=zeros(0),
        log_place=zeros(0),
    )
