"""Figure "The effect of switching rate": E[Q] of the pMSR and of the nMSR against α at load 0.9, exact, with bounds, prediction and α*."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from rota.analysis import Analysis, analyze
from rota.arrays import Array
from rota.design import choose_switching_rate, fast_switching_limit
from rota.design.switching import minimize_on_log_scale
from rota.study.reproduce.example import ALPHA, analytic, best_rate, example_policy, example_system, weighted
from rota.study.reproduce.figure import Figure, Finding, Redrawn, Settings, n, percent

__all__ = ["FIGURE"]

_SLOW, _FAST = 0.1, 100.0  # the range of the pMSR's curve
_RANGE = (np.log(0.01), np.log(0.085))  # of the nMSR's least values; it is stable up to 0.094


def _compute(settings: Settings) -> Redrawn:
    preemptive = _curve("pMSR", np.geomspace(_SLOW, _FAST, settings.effort.points))
    settings.tell("pMSR drawn")
    best = best_rate(example_system(), example_policy("none"))
    edge = _edge()
    points = settings.effort.points
    slow, fast = np.geomspace(best / 20, best, points), edge - (edge - best) * np.geomspace(1, 0.02, points)
    patient = _curve("nMSR", np.concatenate([slow, fast[1:], [1.01 * edge, 1.5 * edge]]))
    settings.tell("nMSR drawn")
    rates = _rates(best)
    tables = {"pmsr": preemptive, "nmsr": patient, "rates": rates}
    findings = (*_preemptive_findings(preemptive), *_patient_findings(rates, edge), _routes())
    remark = (
        "Mean queue lengths are Σ (λ_i/Λ) E[Q_i], as in the paper. Where the paper simulates, the curves here are exact, "
        'so there is no "α* Simulated".'
    )
    return Redrawn(tables, findings, (remark,), ("rates",))


def _at(name: str, rate: float) -> Analysis:
    return analyze(example_system(), example_policy("full" if name == "pMSR" else "none", rate))


def _curve(name: str, rates: Array) -> pl.DataFrame:
    return pl.DataFrame([{"policy": name, "switching_rate": float(rate), **analytic(_at(name, float(rate)))} for rate in rates])


def _edge() -> float:
    """The switching rate beyond which the nMSR is unstable."""
    low, high = 0.05, 0.2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _at("nMSR", middle).stable else (low, middle)
    return low


def _rates(best: float) -> pl.DataFrame:
    """Switching rates of the nMSR, each least by another yardstick, with what E[Q] they give."""
    system = example_system()

    def row(yardstick: str, rate: float, value: float) -> dict[str, object]:
        answer = _at("nMSR", rate)
        exact = {"mean_queue_length": answer.weighted_queue_length, "mean_response_time": answer.mean_response_time}
        return {"yardstick": yardstick, "switching_rate": rate, "value": value, **exact}

    rows = [row("exact", best, _at("nMSR", best).weighted_queue_length)]
    for k, yardstick in ((2, "prediction"), (0, "lower bound"), (1, "upper bound")):
        rows.append(row(yardstick, *minimize_on_log_scale(lambda rate, k=k: weighted(system, _right(rate)[k]), *_RANGE)))  # type: ignore[misc]
        printed = minimize_on_log_scale(lambda rate, k=k: weighted(system, _at("nMSR", rate).printed_bounds[k]), *_RANGE)  # type: ignore[misc]
        rows.append(row(f"{yardstick}, as printed", *printed))
    return pl.DataFrame(rows)


def _right(rate: float) -> tuple[Array, Array, Array]:
    answer = _at("nMSR", rate)
    return answer.lower, answer.upper, answer.prediction


def _preemptive_findings(curve: pl.DataFrame) -> list[Finding]:
    queues = curve["mean_queue_length"].to_list()
    limit = weighted(example_system(), fast_switching_limit(example_system(), example_policy("full")))
    slow, two = (_at("pMSR", rate).weighted_queue_length for rate in (_SLOW, ALPHA))
    part = (slow - two) / (slow - limit)
    return [
        Finding(
            "The mean queue length of a pMSR falls as α grows.",
            f"It falls at each of the {len(queues)} rates from {_SLOW:g} to {_FAST:g}: from {n(queues[0])} to {n(queues[-1])}; "
            f"the limit is {n(limit)}.",
            all(later < earlier for earlier, later in pairwise(queues)),
        ),
        Finding(
            "Most of the benefit is had as long as α ≥ 2.",
            f"At α = 2 it is {n(two)}: {percent(part)} of the way from α = 0.1 to the limit, and still "
            f"{percent(two / limit - 1)} above the limit.",
            part > 0.9,
        ),
    ]


def _patient_findings(rates: pl.DataFrame, edge: float) -> list[Finding]:
    by = {row["yardstick"]: row for row in rates.to_dicts()}
    best, chosen = by["exact"], by["prediction, as printed"]
    off, loss = abs(chosen["switching_rate"] / best["switching_rate"] - 1), chosen["mean_queue_length"] / best["mean_queue_length"] - 1
    simulated = "The paper compares with the α* of a simulation; compared with exact values, its prediction is better than it says."
    printed = by["upper bound, as printed"]["value"] / by["lower bound, as printed"]["value"] - 1
    right = by["upper bound"]["value"] / by["lower bound"]["value"] - 1
    answer = _at("nMSR", 0.06)
    too_high, low, truth = answer.printed_bounds[0][0], answer.lower[0], answer.exact[0]
    alpha, least = best["switching_rate"], best["mean_queue_length"]
    slow = _at("nMSR", alpha / 20).weighted_queue_length
    return [
        Finding(
            "α* Predicted is within 2.1 % of α* Simulated.",
            f"α* is {n(alpha)}; the prediction's is {n(chosen['switching_rate'])}, {percent(off)} off.",
            off < 0.021,
            simulated,
        ),
        Finding(
            "Its mean queue length is within 1.5 % of optimal.", f"{percent(loss)} above the least, {n(least)}.", loss < 0.015, simulated
        ),
        Finding(
            "The minima of the upper and the lower bound differ by 16.3 %.",
            f"{percent(printed)} with the bounds as printed, {percent(right)} with bounds that hold.",
            abs(printed - 0.163) < 5e-4,
            "The printed bounds weight the state before a completion. Where a completion moves the process, the state after it counts.",
        ),
        Finding(
            "The bounds hold for every MSR policy.",
            f"At α = 0.06 the printed lower bound of E[Q_1] is {n(too_high, 5)}, the exact value {n(truth, 6)}; corrected, the "
            f"bound is {n(low, 5)}.",
            bool(too_high <= truth),
            "The same error. The shaded area shows the corrected bounds.",
        ),
        Finding(
            "The wrong α can increase E[Q] by an order of magnitude or result in instability.",
            f"At α*/20 it is {n(slow)}, {n(slow / least, 3)} times the least; beyond α = {n(edge, 3)} ({n(edge / alpha, 3)} α*) "
            f"the policy is unstable.",
            slow > 10 * least and edge < 2 * alpha,
        ),
    ]


def _routes() -> Finding:
    """The section's remark on switching routes: both orders of draining (1,4,0), and early opening, each at its best rate."""
    ways: dict[str, dict[str, Any]] = {
        "type 1 first": {},
        "type 2 first": {"route": [[0, 1, 2], [1, 0, 2]]},
        "type 1 first, slots opened as soon as they fit": {"opening": "early"},
    }
    times = {name: choose_switching_rate(example_system(), example_policy("none", **how)).mean_response_time for name, how in ways.items()}
    return Finding(
        "The choice of switching routes had a minimal impact on mean queue length.",
        "E[T], each at its best α: " + "; ".join(f"{name} {n(value)}" for name, value in times.items()) + ".",
        max(times.values()) / min(times.values()) < 1.1,
        "The order decides which type runs alone on the server at the end of a switch. The figures use the paper's route, type 1 first.",
    )


FIGURE = Figure(
    "switching-rate",
    "The effect of the switching rate",
    'Figure "The effect of switching rate on MSR policies" (pMSR, nMSR), Section "Choosing a Stable MSR Policy with Low Response Time"',
    _compute,
)
