"""The controller: from what a cluster looks like to what should be done. It has no clock, and starts no command.

Each cycle it gets a snapshot. Every node that is at least as large as a server of the plan has a scheduler of its own, the one of
`rota serve`, with the decision functions of the simulator and the policy of its kind. What has happened since the last snapshot goes to
these schedulers as events: jobs have arrived (a dispatch rule says at which node), have ended, have stopped. The actions are then the
difference between what the schedulers want and what the snapshot shows. So an action that came to nothing is simply asked for again, and a
controller that starts in the middle of everything needs no notes of an earlier one: what others hold and what runs is all in the snapshot.

If something happened that is no event of a scheduler (a person suspended a job, a node came back), the scheduler of that node is rebuilt
from the snapshot; the policy keeps its place in the rota.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rota.decide import seeded
from rota.live.jobs import JobState
from rota.policy import PlanFile
from rota.slurm.amounts import in_plan_units, room_beyond_plan
from rota.slurm.cluster_plan import AnyPlan, ClusterPlan, cluster_plan
from rota.slurm.dispatch import BestFit, Dispatcher
from rota.slurm.fleet_rule import FleetRule
from rota.slurm.marks import MARK, Standing, Where, partition_stopped, standing_of, why_not_typed
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
    queue: int  # in which it waits as long as no node has it
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
        plan: AnyPlan | ClusterPlan,
        *,
        partition: str | None = None,
        seed: int = 0,
        patience_s: float = 30.0,
        notes: int = 20,
    ) -> None:
        self.plan, self.partition = cluster_plan(plan), partition
        self._patience_s, self._notes = patience_s, notes
        self._seeds = np.random.SeedSequence(seed)
        self._begin: float | None = None
        self.queues: dict[str, NodeQueue] = {}
        self.tracked: dict[str, _Tracked] = {}
        self._names: dict[int, str] = {}  # by number
        self._types: dict[tuple[object, ...], int | None] = {}  # by what is asked for
        self._last = 0
        self.times = Times()
        self.ending = False  # whether a job of Rota's was about to end in the last snapshot, and still held its resources
        self._nodes: dict[str, int] = {}  # all nodes that could run jobs of the plan, and their kinds
        self._dispatcher: Dispatcher = BestFit(self.plan.types)
        # Raises where a policy does not suit its servers, and compiles its decisions, before anything is done.
        for kind in self.plan.kinds:
            if kind.plan is not None and (kind.types >= 0).any():
                NodeQueue("", kind.plan, seeded(self._seeds), kind.types).rebuild(
                    [OnNode(1, int(np.argmax(kind.types >= 0)), JobState.WAITING)], 0.0
                )

    @property
    def without_node(self) -> int:
        """Jobs that wait and are in the queue of no node."""
        return sum(not job.node for job in self.tracked.values())

    # ------------------------------------------------------------------------------------------------------------ a cycle

    def handle(self, snapshot: Snapshot, now: float) -> list[Action]:
        """What to do now, in seconds since 1970."""
        self._begin = now if self._begin is None else self._begin
        t = (now - self._begin) / self.plan.live.unit_s
        working = self._working(snapshot.nodes)
        seen, actions = self._look(snapshot, now)
        self.ending = any(one.at.where == Where.ENDING and one.job.state != "PD" for one in seen.values())
        actions += self._withdraw(seen, working, now)
        again = self._new_queues(working)
        for queue in self.queues.values():
            again |= self._reconcile(queue, seen, t)
        again |= self._adopt(seen)
        for name in again:
            self.queues[name].rebuild(self._jobs_of(name, seen, now), t)
        self._note_others(working, seen, t)
        self._dispatcher.look(self.queues)
        actions += self._dispatch_all(seen, t)
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
                self.tracked[job.id] = _Tracked(self._last, kind, self._dispatcher.queue_of(kind))
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
        if key not in self._types:
            self._types[key] = self.plan.type_of(asks)
        return self._types[key]

    def _working(self, nodes: Sequence[Node]) -> dict[str, Node]:
        """The nodes on which jobs can be started now. If nodes have come, gone or changed, the dispatch rule learns of it."""
        known = self.plan.nodes(nodes, self.partition)
        if known != self._nodes:
            self._nodes = known
            if self.plan.fleet is not None:
                by_kind = [sorted((name for name, c in known.items() if c == kind), key=_natural) for kind in range(len(self.plan.kinds))]
                self._dispatcher = FleetRule(self.plan.fleet, by_kind, self._seeds.spawn(1)[0])
        return {node.name: node for node in nodes if node.works and node.name in known}

    def _new_queues(self, working: Mapping[str, Node]) -> set[str]:
        """Queues for nodes that have come; those of nodes that have gone are dropped, and their jobs go elsewhere."""
        for name in [name for name, queue in self.queues.items() if name not in working or queue.plan is not self._plan_of(name)]:
            del self.queues[name]
            for job in self.tracked.values():
                if job.node == name:
                    job.node = ""
        new = sorted(set(working) - set(self.queues), key=_natural)
        for name in new:
            plan = self._plan_of(name)
            assert plan is not None  # nodes of kinds without one are not known
            self.queues[name] = NodeQueue(name, plan, seeded(self._seeds.spawn(1)[0]), self.plan.kinds[self._nodes[name]].types)
        return set(new)

    def _plan_of(self, name: str) -> PlanFile | None:
        return self.plan.kinds[self._nodes[name]].plan if name in self._nodes else None

    # ------------------------------------------------------------------------------------------------------------ events

    def _withdraw(self, seen: dict[str, _Seen], working: Mapping[str, Node], now: float) -> list[Action]:
        """Takes releases back that come to nothing: the node is gone, Slurm makes a requeued job wait, or it does not start in time."""
        actions = list[Action]()
        for id, one in seen.items():
            if one.at.where != Where.STARTING:
                continue
            job = self.tracked[id]
            job.released = now if job.released is None or partition_stopped(one.job) else job.released  # it starts when that is over
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
        sure, perhaps = ({name: np.zeros(len(queue.plan.system.resources)) for name, queue in self.queues.items()} for _ in range(2))
        for id, one in seen.items():
            name = self.tracked[id].node
            if name in self.queues and one.at.where != Where.WAITING:
                asks = Amounts(0, one.job.asks.memory_mb, one.job.asks.gres) if one.at.where == Where.SUSPENDED else one.job.asks
                amount = in_plan_units(asks, self.queues[name].plan.system.resources)
                perhaps[name] += amount
                if one.at.where in (Where.RUNNING, Where.SUSPENDED):
                    sure[name] += amount
        for name, queue in self.queues.items():
            node, system = working[name], queue.plan.system
            allocated = in_plan_units(node.used, system.resources) - room_beyond_plan(node, system)
            queue.set_others(allocated - perhaps[name], allocated - sure[name], t)

    # ------------------------------------------------------------------------------------------------------------ dispatch

    def _dispatch_all(self, seen: Mapping[str, _Seen], t: float) -> list[Action]:
        """Waiting jobs that are at no node join one, the oldest first, if the rule names one. What no node can take is left to Slurm."""
        full, hopeless = set[int](), dict[int, bool]()  # queues that the rule has no node for
        actions = list[Action]()
        for id, one in seen.items():
            job = self.tracked[id]
            if job.node or one.at.where != Where.WAITING:
                continue
            name = None if job.queue in full else self._dispatcher.choose(job.kind, job.queue)
            if name is not None:
                job.node = name
                self.queues[name].arrive(job.number, job.kind, t)
                self._dispatcher.changed(name)
                continue
            full.add(job.queue)
            if job.queue not in hopeless:
                hopeless[job.queue] = self._dispatcher.hopeless(job.kind, job.queue)
            if hopeless[job.queue]:
                actions.append(Action(Do.LEAVE, id, note=f"{MARK}:left:no-node-works-for-it", again=one.job.restarts > 0))
                one.at = Standing(Where.FOREIGN)
        return actions

    def _move(self, t: float) -> None:
        """A job that waits where it does not fit moves to a node where it fits at once, if the rule allows that."""
        self._dispatcher.look(self.queues)
        for kind in range(len(self.plan.types.names)):
            for _ in range(len(self.queues)):
                if (pair := self._dispatcher.better(kind)) is None:
                    break
                source, target = (self.queues[name] for name in pair)
                number = source.oldest_waiting(kind)
                if number is None:
                    break
                source.scheduler.leave(number, t)
                target.arrive(number, kind, t)
                self.tracked[self._names[number]].node = target.name
                for name in pair:
                    self._dispatcher.changed(name)

    # ------------------------------------------------------------------------------------------------------------ what to do

    def _differences(self, seen: Mapping[str, _Seen], now: float) -> list[Action]:
        """What the schedulers want and the snapshot does not show; and notes for some of the jobs that wait."""
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
        for id, one in seen.items():
            if notes <= 0:
                break
            if one.at.where == Where.WAITING and one.job.comment == MARK and not self.tracked[id].node:
                notes -= 1
                actions.append(Action(Do.NOTE, id, note=self._waits(self.tracked[id])))
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
        return f"{MARK}:waits:{re.sub(r'[^A-Za-z0-9_.+-]', '-', self.plan.types.names[job.kind])}"


def _natural(name: str) -> tuple[str, int]:
    """n2 before n10."""
    digits = name[len(name.rstrip("0123456789")) :]
    return name[: len(name) - len(digits)], int(digits or 0)
