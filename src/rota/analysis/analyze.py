"""`Analysis`: everything that is known of a rota on a system, per type and in total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from rota.analysis.cost import QUICK_S, cost_of_mean
from rota.analysis.erlang import has_constant_slots
from rota.analysis.job_times import Forecast, State, forecast_job
from rota.analysis.means import SMALL_STATES, mean_queues, predicted_queues
from rota.analysis.methods import choose_method, response_time_s, solve_companion, solve_length, solve_response
from rota.analysis.queue import TypeQueue
from rota.analysis.response import ResponseTime, quantile_of_mixture
from rota.analysis.show import as_html
from rota.analysis.solution import QueueLength, empty_queue
from rota.analysis.transient import mean_queue_at
from rota.analysis.words import SMALL_ERROR, remarks_on, require_accurate
from rota.analysis.work import heavy_traffic_constant, work_bounds
from rota.arrays import Array
from rota.display import number
from rota.errors import Infeasible, NotConverged, Unstable
from rota.model import Exponential, PhaseTypeFamily, System
from rota.policy import MSR
from rota.process import ModulatingProcess
from rota.threads import one_thread

__all__ = ["Analysis", "Sizes"]

Sizes = Literal["as given", "exponential"]


@dataclass(frozen=True)
class Analysis:
    """A policy on a system, analysed. Arrays have one entry per type (K,); E[Q_i] is the mean number of type-i jobs in the system.

    `load` ρ_i (below 1: stable), `lower` and `upper` bounds and `prediction` of E[Q_i] cost almost nothing; `exact` is computed on first
    use.
    `mean_response_time` is Σ E[Q_i] / Σ λ_i by Little's law.
    """

    system: System
    policy: MSR | None
    process: ModulatingProcess
    sizes: Sizes

    @cached_property
    def queues(self) -> tuple[TypeQueue, ...]:
        """Each type's queue, decoupled from the others."""
        rows = zip(self.system.arrival_rate, self.system.service_rate, self.system.arrivals, strict=True)
        return tuple(
            TypeQueue(self.process, i, float(lam), float(mu), None if arrivals.is_poisson or lam == 0 else arrivals)
            for i, (lam, mu, arrivals) in enumerate(rows)
        )

    # ------------------------------------------------------------------------------------------------ stability

    @cached_property
    def load(self) -> Array:
        """ρ_i = λ_i / (μ_i E[u_i]) (Lemma existence)."""
        return np.array([queue.load for queue in self.queues])

    @property
    def stable(self) -> bool:
        """Whether every type's load is below 1."""
        return bool((self.load < 1).all())

    @property
    def largest_scaling(self) -> float:
        """Arrivals can be multiplied by anything below this."""
        return float(1 / self.load.max()) if self.load.max() > 0 else np.inf

    @property
    def margin(self) -> float:
        """1 − max ρ_i: how far from the edge of stability."""
        return float(1 - self.load.max())

    def require_stable(self) -> None:
        """Raises `Unstable`, saying which type and what to do."""
        if not self.stable:
            raise Unstable(self._instability())

    def _instability(self) -> str:
        i = int(np.argmax(self.load))
        if np.isinf(self.load[i]):
            return f"type {self.system.names[i]!r} arrives but is in no schedule of the policy"
        return (
            f"load {self.load[i]:.4g} of type {self.system.names[i]!r} is not below 1: scale arrivals by less than "
            f"{self.largest_scaling:.4g}, or let the policy switch less often"
        )

    # ------------------------------------------------------------------------------------------------ bounds

    @cached_property
    def _bounds(self) -> Array:
        """Lower and upper bounds (K, 2)."""
        return np.array([q.bounds() if (size := self._phases(q)) is None else work_bounds(q, size) for q in self.queues])

    @property
    def lower(self) -> Array:
        """Lower bounds on E[Q_i]: Theorem msr-bound, right for every process, and for arrivals of every kind (`rota.analysis.queue`).

        By the work in the system for phase-type sizes.
        """
        return self._bounds[:, 0]

    @property
    def upper(self) -> Array:
        """Upper bounds on E[Q_i]."""
        return self._bounds[:, 1]

    @cached_property
    def prediction(self) -> Array:
        """The paper's approximation of E[Q_i]; for exponential sizes only. With bursts it is cruder: it knows their dispersion alone."""
        return np.array([queue.prediction() for queue in self._exponential_queues])

    @property
    def printed_bounds(self) -> tuple[Array, Array, Array]:
        """Lower bound, upper bound and prediction as the paper prints them; for redrawing its figures only."""
        queues = self._paper_queues
        lower, upper = zip(*(queue.bounds(printed=True) for queue in queues), strict=True)
        return np.array(lower), np.array(upper), np.array([queue.prediction(printed=True) for queue in queues])

    @property
    def heavy_traffic_constant(self) -> Array:
        """lim (1−ρ_i) E[Q_i] as arrivals grow and the policy stays the same."""
        return np.array(
            [
                queue.heavy_traffic_constant if (size := self._phases(queue)) is None else heavy_traffic_constant(queue, size)
                for queue in self.queues
            ]
        )

    @property
    def exponential(self) -> bool:
        """Whether all sizes are exponential, or taken as such."""
        return all(self._phases(queue) is None for queue in self.queues)

    @property
    def _exponential_queues(self) -> tuple[TypeQueue, ...]:
        if not self.exponential:
            raise Infeasible(
                "the prediction, the printed bounds and the single-server companion are for exponential sizes: "
                'use lower, upper and exact, or analyze with sizes="exponential"'
            )
        return self.queues

    @property
    def _paper_queues(self) -> tuple[TypeQueue, ...]:
        """Exponential sizes and Poisson arrivals, as in the paper."""
        if self.system.bursty:
            raise Infeasible(
                "the printed bounds and the single-server companion are for Poisson arrivals, "
                f"and those of {self.system.bursty[0]!r} are not: use lower, upper and exact, or analyze system.with_poisson_arrivals()"
            )
        return self._exponential_queues

    def _phases(self, queue: TypeQueue) -> PhaseTypeFamily | None:
        """The size of a type that is not exponential."""
        size = self.system.sizes[queue.type]
        if self.sizes == "exponential" or isinstance(size, Exponential):
            return None
        assert isinstance(size, PhaseTypeFamily)  # by rota.analysis.entry
        return size

    # ------------------------------------------------------------------------------------------------ exact

    def queue_length(self, i: int | str) -> QueueLength:
        """The law of Q_i for a type by its number or name: mean, variance, decay rate, accuracy, probabilities."""
        i = self.system.type_index(i)
        if i not in self._solved:
            self._solved[i] = self._solve(i)
        return self._solved[i]

    @cached_property
    def _solved(self) -> dict[int, QueueLength]:
        return {}

    def _solve(self, i: int) -> QueueLength:
        queue = self.queues[i]
        if queue.arrival_rate == 0:
            return empty_queue()
        self.require_stable()
        return solve_length(queue, self._phases(queue), self.system.names[i])

    @cached_property
    def exact_time_s(self) -> float:
        """About how many seconds `exact` takes on one core: an estimate from the sizes of the matrices, the same on every machine."""
        costs = [choose_method(queue, self._phases(queue)).cost for queue in self.queues if queue.arrival_rate > 0]
        return sum(cost.time_s if cost.affordable else np.inf for cost in costs)

    @cached_property
    def has_exact(self) -> bool:
        """Whether exact values can be used: the policy is stable, they take a second or two, and have at least three digits."""
        if not self.stable or self.exact_time_s > QUICK_S:
            return False
        try:
            return bool(np.isfinite(self.exact).all()) and self.accuracy < SMALL_ERROR
        except (NotConverged, Infeasible):
            return False

    @cached_property
    def exact(self) -> Array:
        """E[Q_i]. Raises `NotConverged` if the estimated relative error of one of them is above 1 %."""
        require_accurate(self)
        return np.array([self.queue_length(i).mean for i in range(len(self.system.names))])

    @cached_property
    def exact_means(self) -> Array:
        """E[Q_i] as `exact` has it, without the law, for searches: ten times as fast for small processes of exponential sizes."""
        if not self._compiled:
            return self.exact
        self.require_stable()
        with one_thread(len(self.process)):
            return mean_queues(self.system, self.process)

    @property
    def quick_prediction(self) -> Array:
        """`prediction`, infinite for a type that is not stable; in compiled code where that is faster."""
        return predicted_queues(self.system, self.process) if self._compiled else self.prediction

    @property
    def _compiled(self) -> bool:
        """Whether the mean queues come from compiled code."""
        return len(self.process) <= SMALL_STATES and self.exponential and not self.system.bursty

    @cached_property
    def means_time_s(self) -> float:
        """About how many seconds `exact_means` takes on one core: an estimate, as `exact_time_s`."""
        if not self._compiled:
            return self.exact_time_s
        N = len(self.process)
        return sum(cost_of_mean(N, 0 if has_constant_slots(queue) else queue.max_parallel) for queue in self.queues)

    @cached_property
    def variance(self) -> Array:
        """Var[Q_i]."""
        require_accurate(self)
        return np.array([self.queue_length(i).variance for i in range(len(self.system.names))])

    @property
    def accuracy(self) -> float:
        """An estimate of the largest relative error of `exact`."""
        return max(self.queue_length(i).accuracy for i in range(len(self.system.names)))

    @property
    def accurate(self) -> bool:
        """Whether `exact` is available: it is not too large, its equations were solved, and its estimated error is at most 1 %."""
        try:
            require_accurate(self)
        except (NotConverged, Infeasible):
            return False
        return True

    def remarks(self, *, exact: bool = True) -> tuple[str, ...]:
        """What to know before trusting the numbers, in sentences: exact values with few digits, bounds that prove little.

        `exact=False`: without computing exact values.
        """
        return remarks_on(self, exact=exact)

    @cached_property
    def _companions(self) -> tuple[QueueLength | None, ...]:
        """The law of each MSR-1 companion; None for a type that never arrives."""
        self.require_stable()
        return tuple(solve_companion(queue) if queue.arrival_rate > 0 else None for queue in self._paper_queues)

    @property
    def single_server(self) -> Array:
        """E[Q_i] of the MSR-1 companion, which serves one job at a time (Theorem msr-difference: within β_i below `exact`)."""
        return np.array([0.0 if law is None else law.mean for law in self._companions])

    @property
    def unused_relative_completions(self) -> Array:
        """E_U[Δ(ν_i)] of Remark marc: the mean relative completions at moments of unused service in the MSR-1 companion.

        E[Q_i] of the companion is (ρ_i + E[Δ(ν_i)])/(1−ρ_i) − E_U[Δ(ν_i)]. The state is the one after the ring that found no job, which
        differs from the one before it only where completions move the process. For a type that never arrives every ring finds none.
        """
        pairs = zip(self._companions, self.queues, strict=True)
        return np.array([queue.ring_average() if law is None else -law.unused_average for law, queue in pairs])

    def queue_length_distribution(self, i: int | str, n: int = 1000) -> Array:
        """P(Q_i = 0), …, P(Q_i = n−1) for a type by its number or name."""
        return self.queue_length(i).probabilities(n)

    def response_time_distribution(self, i: int | str) -> ResponseTime:
        """The law of T_i for a type by its number or name: `tail`, `cdf`, `quantile`, mean, variance, decay rate. For exponential sizes."""
        i = self.system.type_index(i)
        if i not in self._responses:
            self._responses[i] = self._response(i)
        return self._responses[i]

    @cached_property
    def _responses(self) -> dict[int, ResponseTime]:
        return {}

    def _response(self, i: int) -> ResponseTime:
        queue, name = self.queues[i], self.system.names[i]
        if queue.arrival_rate == 0:
            raise Infeasible(f"type {name!r} never arrives, so it has no response time")
        self._require_exponential(i, "the law of the response time")
        self.require_stable()
        return solve_response(queue, lambda: self.queue_length(i), name)

    @property
    def laws_time_s(self) -> float:
        """Seconds that the laws of the response times of all types take, about; infinite if they need too much memory."""
        self.require_stable()
        return sum(response_time_s(queue) for queue in self.queues if queue.arrival_rate > 0)

    def _require_exponential(self, i: int, what: str) -> None:
        if self._phases(self.queues[i]) is not None:
            raise Infeasible(
                f"{what} is for exponential sizes, and those of type {self.system.names[i]!r} are not: "
                'simulate, or analyze with sizes="exponential"'
            )

    def forecast(self, i: int | str, *, ahead: int, state: State = None, next_move: float | None = None) -> Forecast:
        """When a job of a type starts and ends, see `rota.forecast`. The policy need not be stable."""
        i = self.system.type_index(i)
        self._require_exponential(i, "a forecast")
        return forecast_job(self.queues[i], ahead, state, next_move)

    def queue_length_at(self, i: int | str, t: float | Array, *, present: int = 0, state: State = None) -> Array:
        """E[Q_i] at a time t, or an array of them, if `present` jobs of the type are there at time 0. For exponential sizes.

        `state` is that of the process at time 0: its number, its law (N,), or the stationary law. The policy need not be stable.
        """
        i = self.system.type_index(i)
        self._require_exponential(i, "the queue over time")
        if self.queues[i].arrivals is not None:
            raise Infeasible(
                f"the queue over time is for Poisson arrivals, and those of type {self.system.names[i]!r} are not: "
                "simulate from a start, or analyze system.with_poisson_arrivals()"
            )
        return mean_queue_at(self.queues[i], t, present, state)

    def type_response_time_quantiles(self, levels: Sequence[float] = (0.5, 0.95, 0.99)) -> dict[float, Array]:
        """By level p: the time within which a part p of the jobs of each type is done; not a number for a type that never arrives."""
        arrives = self.system.arrival_rate > 0
        laws = [self.response_time_distribution(i) if arrives[i] else None for i in range(len(arrives))]
        return {p: np.array([np.nan if law is None else law.quantile(p) for law in laws]) for p in levels}

    def response_time_quantiles(self, levels: Sequence[float] = (0.5, 0.95, 0.99)) -> dict[float, float]:
        """By level p: the time within which a part p of all jobs is done, whatever their type. For exponential sizes."""
        share = self.system.arrival_rate / self.system.arrival_rate.sum()
        laws = [(share[i], self.response_time_distribution(i)) for i in range(len(share)) if share[i] > 0]
        return {p: quantile_of_mixture(laws, p) for p in levels}

    @property
    def response_time(self) -> Array:
        """E[T_i] = E[Q_i]/λ_i by Little's law; not a number for a type that never arrives."""
        lam = self.system.arrival_rate
        return np.asarray(np.divide(self.exact, lam, out=np.full(len(lam), np.nan), where=lam > 0))

    @property
    def mean_response_time(self) -> float:
        """E[T] over all jobs."""
        return self.little(self.exact)

    def little(self, queue_lengths: Array) -> float:
        """Σ E[Q_i] / Σ λ_i."""
        return float(queue_lengths.sum() / self.system.arrival_rate.sum())

    @property
    def weighted_queue_length(self) -> float:
        """Σ (λ_i/Λ) E[Q_i]: what the paper's figures call mean queue length."""
        lam = self.system.arrival_rate
        return float(lam @ self.exact / lam.sum())

    @property
    def service_share(self) -> Array:
        """The part of the server that the policy sets aside for each type, in the resource of which it needs the largest part.

        E[u_i] max_r D_ir/P_r, its dominant share. Of it the part ρ_i is used. Shares may sum to more than 1 where types need different
        resources.
        """
        one_job = np.max(self.system.demand / self.system.capacity, axis=1)
        return np.asarray(self.process.mean_schedule * one_job)

    @property
    def idle_slots(self) -> Array:
        """The part of each type's slots that holds no job: 1 − ρ_i."""
        return 1 - self.load

    # ------------------------------------------------------------------------------------------------ in a notebook

    def __repr__(self) -> str:
        verdict = "stable" if self.stable else "unstable"
        return f"<Analysis: {verdict}, largest load of a type {self.load.max():.4g}, {len(self.process)} states>"

    def _repr_html_(self) -> str:
        scaling = number(self.largest_scaling)
        return as_html(self, f"Arrivals can grow by a factor of up to {scaling}." if self.stable else self._instability())
