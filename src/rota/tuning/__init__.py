"""Policies tuned by simulation: races with common random numbers, and the winner measured on others."""

from rota.tuning.adaptive import Tuned, TuningProgress, tune_adaptive
from rota.tuning.race import Entry, Round, race
from rota.tuning.settings import first_settings, goal_sets, neighbours

__all__ = ["Entry", "Round", "Tuned", "TuningProgress", "first_settings", "goal_sets", "neighbours", "race", "tune_adaptive"]
