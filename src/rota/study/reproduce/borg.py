"""Figure "Evaluation of MSR policies using a Google Borg trace": mean response times against nominal load.

The paper samples a month of one Borg cell down to a share of 0.01983·ρ, leaves out jobs above 2e5 s and plays the sample in a loop. The
nominal load ρ counts the long jobs: 1 is where all jobs of ten types would just fill one server. Here the month is the made one of
`rota.traces.borg` (fitted to First-Fit up to load 0.6 and nothing else), or a trace given, with the share that makes its load ρ.

Four curves are not the paper's: a close nMSR (`rota.design_policy(…, objective="close")`) designed for the same sample, with and without
backfilling; the improved rota of the paper's pMSR (`rota.Improved`), by the relative values for Poisson arrivals at each load; and a
queue-driven rota (`rota.tune_adaptive`), tuned at load 0.9 on jobs that are not drawn: a made month of another seed, or another sample of
a trace given.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rota.capacity import Load, system_load
from rota.design import design_policy
from rota.errors import BadSpec, Infeasible, NotConverged, Unstable
from rota.model import System
from rota.policy import MSR, Adaptive, FirstFit, Improved, MaxWeight, Policy, RandomizedTimers
from rota.simulation import SimulationProgress, simulate
from rota.study.reproduce.borg_findings import borg_findings
from rota.study.reproduce.figure import Effort, Figure, Redrawn, Settings, n
from rota.study.reproduce.spread import spread
from rota.traces import Trace, open_trace
from rota.traces.borg import BorgModel, borg_month
from rota.tuning import tune_adaptive

__all__ = ["ADAPTIVE", "CLOSE", "FIGURE", "OWN", "PAPER", "borg_sample", "model_system", "paper_table"]

# Mean response times in seconds, the numbers that the paper's figure shows, at loads 0.1 … 0.9.
_LOADS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
PAPER = {
    "first-fit": (268.413, 339.079, 1173.33, 5537.63, 12208.8, 21882.6, 49100.4, 69601.6, 95833.5),
    "max-weight": (268.403, 344.123, 1240.81, 6092.44, 13819.8, 24496.5, 41067.8, 58522.8, 79047.4),
    "randomized-timers": (16502.2, 15489.1, 27163.4, 36757.5, 45219.1, 47116.2, 50844.7, 61092.3, 53438.4),
    "pMSR": (882.682, 1343.55, 4495.98, 8899.69, 15954.3, 24182.0, 33966.2, 47940.4, 69566.8),
    "pMSR+backfill": (268.604, 300.102, 713.528, 3058.72, 6487.91, 11282.6, 18492.0, 26740.2, 38929.9),
    "nMSR+backfill": (297.64, 352.418, 832.368, 3054.81, 6398.39, 10979.2, 17605.0, 24968.4, 33279.4),
}
CLOSE = ("close nMSR", "close nMSR+backfill")  # beside the paper's
IMPROVED, ADAPTIVE = "improved pMSR", "adaptive"
OWN = (*CLOSE, IMPROVED, ADAPTIVE)
_FULL = 0.01983  # the share at ρ = 1
_LONG_S = 2e5
_TYPES = 10
_DESIGNED_AT = 0.9
_ALPHA_FULL, _ALPHA_NONE = 0.1, 3.6e-6
_CLOSE_S = 4.0  # for the design of the close rota


def _compute(settings: Settings) -> Redrawn:
    effort = settings.effort
    best, design_s = _candidates(settings)
    close = design_policy(best.system.with_preemption("none"), objective="close", time_limit_s=_CLOSE_S)
    months = effort.borg_months if settings.trace is None else (settings.seed,)
    settings.tell("tuning the queue-driven rota")
    adaptive, about = _tuned(settings, max(months) + 1)
    policies = _policies(best, close, adaptive)
    tasks = [
        _Task(name, policy, load, month, effort, settings.trace)
        for month in months
        for name, policy in policies.items()
        for load in effort.borg_loads
        if name != "max-weight" or (load in effort.max_weight_loads and month == months[0])
    ]
    tasks.sort(key=lambda task: task.name != "max-weight")  # the slow ones first
    runs = pl.DataFrame(spread(_measured, tasks, settings.workers, settings.tell), infer_schema_length=None)
    table = _beside_paper(runs, months[0])
    remarks = (*_remarks(runs, settings, months), _about_close(close), _ABOUT_IMPROVED, about + _compared(table))
    findings = borg_findings(runs, months[0], paper_table(), best, design_s)
    return Redrawn({"borg": table, "runs": runs}, findings, remarks, ("borg",))


# ---------------------------------------------------------------------------------------------------------------- jobs and policies


def model_system(load: float = _DESIGNED_AT) -> System:
    """The ten types with Poisson arrivals, at a nominal load, without their long jobs."""
    model = BorgModel()
    rates = load * _FULL * np.array(model.jobs) / 2_679_600.0
    means = np.array(model.mean_size) * (1 - model.long_work)
    return System([1, 1], model.demand, rates, 1 / means, names=model.names, resources=("cpu", "memory"))


def borg_sample(load: float, month: int, days: float) -> Trace:
    """The jobs of a made month at a nominal load."""
    return borg_month(share=_FULL * load, days=days, seed=month).without_long(_LONG_S).in_memory()


def _sample(load: float, month: int, effort: Effort, file: Path | None) -> Trace:
    """The jobs at a nominal load."""
    if file is None:
        return borg_sample(load, month, effort.borg_days)
    trace = open_trace(file)
    if len(trace.names) > _TYPES:
        trace = trace.top_types(_TYPES)
    share = load / system_load(trace.system(None if trace.capacity is not None else np.ones(len(trace.resources)))).load
    if share > 1:
        raise Infeasible(
            f"{file}: its {len(trace):,} jobs make a load of {load / share:.3g} only, less than {load:g}; a sample cannot have more"
        )
    return trace.thinned(share, seed=month).without_long(_LONG_S).in_memory()


def _system(trace: Trace) -> System:
    return trace.system(None if trace.capacity is not None else np.ones(len(trace.resources)))


def _candidates(settings: Settings) -> tuple[Load, float]:
    """Candidates and weights from the sample at ρ = 0.9, and the seconds to find them."""
    months = settings.effort.borg_months
    trace = _sample(_DESIGNED_AT, months[0] if settings.trace is None else settings.seed, settings.effort, settings.trace)
    system = _system(trace)
    began = time.perf_counter()
    return system_load(system), time.perf_counter() - began


def _tuned(settings: Settings, seed: int) -> tuple[Adaptive | None, str]:
    """The queue-driven rota, tuned on jobs of a sample at ρ = 0.9 that is not drawn, and a sentence about it; none if these do not do."""
    trace = _sample(_DESIGNED_AT, seed, settings.effort, settings.trace)
    jobs = settings.effort.borg_tuning
    try:
        policy = tune_adaptive(_system(trace), jobs=jobs, workload=trace).policy
    except (BadSpec, Unstable) as error:
        return None, f"The queue-driven rota was left out, as it could not be tuned: {error}."
    where = f"the made month of seed {seed}" if settings.trace is None else f"another sample of the trace (seed {seed})"
    return policy, (
        f"The queue-driven rota (adaptive), which never stops a job, is not in the paper: {len(policy.goals)} goals, tuned on {jobs:,} "
        f"jobs of {where}, at load {_DESIGNED_AT:g}, for all loads."
    )


def _policies(best: Load, close: MSR, adaptive: Adaptive | None) -> dict[str, Policy]:
    preemptive = MSR(best.candidates, best.weights, "full", _ALPHA_FULL)
    patient = MSR(best.candidates, best.weights, "none", _ALPHA_NONE)
    return {
        "first-fit": FirstFit(),
        "max-weight": MaxWeight(),
        "randomized-timers": RandomizedTimers(),
        "pMSR": preemptive,
        "pMSR+backfill": preemptive.replace(backfill=True),
        "nMSR+backfill": patient.replace(backfill=True),
        "nMSR": patient,
        **dict(zip(CLOSE, (close, close.replace(backfill=True)), strict=True)),
        IMPROVED: Improved(preemptive),
        **({} if adaptive is None else {ADAPTIVE: adaptive}),
    }


# ---------------------------------------------------------------------------------------------------------------- runs


@dataclass(frozen=True)
class _Task:
    name: str
    policy: Policy
    load: float
    month: int
    effort: Effort
    trace: Path | None


class _TooSlow(Exception):
    """A run took longer than its patience."""


def _give_up_after(seconds: float) -> Callable[[SimulationProgress], None]:
    def look(at: SimulationProgress) -> None:
        if at.time_s > seconds:
            raise _TooSlow

    return look


def _measured(task: _Task) -> dict[str, Any]:
    """Mean response time of the jobs that came after the first loop, also where the queue still grew: the list of jobs has an end."""
    trace = _sample(task.load, task.month, task.effort, task.trace)
    loops = 1 if task.name == "max-weight" else task.effort.borg_loops  # as in the paper
    warmup = 0.0 if loops == 1 else 1 / loops
    row: dict[str, Any] = {"policy": task.name, "load": task.load, "month": task.month, "jobs": len(trace), "loops": loops}
    try:
        result = simulate(
            _system(trace),
            task.policy,
            workload=trace.looped(loops),
            jobs=10**9,
            warmup=warmup,
            progress=_give_up_after(task.effort.patience_s),
        )
    except _TooSlow:
        return row | _no_number(f"given up after {task.effort.patience_s:g} s")
    except (NotConverged, Unstable) as error:  # no relative values to improve by
        return row | _no_number(f"left out ({error})")
    if result.interrupted:
        raise KeyboardInterrupt
    done = result.batches
    return row | {
        "mean_response_time": float(done[:, 1].sum() / done[:, 0].sum()),
        "time_s": result.time_s,
        "events": result.events,
        "unproved_decisions": result.unproved_decisions,
        "outcome": "done",
    }


def _no_number(outcome: str) -> dict[str, Any]:
    return {"mean_response_time": np.nan, "time_s": np.nan, "events": 0, "unproved_decisions": 0, "outcome": outcome}


def paper_table() -> pl.DataFrame:
    """The paper's numbers: `policy`, `load`, `paper`."""
    rows = [(name, load, value) for name, values in PAPER.items() for load, value in zip(_LOADS, values, strict=True)]
    return pl.DataFrame(rows, schema={"policy": pl.String, "load": pl.Float64, "paper": pl.Float64}, orient="row")


