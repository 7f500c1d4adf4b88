"""`System`: capacities, job types, rates, size distributions; the TOML spec."""

from rota.model.distribution import SizeDistribution
from rota.model.phase_types import Coxian, Erlang, Exponential, Fitted, Hyperexponential, PhaseType, PhaseTypeFamily
from rota.model.sizes import BoundedPareto, Deterministic, Empirical, LogNormal, Weibull
from rota.model.spec import Spec, read_spec, read_system
from rota.model.system import JobType, Preemption, System, TimeUnit
from rota.model.tables import json_schema, system_from_dict, system_to_dict
from rota.model.workload import Chunk, Workload

__all__ = [
    "BoundedPareto",
    "Chunk",
    "Coxian",
    "Deterministic",
    "Empirical",
    "Erlang",
    "Exponential",
    "Fitted",
    "Hyperexponential",
    "JobType",
    "LogNormal",
    "PhaseType",
    "PhaseTypeFamily",
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
