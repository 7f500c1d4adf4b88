"""Online decisions: small compiled functions that map the state to a decision. The simulator and the live scheduler use the same ones."""

from rota.decide.decider import Decider, built_in, decider_of, describe, new_state, rule_of, suits
from rota.decide.rule import Description, Rule
from rota.decide.state import ALL, ARRIVAL, CHANGE, COMPLETION, NONE, START, TIMER, State, exponential, first_fit, fits_one, seeded, uniform

__all__ = [
    "ALL",
    "ARRIVAL",
    "CHANGE",
    "COMPLETION",
    "NONE",
    "START",
    "TIMER",
    "Decider",
    "Description",
    "Rule",
    "State",
    "built_in",
    "decider_of",
    "describe",
    "exponential",
    "first_fit",
    "fits_one",
    "new_state",
    "rule_of",
    "seeded",
    "suits",
    "uniform",
]
