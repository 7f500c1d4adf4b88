"""Rota: which jobs should my server run together, and how long will people wait?

`_HOME` lists the public names and the packages that define them. They are loaded on first use, so that `import rota` stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "BadSpec": "rota.errors",
    "Infeasible": "rota.errors",
    "NotConverged": "rota.errors",
    "Problem": "rota.errors",
    "RotaError": "rota.errors",
    "TooManySchedules": "rota.errors",
    "Unstable": "rota.errors",
    "BoundedPareto": "rota.model",
    "Bursts": "rota.model",
    "Coxian": "rota.model",
    "Deterministic": "rota.model",
    "Empirical": "rota.model",
    "Erlang": "rota.model",
    "Exponential": "rota.model",
    "CustomDispatch": "rota.model",
    "Dispatch": "rota.model",
    "Fitted": "rota.model",
    "Fleet": "rota.model",
    "GeometricBatch": "rota.model",
    "GivenBatch": "rota.model",
    "Hyperexponential": "rota.model",
    "JobType": "rota.model",
    "LogNormal": "rota.model",
    "MAP": "rota.model",
    "MMPP": "rota.model",
    "PhaseType": "rota.model",
    "Poisson": "rota.model",
    "System": "rota.model",
    "Weibull": "rota.model",
    "read_system": "rota.model",
    "FleetLoad": "rota.capacity",
    "Load": "rota.capacity",
    "estimate_count": "rota.capacity",
    "fits": "rota.capacity",
    "is_maximal": "rota.capacity",
    "iterate_schedules": "rota.capacity",
    "largest_counts": "rota.capacity",
    "list_schedules": "rota.capacity",
    "system_load": "rota.capacity",
    "MSR": "rota.policy",
    "PartlyPinned": "rota.policy",
    "Pinned": "rota.policy",
    "Split": "rota.policy",
    "read_fleet_policy": "rota.policy",
    "read_policy": "rota.policy",
    "save_fleet_policy": "rota.policy",
    "save_policy": "rota.policy",
    "ModulatingProcess": "rota.process",
    "build_process": "rota.process",
    "Analysis": "rota.analysis",
    "Guarantee": "rota.analysis",
    "PartlyPinnedAnalysis": "rota.analysis",
    "PinnedAnalysis": "rota.analysis",
    "SplitAnalysis": "rota.analysis",
    "Forecast": "rota.analysis",
    "analyze": "rota.analysis",
    "forecast": "rota.analysis",
    "relative_values": "rota.analysis",
    "FleetBounds": "rota.design",
    "design_improved": "rota.design",
    "design_partly_pinned": "rota.design",
    "design_pinned": "rota.design",
    "design_policy": "rota.design",
    "design_split": "rota.design",
    "fleet_bounds": "rota.design",
    "choose_switching_rate": "rota.design",
    "break_even_setup_rate": "rota.design",
    "largest_stable_switching_rate": "rota.design",
    "Adaptive": "rota.policy",
    "EASY": "rota.policy",
    "FCFS": "rota.policy",
    "BalancedSplitting": "rota.policy",
    "CMuM": "rota.policy",
    "Custom": "rota.policy",
    "FirstFit": "rota.policy",
    "Improved": "rota.policy",
    "MaxWeight": "rota.policy",
    "MostServersFirst": "rota.policy",
    "Quickswap": "rota.policy",
    "RandomizedTimers": "rota.policy",
    "ServerFilling": "rota.policy",
    "Tabulated": "rota.policy",
    "Evaluation": "rota.optimal",
    "Optimal": "rota.optimal",
    "evaluate": "rota.optimal",
    "optimal_policy": "rota.optimal",
    "Tuned": "rota.tuning",
    "tune_adaptive": "rota.tuning",
    "StallingMaxWeight": "rota.policy",
    "Best": "rota.simulation",
    "Comparison": "rota.simulation",
    "FleetResult": "rota.simulation",
    "Jobs": "rota.simulation",
    "Result": "rota.simulation",
    "Start": "rota.simulation",
    "compare": "rota.simulation",
    "compare_pair": "rota.simulation",
    "find_best": "rota.simulation",
    "read_result": "rota.simulation",
    "replicate": "rota.simulation",
    "save_result": "rota.simulation",
    "simulate": "rota.simulation",
    "HeavyTrafficRatio": "rota.study",
    "FleetPlan": "rota.study",
    "Plan": "rota.study",
    "heavy_traffic_ratio": "rota.study",
    "plan": "rota.study",
    "sweep": "rota.study",
    "warm_up": "rota.study",
    "Trace": "rota.traces",
    "read_trace": "rota.traces",
    "Client": "rota.live.http.client",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'rota' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:  # the same names, for editors and type checkers; a test compares them with _HOME
    from rota.analysis import Analysis as Analysis
    from rota.analysis import Forecast as Forecast
    from rota.analysis import Guarantee as Guarantee
    from rota.analysis import PartlyPinnedAnalysis as PartlyPinnedAnalysis
    from rota.analysis import PinnedAnalysis as PinnedAnalysis
    from rota.analysis import SplitAnalysis as SplitAnalysis
    from rota.analysis import analyze as analyze
    from rota.analysis import forecast as forecast
    from rota.analysis import relative_values as relative_values
    from rota.capacity import FleetLoad as FleetLoad
    from rota.capacity import Load as Load
    from rota.capacity import estimate_count as estimate_count
    from rota.capacity import fits as fits
    from rota.capacity import is_maximal as is_maximal
    from rota.capacity import iterate_schedules as iterate_schedules
    from rota.capacity import largest_counts as largest_counts
    from rota.capacity import list_schedules as list_schedules
    from rota.capacity import system_load as system_load
    from rota.design import FleetBounds as FleetBounds
    from rota.design import break_even_setup_rate as break_even_setup_rate
    from rota.design import choose_switching_rate as choose_switching_rate
    from rota.design import design_improved as design_improved
    from rota.design import design_partly_pinned as design_partly_pinned
    from rota.design import design_pinned as design_pinned
    from rota.design import design_policy as design_policy
    from rota.design import design_split as design_split
    from rota.design import fleet_bounds as fleet_bounds
    from rota.design import largest_stable_switching_rate as largest_stable_switching_rate
    from rota.errors import BadSpec as BadSpec
    from rota.errors import Infeasible as Infeasible
    from rota.errors import NotConverged as NotConverged
    from rota.errors import Problem as Problem
    from rota.errors import RotaError as RotaError
    from rota.errors import TooManySchedules as TooManySchedules
    from rota.errors import Unstable as Unstable
    from rota.live.http.client import Client as Client
    from rota.model import MAP as MAP
    from rota.model import MMPP as MMPP
    from rota.model import BoundedPareto as BoundedPareto
    from rota.model import Bursts as Bursts
    from rota.model import Coxian as Coxian
    from rota.model import CustomDispatch as CustomDispatch
    from rota.model import Deterministic as Deterministic
    from rota.model import Dispatch as Dispatch
    from rota.model import Empirical as Empirical
    from rota.model import Erlang as Erlang
    from rota.model import Exponential as Exponential
    from rota.model import Fitted as Fitted
    from rota.model import Fleet as Fleet
    from rota.model import GeometricBatch as GeometricBatch
    from rota.model import GivenBatch as GivenBatch
    from rota.model import Hyperexponential as Hyperexponential
    from rota.model import JobType as JobType
    from rota.model import LogNormal as LogNormal
    from rota.model import PhaseType as PhaseType
    from rota.model import Poisson as Poisson
    from rota.model import System as System
    from rota.model import Weibull as Weibull
    from rota.model import read_system as read_system
    from rota.optimal import Evaluation as Evaluation
    from rota.optimal import Optimal as Optimal
    from rota.optimal import evaluate as evaluate
    from rota.optimal import optimal_policy as optimal_policy
    from rota.policy import EASY as EASY
    from rota.policy import FCFS as FCFS
    from rota.policy import MSR as MSR
    from rota.policy import Adaptive as Adaptive
    from rota.policy import BalancedSplitting as BalancedSplitting
    from rota.policy import CMuM as CMuM
    from rota.policy import Custom as Custom
    from rota.policy import FirstFit as FirstFit
    from rota.policy import Improved as Improved
    from rota.policy import MaxWeight as MaxWeight
    from rota.policy import MostServersFirst as MostServersFirst
    from rota.policy import PartlyPinned as PartlyPinned
    from rota.policy import Pinned as Pinned
    from rota.policy import Quickswap as Quickswap
    from rota.policy import RandomizedTimers as RandomizedTimers
    from rota.policy import ServerFilling as ServerFilling
    from rota.policy import Split as Split
    from rota.policy import StallingMaxWeight as StallingMaxWeight
    from rota.policy import Tabulated as Tabulated
    from rota.policy import read_fleet_policy as read_fleet_policy
    from rota.policy import read_policy as read_policy
    from rota.policy import save_fleet_policy as save_fleet_policy
    from rota.policy import save_policy as save_policy
    from rota.process import ModulatingProcess as ModulatingProcess
    from rota.process import build_process as build_process
    from rota.simulation import Best as Best
    from rota.simulation import Comparison as Comparison
    from rota.simulation import FleetResult as FleetResult
    from rota.simulation import Jobs as Jobs
    from rota.simulation import Result as Result
    from rota.simulation import Start as Start
    from rota.simulation import compare as compare
    from rota.simulation import compare_pair as compare_pair
    from rota.simulation import find_best as find_best
    from rota.simulation import read_result as read_result
    from rota.simulation import replicate as replicate
    from rota.simulation import save_result as save_result
    from rota.simulation import simulate as simulate
    from rota.study.entry import plan as plan
    from rota.study.fleet_plan import FleetPlan as FleetPlan
    from rota.study.heavy_traffic import HeavyTrafficRatio as HeavyTrafficRatio
    from rota.study.heavy_traffic import heavy_traffic_ratio as heavy_traffic_ratio
    from rota.study.plan import Plan as Plan
    from rota.study.sweep import sweep as sweep
    from rota.study.warm_up import warm_up as warm_up
    from rota.traces import Trace as Trace
    from rota.traces import read_trace as read_trace
    from rota.tuning import Tuned as Tuned
    from rota.tuning import tune_adaptive as tune_adaptive
