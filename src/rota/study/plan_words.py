"""Which policy to recommend, and why, in plain words.

The rule: take the policies whose mean response time the simulation cannot distinguish from the lowest one, keep those that allow the load
to grow, and recommend the simplest of them. So a rota is recommended only where it brings a gain that can be measured.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from rota.capacity import Load
from rota.design import MeanResponse
from rota.errors import Unstable
from rota.policy import msr_name, record_named
from rota.simulation import Result, compare_pair
from rota.study.plan_growth import Limit

if TYPE_CHECKING:
    from rota.study.plan import Plan

__all__ = ["beside_the_paper", "choose", "in_three", "in_words", "overload_text", "title_of", "worse_off"]

_SAME = 0.01  # relative: a smaller difference does not matter in practice
_UNSURE = 0.1  # relative: a mean that is worse by more than this is never called as good, even if the difference is not significant
_GROWTH = 1.05  # arrivals should be able to grow by this much
_WORSE = 1.5  # a type that takes so many times as long as under another policy is named

_COMMON = ("first-fit", "fcfs")  # what most servers run


def title_of(name: str) -> str:
    """The title of a registered policy, in words."""
    record = record_named(name)
    assert record is not None
    return record.title


def choose(results: dict[str, Result], limits: dict[str, Limit], load: float) -> tuple[str, str]:
    """The policy to recommend, and the reason. `results` are ordered from the simplest policy to the most complex."""
    settled = {name: result for name, result in results.items() if result.stable and not np.isnan(result.mean_response_time)}
    if not settled:
        rare = sorted({name for result in results.values() for name in result.unknown})
        few = f" (there were too few of {_quoted(rare)})" if rare else ""
        raise Unstable(f"at load {load:.4g} no policy settled within the jobs simulated{few}: simulate more jobs, or reduce the arrivals")
    # Keep those of which most is known: a policy that has no interval, or no mean of a rare type, where others do may starve a type.
    lacks = {name: (not np.isfinite(result.interval), len(result.unknown)) for name, result in settled.items()}
    settled = {name: result for name, result in settled.items() if lacks[name] == min(lacks.values())}
    fastest = min(settled, key=lambda name: settled[name].mean_response_time)
    alike = [name for name in settled if name == fastest or _same(settled[name], settled[fastest])]
    can_grow = [name for name in alike if limits[name].scaling(load) >= _GROWTH]
    chosen = (can_grow or alike)[0]
    others = [name for name in alike if name != chosen]
    if len(settled) == 1:
        return chosen, "It is the only one whose mean response time is known: under the others jobs pile up, or too few are done."
    if not others:
        sure = all(name == chosen or compare_pair(result, settled[chosen]).significant for name, result in settled.items())
        how = ", and the difference is significant" if sure else "; not every difference is significant: simulate more jobs to be sure"
        return chosen, f"It has the lowest mean response time of all policies compared{how}."
    reason = f"It is as good as {_listed(others)}: differences are within the error of the simulation, or below {_SAME:.0%}.\n"
    if can_grow and chosen != alike[0]:
        return chosen, reason + f"{_start(title_of(alike[0]))} is simpler, but leaves less than {_GROWTH - 1:.0%} for load to grow."
    return chosen, reason + "It is the simplest of them."


def _same(result: Result, fastest: Result) -> bool:
    difference = compare_pair(result, fastest)
    most = _SAME if difference.significant else _UNSURE
    return difference.mean <= most * fastest.mean_response_time


def in_words(plan: Plan) -> list[str]:
    """The plan as sentences: what to run and why, compared with common policies, how far load can grow, and what limits it."""
    name, result = plan.recommended_name, plan.results[plan.recommended_name]
    return [
        f"Run {title_of(name)} ({name}): mean response time {result.mean_response_time:.4g} ± {result.interval:.2g}.",
        *worse_off(plan),
        *result.remarks,
        *plan.reason.split("\n"),
        *(_against(plan, other) for other in reversed(_COMMON) if other != name),
        *_rota_words(plan),
        *([] if plan.bursts is None else [plan.bursts.words()]),
        beside_the_paper(plan),
        _growth(plan),
        *plan.load.explain().split("\n")[1:],
    ]


def in_three(plan: Plan) -> list[str]:
    """The sentences below the name of the policy: which type pays, why this policy, its gain over a common one, how far load can grow."""
    common = next(name for name in _COMMON if name != plan.recommended_name)
    first = [*worse_off(plan), *plan.results[plan.recommended_name].remarks]
    bursts = [] if plan.bursts is None else [plan.bursts.words()]
    return [*first, plan.reason.replace("\n", " "), _against(plan, common), *bursts, _growth(plan)]


def worse_off(plan: Plan) -> list[str]:
    """The type that loses most under the recommended policy, compared with the policy that is best for that type.

    A mean over all jobs hides it: a policy may serve many small jobs well and leave a few large ones waiting.
    """
    chosen, names = plan.results[plan.recommended_name], plan.system.names
    others = {name: result for name, result in plan.results.items() if result.stable and name != plan.recommended_name}
    if len(names) < 2 or not others:
        return []
    means = np.array([result.response_time for result in others.values()])  # (policies, K)
    means = np.where(np.isnan(means), np.inf, means)
    least = means.min(axis=0)
    times = np.where(np.isfinite(least) & ~np.isnan(chosen.response_time), chosen.response_time / least, 0.0)
    i = int(times.argmax())
    if times[i] < _WORSE:
        return []
    best = list(others)[int(means[:, i].argmin())]
    own = f"{chosen.response_time[i]:.3g} ± {chosen.response_time_interval[i]:.2g}"
    other = f"{least[i]:.3g} ± {others[best].response_time_interval[i]:.2g}"
    waits = f"{chosen.waiting_time[i]:.3g}"
    here = f"Type '{names[i]}' does worse than under another policy: {own} on average, of which {waits} waiting"
    return [f"{here}; {other} under {title_of(best)} ({best})."]


def _against(plan: Plan, other: str) -> str:
    result, chosen = plan.results[other], plan.results[plan.recommended_name]
    if not result.stable:
        whole = len(result.growing) == len(plan.system.names)
        return (
            f"Under {title_of(other)} the queue kept growing: it cannot carry this load."
            if whole
            else f"Under {title_of(other)} jobs of {_quoted(result.growing)} kept piling up: it cannot carry this load."
        )
    if np.isnan(result.mean_response_time):
        return f"Under {title_of(other)} too few jobs of {_quoted(result.unknown)} ended to give a mean."
    if not np.isfinite(result.interval):
        return f"{_start(title_of(other))} took {result.mean_response_time:.4g} in this run, but the error of that is not known."
    difference = plan.difference(other)
    if not difference.significant:
        return f"{_start(title_of(other))} takes {result.mean_response_time:.4g} ± {result.interval:.2g}: no significant difference."
    ratio = result.mean_response_time / chosen.mean_response_time
    times = f"{ratio - 1:.0%} longer" if ratio < 2 else f"{ratio:.1f} times as long"
    apart = f"{difference.mean:.3g} ± {difference.interval:.2g}"
    return f"{_start(title_of(other))} takes {times}: {result.mean_response_time:.4g} ({apart} more)."


def _growth(plan: Plan) -> str:
    limit, load = plan.limits[plan.recommended_name], plan.load.load
    most = f"The load is {load:.4g}; no policy can take more than {1 / load:.3g} times the arrivals"
    if limit.proved:
        return f"{most}, and this one takes as much if its rota is redesigned."
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
    more = f"{difference.mean:.3g} ± {difference.interval:.2g}"
    return [f"The rota with backfilling takes {filled.mean_response_time:.4g} at this load, {more} more."]


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


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _quoted(names: Iterable[str]) -> str:
    return _listed([f"'{name}'" for name in names])


def _start(text: str) -> str:
    return text[0].upper() + text[1:]