def _beside_paper(runs: pl.DataFrame, month: int) -> pl.DataFrame:
    """A row per policy and load: the first month, the range over all months, and the paper's number."""
    finite = pl.col("mean_response_time").fill_nan(None)
    spans = runs.group_by("policy", "load", maintain_order=True).agg(least=finite.min(), most=finite.max(), months=finite.count())
    here = runs.filter(pl.col("month") == month).select("policy", "load", mean_response_time=finite)
    table = spans.join(here, on=["policy", "load"], how="left").join(paper_table(), on=["policy", "load"], how="left")
    order = {name: k for k, name in enumerate([*PAPER, "nMSR", *OWN])}
    table = table.with_columns(ratio=pl.col("mean_response_time") / pl.col("paper"))
    columns = ("policy", "load", "mean_response_time", "paper", "ratio", "least", "most", "months")
    return table.sort(pl.col("policy").replace_strict(order), "load").select(columns)


def _remarks(runs: pl.DataFrame, settings: Settings, months: tuple[int, ...]) -> tuple[str, ...]:
    effort = settings.effort
    if settings.trace is None:
        source = (
            f"The made month of seed {months[0]}, the nearest of eight to the paper's First-Fit up to load 0.6 (its "
            f"numbers there prove nothing)"
        )
        source += f", and {len(months) - 1} other months" * (len(months) > 1)
        source += f"; {effort.borg_days:g} days" * (effort.borg_days < 31)
    else:
        source = f"The trace {settings.trace.name}, thinned with seed {settings.seed}"
    left_out = [load for load in effort.borg_loads if load not in effort.max_weight_loads]
    given_up = [
        f"{row['policy']} at load {row['load']:g} was {row['outcome']}" for row in runs.filter(pl.col("outcome") != "done").to_dicts()
    ]
    slow = runs.filter((pl.col("policy") == "max-weight") & (pl.col("outcome") == "done"))
    remarks = [
        f"{source}, played {effort.borg_loops} times; the first time is warm-up. The paper plays it 200 times, "
        f"Randomized-Timers 100 times.",
        "Seconds. The nMSR without backfilling is not drawn, as in the paper; it is in the table.",
    ]
    if len(slow):
        slowest = slow.sort("time_s").row(-1, named=True)
        remarks.append(
            f"MaxWeight is played once, as in the paper{', and on one month only' * (len(months) > 1)}. "
            f"At load {slowest['load']:g} that took {n(slowest['time_s'], 2)} s, "
            f"{n(1e6 * slowest['time_s'] / slowest['events'], 2)} µs per event, and {slowest['unproved_decisions']:,} of its "
            f"{slowest['events']:,} events had a decision that is not proved best."
        )
    if left_out:
        remarks.append(f"MaxWeight was left out at load {', '.join(f'{x:g}' for x in left_out)}: with long queues each decision is slow.")
    return (*remarks, *given_up)


