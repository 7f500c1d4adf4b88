"""The plan of a fleet in plain words: what to run and why, how far it is from the bound, what to buy next, what the targets need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rota.model import Fleet
from rota.policy import Pinned
from rota.study.fleet_counts import Counts
from rota.study.fleet_target import Enough
from rota.study.plan_choice import listed, quoted
from rota.study.plan_objective import time_words
from rota.study.plan_words import above_bound

if TYPE_CHECKING:
    from rota.study.fleet_growth import OneMore
    from rota.study.fleet_plan import FleetPlan

__all__ = [
    "above_words",
    "baseline_words",
    "buy_words",
    "in_words",
    "measured",
    "one_more_words",
    "places_words",
    "recommendation",
    "target_words",
]


def in_words(plan: FleetPlan) -> list[str]:
    """The plan as sentences."""
    return [
        f"{recommendation(plan)}: {measured(plan)}.",
        *plan.result.remarks,
        *plan.reason.split("\n"),
        *([] if plan.enough is None else target_words(plan.enough)),
        *above_words(plan),
        *baseline_words(plan),
        *buy_words(plan),
        *plan.load.explain().split("\n"),
    ]


def recommendation(plan: FleetPlan) -> str:
    """What to run, or, where no option keeps the limits, which comes nearest."""
    title = plan.recommended.title
    return title.rstrip(",") if plan.keeps_limits else f"No option is sure to keep the limits; nearest is {plan.recommended_name}"


def measured(plan: FleetPlan) -> str:
    """The mean response time of what is recommended, after what it was chosen by."""
    result, exact = plan.result, plan.recommended.known
    mean = f"mean response time {_time(plan.fleet, result.mean_response_time, result.interval)}"
    if exact is not None:
        mean += f" simulated, {time_words(plan.fleet, exact.mean_response_time)} exactly"
    if plan.objective == "mean":
        return mean
    return f"{plan.measure.title} {plan.measure.value(result):.4g} ± {plan.measure.interval(result):.2g}; {mean}"


def _time(fleet: Fleet, mean: float, interval: float | None = None) -> str:
    """A time with four digits: more than those of others, as it stands beside a target."""
    spread = "" if interval is None else f" ± {interval:.2g}"
    return f"{mean:.4g}{spread}" + (f" {fleet.time_unit}" if fleet.time_unit is not None else "")


def waiting_of(plan: FleetPlan, i: int) -> float:
    """The mean wait of a type, simulated; 0 where rounding is all that there is."""
    wait = float(plan.result.waiting_time[i])
    return 0.0 if wait < 1e-9 * float(plan.result.response_time[i]) else wait


def places_words(plan: FleetPlan, i: int) -> str:
    """Where the jobs of a type ran, and their mean response time there: `small 54% (3.02), gpu 46% (1.01)`."""
    parts, means = plan.result.parts[:, i], plan.result.kind_response_time[:, i]
    return ", ".join(
        f"{kind} {parts[c]:.0%}" + ("" if np.isnan(means[c]) else f" ({means[c]:.3g})")
        for c, kind in enumerate(plan.fleet.kinds)
        if parts[c] >= 0.005
    )


def above_words(plan: FleetPlan) -> list[str]:
    """How far it is from what no dispatcher and no policy can be below."""
    above = plan.above_bound(plan.result.mean_response_time)
    if above is None or plan.lower_bound is None:
        return []
    bound = time_words(plan.fleet, plan.lower_bound)
    return [f"No dispatcher and no policy can have a mean response time below {bound} (proved): this is {above_bound(above)}."]


def baseline_words(plan: FleetPlan) -> list[str]:
    """What the dispatch rule of the file itself does."""
    name = plan.baseline
    if name is None or name == plan.recommended_name:
        return [] if name is None else ["The dispatch rule is the one that the file names."]
    result = plan.results[name]
    if not result.stable:
        return [f"The file names '{name}': there jobs of {quoted(result.growing)} kept piling up."]
    difference = plan.difference(name)
    mean = time_words(plan.fleet, result.mean_response_time)
    if np.isnan(difference.mean):
        return [f"The file names '{name}': too few jobs of {quoted(result.unknown)} ended to give a mean."]
    if not difference.significant:
        return [f"The file names '{name}', which takes {mean}: no significant difference."]
    apart = f"{abs(difference.mean):.3g} ± {difference.interval:.2g} {'more' if difference.mean > 0 else 'less'}"
    return [f"The file names '{name}', which takes {mean} ({apart})."]


# ------------------------------------------------------------------------------------------------------------ what to buy


def one_more_words(plan: FleetPlan, more: OneMore) -> str:
    """What one more server of a kind does to the mean response time, simulated."""
    if more.result is None:
        return "not simulated"
    if not more.result.stable or more.difference is None or np.isnan(more.difference.mean):
        return "not known"
    if not more.difference.significant:
        return "no significant difference"
    apart = time_words(plan.fleet, abs(more.difference.mean), more.difference.interval)
    return f"{apart} {'less' if more.difference.mean < 0 else 'more'}"


def buy_words(plan: FleetPlan) -> list[str]:
    """Which kind of server to buy next, for load and for the mean response time."""
    best = plan.one_more[0]
    if best.carries[1] <= 0:
        return []
    c = plan.fleet.kinds.index(best.kind)
    first = f"Buy a {best.kind!r} server next: it carries {plan.load.more_in_words(c)} more, more than one of any other kind"
    if len(plan.one_more) == 1:
        first = f"One more {best.kind!r} server carries {plan.load.more_in_words(c)} more"
    better = [more for more in plan.one_more if more.difference is not None and more.difference.significant and more.difference.mean < 0]
    if not better:
        return [f"{first}.", "One more server of any kind does not make the mean response time measurably shorter."]
    shortest = min(better, key=lambda more: more.difference.mean if more.difference is not None else np.inf)
    gain = f"makes the mean response time {one_more_words(plan, shortest).replace(' less', ' shorter')}"
    if shortest.kind == best.kind:
        return [f"{first}, and it {gain} (simulated)."]
    return [f"{first}.", f"One more {shortest.kind!r} server {gain} (simulated)."]


# ------------------------------------------------------------------------------------------------------------ targets


def servers_words(fleet: Fleet, counts: Counts) -> str:
    """Counts in words, those that differ from today's with both numbers."""
    changed = [
        f"{n:,} {kind!r} server{'s' if n != 1 else ''} (today {now:,})"
        for n, now, kind in zip(counts, fleet.count.tolist(), fleet.kinds, strict=True)
        if n != now
    ]
    return listed(changed) if changed else f"today's {fleet.servers:,} servers"


