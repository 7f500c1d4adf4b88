"""The planner: which plan is in use, what is learnt about the jobs, and when the plan is made anew.

Every minute the observed rates and sizes are compared with the plan's. If they drifted, a separate process designs the rota again. The new
plan comes into use, with its reason, without affecting running jobs, unless the plan in use is pinned.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rota.capacity import system_load
from rota.decide import seeded
from rota.errors import BadSpec, Problem, RotaError
from rota.live.clock import boot_now
from rota.live.errors import Damaged, DiskFull, NoSuchPlan, Refused
from rota.live.executor import Executor
from rota.live.messages import PlanVersion
from rota.live.outcome import Outcome
from rota.live.planning.learning import Estimate, Learner
from rota.live.planning.replan import Replanned, learned_system, replan
from rota.live.resources.allocation import Allocation
from rota.live.scheduling.scheduler import OWN, Scheduler
from rota.live.storage.database import Database, PlanRow
from rota.live.tasks import Tasks
from rota.model import System
from rota.model.live import OWN_TYPE
from rota.policy import PlanFile, plan_file_from_json, plan_file_to_json, policy_from_json, policy_name

__all__ = ["Planner", "choose_plan"]

_DAY_S = 86_400.0
_LOOK_S = 60.0
_LOAD_S = 10.0  # time limit for computing the load of a plan


def choose_plan(database: Database, given: PlanFile | None) -> tuple[int, PlanFile]:
    """The plan to run: the given one, if it differs from the one given last time; otherwise the one that was in use."""
    rows = {row.number: row for row in database.plans()}
    text = None if given is None else plan_file_to_json(given)
    if rows and (text is None or text == database.note("given")):
        row = database.plan_in_use()
        return row.number, _kept(row)
    if given is None or text is None:
        raise NoSuchPlan("this state directory has no plan yet: give one (from: rota plan FILE)")
    if rows and (live := database.live()):
        before = _kept(database.plan_in_use()).system.resources
        if before != given.system.resources:
            has, had = ", ".join(given.system.resources), ", ".join(before)
            raise Refused(f"{len(live)} jobs need {had}; this plan has {has}: let them end first, or give another directory")
    _check(given)
    number = max(rows, default=0) + 1
    database.write(plans=[_row(number, given, "given at the start")], notes={"plan": number, "given": text, "pinned": False})
    return number, given


def _kept(row: PlanRow) -> PlanFile:
    try:
        return plan_file_from_json(row.text)
    except RotaError as error:
        way_out = "put a copy of rota.db back, or, if no job is left in it, start with a plan file"
        raise Damaged(f"plan {row.number} of the database cannot be read: {error}; {way_out}") from error


def _check(plan: PlanFile) -> None:
    """Raises if a plan cannot be run, before it is stored as the one in use."""
    if OWN_TYPE in plan.system.names:
        raise BadSpec([Problem(f"jobs.{OWN_TYPE}", "is the name of jobs that no type encloses: give the type another name")])
    Scheduler(plan.system, plan.policy, seeded(np.random.SeedSequence(0)), stop=plan.live.preemption)
    Allocation(plan.system, plan.live)


def _row(number: int, plan: PlanFile, reason: str) -> PlanRow:
    load = plan.load if plan.load is not None else system_load(plan.system, time_limit_s=_LOAD_S).load
    return PlanRow(number, time.time(), plan_file_to_json(plan), policy_name(plan.policy), reason, load)


class Planner:
    """Learns from what happens to the jobs and keeps the plan up to date."""

    def __init__(self, executor: Executor, plan: PlanFile, log_line: Callable[[str], None]) -> None:
        self._executor, self._database, self._log_line = executor, executor.database, log_line
        self.plan, self.pinned, self.redesigning = plan, bool(executor.database.note("pinned")), False
        self.load, weights = self._weights(plan)  # the load of the plan
        self.learner = Learner(plan.system.names, *self._planned(plan), _window_s(plan), **weights, t=boot_now())
        self._served = np.full(len(plan.system.names), -1)
        self._came: dict[int, float] = {}  # when each job that was submitted to this daemon joined the queue
        self._overloaded = False
        self._tasks = Tasks(log_line)
        self._timer: asyncio.TimerHandle | None = None
        executor.on_outcome = self._observe

    def open(self) -> None:
        """Starts to check once a minute."""
        if (kept := self._database.note("learner")) is not None:
            try:
                self.learner.restore(kept, boot_now(), max(time.time() - kept.get("saved", time.time()), 0.0))
            except (AttributeError, KeyError, TypeError, ValueError):
                self._log_line("the saved estimates cannot be read: learning begins anew")
        self._later()
        if not self.plan.predicted:
            self._tasks.start(self._predict())

    async def close(self) -> None:
        """Stops learning; what was learnt is kept."""
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.close()
        self._keep()

    # ------------------------------------------------------------------------------------------------------------ learning

    @staticmethod
    def _planned(plan: PlanFile) -> tuple[list[float], list[float]]:
        """Rates per second and mean sizes in seconds."""
        unit_s = plan.live.unit_s
        return (plan.system.arrival_rate / unit_s).tolist(), (unit_s / plan.system.service_rate).tolist()

    @staticmethod
    def _weights(plan: PlanFile) -> tuple[float, dict[str, Any]]:
        """The load of a plan, and the weights for the learner."""
        sizes = plan.system.sizes
        cv = [max(size.moment(2) / size.moment(1) ** 2 - 1, 0.0) ** 0.5 for size in sizes]
        best = system_load(plan.system, time_limit_s=_LOAD_S)
        return best.load, {"size_cv": cv if np.isfinite(cv).all() else None, "slot_load": best.type_price.tolist()}

    def _observe(self, outcome: Outcome, boot: float) -> None:
        for what, job, kind, then in outcome.observations:
            if kind == OWN:
                continue
            if what == "arrived":
                self.learner.arrived(kind, then)
                self._came[job.id] = then
                continue
            came = self._came.pop(job.id, boot_now() - max(time.time() - job.submitted, 0.0))
            if what == "withdrawn":
                self.learner.withdrawn(kind, then, came)
            else:
                self.learner.finished(kind, then, job.served_s)
        if outcome.decisions_s:
            self._serving(boot)

    def _serving(self, boot: float) -> None:
        running = self._executor.lifecycle.scheduler.state.running
        for i in np.flatnonzero(running != self._served):
            self.learner.serving(int(i), boot, int(running[i]))
        self._served = running.copy()

    def estimate(self) -> Estimate:
        """The present estimates."""
        return self.learner.estimate(boot_now())

    def learnt(self) -> System:
        """The system with the estimated rates and sizes, drawn a little to the plan's."""
        return self._learnt(self.estimate())

    def _learnt(self, estimate: Estimate) -> System:
        return learned_system(self.plan.system, estimate.arrival_rate, estimate.mean_size_s, self.plan.live.unit_s)

    def _later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        self._later()
        self._keep()
        estimate = self.estimate()
        if bool(estimate.overload) != self._overloaded:
            self._overloaded = not self._overloaded
            self._log_line(estimate.overload or f"the load is no longer clearly above 1: {estimate.load:.3g}")
        if self.plan.live.learn and not self.pinned and not self.redesigning and (drift := self.learner.drift(estimate)) is not None:
            self._log_line(f"{drift.reason}: designing anew")
            self._tasks.start(self._redesign(estimate, drift.reason))

    def _keep(self) -> None:
        try:
            learnt = {"saved": time.time(), **self.learner.state(boot_now())}
            self._database.write(notes={"learner": learnt, "measures": self._executor.measures.state()})
        except DiskFull as error:
            self._log_line(str(error))

    # ------------------------------------------------------------------------------------------------------------ other plans

    async def _redesign(self, estimate: Estimate, reason: str) -> None:
        plan = self.plan
        system = self._learnt(estimate)
        new = await self._replanned(system, design=True)
        if new is None or self.pinned:
            return
        policy = policy_from_json(new.policy)
        better = f"{reason}{'; the policy stays' if new.kept else ''}{'; ' + new.remark if new.remark else ''}"
        number = max(row.number for row in self._database.plans()) + 1
        changed = PlanFile(system, policy, plan.live, new.load, _predicted(new))
        self._install(_row(number, changed, better), changed, pinned=self.pinned)

    async def _predict(self) -> None:
        plan = self.plan
        new = await self._replanned(plan.system, design=False)
        if new is not None and self.plan is plan:
            self.plan = replace(self.plan, predicted=_predicted(new))

    async def _replanned(self, system: Any, design: bool) -> Replanned | None:
        self.redesigning |= design
        try:
            return await replan(system, self.plan.policy, design=design)
        except RotaError as error:
            self._log_line(f"no new plan: {error}")
            return None
        except Exception as error:  # nothing was changed: the plan stays in use
            self._log_line(f"no new plan: {type(error).__name__}: {error}")
            return None
        finally:
            self.redesigning &= not design

    def _install(self, row: PlanRow, plan: PlanFile, *, pinned: bool, new: bool = True) -> None:
        """Switches to a plan and its settings. Running jobs are not affected. Steps that may fail come first: then the old plan stays."""
        random = seeded(np.random.SeedSequence([self._executor.seed, row.number, int(time.time())]))
        load, weights = self._weights(plan)
        self._database.write(plans=[row] if new else [], notes={"plan": row.number, "pinned": pinned})
        self.plan, self.pinned, self.load = plan, pinned, load
        if self.learner.window_s == _window_s(plan):
            self.learner.replan(*self._planned(plan), **weights)
        else:  # another window weights the past differently: learning begins anew
            self.learner = Learner(plan.system.names, *self._planned(plan), _window_s(plan), **weights, t=boot_now())
            self._served[:] = -1
        self._executor.install(plan, row.number, random, row.reason)
        self._log_line(f"plan {row.number} ({row.policy}, load {row.load:.3g}) in use: {row.reason}")

    def use(self, number: int) -> PlanVersion:
        """Returns to a plan and pins it: otherwise the next check could replace it."""
        row = next((row for row in self._database.plans() if row.number == number), None)
        if row is None:
            raise NoSuchPlan(f"there is no plan {number}")
        plan = plan_file_from_json(row.text)
        if _server(plan) != _server(self.plan):
            raise Refused(f"plan {number} is for another server or other types: start the scheduler with its file instead")
        _check(plan)
        self._install(replace(row, reason=f"chosen by hand (first: {row.reason})"), plan, pinned=True, new=False)
        return next(plan for plan in self.plans() if plan.number == number)

    def pin(self, pinned: bool) -> None:
        """Keeps the plan in use whatever is learnt, or lets it change again."""
        self._database.write(notes={"pinned": pinned})
        self.pinned = pinned

    def plans(self) -> list[PlanVersion]:
        """Every plan that was in use, oldest first."""
        return [self._version(row) for row in self._database.plans()]

    def _version(self, row: PlanRow) -> PlanVersion:
        plan = plan_file_from_json(row.text)
        in_use = row.number == self._executor.lifecycle.plan_number
        names, (rates, sizes) = plan.system.names, self._planned(plan)
        predicted = self.plan.predicted if in_use else plan.predicted
        return PlanVersion(
            number=row.number,
            time=row.time,
            policy=row.policy,
            reason=row.reason,
            load=row.load,
            in_use=in_use,
            pinned=in_use and self.pinned,
            arrival_rate=dict(zip(names, rates, strict=True)),
            mean_size_s=dict(zip(names, sizes, strict=True)),
            predicted_mean_response_s={name: row["mean"] * plan.live.unit_s for name, row in predicted.items() if "mean" in row},
        )


def _window_s(plan: PlanFile) -> float:
    """How far back learning looks."""
    return _DAY_S if plan.live.window is None else plan.live.window * plan.live.unit_s


def _server(plan: PlanFile) -> tuple[Any, ...]:
    """What two plans must have in common so that one can replace the other while jobs run."""
    system = plan.system
    return system.resources, system.capacity.tolist(), system.names, system.demand.tolist(), plan.live.unit_s


def _predicted(new: Replanned) -> dict[str, dict[str, float]]:
    """Data about each type."""
    return {
        name: {key: value for key in ("mean", "p50", "p95", "p99") if (value := getattr(row, key)) is not None}
        for name, row in new.predicted.items()
    }
