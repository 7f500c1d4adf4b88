"""Policies that are tuned for one server of each kind, at its part of the load: the queue-driven rota and the improved one.

They are compared with the dispatch rules that did best with plain policies. Tuning is by simulation of one server, kind after kind, if
there are few kinds: otherwise the policy is left out, and the plan says so. No clock decides, so the options do not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rota.capacity import FleetLoad
from rota.errors import Infeasible, NotConverged, TooManySchedules, Unstable
from rota.model import Dispatch, Fleet
from rota.policy import FirstFit, Improved, Policy, Split, policy_name
from rota.process import build_process
from rota.simulation import Result
from rota.study.fleet_options import FleetOption
from rota.study.plan_policies import MOST_STATES
from rota.tuning import FEWEST_JOBS, TuningProgress, tune_adaptive

__all__ = ["MOST_KINDS", "best_rules", "tuned_options"]

_RULES = 2  # dispatch rules that tuned policies are compared with
MOST_KINDS = 8  # with jobs, for which a policy is tuned: each takes some seconds
_IMPOSSIBLE = (Infeasible, NotConverged, TooManySchedules, Unstable)


def best_rules(options: Sequence[FleetOption], results: Mapping[str, Result]) -> list[Dispatch]:
    """The rules under which plain policies have the lowest mean response times; of those that are as good, in the order of the options.

    A rule that keeps one queue for all servers is not among them: it sends a server only what fits at once, so that its policy has nothing
    to choose.
    """
    means: dict[Dispatch, float] = {}
    for option in options:
        result = results.get(option.name)
        if not isinstance(option.policy, Policy) or option.dispatch.record.central:
            continue
        if result is not None and result.stable and np.isfinite(result.mean_response_time):
            means[option.dispatch] = min(means.get(option.dispatch, np.inf), result.mean_response_time)
    return sorted(means, key=lambda rule: means[rule])[:_RULES]


def tuned_options(
    load: FleetLoad,
    rules: Sequence[Dispatch],
    split: Split | None,
    *,
    seed: int,
    tell: Callable[[str, float], None],
) -> tuple[list[FleetOption], dict[str, str]]:
    """Queue-driven rotas and improved ones with these rules; and, by name, why they are not among them.

    `split`: rotas of the kinds, which are improved.
    """
    left_out: dict[str, str] = {}
    found = []
    for name, make in (("adaptive", _adaptive), ("improved", _improved)):
        try:
            policies = make(load, split, seed, tell)
        except _IMPOSSIBLE as error:
            left_out[name] = str(error)
            continue
        designed = [one for one in policies.values() if one is not None and not isinstance(one, FirstFit)]
        label = " + ".join(dict.fromkeys(map(policy_name, designed)))
        found += [FleetOption(f"{label}, {rule.label}", policies, rule) for rule in rules]
    return found, left_out


def _adaptive(load: FleetLoad, split: Split | None, seed: int, tell: Callable[[str, float], None]) -> dict[str, Policy | None]:
    """The queue-driven rota of each kind; First-Fit where the load sends no job."""
    fleet = load.fleet
    used = [c for c in range(len(fleet.kinds)) if (fleet.arrival_rate * load.split[c]).any()]
    if len(used) > MOST_KINDS:
        raise Infeasible(f"there are {len(used)} kinds of servers with jobs: a policy is tuned for at most {MOST_KINDS}")
    policies = _plain(fleet)
    for done, c in enumerate(used):
        kind = fleet.kinds[c]

        def show(at: TuningProgress, kind: str = kind, done: int = done) -> None:
            tell(f"tuning the policy of {kind!r} servers", (done + at.part) / len(used))

        rate = fleet.arrival_rate * load.split[c] / fleet.count[c]
        policies[kind] = tune_adaptive(fleet.server(c, rate), jobs=FEWEST_JOBS, seed=seed, progress=show).policy
    return policies


def _improved(load: FleetLoad, split: Split | None, seed: int, tell: Callable[[str, float], None]) -> dict[str, Policy | None]:
    """The rota of each kind, improved, where its tables are small; First-Fit where no job is sent."""
    fleet = load.fleet
    if split is None:
        raise Infeasible("there are no rotas to improve")
    policies = _plain(fleet)
    for c, (kind, base) in enumerate(zip(fleet.kinds, split.policies, strict=True)):
        if base is None:
            continue
        server = split.server(fleet, c)
        if len(build_process(server, base)) > MOST_STATES:
            raise Infeasible(f"the rota of {kind!r} servers has too many states to be improved in a moment")
        never = [server.names[i] for i in np.flatnonzero(base.candidates.sum(axis=0) == 0)]
        if never:
            reason = f"the rota of {kind!r} servers never runs jobs of {', '.join(map(repr, never))}"
            raise Infeasible(f"{reason}, which these dispatch rules may send there")
        policies[kind] = Improved(base.replace(backfill=False), base.preemption != "full")
    return policies


def _plain(fleet: Fleet) -> dict[str, Policy | None]:
    """First-Fit for each kind; None where no type can run."""
    return {kind: FirstFit() if fleet.runs[c].any() else None for c, kind in enumerate(fleet.kinds)}
