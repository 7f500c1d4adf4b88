"""The page of a plan: one file, no network; the answer first, everything to check it below."""

from __future__ import annotations

import sys
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from rota.policy import MSR, Adaptive, Improved, msr_name, policy_to_json
from rota.report.against import response_times_against_load
from rota.report.distributions import ccdf_table, response_time_ccdf
from rota.report.packing import schedules
from rota.report.page_parts import chart_place, html_table, plus_minus, policies_side_by_side, value, whole_page
from rota.report.save import unchecked
from rota.study.plan_choice import title_of
from rota.study.plan_objective import time_words
from rota.study.plan_words import beside_the_paper, in_three, recommendation

if TYPE_CHECKING:
    from rota.study import Plan

__all__ = ["plan_html"]


@unchecked()
def plan_html(plan: Plan, *, source: str = "the system", command: str | None = None, spec: str | None = None) -> str:
    """The page. `source`: the file's name; `command`: what repeats the plan; `spec`: the file's text, made from the system if absent."""
    charts = {
        "policies": policies_side_by_side(plan),
        "rota": schedules(_drawn(plan), plan.system, title=_chart_title(plan), common=True),
        "tails": response_time_ccdf(ccdf_table(plan.results)).properties(width=640),
        "loads": response_times_against_load(plan.by_load, title="Mean response time as load grows").properties(width=640, height=380),
    }
    body = "\n".join(
        [
            _answer(plan, source),
            _limits(plan),
            _rota(plan),
            _types(plan),
            _comparison(plan),
            _growth(plan),
            _how(plan, command or f"rota plan {source} --jobs {plan.jobs} --seed {plan.seed}", spec or plan.system.to_toml()),
        ]
    )
    return whole_page(f"Plan for {source}", body, charts)


# ---------------------------------------------------------------------------------------------------------------- the answer


def _answer(plan: Plan, source: str) -> str:
    name, result = plan.recommended_name, plan.results[plan.recommended_name]
    limit, load = plan.limits[name], plan.load.load
    reached = f"{'≥ ' if not limit.proved and limit.grows >= 1 else ''}{limit.scaling(load):.3g}×"
    anew = ", with a redesigned rota" if isinstance(plan.recommended, MSR | Improved) else ""
    proof = f"proved{anew}" if limit.proved else "an estimate by simulation"
    measure = plan.measure
    tail = (value(result.response_time_quantiles[0.99]), "99% of the jobs are faster than this")
    judged = (value(measure.value(result)), f"{measure.title}, ± {value(measure.interval(result), 2)}")
    tiles = [
        (f"{load:.1%}", "of what the server can carry is requested: the system load"),
        (value(result.mean_response_time), f"mean response time under {name}, ± {value(result.interval, 2)}"),
        tail if plan.objective == "mean" else judged,
        (reached, f"today's arrivals can be carried ({proof})"),
    ]
    tiled = "".join(f'<div class="tile"><b>{escape(big)}</b><span>{escape(small)}</span></div>' for big, small in tiles)
    lead = "\n".join(f'<p class="lead">{escape(line)}</p>' for line in in_three(plan))
    return f"""<header>
<p class="kicker">Plan for {escape(source)} · preemption “{plan.system.preemption}” · {len(plan.system.names)} job types,
{len(plan.system.resources)} resources{escape(_asked(plan))}</p>
<h1>{escape(recommendation(plan))} <small>{escape(name)}</small></h1>
{lead}
</header>
<div class="tiles">{tiled}</div>
{chart_place("policies")}"""


def _asked(plan: Plan) -> str:
    """What was asked for, beyond a low mean response time."""
    words = "" if plan.objective == "mean" else f" · by the {plan.measure.title}"
    limits = ", ".join(f"{name} at most {time_words(plan.system, limit)}" for name, limit in plan.type_limits.items())
    return words + (f" · on average {limits}" if limits else "")


