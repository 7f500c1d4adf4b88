"""Stability, relative completions, bounds, prediction, exact mean and distribution of an MSR policy."""

from rota.analysis.analyze import Analysis
from rota.analysis.entry import analyze, analyze_process, forecast, require_analyzable
from rota.analysis.guarantee import Guarantee
from rota.analysis.job_times import Forecast, forecast_job
from rota.analysis.law import TimeLaw
from rota.analysis.max_weight import Collapse, max_weight_collapse
from rota.analysis.partly_pinned import PartlyPinnedAnalysis
from rota.analysis.pinned import PinnedAnalysis
from rota.analysis.queue import TypeQueue, erlang_c, mean_waiting, relative_completions
from rota.analysis.relative import RelativeValues, relative_values
from rota.analysis.response import ResponseTime
from rota.analysis.solution import QueueLength
from rota.analysis.split import SplitAnalysis

__all__ = [
    "Analysis",
    "Collapse",
    "Forecast",
    "Guarantee",
    "PartlyPinnedAnalysis",
    "PinnedAnalysis",
    "QueueLength",
    "RelativeValues",
    "ResponseTime",
    "SplitAnalysis",
    "TimeLaw",
    "TypeQueue",
    "analyze",
    "analyze_process",
    "erlang_c",
    "forecast",
    "forecast_job",
    "max_weight_collapse",
    "mean_waiting",
    "relative_completions",
    "relative_values",
    "require_analyzable",
]
