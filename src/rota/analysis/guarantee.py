"""`Guarantee`: what is proved of a policy that looks at the queues, by the exact values of the rota behind it.

    improved rota               E[T] ≤ E[T] of its base, over all jobs; Poisson arrivals, exponential sizes (docs: improved rotas)
    pMSR with backfilling       no job ends later than under the same pMSR without it, whatever the sizes: T_i is stochastically smaller

Why the second holds: by induction over the jobs of a type from old to new. A job has a slot whenever fewer older jobs of its type are left
than there are slots. With backfilling none of them is left for longer, so it has a slot whenever it has one without.

A type has never fewer jobs than run: E[Q_i] ≥ λ_i/μ_i. So a bound η on all jobs also gives E[Q_i] ≤ η − Σ_{j≠i} λ_j/μ_j.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np

from rota.analysis.analyze import Analysis
from rota.analysis.queue import TypeQueue
from rota.analysis.response import ResponseTime
from rota.analysis.solution import QueueLength
from rota.arrays import Array
from rota.display import html_lines, html_table, html_title, number
from rota.errors import Infeasible, NotConverged
from rota.policy import MSR, Improved, policy_name

__all__ = ["Guarantee", "guarantee", "rota_behind"]


@dataclass(frozen=True)
class Guarantee(Analysis):
    """Bounds that are proved of a policy which looks at the queues. `guaranteed` is that policy; `behind` the analysis of its rota.

    `load`, `process`, `policy` and the like are those of the rota. If it is stable, so is the policy. `lower` and `upper` bound E[Q_i];
    `mean_response_time_upper` bounds E[T] over all jobs. There are no exact values.
    """

    guaranteed: Improved | MSR
    behind: Analysis

    @property
    def per_type(self) -> bool:
        """Whether the guarantee holds for every type alone, and for every job."""
        return isinstance(self.guaranteed, MSR)

    @cached_property
    def _rota(self) -> Array:
        """E[Q_i] of the rota, exact, or its upper bounds where exact values take too long."""
        self.require_stable()
        try:
            return self.behind.exact
        except (Infeasible, NotConverged):
            return self.behind.upper

    @property
    def mean_response_time_upper(self) -> float:
        """E[T] over all jobs is at most this."""
        return self.little(self._rota)

    @property
    def mean_response_time_lower(self) -> float:
        """E[T] over all jobs is at least the mean time in service."""
        return self.little(self.system.offered_work)

    @property
    def response_time_upper(self) -> Array:
        """E[T_i] is at most this; not a number for a type that never arrives."""
        lam = self.system.arrival_rate
        return np.asarray(np.divide(self.upper, lam, out=np.full(len(lam), np.nan), where=lam > 0))

    def explain(self) -> tuple[str, ...]:
        """What is proved, in sentences."""
        bound = f"{self.mean_response_time_upper:.6g}"
        if self.per_type:
            return (
                f"Mean response time at most {bound}, proved: no job ends later than under the same rota without backfilling, "
                "whose exact values these are. How much earlier, only simulation says.",
            )
        return (
            f"Mean response time at most {bound}, proved: that of the rota it improves. How much less, only simulation says.",
            "The guarantee is for the mean over all jobs. The bounds of a single type follow from it and are wide; "
            "a type may wait longer than under the rota.",
        )

    def type_response_time_quantiles_upper(self, levels: tuple[float, ...] = (0.5, 0.95, 0.99)) -> dict[float, Array]:
        """By level p: a part p of the jobs of each type is done within this time at the latest. With backfilling only."""
        if not self.per_type:
            raise Infeasible("the guarantee of an improved rota is for the mean response time, not for its law: simulate")
        return self.behind.type_response_time_quantiles(levels)

    # ------------------------------------------------------------------------------------------------ of an analysis

    @cached_property
    def _bounds(self) -> Array:
        work = self.system.offered_work
        upper = self._rota if self.per_type else self._rota.sum() - (work.sum() - work)
        return np.column_stack([work, upper])

    def _instability(self) -> str:
        return f"nothing is proved of {policy_name(self.guaranteed)}, as the rota behind it is not stable: {super()._instability()}"

    def remarks(self, *, exact: bool = True) -> tuple[str, ...]:
        """What is proved, in sentences."""
        return self.explain() if self.stable else ()

    @property
    def exact_time_s(self) -> float:
        """There are no exact values."""
        return np.inf

    @property
    def _compiled(self) -> bool:
        return False

    @property
    def _exponential_queues(self) -> tuple[TypeQueue, ...]:
        return self._refuse()

    def _solve(self, i: int) -> QueueLength:
        return self._refuse()

    def _response(self, i: int) -> ResponseTime:
        return self._refuse()

    def _refuse(self) -> NoReturn:
        raise Infeasible(
            f"{policy_name(self.guaranteed)} looks at the queues, so it has no exact values and no prediction: "
            "use upper and mean_response_time_upper, which are proved, or simulate"
        )

    def __repr__(self) -> str:
        if not self.stable:
            return f"<Guarantee: none, {self._instability()}>"
        return f"<Guarantee for {policy_name(self.guaranteed)}: mean response time at most {self.mean_response_time_upper:.6g}>"

    def _repr_html_(self) -> str:
        if not self.stable:
            return html_title("Guarantee") + html_lines(self._instability())
        columns = {"load": self.load, "E[Q] at least": self.lower, "at most": self.upper, "E[T] at most": self.response_time_upper}
        rows = [(name, *(number(column[i], 5) for column in columns.values())) for i, name in enumerate(self.system.names)]
        title = f"Mean response time at most {number(self.mean_response_time_upper, 6)}"
        return html_title(title) + html_table(["", *columns], rows) + html_lines("\n".join(self.explain()))


def rota_behind(policy: MSR | Improved) -> MSR:
    """The rota whose exact values bound those of the policy."""
    return policy.base if isinstance(policy, Improved) else policy.replace(backfill=False)


def guarantee(behind: Analysis, policy: MSR | Improved) -> Guarantee:
    """What the analysis of a rota proves of a policy that looks at the queues."""
    if isinstance(policy, Improved) and not behind.exponential:
        raise Infeasible(
            "the guarantee of an improved rota is for exponential sizes, and not all of this system are: simulate, or take them as "
            'exponential with sizes="exponential" (on the command line: --exponential)'
        )
    return Guarantee(behind.system, behind.policy, behind.process, behind.sizes, guaranteed=policy, behind=behind)
