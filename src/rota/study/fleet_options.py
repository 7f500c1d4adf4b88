"""What the plan of a fleet compares: a policy that every server runs with a dispatch rule, or a design of the whole fleet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rota.analysis import analyze
from rota.analysis.pooled import least_mean_response_time
from rota.arrays import Array
from rota.capacity import FleetLoad
from rota.design import design_partly_pinned, design_pinned, design_split
from rota.errors import Infeasible, RotaError
from rota.model import Dispatch, Exponential, Fleet
from rota.model.dispatch import DISPATCH_RULES, DispatchRecord, make_dispatch
from rota.policy import FirstFit, MaxWeight, PartlyPinned, Pinned, Policy, Split, msr_name, policy_name, record_of
from rota.study.warm_up import FLEETS

__all__ = ["FleetOption", "Known", "baseline_of", "compiled_parts", "known_of", "lower_bound", "options_of", "redesigned"]

# From the one that knows least of the servers to the one that knows most.
_RULES = ("random", "power-of-d", "jsq", "best-fit", "least-wait", "pull")
_PINNED_S = 10.0  # at most: it takes a tenth of a second where schedules are few
_BY_RULE = {
    "random": "send jobs to servers at random",
    "round-robin": "send jobs to the servers in turn",
    "pull": "keep one queue from which servers pull",
}


@dataclass(frozen=True)
class Known:
    """What exact analysis says: E[T_i] of each type (K,), and the mean over all jobs."""

    response_time: Array
    mean_response_time: float


@dataclass(frozen=True, eq=False)
class FleetOption:
    """A policy, by kind or the same for all servers, or a design of the whole fleet; and the dispatch rule. `known`: its exact values."""

    name: str
    policy: Policy | Pinned | PartlyPinned | Split | Mapping[str, Policy | None]
    dispatch: Dispatch
    known: Known | None = None

    @property
    def title(self) -> str:
        """What to do, in a sentence that begins with a verb."""
        if isinstance(self.policy, Pinned):
            return "Pin the servers, each to one set of jobs,"
        if isinstance(self.policy, PartlyPinned):
            return "Pin most servers, each to one set of jobs, and let the others turn,"
        if isinstance(self.policy, Split):
            return "Let every server follow the rota of its kind and send jobs to servers at random"
        own = record_of(self.policy).title if isinstance(self.policy, Policy) else _by_kind(self.policy)
        return f"Run {own} on every server and {_BY_RULE.get(self.dispatch.rule, f'dispatch by {self.dispatch.rule}')}"


def _by_kind(policies: Mapping[str, Policy | None]) -> str:
    """The policies of the kinds in words."""
    titles = {record_of(policy).title for policy in policies.values() if policy is not None}
    return f"{titles.pop()}, tuned for each kind," if len(titles) == 1 else "the policy of its kind"


def option_name(policy: Policy, dispatch: Dispatch) -> str:
    """The short name of a policy with a rule."""
    return f"{policy_name(policy)}, {dispatch.label}"


def compiled_parts(fleet: Fleet) -> list[str]:
    """What a plan simulates with, in the order in which it needs it first: parts of `rota.study.warm_up`."""
    policies = [policy_name(policy) for policy in _plain(fleet)]
    rota = msr_name(fleet.preemption, False)
    return [FLEETS, *policies, rota, "adaptive", f"improved {msr_name(fleet.preemption, fleet.preemption != 'full')}"]


def _plain(fleet: Fleet) -> list[Policy]:
    """The policies to compare that need no design."""
    return [FirstFit(), MaxWeight(fleet.preemption if fleet.preemption == "full" else "none")]


def options_of(fleet: Fleet, load: FleetLoad, *, time_limit_s: float) -> tuple[list[FleetOption], dict[str, str]]:
    """What to compare, from the simplest to the most complex; and, by name, why a design is not among it. Partly pinned servers are
    designed where there are no pinned ones.
    """
    own = fleet.dispatch
    rules = [_like(DISPATCH_RULES[rule], own) for rule in _RULES]
    if own is not None and own.rule != "pinned" and own not in rules:
        rules.insert(1, own)
    found = [FleetOption(option_name(policy, rule), policy, rule) for policy in _plain(fleet) for rule in rules]
    left_out: dict[str, str] = {}
    pinned = make_dispatch("pinned")
    for name, rule in (("pinned", pinned), ("partly pinned", pinned), ("split rotas", rules[0])):
        if name == "partly pinned" and "pinned" not in left_out:
            continue
        try:
            found.append(redesigned(FleetOption(name, _NONE, rule), fleet, load, time_limit_s=time_limit_s))
        except RotaError as error:
            left_out[name] = str(error)
    return found, left_out


def _like(record: DispatchRecord, own: Dispatch | None) -> Dispatch:
    """A rule with the staleness and the cost of another, where these go with it."""
    if own is None or record.central:
        return make_dispatch(record.name)
    return make_dispatch(record.name, staleness=own.staleness if record.looks else 0.0, cost=own.cost)


_NONE = FirstFit()  # in the place of a design that is not made yet


def redesigned(option: FleetOption, fleet: Fleet, load: FleetLoad, *, time_limit_s: float = 5.0) -> FleetOption:
    """The option for another fleet: a design is made anew, and analyzed; a policy stays as it is. `time_limit_s`: for rotas."""
    if option.name == "pinned":
        design: Pinned | PartlyPinned | Split = design_pinned(fleet, load=load, time_limit_s=_PINNED_S)
    elif option.name == "partly pinned":
        design = design_partly_pinned(fleet, load=load, time_limit_s=time_limit_s)
    elif option.name == "split rotas":
        design = design_split(fleet, load=load, time_limit_s=time_limit_s)
    else:
        return option
    return replace(option, policy=design, known=None if option.dispatch.cost else known_of(fleet, design))


def known_of(fleet: Fleet, design: Pinned | PartlyPinned | Split) -> Known | None:
    """The exact values of a design; None where sizes, arrivals or servers that fail do not allow them."""
    if np.isfinite(fleet.up_time).any():
        return None
    try:
        answer = analyze(fleet, design)
        return Known(answer.response_time, answer.mean_response_time)
    except Infeasible:
        return None


def baseline_of(fleet: Fleet, names: Mapping[str, object]) -> str | None:
    """What the file itself says: First-Fit with its rule, or pinned servers; None if it has no rule."""
    if fleet.dispatch is None:
        return None
    name = "pinned" if fleet.dispatch.rule == "pinned" else option_name(FirstFit(), fleet.dispatch)
    return name if name in names else None


def lower_bound(fleet: Fleet, load: FleetLoad) -> float | None:
    """A bound on the mean response time of every dispatcher and policy (`rota.analysis.pooled`); None unless arrivals are Poisson and
    sizes exponential, for which it is proved.
    """
    if fleet.bursty or not all(isinstance(size, Exponential) for size in fleet.sizes):
        return None
    return least_mean_response_time(fleet, load)
