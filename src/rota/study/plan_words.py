"""A plan in plain words: what to run and why, who does worse under it, how far it is from the best possible, how far load can grow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rota.capacity import Load
from rota.design import MeanResponse
from rota.policy import MSR, Improved, msr_name
from rota.simulation import Result
from rota.study.plan_choice import quoted, start, title_of
from rota.study.plan_objective import time_words, worst_type

if TYPE_CHECKING:
    from rota.study.plan import Plan

__all__ = ["WorseOff", "above_bound", "beside_the_paper", "in_three", "in_words", "overload_text", "recommendation", "worse_off"]

_WORSE = 1.5  # a type that takes so many times as long as under another policy is named
_MOST_NAMED = 4

_COMMON = ("first-fit", "fcfs")  # what most servers run


@dataclass(frozen=True)
class WorseOff:
    """A type that takes much longer under the recommended policy than under another one, on average, and that other policy."""

    type: str
    mean: float
    interval: float
    waiting: float
    other: str
    other_mean: float
    other_interval: float


def in_words(plan: Plan) -> list[str]:
    """The plan as sentences: what to run and why, compared with common policies, how far load can grow, and what limits it."""
    name, result = plan.recommended_name, plan.results[plan.recommended_name]
    return [
        f"{recommendation(plan)} ({name}): {_measured(plan, result)}.",
        *_worse_off_words(plan),
        *result.remarks,
        *plan.reason.split("\n"),
        *_optimum_words(plan),
        *(_against(plan, other) for other in reversed(_COMMON) if other != name),
        *_rota_words(plan),
        *([] if plan.bursts is None else [plan.bursts.words()]),
        beside_the_paper(plan),
        _growth(plan),
        *plan.load.explain().split("\n")[1:],
    ]


def in_three(plan: Plan) -> list[str]:
    """The sentences below the name of the policy: which types lose, why this policy, its gain over a common one, how far load can grow."""
    common = next(name for name in _COMMON if name != plan.recommended_name)
    first = [*_worse_off_words(plan), *plan.results[plan.recommended_name].remarks]
    bursts = [] if plan.bursts is None else [plan.bursts.words()]
    return [*first, plan.reason.replace("\n", " "), *_optimum_words(plan), _against(plan, common), *bursts, _growth(plan)]


def recommendation(plan: Plan) -> str:
    """What to run, or, where no policy keeps the limits, which comes nearest."""
    title = title_of(plan.recommended_name)
    return f"Run {title}" if plan.keeps_limits else f"No policy is sure to keep the limits; nearest is {title}"


def _measured(plan: Plan, result: Result) -> str:
    """The mean response time of a policy, after what it was chosen by."""
    mean = f"mean response time {result.mean_response_time:.4g} ± {result.interval:.2g}"
    measure = plan.measure
    if measure.objective == "mean":
        return mean
    of = f" ('{plan.system.names[worst_type(result)]}')" if measure.objective == "worst-type" else ""
    return f"{measure.title} {measure.value(result):.4g} ± {measure.interval(result):.2g}{of}; {mean}"


def worse_off(plan: Plan) -> tuple[WorseOff, ...]:
    """The types that lose under the recommended policy, each compared with the policy that is best for it; who loses most comes first.

    A mean over all jobs hides it: a policy may serve many small jobs well and leave a few large ones waiting.
    """
    chosen, names = plan.results[plan.recommended_name], plan.system.names
    others = {name: result for name, result in plan.results.items() if result.stable and name != plan.recommended_name}
    if len(names) < 2 or not others:
        return ()
    means = np.array([result.response_time for result in others.values()])  # (policies, K)
    means = np.where(np.isnan(means), np.inf, means)
    found = []
    for i, name in enumerate(names):
        own, interval, k = float(chosen.response_time[i]), float(chosen.response_time_interval[i]), int(means[:, i].argmin())
        best, result = list(others.items())[k]
        least, other_interval = float(means[k, i]), float(result.response_time_interval[i])
        if own >= _WORSE * least and own - least > np.hypot(interval, other_interval):
            found.append(WorseOff(name, own, interval, float(chosen.waiting_time[i]), best, least, other_interval))
    return tuple(sorted(found, key=lambda row: -row.mean / row.other_mean))


def _worse_off_words(plan: Plan) -> list[str]:
    rows, system = plan.worse_off, plan.system
    said = [
        f"Type '{row.type}' does worse than under another policy: {time_words(system, row.mean, row.interval)} on average, of which "
        f"{time_words(system, row.waiting)} waiting; {time_words(system, row.other_mean, row.other_interval)} under "
        f"{title_of(row.other)} ({row.other})."
        for row in rows[:_MOST_NAMED]
    ]
    more = rows[_MOST_NAMED:]
    return [*said, f"So do {quoted(row.type for row in more)}."] if len(more) > 1 else [*said, *(f"So does '{row.type}'." for row in more)]


def _optimum_words(plan: Plan) -> list[str]:
    """How far the recommended policy is from the best possible."""
    best, result = plan.optimum, plan.results[plan.recommended_name]
    above = best.above(result.mean_response_time)
    if above is None:
        return []
    if best.settled:
        return [f"The best policy possible has a mean response time of {best.mean:.4g}: this one is {above:.0%} above it."]
    return [f"No policy can have a mean response time below {best.lower_bound:.4g} (proved): this one is {above_bound(above)}."]


def above_bound(above: float) -> str:
    """How far a measured mean is above a proved bound, relative. Of few jobs it can be below."""
    return f"{above:.0%} above that" if above >= 0 else "below that: so few jobs do not tell its mean"


def _against(plan: Plan, other: str) -> str:
    result, chosen = plan.results[other], plan.results[plan.recommended_name]
    if not result.stable:
        whole = len(result.growing) == len(plan.system.names)
        return (
            f"Under {title_of(other)} the queue kept growing: it cannot carry this load."
            if whole
            else f"Under {title_of(other)} jobs of {quoted(result.growing)} kept piling up: it cannot carry this load."
        )
    if np.isnan(result.mean_response_time):
        return f"Under {title_of(other)} too few jobs of {quoted(result.unknown)} ended to give a mean."
    if not np.isfinite(result.interval):
        return f"{start(title_of(other))} took {result.mean_response_time:.4g} in this run, but the error of that is not known."
    measure = plan.measure
    difference, value = plan.objective_difference(other), measure.value(result)
    if not difference.significant:
        takes = f"{start(title_of(other))} takes" if measure.objective == "mean" else f"By the same measure {title_of(other)} has"
        return f"{takes} {value:.4g} ± {measure.interval(result):.2g}: no significant difference."
    apart = f"{abs(difference.mean):.3g} ± {difference.interval:.2g} {'more' if difference.mean > 0 else 'less'}"
    if measure.objective != "mean":
        return f"By the same measure {title_of(other)} has {value:.4g} ({apart})."
    return f"{start(title_of(other))} takes {_times(value / measure.value(chosen))}: {value:.4g} ({apart})."


def _times(ratio: float) -> str:
    """How long one mean is against another."""
    if ratio < 1:
        return f"{1 - ratio:.0%} less time"
    return f"{ratio - 1:.0%} longer" if ratio < 2 else f"{ratio:.1f} times as long"


def _growth(plan: Plan) -> str:
    limit, load = plan.limits[plan.recommended_name], plan.load.load
    most = f"The load is {load:.4g}; no policy can take more than {1 / load:.3g} times the arrivals"
    if limit.proved:
        anew = " if its rota is redesigned" if isinstance(plan.recommended, MSR | Improved) else ""
        return f"{most}, and this one takes as much{anew}."
    if limit.grows >= 1:
        return f"{most}. This one still settled at load {limit.settles:.2f} ({limit.settles / load:.3g} times the arrivals; simulated)."
    return f"{most}. This one stays stable up to about {limit.scaling(load):.3g} times, load {limit.middle:.2f} (simulated, an estimate)."


def _rota_words(plan: Plan) -> list[str]:
    """How the rota compares where another policy is recommended."""
    own, backfilled = (msr_name(plan.system.preemption, backfill) for backfill in (False, True))
    if plan.recommended_name in (own, backfilled) or not plan.results[own].stable:
        return []
    filled = plan.results.get(backfilled)
    if filled is None or not filled.stable or np.isnan(filled.mean_response_time):
        return []
    difference = plan.difference(backfilled)
    if not difference.significant:
        return [f"The rota with backfilling takes {filled.mean_response_time:.4g}: no significant difference at this load."]
    apart = f"{abs(difference.mean):.3g} ± {difference.interval:.2g} {'more' if difference.mean > 0 else 'less'}"
    return [f"The rota with backfilling takes {filled.mean_response_time:.4g} at this load, {apart}."]


def beside_the_paper(plan: Plan) -> str:
    """The mean response times of the rota and of the paper's design, and how they are known."""
    own, balanced = MeanResponse.of(plan.analysis), plan.balanced
    sizes = "" if plan.as_given else ", if sizes were exponential"
    if own.exact and balanced.exact:
        how = "both exact"
    elif own.exact or balanced.exact:
        how = f"the {'first' if own.exact else 'second'} exact, the other a lower bound"
    else:
        how = "both lower bounds"
    return (
        f"The rota without backfilling has a mean response time of {own.words()}; "
        f"the paper's design, with balanced loads, has {balanced.words()} ({how}{sizes})."
    )


def overload_text(best: Load, capacity: float | None) -> str:
    """What to say, and what to do, if the load is not below 1."""
    resource = best.bottleneck[0]
    amount = best.system.capacity[best.system.resources.index(resource)]
    more = (
        f"or raise {resource!r} from {amount:g} to {capacity:g}, which makes the load at most 0.95"
        if capacity is not None
        else f"or make the server larger: {resource!r} limits it most, but more of that alone is not enough"
    )
    excess = f"{best.load - 1:.1%} more than the server can carry" if best.load > 1 + 1e-9 else "all that the server can carry"
    return (
        f"the system load is {best.load:.4g}: the jobs ask for {excess}, under any policy. "
        f"Scale arrivals by less than {1 / best.load:.4g}, {more}. See `rota capacity`; no plan was made"
    )
