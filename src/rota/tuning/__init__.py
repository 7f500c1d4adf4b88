"""Policies tuned by simulation: races with common random numbers, and the winner measured on others."""

from rota.tuning.adaptive import FEWEST_JOBS, Tuned, TuningProgress, tune_adaptive
from rota.tuning.race import Entry, Round, race, run_all
from rota.tuning.settings import first_settings, goal_sets, neighbours
from rota.tuning.stability import proved_load

__all__ = [
    "FEWEST_JOBS",
    "Entry",
    "Round",
    "Tuned",
    "TuningProgress",
    "first_settings",
    "goal_sets",
    "neighbours",
    "proved_load",
    "race",
    "run_all",
    "tune_adaptive",
]