def _limits(plan: Plan) -> str:
    best, system = plan.load, plan.system
    proof = "proved optimal" if best.gap <= 1e-9 else f"at least {best.lower_bound:.6f}: a gap of {best.gap:.0e}"
    resources = html_table(
        ["resource", "capacity", "in use under the best rota", "part of the limit"],
        [
            (escape(name), value(amount, 6), f"{used:.1%}", f"{share:.0%}")
            for name, amount, used, share in zip(system.resources, system.capacity, best.utilization, best.resource_share, strict=True)
        ],
    )
    types = html_table(
        ["job type", *system.resources, "arrivals per unit of time", "mean size", "part of the load"],
        [
            (
                escape(name),
                *(value(amount, 4) for amount in system.demand[i]),
                value(system.arrival_rate[i], 4),
                value(1 / system.service_rate[i], 4),
                f"{best.type_share[i]:.0%}",
            )
            for i, name in enumerate(system.names)
        ],
    )
    words = " ".join(escape(line) for line in best.explain().split("\n"))
    return f"""<h2>What limits the server</h2>
<p>System load {best.load:.6f} ({proof}). {words}</p>
{resources}
{types}"""


# ---------------------------------------------------------------------------------------------------------------- the rota


def _drawn(plan: Plan) -> MSR | Adaptive:
    """What to draw: the policy recommended if it has schedules, else the best rota."""
    return plan.recommended if isinstance(plan.recommended, Adaptive) else _shown(plan)


def _shown(plan: Plan) -> MSR:
    """The rota to describe: that of the policy recommended, or the best one where another kind of policy is."""
    policy = plan.recommended
    return policy.base if isinstance(policy, Improved) else policy if isinstance(policy, MSR) else plan.rota


def _chart_title(plan: Plan) -> str:
    if isinstance(plan.recommended, Improved):
        return "What runs together under the base of the improved rota"
    if isinstance(plan.recommended, MSR):
        return "What runs together under the rota recommended"
    if isinstance(plan.recommended, Adaptive):
        return "What runs together under the queue-driven rota recommended"
    return f"What the best rota would run together; recommended is {title_of(plan.recommended_name)}"


def _queue_driven(plan: Plan, policy: Adaptive) -> str:
    """The queue-driven rota that is recommended, and what the best rota that turns by a clock would do."""
    sets = "One set of jobs that fits" if len(policy.goals) == 1 else f"{len(policy.goals)} sets of jobs that fit"
    if np.isinf(policy.free):
        rule = "It is tuned to be MaxWeight without preemption: what runs grows by the heaviest jobs that fit, and the sets are not used."
    elif np.isinf(policy.full):
        rule = "It is tuned to be First-Fit: jobs start in the order of arrival wherever they fit, and the sets are not used."
    else:
        rule = (
            "At every arrival and departure the queues choose which set is served, and keep to it while its jobs are there; "
            "other jobs start where they cannot delay it."
        )
    return f"""<h2>The queue-driven rota to run</h2>
<p>{sets} the server together. {rule}</p>
<p>{escape(beside_the_paper(plan))}</p>
{chart_place("rota")}"""


def _rota(plan: Plan) -> str:
    if isinstance(plan.recommended, Adaptive):
        return _queue_driven(plan, plan.recommended)
    shown, policy = _shown(plan), plan.recommended
    common = shown.candidates.min(axis=0).any()
    what = "Sets of jobs that fit the server together, and the part of the working time that each set gets"
    if len(shown.weights) == 1:
        parts = "One set of jobs, which always runs: nothing ever switches."
    elif common:
        parts = f"{what}: what they have in common always runs, the rest takes turns."
    else:
        parts = f"{what}."
    rate = f" The clock rings {value(shown.switching_rate)} times per unit of working time." if len(shown.weights) > 1 else ""
    head, role = _role(plan, shown)
    name = plan.recommended_name if isinstance(policy, MSR) else msr_name(shown.preemption, shown.backfill)
    return f"""<h2>{head}</h2>
<p>{parts}{rate} This is {escape(name)}.{escape(role)}</p>
<p>{escape(beside_the_paper(plan))}</p>
{chart_place("rota")}"""


def _role(plan: Plan, shown: MSR) -> tuple[str, str]:
    """What the rota that is drawn has to do with the policy recommended: a title, and sentences."""
    if isinstance(plan.recommended, Improved):
        return "The improved rota to run, and its base", (
            f" The recommended policy, {plan.recommended_name}, is made from it. It does not go by the clock: at every arrival and "
            "departure it looks at the queues and goes to the set of jobs, of these and of those on the way between them, that is best for "
            "the jobs present. So the parts of the time are those of the base, not its own."
        )
    if isinstance(plan.recommended, MSR):
        return "The rota to run", ""
    filled = plan.results[msr_name(plan.system.preemption, backfill=True)].policy
    same = isinstance(filled, MSR) and np.array_equal(filled.candidates, shown.candidates)
    role = f" It is not recommended at this load, {title_of(plan.recommended_name)} is;"
    role += " designed for a higher one, a rota can serve any load below 1."
    other = "" if same else " With backfilling another rota does better; it is in the comparison below."
    return "The best rota, which is not the policy recommended", role + other


