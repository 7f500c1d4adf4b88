"""`analyze`: from a policy to what is known of it."""

from __future__ import annotations

from typing import overload

from rota.analysis.analyze import Analysis, Sizes
from rota.analysis.guarantee import Guarantee, guarantee, rota_behind
from rota.analysis.job_times import Forecast, State
from rota.analysis.partly_pinned import PartlyPinnedAnalysis
from rota.analysis.pinned import PinnedAnalysis, analyze_pinned
from rota.analysis.split import SplitAnalysis
from rota.arrays import Bool
from rota.errors import BadSpec, Infeasible, Problem
from rota.model import Exponential, Fleet, PhaseTypeFamily, System
from rota.policy import MSR, FleetDesign, Improved, PartlyPinned, Pinned, Split
from rota.process import ModulatingProcess, build_process, check_process

__all__ = ["analyze", "analyze_process", "forecast", "require_analyzable"]

FleetAnalysis = PinnedAnalysis | SplitAnalysis | PartlyPinnedAnalysis


@overload
def analyze(system: System, policy: MSR, *, sizes: Sizes = "as given") -> Analysis: ...
@overload
def analyze(system: System, policy: Improved, *, sizes: Sizes = "as given") -> Guarantee: ...
@overload
def analyze(system: Fleet, policy: Pinned, *, sizes: Sizes = "as given") -> PinnedAnalysis: ...
@overload
def analyze(system: Fleet, policy: Split, *, sizes: Sizes = "as given") -> SplitAnalysis: ...
@overload
def analyze(system: Fleet, policy: PartlyPinned, *, sizes: Sizes = "as given") -> PartlyPinnedAnalysis: ...
def analyze(system: System | Fleet, policy: MSR | Improved | FleetDesign, *, sizes: Sizes = "as given") -> Analysis | FleetAnalysis:
    """Analyses an MSR policy on a system; of an improved rota, and of a pMSR with backfilling, what is proved of it: a `Guarantee`.
    Also servers of a fleet that are pinned, all or in part, and random splitting over its servers (`rota.design_pinned`,
    `rota.design_partly_pinned`, `rota.design_split`).

    Sizes must be exponential, or phase-type unless jobs cannot be preempted; `sizes="exponential"` takes every size as exponential with
    its mean. Arrivals are those of the system, bursts and batches included; the guarantee of an improved rota needs Poisson ones.
    """
    if isinstance(system, Fleet) or isinstance(policy, FleetDesign):
        return _analyze_fleet(system, policy, sizes)
    if isinstance(policy, Improved) and system.bursty:
        raise Infeasible(
            f"what is proved of improved rotas is for Poisson arrivals, and those of type {system.bursty[0]!r} are not: "
            "simulate, or analyze system.with_poisson_arrivals()"
        )
    if isinstance(policy, Improved) or (isinstance(policy, MSR) and policy.backfill and policy.preemption == "full"):
        return guarantee(analyze(system, rota_behind(policy), sizes=sizes), policy)
    require_analyzable(policy)
    process = build_process(system, policy)
    _check_sizes(system, process, sizes)
    return Analysis(system=system, policy=policy, process=process, sizes=sizes)


def _analyze_fleet(fleet: object, policy: object, sizes: Sizes) -> FleetAnalysis:
    if not (isinstance(fleet, Fleet) and isinstance(policy, FleetDesign)):
        rule = "must be a rota.Fleet with pinned servers or a split (rota.design_pinned, rota.design_split), or one server with a rota"
        raise BadSpec([Problem("system", rule, fleet)])
    if fleet.bursty:
        rule = f"servers of a fleet are analyzed for Poisson arrivals, and those of type {fleet.bursty[0]!r} are not"
        raise Infeasible(f"{rule}: take fleet.with_poisson_arrivals()")
    if isinstance(policy, Pinned):
        return analyze_pinned(fleet, policy, exponential=sizes == "exponential")
    if isinstance(policy, PartlyPinned):
        policy.check(fleet)
        slots = analyze_pinned(
            policy.pinned_fleet(fleet), policy.pinned, exponential=sizes == "exponential" or not policy.pinned_share.any()
        )
        return PartlyPinnedAnalysis(fleet, policy, slots, _analyzed_servers(fleet, policy, policy.turning > 0, sizes))
    servers = _analyzed_servers(fleet, policy, fleet.count > 0, sizes)
    idle = [fleet.kinds[c] for c, used in enumerate(policy.policies) if used is None and (fleet.arrival_rate * policy.split[c]).any()]
    if idle:
        raise BadSpec([Problem("split", "sends jobs to a kind of server that has no policy", idle[0])])
    return SplitAnalysis(fleet, policy, servers)


