"""Which policy to recommend.

The rule: leave out the policies that may not keep a limit on a type; of the others take those whose value the simulation cannot
distinguish from the lowest one, keep those that allow the load to grow, and recommend the simplest of them. So a rota is recommended only
where it brings a gain that can be measured. All differences are tested at once: the fastest of several policies was chosen by its luck too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from rota.errors import Unstable
from rota.policy import record_named
from rota.simulation import Comparison, Difference, FleetResult, Result
from rota.study.fleet_target import fastest
from rota.study.plan_growth import Limit
from rota.study.plan_objective import Measure, measure_of, time_words

__all__ = ["Choice", "choose", "listed", "quoted", "start", "title_of"]

_SAME = 0.01  # relative: a smaller difference does not matter in practice
_UNSURE = 0.1  # relative: a value that is worse by more than this is never called as good, even if the difference is not significant
_GROWTH = 1.05  # arrivals should be able to grow by this much


class Choice(NamedTuple):
    """The policy to recommend, and why; which policies are excluded by the limits, with the reason; whether it keeps them itself."""

    name: str
    reason: str
    excluded: dict[str, str]
    keeps_limits: bool


def title_of(name: str) -> str:
    """The title of a registered policy, in words."""
    record = record_named(name)
    assert record is not None
    return record.title


def choose(
    comparison: Comparison,
    growth: dict[str, Limit],
    load: float,
    *,
    objective: str = "mean",
    limits: Mapping[str, float] | None = None,
) -> Choice:
    """The policy to recommend. Those compared are in order from the simplest to the most complex; `limits` are mean times by type."""
    results = dict(zip(comparison.labels, comparison.results, strict=True))
    apart = partial(measure_of(objective).apart, comparison)
    settled = {name: result for name, result in results.items() if result.stable and not np.isnan(result.mean_response_time)}
    if not settled:
        rare = sorted({name for result in results.values() for name in result.unknown})
        few = f" (there were too few of {quoted(rare)})" if rare else ""
        raise Unstable(f"at load {load:.4g} no policy settled within the jobs simulated{few}: simulate more jobs, or reduce the arrivals")
    # Keep those of which most is known: a policy that has no interval, or no mean of a rare type, where others do may starve a type.
    lacks = {name: (not np.isfinite(result.interval), len(result.unknown)) for name, result in settled.items()}
    settled = {name: result for name, result in settled.items() if lacks[name] == min(lacks.values())}
    broken = {name: text for name, result in settled.items() if (text := _breaks(result, limits or {}))}
    kept = {name: result for name, result in settled.items() if name not in broken}
    if not kept:
        return _nearest(settled, limits or {}, broken)
    name, reason = _best(kept, growth, load, measure_of(objective), apart, bool(broken))
    if broken:
        reason += f"\nExcluded by the limits: {'; '.join(f'{other} ({text})' for other, text in broken.items())}."
    return Choice(name, reason, broken, True)


def _best(
    kept: dict[str, Result],
    growth: dict[str, Limit],
    load: float,
    measure: Measure,
    apart: Callable[[str, str], Difference],
    limited: bool,
) -> tuple[str, str]:
    """The simplest of the policies that may have the lowest value, of those that allow load to grow; and the reason."""
    best = min(kept, key=lambda name: measure.value(kept[name]))
    alike = [name for name in kept if name == best or _same(apart(name, best), measure.value(kept[best]))]
    can_grow = [name for name in alike if growth[name].scaling(load) >= _GROWTH]
    chosen = (can_grow or alike)[0]
    others = [name for name in alike if name != chosen]
    if len(kept) == 1 and limited:
        return chosen, "It is the only one that is sure to keep the limits."
    if len(kept) == 1:
        return chosen, "It is the only one whose mean response time is known: under the others jobs pile up, or too few are done."
    if not others:
        sure = all(name == chosen or apart(name, chosen).significant for name in kept)
        how = ", and the difference is significant" if sure else "; not every difference is significant: simulate more jobs to be sure"
        among = "of those that keep the limits" if limited else "of all policies compared"
        return chosen, f"It has the lowest {measure.title} {among}{how}."
    reason = f"It is as good as {listed(others)}: differences are within the error of the simulation, or below {_SAME:.0%}.\n"
    if can_grow and chosen != alike[0]:
        return chosen, reason + f"{start(title_of(alike[0]))} is simpler, but leaves less than {_GROWTH - 1:.0%} for load to grow."
    return chosen, reason + "It is the simplest of them."


def _same(difference: Difference, best: float) -> bool:
    most = _SAME if difference.significant else _UNSURE
    return difference.mean <= most * best


# ------------------------------------------------------------------------------------------------------------------- limits


def _breaks(result: Result, limits: Mapping[str, float]) -> str:
    """Which limits a policy may not keep, and how its interval lies to them; empty if it keeps all."""
    found = []
    for name, limit in limits.items():
        i = result.system.names.index(name)
        mean, interval = float(result.response_time[i]), float(result.response_time_interval[i])
        if mean + interval <= limit:
            continue
        if np.isnan(mean):
            found.append(f"too few jobs of '{name}' for a mean")
        else:
            how = "the limit is" if mean > limit else "too near to the limit of"
            found.append(f"'{name}' takes {time_words(result.system, mean, interval)}, {how} {time_words(result.system, limit)}")
    return ", ".join(found)


def _nearest(settled: dict[str, Result], limits: Mapping[str, float], broken: dict[str, str]) -> Choice:
    """Where no policy keeps the limits: the one whose interval reaches least above its limit, for the type where it reaches furthest."""

    def excess(result: Result) -> float:
        places = [result.system.names.index(name) for name in limits]
        reach = (result.response_time + result.response_time_interval)[places] / np.array(list(limits.values()))
        return float(np.where(np.isnan(reach), np.inf, reach).max())

    name = min(settled, key=lambda name: excess(settled[name]))
    others = "; ".join(f"{other} ({text})" for other, text in broken.items() if other != name)
    reason = f"Under it {broken[name]}."
    result = settled[name]
    system = result.system
    least = fastest(result.fleet) if isinstance(result, FleetResult) else 1 / system.service_rate
    for kind, limit in limits.items():
        size = float(least[system.names.index(kind)])
        if limit < size:
            what = "the mean running time on the fastest servers" if isinstance(result, FleetResult) else "the mean size"
            reason += f"\nNo policy can keep a limit below {what}, which is {time_words(system, size)} for '{kind}'."
    return Choice(name, reason + (f"\nUnder the others: {others}." if others else ""), broken, False)


# -------------------------------------------------------------------------------------------------------------------- words


def listed(names: list[str]) -> str:
    """Names in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def quoted(names: Iterable[str]) -> str:
    """Names in quotation marks, in a sentence."""
    return listed([f"'{name}'" for name in names])


def start(text: str) -> str:
    """Text at the start of a sentence."""
    return text[0].upper() + text[1:]
