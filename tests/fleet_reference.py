"""A slow simulator of fleets in plain Python, with every dispatch rule written from its definition, to compare the engine with.

Every server is a list of jobs and asks a policy of `reference_simulator`. Rules look at all servers, in exact fractions; where two servers
are equal but for rounding, the log to compare with (`guide`) may name either. Random rules draw from the same stream, in the order that
`rota.simulation.fleet.rules` documents, and so do the policies of the servers.

At a server jobs stand in the order in which they came to it: to its policy the number of a job is how many came to servers before it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

import reference_simulator as one
import rota
from reference_simulator import ARRIVE, FINISH, PREEMPT, START, Given, Job, View, decimal, used
from rota.decide import exponential, seeded, uniform
from rota.model.workload import Chunk
from rota.simulation.fleet.run import FleetRun

SENT, RETURNED = 4, 5
Entry = tuple[float, int, int, int, int]  # time, kind of event, type, job, server
_ROUNDING = 1e-9


@dataclass(eq=False)
class Server:
    """One server: its kind, its system (with types of its own), and the jobs there; `types` are its types in the fleet."""

    number: int
    kind: int
    system: rota.System
    types: list[int]
    decide: one.Decide
    jobs: list[Job] = field(default_factory=list)
    timer: float = math.inf
    up: bool = True
    switch: float = math.inf
    slots: Sequence[int] = ()
    coming: list[int] = field(default_factory=list)  # the types of jobs on their way

    @property
    def all_types(self) -> list[int]:
        """The types of the jobs that are here or on their way."""
        return [self.types[job.kind] for job in self.jobs] + self.coming

    def count(self, i: int) -> int:
        """Jobs of a type of the fleet that are here or on their way."""
        return self.all_types.count(i)

    def runs(self, i: int) -> bool:
        """Whether it works and the type can run here."""
        return self.up and i in self.types

    def free(self) -> list[Fraction]:
        """What is free of each resource."""
        held = used(self.system, [job for job in self.jobs if job.running])
        return [decimal(has) - need for has, need in zip(self.system.capacity, held, strict=True)]

    def has_room(self, i: int) -> bool:
        """Whether a job of the type fits at once, and none of it waits."""
        local = self.types.index(i)
        waits = any(job.kind == local and not job.running for job in self.jobs)
        needs = [decimal(need) for need in self.system.demand[local]]
        return not waits and not self.coming and all(need <= free for need, free in zip(needs, self.free(), strict=True))

    def left_over(self, i: int) -> Fraction:
        """The mean over resources of what would be free with one more job."""
        demand = [decimal(need) for need in self.system.demand[self.types.index(i)]]
        parts = [(free - need) / decimal(has) for free, need, has in zip(self.free(), demand, self.system.capacity, strict=True)]
        return sum(parts, Fraction(0)) / len(parts)

    def work(self) -> float:
        """Σ n_i E[S_i] max_r D_ir / P_r."""
        share = (self.system.demand / self.system.capacity).max(axis=1)
        kinds = [self.types.index(i) for i in self.all_types]
        return sum(float(share[k] / self.system.service_rate[k]) for k in kinds)


@dataclass
class Held:
    """A job at no server: held back in a queue, or on its way to a server."""

    number: int
    type: int
    size: float
    estimate: float
    queue: int
    reaches: float = math.inf
    goes_to: int = -1


class FleetReference:
    """The log of a dispatch rule and the policies of the servers on given jobs, until none is left."""

    def __init__(self, policy: rota.simulation.FleetPolicy, seed: np.random.SeedSequence, guide: Sequence[Entry] = ()) -> None:
        self.policy, self.fleet, self.guide = policy, policy.fleet, guide
        self.asked = -1  # the job for which the rule is asked
        fleet, rule = self.fleet, policy.dispatch
        streams, dispatcher, failing = seed.spawn(3)
        self.random, self.fails = seeded(dispatcher), seeded(failing)
        self.log: list[Entry] = []
        self.now = 0.0
        self.came: list[Held] = []  # the jobs in the order in which they came to servers, each as often as it came to one
        slots = policy.slots()
        self.servers: list[Server] = []
        self.streams = streams.generate_state(4 * fleet.servers, np.uint64).reshape(-1, 4)
        self.streams[0] = seeded(seed)
        for c, n in enumerate(fleet.count):
            types = np.flatnonzero(policy.runs[c]).tolist()
            for _ in range(n):
                m = len(self.servers)
                server = Server(m, c, policy.systems[c], types, None, slots=slots[m].tolist() if len(slots) else ())
                self.servers.append(server)
                self._begin(server)
                if policy.failures[c, 0] < np.inf:
                    server.switch = exponential(self.fails, 1.0 / policy.failures[c, 0])
        self.rule: Callable[[int, int], int] = getattr(self, "_" + rule.rule.replace("-", "_"))
        self.turn = [0] * len(fleet.names)
        self.queues = self._queues()
        self.held: list[Held] = []
        self.transit: list[Held] = []
        self.seen: list[dict[int, float]] = []
        self.next_look = rule.staleness or math.inf

    # ------------------------------------------------------------------------------------------------ events

    def simulate(self, given: Given) -> list[Entry]:
        """Plays the jobs to the end."""
        coming = list(enumerate(given.jobs))
        self._look()
        while coming or self.held or self.transit or any(server.jobs for server in self.servers):
            ending = min((job.end for server in self.servers for job in server.jobs if job.running), default=math.inf)
            timer = min(min(server.timer if server.up else math.inf, server.switch) for server in self.servers)
            reaching = self.transit[0].reaches if self.transit else math.inf
            arrival = coming[0][1][0] if coming else math.inf
            now = min(ending, timer, reaching, arrival)
            assert now < math.inf, "nothing will ever happen"
            while self.next_look <= now:
                self._look()
                self.next_look += self.policy.dispatch.staleness
            self.now = now
            if ending == now:
                self._complete(ending)
            elif timer == now:
                server = next(s for s in self.servers if min(s.timer if s.up else math.inf, s.switch) == timer)
                if server.switch == timer:
                    self._repair(server) if not server.up else self._fail(server)
                else:
                    self._ask(server, "timer", 0)
                    self._take(server)
            elif reaching == now:
                job = self.transit.pop(0)
                self.servers[job.goes_to].coming.remove(job.type)
                if self.servers[job.goes_to].up:
                    self._deliver(job, self.servers[job.goes_to])
                else:
                    self._dispatch(job)
            else:
                number, (_, i, size, estimate) = coming.pop(0)
                self._arrive(Held(number, i, size, estimate, -1))
        return self.log

    def _begin(self, server: Server) -> None:
        """The policy of a server begins, at the start or when it works again; its random stream goes on."""
        if server.types:
            server.decide = one.reference_of(server.system, self.policy.policies[server.kind], np.random.SeedSequence(0))
            server.decide = with_stream(server.decide, self.streams[server.number])
            self._ask(server, "start", 0)

    def _complete(self, ending: float) -> None:
        tied = [(server, job) for server in self.servers for job in server.jobs if job.running and job.end == ending]
        said = self.guide[len(self.log)][3] if len(self.log) < len(self.guide) else -1
        server, job = next((pair for pair in tied if self.came[pair[1].number].number == said), tied[0])
        server.jobs.remove(job)
        self._write(FINISH, server, job)
        self._ask(server, "completion", job.kind)
        self._take(server)

    def _arrive(self, job: Held) -> None:
        m = self._choose(job)
        if m >= 0 and self.policy.dispatch.cost == 0:
            self._join(job, self.servers[m], ARRIVE)
            return
        self.log.append((self.now, ARRIVE, job.type, job.number, -1))
        self._wait_or_go(job, m)

    def _choose(self, job: Held) -> int:
        job.queue, self.asked = self._queue(job.type), job.number
        return self.rule(job.type, job.queue)

    def _said(self) -> int:
        """The server to which the log to compare with sends the job at hand; the line is written when the job is there."""
        reached = self.now + self.policy.dispatch.cost
        for k in range(len(self.log), len(self.guide)):
            time, event, _, job, m = self.guide[k]
            if time > reached:
                break
            if (time, job) == (reached, self.asked) and event in (ARRIVE, SENT) and m >= 0:
                return m
        return -1

    def _dispatch(self, job: Held) -> None:
        m = self._choose(job)
        if m >= 0 and self.policy.dispatch.cost == 0:
            self._deliver(job, self.servers[m])
        else:
            self._wait_or_go(job, m)

    def _wait_or_go(self, job: Held, m: int) -> None:
        if m < 0:
            self.held.append(job)
        else:
            job.reaches, job.goes_to = self.now + self.policy.dispatch.cost, m
            self.transit.append(job)
            self.servers[m].coming.append(job.type)

    def _deliver(self, job: Held, server: Server) -> None:
        self._join(job, server, SENT)

    def _join(self, job: Held, server: Server, event: int) -> None:
        local, speed = server.types.index(job.type), float(self.fleet.speed[server.kind, job.type])
        new = Job(len(self.came), local, job.size / speed, job.estimate / speed, job.size / speed)
        self.came.append(job)
        server.jobs.append(new)
        self._write(event, server, new)
        self._ask(server, "arrival", local)
        self._take(server)

    def _ask(self, server: Server, event: str, kind: int) -> None:
        if server.decide is None:
            return
        chosen, server.timer = server.decide(View(server.system, self.now, event, kind, list(server.jobs)))
        for i in range(len(server.types)):
            for job in reversed([job for job in server.jobs if job.kind == i and job.running and job not in chosen]):
                job.running, job.remaining = False, max(job.end - self.now, 0.0)
                self._write(PREEMPT, server, job)
        for i in range(len(server.types)):
            for job in [job for job in server.jobs if job.kind == i and not job.running and job in chosen]:
                job.running, job.end, job.started = True, self.now + job.remaining, self.now
                self._write(START, server, job)

    def _take(self, server: Server) -> None:
        while self.policy.dispatch.record.central:
            room = [job for job in self.held if self._takes(server, job.type, job.queue)]
            if not room:
                return
            job = min(room, key=lambda job: job.number)
            self.held.remove(job)
            self._join(job, server, SENT)

    def _fail(self, server: Server) -> None:
        server.up, server.switch = False, self.now + exponential(self.fails, 1.0 / self.policy.failures[server.kind, 1])
        lost, server.jobs, server.timer = server.jobs, [], math.inf
        for job in lost:
            self._write(RETURNED, server, job)
        self._look_at(server)
        for job in lost:
            self._dispatch(self._scaled_back(self.came[job.number], server))

    def _scaled_back(self, job: Held, server: Server) -> Held:
        """A job that comes back from a server: the engine has only the size and the estimate at its speed, and rounds."""
        speed = float(self.fleet.speed[server.kind, job.type])
        job.size, job.estimate = job.size / speed * speed, job.estimate / speed * speed
        return job

    def _repair(self, server: Server) -> None:
        server.up, server.switch = True, self.now + exponential(self.fails, 1.0 / self.policy.failures[server.kind, 0])
        self._begin(server)
        self._look_at(server)
        if not self.policy.dispatch.record.central:
            mine = sorted((job for job in self.held if job.type in server.types), key=lambda job: (job.queue, job.number))
            for job in mine:
                self.held.remove(job)
                self._dispatch(job)
        self._take(server)

    def _write(self, event: int, server: Server, job: Job) -> None:
        self.log.append((self.now, event, server.types[job.kind], self.came[job.number].number, server.number))

    # ------------------------------------------------------------------------------------------------ rules

    def _queues(self) -> list[tuple[int, tuple[int, ...], float]]:
        """Type, kinds and part of each queue."""
        pinned = [] if self.policy.pinned is None else [q for q in self.policy.pinned.queues(self.fleet) if q.share > 0]
        found = []
        for i in range(len(self.fleet.names)):
            own = [(i, q.kinds, q.share) for q in pinned if q.type == i]
            found += own or [(i, tuple(np.flatnonzero(self.policy.runs[:, i])), 1.0)]
        return found

    def _queue(self, i: int) -> int:
        own = [q for q, (type_, _, _) in enumerate(self.queues) if type_ == i]
        if len(own) == 1:
            return own[0]
        draw, total = uniform(self.random), 0.0
        for q in own[:-1]:
            total += self.queues[q][2]
            if draw < total:
                return q
        return own[-1]

    def _random(self, i: int, q: int) -> int:
        if not any(server.runs(i) for server in self.servers):
            return -1
        for _ in range(1000):
            draw, total = uniform(self.random), 0.0
            kinds = [c for c in range(len(self.fleet.kinds)) if self.policy.runs[c, i]]
            kind = kinds[-1] if not self.policy.runs[len(self.fleet.kinds) - 1, i] else len(self.fleet.kinds) - 1
            for c in range(len(self.fleet.kinds)):
                total += float(self.policy.split[c, i])
                if draw < total and c in kinds:
                    kind = c
                    break
            mine = [server for server in self.servers if server.kind == kind]
            if not any(server.runs(i) for server in mine):
                continue
            while True:
                server = mine[min(int(uniform(self.random) * len(mine)), len(mine) - 1)]
                if server.up:
                    return server.number
        return self._any(i)  # its parts go to kinds that have all failed

    def _round_robin(self, i: int, q: int) -> int:
        order = [*self.servers[self.turn[i] :], *self.servers[: self.turn[i]]]
        found = next((server.number for server in order if server.runs(i)), -1)
        if found >= 0:
            self.turn[i] = (found + 1) % len(self.servers)
        return found

    def _length(self, server: Server, i: int) -> float:
        speed = float(self.fleet.speed[server.kind, i])
        return (server.count(i) + 1) / speed + len(server.all_types) * 2.0**-20 if server.runs(i) else math.inf

    def _key(self, server: Server, i: int, q: int) -> float:
        """What the rule compares."""
        rule = self.policy.dispatch.rule
        if not server.runs(i):
            return math.inf
        if rule in ("jsq", "power-of-d"):
            return self._length(server, i)
        if rule == "best-fit":
            return float(server.left_over(i)) if server.has_room(i) else 1.0 + self._length(server, i)
        if rule == "least-wait":
            runs = 1 / float(server.system.service_rate[server.types.index(i)])
            return runs + (0.0 if server.has_room(i) else server.work()) + server.work() * 2.0**-20
        if not self._takes(server, i, q):
            return math.inf
        return 1 / float(self.fleet.speed[server.kind, i]) + float(server.left_over(i)) * 2.0**-20 if rule == "pull" else 0.0

    def _takes(self, server: Server, i: int, q: int) -> bool:
        if self.policy.dispatch.rule == "pinned":
            return server.up and server.kind in self.queues[q][1] and server.count(i) < server.slots[i]
        return server.runs(i) and server.has_room(i)

    def _look(self) -> None:
        self.seen = [{q: self._key(server, i, q) for q, (i, _, _) in enumerate(self.queues)} for server in self.servers]

    def _look_at(self, server: Server) -> None:
        self.seen[server.number] = {q: self._key(server, i, q) for q, (i, _, _) in enumerate(self.queues)}

    def _keys(self, i: int, q: int) -> list[float]:
        if self.policy.dispatch.staleness == 0:
            return [self._key(server, i, q) for server in self.servers]
        return [seen[q] for seen in self.seen]

    def _smallest(self, i: int, q: int) -> int:
        keys = self._keys(i, q)
        least = min(keys)
        if least == math.inf:
            return -1
        near = [m for m, key in enumerate(keys) if key <= least + _ROUNDING]
        said = self._said()
        return said if said in near and keys[said] != keys[near[0]] else near[0]

    _jsq = _best_fit = _least_wait = _pull = _pinned = _smallest

    def _any(self, i: int) -> int:
        while True:
            m = min(int(uniform(self.random) * len(self.servers)), len(self.servers) - 1)
            if self.servers[m].runs(i):
                return m

    def _power_of_d(self, i: int, q: int) -> int:
        if not any(server.runs(i) for server in self.servers):
            return -1
        keys, chosen = self._keys(i, q), -1
        for _ in range(self.policy.dispatch.d):
            m = self._any(i)
            if chosen < 0 or keys[m] < keys[chosen]:
                chosen = m
        return chosen


def with_stream(decide: one.Decide, stream: np.ndarray) -> one.Decide:
    """A plain policy that draws from this stream, if it draws."""
    if hasattr(decide, "random"):
        decide.random = stream
    return decide


def engine_log(
    policy: rota.simulation.FleetPolicy, given: Given, seed: int = 0, *, cuts: Sequence[int] = (), batch_jobs: int = 4
) -> list[Entry]:
    """The log of the compiled engine until no job is left, its laws checked after every event; jobs come in chunks cut at `cuts`."""
    run = FleetRun(policy, np.random.SeedSequence(seed), batch_jobs=batch_jobs, log_jobs=10**9, check=True)
    edges = [0, *sorted(set(cuts)), len(given.jobs)]
    for begin, end in itertools.pairwise(edges):
        run.feed(Chunk(*(column[begin:end] for column in given.columns())), drain=end == len(given.jobs))
    assert run.present == 0
    return [(time, int(kind), int(i), int(job), int(m)) for time, kind, i, job, m in np.concatenate(run.log).tolist()]


def assert_agrees(policy: rota.simulation.FleetPolicy, given: Given, seed: int = 0, cuts: Sequence[int] = ()) -> list[Entry]:
    """The engine and the reference write the same log, bit by bit; it is returned."""
    log = engine_log(policy, given, seed, cuts=cuts)
    expected = FleetReference(policy, np.random.SeedSequence(seed), guide=log).simulate(given)
    for k, (have, want) in enumerate(itertools.zip_longest(log, expected)):
        assert have == want, f"entry {k} is {have}, should be {want}, after {log[max(k - 6, 0) : k]}"
    return log
