"""What the paper says about its Borg figure, compared with the redrawn one.

A rule judges the numbers of one month. The verdict is that of the month drawn; where there are more, the finding says in how many of them
the rule holds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from rota.capacity import Load
from rota.study.reproduce.figure import Finding, n

__all__ = ["borg_findings"]

_SHOWN = ("first-fit", "max-weight", "randomized-timers", "pMSR", "pMSR+backfill", "nMSR+backfill")
_FILLED = ("pMSR+backfill", "nMSR+backfill")
_Values = dict[tuple[str, float], float]  # mean response times by policy and load
_Rule = Callable[[_Values], bool]


def borg_findings(runs: pl.DataFrame, month: int, printed: pl.DataFrame, best: Load, design_s: float) -> tuple[Finding, ...]:
    """One finding per sentence of the paper's Section "Experimental Results", and the numbers as a whole. `month` is the one drawn."""
    by_month = _by_month(runs)
    ours, paper = by_month.get(month, {}), {(row["policy"], row["load"]): row["paper"] for row in printed.to_dicts()}
    loads = sorted({load for _, load in ours})
    if not loads:
        return ()
    low, high = loads[:1], [load for load in loads if load >= 0.7]

    def pair(one: str, other: str, at: list[float]) -> str:
        return f"{_list(_ratios(ours, one, other, at))} (the paper's: {_list(_ratios(paper, one, other, at))})"

    def judged(says: str, got: str, rule: _Rule, why: str = "") -> Finding:
        holds = sum(rule(values) for values in by_month.values())
        months = f" By the same rule it holds in {holds} of {len(by_month)} months." if len(by_month) > 1 else ""
        return Finding(says, got + months, rule(ours), why)

    def between(one: str, other: str, at: list[float], least: float, most: float = np.inf) -> _Rule:
        def rule(values: _Values) -> bool:
            known = _ratios(values, one, other, at).values()
            return bool(known) and all(least < ratio < most for ratio in known)

        return rule

    def near_the_paper(values: _Values) -> bool:
        return all(0.5 < ratio < 2 for name in _SHOWN if name != "randomized-timers" for ratio in _overall(values, paper, name))

    def catches_up(values: _Values) -> bool:
        lag = _ratios(values, "randomized-timers", "pMSR+backfill", loads)
        return len(lag) > 1 and lag[min(lag)] > 1.2 and lag[max(lag)] < lag[min(lag)]

    twice = [between("first-fit", name, high, 1.5) for name in _FILLED]
    return (
        judged(
            "The numbers of the figure.",
            "Ours over the paper's, geometric mean over loads: "
            + "; ".join(f"{name} {''.join(n(x, 2) for x in _overall(ours, paper, name)) or 'not run'}" for name in _SHOWN)
            + ".",
            near_the_paper,
            "Other jobs than the paper's: a made month stands for its trace, and months of one law differ by factors. Randomized-Timers "
            "has other parameters.",
        ),
        judged(
            "First-Fit and MaxWeight perform well at low loads.",
            f"pMSR over First-Fit: {pair('pMSR', 'first-fit', low)}; MaxWeight over First-Fit: {pair('max-weight', 'first-fit', low)}.",
            between("pMSR", "first-fit", low, 1),
        ),
        judged(
            "The pMSR outperforms First-Fit by 40 % and MaxWeight by 15 % at load 0.8.",
            f"First-Fit over pMSR: {pair('first-fit', 'pMSR', high)}; MaxWeight over pMSR: {pair('max-weight', 'pMSR', high)}.",
            between("first-fit", "pMSR", high, 1),
            "The paper's text is a little below its own figure. A pMSR without backfilling depends on how long a type stays busy, "
            "which a made month can only guess.",
        ),
        judged(
            "With backfilling, pMSR and nMSR outperform First-Fit and MaxWeight by a factor of 2 when load is high.",
            "First-Fit over " + "; over ".join(f"{name}: {pair('first-fit', name, high)}" for name in _FILLED) + ".",
            lambda values: all(rule(values) for rule in twice),
            "The nMSR switches every three days on average, some twenty times in two months: these numbers are noisy.",
        ),
        judged(
            "Randomized-Timers lags behind the policies with backfilling and begins to be competitive at higher loads.",
            f"Over pMSR with backfilling: {pair('randomized-timers', 'pMSR+backfill', loads)}.",
            catches_up,
            "The paper says that its parameters were hard to tune and does not give them. With Rota's defaults it is far better "
            "than the paper's.",
        ),
        judged(
            "The nMSR without backfilling performs roughly ten times worse than the policies shown.",
            f"Over First-Fit: {_list(_ratios(ours, 'nMSR', 'first-fit', high))}.",
            between("nMSR", "first-fit", high, 3, 30),
            "Roughly: how much worse depends on the load and on the policy compared with.",
        ),
        Finding(
            "The candidate set took 15.28 s on a 28-core server with Gurobi.",
            f"{design_s:.2f} s on one core, with a proved gap of {best.gap:.1g}: {len(best.weights)} candidates.",
            design_s < 15.28,
            "Column generation instead of one MIQCP.",
        ),
    )


def _by_month(runs: pl.DataFrame) -> dict[int, _Values]:
    """The runs that ended, by month."""
    months: dict[int, _Values] = {}
    for row in runs.filter(pl.col("mean_response_time").is_finite()).to_dicts():
        months.setdefault(row["month"], {})[row["policy"], row["load"]] = row["mean_response_time"]
    return months


def _ratios(values: _Values, one: str, other: str, at: list[float]) -> dict[float, float]:
    return {x: values[one, x] / values[other, x] for x in at if (one, x) in values and (other, x) in values}


def _overall(values: _Values, paper: _Values, name: str) -> list[float]:
    """Ours over the paper's, the geometric mean over the loads; none if the policy was not run."""
    known = [value / paper[name, load] for (policy, load), value in values.items() if policy == name and (name, load) in paper]
    return [float(np.exp(np.log(known).mean()))] if known else []


def _list(ratios: dict[float, float]) -> str:
    return ", ".join(f"{value:.2f} at {load:g}" for load, value in ratios.items()) or "not run"
