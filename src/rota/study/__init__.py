"""Studies: sweeps over grids of systems and policies, on this machine's cores or on a Dask cluster."""

from rota.study.entry import plan
from rota.study.fleet_plan import FleetPlan
from rota.study.grid import MSR_NAMES, grid, numbers
from rota.study.heavy_traffic import HeavyTrafficRatio, heavy_traffic_ratio
from rota.study.over_seeds import over_seeds
from rota.study.plan import Plan, PlanProgress
from rota.study.plan_objective import PlanObjective
from rota.study.plan_optimum import Optimum
from rota.study.plan_words import WorseOff
from rota.study.results import read_results
from rota.study.runs import Run, repeat
from rota.study.sweep import SweepProgress, sweep
from rota.study.warm_up import WarmUpProgress, warm_up

__all__ = [
    "MSR_NAMES",
    "FleetPlan",
    "HeavyTrafficRatio",
    "Optimum",
    "Plan",
    "PlanObjective",
    "PlanProgress",
    "Run",
    "SweepProgress",
    "WarmUpProgress",
    "WorseOff",
    "grid",
    "heavy_traffic_ratio",
    "numbers",
    "over_seeds",
    "plan",
    "read_results",
    "repeat",
    "sweep",
    "warm_up",
]
