"""`tune_adaptive`: the queue-driven rota that is best on a system, by simulation.

    round 1     all first settings on a fortieth of the jobs
    round 2     the best of them on a tenth
    round 3     the best two and their neighbours on a tenth
    round 4     the best of rounds 2 and 3 on four tenths
    round 5     the best few on all jobs: the winner
    check       the winner and those that round 5 cannot distinguish from it, on jobs that no round has seen

MaxWeight without preemption and First-Fit, which are two of the settings, take part in rounds 2, 4 and 5 whatever came before.

A winner of many is partly lucky, so its mean in the race is too good. What is reported is the mean of the check.

A short list of jobs has few bursts, and the next ones will differ. It is played at three paces, and a setting is judged by the worst of
them, relative to the better one of MaxWeight and First-Fit at that pace, which then take part in all rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass

from numpy.typing import ArrayLike

from rota.arguments import whole
from rota.arrays import Int
from rota.capacity import Load, system_load
from rota.display import html_table, html_title, number
from rota.errors import BadSpec, Infeasible, Problem, Unstable
from rota.model import System, Workload
from rota.model.system import check_system
from rota.policy import Adaptive
from rota.simulation import Jobs, Result, enough_jobs
from rota.tuning.parts import at_pace, two_parts
from rota.tuning.race import Entry, Judge, Round, race, run_all
from rota.tuning.settings import corners, first_settings, goal_sets, neighbours

__all__ = ["FEWEST_JOBS", "Tuned", "TuningProgress", "design_adaptive_named", "tune_adaptive"]

_JOBS = 400_000
FEWEST_JOBS = 20_000
_NAMED_JOBS = 100_000  # if it is only named
_CHECK = 2.5  # as many jobs in the check as in the longest race, of a stream without end
_SHORTEST = 1_000  # jobs of a list to tune on, and to check on
_SHORT = 100_000  # jobs up to which a list is played at several paces
_PACES = (1.15, 1.3)
_SHORT_ROUND = 10_000  # jobs of its first round, if it has so many
_CHECK_SEED = 1_000_003  # added to the seed for the jobs of the check


@dataclass(frozen=True)
class TuningProgress:
    """How far a tuning has come: the part of its simulated jobs that is done, and the time taken so far."""

    part: float
    step: str
    time_s: float


@dataclass(frozen=True, eq=False)
class Tuned:
    """The best setting that was found. `result`: on jobs that no round has seen. `equal`: settings that are as good there."""

    policy: Adaptive
    result: Result
    equal: tuple[Adaptive, ...]
    rounds: tuple[Round, ...]
    seed: int
    time_s: float

    @property
    def simulated(self) -> int:
        """Jobs that were simulated in all."""
        return sum(one.jobs * len(one.entries) for one in self.rounds) + self.result.jobs * (1 + len(self.equal))

    def __repr__(self) -> str:
        mean = f"mean response time {self.result.mean_response_time:.5g} ± {self.result.interval:.2g}"
        return f"<Tuned {self.policy!r}: {mean}, {len(self.rounds)} rounds, {len(self.equal)} others equal>"

    def _repr_html_(self) -> str:
        rows = [
            (f"{k + 1}", f"{one.jobs:,}", f"{len(one.entries)}", f"{one.kept}", number(one.entries[0].mean))
            for k, one in enumerate(self.rounds)
        ]
        return html_title(repr(self)[1:-1]) + html_table(["round", "jobs", "settings", "went on", "best mean"], rows)


def tune_adaptive(
    system: System,
    *,
    load: Load | None = None,
    goals: Sequence[ArrayLike] = (),
    jobs: int | None = None,
    seed: int = 0,
    judge: Judge | None = None,
    workload: Workload | None = None,
    progress: Callable[[TuningProgress], None] | None = None,
) -> Tuned:
    """The best `rota.Adaptive` for a system, found by simulation on its own sizes, or on a `workload` such as a trace.

    `jobs` is the length of the longest runs (400,000, or more if a type is rare); about twenty times as many are simulated in all. `goals`
    are further sets of schedules to choose from. `judge`: a number of a `rota.Result` to keep low instead of the mean response time, such
    as `lambda result: result.response_time_quantiles[0.95]`. `load`: the load of the system, if it is known already. The same seed gives
    the same answer on every machine. A workload with an end is used up to its middle for the race, and from there on for the check; a short
    one is played at several paces in the race, and the setting that is good at all of them wins.
    Raises `Unstable` if the load is not below 1.
    """
    check_system(system)
    seed = whole("seed", seed, 0)
    best = system_load(system) if load is None else load
    if best.load == 0:
        raise Infeasible("no jobs arrive: there is nothing to tune")
    if best.load >= 1:
        raise Unstable(
            f"the system load {best.load:.4g} is not below 1: no policy is stable; scale arrivals by less than {1 / best.load:.4g}"
        )
    fewest = _SHORTEST if isinstance(workload, Sized) else FEWEST_JOBS
    jobs = enough_jobs(system, _JOBS) if jobs is None else whole("jobs", jobs, fewest)
    seen, unseen = two_parts(workload, system, jobs)
    faster: list[Workload] = []
    if isinstance(seen, Jobs) and isinstance(unseen, Jobs):
        jobs = min(jobs, len(seen), len(unseen))
        if jobs < _SHORTEST:
            raise BadSpec(
                [Problem("workload", f"must have at least {2 * _SHORTEST:,} jobs, to tune and to check", len(seen) + len(unseen))]
            )
        faster = [at_pace(seen, pace) for pace in _PACES] if jobs < _SHORT else []
    shortest = min(jobs, _SHORT_ROUND) if faster else 1000
    sets = [*goal_sets(best), *(_checked_goals(system, given) for given in goals)]
    began, rounds = time.perf_counter(), list[Round]()
    first = first_settings(system, sets)
    total = len(first) / 40 + 24 / 10 + 4 * (len(system.names) + 3) / 10 + 8 * 4 / 10 + 3 + 3
    so_far = 0.0

    def run(policies: Sequence[Adaptive], part: float, most: int, least: int = 1) -> Round:
        nonlocal so_far

        def tell(done: int, of: int) -> None:
            if progress is not None:
                share = min((so_far + done / of * len(policies) * part) / total, 1.0)
                progress(TuningProgress(share, f"round {len(rounds) + 1}: {done} of {of} runs", time.perf_counter() - began))

        own = seed + len(rounds) if workload is None else seed
        found = race(
            system,
            policies,
            jobs=max(int(jobs * part), shortest),
            seed=own,
            most=most,
            least=least,
            judge=judge,
            workload=seen,
            faster=faster,
            plain=plain,
            progress=tell,
        )
        so_far += part * len(policies)
        rounds.append(found)
        return found

    plain = corners(system, sets[0])  # they come back, so that the winner is not worse by bad luck in an early round
    widest = run(first, 1 / 40, 24, 16)  # intervals of short runs are not to be trusted
    good = run(_different([*_policies(widest.survivors), *plain]), 1 / 10, 8, 4)
    near = [other for entry in good.survivors[:2] for other in neighbours(_adaptive(entry))]
    better = run(_different([*_policies(good.survivors[:2]), *near, *(plain if faster else [])]), 1 / 10, 6, 3)
    few = run(_different([*_policies(good.survivors), *_policies(better.survivors), *plain]), 4 / 10, 3)
    last = run(_different([*_policies(few.survivors), *plain]), 1.0, 3)
    finalists = _policies(last.survivors)
    checked = run_all(system, finalists, jobs=int(jobs * _CHECK), seed=seed + _CHECK_SEED, workload=unseen)
    entries = [Entry(policy, result, judge) for policy, result in zip(finalists, checked, strict=True)]
    winner = entries[0] if faster else next((entry for entry in entries if entry.result.stable), entries[0])
    others = [entry for entry in entries if entry is not winner and (faster or entry.result.stable) and not entry.worse_than(winner)]
    equal = tuple(_adaptive(other) for other in others)
    return Tuned(_adaptive(winner), winner.result, equal, tuple(rounds), seed, time.perf_counter() - began)


def design_adaptive_named(name: str, system: System, *, load: Load | None = None, time_limit_s: float | None = None) -> Adaptive:
    """The queue-driven rota behind the name "adaptive" (`rota.policy.designed`). It takes as many jobs as it needs, whatever the time."""
    return tune_adaptive(system, load=load, jobs=_NAMED_JOBS).policy


def _checked_goals(system: System, given: ArrayLike) -> Int:
    goals = Adaptive(given, names=None).goals
    if goals.shape[1] != len(system.names):
        raise BadSpec([Problem("goals", f"must have {len(system.names)} columns, one per type", goals.shape)])
    return goals


def _adaptive(entry: Entry) -> Adaptive:
    assert isinstance(entry.policy, Adaptive)
    return entry.policy


def _policies(entries: Sequence[Entry]) -> list[Adaptive]:
    return [_adaptive(entry) for entry in entries]


def _different(policies: Sequence[Adaptive]) -> list[Adaptive]:
    return list(dict.fromkeys(policies))
