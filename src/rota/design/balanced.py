"""The paper's design beside another one: what balanced loads would give.

A rota of the same preemption model whose weights balance the loads of the types, with its best switching rate. Its mean response time is
exact where that takes a moment, and otherwise a lower bound.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from rota.analysis import Analysis, analyze
from rota.capacity import Load, system_load
from rota.design.design import design_policy
from rota.errors import Unstable
from rota.model import System
from rota.policy import MSR

__all__ = ["MeanResponse", "balanced_beside"]

_QUICK_S = 1.0  # for each of the load, the switching rate and the exact values


@dataclass(frozen=True)
class MeanResponse:
    """A mean response time: exact, or a lower bound."""

    mean_response_time: float
    exact: bool

    @classmethod
    def of(cls, answer: Analysis) -> MeanResponse:
        """That of a rota, from its analysis."""
        if answer.exact_time_s <= _QUICK_S and answer.has_exact:
            return cls(answer.mean_response_time, True)
        return cls(answer.little(np.maximum(answer.lower, answer.system.offered_work)), False)  # Q_i ≥ jobs in service: λ_i/μ_i

    def words(self) -> str:
        """The number, as in `173.8` or `at least 2310`."""
        return f"{'' if self.exact else 'at least '}{self.mean_response_time:.4g}"

    def fields(self) -> dict[str, float | bool]:
        """For JSON."""
        return {"mean_response_time": self.mean_response_time, "exact": self.exact}


def balanced_beside(system: System, policy: MSR, load: Load | None = None) -> MeanResponse | None:
    """Balanced loads in place of a policy, sizes taken as exponential. None if no rota is found in a moment."""
    with suppress(Unstable):
        best = load or system_load(system, time_limit_s=_QUICK_S)
        balanced = design_policy(
            system, policy.preemption, load=best, setup_rate=policy.setup_rate, objective="load", time_limit_s=_QUICK_S
        )
        return MeanResponse.of(analyze(system, balanced, sizes="exponential"))
    return None
