"""A server and the jobs that arrive at it: the input of everything else.

P (R,)    capacity        how much the server has of each resource
D (K, R)  demand          what a job of type i holds while it runs
λ (K,)    arrival_rate    jobs of type i per unit of time, on average; how they come is `arrivals`
μ (K,)    service_rate    1 / mean size of type i
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from rota.arrays import Array
from rota.display import html_table, html_title, number
from rota.errors import BadSpec, Problem
from rota.model.arrivals import ArrivalProcess, Poisson
from rota.model.distribution import SizeDistribution
from rota.model.job_types import SECONDS, HasJobTypes, JobType, Preemption, TimeUnit
from rota.model.phase_types import Exponential

__all__ = ["SECONDS", "JobType", "Preemption", "System", "TimeUnit", "check_system"]


@dataclass(frozen=True, eq=False, init=False)
class System(HasJobTypes):
    """Capacities, job types, rates and sizes. Arrays are read-only; every rule is checked when a system is made.

    Sizes are exponential with the given `service_rate` or `mean_size`, or any distributions given as `sizes` (one per type). Rates and
    sizes are in any one unit of time; `time_unit` ("s", "min", "h" or "d") says which, where real jobs or a trace have to agree with it.
    Jobs of each type arrive as Poisson processes, or by the processes given as `arrivals` (one per type; `rota.Bursts`, `rota.MMPP`,
    `rota.MAP`), independently of the other types, at the mean rates `arrival_rate`.
    """

    capacity: Array
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

    def __init__(
        self,
        capacity: ArrayLike,
        demand: ArrayLike,
        arrival_rate: ArrayLike,
        service_rate: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        resources: Sequence[str] | None = None,
        sizes: Sequence[SizeDistribution] | None = None,
        preemption: Preemption = "none",
        setup_time: float | None = None,
        time_unit: TimeUnit | None = None,
        mean_size: ArrayLike | None = None,
        arrivals: Sequence[ArrivalProcess] | None = None,
    ) -> None:
        problems: list[Problem] = []
        P = _array("capacity", capacity, 1, problems)
        D = _array("demand", demand, 2, problems)
        lam = _array("arrival_rate", arrival_rate, 1, problems)
        if problems:
            raise BadSpec(problems)
        K, R = D.shape
        types = _labels("names", names) if names is not None else tuple(f"type{i + 1}" for i in range(K))
        kinds = _labels("resources", resources) if resources is not None else tuple(f"resource{r + 1}" for r in range(R))

        if sum(each is not None for each in (service_rate, mean_size, sizes)) != 1:
            raise BadSpec([Problem("service_rate", "give either service_rate, mean_size or sizes, and only one of them")])
        processes = (Poisson(),) * K if arrivals is None else _processes(arrivals)
        if sizes is not None:
            distributions = _distributions(sizes)
            with np.errstate(divide="ignore", over="ignore"):  # reported below
                mu: Array = 1.0 / np.array([size.moment(1) for size in distributions])
        else:
            place = "service_rate" if mean_size is None else "mean_size"
            given = service_rate if mean_size is None else mean_size
            assert given is not None
            numbers = _array(place, given, 1, problems)
            bad = ~(np.isfinite(numbers) & (numbers > 0))
            problems += [Problem(f"{place}[{i}]", "must be positive and finite", float(numbers[i])) for i in np.flatnonzero(bad)]
            if problems:
                raise BadSpec(problems)
            with np.errstate(over="ignore"):  # reported below
                mu = numbers if mean_size is None else 1.0 / numbers
                means = 1.0 / numbers if mean_size is None else numbers
            if not np.isfinite([*mu, *means]).all():
                raise BadSpec([Problem(place, "is out of the range of floats", numbers.tolist())])
            distributions = tuple(Exponential(mean=float(mean)) for mean in means)

        for field, length, wanted in [
            ("capacity", len(P), R),
            ("arrival_rate", len(lam), K),
            ("sizes" if sizes is not None else place, len(mu), K),
            ("names", len(types), K),
            ("resources", len(kinds), R),
            ("arrivals", len(processes), K),
        ]:
            if length != wanted:
                problems.append(Problem(field, f"needs {wanted} entries, as demand is {K} × {R}", length))
        if problems:
            raise BadSpec(problems)
        problems += _value_problems(P, D, lam, mu, types, kinds)
        problems += _preemption_problems(preemption, setup_time)
        if time_unit is not None and time_unit not in get_args(TimeUnit):
            problems.append(Problem("time_unit", 'must be "s", "min", "h" or "d"', time_unit))
        if problems:
            raise BadSpec(problems)

        for array in (P, D, lam, mu):
            array.flags.writeable = False
        for field, value in [
            ("capacity", P),
            ("demand", D),
            ("arrival_rate", lam),
            ("service_rate", mu),
            ("names", types),
            ("resources", kinds),
            ("sizes", distributions),
            ("preemption", preemption),
            ("setup_time", setup_time),
            ("time_unit", time_unit),
            ("arrivals", processes),
        ]:
            object.__setattr__(self, field, value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, System):
            return NotImplemented
        return (
            (self.names, self.resources, self.sizes, self.preemption, self.setup_time, self.time_unit, self.arrivals)
            == (other.names, other.resources, other.sizes, other.preemption, other.setup_time, other.time_unit, other.arrivals)
            and np.array_equal(self.capacity, other.capacity)
            and np.array_equal(self.demand, other.demand)
            and np.array_equal(self.arrival_rate, other.arrival_rate)
        )

    def __hash__(self) -> int:
        return hash((self.names, self.resources, self.capacity.tobytes(), self.arrival_rate.tobytes()))

    def replace(self, **changes: object) -> System:
        """A copy with some fields changed, as in `system.replace(capacity=[24, 15, 50])`."""
        fields = {field: getattr(self, field) for field in self.__dataclass_fields__ if field != "service_rate"}
        if ("service_rate" in changes or "mean_size" in changes) and "sizes" not in changes:
            del fields["sizes"]
        return System(**{**fields, **changes})

    def __repr__(self) -> str:
        server = ", ".join(f"{amount:g} {name}" for amount, name in zip(self.capacity, self.resources, strict=True))
        return f"<System: {server}; jobs {', '.join(self.names)}; preemption {self.preemption}>"

    def _repr_html_(self) -> str:
        setup = f", setups of {number(self.setup_time)}" if self.setup_time is not None else ""
        rows = [("server", *map(number, self.capacity), "", "", "")]
        for job in self.job_types:
            kind = getattr(job.size, "distribution", type(job.size).__name__)
            rows.append((job.name, *map(number, job.demand.values()), number(job.arrival_rate), number(job.size.moment(1)), kind))
        head = ["", *self.resources, "arrival rate", "mean size", "sizes"]
        texts = [0, len(head) - 1]
        if self.bursty:
            processes = ["", *(getattr(job.arrivals, "process", type(job.arrivals).__name__) for job in self.job_types)]
            rows = [(*row, process) for row, process in zip(rows, processes, strict=True)]
            head, texts = [*head, "arrivals"], [*texts, len(head)]
        return html_title(f"System, preemption {self.preemption}{setup}") + html_table(head, rows, left=tuple(texts))

    def to_toml(self) -> str:
        """The spec of this system, as `rota.read_system` reads it."""
        from rota.model.spec import write_toml

        return write_toml(self)


FOR_A_FLEET = "a fleet has rota.system_load, rota.design_policy and rota.analyze, and fleet.server(kind) is one of its servers"


def check_system(system: object) -> None:
    """Raises `BadSpec` unless this is a `System` (and not, say, a path, or a fleet)."""
    if isinstance(system, HasJobTypes) and not isinstance(system, System):
        raise BadSpec([Problem("system", f"must be one server: {FOR_A_FLEET}", system)])
    if not isinstance(system, System):
        raise BadSpec([Problem("system", "must be a rota.System (rota.read_system reads one from its file)", system)])


def _distributions(sizes: object) -> tuple[SizeDistribution, ...]:
    """The distributions; anything else is refused."""
    if isinstance(sizes, str | SizeDistribution) or not isinstance(sizes, Iterable):
        raise BadSpec([Problem("sizes", "must be a list of distributions, one per type, as [rota.Exponential(mean=2.0)]", sizes)])
    given = tuple(sizes)
    rule = "must be a size distribution, as rota.Exponential(mean=2.0); for plain means use mean_size"
    problems = [Problem(f"sizes[{i}]", rule, size) for i, size in enumerate(given) if not isinstance(size, SizeDistribution)]
    if problems or not given:
        raise BadSpec(problems or [Problem("sizes", "must not be empty")])
    return given


def _processes(arrivals: object) -> tuple[ArrivalProcess, ...]:
    """The arrival processes; anything else is refused."""
    example = "as [rota.Bursts(factor=5.0, share=0.1, length=20.0)]"
    if isinstance(arrivals, str | ArrivalProcess) or not isinstance(arrivals, Iterable):
        raise BadSpec([Problem("arrivals", f"must be a list of arrival processes, one per type, {example}", arrivals)])
    given = tuple(arrivals)
    rule = f"must be an arrival process, {example}; mean rates are arrival_rate"
    problems = [Problem(f"arrivals[{i}]", rule, process) for i, process in enumerate(given) if not isinstance(process, ArrivalProcess)]
    if problems:
        raise BadSpec(problems)
    return given


def _labels(place: str, labels: object) -> tuple[str, ...]:
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise BadSpec([Problem(place, "must be a list of names", labels)])
    return tuple(labels)


def _array(name: str, values: ArrayLike, ndim: int, problems: list[Problem]) -> Array:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        problems.append(Problem(name, "must be numbers in a regular shape", values))
        return np.zeros((0,) * ndim)
    if array.ndim != ndim or array.size == 0:
        shape = "a non-empty list of numbers" if ndim == 1 else "a non-empty table of numbers, one row per type"
        problems.append(Problem(name, f"must be {shape}", array.shape))
    return array


def _value_problems(P: Array, D: Array, lam: Array, mu: Array, names: tuple[str, ...], resources: tuple[str, ...]) -> list[Problem]:
    problems = []
    for what, labels in (("names", names), ("resources", resources)):
        for j, label in enumerate(labels):
            if not isinstance(label, str) or not label:
                problems.append(Problem(f"{what}[{j}]", "must be a non-empty string", label))
            elif label in labels[:j]:
                problems.append(Problem(f"{what}[{j}]", "is a duplicate", label))
    for r, resource in enumerate(resources):
        if not (np.isfinite(P[r]) and P[r] > 0):
            problems.append(Problem(f"server.{resource}", "must be positive and finite", float(P[r])))
    for i, name in enumerate(names):
        if not (np.isfinite(lam[i]) and lam[i] >= 0):
            problems.append(Problem(f"jobs.{name}.arrival_rate", "must be finite and not negative", float(lam[i])))
        if not (np.isfinite(mu[i]) and mu[i] > 0):
            problems.append(Problem(f"jobs.{name}.size", "needs a positive mean within the range of floats"))
        for r, resource in enumerate(resources):
            place = f"jobs.{name}.demand.{resource}"
            if not (np.isfinite(D[i, r]) and D[i, r] >= 0):
                problems.append(Problem(place, "must be finite and not negative", float(D[i, r])))
            elif exceeds(float(D[i, r]), float(P[r])):
                problems.append(Problem(place, never_fits(float(P[r])), float(D[i, r])))
        if not D[i].any():
            problems.append(Problem(f"jobs.{name}.demand", DEMANDS_NOTHING))
    return problems


def _preemption_problems(preemption: object, setup_time: object) -> list[Problem]:
    problems = []
    if preemption not in get_args(Preemption):
        problems.append(Problem("preemption.model", 'must be "full", "none" or "setup"', preemption))
    elif (preemption == "setup") != (setup_time is not None):
        problems.append(Problem("preemption.setup_time", 'goes with model = "setup", and only with it', setup_time))
    if setup_time is not None and not (isinstance(setup_time, int | float) and 0 < setup_time < np.inf):
        problems.append(Problem("preemption.setup_time", "must be positive and finite", setup_time))
    return problems


DEMANDS_NOTHING = "must be positive for at least one resource: a job that needs nothing needs no scheduler"


WITHIN_ROUNDING = 1 + 1e-12


def exceeds(demand: float, capacity: float) -> bool:
    """Whether a demand is above a capacity by more than the rounding of decimals (0.1 + 0.2 does fit into 0.3)."""
    return demand > capacity * WITHIN_ROUNDING


def never_fits(capacity: float) -> str:
    """The rule that a demand above the server's capacity breaks."""
    return f"is more than the server has ({capacity:g}): a job of this type can never run"
