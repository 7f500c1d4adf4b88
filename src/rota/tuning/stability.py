"""Up to which load a queue-driven rota is proved to be stable: docs/explanation/adaptive-rotas.md."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from rota.capacity import Load
from rota.policy import Adaptive

__all__ = ["proved_load"]


def proved_load(load: Load, policy: Adaptive) -> float:
    """The system load below which the policy is proved to be stable; 0 where nothing is proved.

    With its goals alone the server has the load min Σ π_g s.t. Σ π_g g ≥ λ⊘μ, which is that of all schedules or more.
    """
    if policy.hold == 0 or np.isinf(policy.free) or np.isinf(policy.full):
        return 0.0
    mix = linprog(np.ones(len(policy.goals)), A_ub=-policy.goals.T, b_ub=-load.system.offered_work)
    return min(float(load.load / mix.fun), 1.0) if mix.success else 0.0