def target_words(enough: Enough) -> list[str]:
    """What the targets need: what was simulated, and what was proved."""
    fleet = enough.fleet
    asked = listed([f"{name}={_time(fleet, target)}" for name, target in enough.targets.items()])
    said = []
    if enough.count is None or enough.estimate is None:
        said.append(f"Target {asked}: no number of servers that was tried keeps it under '{enough.option.name}', simulated.")
    else:
        values = _values(enough, enough.estimate.response_time, enough.estimate.mean_response_time)
        widths = _values(enough, enough.estimate.response_time_interval, enough.estimate.interval)
        got = listed([f"{name} {_time(fleet, values[name], widths[name])}" for name in enough.targets])
        words, under = servers_words(fleet, enough.count), f"under '{enough.option.name}'"
        if not enough.kept_today:
            how = f"it needs {words} {under}"
        elif enough.count != tuple(fleet.count):
            how = f"today's servers keep it {under}, and so do {words}"
        else:
            how = f"today's servers keep it {under}, and none of them can be left out"
        said.append(f"Target {asked}: {how}: {got} (simulated; with one server less of a kind it is not sure).")
    if isinstance(enough.option.policy, Pinned):
        return said
    if enough.pinned is None or enough.known is None:
        return [*said, "Pinned servers that keep it, for which there would be a proof, were not found."]
    values = _values(enough, enough.known.response_time, enough.known.mean_response_time)
    got = listed([f"{name} {_time(fleet, values[name])}" for name in enough.targets])
    return [*said, f"Pinned servers keep it with {servers_words(fleet, enough.pinned)}: {got} (exact, so proved)."]


def _values(enough: Enough, by_type: np.ndarray, mean: float) -> dict[str, float]:
    names = enough.fleet.names
    return {name: float(by_type[names.index(name)]) if name in names else mean for name in enough.targets}
