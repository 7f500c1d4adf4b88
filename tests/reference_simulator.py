"""A slow simulator in plain Python, with every policy written from its definition: what the compiled engine is compared with.

A policy here looks at all jobs present and names the jobs that run next. Sums are exact fractions, nothing is remembered that can be
counted anew. Random policies draw from the same stream, in the order that `rota.decide` documents, so that logs can agree to the last bit.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

import rota
from rota.decide import decider_of, exponential, seeded, uniform
from rota.decide.improved import states_of
from rota.model.workload import Chunk
from rota.simulation.run import Run
from systems import decimal as exactly
from systems import reference_schedules

ARRIVE, START, PREEMPT, FINISH = 0, 1, 2, 3
decimal = functools.cache(exactly)
Entry = tuple[float, int, int, int]  # time, kind of event, type, job


@dataclass(eq=False)
class Job:
    """A job that is present; `end` counts while it runs, `remaining` while it does not."""

    number: int
    kind: int
    size: float
    estimate: float
    remaining: float
    running: bool = False
    started: float = math.nan
    end: float = math.inf


@dataclass(frozen=True)
class Given:
    """Jobs to simulate, in order of arrival: (time, type, size, estimate)."""

    jobs: tuple[tuple[float, int, float, float], ...]

    def columns(self) -> tuple[np.ndarray, ...]:
        """Times, types, sizes and estimates as arrays."""
        times, kinds, sizes, estimates = zip(*self.jobs, strict=True)
        return np.array(times, dtype=float), np.array(kinds, dtype=np.int64), np.array(sizes, dtype=float), np.array(estimates, dtype=float)


@dataclass
class View:
    """What a policy sees: the time, what happened, and the jobs present from old to new."""

    system: rota.System
    now: float
    event: str  # "start", "arrival", "completion" or "timer"
    kind: int  # the type of the job that came or went
    jobs: list[Job]

    @property
    def running(self) -> list[Job]:
        """The jobs in service, from old to new."""
        return [job for job in self.jobs if job.running]

    @property
    def waiting(self) -> list[Job]:
        """The jobs that wait, from old to new."""
        return [job for job in self.jobs if not job.running]

    def present(self) -> list[int]:
        """Q: jobs of each type."""
        return counts(self.system, self.jobs)

    def oldest(self, numbers: Sequence[int]) -> list[Job]:
        """The oldest so many jobs of each type."""
        return [job for i, n in enumerate(numbers) for job in [job for job in self.jobs if job.kind == i][:n]]


def counts(system: rota.System, jobs: Iterable[Job]) -> list[int]:
    """How many of the jobs are of each type."""
    numbers = [0] * len(system.names)
    for job in jobs:
        numbers[job.kind] += 1
    return numbers


def used(system: rota.System, jobs: Iterable[Job]) -> list[Fraction]:
    """What the jobs hold of each resource."""
    jobs = list(jobs)
    return [sum((decimal(system.demand[job.kind, r]) for job in jobs), Fraction(0)) for r in range(len(system.capacity))]


def fit(system: rota.System, jobs: Iterable[Job], held: Sequence[int] | None = None) -> bool:
    """Whether jobs fit the server together, beside `held` setups of each type."""
    needs = used(system, jobs)
    if held is not None:
        needs = [need + sum(n * decimal(d) for n, d in zip(held, system.demand[:, r], strict=True)) for r, need in enumerate(needs)]
    return all(need <= decimal(have) for need, have in zip(needs, system.capacity, strict=True))


Decision = tuple[list[Job], float]
Decide = Callable[[View], Decision]


def simulate(system: rota.System, decide: Decide, given: Given, guide: Sequence[Entry] = ()) -> list[Entry]:
    """The log of a policy on given jobs, until none is left.

    Of events at one time, completions come first, then the policy's timer, then arrivals. Which of several completions at one time is
    first is free: the `guide` (the log to compare with) says.
    """
    log: list[Entry] = []
    present: list[Job] = []
    coming = list(enumerate(given.jobs))
    now, event, kind = 0.0, "start", 0
    while True:
        chosen, timer = decide(View(system, now, event, kind, list(present)))
        assert len(set(map(id, chosen))) == len(chosen)
        assert fit(system, chosen)
        for i in range(len(system.names)):  # the youngest yield first
            for job in reversed([job for job in present if job.kind == i and job.running and job not in chosen]):
                job.running, job.remaining = False, max(job.end - now, 0.0)
                log.append((now, PREEMPT, i, job.number))
        for i in range(len(system.names)):  # the oldest start first
            for job in [job for job in present if job.kind == i and not job.running and job in chosen]:
                job.running, job.end, job.started = True, now + job.remaining, now
                log.append((now, START, i, job.number))
        if not coming and not present:
            return log
        ending = min((job.end for job in present if job.running), default=math.inf)
        arrival = coming[0][1][0] if coming else math.inf
        now = min(ending, timer, arrival)
        assert now < math.inf, "nothing will ever happen"
        if ending == now:
            tied = [job for job in present if job.running and job.end == ending]
            said = guide[len(log)][3] if len(log) < len(guide) else -1
            job = next((job for job in tied if job.number == said), tied[0])
            present.remove(job)
            event, kind = "completion", job.kind
            log.append((now, FINISH, job.kind, job.number))
        elif timer == now:
            event, kind = "timer", 0
        else:
            number, (_, kind, size, estimate) = coming.pop(0)
            present.append(Job(number, kind, size, estimate, size))
            event = "arrival"
            log.append((now, ARRIVE, kind, number))


# ---------------------------------------------------------------------------------------------------------------- order of arrival


def fcfs(view: View) -> Decision:
    """The oldest waiting job starts if it fits; the first that does not stops all behind it."""
    run = view.running
    for job in view.waiting:
        if not fit(view.system, [*run, job]):
            break
        run.append(job)
    return run, math.inf


def fill(view: View, run: list[Job], never: Iterable[int] = (), held: Sequence[int] | None = None) -> list[Job]:
    """Adds waiting jobs in order of arrival where they fit, but none of the types in `never`."""
    run = list(run)
    for job in view.waiting:
        if job not in run and job.kind not in never and fit(view.system, [*run, job], held):
            run.append(job)
    return run


def first_fit(view: View) -> Decision:
    """The oldest waiting job that fits starts, then the next."""
    return fill(view, view.running), math.inf


def easy(view: View) -> Decision:
    """FCFS, and behind the first job that does not fit only those that do not delay it by the estimates; within a type no overtaking."""
    system, (run, _) = view.system, fcfs(view)
    behind = [job for job in view.waiting if job not in run]
    if not behind:
        return run, math.inf
    head = behind.pop(0)

    def expected_end(job: Job) -> float:
        return max(job.started + job.estimate if job.running else view.now + job.estimate, view.now)

    # The reservation: the first time at which the head fits beside those that still run by then.
    reservation = next(t for t in sorted(map(expected_end, run)) if fit(system, [head, *(job for job in run if expected_end(job) > t)]))
    beside = [head, *(job for job in run if expected_end(job) > reservation)]
    stuck = {head.kind}
    for job in behind:
        if job.kind in stuck:
            continue
        ends_before = view.now + job.estimate <= reservation
        if fit(system, [*run, job]) and (ends_before or fit(system, [*beside, job])):
            run.append(job)
            if not ends_before:
                beside.append(job)
        else:
            stuck.add(job.kind)
    return run, math.inf


def server_filling(view: View) -> Decision:
    """Of the shortest list of oldest jobs that fill the server (or all), the largest first, the oldest of equal ones."""
    system, oldest = view.system, []
    for job in view.jobs:
        if used(system, oldest)[0] >= decimal(system.capacity[0]):
            break
        oldest.append(job)
    run: list[Job] = []
    for job in sorted(oldest, key=lambda job: (-system.demand[job.kind, 0], job.number)):
        if fit(system, [*run, job]):
            run.append(job)
    return run, math.inf


# ---------------------------------------------------------------------------------------------------------------- needs


def share(system: rota.System, i: int) -> Fraction:
    """The dominant share of a job of type i."""
    return max(decimal(need) / decimal(have) for need, have in zip(system.demand[i], system.capacity, strict=True))


def largest_index(index: Sequence[Fraction]) -> Decide:
    """Waiting jobs start where they fit, those of larger index first, and of equal ones the older."""

    def decide(view: View) -> Decision:
        run = view.running
        for job in sorted(view.waiting, key=lambda job: (-index[job.kind], job.number)):
            if fit(view.system, [*run, job]):
                run.append(job)
        return run, math.inf

    return decide


class Quickswap:
    """Most Servers First, except while it drains: then nothing starts until the largest (of equal ones, oldest) waiting job fits.

    It begins to drain when a type waits of which none runs, no running type waits, and, with a threshold, at most so many jobs run.
    """

    def __init__(self, system: rota.System, policy: rota.Quickswap) -> None:
        self.shares = [share(system, i) for i in range(len(system.names))]
        self.most = math.inf if policy.threshold is None else policy.threshold
        self.drains = False

    def __call__(self, view: View) -> Decision:
        """The jobs that run."""
        waiting = sorted(view.waiting, key=lambda job: (-self.shares[job.kind], job.number))
        if self.drains and waiting and not fit(view.system, [*view.running, waiting[0]]):
            return view.running, math.inf
        run, _ = largest_index(self.shares)(view)
        served, left = {job.kind for job in run}, {job.kind for job in waiting if job not in run}
        self.drains = bool(left) and not (left & served) and len(run) <= self.most
        return run, math.inf


def balanced_splitting(system: rota.System) -> Decide:
    """Places of each type by its part of the most used resource; waiting jobs without one go, in order of arrival, to what is left."""
    rates = zip(system.arrival_rate.tolist(), system.service_rate.tolist(), strict=True)
    work = [decimal(arrivals) / decimal(mu) for arrivals, mu in rates]
    resources = range(len(system.capacity))
    load = max(
        sum(w * decimal(row[r]) for w, row in zip(work, system.demand, strict=True)) / decimal(system.capacity[r]) for r in resources
    )
    places = [int(w / load) for w in work]

    def decide(view: View) -> Decision:
        run = view.running
        for job in view.waiting:
            if counts(system, run)[job.kind] < places[job.kind]:
                run.append(job)
        for job in view.waiting:
            if job in run:
                continue
            free = [max(a - n, 0) for a, n in zip(places, counts(system, run), strict=True)]
            if not fit(system, [*run, job], free):
                break
            run.append(job)
        return run, math.inf

    return decide


# ---------------------------------------------------------------------------------------------------------------- weights


def max_weight(system: rota.System, preemptive: bool) -> Decide:
    """By trial of every schedule: the largest Σ u_i Q_i, u ≤ Q; not preemptive: among those that keep what runs.

    The weights of type i = 1, 2, … get 10⁻⁶ e^(−i/K) added, so that no two schedules tie.
    """
    schedules = np.array(reference_schedules(system))
    K = len(system.names)
    tie = 1e-6 * np.exp(-np.arange(1, K + 1) / K)

    def decide(view: View) -> Decision:
        Q, runs = np.array(view.present()), np.array(counts(system, view.running))
        possible = schedules[(schedules <= Q).all(axis=1) & (preemptive | (schedules >= runs).all(axis=1))]
        return view.oldest(possible[np.argmax(possible @ (Q + tie))].tolist()), math.inf

    return decide


class Improved:
    """The state of the base that can be reached and has the least relative value; the one in use among equals.

    Without preemption a state can be reached if it holds all running jobs, with backfilling also the ways into the base, but from one of
    them none with more excess; with setups if it covers the setups, one for each job that
    stops. With full preemption all can, and gaps are filled from the queue. The base turns by its own clock while no job present has a
    slot and no setup is under way.
    """

    def __init__(self, system: rota.System, policy: rota.Improved, seed: np.random.SeedSequence) -> None:
        self.system, self.preemption, self.setup_rate = system, policy.preemption, policy.base.setup_rate
        ways = states_of(system, policy)
        self.values, self.excess = rota.relative_values(system, policy.base, process=ways.process), ways.excess
        self.place, self.follows, self.rate, self.ring = 0, False, -1.0, math.inf
        self.setups = [0] * len(system.names)
        self.random = seeded(seed)

    def __call__(self, view: View) -> Decision:
        """The jobs of the state, and the time at which the base moves or a setup ends."""
        slots, present, runs = self.values.process.schedules.tolist(), view.present(), counts(view.system, view.running)
        turns = view.event == "timer" and not any(self.setups)
        if turns:
            self._move(runs)
        else:
            if view.event == "timer":
                self._end_setup()
            if view.event == "completion":
                self._shorten(view.kind)
            self._choose(slots, present, runs)
        own = view.oldest([min(q, u) for q, u in zip(present, slots[self.place], strict=True)])
        if self.preemption == "full":
            extra, gave_way = [job for job in view.running if job not in own], set()
            while not fit(view.system, [*own, *extra]):
                gave_way.add(extra.pop().kind)
            return fill(view, [*own, *extra], gave_way), math.inf
        if any(self.setups):
            self.follows = False
            return own, self._next(view, sum(self.setups) * self.setup_rate)
        self.follows = self.follows if turns else sum(present) > 0 and not own
        if not self.follows:
            self.rate = -1.0
            return own, math.inf
        return own, self._next(view, sum(rate for rate, _ in self._moves(counts(view.system, own))))

    def _next(self, view: View, rate: float) -> float:
        if rate != self.rate or view.event == "timer":
            self.rate, self.ring = rate, view.now + exponential(self.random, rate) if rate > 0 else math.inf
        return self.ring

    def _choose(self, slots: list[list[int]], present: list[int], runs: list[int]) -> None:
        worth = self.values(present)
        best = min((s for s in range(len(slots)) if self._reached(slots[s], s, runs)), key=lambda s: worth[s])
        if worth[best] < worth[self.place] - 1e-9 * abs(worth[self.place]):
            self.place = best
        if self.preemption == "setup":
            self.setups = self._setups(slots[self.place], runs)

    def _shorten(self, i: int) -> None:
        """On a way into the base, a completion closes a slot of a type that the candidate has fewer of."""
        process = self.values.process
        found = np.flatnonzero((process.source == self.place) & (process.trigger == i))
        if self.excess[self.place] > 0 and len(found):
            self.place = int(process.target[found[0]])
            if (process.source == process.source[found[0]]).sum() > 1:
                uniform(self.random)  # drawn though there is one way only

    def _reached(self, row: list[int], s: int, runs: list[int]) -> bool:
        if 0 < self.excess[self.place] < self.excess[s]:
            return False
        if self.preemption != "setup":
            return self.preemption == "full" or all(u >= r for u, r in zip(row, runs, strict=True))
        setups, process = self._setups(row, runs), self.values.process
        together = [u + c for u, c in zip(row, setups, strict=True)]
        return sum(setups) <= int((process.held[s] - process.schedules[s]).sum()) and fit(self.system, [], together)

    def _setups(self, row: list[int], runs: list[int]) -> list[int]:
        """Setups of each type if the state with these slots is taken now."""
        return [c + max(r - u, 0) for c, r, u in zip(self.setups, runs, row, strict=True)]

    def _end_setup(self) -> None:
        draw = uniform(self.random) * sum(self.setups)
        for i, n in enumerate(self.setups):
            if draw < n:
                self.setups[i] -= 1
                return
            draw -= n
        raise AssertionError

    def _moves(self, runs: list[int]) -> list[tuple[float, int]]:
        """Rates and targets of the moves that happen without a job: timers, setups of empty slots, and slots that hold no job."""
        process = self.values.process
        found = []
        for m in np.flatnonzero(process.source == self.place):
            i, rate = int(process.trigger[m]), float(process.rate[m])
            slots = process.schedules[self.place, i] if i >= 0 else 1
            found.append((rate if i < 0 else rate * max(slots - runs[i], 0) / slots, int(process.target[m])))
        return found

    def _move(self, runs: list[int]) -> None:
        draw = uniform(self.random) * self.rate
        for rate, where in self._moves(runs):
            if draw < rate:
                self.place = where
                return
            draw -= rate


def tabulated(policy: rota.Tabulated) -> Decide:
    """The schedule of the table at the jobs present, each number cut to the last one of the table; without preemption, for what runs."""
    schedules = [tuple(row) for row in policy.schedules.tolist()]
    table = policy.choice.reshape(*(policy.truncation + 1), -1)

    def decide(view: View) -> Decision:
        row = table[tuple(min(q, n) for q, n in zip(view.present(), policy.truncation.tolist(), strict=True))]
        at = 0 if policy.preemption == "full" else schedules.index(tuple(counts(view.system, view.running)))
        return view.oldest(schedules[row[at]]), math.inf

    return decide


class Stalling:
    """Stalling MaxWeight, by trial of every schedule: jobs start in the slots of the present one while it weighs enough.

    Weights are those of MaxWeight, of all slots. Below the share nothing starts until no job runs; then the heaviest schedule is taken.
    """

    def __init__(self, system: rota.System, policy: rota.StallingMaxWeight) -> None:
        self.system, self.share = system, policy.share
        self.schedules = np.array(reference_schedules(system))
        self.slots = self.schedules[0]  # that of no job: it weighs nothing, so the first event takes another

    def __call__(self, view: View) -> Decision:
        """The jobs that run."""
        K = len(self.system.names)
        weights = self.schedules @ (np.array(view.present()) + 1e-6 * np.exp(-np.arange(1, K + 1) / K))
        best = self.schedules[np.argmax(weights)]
        if self.slots is not None and weights[(self.schedules == self.slots).all(axis=1)][0] < self.share * weights.max():
            self.slots = None  # stalled
        if self.slots is None and not view.running:
            self.slots = best
        run = view.running
        for job in view.waiting:
            if self.slots is not None and counts(self.system, run)[job.kind] < self.slots[job.kind]:
                run.append(job)
        return run, math.inf


class Adaptive:
    """A queue-driven rota from its definition: free growth, the goal and what holds it, its slots, and what may start beside it."""

    def __init__(self, system: rota.System, policy: rota.Adaptive) -> None:
        self.system, self.policy, self.goal = system, policy, 0
        self.goals = [tuple(row) for row in policy.goals.tolist()]
        self.schedules = np.array(reference_schedules(system))
        self.shares = [[float(decimal(d) / decimal(c)) for d, c in zip(row, system.capacity, strict=True)] for row in system.demand]
        work = system.arrival_rate / system.service_rate
        pressure = [sum(w * row[r] for w, row in zip(work, self.shares, strict=True)) for r in range(len(system.capacity))]
        bottleneck = pressure.index(max(pressure))
        self.need = [row[bottleneck] + 1e-9 * max(row) for row in self.shares]
        self.long = 1e4 * sum(c * max(x, 1.0) ** 2 for c, x in zip(policy.importance, work, strict=True))

    def __call__(self, view: View) -> Decision:
        """The jobs that run."""
        if not view.waiting:
            return view.running, math.inf
        K, policy, present = len(self.system.names), self.policy, view.present()
        tie = 1e-6 * np.exp(-np.arange(1, K + 1) / K)
        weights = [c * q + t for c, q, t in zip(policy.importance.tolist(), present, tie.tolist(), strict=True)]
        runs = np.array(counts(self.system, view.running))
        values = [sum(min(n, q) * w for n, q, w in zip(goal, present, weights, strict=True)) for goal in self.goals]
        most = max(values)
        if policy.free == math.inf or (most <= self.long and (policy.free or policy.slack)):
            possible = self.schedules[(self.schedules <= present).all(axis=1) & (self.schedules >= runs).all(axis=1)]
            grown = possible[np.argmax(possible @ np.array(weights))]
            slack = policy.slack * most**-0.1 if most > 0 else 0.0
            if most <= (1 + slack) * float(grown @ np.array(weights)) + policy.free:
                return view.oldest(grown.tolist()), math.inf
        goal = self._goal(values, [self._is_full(goal, present, most) for goal in self.goals])
        run = view.running
        if goal is not None:
            run = self._start(view, run, weights, goal, [])
            left = [max(min(q, n) - r, 0) for q, n, r in zip(present, goal, counts(self.system, run), strict=True)]
            wait = [q - r for q, r in zip(present, counts(self.system, run), strict=True)]
            if sum(c * n * w for c, n, w in zip(policy.importance.tolist(), left, wait, strict=True)) > policy.waive:
                return self._start(view, run, weights, None, left), math.inf
        return self._start(view, run, weights, None, []), math.inf

    def _is_full(self, goal: Sequence[int], present: Sequence[int], most: float) -> bool:
        have = sum(p * min(float(q), self.policy.cap * n) for p, q, n in zip(self.need, present, goal, strict=True) if n > 0)
        if self.policy.full == math.inf:
            return False
        return most > self.long or have >= self.policy.full * sum(p * n for p, n in zip(self.need, goal, strict=True)) * (1 - 1e-12)

    def _goal(self, values: Sequence[float], full: Sequence[bool]) -> Sequence[int] | None:
        best = max((s for s in range(len(values)) if full[s] and values[s] > 0), key=lambda s: values[s], default=None)
        if best is None:
            return None
        held = (
            full[self.goal] and values[self.goal] > 0 and values[best] <= (1 + self.policy.hold * values[best] ** -0.1) * values[self.goal]
        )
        if not held:
            self.goal = best
        return self.goals[self.goal]

    def _start(self, view: View, run: list[Job], weights: Sequence[float], goal: Sequence[int] | None, kept: Sequence[int]) -> list[Job]:
        """Adds waiting jobs one by one, the type of largest weight times share or the oldest first; of a goal only to its slots."""
        run = list(run)
        while True:
            have = counts(self.system, run)
            heads = [next((job for job in view.waiting if job.kind == i and job not in run), None) for i in range(len(weights))]
            able = [
                job
                for i, job in enumerate(heads)
                if job is not None and (goal is None or have[i] < goal[i]) and self._fits_beside(run, job, kept)
            ]
            if not able:
                return run
            if self.policy.order == "arrival":
                run.append(min(able, key=lambda job: job.number))
            else:
                run.append(max(able, key=lambda job: weights[job.kind] * max(self.shares[job.kind])))

    def _fits_beside(self, run: list[Job], job: Job, kept: Sequence[int]) -> bool:
        """Whether a job fits; a resource of which the kept room leaves none is no obstacle to a job that needs none of it."""
        for r, have in enumerate(self.system.capacity):
            need = decimal(self.system.demand[job.kind, r])
            held = sum((n * decimal(d) for n, d in zip(kept, self.system.demand[:, r], strict=False)), Fraction(0))
            if need > max(decimal(have) - used(self.system, run)[r] - held, 0):
                return False
        return True


class Timers:
    """Randomized-Timers: slots of each type, taken at ticks of its clock and given back at departures, of jobs or dummies.

    Draws: at a ring, which one it is; at a departure, whether the slot is given back; and the time of the next ring, anew at each event
    but an arrival that takes no dummy's slot.
    """

    def __init__(self, system: rota.System, policy: rota.RandomizedTimers, seed: np.random.SeedSequence) -> None:
        self.system, self.policy, self.random = system, policy, seeded(seed)
        self.slots = [0] * len(system.names)
        self.dummies = [0] * len(system.names)
        self.ring, self.rate = math.inf, math.nan

    def __call__(self, view: View) -> Decision:
        """The jobs in slots, and the next ring."""
        K, clock = len(self.slots), self.policy.rate
        if view.event == "completion":
            self._maybe_give_back(view, view.kind)
        elif view.event == "timer":
            rings = [clock] * K + [n * mu for n, mu in zip(self.dummies, self.system.service_rate, strict=True)]
            which = self._pick(rings)
            i = which % K
            if which < K:
                held = [n + (k == i) for k, n in enumerate(self.slots)]
                if fit(self.system, [], held):
                    self.slots = held
            else:
                self._maybe_give_back(view, i)
        Q = view.present()
        before, self.dummies = self.dummies, [max(n - q, 0) for n, q in zip(self.slots, Q, strict=True)]
        if view.event != "arrival" or before != self.dummies:
            rate = K * clock
            for n, mu in zip(self.dummies, self.system.service_rate, strict=True):
                rate += n * mu
            self.ring = view.now + exponential(self.random, rate)
        return view.oldest(self.slots), self.ring

    def _pick(self, rings: Sequence[float]) -> int:
        draw = uniform(self.random) * sum(rings)
        for which, rate in enumerate(rings):
            if draw < rate:
                return which
            draw -= rate
        return max(which for which, rate in enumerate(rings) if rate > 0)

    def _maybe_give_back(self, view: View, i: int) -> None:
        def f(x: int) -> float:
            return math.log(1 + x) ** self.policy.power

        Q = view.present()
        w = max(f(Q[i]), self.policy.floor * f(max(Q)))
        if uniform(self.random) < math.exp(-w):
            self.slots[i] -= 1


# ---------------------------------------------------------------------------------------------------------------- rotas

OWN = -1  # a move triggered by a clock of the process's own, a timer or a setup


@dataclass(frozen=True)
class Place:
    """Where the process is: working in candidate `a`, or on the way to `b` with `left` slots of each type to drain or set up."""

    a: int
    b: int | None = None
    left: tuple[int, ...] = ()
    slots: tuple[int, ...] = ()
    held: tuple[int, ...] = field(default=())

    @property
    def working(self) -> bool:
        """Whether a candidate runs."""
        return self.b is None


class Rota:
    """pMSR, nMSR, sMSR, with and without backfilling.

    Draws: at a ring of the process's own, which move it is; at a completion that may move the process, if there is another way out, one;
    and the time of the next ring whenever the total rate of rings changes or one has rung.
    """

    def __init__(self, system: rota.System, policy: rota.MSR, seed: np.random.SeedSequence) -> None:
        self.system, self.policy, self.random = system, policy, seeded(seed)
        self.place = self._work(0)
        self.rate, self.ring = 0.0, math.inf
        self.counts = [0] * len(system.names)
        self.setups = [0] * len(system.names)  # of stopped jobs, with backfilling

    # the process, from the paper's definitions

    def _work(self, a: int) -> Place:
        return Place(a, slots=tuple(self.policy.candidates[a].tolist()))

    def moves(self) -> list[tuple[float, int, Place]]:
        """The ways out of the present place: (rate, trigger, where to)."""
        policy, place, mu = self.policy, self.place, self.system.service_rate
        n = len(policy.weights)
        if place.b is None:
            if policy.generator is not None:
                return [(policy.generator[place.a, b], OWN, self._leave(place.a, b)) for b in range(n) if policy.generator[place.a, b] > 0]
            return [(policy.switching_rate / (n * policy.weights[place.a]), OWN, self._leave(place.a, (place.a + 1) % n))] if n > 1 else []
        if policy.preemption == "setup":
            return [(float(sum(place.left)) * policy.setup_rate, OWN, self._after(place, place.left.index(max(place.left))))]
        drained = [i for i in self._order(place.a, place.b) if place.left[i]]
        if policy.route != "parallel":
            drained = drained[:1]
        return [(float(place.slots[i] * mu[i]), i, self._after(place, i)) for i in drained]

    def _leave(self, a: int, b: int) -> Place:
        W = self.policy.candidates
        go = tuple(np.maximum(W[a] - W[b], 0).tolist())
        if self.policy.preemption == "full" or not any(go):
            return self._work(b)
        if self.policy.preemption == "setup":
            return Place(a, b, go, tuple(np.minimum(W[a], W[b]).tolist()), go)
        return self._opened(Place(a, b, go, tuple(W[a].tolist())))

    def _after(self, place: Place, i: int) -> Place:
        """One slot of type i drained, or one of its setups done."""
        left = tuple(n - (k == i) for k, n in enumerate(place.left))
        if not any(left):
            return self._work(place.b)
        if self.policy.preemption == "setup":
            return replace(place, left=left, held=left)
        return self._opened(replace(place, left=left, slots=tuple(n - (k == i) for k, n in enumerate(place.slots))))

    def _opened(self, place: Place) -> Place:
        """With early opening, slots of the goal open as soon as they fit, types in order."""
        slots = list(place.slots)
        if self.policy.opening == "early":
            for i, goal in enumerate(self.policy.candidates[place.b].tolist()):
                while slots[i] < goal and fit(self.system, [], [n + (k == i) for k, n in enumerate(slots)]):
                    slots[i] += 1
        return replace(place, slots=tuple(slots))

    def _order(self, a: int, b: int) -> Sequence[int]:
        route, K = self.policy.route, len(self.system.names)
        if route == "fastest-first":
            W, mu = self.policy.candidates, self.system.service_rate
            return sorted(range(K), key=lambda i: (sum(1.0 / k for k in range(int(W[b, i]) + 1, int(W[a, i]) + 1)) / mu[i], i))
        return range(K) if isinstance(route, str) else route[a]

    # rings and moves

    def _rings(self) -> list[tuple[float, Place]]:
        """Moves that happen without an event: clocks, and slots without a job unless these are skipped; during setups, only these."""
        if any(self.setups):
            return [(float(sum(self.setups)) * self.policy.setup_rate, self.place)]
        rings = []
        for rate, trigger, where in self.moves():
            if trigger == OWN:
                rings.append((rate, where))
            elif self.policy.empty_slots == "virtual":
                slots = self.place.slots[trigger]
                rings.append((rate * max(slots - self.counts[trigger], 0) / slots, where))
        return rings

    def _ring(self) -> None:
        rings = self._rings()
        draw = uniform(self.random) * self.rate
        for rate, where in rings:
            if draw < rate:
                self.place = where
                return
            draw -= rate
        self.place = [where for rate, where in rings if rate > 0][-1]

    def _next_ring(self, view: View) -> float:
        rate = 0.0
        for one, _ in self._rings():
            rate += one
        if rate != self.rate or view.event == "timer":
            self.rate = rate
            self.ring = view.now + exponential(self.random, rate) if rate > 0 else math.inf
        return self.ring

    def _drained(self, i: int) -> bool:
        """A slot of type i has become free: it is closed if one is to be drained."""
        moves = self.moves()
        for _, trigger, where in moves:
            if trigger == i:
                if len(moves) > 1 and not self.policy.backfill:
                    uniform(self.random)
                self.place = where
                return True
        return False

    def _first_empty(self) -> int | None:
        return next((i for _, i, _ in self.moves() if i != OWN and self.counts[i] < self.place.slots[i]), None)

    def __call__(self, view: View) -> Decision:
        """The jobs that run, and the next ring of the process's own."""
        rang = view.event == "timer" and not any(self.setups)
        if rang and not self._held(view):
            self._ring()
        elif view.event == "timer" and not rang:
            self._end_setup()
        if self.policy.backfill and self.policy.preemption == "setup":
            run = self._with_setups(view, rang)
            self.counts = counts(self.system, run)
            return run, self._next_ring(view)
        run = self._backfilled(view) if self.policy.backfill else self._plain(view)
        self.counts = counts(self.system, run)
        return run, self._next_ring(view)

    def _plain(self, view: View) -> list[Job]:
        """min(Q_i, slots) jobs of each type."""
        if view.event == "completion":
            self._drained(view.kind)
        run = view.oldest(self.place.slots)
        self.counts = counts(self.system, run)
        if self.policy.empty_slots == "skip":
            while (i := self._first_empty()) is not None:
                self._drained_free(i)
                run = view.oldest(self.place.slots)
                self.counts = counts(self.system, run)
        return run

    def _drained_free(self, i: int) -> None:
        self.place = next(where for _, trigger, where in self.moves() if trigger == i)

    def _backfilled(self, view: View) -> list[Job]:
        """The schedule's own jobs, and where room is left, First-Fit."""
        self.counts = counts(self.system, view.running)
        if self.policy.preemption == "none":
            return self._patient(view)
        own = view.oldest(self.place.slots)
        extra = [job for job in view.running if job not in own]
        gave_way = set()
        while not fit(self.system, [*own, *extra]):
            gave_way.add(extra.pop().kind)  # the youngest; `extra` is in order of arrival
        return fill(view, [*own, *extra], gave_way)

    def _with_setups(self, view: View, rang: bool) -> list[Job]:
        """When a switch begins, jobs without a slot ahead are stopped as far as those with one need their room; each pays a setup.

        Stopped is the youngest of those that hold some of a resource that is short. While there are setups only jobs with a slot start.
        """
        system, run = self.system, view.running
        if rang and not self.place.working:
            self.place = self._work(self.place.b)
        own = view.oldest(self.place.slots)
        if rang:
            while not fit(system, {*run, *own}):
                needs = used(system, {*run, *own})
                short = [r for r, have in enumerate(system.capacity) if needs[r] > decimal(have)]
                job = [job for job in run if job not in own and any(system.demand[job.kind, r] > 0 for r in short)][-1]
                run.remove(job)
                self.setups[job.kind] += 1
        for job in sorted(own, key=lambda job: job.number):
            if job not in run and fit(system, [*run, job], self.setups):
                run.append(job)
        return run if any(self.setups) else fill(view, run)

    def _end_setup(self) -> None:
        """One of the setups is done."""
        draw = uniform(self.random) * sum(self.setups)
        for i, n in enumerate(self.setups):
            if draw < n:
                self.setups[i] -= 1
                return
            draw -= n
        raise AssertionError

    def _patient(self, view: View) -> list[Job]:
        """Without preemption: the switch ends when what runs fits with the jobs that have a slot ahead; until then it drains slots."""
        if not self.place.working and self._fits_ahead(view):
            self.place = self._work(self.place.b)
        elif self.policy.empty_slots == "skip":
            while (i := self._first_empty()) is not None:
                self._drained_free(i)
        elif view.event == "completion" and view.kind in [i for _, i, _ in self.moves()]:  # noqa: SIM102
            if self.counts[view.kind] < self.place.slots[view.kind]:
                self._drained(view.kind)
        run = self._started(view, view.running, self.place.slots)
        return fill(view, run) if self.place.working else self._started(view, run, self.policy.candidates[self.place.b].tolist())

    def _held(self, view: View) -> bool:
        """Whether the schedule is kept though its clock rings: no other of the rota has a larger sum of min(Q, slots)·Q."""
        if self.policy.backfill != "hold" or not self.place.working:
            return False
        Q = [a + b for a, b in zip(counts(self.system, view.running), counts(self.system, view.waiting), strict=True)]
        weights = [sum(min(q, n) * q for q, n in zip(Q, row, strict=True)) for row in self.policy.candidates.tolist()]
        return weights[self.place.a] == max(weights)

    def _fits_ahead(self, view: View) -> bool:
        """Whether the running jobs fit together with those present that have a slot in the schedule ahead."""
        running, waiting = counts(self.system, view.running), counts(self.system, view.waiting)
        goal = self.policy.candidates[self.place.b].tolist()
        wanted = [max(n, min(n + more, slots)) for n, more, slots in zip(running, waiting, goal, strict=True)]
        return fit(self.system, [], wanted)

    def _started(self, view: View, run: list[Job], slots: Sequence[int]) -> list[Job]:
        """The oldest waiting jobs start where they have a slot and fit."""
        for job in view.waiting:
            if job not in run and counts(self.system, run)[job.kind] < slots[job.kind] and fit(self.system, [*run, job]):
                run = [*run, job]
        return run


