"""What a fleet does: a policy for the servers of each kind, and a dispatch rule. Made from what people write, and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import numpy as np

from rota.arguments import is_real
from rota.arrays import Array, Bool, Int
from rota.capacity import system_load
from rota.decide import Decider, decider_of
from rota.errors import BadSpec, Infeasible, NotConverged, Problem, RotaError, TooManySchedules, Unstable
from rota.model import Dispatch, Fleet, System
from rota.model.dispatch import checked_dispatch
from rota.policy import (
    DESIGNED_NAMES,
    MSR,
    FirstFit,
    Improved,
    PartlyPinned,
    Pinned,
    Policy,
    Record,
    Split,
    as_policy,
    draws,
    policy_name,
    preempts,
)
from rota.policy.fleet_files import fleet_design_at
from rota.policy.fleet_plan_file import fleet_plan_at
from rota.policy.lookup import policy_list

__all__ = ["FLEET_DESIGNS", "Failures", "FleetPolicy", "PolicyOfFleet", "as_fleet_policy", "fleet_policies", "pooled"]

PolicyOfFleet = Policy | str | Path | Mapping[str, Policy | str | Path | None] | Pinned | Split | PartlyPinned
Failures = Mapping[str, tuple[float, float]] | tuple[float, float]
_DEFAULT = Dispatch("jsq")
FLEET_DESIGNS = {"pinned": "design_pinned", "partly-pinned": "design_partly_pinned", "split": "design_split"}  # in `rota.design`
_NATURAL = {Pinned: Dispatch("pinned"), PartlyPinned: Dispatch("pinned"), Split: Dispatch("random")}
_NOTHING = 1e-12  # a smaller part of a type is rounding


def pooled(fleet: Fleet) -> System:
    """One server as large as all servers of a fleet together: the same jobs arrive there."""
    return System(
        fleet.count @ fleet.capacity,
        fleet.demand,
        fleet.arrival_rate,
        names=fleet.names,
        resources=fleet.resources,
        sizes=fleet.sizes,
        preemption=fleet.preemption,
        setup_time=fleet.setup_time,
        time_unit=fleet.time_unit,
        arrivals=fleet.arrivals,
    )


@dataclass(frozen=True, eq=False)
class FleetPolicy(Policy):
    """A policy for the servers of each kind (None: no job goes there), and which server a job goes to.

    `systems`: one server of each kind, for which its policy decides. `split` (C, K): the part of each type that goes to each kind, for the
    rule "random". `failures` (C, 2): mean times up and down; infinite and 0 where servers do not fail.

    Of partly pinned servers those that turn are kinds of their own here: `turns` (C, K) is the part of each type that goes to any of them
    alike, in place of the pinned slots, and `home` (C,) the kind of each among those of `given`, the fleet as people know it.
    """

    fleet: Fleet
    policies: tuple[Policy | None, ...]
    systems: tuple[System | None, ...]
    dispatch: Dispatch
    split: Array | None
    pinned: Pinned | None
    failures: Array
    turns: Array | None = None
    whole: tuple[Fleet, PartlyPinned] | None = None

    @property
    def given(self) -> Fleet:
        """The fleet with its own kinds."""
        return self.fleet if self.whole is None else self.whole[0]

    @property
    def home(self) -> Int:
        """The kind of the given fleet that each kind is (C,)."""
        return np.arange(len(self.fleet.kinds)) if self.whole is None else _turning_apart(*self.whole)[1]

    @property
    def label(self) -> str:
        """The policies of the servers and the dispatch rule."""
        if self.pinned is not None and self.dispatch.rule == "pinned":
            return "pinned" if self.turns is None else "partly pinned"
        names = dict.fromkeys(policy_name(policy) for policy in self.policies if policy is not None)
        return f"{' + '.join(names)}, {self.dispatch.label}"

    @property
    def runs(self) -> Array:
        """Whether jobs of a type may go to a kind (C, K)."""
        has_policy = np.array([policy is not None for policy in self.policies])
        return np.asarray(self.fleet.runs & has_policy[:, None])

    def deciders(self) -> list[Decider | None]:
        """How the policy of each kind decides."""
        pairs = zip(self.systems, self.policies, strict=True)
        return [None if system is None or policy is None else decider_of(system, policy) for system, policy in pairs]

    def slots(self) -> Int:
        """Which slots the servers of the fleet hold (M, K), if they are pinned: the first of a kind the first schedule, and so on."""
        fleet, pinned = self.fleet, self.pinned
        if pinned is None:
            return np.zeros((0, len(fleet.names)), dtype=np.int64)
        rows = np.zeros((fleet.servers, len(fleet.names)), dtype=np.int64)
        first = np.concatenate([[0], np.cumsum(fleet.count)])
        for c in range(len(fleet.kinds)):
            mine = pinned.kind == c
            held = np.repeat(pinned.candidates[mine], pinned.servers[mine], axis=0)
            rows[first[c] : first[c] + len(held)] = held
        return rows

    def _record(self) -> Record:
        """A record outside the registry, as for a policy of your own."""
        some = [policy for policy in self.policies if policy is not None]
        return Record(
            name=self.label,
            policy=FleetPolicy,
            rule="",
            title=self.label,
            preemption="full" if any(preempts(policy) for policy in some) else "none",
            throughput_optimal=False,
            colour="",
            mark="",
            draws=self.dispatch.record.draws or bool(np.isfinite(self.failures[:, 0]).any()) or any(draws(policy) for policy in some),
        )


def as_fleet_policy(
    fleet: Fleet,
    policy: PolicyOfFleet,
    dispatch: Dispatch | str | None = None,
    *,
    staleness: float = 0.0,
    failures: Failures | None = None,
) -> FleetPolicy:
    """What the servers of a fleet do, from what people write; raises `BadSpec` or `Infeasible` with what does not fit.

    "pinned" and "split" are servers that are designed for the fleet, as `rota.design_pinned` and `rota.design_split` do. The plan of a
    fleet, as a file, gives its policy and, unless another one is given, its rule.
    """
    policy, dispatch = from_file(fleet, policy, dispatch)
    if isinstance(policy, str) and policy in FLEET_DESIGNS:
        policy = getattr(import_module("rota.design"), FLEET_DESIGNS[policy])(fleet)
    rule = rule_for(fleet, policy, dispatch)
    rule = rule.replace(staleness=staleness) if staleness != 0.0 else rule
    down = _checked_failures(fleet, failures)
    if isinstance(policy, Pinned):
        return _pinned(fleet, policy, rule, down)
    if isinstance(policy, PartlyPinned):
        return _partly_pinned(fleet, policy, rule, down)
    if rule.rule == "pinned":
        rule_text = "needs pinned servers: give rota.design_pinned(fleet) as the policy"
        raise BadSpec([Problem("dispatch.rule", rule_text, "pinned")])
    by_kind = _by_kind(fleet, policy)
    split = policy.split if isinstance(policy, Split) else None
    if split is None and (rule.rule == "random" or any(isinstance(one, str) and one in DESIGNED_NAMES for one in by_kind)):
        split = _whole(fleet, system_load(fleet).split)
    if isinstance(policy, Split):
        policy.server(fleet, 0) if fleet.runs[0].any() else None  # that it is for this fleet
    policies, systems = [], []
    for c, one in enumerate(by_kind):
        found, system = _of_kind(fleet, c, one, split)
        policies.append(found)
        systems.append(system)
    answer = FleetPolicy(fleet, tuple(policies), tuple(systems), rule, split, None, down)
    nowhere = ~answer.runs.any(axis=0)
    if nowhere.any():
        names = ", ".join(repr(fleet.names[i]) for i in np.flatnonzero(nowhere))
        raise Infeasible(f"no server has a policy and can run jobs of {names}")
    _check_served(answer)
    return answer


def _check_served(policy: FleetPolicy) -> None:
    """A dispatch rule must not send jobs to servers whose rota never runs them: they would wait for ever."""
    fleet = policy.fleet
    for c, (one, system) in enumerate(zip(policy.policies, policy.systems, strict=True)):
        rota = one.base if isinstance(one, Improved) else one
        fills = isinstance(one, Improved) and (one.backfill or one.preemption == "full")
        if system is None or not isinstance(rota, MSR) or rota.backfill or fills:
            continue
        idle = [fleet.names.index(system.names[i]) for i in np.flatnonzero(rota.candidates.sum(axis=0) == 0)]
        by_split = policy.dispatch.rule == "random" and policy.split is not None
        sent = [i for i in idle if fleet.arrival_rate[i] > 0 and not (by_split and policy.split[c, i] == 0)]  # type: ignore[index]
        if sent:
            names, kind = ", ".join(repr(fleet.names[i]) for i in sent), fleet.kinds[c]
            raise Infeasible(f"the rota of {kind!r} servers never runs jobs of {names}, which {policy.dispatch.rule!r} may send there")


def from_file(fleet: Fleet, policy: PolicyOfFleet, dispatch: Dispatch | str | None) -> tuple[PolicyOfFleet, Dispatch | str | None]:
    """The policy and the rule in the file of a fleet's plan, or the policy in that of a design; anything else as it is given."""
    if not isinstance(policy, str | Path):
        return policy, dispatch
    planned = fleet_plan_at(policy, fleet)
    if planned is not None:
        return planned.policy, planned.dispatch if dispatch is None else dispatch
    return fleet_design_at(policy) or policy, dispatch