_ABOUT_IMPROVED = (
    "The improved pMSR is not in the paper: one step of policy improvement on the paper's pMSR. With exponential sizes and Poisson "
    "arrivals its mean is at most that of the pMSR; of these jobs nothing is proved."
)


def _about_close(close: MSR) -> str:
    schedules = "one schedule, which never switches" if len(close.weights) == 1 else f"{len(close.weights)} schedules"
    return f"The close nMSR is not in the paper: {schedules}, designed for the same sample at load {_DESIGNED_AT:g} as the paper's rotas."


def _compared(table: pl.DataFrame) -> str:
    """The queue-driven rota beside the best of the paper's policies, in a sentence; empty if it was not run."""
    name, means = pl.col("policy"), table.select("load", "policy", "mean_response_time").drop_nulls()
    best = means.filter(name.is_in(list(PAPER))).sort("mean_response_time").group_by("load").first()
    both = means.filter(name == ADAPTIVE).join(best, on="load", suffix="_best").sort("load").to_dicts()
    ratios = [f"{row['mean_response_time'] / row['mean_response_time_best']:.2f} at {row['load']:g} ({row['policy_best']})" for row in both]
    return f" Over the best of the paper's policies: {', '.join(ratios)}." if ratios else ""


FIGURE = Figure(
    "borg",
    "Mean response times on a Borg trace",
    'Figure "Evaluation of MSR policies using a Google Borg trace", Section "Evaluation"',
    _compute,
)
