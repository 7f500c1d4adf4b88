"""`plan`: answers the operator's questions with one call.

What limits the server, the best rota, how long people wait under it and under everything else that the server's preemption model allows,
how far load can grow, and which policy to run. What theory proves is exact; the rest is simulated, every policy on the same jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rota import __version__
from rota.analysis import Analysis
from rota.arguments import is_real, whole
from rota.capacity import Load, system_load
from rota.design import MeanResponse
from rota.display import html_lines, html_table, number, verdict_cells
from rota.errors import BadSpec, Infeasible, Problem, Unstable
from rota.model import System
from rota.model.system import check_system
from rota.policy import MSR, Policy, policy_name
from rota.simulation import Difference, EarlyComparison, Result, compare_early, enough_jobs
from rota.study.plan_bursts import BurstCost, burst_cost
from rota.study.plan_choice import choose
from rota.study.plan_growth import Limit, against_load, limits_of
from rota.study.plan_objective import Measure, PlanObjective, checked_limits, measure_of
from rota.study.plan_optimum import Optimum, OptimumSearch
from rota.study.plan_policies import analysis_of, capacity_needed, compile_designs, compiled_parts, design_rotas, policies_of
from rota.study.plan_progress import PlanProgress, Telling
from rota.study.plan_words import WorseOff, in_words, overload_text, worse_off
from rota.study.warm_up import compiling_ahead
from rota.threads import one_thread, quick_turns

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Plan", "PlanProgress", "plan"]

_ELSEWHERE = 1 / 24  # of the time for tuning, at each of the other loads, which begin with the rota for this one


@dataclass(frozen=True, eq=False)
class Plan:
    """The answers. `comparison` is at the system's own load, on `jobs` jobs, fewer of policies that were stopped early: their queue
    grew, or they were clearly worse. `by_load` and `limits` are on `grid_jobs` each, fewer at low loads.

    `rota` is the best one without backfilling, and `analysis` its analysis: with the sizes as given if `as_given`, otherwise with
    exponential sizes. `balanced` is the mean response time of the paper's design, with the same sizes. The recommended policy is the best
    by the `objective` of those that keep the `type_limits`, mean response times by type; `excluded` says why others do not. If none does,
    `keeps_limits` is False, and the one that comes nearest is recommended. `optimum` is the least mean response time of any policy, or a
    bound on it. `bursts`: what arrivals that are not Poisson cost, None if all are. (`limits` are other limits: how far load can grow.)
    """

    system: System
    load: Load
    rota: MSR
    analysis: Analysis
    as_given: bool
    balanced: MeanResponse
    comparison: EarlyComparison
    by_load: pl.DataFrame
    limits: dict[str, Limit]
    recommended_name: str
    reason: str
    objective: PlanObjective
    type_limits: dict[str, float]
    excluded: dict[str, str]
    keeps_limits: bool
    optimum: Optimum
    jobs: int
    grid_jobs: int
    seed: int
    time_s: float
    bursts: BurstCost | None = None
    version: str = field(default=__version__)

    @property
    def results(self) -> dict[str, Result]:
        """Results at the system's own load, by policy."""
        return dict(zip(self.comparison.labels, self.comparison.results, strict=True))

    @property
    def recommended(self) -> Policy:
        """The policy to run."""
        return self.results[self.recommended_name].policy

    @property
    def exact(self) -> bool:
        """Whether the exact response times of the rota are known, beside bounds and prediction."""
        return self.analysis.has_exact

    @property
    def measure(self) -> Measure:
        """What policies are judged by."""
        return measure_of(self.objective)

    @property
    def worse_off(self) -> tuple[WorseOff, ...]:
        """The types that take much longer under the recommended policy than under another one."""
        return worse_off(self)

    def difference(self, name: str) -> Difference:
        """Mean response time of a policy minus that of the recommended one, on the same jobs.

        The intervals of the differences of all pairs of policies hold at once, with 95 % confidence.
        """
        return self.comparison.difference(name, self.recommended_name)

    def objective_difference(self, name: str) -> Difference:
        """The same for what policies are judged by."""
        return self.measure.apart(self.comparison, name, self.recommended_name)

    def table(self) -> pl.DataFrame:
        """A row per policy: response times, what it is judged by, differences to the recommended policy, and the largest stable load.

        `above_optimum` is how much longer its mean response time is than the optimum, relative; than the proved bound if that is all that
        is known.
        """
        import polars as pl

        rows = []
        for name, result in self.results.items():
            known = result.stable and not np.isnan(result.mean_response_time)
            other = known and name != self.recommended_name
            difference, by_objective = (self.difference(name), self.objective_difference(name)) if other else (None, None)
            limit = self.limits[name]
            rows.append(
                {
                    "policy": name,
                    "recommended": name == self.recommended_name,
                    "jobs": result.jobs,
                    "stable": result.stable,
                    "growing": list(result.growing),
                    "unknown": list(result.unknown),
                    "mean_response_time": result.mean_response_time,
                    "interval": result.interval,
                    "difference": difference.mean if difference else None,
                    "difference_interval": difference.interval if difference else None,
                    "objective": self.measure.value(result) if known else None,
                    "objective_interval": self.measure.interval(result) if known else None,
                    "objective_difference": by_objective.mean if by_objective else None,
                    "objective_difference_interval": by_objective.interval if by_objective else None,
                    "excluded": self.excluded.get(name),
                    "above_optimum": self.optimum.above(result.mean_response_time) if known else None,
                    "p50": result.response_time_quantiles[0.5],
                    "p95": result.response_time_quantiles[0.95],
                    "p99": result.response_time_quantiles[0.99],
                    "preemption_rate": result.preemption_rate,
                    "largest_load": limit.settles,
                    "unstable_load": limit.grows,
                    "limit_proved": limit.proved,
                    "largest_scaling": limit.scaling(self.load.load),
                }
            )
        names = pl.List(pl.String)
        return pl.DataFrame(rows, schema_overrides={"growing": names, "unknown": names}, infer_schema_length=None)

    def explain(self) -> str:
        """The answer in words, one sentence per line."""
        return "\n".join(in_words(self))

    def __repr__(self) -> str:
        return f"<Plan: {self.recommended_name}, load {self.load.load:.4g}, {len(self.results)} policies>"

    def _repr_html_(self) -> str:
        digits = {"mean_response_time": ("mean", 4), "interval": ("±", 2)}
        if self.objective != "mean":
            digits |= {"objective": (self.measure.head, 4), "objective_interval": ("±", 2)}
        digits |= {
            "objective_difference": ("against *", 3),
            "objective_difference_interval": ("±", 2),
            "p95": ("95%", 4),
            "p99": ("99%", 4),
        }
        rows = []
        for row in self.table().to_dicts():
            cells = [number(row[name], places) for name, (_, places) in digits.items()]
            label = f"{row['policy']} *" if row["recommended"] else row["policy"]
            growth = self.limits[row["policy"]].scaling_text(self.load.load)
            rows.append((label, *(verdict_cells(row, len(digits)) or cells), growth))
        return html_lines(self.explain()) + html_table(["policy", *(head for head, _ in digits.values()), "arrivals ×"], rows)


