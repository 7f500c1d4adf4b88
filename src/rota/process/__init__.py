"""The modulating process of an `MSR`: states, schedules, and what triggers each move."""

from rota.process.build import build_process, check_policy, rates_from_weights, working_generator
from rota.process.check import check_process
from rota.process.export import to_dot, to_json, to_networkx
from rota.process.process import SETUP, TIMER, ModulatingProcess
from rota.process.ways import Ways, with_ways

__all__ = [
    "SETUP",
    "TIMER",
    "ModulatingProcess",
    "Ways",
    "build_process",
    "check_policy",
    "check_process",
    "rates_from_weights",
    "to_dot",
    "to_json",
    "to_networkx",
    "with_ways",
    "working_generator",
]
