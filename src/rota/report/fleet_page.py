"""The page of a fleet's plan: one file, no network; the answer first, everything to check it below."""

from __future__ import annotations

import sys
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from rota.policy import PartlyPinned, Pinned, Split, fleet_plan_file_to_json
from rota.report.fleet_charts import fleet_schedules, fleet_split, means_against_servers
from rota.report.page_parts import chart_place, html_table, means_side_by_side, plus_minus, value, whole_page
from rota.report.plan_files import fleet_plan_file
from rota.report.save import unchecked
from rota.study.fleet_words import (
    above_words,
    baseline_words,
    buy_words,
    measured,
    one_more_words,
    places_words,
    recommendation,
    target_words,
    waiting_of,
)
from rota.study.plan_objective import time_words

if TYPE_CHECKING:
    from rota.study import FleetPlan

__all__ = ["fleet_plan_html"]


@unchecked()
def fleet_plan_html(plan: FleetPlan, *, source: str = "the fleet", command: str | None = None, spec: str | None = None) -> str:
    """The page. `source`: the file's name; `command`: what repeats the plan; `spec`: the file's text, made from the fleet if absent."""
    pinned = plan.recommended.policy if isinstance(plan.recommended.policy, Pinned) else None
    held = "What each server holds" if pinned is not None else "What the best rotas would run together"
    bound = "" if plan.lower_bound is None else "; dashed: no mean can be below"
    charts = {
        "options": means_side_by_side(
            plan.table().rename({"option": "policy"}),
            plan.lower_bound,
            f"How long jobs take at today's load, {plan.load.load:.3g}",
            f"{bound}. {plan.jobs:,} jobs each",
        ),
        "schedules": fleet_schedules(plan.load, pinned, title=held),
        "split": fleet_split(plan.fleet, _split(plan), said=f"under {plan.recommended_name}, simulated"),
        "servers": means_against_servers(plan),
    }
    content = "\n".join(
        [
            _answer(plan, source),
            _fleet(plan),
            _types(plan),
            _options(plan),
            _servers(plan),
            _how(plan, command or f"rota plan {source} --jobs {plan.jobs} --seed {plan.seed}", spec or plan.fleet.to_toml()),
        ]
    )
    return whole_page(f"Plan for {source}", content, charts)


# ---------------------------------------------------------------------------------------------------------------- the answer


def _answer(plan: FleetPlan, source: str) -> str:
    fleet, result = plan.fleet, plan.result
    unit = "" if fleet.time_unit is None else f" {fleet.time_unit}"
    above = plan.above_bound(result.mean_response_time)
    tiles = [
        (f"{plan.load.load:.1%}", "of what the fleet can carry is requested: its load"),
        (value(result.mean_response_time) + unit, f"mean response time, ± {value(result.interval, 2)}{unit}"),
        (value(result.response_time_quantiles[0.99]) + unit, "99% of the jobs are faster than this"),
        (f"{above:.0%}" if above is not None else "–", "above the mean that no dispatcher and no policy can be below"),
    ]
    tiled = "".join(f'<div class="tile"><b>{escape(big)}</b><span>{escape(small)}</span></div>' for big, small in tiles)
    targets = [] if plan.enough is None else target_words(plan.enough)
    said = [plan.reason.replace("\n", " "), *targets, *baseline_words(plan), *above_words(plan), *buy_words(plan)]
    lead = "\n".join(f'<p class="lead">{escape(line)}</p>' for line in [f"{measured(plan).capitalize()}.", *said])
    servers = " + ".join(f"{n:,} {kind}" for n, kind in zip(fleet.count, fleet.kinds, strict=True))
    return f"""<header>
<p class="kicker">Plan for {escape(source)} · {escape(servers)} · preemption “{fleet.preemption}” · {len(fleet.names)} job types</p>
<h1>{escape(recommendation(plan))} <small>{escape(plan.recommended_name)}</small></h1>
{lead}
</header>
<div class="tiles">{tiled}</div>
{chart_place("options")}"""


def _split(plan: FleetPlan) -> np.ndarray:
    """The part of each type that ran on each kind in the simulation (C, K)."""
    return np.nan_to_num(plan.result.parts)


