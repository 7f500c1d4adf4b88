"""The jobs of a scheduler: the state of each, its place in the arrays of the policy, and what it holds of the server.

In each type the running jobs are the oldest, then come those that have started and do not run, then those that wait. Jobs that no type
encloses (`OWN`) have no place: the policy does not know them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rota.arrays import Int
from rota.decide import State
from rota.decide.job_lists import link, link_behind, unlink
from rota.live.jobs import JobState
from rota.live.scheduling.own_jobs import OwnJobs
from rota.simulation.server import new_places, with_places

__all__ = ["OWN", "Entry", "JobTable", "list_order"]

OWN = -1  # the type of a job that no type encloses
_PLACES = 256  # for jobs, to begin with
_IN_SERVICE = (JobState.RUNNING, JobState.STOPPING)


@dataclass(slots=True)
class Entry:
    """A job as the scheduler sees it: what it needs, its place in the queue, and what it holds."""

    id: int
    kind: int
    demand: Int  # (R,) in units
    estimate: float
    sequence: int
    place: int = -1  # in the arrays of the state; −1 for an own job
    state: JobState = JobState.WAITING  # WAITING, RUNNING, SUSPENDED or STOPPING
    ending: bool = False  # its user cancelled it: it cannot be suspended any more, and does not start again


def list_order(state: str, sequence: int) -> tuple[int, int]:
    """Sorts the jobs of a type: those that run, those that have started and do not run, those that wait; each from old to new."""
    return (0 if state == JobState.RUNNING else 2 if state == JobState.WAITING else 1), sequence


class JobTable:
    """The jobs on a server. `state` is what the policy is shown; it is replaced by a larger one when places run out."""

    def __init__(self, state: State, kept_when_suspended: Int) -> None:
        self.state = with_places(state, new_places(_PLACES))
        self.kept_when_suspended = kept_when_suspended  # (R,) 1 for resources that a suspended job does not give back
        self.jobs: dict[int, Entry] = {}
        self.own: dict[int, Entry] = {}  # in order of arrival
        self.own_ready = OwnJobs(len(state.capacity))  # the own jobs that start as soon as they fit
        self.own_held: Int = np.zeros_like(state.capacity)  # by all own jobs
        self.by_place: dict[int, Entry] = {}
        self._unused = list(range(_PLACES - 1, -1, -1))

    def add(self, id: int, kind: int, estimate: float, demand: Int, sequence: int, state: JobState) -> Entry:
        """A job that joins its type behind those that are there."""
        job = Entry(id, kind, demand, estimate, sequence)
        self.jobs[id] = job
        if kind == OWN:
            self.own[id] = job
            self.own_ready.add(id, sequence, demand)
        else:
            self._place(job)
        if state != JobState.WAITING:
            self.hold(job, state)
        return job

    def take(self, id: int) -> None:
        """Takes a job off."""
        job = self.jobs.pop(id)
        if job.state == JobState.RUNNING and job.kind != OWN:
            self.state.running[job.kind] -= 1
        held = self.held(job, job.state)
        self.state.free[:] += held
        if job.kind == OWN:
            self.own_held -= held
            self.own_ready.discard(id)
            del self.own[id]
            return
        unlink(self.state, job.place, job.kind)
        self.state.system[job.kind] -= 1
        del self.by_place[job.place]
        self._unused.append(job.place)

    def held(self, job: Entry, state: str) -> Int:
        """The units (R,) that a job holds in a state."""
        if state in _IN_SERVICE:
            return job.demand
        return job.demand * self.kept_when_suspended if state == JobState.SUSPENDED else 0 * job.demand

    def hold(self, job: Entry, state: JobState) -> None:
        """Changes the state of a job. Callers ensure that the running jobs of a type are its oldest."""
        s = self.state
        before, after = self.held(job, job.state), self.held(job, state)
        s.free[:] += before - after
        if job.kind == OWN:
            self.own_held += after - before
            self.own_ready.discard(job.id)
            if state in (JobState.WAITING, JobState.SUSPENDED):
                self.own_ready.add(job.id, job.sequence, job.demand - after)
        elif (job.state == JobState.RUNNING) != (state == JobState.RUNNING):
            if state == JobState.RUNNING:
                s.running[job.kind] += 1
                s.first_waiting[job.kind] = s.newer[job.place]
            else:
                s.running[job.kind] -= 1
                s.first_waiting[job.kind] = job.place
        job.state = state

    def wait_again(self, job: Entry) -> None:
        """A job that was to stop waits again: behind the suspended ones of its type, which resume first, and before the younger."""
        self.hold(job, JobState.WAITING)
        if job.kind == OWN:
            return
        s, here = self.state, self.by_place
        last, place = job.place, int(s.newer[job.place])
        while place >= 0 and here[place].state != JobState.WAITING:
            last, place = place if here[place].state == JobState.SUSPENDED else last, int(s.newer[place])
        if last == job.place:
            return
        while (place := int(s.newer[last])) >= 0 and here[place].state == JobState.WAITING and here[place].sequence < job.sequence:
            last = place
        unlink(s, job.place, job.kind)
        link_behind(s, job.place, job.kind, last)

    def has_room(self, job: Entry) -> bool:
        """Whether a job can run beside what is held; where suspended jobs keep more than there is, one of them beside those in service."""
        s, need = self.state, job.demand - self.held(job, job.state)
        short = need > s.free
        if not short.any():
            return True
        if job.state != JobState.SUSPENDED or (need[short] > 0).any():
            return False
        in_service = [one.demand for one in self.jobs.values() if one.state in _IN_SERVICE]
        return bool((sum(in_service, job.demand) <= s.capacity)[short].all())

    def fits(self, want: Int, *, suspends: bool) -> bool:
        """Whether so many jobs of each type fit beside what own and suspended jobs hold; what stopping jobs hold counts as free.

        `suspends`: running jobs beyond `want` would be suspended.
        """
        s = self.state
        used = want @ s.demand + self.own_held
        for i in range(len(want)):
            place, rank = s.oldest[i], 0
            while place >= 0:
                job = self.by_place[int(place)]
                if rank >= want[i]:
                    if job.state == JobState.WAITING:
                        break  # the started ones are the oldest
                    if job.state == JobState.SUSPENDED or (job.state == JobState.RUNNING and suspends and not job.ending):
                        used = used + job.demand * self.kept_when_suspended
                place, rank = s.newer[place], rank + 1
        return bool((used <= s.capacity).all())

    def waiting(self, kind: int) -> Iterable[Entry]:
        """The jobs of a type that do not run, oldest first."""
        if kind == OWN:
            yield from (job for job in self.own.values() if job.state != JobState.RUNNING)
            return
        place = int(self.state.first_waiting[kind])
        while place >= 0:
            yield self.by_place[place]
            place = int(self.state.newer[place])

    def youngest_running(self, kind: int) -> Entry:
        """The youngest running job of a type that has one."""
        s = self.state
        return self.by_place[int(s.older[s.first_waiting[kind]] if s.first_waiting[kind] >= 0 else s.newest[kind])]

    def copy(self) -> JobTable:
        """An independent table in the same state; the numbers of the policy, which never change, are shared."""
        twin = copy.copy(self)
        state = State._make(part if part is self.state.data else part.copy() for part in self.state)
        twin.state = _moved(state, len(state.newer))
        twin.jobs = {
            job.id: Entry(job.id, job.kind, job.demand, job.estimate, job.sequence, job.place, job.state, job.ending)
            for job in self.jobs.values()
        }
        twin.own = {id: twin.jobs[id] for id in self.own}
        twin.own_ready, twin.own_held = self.own_ready.copy(), self.own_held.copy()
        twin.by_place = {place: twin.jobs[job.id] for place, job in self.by_place.items()}
        twin._unused = self._unused.copy()
        return twin

    def _place(self, job: Entry) -> None:
        if not self._unused:
            have = len(self.state.newer)
            self.state = _moved(self.state, 2 * have)
            self._unused += range(2 * have - 1, have - 1, -1)
        s, job.place = self.state, self._unused.pop()
        self.by_place[job.place] = job
        s.sequence[job.place], s.estimate[job.place] = job.sequence, job.estimate
        link(s, job.place, job.kind)
        s.system[job.kind] += 1


def _moved(state: State, places: int) -> State:
    """The state with its jobs in new places. These are as in the simulator, so that the machine code of decisions is the same."""
    new = with_places(state, new_places(places))
    for name in ("newer", "older", "sequence", "finish", "estimate"):
        getattr(new, name)[: len(state.newer)] = getattr(state, name)
    return new
