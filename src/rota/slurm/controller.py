"""The controller: from what a cluster looks like to what should be done. It has no clock, and starts no command.

Each cycle it gets a snapshot. Every node that is at least as large as the server of the plan has a scheduler of its own, the one of
`rota serve`, with the decision functions of the simulator. What has happened since the last snapshot goes to these schedulers as events:
jobs have arrived (a dispatch rule says at which node), have ended, have stopped. The actions are then the difference between what the
schedulers want and what the snapshot shows. So an action that came to nothing is simply asked for again, and a controller that starts in
the middle of everything needs no notes of an earlier one: what others hold and what runs is all in the snapshot.

If something happened that is no event of a scheduler (a person suspended a job, a node came back), the scheduler of that node is rebuilt
from the snapshot; the policy keeps its place in the rota.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from rota.arrays import Array
from rota.decide import seeded
from rota.live.jobs import JobState
from rota.live.scheduling.job_class import smallest_type
from rota.policy import PlanFile
from rota.slurm.amounts import in_plan_units, room_beyond_plan
from rota.slurm.dispatch import DispatchRule, Nodes, best_fit, fits_at_once
from rota.slurm.marks import MARK, Standing, Where, standing_of, why_not_typed
from rota.slurm.node_queue import NodeQueue, OnNode
from rota.slurm.times import Times
from rota.slurm.world import Action, Amounts, Do, Node, SlurmJob, Snapshot, in_order

__all__ = ["Controller"]

_ON_NODE = (Where.STARTING, Where.RUNNING, Where.SUSPENDED)
_REST_S = 5.0  # after a requeue: Slurm has revoked the credential of the job, and a start in the same seconds fails for good
_TRIES = 3  # releases of a job that came to nothing, until it is left to Slurm


@dataclass
class _Tracked:
    """A job of Rota's that has a type."""

    number: int
    kind: int
    node: str = ""  # whose queue it is in
    released: float | None = None  # when it was released last, in seconds since 1970
    tries: int = 0
    started: bool = False  # whether it was seen running
    restarts: int = 0  # that were seen
    rests_until: float = 0.0  # it was requeued, and must not start before, in seconds since 1970


@dataclass
class _Seen:
    """A marked job in the present snapshot."""

    job: SlurmJob
    at: Standing