def _fleet(plan: FleetPlan) -> str:
    best, fleet = plan.load, plan.fleet
    proof = "proved optimal" if best.gap <= 1e-9 else f"at least {best.lower_bound:.6f}: a gap of {best.gap:.0e}"
    kinds = html_table(
        ["kind", "servers", "part of the limit", "one more carries"],
        [
            (escape(kind), f"{n:,}", f"{best.kind_share[c]:.0%}", f"{best.more_in_words(c)} more" if best.server_price[c] > 0 else "–")
            for c, (kind, n) in enumerate(zip(fleet.kinds, fleet.count, strict=True))
        ],
    )
    used = plan.result.kind_utilization
    resources = html_table(
        ["kind", "resource", "capacity", "in use under the best rotas", "in use as simulated", "part of the limit"],
        [
            (
                escape(kind),
                escape(resource),
                value(fleet.capacity[c, r], 6),
                f"{best.utilization[c, r]:.1%}",
                f"{used[c, r]:.1%}",
                f"{best.resource_share[c, r]:.0%}",
            )
            for c, kind in enumerate(fleet.kinds)
            for r, resource in enumerate(fleet.resources)
            if fleet.capacity[c, r] > 0
        ],
        left=(0, 1),
    )
    words = " ".join(escape(line) for line in best.explain().split("\n"))
    return f"""<h2>The fleet, and what limits it</h2>
<p>Load {best.load:.6f} ({proof}). {words}</p>
{kinds}
<p>{escape(_role(plan))}</p>
{chart_place("schedules")}
{chart_place("split")}
<h3>Resources</h3>
{resources}"""


def _role(plan: FleetPlan) -> str:
    """What the picture of the schedules shows."""
    design = plan.recommended.policy
    if isinstance(design, Pinned):
        return "Each server holds one set of jobs for good; the jobs of a type wait in one queue for the slots of all of them."
    best = (
        "The sets of jobs that carry the highest load, and how many servers run each of them on average: they show what limits the fleet."
    )
    if isinstance(design, PartlyPinned):
        return " ".join([best, "What is recommended:", *(f"{n} {kind}: {jobs}." for kind, n, jobs in design.rows(plan.fleet))])
    if isinstance(design, Split):
        return f"{best} Each server follows the rota of its kind by itself."
    return f"{best} {plan.recommended_name} looks at the jobs that are there instead."


def _types(plan: FleetPlan) -> str:
    fleet, result, exact = plan.fleet, plan.result, plan.recommended.known
    rows = []
    for i, name in enumerate(fleet.names):
        rows.append(
            (
                escape(name),
                value(fleet.arrival_rate[i], 4),
                value(1 / fleet.service_rate[i], 4),
                value(result.response_time[i], 4),
                plus_minus(result.response_time_interval[i]),
                *((value(exact.response_time[i], 4),) if exact is not None else ()),
                value(waiting_of(plan, i)),
                *(value(result.type_response_time_quantiles[p][i]) for p in (0.5, 0.95, 0.99)),
                escape(places_words(plan, i)),
            )
        )
    head = ["job type", "arrivals per unit of time", "mean size", "mean", "", *(["exact mean"] if exact is not None else [])]
    head += ["mean wait", "50% below", "95% below", "99% below", "runs on (mean there)"]
    return f"""<h2>How long each type takes</h2>
<p>Under {escape(plan.recommended_name)}, simulated.</p>
{html_table(head, rows, left=(0, len(head) - 1))}
<p class="note">Response time: from arrival to completion. Sizes are running times at speed 1.</p>"""


def _options(plan: FleetPlan) -> str:
    table = plan.table()
    rows = []
    for row in table.to_dicts():
        settled = row["stable"] and not np.isnan(row["mean_response_time"])
        unsettled = "too few jobs of " + ", ".join(row["unknown"]) if row["stable"] else "keeps growing"
        name = f"{row['option']} (the file's)" if row["baseline"] else row["option"]
        rows.append(
            (
                escape(name),
                value(row["mean_response_time"], 4) if settled else escape(unsettled),
                plus_minus(row["interval"]) if settled else "",
                value(row["exact"], 4) if row["exact"] is not None else "",
                "" if not settled else "–" if row["difference"] is None else f"{row['difference']:+.3g}",
                plus_minus(row["difference_interval"]) if settled and row["difference"] is not None else "",
                f"{row['above_bound']:.0%}" if settled and row["above_bound"] is not None else "",
                *(value(row[p]) if settled else "" for p in ("p50", "p95", "p99")),
            )
        )
    head = ["policy and rule", "mean", "", "exact", "difference", "", "above bound", "50% below", "95% below", "99% below"]
    chosen = table["option"].to_list().index(plan.recommended_name)
    left_out = "".join(f'<p class="note">{escape(name)}: {escape(text)}</p>' for name, text in plan.left_out.items())
    at_once = f" {plan.comparison.at_once()}" if plan.comparison.pairs > 1 else ""
    return f"""<h2>Policies and dispatch rules on the same jobs</h2>
<p>{plan.jobs:,} jobs at load {plan.load.load:.4g}, seed {plan.seed}.
Differences are to {escape(plan.recommended_name)} and on the same jobs; ± is a 95% confidence interval.{escape(at_once)}
{escape(plan.reason)}</p>
{html_table(head, rows, chosen=chosen)}{left_out}"""