def rule_for(fleet: Fleet, policy: PolicyOfFleet, dispatch: Dispatch | str | None) -> Dispatch:
    """The rule that is given, or that of the design, or that of the fleet."""
    return checked_dispatch(dispatch) or _NATURAL.get(type(policy)) or fleet.dispatch or _DEFAULT


def has_own_rule(policy: object) -> bool:
    """Whether a policy comes with its dispatch rule: servers that are pinned, all or in part."""
    return isinstance(policy, Pinned | PartlyPinned) or policy in ("pinned", "partly-pinned")


def fleet_policies(
    fleet: Fleet,
    policies: Sequence[PolicyOfFleet],
    dispatch: Dispatch | str | Sequence[Dispatch | str] | None,
    errors: dict[str, str],
    staleness: float,
    failures: Failures | None,
) -> list[FleetPolicy]:
    """Every policy with every rule; why one is not possible on this fleet is added to the errors, by its name.

    Pinned servers have a rule of their own. A staleness is left out for rules that do not look at the servers.
    """
    given = list(dispatch) if isinstance(dispatch, Iterable) and not isinstance(dispatch, str) else [dispatch]
    if not given:
        raise BadSpec([Problem("dispatch", 'must not be empty: give a rule, or a list as ["jsq", "pull"]', dispatch)])
    rules = [checked_dispatch(rule) for rule in given]
    chosen = []
    for policy in policy_list(policies):  # type: ignore[arg-type]
        designed = isinstance(policy, Pinned | PartlyPinned | Split) or (isinstance(policy, str) and policy in FLEET_DESIGNS)
        for rule in [None] if has_own_rule(policy) else rules:
            used = rule or fleet.dispatch or _DEFAULT
            seen = staleness if used.record.looks and not used.record.central and not designed else 0.0
            try:
                chosen.append(as_fleet_policy(fleet, policy, rule, staleness=seen, failures=failures))
            except (Infeasible, Unstable, NotConverged, TooManySchedules) as error:
                errors[f"{policy}, {used.label}"] = str(error)
    return chosen


