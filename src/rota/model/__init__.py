"""`System`: capacities, job types, rates, size distributions, arrival processes; the TOML spec."""

from rota.model.arrivals import MAP, MMPP, ArrivalProcess, Bursts, GeometricBatch, GivenBatch, Poisson
from rota.model.distribution import SizeDistribution
from rota.model.markovian import MarkovianArrivals
from rota.model.phase_types import Coxian, Erlang, Exponential, Fitted, Hyperexponential, PhaseType, PhaseTypeFamily
from rota.model.sizes import BoundedPareto, Deterministic, Empirical, LogNormal, Weibull
from rota.model.spec import Spec, read_spec, read_system
from rota.model.system import JobType, Preemption, System, TimeUnit
from rota.model.tables import json_schema, system_from_dict, system_to_dict
from rota.model.workload import Chunk, Workload

__all__ = [
    "MAP",
    "MMPP",
    "ArrivalProcess",
    "BoundedPareto",
    "Bursts",
    "Chunk",
    "Coxian",
    "Deterministic",
    "Empirical",
    "Erlang",
    "Exponential",
    "Fitted",
    "GeometricBatch",
    "GivenBatch",
    "Hyperexponential",
    "JobType",
    "LogNormal",
    "MarkovianArrivals",
    "PhaseType",
    "PhaseTypeFamily",
    "Poisson",
    "Preemption",
    "SizeDistribution",
    "Spec",
    "System",
    "TimeUnit",
    "Weibull",
    "Workload",
    "json_schema",
    "read_spec",
    "read_system",
    "system_from_dict",
    "system_to_dict",
]
