"""`objective="p95"`: the switching rate of a close rota chosen again, on the exact 95 % quantile of the response time over all jobs.

Candidates are chosen on the mean: a quantile takes ten to a hundred times as long, and candidates that have a low mean have a low quantile
too. The rate is another matter: the mean may be low because most jobs hardly wait, while those that wait for the next turn wait for long.

A quantile alone can be kept low at the cost of the rest: a rota that turns ever more slowly may serve 95 % of the jobs well, and the others
never. So only rates count whose mean response time is at most a tenth above the least.

A preemptive rota switches as fast as it usefully can, for the quantile as for the mean, so its rate stays.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rota.analysis import analyze
from rota.errors import Infeasible, NotConverged, Unstable
from rota.model import System
from rota.policy import MSR

if TYPE_CHECKING:
    from rota.design.design import Design

__all__ = ["MEAN_PART", "tuned_on_p95"]

MEAN_PART = 0.75  # of the time of a design, for the one on the mean
_P = 0.95
_WIDEST = 4.0  # rates from 2⁻⁴ to 2⁴ times that of the least mean
_MEAN = 1.1  # times the least mean: what the quantile may cost
_FINER = 2  # times that the grid is made finer around the best rate, by a factor of 4
_VALUES = 29  # in all
_ALWAYS_S = 20.0  # what is estimated to take less is always done: the estimate is a high one


def tuned_on_p95(system: System, design: Design, *, keep_rate: bool, time_limit_s: float) -> Design:
    """The design with the switching rate of the least exact quantile; as it is where that takes too long, and a remark says so."""
    design = replace(design, objective="p95")
    policy = design.policy
    if len(policy.weights) == 1 or policy.preemption == "full" or keep_rate:
        return design
    answer = analyze(system, policy, sizes="exponential")
    if not answer.has_exact or _VALUES * answer.laws_time_s > max(time_limit_s, _ALWAYS_S):
        return _untuned(design)
    most = _MEAN * answer.mean_response_time
    before = _quantile(system, policy, most)
    if not np.isfinite(before):
        return _untuned(design)
    rate = policy.switching_rate

    def value(log_factor: float) -> float:
        return _quantile(system, policy.replace(switching_rate=rate * 2.0**log_factor), most)

    step, values = 0.5, {0.0: before}
    values |= {at: value(at) for at in np.arange(-_WIDEST, _WIDEST + step, step).tolist() if at}
    for _ in range(_FINER):  # a grid, as values beyond the limits are infinite
        best, step = min(values, key=lambda at: values[at]), step / 4
        values |= {at: value(at) for at in (best + step * np.array([-3, -2, -1, 1, 2, 3])).tolist()}
    best = min(values, key=lambda at: values[at])
    tuned = policy.replace(switching_rate=rate * 2.0**best) if best else policy
    least = f"95 % of all jobs are done within {values[best]:.6g}, exact"
    remark = f"{least}; at the switching rate of the least mean, {rate:.6g}, within {before:.6g}"
    return replace(design, policy=tuned, remarks=(*design.remarks, remark))


def _untuned(design: Design) -> Design:
    remark = "the exact 95 % quantile would take too long: the switching rate is that of the least mean response time"
    return replace(design, remarks=(*design.remarks, remark))


def _quantile(system: System, policy: MSR, most: float) -> float:
    """Infinite where the policy is not stable, its mean is more than `most`, or its law cannot be had."""
    try:
        answer = analyze(system, policy, sizes="exponential")
        return answer.response_time_quantiles((_P,))[_P] if answer.mean_response_time <= most else np.inf
    except (Unstable, Infeasible, NotConverged):
        return np.inf
