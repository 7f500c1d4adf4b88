"""The online brain: small compiled functions that map the state to a decision. Simulation and live scheduler obey the same ones."""

from rota.decide.brain import Brain, brain_of, new_state, policy_name, preempts
from rota.decide.state import ALL, ARRIVAL, CHANGE, COMPLETION, NONE, START, TIMER, State, exponential, first_fit, fits_one, seeded, uniform

__all__ = [
    "ALL",
    "ARRIVAL",
    "CHANGE",
    "COMPLETION",
    "NONE",
    "START",
    "TIMER",
    "Brain",
    "State",
    "brain_of",
    "exponential",
    "first_fit",
    "fits_one",
    "new_state",
    "policy_name",
    "preempts",
    "seeded",
    "uniform",
]
