"""`System` and `Fleet`: capacities, job types, rates, size distributions, arrival processes; the TOML spec."""

from rota.model.arrivals import MAP, MMPP, ArrivalProcess, Bursts, GeometricBatch, GivenBatch, Poisson
from rota.model.dispatch import CustomDispatch, Dispatch
from rota.model.distribution import SizeDistribution
from rota.model.fleet import Fleet
from rota.model.fleet_tables import json_schema
from rota.model.job_types import HasJobTypes, JobType, Preemption, TimeUnit
from rota.model.markovian import MarkovianArrivals
from rota.model.phase_types import Coxian, Erlang, Exponential, Fitted, Hyperexponential, PhaseType, PhaseTypeFamily
from rota.model.sizes import BoundedPareto, Deterministic, Empirical, LogNormal, Weibull
from rota.model.spec import Spec, read_server, read_spec, read_system
from rota.model.system import System
from rota.model.tables import system_from_dict, system_to_dict
from rota.model.workload import Chunk, Workload

__all__ = [
    "MAP",
    "MMPP",
    "ArrivalProcess",
    "BoundedPareto",
    "Bursts",
    "Chunk",
    "Coxian",
    "CustomDispatch",
    "Deterministic",
    "Dispatch",
    "Empirical",
    "Erlang",
    "Exponential",
    "Fitted",
    "Fleet",
    "GeometricBatch",
    "GivenBatch",
    "HasJobTypes",
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
    "read_server",
    "read_spec",
    "read_system",
    "system_from_dict",
    "system_to_dict",
]
