"""The job types of a server or of a fleet, and what follows from them alone."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, cast

import numpy as np

from rota.arguments import write_text
from rota.arrays import Array
from rota.errors import BadSpec, Problem
from rota.model.arrivals import ArrivalProcess, Poisson
from rota.model.distribution import SizeDistribution

if TYPE_CHECKING:
    from rota.model.fleet import Fleet
    from rota.model.system import System

__all__ = ["SECONDS", "HasJobTypes", "JobType", "Preemption", "TimeUnit"]

Preemption = Literal["full", "none", "setup"]
TimeUnit = Literal["s", "min", "h", "d"]
SECONDS: dict[TimeUnit, float] = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}

_PATIENCE_S = 20.0


@dataclass(frozen=True)
class JobType:
    """One type of a `System`, as a person would name it."""

    name: str
    demand: dict[str, float]
    arrival_rate: float
    size: SizeDistribution
    arrivals: ArrivalProcess = field(default_factory=Poisson)


class HasJobTypes:
    """What `System` and `Fleet` have in common: K types with demands, arrivals and sizes."""

    demand: Array
    arrival_rate: Array
    service_rate: Array
    names: tuple[str, ...]
    resources: tuple[str, ...]
    sizes: tuple[SizeDistribution, ...]
    preemption: Preemption
    setup_time: float | None
    time_unit: TimeUnit | None
    arrivals: tuple[ArrivalProcess, ...]

    # ------------------------------------------------------------------------------------------------------ what it is

    @property
    def unit_s(self) -> float | None:
        """Seconds in a unit of time, if it is known."""
        return None if self.time_unit is None else SECONDS[self.time_unit]

    @property
    def offered_work(self) -> Array:
        """λ ⊘ μ: the mean number of busy slots of each type, whatever the policy (K,)."""
        with np.errstate(over="ignore", under="ignore"):  # `rota.system_load` refuses what is too large or too small
            return self.arrival_rate / self.service_rate

    @property
    def job_types(self) -> tuple[JobType, ...]:
        """The types, one object each."""
        return tuple(
            JobType(name, dict(zip(self.resources, map(float, demand), strict=True)), float(rate), size, arrivals)
            for name, demand, rate, size, arrivals in zip(
                self.names, self.demand, self.arrival_rate, self.sizes, self.arrivals, strict=True
            )
        )

    @property
    def bursty(self) -> tuple[str, ...]:
        """The names of the types that arrive, but not as a Poisson process of single jobs."""
        rows = zip(self.names, self.arrival_rate, self.arrivals, strict=True)
        return tuple(name for name, rate, process in rows if rate > 0 and not process.is_poisson)

    @property
    def dispersion(self) -> Array:
        """The index of dispersion of the arrivals of each type (K,): 1 for Poisson arrivals; not a number for a type that never arrives."""
        pairs = zip(self.arrivals, self.arrival_rate, strict=True)
        return np.array([process.dispersion(float(rate)) if rate > 0 else np.nan for process, rate in pairs])

    def type_index(self, which: int | str) -> int:
        """The number of a type, given by its name or by its number 0 … K−1."""
        K = len(self.names)
        if isinstance(which, str):
            if which not in self.names:
                raise BadSpec([Problem("type", f"no such type (there are: {', '.join(self.names)})", which)])
            return self.names.index(which)
        if not isinstance(which, int | np.integer) or isinstance(which, bool) or not 0 <= which < K:
            raise BadSpec([Problem("type", f"must be a name ({', '.join(self.names)}) or a number 0…{K - 1}", which)])
        return int(which)

    # ------------------------------------------------------------------------------------------------------ at other rates

    def scaled(self, *, factor: float | None = None, load: float | None = None) -> Self:
        """The same mix at another intensity: arrival rates times `factor`, or such that the system load is `load`.

        Bursts keep their lengths: only rates are multiplied. A `rota.MAP`, whose phases arrivals may move, goes faster as a whole.
        With very many types the load is computed for 20 seconds at most, which leaves it right to about 0.1 %.
        """
        if (factor is None) == (load is None):
            raise BadSpec([Problem("scaled", "give either factor or load, and only one of them")])
        wanted = factor if factor is not None else load
        if not (isinstance(wanted, Real) and np.isfinite(float(wanted)) and wanted >= 0):
            raise BadSpec([Problem("scaled", "needs a finite number, not negative", wanted)])
        if factor is None:
            # The only import from a higher layer in this package: the public API has system.scaled(load=...).
            from rota.capacity import system_load

            now = system_load(cast("System | Fleet", self), time_limit_s=_PATIENCE_S).load
            if now == 0:
                raise BadSpec([Problem("scaled", "a system without arrivals has load 0 at any scale")])
            factor = float(wanted) / now
        return self.replace(arrival_rate=self.arrival_rate * factor)

    def with_preemption(self, model: Preemption, setup_time: float | None = None) -> Self:
        """The same under another preemption model."""
        return self.replace(preemption=model, setup_time=setup_time)

    def with_poisson_arrivals(self) -> Self:
        """The same with Poisson arrivals of the same rates."""
        return self.replace(arrivals=None)

    @abstractmethod
    def replace(self, **changes: object) -> Self:
        """A copy with some fields changed."""

    @abstractmethod
    def to_toml(self) -> str:
        """The text of its file, as `rota.read_system` reads it."""

    def save(self, path: str | Path) -> None:
        """Writes `to_toml()` to a file."""
        write_text(path, self.to_toml())