def _servers(plan: FleetPlan) -> str:
    fleet = plan.fleet
    buying = html_table(
        ["one more server", "carries more", "load then", "pinned, exact mean", "mean under what is recommended, simulated"],
        [
            (
                escape(more.kind),
                plan.load.more_in_words(fleet.kinds.index(more.kind)) if more.carries[1] > 0 else "–",
                f"{more.load:.4f}",
                value(more.pinned, 4),
                escape(one_more_words(plan, more)),
            )
            for more in plan.one_more
        ],
        left=(0, 4),
    )
    rows = []
    for row in plan.by_servers.to_dicts():
        counts = ", ".join(f"{n:,} {kind}" for n, kind in zip(row["count"], fleet.kinds, strict=True))
        mean = f"{value(row['mean_response_time'], 4)} {plus_minus(row['interval'])}" if row["stable"] else "∞"
        rows.append((f"{row['servers']:,}", escape(counts), f"{row['load']:.3f}", value(row["bound"], 4), value(row["pinned"], 4), mean))
    head = ["servers", "of each kind", "load", "bound", "pinned, exact", f"{plan.recommended_name}, simulated"]
    today = plan.by_servers["today"].to_list().index(True)
    targets = "" if plan.enough is None else f"<h3>Targets</h3>{_targets(plan)}"
    return f"""<h2>What to buy next</h2>
<p>{" ".join(map(escape, buy_words(plan)))}</p>
{buying}
{targets}
<h2>If there were fewer servers, or more</h2>
<p>The same arrivals with other numbers of servers, {max(plan.by_servers["jobs"]):,} jobs for each.
Pinned servers are designed anew for each.</p>
{chart_place("servers")}
{html_table(head, rows, left=(0, 1), chosen=today)}
<p class="note">∞: no policy can carry that load, or the queue was still growing at the end of the run.</p>"""


def _targets(plan: FleetPlan) -> str:
    assert plan.enough is not None
    lines = "".join(f"<p>{escape(line)}</p>" for line in target_words(plan.enough))
    found = plan.enough.estimate
    if found is None:
        return lines
    rows = [
        (
            escape(name),
            time_words(plan.fleet, plan.enough.targets[name]) if name in plan.enough.targets else "",
            value(found.response_time[i], 4),
            plus_minus(found.response_time_interval[i]),
        )
        for i, name in enumerate(plan.fleet.names)
    ]
    return lines + html_table(["job type, with these servers", "target", "mean", ""], rows)


# ---------------------------------------------------------------------------------------------------------------- to check it


def _how(plan: FleetPlan, command: str, spec: str) -> str:
    facts = {
        "command": f"<code>{escape(command)}</code>",
        "jobs": f"{plan.jobs:,} per policy and rule, {max(plan.by_servers['jobs']):,} for every other number of servers",
        "seed": str(plan.seed),
        "warm-up": f"the first {plan.result.warmup:.0%} of each run",
        "computed in": f"{plan.time_s:.0f} s",
        "versions": f"Rota {plan.version}, Python {sys.version.split()[0]}, NumPy {np.__version__}, Polars {pl.__version__}",
    }
    listed = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in facts.items())
    policy = escape(fleet_plan_file_to_json(fleet_plan_file(plan)))
    return f"""<h2>How this was made</h2>
<dl>{listed}</dl>
<p>The same seed gives the same jobs. A design stops by the clock, so on another machine it may differ a little.</p>
<details open><summary>The fleet</summary><pre>{escape(spec)}</pre></details>
<details><summary>What is recommended, as a file</summary><pre>{policy}</pre></details>"""
