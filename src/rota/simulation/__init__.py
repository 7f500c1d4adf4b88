"""The event engine, workloads, statistics (warm-up, confidence intervals, quantiles), and comparisons on the same jobs."""

from rota.policy import POLICY_NAMES, as_policy
from rota.simulation.best import Best, Contender, find_best
from rota.simulation.compare import Comparison, Difference, compare, compare_pair, compare_relative
from rota.simulation.fleet.policy import FleetPolicy
from rota.simulation.fleet.result import FleetResult
from rota.simulation.replicate import Replications, replicate
from rota.simulation.result import Result
from rota.simulation.saving import read_result, save_result
from rota.simulation.side_by_side import in_threads
from rota.simulation.simulate import SimulationProgress, enough_jobs, simulate
from rota.simulation.start import Start
from rota.simulation.streams import SystemArrivals
from rota.simulation.workload import Jobs, PoissonArrivals

__all__ = [
    "POLICY_NAMES",
    "Best",
    "Comparison",
    "Contender",
    "Difference",
    "FleetPolicy",
    "FleetResult",
    "Jobs",
    "PoissonArrivals",
    "Replications",
    "Result",
    "SimulationProgress",
    "Start",
    "SystemArrivals",
    "as_policy",
    "compare",
    "compare_pair",
    "compare_relative",
    "enough_jobs",
    "find_best",
    "in_threads",
    "read_result",
    "replicate",
    "save_result",
    "simulate",
]
