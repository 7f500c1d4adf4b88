"""What bursts cost: the recommended policy of a plan beside itself with Poisson arrivals of the same rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rota.model import System
from rota.simulation import Result, SimulationProgress, simulate

__all__ = ["BurstCost", "burst_cost"]


@dataclass(frozen=True)
class BurstCost:
    """The mean response time of a policy with the arrivals of the system and with Poisson arrivals of the same rates, both simulated.

    `type` is the type of which arrivals are spread most, and `dispersion` its index of dispersion.
    """

    mean_response_time: float
    poisson: float
    poisson_interval: float
    type: str
    dispersion: float

    @property
    def ratio(self) -> float:
        """How many times as long jobs take as with Poisson arrivals."""
        return self.mean_response_time / self.poisson

    def words(self) -> str:
        """The cost in one sentence."""
        spread = f"the index of dispersion is {self.dispersion:.3g} for '{self.type}'"
        if np.isnan(self.ratio):
            return f"Arrivals are not Poisson ({spread}); what that costs could not be measured."
        if abs(self.mean_response_time - self.poisson) <= self.poisson_interval:
            times = "about the same"
        else:
            times = f"{self.ratio:.2f} times as long" if self.ratio >= 1 else f"{1 - self.ratio:.0%} shorter"
        poisson = f"{self.poisson:.4g} ± {self.poisson_interval:.2g}"
        return f"With Poisson arrivals of the same rates jobs would take {poisson}; as they arrive, {times} ({spread})."

    def fields(self) -> dict[str, float | str]:
        """For JSON."""
        names = ("mean_response_time", "poisson", "poisson_interval", "ratio", "type", "dispersion")
        return {name: getattr(self, name) for name in names}


def burst_cost(
    system: System, result: Result, *, jobs: int, seed: int, tell: Callable[[str, SimulationProgress], None] | None = None
) -> BurstCost | None:
    """What the arrivals of a system cost under the policy of a result; None if they are Poisson."""
    if not system.bursty:
        return None
    label = f"{result.name}, Poisson arrivals"
    beside = simulate(
        system.with_poisson_arrivals(), result.policy, jobs=jobs, seed=seed, progress=None if tell is None else lambda at: tell(label, at)
    )
    if beside.interrupted:
        raise KeyboardInterrupt
    i = int(np.nanargmax(np.where(np.isin(system.names, system.bursty), system.dispersion, np.nan)))
    spread = float(system.dispersion[i])
    return BurstCost(result.mean_response_time, beside.mean_response_time, beside.interval, system.names[i], spread)
