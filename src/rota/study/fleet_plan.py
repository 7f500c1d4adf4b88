"""`plan` of a fleet: what limits it, which policy and dispatch rule to run, how long people wait, what to buy next, how many servers a
target needs. What theory proves is exact; the rest is simulated, every option on the same jobs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rota import __version__
from rota.arguments import is_real, whole
from rota.arrays import Array
from rota.capacity import FleetLoad, system_load
from rota.display import html_lines, html_table, number, verdict_cells
from rota.errors import BadSpec, Infeasible, Problem, RotaError, Unstable
from rota.model import Fleet
from rota.policy import Split
from rota.simulation import Comparison, Difference, FleetResult, Result, SimulationProgress, compare_pair, enough_jobs
from rota.simulation.fleet.policy import pooled
from rota.study.fleet_growth import OneMore, against_servers, one_more_of_each, overload_text
from rota.study.fleet_options import FleetOption, baseline_of, compiled_parts, lower_bound, options_of
from rota.study.fleet_runs import in_parallel, run_option
from rota.study.fleet_target import Enough, check_reachable, checked_targets, enough_for
from rota.study.fleet_tuned import best_rules, tuned_options
from rota.study.fleet_words import in_words
from rota.study.plan_choice import Choice, choose
from rota.study.plan_growth import Limit
from rota.study.plan_objective import Measure, PlanObjective, checked_limits, measure_of
from rota.study.plan_progress import PlanProgress, Telling
from rota.study.warm_up import compiling_ahead
from rota.threads import one_thread

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FleetPlan", "plan_fleet"]

_FEWEST = 20_000  # jobs for another number of servers: fewer leave a rare type without a mean
# The part of the time that has gone when a stage begins; measured on the example, with two cores.
_ORDER = ("load", "design", "compare", "tune", "tuned", "one more", "servers", "target", "end")
_STAGES = dict(zip(_ORDER, (0.0, 0.02, 0.15, 0.4, 0.55, 0.65, 0.75, 1.0, 1.0), strict=True))
_WITH_TARGET = dict(zip(_ORDER, (0.0, 0.02, 0.1, 0.25, 0.35, 0.4, 0.45, 0.6, 1.0), strict=True))


@dataclass(frozen=True, eq=False)
class FleetPlan:
    """The answers. `options` are what was compared, from the simplest to the most complex, each on the same `jobs` jobs; `left_out` says
    why a design is not among them. `baseline` is the option that the file itself names by its dispatch rule, None if it has none.

    `lower_bound` holds for the mean response time of every dispatcher and policy; None where sizes or arrivals leave it unproved.
    `one_more`: what one more server of each kind does, on `grid_jobs` jobs. `by_servers`: the mean response time against the number of
    servers, on as many jobs at least, from independent runs (`rota.study.fleet_estimate`).
    `enough`: how many servers keep the targets, None if none were given.
    """

    fleet: Fleet
    load: FleetLoad
    options: dict[str, FleetOption]
    left_out: dict[str, str]
    comparison: Comparison
    recommended_name: str
    reason: str
    baseline: str | None
    objective: PlanObjective
    type_limits: dict[str, float]
    excluded: dict[str, str]
    keeps_limits: bool
    lower_bound: float | None
    one_more: tuple[OneMore, ...]
    by_servers: pl.DataFrame
    enough: Enough | None
    jobs: int
    grid_jobs: int
    seed: int
    time_s: float
    version: str = field(default=__version__)

    @property
    def results(self) -> dict[str, Result]:
        """What was simulated, by option."""
        return dict(zip(self.comparison.labels, self.comparison.results, strict=True))

    @property
    def recommended(self) -> FleetOption:
        """What to run."""
        return self.options[self.recommended_name]

    @property
    def result(self) -> FleetResult:
        """The simulation of what is recommended."""
        result = self.results[self.recommended_name]
        assert isinstance(result, FleetResult)
        return result

    @property
    def measure(self) -> Measure:
        """What options are judged by."""
        return measure_of(self.objective)

    @property
    def response_time(self) -> Array:
        """The mean response time of each type under what is recommended (K,), simulated."""
        return self.result.response_time

    def difference(self, name: str) -> Difference:
        """Mean response time of an option minus that of the recommended one, on the same jobs; all differences hold at once, at 95 %."""
        return compare_pair(self.results[name], self.result, comparisons=self.comparison.pairs)

    def above_bound(self, mean: float) -> float | None:
        """How much longer a mean response time is than the bound, relative."""
        return None if self.lower_bound is None else mean / self.lower_bound - 1

    def table(self) -> pl.DataFrame:
        """A row per option: response times, differences to the recommended one, exact values where there are some."""
        import polars as pl

        rows = []
        for name, result in self.results.items():
            known = result.stable and not np.isnan(result.mean_response_time)
            difference = self.difference(name) if known and name != self.recommended_name else None
            exact = self.options[name].known
            rows.append(
                {
                    "option": name,
                    "rule": self.options[name].dispatch.rule,
                    "recommended": name == self.recommended_name,
                    "baseline": name == self.baseline,
                    "stable": result.stable,
                    "growing": list(result.growing),
                    "unknown": list(result.unknown),
                    "mean_response_time": result.mean_response_time,
                    "interval": result.interval,
                    "exact": None if exact is None else exact.mean_response_time,
                    "difference": difference.mean if difference else None,
                    "difference_interval": difference.interval if difference else None,
                    "objective": self.measure.value(result) if known else None,
                    "objective_interval": self.measure.interval(result) if known else None,
                    "above_bound": self.above_bound(result.mean_response_time) if known else None,
                    "excluded": self.excluded.get(name),
                    "p50": result.response_time_quantiles[0.5],
                    "p95": result.response_time_quantiles[0.95],
                    "p99": result.response_time_quantiles[0.99],
                }
            )
        floats = ("exact", "difference", "difference_interval", "objective", "objective_interval", "above_bound")
        types: dict[str, Any] = dict.fromkeys(("growing", "unknown"), pl.List(pl.String)) | dict.fromkeys(floats, pl.Float64)
        return pl.DataFrame(rows, schema_overrides=types | {"excluded": pl.String}, infer_schema_length=None)

    def explain(self) -> str:
        """The answer in words, one sentence per line."""
        return "\n".join(in_words(self))

    def __repr__(self) -> str:
        return f"<FleetPlan: {self.recommended_name}, load {self.load.load:.4g}, {self.fleet.servers} servers, {len(self.results)} options>"

    def _repr_html_(self) -> str:
        rows = []
        for row in self.table().to_dicts():
            cells = [number(row[name], places) for name, places in (("mean_response_time", 4), ("interval", 2), ("p95", 4), ("p99", 4))]
            rows.append((f"{row['option']} *" if row["recommended"] else row["option"], *(verdict_cells(row, 4) or cells)))
        return html_lines(self.explain()) + html_table(["option", "mean", "±", "95%", "99%"], rows)


def plan_fleet(
    fleet: Fleet,
    *,
    objective: PlanObjective = "mean",
    limits: Mapping[str, float | str] | None = None,
    targets: Mapping[str, float | str] | None = None,
    jobs: int | None = None,
    seed: int = 0,
    tuning_s: float = 4.0,
    progress: Callable[[PlanProgress], None] | None = None,
) -> FleetPlan:
    """Plans a fleet; raises `Unstable`, with the servers that are needed, if its load is not below 1. `rota.plan` calls it.

    `objective` and `limits` as for one server. `targets`, as `{"train": "5h", "mean": 0.5}`, are mean response times of types or of all
    jobs: how many servers keep them is searched for; `Infeasible` if no number can. `jobs` are simulated under each option (a million, or
    more if a type is rare), a fifth of them for each other number of servers. A design takes at most `tuning_s` seconds.
    """
    if not isinstance(fleet, Fleet):
        raise BadSpec([Problem("fleet", "must be a rota.Fleet (rota.Fleet.equal makes one of a system)", fleet)])
    jobs, seed = None if jobs is None else whole("jobs", jobs, 0), whole("seed", seed, 0)
    if jobs is not None and jobs < 5000:
        raise BadSpec([Problem("jobs", "must be at least 5000: fewer are not enough to measure waiting", jobs)])
    if not (is_real(tuning_s) and tuning_s > 0):
        raise BadSpec([Problem("tuning_s", "must be positive and finite", tuning_s)])
    objective, type_limits = measure_of(objective).objective, checked_limits(fleet, limits)
    asked = checked_targets(fleet, targets)
    telling = Telling(progress, _WITH_TARGET if asked else _STAGES)
    telling.begin("load", "load of the fleet")
    if not fleet.arrival_rate.any():
        raise Infeasible("no jobs arrive: there is nothing to plan")
    check_reachable(fleet, asked)
    with compiling_ahead(compiled_parts(fleet)), one_thread():  # one each: simulations run side by side
        best = system_load(fleet, time_limit_s=10.0)
        if best.load >= 1:
            raise Unstable(overload_text(best))
        jobs = enough_jobs(pooled(fleet), fleet=True) if jobs is None else jobs
        grid_jobs = min(jobs, max(jobs // 5, _FEWEST))
        telling.begin("design", "designing pinned servers and rotas")
        options, left_out = options_of(fleet, best, time_limit_s=tuning_s)
        telling.begin("compare", "comparing policies and dispatch rules")
        telling.policies = len(options)
        comparison = _compare(fleet, options, jobs=jobs, seed=seed, telling=telling)
        telling.begin("tune", "tuning policies for one server of each kind")
        found = dict(zip(comparison.labels, comparison.results, strict=True))
        split = next((one.policy for one in options if isinstance(one.policy, Split)), None)
        tuned, without = tuned_options(best, best_rules(options, found), split, seed=seed, tell=telling.tell)
        telling.begin("tuned", "comparing tuned policies")
        telling.policies = max(len(tuned), 1)
        comparison = _joined(comparison, _compare(fleet, tuned, jobs=jobs, seed=seed, telling=telling))
        options, left_out = [*options, *tuned], left_out | without
        results = dict(zip(comparison.labels, comparison.results, strict=True))
        choice = _chosen(comparison, best.load, objective, type_limits)
        option = next(one for one in options if one.name == choice.name)
        telling.begin("one more", "one more server")
        short = run_option(fleet, option, jobs=grid_jobs, seed=seed)
        more = one_more_of_each(best, option, short, jobs=grid_jobs, seed=seed, tell=lambda part: telling.tell("one more server", part))
        telling.begin("servers", "other numbers of servers")
        other = "other numbers of servers"
        rows = against_servers(best, option, jobs=grid_jobs, seed=seed, tell=lambda part: telling.tell(other, part))
        enough = None
        if asked:
            telling.begin("target", "servers that keep the targets")
            enough = enough_for(best, option, asked, jobs=jobs, seed=seed, tell=lambda step: telling.tell(step, 0.5))
    return FleetPlan(
        fleet=fleet,
        load=best,
        options={one.name: one for one in options if one.name in results},
        left_out=left_out | comparison.errors,
        comparison=comparison,
        recommended_name=choice.name,
        reason=choice.reason,
        baseline=baseline_of(fleet, results),
        objective=objective,
        type_limits=type_limits,
        excluded=choice.excluded,
        keeps_limits=choice.keeps_limits,
        lower_bound=lower_bound(fleet, best),
        one_more=more,
        by_servers=_table(rows),
        enough=enough,
        jobs=jobs,
        grid_jobs=grid_jobs,
        seed=seed,
        time_s=telling.time_s,
    )


def _chosen(comparison: Comparison, load: float, objective: PlanObjective, limits: dict[str, float]) -> Choice:
    """What to recommend, by the rule for one server. In its sentences names are quoted: they have commas."""
    quoted = replace(comparison, labels=tuple(f"'{name}'" for name in comparison.labels))
    growth = dict.fromkeys(quoted.labels, Limit(1.0, 1.0, True))  # how far load can grow is not searched for here
    choice = choose(quoted, growth, load, objective=objective, limits=limits)
    return choice._replace(name=choice.name[1:-1], excluded={name[1:-1]: text for name, text in choice.excluded.items()})


def _compare(fleet: Fleet, options: list[FleetOption], *, jobs: int, seed: int, telling: Telling) -> Comparison:
    """Every option on the same jobs; what cannot run on this fleet is reported by name."""
    telling_one = threading.Lock()

    def one(watch: Callable[[SimulationProgress], None], option: FleetOption) -> Result | RotaError:
        def both(at: SimulationProgress) -> None:
            watch(at)
            with telling_one:
                telling.simulating(option.name, at)

        try:
            return run_option(fleet, option, jobs=jobs, seed=seed, watch=both)
        except RotaError as error:
            return error

    answers = in_parallel(one, [(option,) for option in options], lambda part: None)
    pairs = list(zip((option.name for option in options), answers, strict=True))
    found = {name: answer for name, answer in pairs if isinstance(answer, Result)}
    return Comparison(tuple(found.values()), {name: str(answer) for name, answer in pairs if isinstance(answer, RotaError)}, tuple(found))


def _joined(first: Comparison, second: Comparison) -> Comparison:
    """Two comparisons on the same jobs as one."""
    return Comparison((*first.results, *second.results), first.errors | second.errors, (*first.labels, *second.labels))


def _table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    import polars as pl

    floats = dict.fromkeys(("pinned", "bound", "mean_response_time", "interval"), pl.Float64)
    return pl.DataFrame(rows, schema_overrides=floats, infer_schema_length=None)
