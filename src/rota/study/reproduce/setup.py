"""Figure "Mean queue length of the sMSR policy": against the setup rate γ at load 0.9, each point at its best α, beside nMSR and pMSR."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import brentq

from rota.analysis import analyze
from rota.design import break_even_setup_rate
from rota.policy import MSR
from rota.study.reproduce.example import ALPHA, analytic, best_rate, example_policy, example_system
from rota.study.reproduce.figure import Figure, Finding, Redrawn, Settings, n

__all__ = ["FIGURE"]

_LOW, _HIGH = 0.5, 1000.0


def _compute(settings: Settings) -> Redrawn:
    rates = np.geomspace(_LOW, _HIGH, settings.effort.points)
    curve = []
    for k, rate in enumerate(rates):
        curve.append(_row("sMSR", float(rate), _best(float(rate))))
        settings.tell(f"{k + 1} of {len(rates)} setup rates")
    others = [
        _row(name, rate, policy)
        for name, policy in (("nMSR", _at_best(example_policy("none"))), ("pMSR", example_policy("full", ALPHA)))
        for rate in (_LOW, _HIGH)
    ]
    table = pl.DataFrame([*curve, *others])
    patient, preemptive = others[0]["mean_queue_length"], others[2]["mean_queue_length"]

    def excess(log_rate: float) -> float:
        return float(analyze(example_system(), _best(float(np.exp(log_rate)))).weighted_queue_length / patient - 1)

    even = float(np.exp(brentq(excess, np.log(1.0), np.log(10.0), xtol=1e-4)))
    marks = pl.DataFrame({"yardstick": ["mean queue length", "E[T]"], "break_even": [even, break_even_setup_rate(example_system())]})
    queues = [row["mean_queue_length"] for row in curve]
    findings = (
        Finding(
            "The sMSR is better than the nMSR when γ is significantly higher than the μ_i (all are 1).",
            f"They are equal at γ = {n(even)} (by E[T]: {n(marks['break_even'][1])}); above, the sMSR is better.",
            1.0 < even < 10.0,
            "The paper gives no number.",
        ),
        Finding(
            "As γ grows the sMSR approaches the pMSR.",
            f"It falls at every step, from {n(queues[0])} at γ = {_LOW:g} to {n(queues[-1])} at γ = {_HIGH:g}; the pMSR with α "
            f"= 2 has {n(preemptive)}, "
            f"the nMSR {n(patient)}.",
            all(later < earlier for earlier, later in pairwise(queues)) and queues[-1] < 1.1 * preemptive,
            "" if queues[-1] > preemptive else "Fast setups let the sMSR switch faster than the pMSR's α = 2, so it may end up below it.",
        ),
        _decided(curve, patient, even),
    )
    return Redrawn(
        {"setup": table, "break_even": marks},
        findings,
        ("α* is chosen by exact values; the paper chose it by its bounds.",),
        ("break_even",),
    )


def _at_best(policy: MSR) -> MSR:
    return policy.replace(switching_rate=best_rate(example_system(), policy))


def _best(setup_rate: float) -> MSR:
    return _at_best(example_policy("setup", setup_rate=setup_rate))


def _row(name: str, setup_rate: float, policy: MSR) -> dict[str, Any]:
    known = analytic(analyze(example_system(), policy))
    if name != "sMSR":  # lines to compare with: the figure shades the bounds of the sMSR only
        known |= dict.fromkeys(("lower", "upper", "prediction"), np.nan)
    return {"policy": name, "setup_rate": setup_rate, "switching_rate": policy.switching_rate, **known}


def _decided(curve: list[dict[str, Any]], patient: float, even: float) -> Finding:
    """Where the bounds of the sMSR alone prove which of the two is better."""
    worse = [row["setup_rate"] for row in curve if row["lower"] > patient]
    better = [row["setup_rate"] for row in curve if row["upper"] < patient]
    return Finding(
        "The bounds accurately predict when to use an sMSR rather than an nMSR.",
        f"The sMSR's bounds prove that it is worse up to γ = {n(max(worse), 3)} and better from γ = {n(min(better), 3)} on.",
        max(worse) < even < min(better) < 2 * even,
    )


FIGURE = Figure(
    "setup-rate",
    "Preempt with setups, or wait?",
    'Figure "Mean queue length of the sMSR policy", Section "Choosing an sMSR Policy"',
    _compute,
)
