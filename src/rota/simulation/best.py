"""`find_best`: which of several policies is best, with jobs spent where they are needed.

All policies see the same jobs, in rounds: each round goes on to twice as many jobs as the one before, in the same runs, so no job is
simulated twice. After a round

    a policy is out       if in two rounds one after the other its queue grew, or its paired difference proved it worse than the best;
    a policy is level     if its difference and the interval together are within a small part of the mean of the best;
    the race is decided   if all but the best are out or level.

With P policies and at most L rounds there are at most (P − 1) L looks at which the truly best policy could be taken for worse. Each
interval is made so wide that all of them hold at once with 95 % confidence (Bonferroni), so the best one is dropped at most once in 20
races. Two rounds, because intervals of short runs are too narrow where queues change slowly.
Nothing depends on the clock: the same seed gives the same answer on every machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from rota.arguments import whole
from rota.display import html_lines, html_table, html_title, number
from rota.errors import BadSpec, Infeasible, Problem, RotaError
from rota.model import Fleet, System, Workload
from rota.policy import Policy, policy_name
from rota.simulation.arguments import checked_run
from rota.simulation.compare import Difference, labels_of
from rota.simulation.entry import Entry, mean_of
from rota.simulation.fleet.policy import Failures, PolicyOfFleet
from rota.simulation.named import as_workload
from rota.simulation.of_fleet import Rules, chosen_policies, server_for
from rota.simulation.playing import Playing, play_all
from rota.simulation.result import Result
from rota.simulation.simulate import JOBS as USUAL
from rota.simulation.simulate import enough_jobs
from rota.simulation.until import FIRST_LOOK

__all__ = ["Best", "Contender", "RaceProgress", "Verdict", "find_best"]

Verdict = Literal["best", "level", "open", "worse", "growing"]
_FIRST = FIRST_LOOK  # jobs of the first round
_BEGIN = 256  # jobs after which a policy that cannot run here has said so


@dataclass(frozen=True)
class RaceProgress:
    """How far a race has come: policies still in it, and jobs of each."""

    left: int
    jobs: int
    time_s: float


@dataclass(frozen=True, eq=False)
class Contender:
    """A policy of a race. `worse_by`: than `than`, on the same jobs; not a number where that is not known.

    `verdict`: "best", "level" with it, "open" if the jobs did not suffice to know, "worse", or "growing" if its queue kept growing.
    """

    label: str
    policy: Policy
    result: Result
    verdict: Verdict
    worse_by: Difference
    than: str


@dataclass(frozen=True, eq=False)
class Best:
    """Policies of a race, the best first. `decided`: all others are worse, growing, or level within `until` of the mean of the best.

    `winner` is None if no policy has a mean: the queue grew under every one, or too few jobs counted.
    """

    contenders: tuple[Contender, ...]
    errors: dict[str, str]
    decided: bool
    until: float
    rounds: int
    seed: int

    @property
    def winner(self) -> Contender | None:
        """The best one."""
        return next((one for one in self.contenders if one.verdict == "best"), None)

    @property
    def simulated(self) -> int:
        """Jobs that were simulated in all."""
        return sum(one.result.jobs for one in self.contenders)

    def no_winner(self) -> str:
        """Why there is none, if there is none."""
        if all(one.verdict == "growing" for one in self.contenders):
            return "the queue kept growing under every policy: it is unstable, or the jobs are too few to know"
        return "too few jobs for a mean: simulate more"

    def __repr__(self) -> str:
        if (best := self.winner) is None:
            return f"<Best of {len(self.contenders)}: {self.no_winner()}>"
        level = [one.label for one in self.contenders if one.verdict == "level"]
        unknown = [one.label for one in self.contenders if one.verdict == "open"]
        words = f", level with {', '.join(level)}" if level else ""
        words += f"; not decided against {', '.join(unknown)}" if unknown else ""
        return f"<Best of {len(self.contenders)}: {best.label}{words}, {self.simulated:,} jobs in all>"

    def _repr_html_(self) -> str:
        rows = [
            (
                *(one.label, one.verdict, f"{one.result.jobs:,}", number(one.result.mean_response_time, 5), number(one.result.interval, 2)),
                *(number(one.worse_by.mean), number(one.worse_by.interval, 2), one.than),
            )
            for one in self.contenders
        ]
        head = ["policy", "", "jobs", "mean", "±", "worse by", "±", "than"]
        refused = "\n".join(f"{label}: {message}" for label, message in self.errors.items())
        return html_title(repr(self)[1:-1]) + html_table(head, rows) + html_lines(refused)


def find_best(
    system: System | Fleet,
    policies: Sequence[PolicyOfFleet],
    *,
    dispatch: Rules = None,
    until: float = 0.01,
    jobs: int | None = None,
    seed: int = 0,
    workload: Workload | str | Path | None = None,
    warmup: float | None = None,
    workers: int | None = None,
    progress: Callable[[RaceProgress], None] | None = None,
    staleness: float = 0.0,
    failures: Failures | None = None,
) -> Best:
    """Finds the policy of lowest mean response time, with 95 % confidence: at most `jobs` jobs of each, fewer where that is clear sooner.

    The race ends when every other policy is proved worse, or within `until` of the mean of the best and so as good; or when the jobs
    are used up (a million, or more if a type is rare; all of a workload that has an end), and then says what is open. A policy that cannot
    run on this system is in `errors`. Policies run on all cores, or in `workers` threads, which does not change the answer.
    On a `rota.Fleet` every policy is combined with every rule of `dispatch`, as in `compare`.
    """
    given, system = system, server_for(system, dispatch, staleness, failures)
    jobs, seed, _ = checked_run(system, jobs, seed, until, warmup)
    workers = None if workers is None else whole("workers", workers, 1)
    errors: dict[str, str] = {}
    chosen = chosen_policies(given, policies, errors, dispatch, staleness, failures)
    workload = None if workload is None else as_workload(workload, system)
    if workload is None and system.arrival_rate.sum() == 0:
        raise Infeasible("no jobs arrive: there is nothing to simulate")
    if isinstance(workload, Sized):
        jobs = min(jobs or len(workload), len(workload))
    jobs = jobs or (enough_jobs(system, fleet=isinstance(given, Fleet)) if workload is None else USUAL)
    if jobs < 1:
        raise Infeasible("the workload has no jobs: there is nothing to simulate")
    entries = _begun(system, chosen, workload, seed, jobs, errors)
    if not entries:
        raise BadSpec([Problem("policies", "none of them can run on this system", ", ".join(f"{k}: {v}" for k, v in errors.items()))])
    began, target, rounds = time.perf_counter(), min(_FIRST, jobs), 1
    most = 1 + max(int(np.ceil(np.log2(jobs / target))), 0)
    looks = max(len(entries) - 1, 1) * most
    left, out = list(entries), list[Contender]()

    def tell() -> None:
        if progress is not None:
            progress(RaceProgress(len(left), max(one.run.done for one in left), time.perf_counter() - began))

    while True:
        play_all([one.run for one in left], target, tell, workers=workers)
        for one in left:
            one.look(warmup)
        best = _leader(left)
        for one in left:
            one.lost = one.lost + 1 if _verdict(one, best, until, looks) == "worse" else 0
        gone = {one: _verdict(one, best, until, looks) for one in left if one.lost > 1 or one.grew > 1}
        for one, verdict in gone.items():
            worse = Difference(np.nan, np.nan) if best is None or verdict == "growing" else one.difference(best, looks)
            than = best.label if best is not None else ""
            out.append(Contender(one.label, one.policy, one.end(warmup), verdict, worse, than))
        left = [one for one in left if one not in gone]
        known = best is not None and all(_verdict(one, best, until, looks) in ("best", "level") for one in left)
        if not left or known or target >= jobs or any(one.run.ended for one in left):
            break
        target, rounds = min(2 * target, jobs), rounds + 1
    # Where a look settled it, that look counts: what the jobs that were still inside then add is no further look.
    settled = {one: _standing(one, best, until, looks) for one in left} if known else {}
    for one in left:
        one.end(warmup)
    best = best if known else _leader(left)
    last = []
    for one in left:
        verdict, worse = settled[one] if known else _standing(one, best, until, looks, last=True)
        last.append(Contender(one.label, one.policy, one.result, verdict, worse, best.label if best and one is not best else ""))
    order = {verdict: place for place, verdict in enumerate(get_args(Verdict))}
    ranked = sorted([*last, *out], key=lambda one: (order[one.verdict], mean_of(one.result)))
    decided = best is not None and not any(one.verdict == "open" for one in ranked)
    return Best(tuple(ranked), errors, decided, until, rounds, seed)


def _begun(
    system: System, policies: Sequence[Policy], workload: Workload | None, seed: int, jobs: int, errors: dict[str, str]
) -> list[Entry]:
    """A run of each policy; why one cannot run here is added to the errors. Compiles what is not compiled yet."""
    entries = []
    for label, policy in zip(labels_of([policy_name(one) for one in policies]), policies, strict=True):
        try:
            run = Playing(system, policy, workload, seed, jobs, first_look=min(_FIRST, jobs))
            run.play(min(_BEGIN, jobs))
            entries.append(Entry(label, policy, run))
        except RotaError as error:
            errors[label] = str(error)
    return entries


def _leader(entries: Sequence[Entry]) -> Entry | None:
    """The one of lowest mean so far, if any has one."""
    known = [one for one in entries if np.isfinite(mean_of(one.result))]
    return min(known, key=lambda one: mean_of(one.result), default=None)


def _standing(one: Entry, best: Entry | None, until: float, looks: int, *, last: bool = False) -> tuple[Verdict, Difference]:
    """The verdict, and how much worse it is than the best."""
    worse = Difference(0.0, 0.0) if one is best or best is None else one.difference(best, looks)
    return _verdict(one, best, until, looks, last=last), worse


def _verdict(one: Entry, best: Entry | None, until: float, looks: int, *, last: bool = False) -> Verdict:
    if not one.result.stable:
        return "growing" if one.grew > 1 or last else "open"
    if best is None:
        return "open"
    if one is best:
        return "best"
    apart = one.difference(best, looks)
    if apart.mean > apart.interval:
        return "open" if last else "worse"  # at the end: only in the last round, or it would have been dropped
    return "level" if abs(apart.mean) + apart.interval <= until * mean_of(best.result) else "open"
