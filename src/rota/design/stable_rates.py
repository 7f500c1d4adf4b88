"""How fast a policy may switch and stay stable (Theorem nmsr-existence, Lemma epsilon-nmsr), in closed form.

Timers run α times as fast: working states last 1/α as long and switching states stay as they are. In one renewal cycle at α = 1, let R be
the working time and S the switching time, and let w_i and v_i be the mean slots of type i within each of the two. At rate α

    π_W = R / (R + αS)                                                                                (Lemma epsilon-nmsr)
    E[u_i] = π_W w_i + (1 − π_W) v_i

and type i is stable iff E[u_i] > λ_i/μ_i, which is R (w_i − λ_i/μ_i) > αS (λ_i/μ_i − v_i). The lemma leaves out what switching states
serve (v_i = 0), which is safe; this is the edge itself.
"""

from __future__ import annotations

import numpy as np

from rota.analysis import require_analyzable
from rota.errors import Unstable
from rota.model import System
from rota.policy import MSR
from rota.process import ModulatingProcess, build_process

__all__ = ["largest_stable_switching_rate"]

_NOTHING = 1e-12  # a surplus below this part of the work is rounding


def largest_stable_switching_rate(system: System, policy: MSR) -> float:
    """The α at which a policy stops being stable: just below it every type's load is below 1, at it the load of one of them is 1.

    `policy.switching_rate` is ignored. Infinite if the policy is stable however fast it switches, as a pMSR is. Raises `Unstable` if it is
    stable at no rate. (Where working states serve a type too little and switching states make up for it, too low a rate is unstable too.)
    """
    require_analyzable(policy)
    return edge_of_stability(system, build_process(system, policy.replace(switching_rate=1.0)))


def edge_of_stability(system: System, process: ModulatingProcess) -> float:
    """How many times as fast the timers of a process may run, as `largest_stable_switching_rate`."""
    served = process.stationary[:, None] * process.schedules  # at α = 1, the time of a cycle being 1
    R, S = process.working_fraction, 1 - process.working_fraction
    work = system.offered_work
    surplus = served[process.working].sum(axis=0) - R * work  # R (w − λ/μ), and
    lacking = S * work - served[~process.working].sum(axis=0)  # S (λ/μ − v): stable iff surplus > α·lacking
    surplus = np.where(np.abs(surplus) <= _NOTHING * work, 0.0, surplus)
    lacking = np.where(np.abs(lacking) <= _NOTHING * work, 0.0, lacking)

    with np.errstate(divide="ignore", invalid="ignore"):
        edge = surplus / lacking
    most = np.where(lacking > 0, edge, np.where((lacking == 0) & (surplus <= 0), 0.0, np.inf))
    least = np.where(lacking < 0, edge, 0.0)
    most[work == 0], least[work == 0] = np.inf, 0.0  # no jobs of this type arrive
    if most.min() <= max(least.max(), 0.0):
        i = int(np.argmin(most))
        slots = float(served[process.working, i].sum())
        slow = R * work[i] / slots if slots > 0 else np.inf
        others = ", and others need it to switch faster" if slow < 1 else ""
        way_out = f"scale arrivals by less than {1 / slow:.4g}, or change the weights" if 1 <= slow < np.inf else "change the rota"
        raise Unstable(
            f"no switching rate is stable: type {system.names[i]!r} has load {slow:.4g} however slowly the policy switches"
            f"{others}; {way_out}"
        )
    return float(most.min())
