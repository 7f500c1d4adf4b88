"""Which schedules fit, and the system load with its certificate. The only package that uses the solver."""

from rota.capacity.covering import Cover, cover
from rota.capacity.facets import Facets, active_facets
from rota.capacity.fleet import FleetLoad, system_load
from rota.capacity.load import Load, Progress, check_load
from rota.capacity.schedules import (
    CountEstimate,
    estimate_count,
    fits,
    is_maximal,
    iterate_schedules,
    largest_counts,
    list_schedules,
)
from rota.capacity.units import Units, integer_units

__all__ = [
    "CountEstimate",
    "Cover",
    "Facets",
    "FleetLoad",
    "Load",
    "Progress",
    "Units",
    "active_facets",
    "check_load",
    "cover",
    "estimate_count",
    "fits",
    "integer_units",
    "is_maximal",
    "iterate_schedules",
    "largest_counts",
    "list_schedules",
    "system_load",
]
