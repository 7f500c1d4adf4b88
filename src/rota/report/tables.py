"""Tables for curves against a parameter: computes what `rota.report.against` draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from rota.errors import BadSpec, Problem

if TYPE_CHECKING:
    from rota.analysis import Analysis
    from rota.model import System
    from rota.policy import MSR, Policy

__all__ = ["load_table", "setup_rate_table", "switching_rate_table"]

_RATES = 41


def load_table(
    system: System,
    policies: Sequence[Policy | str | Callable[[System], Policy]],
    loads: Sequence[float],
    *,
    jobs: int = 0,
    seed: int = 0,
) -> pl.DataFrame:
    """E[T] of policies at several loads. A function makes a policy for the system at each load, as `rota.design_policy` does.

    With `jobs`, by simulation of this many; without, exact, for MSR policies without backfilling only. For these, bounds and
    prediction are always given.
    """
    from rota.analysis import analyze
    from rota.policy import MSR, as_policy, policy_name
    from rota.simulation import simulate

    rows = []
    for given in policies:
        for load in loads:
            scaled = system.scaled(load=load)
            policy = as_policy(given(scaled) if callable(given) else given, scaled)
            row: dict[str, object] = {"policy": policy_name(policy), "load": float(load), "stable": True}
            answer = analyze(scaled, policy, sizes="exponential") if isinstance(policy, MSR) and not policy.backfill else None
            if answer is not None:
                row |= {name: answer.little(value) for name, value in _analytic(answer).items()}
                row["stable"] = answer.stable
            if jobs:
                result = simulate(scaled, policy, jobs=jobs, seed=seed)
                row |= {"mean_response_time": result.mean_response_time, "interval": result.interval, "stable": result.stable}
            elif answer is not None:
                row["mean_response_time"] = answer.mean_response_time if answer.stable else np.nan
            else:
                raise BadSpec([Problem("jobs", f"must be given: {row['policy']} has no exact answer, only a simulated one")])
            rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def switching_rate_table(system: System, policy: MSR, rates: Sequence[float] | None = None, *, per_type: bool = False) -> pl.DataFrame:
    """E[Q] of a policy at several switching rates (by default: around its own), exact, with bounds and prediction."""
    chosen = np.geomspace(policy.switching_rate / 30, policy.switching_rate * 6, _RATES) if rates is None else rates
    return _rate_table(system, "switching_rate", [(float(rate), policy.replace(switching_rate=float(rate))) for rate in chosen], per_type)


def setup_rate_table(system: System, policy: MSR, rates: Sequence[float], *, per_type: bool = False) -> pl.DataFrame:
    """E[Q] of a policy with setups at several setup rates. The policy's switching rate is kept."""
    return _rate_table(system, "setup_rate", [(float(rate), policy.replace(setup_rate=float(rate))) for rate in rates], per_type)


def _rate_table(system: System, x: str, policies: Sequence[tuple[float, MSR]], per_type: bool) -> pl.DataFrame:
    from rota.analysis import analyze

    rows = []
    for rate, policy in policies:
        answer = analyze(system, policy, sizes="exponential")
        exact = answer.exact if answer.stable else np.full(len(system.names), np.nan)
        values = {"mean_queue_length": exact, **_analytic(answer)}
        if per_type:
            rows += [
                {"type": name, x: rate, "stable": answer.stable, **{key: float(value[i]) for key, value in values.items()}}
                for i, name in enumerate(system.names)
            ]
        else:
            rows.append({x: rate, "stable": answer.stable, **{key: float(value.sum()) for key, value in values.items()}})
    return pl.DataFrame(rows)


def _analytic(answer: Analysis) -> dict[str, Any]:
    """Bounds and prediction of E[Q_i]. There are never fewer jobs than busy slots, so λ_i/μ_i is a lower bound too."""
    if not answer.stable:
        nothing = np.full(len(answer.system.names), np.nan)
        return {"lower": nothing, "upper": nothing, "prediction": nothing}
    return {"lower": np.maximum(answer.lower, answer.system.offered_work), "upper": answer.upper, "prediction": answer.prediction}