def _types(plan: Plan) -> str:
    own = msr_name(plan.system.preemption)
    answer, system, rota, chosen = plan.analysis, plan.system, plan.results[own], plan.results[plan.recommended_name]
    rate = np.where(system.arrival_rate > 0, system.arrival_rate, np.nan)
    exact = answer.response_time if plan.exact else np.full(len(rate), np.nan)
    prediction = answer.prediction / rate if answer.exponential and answer.stable else np.full(len(rate), np.nan)
    lower = np.maximum(answer.lower, system.offered_work) / rate
    theory = html_table(
        ["job type", "exact mean", "at least", "at most", "predicted", "simulated mean", "", "95% below", "99% below"],
        [
            (
                escape(name),
                value(exact[i], 4),
                value(lower[i]),
                value(answer.upper[i] / rate[i]),
                value(prediction[i]),
                value(rota.response_time[i]),
                plus_minus(rota.response_time_interval[i]),
                value(rota.type_response_time_quantiles[0.95][i]),
                value(rota.type_response_time_quantiles[0.99][i]),
            )
            for i, name in enumerate(system.names)
        ],
    )
    assumed = "" if plan.as_given else " Theory takes all sizes as exponential; the simulation takes them as the file gives them."
    large = "" if plan.exact else " The process of this rota is too large for exact values in a moment: `rota analyze` computes them."
    unsettled = "" if rota.stable else f" Within {rota.jobs:,} jobs its simulation did not settle, so there are no simulated values."
    below_it = html_table(
        ["job type", "mean", "", "50% below", "95% below", "99% below", "mean wait"],
        [
            (
                escape(name),
                value(chosen.response_time[i]),
                plus_minus(chosen.response_time_interval[i]),
                *(value(chosen.type_response_time_quantiles[p][i]) for p in (0.5, 0.95, 0.99)),
                value(chosen.waiting_time[i]),
            )
            for i, name in enumerate(system.names)
        ],
    )
    return f"""<h2>How long each type takes</h2>
<h3>Under what is recommended, {escape(plan.recommended_name)} (simulated)</h3>
{below_it}
<h3>Under the best rota, {own} (theory, and simulation beside it)</h3>
{theory}
<p class="note">Response time: from arrival to completion. “At least” and “at most” are proved bounds on the mean.
{escape(assumed + large + unsettled)}</p>"""


# ---------------------------------------------------------------------------------------------------------------- the comparison


def _comparison(plan: Plan) -> str:
    rows, table = [], plan.table()
    judged, best = plan.objective != "mean", plan.optimum
    stops, early = bool((table["preemption_rate"] > 0).any()), plan.comparison.early_words()
    for row in table.to_dicts():
        settled = row["stable"] and not np.isnan(row["mean_response_time"])
        none = row["objective_difference"] is None
        unsettled = "too few jobs of " + ", ".join(row["unknown"]) if row["stable"] else "keeps growing"
        own = (value(row["objective"], 4), plus_minus(row["objective_interval"])) if judged else ()
        rows.append(
            (
                escape(row["policy"]),
                *((f"{row['jobs']:,}",) if early else ()),
                value(row["mean_response_time"], 4) if settled else escape(unsettled),
                plus_minus(row["interval"]),
                *(own if settled or not judged else ("", "")),
                "" if not settled else "–" if none else f"{row['objective_difference']:+.3g}",
                plus_minus(row["objective_difference_interval"]) if settled and not none else "",
                *((f"{row['above_optimum']:.0%}" if settled else "",) if best.reference is not None else ()),
                *(value(row[p]) if settled else "" for p in ("p50", "p95", "p99")),
                *((value(row["preemption_rate"]),) if stops else ()),
            )
        )
    head = ["policy", *(["jobs"] if early else []), "mean", "", *((plan.measure.head, "") if judged else ()), "difference", ""]
    head += [("above optimum" if best.settled else "above bound")] if best.reference is not None else []
    head += ["50% below", "95% below", "99% below", *(["preemptions"] if stops else [])]
    chosen = table["policy"].to_list().index(plan.recommended_name)
    errors = "".join(f'<p class="note">{escape(name)}: {escape(text)}</p>' for name, text in plan.comparison.errors.items())
    of = f" of the {plan.measure.title}" if judged else ""
    at_once = f" {plan.comparison.at_once()}" if plan.comparison.pairs > 1 else ""
    remark = f'<p class="note">{escape(best.remark)}</p>' if best.remark else ""
    return f"""<h2>All policies on the same jobs</h2>
<p>{plan.jobs:,} jobs at load {plan.load.load:.4g}, seed {plan.seed}. {escape(early)}
Differences{escape(of)} are to {escape(plan.recommended_name)} and on the same jobs;
± is a 95% confidence interval.{escape(at_once)} {escape(plan.reason)}</p>
{html_table(head, rows, chosen=chosen)}
<p class="note">{"Preemptions per unit of time." if stops else "No policy stops a job."}{escape(_above(plan))}</p>{remark}{errors}
{chart_place("tails")}"""


