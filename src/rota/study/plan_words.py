"""Which policy to recommend, and why, in plain words.

The rule: of the policies that wait least, as far as the simulation can tell them apart, those that leave room for load to grow; of these
the simplest one. So a rota is recommended only where it brings something that can be measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.capacity import Load
from rota.errors import Unstable
from rota.simulation import Result, compare_pair
from rota.study.plan_growth import Limit

if TYPE_CHECKING:
    from rota.study.plan import Plan

__all__ = ["TITLES", "choose", "in_three", "in_words", "overload_text"]

_SAME = 0.01  # relative: who would notice?
_UNSURE = 0.1  # a mean so much worse is not called as good only because too few jobs were simulated to be sure
_ROOM = 1.05  # arrivals should be able to grow by this much

TITLES = {
    "fcfs": "first come, first served",
    "first-fit": "First-Fit",
    "easy": "EASY backfilling",
    "max-weight": "MaxWeight",
    "max-weight-np": "MaxWeight without preemption",
    "server-filling": "ServerFilling",
    "pMSR": "the rota",
    "nMSR": "the rota without preemption",
    "sMSR": "the rota with setups",
    "pMSR+backfill": "the rota with backfilling",
    "nMSR+backfill": "the rota with backfilling, without preemption",
    "sMSR+backfill": "the rota with setups and backfilling",
}


def choose(results: dict[str, Result], limits: dict[str, Limit], load: float) -> tuple[str, str]:
    """The policy to recommend, and the reason. `results` come from simple to involved."""
    settled = {name: result for name, result in results.items() if result.stable}
    if not settled:
        raise Unstable(f"at load {load:.4g} no policy settled within the jobs simulated: more of them, or fewer arrivals, will tell")
    fastest = min(settled, key=lambda name: settled[name].mean_response_time)
    alike = [name for name in settled if name == fastest or _same(settled[name], settled[fastest])]
    roomy = [name for name in alike if limits[name].scaling(load) >= _ROOM]
    chosen = (roomy or alike)[0]
    others = [name for name in alike if name != chosen]
    if not others:
        sure = all(name == chosen or compare_pair(result, settled[chosen]).significant for name, result in settled.items())
        how = ", and the difference is significant" if sure else "; not every difference is significant, and more jobs would tell"
        return chosen, f"It has the lowest mean response time of all policies compared{how}."
    reason = f"It is as good as {_listed(others)}: differences are within the error of the simulation, or below {_SAME:.0%}.\n"
    if roomy and chosen != alike[0]:
        return chosen, reason + f"{_start(TITLES[alike[0]])} is simpler, but leaves less than {_ROOM - 1:.0%} for load to grow."
    return chosen, reason + "It is the simplest of them."


def _same(result: Result, fastest: Result) -> bool:
    difference = compare_pair(result, fastest)
    most = _SAME if difference.significant else _UNSURE
    return difference.mean <= most * fastest.mean_response_time


def in_words(plan: Plan) -> list[str]:
    """The plan as sentences: what to run and why, against what is common, how far it goes, what limits."""
    name, result = plan.recommended_name, plan.results[plan.recommended_name]
    return [
        f"Run {TITLES[name]} ({name}): mean response time {result.mean_response_time:.4g} ± {result.interval:.2g}.",
        *plan.reason.split("\n"),
        *(_against(plan, other) for other in ("fcfs", "first-fit") if other != name),
        *_rota_words(plan),
        _growth(plan),
        *plan.load.explain().split("\n")[1:],
    ]


def in_three(plan: Plan) -> list[str]:
    """What comes first below the name of the policy: why this one, what it gains over what most run, how far it goes."""
    common = "first-fit" if plan.recommended_name != "first-fit" else "fcfs"
    return [plan.reason.replace("\n", " "), _against(plan, common), _growth(plan)]


def _against(plan: Plan, other: str) -> str:
    result, chosen = plan.results[other], plan.results[plan.recommended_name]
    if not result.stable:
        return f"Under {TITLES[other]} the queue kept growing: it cannot carry this load."
    difference = plan.difference(other)
    if not difference.significant:
        return f"{_start(TITLES[other])} takes {result.mean_response_time:.4g} ± {result.interval:.2g}: no significant difference."
    ratio = result.mean_response_time / chosen.mean_response_time
    times = f"{ratio - 1:.0%} longer" if ratio < 2 else f"{ratio:.1f} times as long"
    apart = f"{difference.mean:.3g} ± {difference.interval:.2g}"
    return f"{_start(TITLES[other])} takes {times}: {result.mean_response_time:.4g} ({apart} more)."


def _growth(plan: Plan) -> str:
    limit, load = plan.limits[plan.recommended_name], plan.load.load
    room = f"The load is {load:.4g}; no policy can take more than {1 / load:.3g} times the arrivals"
    if limit.proved:
        return f"{room}, and this one takes as much if its rota is designed anew."
    if limit.grows >= 1:
        return f"{room}. This one still settled at load {limit.settles:.2f} ({limit.settles / load:.3g} times the arrivals; simulated)."
    return f"{room}. This one gives up at about {limit.scaling(load):.3g} times, load {limit.middle:.2f} (an estimate by simulation)."


def _rota_words(plan: Plan) -> list[str]:
    """Honest words on the rota where it is not what is recommended."""
    own = {"full": "pMSR", "none": "nMSR", "setup": "sMSR"}[plan.system.preemption]
    if plan.recommended_name.startswith(own) or not plan.results[own].stable:
        return []
    filled = plan.results.get(f"{own}+backfill")
    if filled is None or not filled.stable:
        return []
    difference = plan.difference(f"{own}+backfill")
    if not difference.significant:
        return [f"The rota with backfilling takes {filled.mean_response_time:.4g}: no significant difference at this load."]
    more = f"{difference.mean:.3g} ± {difference.interval:.2g}"
    return [f"The rota with backfilling takes {filled.mean_response_time:.4g} at this load, {more} more."]


def overload_text(best: Load, capacity: float | None) -> str:
    """What to say, and what to do, if the load is not below 1."""
    resource = best.bottleneck[0]
    amount = best.system.capacity[best.system.resources.index(resource)]
    more = (
        f"or bring {resource!r} from {amount:g} to {capacity:g}, which makes the load at most 0.95"
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


def _start(text: str) -> str:
    return text[0].upper() + text[1:]
