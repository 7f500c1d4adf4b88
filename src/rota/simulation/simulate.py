"""`simulate`: a policy on a system, with confidence intervals and quantiles."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from rota.arguments import whole
from rota.errors import BadSpec, Infeasible, Problem
from rota.model import Dispatch, Fleet, System
from rota.model.workload import Workload
from rota.policy import as_policy
from rota.simulation.arguments import checked_run
from rota.simulation.compiled import will_compile
from rota.simulation.fleet.policy import Failures, FleetPolicy, PolicyOfFleet, as_fleet_policy
from rota.simulation.measured import result_of
from rota.simulation.named import as_workload
from rota.simulation.of_fleet import server_for
from rota.simulation.packing import in_processes, is_plain
from rota.simulation.playing import Playing, play_all
from rota.simulation.result import Result
from rota.simulation.splitting import runs_for, shortest_run
from rota.simulation.start import Counts, Start, checked_start
from rota.simulation.statistics import WARMUP
from rota.simulation.until import FIRST_LOOK, Until

__all__ = ["JOBS", "Result", "SimulationProgress", "enough_jobs", "seeds_of", "simulate", "together"]

JOBS = 1_000_000  # of a workload without end
_OF_A_TYPE = 500  # jobs of the rarest type, if that takes no more than …
_MOST_JOBS = 20_000_000
_TIME_SCALES = 500  # how often the longest time scale of bursts goes into a run, at least
_LONGEST_SIZES = 50  # how often the longest mean size goes into a run, at least


@dataclass(frozen=True)
class SimulationProgress:
    """How far a simulation has come. `jobs` is None if it runs until an interval is narrow."""

    done: int
    jobs: int | None
    events_per_s: float
    half_width: float
    time_s: float
    compiling: bool = False  # the engine is being compiled; reported before that begins


def simulate(
    system: System | Fleet,
    policy: PolicyOfFleet,
    *,
    dispatch: Dispatch | str | None = None,
    jobs: int | None = None,
    seed: int = 0,
    workload: Workload | str | Path | None = None,
    until: float | None = None,
    until_types: float | None = None,
    warmup: float | None = None,
    start: Start | Counts | None = None,
    replications: int | Literal["auto"] | None = None,
    workers: int | None = None,
    log_jobs: int = 0,
    check: bool = False,
    progress: Callable[[SimulationProgress], None] | None = None,
    staleness: float = 0.0,
    failures: Failures | None = None,
) -> Result:
    """Simulates a policy (or its name, its file, or your own as "module:function") on a system.

    A name such as "nMSR" or "improved" (`rota.policy.DESIGNED_NAMES`) is designed for the system first.
    A `workload` that has an end is played until its last job is done, and every job counts. Otherwise `jobs` jobs count (a million, or more
    if a type is rare: see `enough_jobs`); with `until`, as many as make the 95 % interval of the mean response time that narrow relative
    to the mean, but at most `jobs` (20 million if not given), and with `until_types`, as many as make that of every type so narrow. Of a
    workload without end the first fifth is warm-up and does not count, unless `warmup` says
    another part; jobs go on coming until those that count are done. With `start`, jobs are there at time 0 (`Start`, or their numbers by
    type): nothing is warm-up, and they do not count, but those that come after them do.

    `replications`: the jobs are split over this many independent runs, each with its own warm-up, as many of them at once as there are
    `workers`, one per core if not given; their number does not change the result by a bit. "auto": as many runs as the system, the policy
    and the jobs allow, up to 8, see `rota.simulation.splitting`.

    The first `log_jobs` jobs are logged event by event (those that were there have negative numbers). `check` verifies
    the laws of the engine after every event (slow). Ctrl-C ends the run; what was measured so far is returned.

    A `rota.Fleet`: every server runs the policy, or that of its kind if it is a dict, and jobs go to servers by the rule `dispatch` (that
    of the fleet if not given, else "jsq"); or the policy is a `rota.Pinned` or `rota.Split`. A policy that is designed by its name is
    designed for a server of each kind at its part of the arrivals. `staleness`: the dispatcher looks at the servers only every so many
    units of time. `failures`: mean times up and down, for all servers or by kind; a server that fails loses what it did, and its jobs are
    dispatched again. The result is a `FleetResult`.
    """
    system, policy = together(system, policy, dispatch, staleness, failures, start)
    jobs, seed, log_jobs = checked_run(system, jobs, seed, until, warmup, log_jobs, until_types)
    policy = as_policy(policy, system)  # type: ignore[arg-type]  # it refuses what is not for one server
    workload = None if workload is None else as_workload(workload, system)
    if workload is None and system.arrival_rate.sum() == 0:
        raise Infeasible("no jobs arrive: there is nothing to simulate")
    begin_state = None if start is None else checked_start(system, policy, start)
    warmup = 0.0 if begin_state is not None and warmup is None else warmup
    if isinstance(workload, Sized):
        jobs = min(jobs or len(workload), len(workload))
        if jobs == 0:
            raise Infeasible("the workload has no jobs: there is nothing to simulate")
    rule = None if until is None and until_types is None else Until(until, until_types)
    usual = JOBS if workload is not None else enough_jobs(system, fleet=isinstance(policy, FleetPolicy))
    jobs = jobs or (usual if rule is None else _MOST_JOBS)
    n = _runs(replications, workload, log_jobs, lambda: runs_for(system, policy, min(jobs, usual), warmup))
    each, workers = -(-jobs // n), None if workers is None else whole("workers", workers, 1)
    if n > 1 and is_plain(policy) and rule is None:
        began = time.perf_counter()
        parts = in_processes(system, policy, workload, seeds_of(seed, n), each, warmup, begin_state, workers)
        about = Playing(system, policy, workload, seed, each).measuring.about()._replace(start=begin_state)
        return result_of(parts, about, time.perf_counter() - began)
    shortest = n * shortest_run(system, policy, warmup) if replications == "auto" and n > 1 else 0
    first = None if rule is None else int(min(max(FIRST_LOOK, shortest), jobs))
    runs = [
        Playing(
            *(system, policy, workload, one, each),
            start=begin_state,
            log_jobs=log_jobs,
            check=check,
            first_look=None if first is None else -(-first // n),
        )
        for one in ([seed] if n == 1 else seeds_of(seed, n))
    ]
    return _played(runs, seed, each, rule, usual, first or jobs, warmup, workers, progress)


def together(
    system: System | Fleet,
    policy: PolicyOfFleet,
    dispatch: Dispatch | str | None,
    staleness: float,
    failures: Failures | None,
    start: Start | Counts | None,
) -> tuple[System, PolicyOfFleet]:
    """What is simulated: a fleet as one server of the same size, with what its servers do as the policy. One server stays as it is."""
    server = server_for(system, dispatch, staleness, failures)
    if not isinstance(system, Fleet):
        return server, policy
    if start is not None:
        raise BadSpec([Problem("start", "is for one server: a fleet begins empty", start)])
    return server, as_fleet_policy(system, policy, dispatch, staleness=staleness, failures=failures)


def _runs(replications: int | str | None, workload: Workload | None, log_jobs: int, auto: Callable[[], int]) -> int:
    """How many runs there shall be."""
    same = isinstance(workload, Sized) or getattr(workload, "fixed", False)
    if replications is None or (replications == "auto" and (same or log_jobs)):
        return 1
    if replications == "auto":
        return auto()
    if isinstance(replications, str):
        raise BadSpec([Problem("replications", 'must be a whole number or "auto"', replications)])
    n = whole("replications", replications, 1)
    if n > 1 and same:
        rule = "gives every run the same jobs: it cannot be split into independent runs; leave out replications, or use rota.replicate"
        raise BadSpec([Problem("workload", rule, workload)])
    if n > 1 and log_jobs:
        raise BadSpec([Problem("log_jobs", "goes with one run only: leave out replications", log_jobs)])
    return n


def seeds_of(seed: int, runs: int) -> list[int]:
    """The seeds of independent runs."""
    return [int(child) for child in np.random.SeedSequence(seed).generate_state(runs)]


def _played(
    runs: Sequence[Playing],
    seed: int,
    each: int,
    rule: Until | None,
    usual: int,
    target: int,
    warmup: float | None,
    workers: int | None,
    progress: Callable[[SimulationProgress], None] | None,
) -> Result:
    """Plays runs of `each` jobs, or until the rule is met: first to `target` jobs together."""
    n, began, width = len(runs), time.perf_counter(), np.inf
    jobs = None if rule is not None else n * each
    if progress is not None and will_compile(runs[0].measuring.run.engine):
        progress(SimulationProgress(0, jobs, 0.0, np.inf, 0.0, compiling=True))

    def tell() -> None:
        if progress is not None:
            elapsed = time.perf_counter() - began
            rate = sum(run.events for run in runs) / max(elapsed, 1e-9)
            progress(SimulationProgress(sum(run.done for run in runs), jobs, rate, width, elapsed))

    def joined(interrupted: bool = False) -> Result:
        about = runs[0].measuring.about()._replace(seed=seed)
        return result_of([run.measured(warmup) for run in runs], about, time.perf_counter() - began, interrupted=interrupted)

    interrupted = False
    try:
        while rule is not None:
            play_all(runs, min(-(-target // n), each), tell, workers=workers)
            done = sum(run.done for run in runs)
            partial = joined()
            width = partial.interval / partial.mean_response_time if partial.stable else np.inf
            look = rule.next_look(done, partial)
            hopeless = not partial.stable and done >= usual  # as a run of the usual length would find it
            if look is None or hopeless or done >= n * each or any(run.ended for run in runs):
                break
            target = look
        play_all(runs, each if rule is None else 0, tell, finish=True, workers=workers)
    except KeyboardInterrupt:
        runs = [run for run in runs if run.measuring.done_any()]
        if not runs:
            raise
        interrupted = True
    for run in runs:
        run.measuring.give_up()
    result = joined(interrupted)
    return result if rule is None else replace(result, reached=rule.excess(result) <= 1)


def enough_jobs(system: System, jobs: int = JOBS, *, fleet: bool = False) -> int:
    """At least `jobs`, and enough that the rarest type has 500 and the run lasts 50 times the longest mean size; 20 million at most.

    With bursts it also lasts 500 times their longest time scale. A fleet has a part of the jobs for each server: it lasts 500 times the
    longest mean size, as one server does with a million jobs and two thousand in such a time.
    """
    rate = system.arrival_rate[system.arrival_rate > 0]
    longest = 1 / system.service_rate[system.arrival_rate > 0].min()
    pairs = zip(system.arrivals, system.arrival_rate, strict=True) if system.bursty else ()
    bursts = max((process.at(float(each)).time_scale for process, each in pairs if each > 0), default=0.0)
    lasts = max((_TIME_SCALES if fleet else _LONGEST_SIZES) * longest, _TIME_SCALES * bursts)
    needed = max(_OF_A_TYPE / (1 - WARMUP) * rate.sum() / rate.min(), rate.sum() * lasts)
    return int(max(min(np.ceil(needed), _MOST_JOBS), jobs))
