"""When a run is long enough: a sequential rule for the width of an interval.

The interval is looked at after n₁ < n₂ < … jobs. The half-width falls as 1/√n, so after a look that found the relative half-width w where
u is asked for, the next one comes after about n (w/u)² jobs, but no sooner than 1.25 n and no later than 4 n. Few looks matter: the width
is itself an estimate, and who looks often stops when it happens to be too small (Heidelberger and Welch 1983 look again after 1.5 n). For
the same reason a first narrow interval is not believed: the run goes on to 1.25 n, and ends if the interval is narrow there as well.
`python -m benchmarks until` measures how often the intervals of such runs hold the exact value.

The looks depend on nothing but the numbers of jobs and the widths, so the same seed stops at the same job on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rota.simulation.measured import FEWEST
from rota.simulation.result import Result

__all__ = ["FIRST_LOOK", "Until"]

FIRST_LOOK = 20_000
_SOONEST, _LATEST = 1.25, 4.0  # times as many jobs at the next look
_MARGIN = 0.98  # jobs that are still here at a look may widen the interval a little


@dataclass
class Until:
    """How narrow intervals shall be, relative to their means: over all jobs, and of every type. None: that one need not be."""

    mean: float | None
    types: float | None = None
    _narrow: int = field(default=0, init=False)

    def excess(self, result: Result) -> float:
        """The relative half-width by what is asked for, of the worse of the two; infinite if there is no interval."""
        if not result.stable:
            return np.inf
        found = [result.interval / result.mean_response_time / self.mean] if self.mean is not None else []
        if self.types is not None:
            comes = result.counted > 0
            found += (result.response_time_interval[comes] / result.response_time[comes] / self.types).tolist()
        worst = max((np.inf if np.isnan(value) else value for value in found), default=np.inf)
        seen = result.counted[result.system.arrival_rate > 0]
        return float(worst) if (seen >= 2 * FEWEST).all() else np.inf

    def next_look(self, jobs: int, result: Result) -> int | None:
        """After how many jobs to look again, now that there were `jobs`; None: no more, the intervals are narrow."""
        excess = self.excess(result) / _MARGIN
        self._narrow = self._narrow + 1 if excess <= 1 else 0
        if self._narrow > 1:
            return None
        return int(np.ceil(jobs * min(max(excess**2, _SOONEST), _LATEST)))