# ---------------------------------------------------------------------------------------------------------------- together


def reference_of(system: rota.System, policy: object, seed: np.random.SeedSequence) -> Decide:
    """The reference for a policy."""
    match policy:
        case rota.FCFS():
            return fcfs
        case rota.FirstFit():
            return first_fit
        case rota.EASY():
            return easy
        case rota.ServerFilling():
            return server_filling
        case rota.MostServersFirst():
            return largest_index([share(system, i) for i in range(len(system.names))])
        case rota.CMuM():
            return largest_index([decimal(mu) / share(system, i) for i, mu in enumerate(system.service_rate.tolist())])
        case rota.Quickswap():
            return Quickswap(system, policy)
        case rota.BalancedSplitting():
            return balanced_splitting(system)
        case rota.MaxWeight(preemption=preemption):
            return max_weight(system, preemption == "full")
        case rota.Improved():
            return Improved(system, policy, seed)
        case rota.Tabulated():
            return tabulated(policy)
        case rota.Adaptive():
            return Adaptive(system, policy)
        case rota.StallingMaxWeight():
            return Stalling(system, policy)
        case rota.RandomizedTimers():
            return Timers(system, policy, seed)
        case rota.MSR():
            return Rota(system, policy, seed)
    raise TypeError(policy)


def engine_log(
    system: rota.System, policy: object, given: Given, seed: int = 0, *, cuts: Sequence[int] = (), batch_jobs: int = 10**9
) -> list[Entry]:
    """The log of the compiled engine until no job is left, its laws checked after every event; jobs come in chunks cut at `cuts`."""
    compiled = policy.compiled if isinstance(policy, rota.Custom) else None
    run = Run(
        system,
        decider_of(system, policy),
        np.random.SeedSequence(seed),
        batch_jobs=batch_jobs,
        log_jobs=10**9,
        check=True,
        compiled=compiled,
    )
    edges = [0, *sorted(set(cuts)), len(given.jobs)]
    for begin, end in itertools.pairwise(edges):
        run.feed(Chunk(*(column[begin:end] for column in given.columns())), drain=end == len(given.jobs))
    assert run.present == 0
    return [(time, int(kind), int(i), int(job)) for time, kind, i, job in np.concatenate(run.log).tolist()]


