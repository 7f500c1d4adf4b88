"""The competitive ratio of an MSR policy against MaxWeight in heavy traffic: the constant C of Theorem ht.

    lim_{ρ→1} E[Q^p] / E[Q^MaxWeight] ≤ C,      arrivals λ = ρ λ̃ growing towards the boundary of the capacity region (Definition ht).

Both sides grow like 1/(1−ρ). The MSR side is exact: (1−ρ_i) E[Q_i] → 1 + E[Δ(ν⁺_i)], and ρ_i = ρ for the types whose slots are no more than
they need at the boundary; the others stay finite and do not count. MaxWeight has no exact analysis: its side is bounded from below by
state-space collapse (`rota.analysis.max_weight`) or simulated at one load. E[Q] is Σ E[Q_i] here, so C is a ratio of mean response times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rota.analysis import analyze, max_weight_collapse
from rota.capacity import Load, system_load
from rota.errors import BadSpec, Infeasible, Problem
from rota.model import System
from rota.policy import MSR, MaxWeight
from rota.simulation import simulate

__all__ = ["HeavyTrafficRatio", "heavy_traffic_ratio"]

_EDGE = 1e-6  # slots that exceed the need at the boundary by less than this part are taken as just enough


@dataclass(frozen=True)
class HeavyTrafficRatio:
    """How many times the mean response time of MaxWeight that of an MSR policy is in heavy traffic: `ratio` = `msr` / `max_weight`.

    Both are (1−ρ) Σ E[Q_i]. `method` "collapse": in the limit ρ → 1, MaxWeight by state-space collapse; `ratio` is then at least the ratio
    of the limits, and equal to it if `tight`. `method` "simulation": at load ρ = `load`, the MSR exact and MaxWeight simulated; `interval`
    is the half-width of the 95 % interval of the ratio, 0 otherwise.
    """

    ratio: float
    msr: float
    max_weight: float
    method: Literal["collapse", "simulation"]
    load: float
    tight: bool
    interval: float

    def explain(self) -> str:
        """The answer in words."""
        if self.method == "simulation":
            return (
                f"At load {self.load:g} the mean response time is {self.ratio:.4g} ± {self.interval:.2g} times that of MaxWeight: "
                "the rota by exact analysis, MaxWeight by simulation."
            )
        if self.tight:
            return (
                f"As the load grows to 1, the mean response time tends to {self.ratio:.4g} times that of MaxWeight: "
                "the rota by exact analysis, MaxWeight by state-space collapse onto one facet."
            )
        return (
            f"As the load grows to 1, the mean response time is at most {self.ratio:.4g} times that of MaxWeight: "
            "the rota by exact analysis, MaxWeight by a lower bound, state-space collapse onto several facets."
        )


def heavy_traffic_ratio(
    system: System,
    policy: MSR,
    *,
    max_weight: Literal["collapse", "simulation"] = "collapse",
    load: float = 0.98,
    jobs: int = 4_000_000,
    seed: int = 0,
) -> HeavyTrafficRatio:
    """The constant C of Theorem ht for a policy against MaxWeight; sizes are taken as exponential.

    Only the mix of arrivals matters, not the rates themselves. The policy must be stable up to load 1, as that of
    `rota.design_policy(system, "full", objective="load")` is; one that loses time on switching is not. `load`, `jobs` and `seed` are for
    `max_weight="simulation"`.
    """
    if max_weight not in ("collapse", "simulation"):
        raise BadSpec([Problem("max_weight", 'must be "collapse" or "simulation"', max_weight)])
    if not 0 < load < 1:
        raise BadSpec([Problem("load", "must be between 0 and 1", load)])
    best = system_load(system)
    if best.load == 0:
        raise Infeasible("no jobs arrive: there is no heavy traffic to grow to")
    msr = _msr_constant(system, policy, best)
    if max_weight == "collapse":
        bound = max_weight_collapse(system, best)
        return HeavyTrafficRatio(msr / bound.total, msr, bound.total, "collapse", 1.0, bound.facets == 1, 0.0)
    # Sizes are replaced by exponential ones with the same means.
    busy = system.scaled(factor=load / best.load)
    run = simulate(busy.replace(service_rate=busy.service_rate), MaxWeight(), jobs=jobs, seed=seed)
    scale = (1 - load) * float(busy.arrival_rate.sum())
    exact = analyze(busy, policy, sizes="exponential").mean_response_time
    ratio = float(exact / run.mean_response_time)
    interval = float(ratio * run.interval / run.mean_response_time)
    return HeavyTrafficRatio(ratio, scale * exact, float(scale * run.mean_response_time), "simulation", load, False, interval)


def _msr_constant(system: System, policy: MSR, best: Load) -> float:
    """lim (1−ρ) Σ E[Q_i] under the policy."""
    edge = analyze(system.scaled(factor=1 / best.load), policy, sizes="exponential")
    if edge.load.max() > 1 + _EDGE:
        i = int(np.argmax(edge.load))
        raise Infeasible(
            f"the policy is stable up to load {1 / edge.load[i]:.4g} only, where type {system.names[i]!r} has too few slots, "
            "and MaxWeight up to 1: the ratio has no bound. "
            'Use one that balances loads and loses no time on switching, as rota.design_policy(system, "full", objective="load")'
        )
    return float(edge.heavy_traffic_constant[edge.load > 1 - _EDGE].sum())