class Controller:
    """Decides for the marked jobs of one partition (None: of all partitions)."""

    def __init__(
        self,
        plan: PlanFile,
        *,
        partition: str | None = None,
        seed: int = 0,
        dispatch: DispatchRule = best_fit,
        patience_s: float = 30.0,
        notes: int = 20,
    ) -> None:
        self.plan, self.system, self.partition = plan, plan.system, partition
        self._dispatch, self._patience_s, self._notes = dispatch, patience_s, notes
        self._seeds = np.random.SeedSequence(seed)
        self._begin: float | None = None
        self.queues: dict[str, NodeQueue] = {}
        self.tracked: dict[str, _Tracked] = {}
        self._names: dict[int, str] = {}  # by number
        self._kinds: dict[tuple[object, ...], int | None] = {}  # by what is asked for
        self._last = 0
        self.times = Times()
        # Raises where the policy does not suit the system, and compiles its decisions, before anything is done.
        NodeQueue("", plan, seeded(self._seeds)).rebuild([OnNode(1, 0, JobState.WAITING)], 0.0)
        demand = self.system.demand / self.system.capacity
        self._share: Array = demand.max(axis=1) / self.system.service_rate  # the work of a job: its largest share × its mean size

    # ------------------------------------------------------------------------------------------------------------ a cycle

    def handle(self, snapshot: Snapshot, now: float) -> list[Action]:
        """What to do now, in seconds since 1970."""
        self._begin = now if self._begin is None else self._begin
        t = (now - self._begin) / self.plan.live.unit_s
        seen, actions = self._look(snapshot, now)
        working = self._working(snapshot.nodes)
        actions += self._withdraw(seen, working, now)
        again = self._new_queues(working)
        for queue in self.queues.values():
            again |= self._reconcile(queue, seen, t)
        again |= self._adopt(seen)
        for name in again:
            self.queues[name].rebuild(self._jobs_of(name, seen, now), t)
        self._note_others(working, seen, t)
        self._dispatch_all(seen, t)
        for queue in self.queues.values():
            queue.scheduler.tick(t)
        self._move(t)
        return actions + self._differences(seen, now)

    @property
    def next_wake(self) -> float:
        """When a policy wants to be asked again, in seconds since 1970; infinite if none does."""
        wake = min((queue.scheduler.wake for queue in self.queues.values()), default=np.inf)
        return (self._begin or 0.0) + wake * self.plan.live.unit_s

    # ------------------------------------------------------------------------------------------------------------ looking

    def _look(self, snapshot: Snapshot, now: float) -> tuple[dict[str, _Seen], list[Action]]:
        """The marked jobs that have a type, and what to do about those that have none. Forgets jobs that are gone."""
        seen, actions = dict[str, _Seen](), list[Action]()
        marked = [(job, standing_of(job, self.partition)) for job in snapshot.jobs]
        for job, at in sorted(marked, key=lambda one: in_order(one[0])):
            if at.where == Where.FOREIGN:
                continue
            if at.where == Where.SUSPENDED and not job.comment.startswith(f"{MARK}:suspended"):
                continue  # a person suspended it: what it keeps counts as held by others
            kind = self._kind(job.asks)
            if at.where == Where.WAITING and (why := why_not_typed(job) or ("no-type" if kind is None else "")):
                actions.append(Action(Do.LEAVE, job.id, note=f"{MARK}:left:{why}", again=job.restarts > 0))
                continue
            if kind is None:
                continue
            if job.id not in self.tracked:
                self._last += 1
                self.tracked[job.id] = _Tracked(self._last, kind)
                self._names[self._last] = job.id
            known = self.tracked[job.id]
            if job.restarts > known.restarts:
                known.restarts, known.rests_until = job.restarts, now + _REST_S
            if at.where == Where.WAITING and now < known.rests_until:
                at = Standing(Where.ENDING)
            seen[job.id] = _Seen(job, at)
        return seen, actions

    def _kind(self, asks: Amounts) -> int | None:
        """The smallest type that encloses what a job asks for; None if none does."""
        key = (asks.cpus, asks.memory_mb, tuple(asks.gres.items()))
        if key not in self._kinds:
            self._kinds[key] = smallest_type(in_plan_units(asks, self.system.resources), self.system)
        return self._kinds[key]

    def _working(self, nodes: Iterable[Node]) -> dict[str, Node]:
        """The nodes on which jobs can be started now."""
        slack = 1e-9 * self.system.capacity
        return {
            node.name: node
            for node in nodes
            if node.works
            and (self.partition is None or self.partition in node.partitions)
            and (room_beyond_plan(node, self.system) >= -slack).all()
        }

    def _new_queues(self, working: Mapping[str, Node]) -> set[str]:
        """Queues for nodes that have come; those of nodes that have gone are dropped, and their jobs go elsewhere."""
        for name in [name for name in self.queues if name not in working]:
            del self.queues[name]
            for job in self.tracked.values():
                if job.node == name:
                    job.node = ""
        new = sorted(set(working) - set(self.queues), key=_natural)
        for name in new:
            self.queues[name] = NodeQueue(name, self.plan, seeded(self._seeds.spawn(1)[0]))
        return set(new)

    # ------------------------------------------------------------------------------------------------------------ events

    def _withdraw(self, seen: dict[str, _Seen], working: Mapping[str, Node], now: float) -> list[Action]:
        """Takes releases back that come to nothing: the node is gone, Slurm makes a requeued job wait, or it does not start in time."""
        actions = list[Action]()
        for id, one in seen.items():
            if one.at.where != Where.STARTING:
                continue
            job = self.tracked[id]
            job.released = now if job.released is None else job.released
            late = now - job.released > self._patience_s
            if one.at.node in working and not late and not (one.job.restarts and one.job.reason == "BeginTime" and job.started):
                continue
            job.tries += late
            job.released, job.started = None, False
            if job.tries >= _TRIES:
                why = f"{MARK}:left:did-not-start-on-{one.at.node}"
                actions.append(Action(Do.LEAVE, id, note=why, again=one.job.restarts > 0))
            else:
                actions.append(Action(Do.HOLD, id, note=self._waits(job)))
            one.at = Standing(Where.FOREIGN)  # in this cycle; in the next one it waits
        return actions

    def _reconcile(self, queue: NodeQueue, seen: Mapping[str, _Seen], t: float) -> set[str]:
        """Tells a scheduler what has happened to its jobs; its name if that is not possible by events, and it must be rebuilt."""
        again = set[str]()
        for number, state in queue.states().items():
            id = self._names[number]
            one = seen.get(id)
            where = Where.FOREIGN if one is None else one.at.where
            elsewhere = one is not None and where in _ON_NODE and one.at.node != queue.name
            if where == Where.FOREIGN or elsewhere or (where == Where.ENDING and state != JobState.STOPPING):
                queue.scheduler.leave(number, t)
                if not elsewhere:
                    self._forget(id, seen)
                else:
                    self.tracked[id].node = ""
            elif state == JobState.STOPPING and where == Where.WAITING:
                queue.scheduler.stopped(number, t)
            elif (state == JobState.WAITING and where in _ON_NODE) or (state == JobState.SUSPENDED and where == Where.WAITING):
                again.add(queue.name)
            elif state == JobState.RUNNING and where == Where.WAITING and self.tracked[id].started:
                again.add(queue.name)  # it ran, and a person requeued it
        return again

    def _forget(self, id: str, seen: Mapping[str, _Seen]) -> None:
        job = self.tracked[id]
        job.node = ""
        if id not in seen:
            del self.tracked[id], self._names[job.number]

    def _adopt(self, seen: Mapping[str, _Seen]) -> set[str]:
        """Jobs that Rota released and that no scheduler has: those of an earlier controller, and of nodes that have come back."""
        again = set[str]()
        for id, one in seen.items():
            job = self.tracked[id]
            if one.at.where in _ON_NODE and job.node != one.at.node and one.at.node in self.queues:
                job.node = one.at.node
                again.add(job.node)
        for id in [id for id, job in self.tracked.items() if not job.node and id not in seen]:
            del self._names[self.tracked.pop(id).number]  # it ended while no scheduler had it
        return again

    def _jobs_of(self, name: str, seen: Mapping[str, _Seen], now: float) -> list[OnNode]:
        """The jobs of a node as the snapshot has them."""
        states = {Where.WAITING: JobState.WAITING, Where.SUSPENDED: JobState.SUSPENDED, Where.ENDING: JobState.STOPPING}
        found = list[OnNode]()
        for id, job in self.tracked.items():
            if job.node == name:
                one = seen[id]
                served = 0.0 if one.at.where != Where.RUNNING or one.job.begins is None else max(now - one.job.begins, 0.0)
                state = states.get(one.at.where, JobState.RUNNING)
                found.append(OnNode(job.number, job.kind, state, served / self.plan.live.unit_s))
        return found

    def _note_others(self, working: Mapping[str, Node], seen: Mapping[str, _Seen], t: float) -> None:
        """What jobs that are not Rota's hold on each node: all that is allocated there, without what Rota's own jobs have.

        A job that Rota has just released may be allocated already or not, so there are two bounds.
        """
        R = len(self.system.resources)
        sure, perhaps = ({name: np.zeros(R) for name in self.queues} for _ in range(2))
        for id, one in seen.items():
            name = self.tracked[id].node
            if name in self.queues and one.at.where != Where.WAITING:
                asks = Amounts(0, one.job.asks.memory_mb, one.job.asks.gres) if one.at.where == Where.SUSPENDED else one.job.asks
                amount = in_plan_units(asks, self.system.resources)
                perhaps[name] += amount
                if one.at.where in (Where.RUNNING, Where.SUSPENDED):
                    sure[name] += amount
        for name, queue in self.queues.items():
            node = working[name]
            allocated = in_plan_units(node.used, self.system.resources) - room_beyond_plan(node, self.system)
            queue.set_others(allocated - perhaps[name], allocated - sure[name], t)

    # ------------------------------------------------------------------------------------------------------------ dispatch

    def _nodes(self) -> tuple[list[NodeQueue], Nodes]:
        """The nodes as a dispatch rule sees them."""
        queues = list(self.queues.values())
        states = [queue.scheduler.state for queue in queues]
        present = np.array([state.system for state in states])
        return queues, Nodes(
            free=np.array([state.free for state in states]),
            demand=states[0].demand,
            capacity=states[0].capacity,
            waiting=np.array([queue.waiting for queue in queues]),
            work=present @ self._share,
        )

    def _dispatch_all(self, seen: Mapping[str, _Seen], t: float) -> None:
        """Waiting jobs that are in no queue join one, the oldest first."""
        homeless = [id for id, one in seen.items() if one.at.where == Where.WAITING and not self.tracked[id].node]
        if not homeless or not self.queues:
            return
        queues, nodes = self._nodes()
        for id in homeless:
            job = self.tracked[id]
            n = self._dispatch(nodes, job.kind)
            job.node = queues[n].name
            queues[n].scheduler.arrive(job.number, job.kind, t)
            self._renew(nodes, queues, n)

    def _renew(self, nodes: Nodes, queues: list[NodeQueue], n: int) -> None:
        state = queues[n].scheduler.state
        nodes.free[n], nodes.waiting[n] = state.free, queues[n].waiting
        nodes.work[n] = state.system @ self._share

    def _move(self, t: float) -> None:
        """A job that waits where it does not fit moves to a node where it fits at once, if there is one."""
        if len(self.queues) < 2:
            return
        queues, nodes = self._nodes()
        for kind in range(len(self.system.names)):
            for _ in range(len(queues)):
                full = (nodes.free < nodes.demand[kind]).any(axis=1) & (nodes.waiting[:, kind] > 0)
                if not full.any() or not fits_at_once(nodes, kind).any():
                    break
                source, target = int(np.argmax(np.where(full, nodes.waiting[:, kind], -1))), self._dispatch(nodes, kind)
                if target == source:
                    break
                number = next(
                    (n for n in queues[source].scheduler.waiting(kind) if queues[source].scheduler.jobs[n].state == JobState.WAITING), None
                )
                if number is None:
                    break
                queues[source].scheduler.leave(number, t)
                queues[target].scheduler.arrive(number, kind, t)
                self.tracked[self._names[number]].node = queues[target].name
                for n in (source, target):
                    self._renew(nodes, queues, n)

    # ------------------------------------------------------------------------------------------------------------ what to do

    def _differences(self, seen: Mapping[str, _Seen], now: float) -> list[Action]:
        """What the schedulers want and the snapshot does not show."""
        actions, notes = list[Action](), self._notes
        for queue in self.queues.values():
            for number, state in queue.states().items():
                id = self._names[number]
                one, job = seen[id], self.tracked[id]
                if one.at.where == Where.RUNNING and not job.started:
                    self.times.note_start(one.job, job.released)
                    job.started, job.tries = True, 0
                if (action := self._difference(queue, state, one, now)) is not None:
                    actions.append(action)
                elif state == JobState.WAITING and one.job.comment == MARK and notes > 0:
                    notes -= 1
                    actions.append(Action(Do.NOTE, id, note=self._waits(job)))
        return actions

    def _difference(self, queue: NodeQueue, state: JobState, one: _Seen, now: float) -> Action | None:
        id, job, where = one.job.id, self.tracked[one.job.id], one.at.where
        if state == JobState.RUNNING and where == Where.WAITING:
            job.released, job.started = now, False
            return Action(Do.RELEASE, id, queue.name, f"{MARK}:on:{queue.name}", one.job.restarts > 0)
        if state == JobState.RUNNING and where == Where.SUSPENDED:
            return Action(Do.RESUME, id, queue.name, f"{MARK}:on:{queue.name}")
        if state in (JobState.SUSPENDED, JobState.STOPPING) and where in (Where.WAITING, Where.STARTING):
            queue.scheduler.never_began(job.number)  # it was released a moment ago: nothing is lost
            return Action(Do.HOLD, id, note=self._waits(job)) if where == Where.STARTING else None
        if state == JobState.SUSPENDED and where == Where.RUNNING:
            return Action(Do.SUSPEND, id, queue.name, f"{MARK}:suspended:{queue.name}")
        if state == JobState.STOPPING and where == Where.RUNNING:
            return Action(Do.REQUEUE, id, queue.name, self._waits(job))
        return None

    def _waits(self, job: _Tracked) -> str:
        return f"{MARK}:waits:{re.sub(r'[^A-Za-z0-9_.+-]', '-', self.system.names[job.kind])}"


def _natural(name: str) -> tuple[str, int]:
    """n2 before n10."""
    digits = name[len(name.rstrip("0123456789")) :]
    return name[: len(name) - len(digits)], int(digits or 0)