def _analyzed_servers(fleet: Fleet, policy: Split | PartlyPinned, there: Bool, sizes: Sizes) -> tuple[Analysis | None, ...]:
    """One server of each kind that has a rota, analyzed; None for the others."""
    rotas = zip(policy.policies, there, strict=True)
    return tuple(
        analyze(policy.server(fleet, c), rota, sizes=sizes) if rota is not None and used else None for c, (rota, used) in enumerate(rotas)
    )


def forecast(
    system: System,
    policy: MSR,
    type: int | str,
    *,
    ahead: int,
    state: State = None,
    next_move: float | None = None,
    sizes: Sizes = "as given",
) -> Forecast:
    """When a job of a type starts and ends under an MSR policy without backfilling: the exact laws, as times from now.

    `ahead` jobs of its type were there before it and still are, waiting or running. `state` is that of the modulating process now
    (`rota.build_process`; states 0, 1, … run the candidates in their order), or its law (N,), or the stationary law if not given.
    `next_move`: the time until the process leaves this state, where a timer ends it and the time is known.
    """
    require_analyzable(policy)
    return analyze(system, policy, sizes=sizes).forecast(type, ahead=ahead, state=state, next_move=next_move)


def require_analyzable(policy: object) -> None:
    """Raises unless the policy is an MSR policy that does not look at the queues."""
    if not isinstance(policy, MSR):
        raise Infeasible(
            f"analysis is for MSR policies (rota.MSR, rota.design_policy), whose clock does not look at the queues; {policy!r} is not one: "
            "use rota.simulate or rota.compare, which take every policy"
        )
    if policy.backfill:
        raise Infeasible("backfilling depends on the queues, so it has no exact analysis: analyze the policy without it, or simulate")
    if policy.empty_slots == "skip" and policy.preemption == "none":
        raise Infeasible('skipping empty slots depends on the queues: analyze with empty_slots="virtual", or simulate')


def analyze_process(system: System, process: ModulatingProcess, *, policy: MSR | None = None, sizes: Sizes = "as given") -> Analysis:
    """Analyses any modulating process on a system, after checking that it matches the system (`rota.process.check_process`)."""
    if not isinstance(process, ModulatingProcess):
        rule = "must be a ModulatingProcess: rota.build_process makes one of a policy, and rota.analyze takes the policy itself"
        raise BadSpec([Problem("process", rule, process)])
    check_process(system, process)
    _check_sizes(system, process, sizes)
    return Analysis(system=system, policy=policy, process=process, sizes=sizes)


def _check_sizes(system: System, process: ModulatingProcess, sizes: Sizes) -> None:
    if sizes not in ("as given", "exponential"):
        raise BadSpec([Problem("sizes", 'must be "as given" or "exponential"', sizes)])
    if sizes == "exponential":
        return
    for i, (name, size) in enumerate(zip(system.names, system.sizes, strict=True)):
        if isinstance(size, Exponential):
            continue
        way_out = 'simulate, or take it as exponential with sizes="exponential" (on the command line: --exponential)'
        if not isinstance(size, PhaseTypeFamily):
            kind = getattr(size, "distribution", type(size).__name__)
            raise Infeasible(
                f"type {name!r} has {kind} sizes: analysis needs exponential or phase-type ones. Fit one (rota.Fitted), {way_out}"
            )
        if (process.trigger == i).any():
            raise Infeasible(
                f"type {name!r} has phase-type sizes and its completions move the process: "
                f"the state would have to follow every job. {way_out}"
            )