def _above(plan: Plan) -> str:
    """What the column of the optimum means."""
    best = plan.optimum
    if best.reference is None:
        return ""
    if best.settled:
        return f" Above optimum: how much longer the mean is than {value(best.mean, 4)}, that of the best policy possible."
    return f" Above bound: how much longer the mean is than {value(best.lower_bound, 4)}, which no policy can be below (proved)."


def _growth(plan: Plan) -> str:
    load = plan.load.load
    limits = html_table(
        ["policy", "largest stable load", "times today's arrivals", "how it is known"],
        [(escape(name), *_limit_cells(limit, load)) for name, limit in plan.limits.items()],
        left=(0, 3),
        chosen=list(plan.limits).index(plan.recommended_name),
    )
    names = plan.by_load["policy"].unique(maintain_order=True).to_list()
    by_load = []
    for (at,), part in plan.by_load.group_by("load", maintain_order=True):
        known = {row["policy"]: row for row in part.to_dicts()}
        cells = [_cell_at(known.get(name)) for name in names]
        by_load.append((f"{float(np.asarray(at)):.3g}", *cells))
    today = plan.by_load["load"].unique(maintain_order=True).to_list().index(load)
    return f"""<h2>If load grows</h2>
<p>The same mix of jobs at other arrival rates; rotas are redesigned for each load.
At most {plan.grid_jobs:,} jobs at each load but today's.</p>
{chart_place("loads")}
{limits}
<h3>Mean response time by load</h3>
{html_table(["load", *names], by_load, chosen=today)}
<p class="note">∞: the queue was still growing at the end of the run. The row of today's load stands out.</p>"""


def _cell_at(row: dict[str, Any] | None) -> str:
    """A mean at one load; a dash if the policy could not be made for it."""
    if row is None:
        return "–"
    return f"{value(row['mean_response_time'])} {plus_minus(row['interval'])}" if row["stable"] else "∞"


def _limit_cells(limit: Any, load: float) -> tuple[str, str, str]:
    if limit.proved:
        return "1", f"{1 / load:.3g}", "theory: any load below 1, if designed for it"
    if limit.grows >= 1:
        return f"≥ {limit.settles:.3g}", f"≥ {limit.scaling(load):.3g}", "simulation: settled at the largest load tried"
    return (
        f"{limit.middle:.3g}",
        f"{limit.scaling(load):.3g}",
        f"simulation, an estimate: settled at {limit.settles:.3g}, not at {limit.grows:.3g}",
    )


# ---------------------------------------------------------------------------------------------------------------- to check it


def _how(plan: Plan, command: str, spec: str) -> str:
    facts = {
        "command": f"<code>{escape(command)}</code>",
        "jobs": f"at most {plan.jobs:,} per policy at today's load, {plan.grid_jobs:,} at every other load",
        "seed": f"{plan.seed} (rotas to be backfilled were chosen with seed {plan.seed + 1})",
        "warm-up": f"the first {plan.results[plan.recommended_name].warmup:.0%} of each run",
        "computed in": f"{plan.time_s:.0f} s",
        "versions": f"Rota {plan.version}, Python {sys.version.split()[0]}, NumPy {np.__version__}, Polars {pl.__version__}",
    }
    listed = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in facts.items())
    policy = escape(policy_to_json(plan.recommended))
    return f"""<h2>How this was made</h2>
<dl>{listed}</dl>
<p>The same seed gives the same jobs. The design of a rota stops by the clock, so on another machine the rota may differ a little.</p>
<details open><summary>The system</summary><pre>{escape(spec)}</pre></details>
<details><summary>The recommended policy, as a file</summary><pre>{policy}</pre></details>"""