def _by_kind(fleet: Fleet, policy: PolicyOfFleet) -> list[Policy | str | Path | None]:
    """A policy for each kind, as it was given."""
    if isinstance(policy, Split):
        if len(policy.policies) != len(fleet.kinds):
            raise BadSpec([Problem("split", f"is for another fleet: this one has {len(fleet.kinds)} kinds", len(policy.policies))])
        return list(policy.policies)
    if isinstance(policy, Mapping):
        known = ", ".join(fleet.kinds)
        problems = [
            Problem(f"policy.{kind}", f"there is no such kind of server (there are: {known})") for kind in policy if kind not in fleet.kinds
        ]
        problems += [
            Problem("policy", "has no policy for a kind of server; None means that no job goes there", kind)
            for kind in fleet.kinds
            if kind not in policy
        ]
        if problems:
            raise BadSpec(problems)
        return [policy[kind] for kind in fleet.kinds]
    return [policy] * len(fleet.kinds)  # type: ignore[list-item]  # pinned servers are dealt with before


def _of_kind(fleet: Fleet, c: int, policy: Policy | str | Path | None, split: Array | None) -> tuple[Policy | None, System | None]:
    """The policy of a kind, and the system of one of its servers, with its part of the arrivals."""
    kind = fleet.kinds[c]
    if policy is None or not fleet.runs[c].any():
        return None, None
    designed = isinstance(policy, str) and policy in DESIGNED_NAMES
    rate = None if split is None else fleet.arrival_rate * split[c] / fleet.count[c]
    if designed and rate is not None and not rate.any():
        return None, None  # the split of the load sends nothing there
    system = fleet.server(c, rate) if designed else fleet.server(c)
    try:
        found = as_policy(policy, system)
        if isinstance(found, FleetPolicy):
            raise BadSpec([Problem("policy", "is one of a fleet, and a server needs its own", found.label)])
        decider_of(system, found)
    except RotaError as error:
        if isinstance(error, BadSpec):
            raise BadSpec([Problem(f"policy of {kind!r}", problem.rule, problem.value) for problem in error.problems]) from error
        raise type(error)(f"on a server of kind {kind!r}: {error}") from error
    return found, system