def assert_agrees(system: rota.System, policy: object, given: Given, seed: int = 0) -> list[Entry]:
    """The engine and the reference write the same log, bit by bit; it is returned."""
    log = engine_log(system, policy, given, seed)
    expected = simulate(system, reference_of(system, policy, np.random.SeedSequence(seed)), given, guide=log)
    for k, (have, want) in enumerate(itertools.zip_longest(log, expected)):
        assert have == want, f"entry {k} after {log[max(k - 6, 0) : k]}"
    return log


# ---------------------------------------------------------------------------------------------------------------- random cases


@st.composite
def jobs_for(draw: st.DrawFn, types: Sequence[int], most: int = 25, estimates: bool = False) -> Given:
    """Random jobs of some types: on a coarse grid of time, so that many things happen at once, or at random times."""
    n = draw(st.integers(1, most))
    if draw(st.booleans()):
        gap, size = st.integers(0, 6).map(lambda x: x / 4), st.integers(1, 12).map(lambda x: x / 4)
    else:
        gap, size = st.floats(0.0, 1.5), st.floats(0.01, 4.0)
    times = np.cumsum(draw(st.lists(gap, min_size=n, max_size=n))).tolist()
    kinds = draw(st.lists(st.sampled_from(list(types)), min_size=n, max_size=n))
    sizes = draw(st.lists(size, min_size=n, max_size=n))
    guesses = draw(st.lists(size, min_size=n, max_size=n)) if estimates else sizes
    return Given(tuple(zip(times, kinds, sizes, guesses, strict=True)))


@st.composite
def server_filling_systems(draw: st.DrawFn) -> rota.System:
    """One resource, demands and capacity powers of two of a unit."""
    unit = draw(st.sampled_from([1.0, 0.1, 3.0]))
    top = draw(st.integers(0, 4))
    demand = draw(st.lists(st.integers(0, top), min_size=1, max_size=4))
    return rota.System([2**top * unit], [[2**d * unit] for d in demand], [1.0] * len(demand), [1.0] * len(demand))