def plan(
    system: System,
    *,
    objective: PlanObjective = "mean",
    limits: Mapping[str, float | str] | None = None,
    jobs: int | None = None,
    seed: int = 0,
    tuning_s: float = 4.0,
    optimum_s: float = 10.0,
    table: bool = False,
    progress: Callable[[PlanProgress], None] | None = None,
) -> Plan:
    """Plans a system; raises `Unstable`, with what to do, if its load is not below 1.

    `objective` is what the recommended policy should keep low: the "mean" response time, the "slowdown" (the mean over all jobs of the
    response time by the mean size of the job's type), "p95" (95 % of the jobs are faster) or "worst-type" (the mean response time of a type
    by its mean size, of the type where that is largest). `limits`, as `{"render": 12}` or, where the system says its unit of time,
    `{"render": "12h"}`, are mean response times that types may have: a policy whose interval reaches above is excluded.

    `jobs` are simulated under each policy at the system's own load (a million, or more if a type is rare), fewer if its queue grows or it
    is clearly worse than another one (`rota.simulation.early`), and a fifth of them or fewer at each other load. The same seed gives the
    same jobs to every policy. Takes 15 seconds or so. A rota is tuned for at most `tuning_s` seconds, by
    the clock, so two plans may differ a little. For few types the least mean response time of any policy is computed, or a bound on it, for
    `optimum_s` seconds at most; 0 leaves it out. `table`: the policy that this search found, a table of decisions for this load, is
    compared with the others and may be recommended; the plan then waits for the search as long as it may take.
    """
    jobs, seed = None if jobs is None else whole("jobs", jobs, 0), whole("seed", seed, 0)
    if jobs is not None and jobs < 5000:
        raise BadSpec([Problem("jobs", "must be at least 5000: fewer are not enough to measure waiting", jobs)])
    check_system(system)
    if not (is_real(tuning_s) and tuning_s > 0):
        raise BadSpec([Problem("tuning_s", "must be positive and finite", tuning_s)])
    if not (is_real(optimum_s) and optimum_s >= 0):
        raise BadSpec([Problem("optimum_s", "must not be negative, and finite", optimum_s)])
    if table and optimum_s == 0:
        raise BadSpec([Problem("optimum_s", "must be positive: the table is what the search for the best policy finds", optimum_s)])
    objective, type_limits = measure_of(objective).objective, checked_limits(system, limits)
    telling = Telling(progress)
    with ExitStack() as stack:
        stack.enter_context(one_thread())  # each: simulations, design and the search for the optimum run side by side
        stack.enter_context(quick_turns())
        stack.enter_context(compiling_ahead(compiled_parts(system)))
        telling.begin("load", "system load")
        best = system_load(system, time_limit_s=10.0)
        if best.load == 0:
            raise Infeasible("no jobs arrive: there is nothing to plan")
        if best.load >= 1:
            raise Unstable(overload_text(best, capacity_needed(best)))
        search = stack.enter_context(OptimumSearch(system, optimum_s, to_the_end=table))  # beside all that follows
        jobs = enough_jobs(system) if jobs is None else jobs
        grid_jobs = max(jobs // 5, 1000)
        judge = None if objective == "mean" else measure_of(objective).value
        telling.begin("design", "designing the rota")
        compile_designs(system.preemption)  # takes time of its own
        rotas = design_rotas(
            best,
            jobs=grid_jobs,
            seed=seed + 1,
            time_limit_s=tuning_s,
            limits=type_limits,
            judge=judge,
            objective=objective,
            tell=telling.simulating,
        )
        rota = rotas[system.preemption].plain
        analysis, as_given = analysis_of(system, rota)
        balanced = MeanResponse.of(analysis_of(system, rotas[system.preemption].balanced)[0])
        policies = policies_of(system, rotas)
        if table:
            telling.begin("table", "the best policy possible")
            policies |= {policy_name(one): one for one in [search.result().table] if one is not None}
        telling.policies = len(policies)
        telling.begin("compare", "comparing policies")
        early = objective == "mean" and not type_limits  # else a policy that is worse on average may be the one to recommend
        comparison = compare_early(system, list(policies.values()), jobs=jobs, seed=seed, worse=early, progress=telling.simulating)
        results = dict(zip(comparison.labels, comparison.results, strict=True))
        telling.begin("loads", "other loads")
        elsewhere_s = tuning_s * _ELSEWHERE
        rows = against_load(best, results, rotas, jobs=grid_jobs, seed=seed, time_limit_s=elsewhere_s, tell=telling.tell)
        telling.begin("growth", "how far load can grow")
        growth = limits_of(best, results, rows, jobs=grid_jobs, seed=seed)
        telling.begin("optimum", "the best policy possible")
        optimum = search.result()
        choice = choose(comparison, growth, best.load, objective=objective, limits=type_limits)
        bursts = burst_cost(system, results[choice.name], jobs=jobs, seed=seed, tell=telling.simulating)
    return Plan(
        system=system,
        load=best,
        rota=rota,
        analysis=analysis,
        as_given=as_given,
        balanced=balanced,
        comparison=comparison,
        by_load=_table(rows),
        limits=growth,
        recommended_name=choice.name,
        reason=choice.reason,
        objective=objective,
        type_limits=type_limits,
        excluded=choice.excluded,
        keeps_limits=choice.keeps_limits,
        optimum=optimum,
        jobs=jobs,
        grid_jobs=grid_jobs,
        seed=seed,
        time_s=telling.time_s,
        bursts=bursts,
    )


def _table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(
        rows, schema_overrides=dict.fromkeys(("lower", "upper", "prediction", "exact"), pl.Float64), infer_schema_length=None
    )