def _pinned(fleet: Fleet, pinned: Pinned, rule: Dispatch, failures: Array) -> FleetPolicy:
    """Pinned servers: they start whatever they get, and get no more than they have slots for."""
    _check_rule(rule)
    for queue in pinned.queues(fleet):
        if queue.share > 0 and queue.slots == 0:
            kinds = ", ".join(repr(fleet.kinds[c]) for c in queue.kinds)
            raise Infeasible(f"the pinned servers have no slot for jobs of {fleet.names[queue.type]!r} that go to {kinds}")
    policies = [FirstFit() if fleet.runs[c].any() else None for c in range(len(fleet.kinds))]
    systems = [None if policy is None else fleet.server(c) for c, policy in enumerate(policies)]
    return FleetPolicy(fleet, tuple(policies), tuple(systems), rule, None, pinned, failures)


def _check_rule(rule: Dispatch) -> None:
    if rule.rule != "pinned":
        raise BadSpec([Problem("dispatch.rule", 'must be "pinned" for pinned servers, or left out', rule.rule)])


def _partly_pinned(fleet: Fleet, design: PartlyPinned, rule: Dispatch, failures: Array) -> FleetPolicy:
    """Pinned servers, and some that turn: these are kinds of their own, and each type goes there at random by its part."""
    _check_rule(rule)
    design.check(fleet)
    apart, home, turning = _turning_apart(fleet, design)
    place = np.flatnonzero(~turning)[np.searchsorted(home[~turning], design.pinned.kind)]  # of pinned servers, among the kinds apart
    still = (~turning)[:, None]
    slots = Pinned(place, design.pinned.candidates, design.pinned.servers, np.where(still, design.pinned.split[home], 0.0))
    pinned = _pinned(apart.replace(arrival_rate=apart.arrival_rate * design.pinned_share), slots, rule, failures[home])
    turns = np.where(still, 0.0, design.split[home])
    unserved = (design.pinned_share > _NOTHING) & (design.pinned.split.sum(axis=0) == 0) & (fleet.arrival_rate > 0)
    if unserved.any():
        names = ", ".join(repr(fleet.names[i]) for i in np.flatnonzero(unserved))
        raise Infeasible(f"a part of {names} goes to pinned slots, and pinned.split does not say to which")
    policies = tuple(design.policies[home[c]] if turning[c] else policy for c, policy in enumerate(pinned.policies))
    return replace(pinned, fleet=apart, policies=policies, turns=turns, whole=(fleet, design))


def _turning_apart(fleet: Fleet, design: PartlyPinned) -> tuple[Fleet, Int, Bool]:
    """The fleet with servers that turn as kinds of their own, behind those of their kind that do not; the kind that each was, and whether
    it turns.
    """
    parts = np.column_stack([fleet.count - design.turning, design.turning])  # (C, 2)
    home, turns = np.nonzero(parts)
    names = [fleet.kinds[c] if not turn else f"{fleet.kinds[c]} (turning)" for c, turn in zip(home, turns, strict=True)]
    only = [places and [names[k] for k, c in enumerate(home) if fleet.kinds[c] in places] for places in fleet.only]
    own = {name: getattr(fleet, name)[home] for name in ("capacity", "speed", "up_time", "down_time")}
    return fleet.replace(count=parts[home, turns], kinds=names, only=only, **own), home, turns == 1


def _whole(fleet: Fleet, split: Array) -> Array:
    """A split of all types: one that does not arrive goes evenly to all servers on which it can run."""
    whole = np.where(fleet.arrival_rate > 0, split, fleet.runs * fleet.count[:, None])
    return np.asarray(whole / whole.sum(axis=0))


def _checked_failures(fleet: Fleet, failures: Failures | None) -> Array:
    """Mean times up and down of each kind (C, 2)."""
    times = np.column_stack([fleet.up_time, fleet.down_time])
    if failures is None:
        return times
    given = failures if isinstance(failures, Mapping) else dict.fromkeys(fleet.kinds, failures)
    problems = []
    for kind, pair in given.items():
        if kind not in fleet.kinds:
            problems.append(Problem(f"failures.{kind}", f"there is no such kind of server (there are: {', '.join(fleet.kinds)})"))
        elif not isinstance(pair, tuple | list) or len(pair) != 2 or not all(is_real(value) and value > 0 for value in pair):
            problems.append(Problem(f"failures.{kind}", "must be two positive numbers, the mean time up and the mean time down", pair))
        else:
            times[fleet.kinds.index(kind)] = pair
    if problems:
        raise BadSpec(problems)
    return times
