"""The paper's example system (Appendix "Example System") and its MSR policies, with the paper's mean queue length.

At load ρ arrivals are ρ·(½, 2, 1), all service rates 1. The best candidates are (0,0,2) and (1,4,0), half of the time each, at every load.

The paper's figures draw Σ (λ_i/Λ) E[Q_i], which it calls the mean queue length. Tables hold that as `mean_queue_length`, and beside it
E[T] = Σ E[Q_i]/Λ, by Little's law, as `mean_response_time`.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from rota.analysis import Analysis, analyze
from rota.arrays import Array
from rota.design import choose_switching_rate
from rota.design.switching import minimize_on_log_scale
from rota.model import System
from rota.policy import MSR

__all__ = ["ALPHA", "LOAD", "analytic", "best_rate", "example_policy", "example_system", "weighted"]

LOAD = 0.9  # of the figures that have one load
ALPHA = 2.0  # of the paper's pMSR


def example_system(load: float = LOAD) -> System:
    """The example at a load."""
    return System(
        capacity=[20, 15, 50],
        demand=[[3, 7, 1], [4, 1, 1], [10, 1, 5]],
        arrival_rate=load * np.array([0.5, 2.0, 1.0]),
        service_rate=[1, 1, 1],
        names=("type1", "type2", "type3"),
        resources=("cores", "memory_gb", "network_gbps"),
    )


def example_policy(preemption: Literal["full", "none", "setup"], rate: float = ALPHA, **fields: Any) -> MSR:
    """The loop over the two candidates."""
    return MSR([(0, 0, 2), (1, 4, 0)], (0.5, 0.5), preemption, rate, **fields)


def weighted(system: System, queue_lengths: Array) -> float:
    """The paper's mean queue length: Σ (λ_i/Λ) E[Q_i]."""
    return float(system.arrival_rate @ queue_lengths / system.arrival_rate.sum())


def best_rate(system: System, policy: MSR) -> float:
    """α*: the switching rate of the least mean queue length in the paper's sense, by exact values."""
    near = float(np.log(choose_switching_rate(system, policy).rate))

    def value(rate: float) -> float:
        answer = analyze(system, policy.replace(switching_rate=rate))
        return answer.weighted_queue_length if answer.stable else np.inf

    return minimize_on_log_scale(value, near - 0.5, near + 0.5)[0]


def analytic(answer: Analysis) -> dict[str, Any]:
    """The exact mean queue length and E[T], the bounds and the prediction; not a number where the policy is not stable."""
    names = ("mean_queue_length", "mean_response_time", "lower", "upper", "prediction")
    if not answer.stable:
        return {"stable": False} | dict.fromkeys(names, np.nan)
    lower = np.maximum(answer.lower, answer.system.offered_work)  # there are never fewer jobs than busy slots
    bounds = {"lower": lower, "upper": answer.upper, "prediction": answer.prediction}
    return {
        "stable": True,
        "mean_queue_length": answer.weighted_queue_length,
        "mean_response_time": answer.mean_response_time,
        **{name: weighted(answer.system, value) for name, value in bounds.items()},
    }
