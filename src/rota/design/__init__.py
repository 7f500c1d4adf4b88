"""Chooses an `MSR`: candidates from `capacity`, weights, switching routes and switching rate tuned by `analysis`."""

from rota.design.balanced import MeanResponse, balanced_beside
from rota.design.design import Design, Objective, balanced_policy, break_even_setup_rate, find_design
from rota.design.entry import design_policy
from rota.design.fairness import ResponseLimits
from rota.design.fleet_bounds import FleetBounds, fleet_bounds
from rota.design.improved import design_improved
from rota.design.of_fleet import DesignOfFleet, Servers, find_fleet_design
from rota.design.partly_pinned import design_partly_pinned
from rota.design.pinned import PinnedDesign, design_pinned, find_pinned
from rota.design.split import design_split
from rota.design.stable_rates import largest_stable_switching_rate
from rota.design.switching import SwitchingRate, Yardstick, choose_switching_rate, fast_switching_limit
from rota.design.tune import TuneProgress, tune_response_time
from rota.design.words import explain_design

__all__ = [
    "Design",
    "DesignOfFleet",
    "FleetBounds",
    "MeanResponse",
    "Objective",
    "PinnedDesign",
    "ResponseLimits",
    "Servers",
    "SwitchingRate",
    "TuneProgress",
    "Yardstick",
    "balanced_beside",
    "balanced_policy",
    "break_even_setup_rate",
    "choose_switching_rate",
    "design_improved",
    "design_partly_pinned",
    "design_pinned",
    "design_policy",
    "design_split",
    "explain_design",
    "fast_switching_limit",
    "find_design",
    "find_fleet_design",
    "find_pinned",
    "fleet_bounds",
    "largest_stable_switching_rate",
    "tune_response_time",
]
