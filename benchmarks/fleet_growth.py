"""How does a fleet's mean response time fall with its size, and which dispatch rule and policy win where?

The paper's example on M equal servers at the same load: every rule with every policy on the same jobs, pinned and partly pinned servers
(exact), and the bound that no dispatcher and no policy can beat.

Sent at random, every server is alone, so the mean is that of one server, whatever their number: it is simulated once. With rules under
which servers have queues of their own, a server that begins empty needs thousands of jobs until its queue is what it will be. A mean for
which each server saw fewer than `SETTLED` jobs is marked, in the table by ~ and in the figure by a hollow point: it is rather too low.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rota

EXAMPLES = Path(__file__).parent.parent / "examples"
RULES = ("random", "power-of-d", "jsq", "best-fit", "least-wait", "pull")
POLICIES = ("first-fit", "max-weight-np", "adaptive")
OWN_QUEUES = ("power-of-d", "jsq")  # and random
SETTLED = 20_000  # jobs for each server, half of which are counted
_COLOURS = ("#999999", "#CC79A7", "#56B4E9", "#009E73", "#E69F00", "#0072B2", "#D55E00", "#000000")


def run(options: Sequence[str] = ()) -> None:
    """Prints a table for each policy, and draws them with --figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks fleet_growth", description=run.__doc__)
    parser.add_argument("--servers", nargs="+", type=int, default=[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--jobs", type=int, default=500_000, help="of each simulation, at least")
    parser.add_argument("--jobs-per-server", type=int, default=2_000, help="of each simulation, at least")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path, help="draw the tables into this file, .svg or .png")
    chosen = parser.parse_args(list(options))
    one = rota.read_system(EXAMPLES / "paper.toml").scaled(load=chosen.load)
    policies = {name: rota.tune_adaptive(one, seed=chosen.seed + 1).policy if name == "adaptive" else name for name in chosen.policies}
    alone = rota.compare(one, list(policies.values()), jobs=4 * chosen.jobs, seed=chosen.seed).results
    rows: list[dict[str, Any]] = []
    for servers in chosen.servers:
        fleet = rota.Fleet.equal(one, servers).scaled(factor=servers)
        jobs = max(chosen.jobs, chosen.jobs_per_server * servers)
        rules = [rule for rule in RULES if rule != "random"]
        found = rota.compare(fleet, list(policies.values()), dispatch=rules, jobs=jobs, seed=chosen.seed)
        results = iter(found.results)
        for name, by_itself in zip(policies, alone, strict=True):
            for rule in RULES:
                result = by_itself if rule == "random" else next(results)
                mean = result.mean_response_time if result.stable else float("nan")
                settled = rule not in OWN_QUEUES or jobs >= SETTLED * servers
                rows.append(
                    {"policy": name, "curve": rule, "servers": servers, "mean": mean, "interval": result.interval, "settled": settled}
                )
        exact = {"partly pinned, exact": rota.design_partly_pinned(fleet, time_limit_s=20), "pinned, exact": _pinned(fleet)}
        means = {curve: rota.analyze(fleet, design).mean_response_time for curve, design in exact.items() if design is not None}
        means["bound"] = rota.fleet_bounds(fleet).lower
        rows += [
            {"policy": name, "curve": curve, "servers": servers, "mean": mean, "interval": 0.0, "settled": True}
            for name in policies
            for curve, mean in means.items()
        ]
        print(f"{servers:,} servers, {jobs:,} jobs each", flush=True)
    show(rows, chosen.servers)
    if chosen.figure is not None:
        draw(rows, chosen.figure, chosen.load)


def _pinned(fleet: rota.Fleet) -> rota.Pinned | None:
    try:
        return rota.design_pinned(fleet)
    except rota.Infeasible:  # so few servers have to turn
        return None


def show(rows: list[dict[str, Any]], sizes: Sequence[int]) -> None:
    """A table for each policy: mean response time by rule and number of servers, with half of the 95 % interval in its last digits."""
    found = {(row["policy"], row["curve"], row["servers"]): row for row in rows}
    for policy in dict.fromkeys(row["policy"] for row in rows):
        print(f"\n{policy:<20}" + "".join(f"{servers:>12,}" for servers in sizes))
        for curve in dict.fromkeys(row["curve"] for row in rows if row["policy"] == policy):
            print(f"{curve:<20}" + "".join(f"{_cell(found.get((policy, curve, servers))):>12}" for servers in sizes))


def _cell(row: dict[str, Any] | None) -> str:
    """4.34(12) is 4.34 ± 0.12; ~ before a mean that is rather too low."""
    if row is None:
        return "none"
    if math.isnan(row["mean"]):
        return "grows"
    mark = "" if row["settled"] else "~"
    if not 0 < row["interval"] < math.inf:
        return f"{mark}{row['mean']:.4g}"
    digits = max(1 - math.floor(math.log10(row["interval"])), 0)  # two of the interval
    return f"{mark}{row['mean']:.{digits}f}({round(row['interval'] * 10**digits)})"


def draw(rows: list[dict[str, Any]], path: Path, load: float) -> None:
    """A panel for each policy."""
    import altair as alt
    import polars as pl

    from rota.report.save import save_chart
    from rota.report.style import styled

    curves = [*RULES, "pinned, exact", "bound"]
    data = pl.DataFrame(rows, infer_schema_length=None).filter(pl.col("curve").is_in(curves) & pl.col("mean").is_not_nan())
    legend = alt.Legend(orient="bottom", columns=4, symbolType="stroke", symbolSize=300)
    colour = alt.Color("curve:N", sort=curves, scale=alt.Scale(domain=curves, range=list(_COLOURS)), title=None, legend=legend)
    x = alt.X("servers:Q", scale=alt.Scale(type="log", nice=False), title="servers", axis=alt.Axis(values=[1, 10, 100, 1000], format=",d"))
    y = alt.Y("mean:Q", scale=alt.Scale(type="log", nice=False), title="mean response time", axis=alt.Axis(values=[1, 2, 5, 10, 20]))
    dash = alt.StrokeDash("curve:N", scale=alt.Scale(domain=curves, range=[[1, 0]] * 7 + [[5, 4]]), title=None, legend=legend)
    base = alt.Chart(data).encode(x, y, colour)
    settled = base.transform_filter("datum.settled").mark_point(filled=True, opacity=1, size=30)
    hollow = base.transform_filter("!datum.settled").mark_point(filled=False, opacity=1, size=30, fill="white", strokeWidth=1.5)
    panel = (base.mark_line().encode(dash) + settled + hollow).properties(width=210, height=260)
    chart = panel.facet(alt.Column("policy:N", sort=list(POLICIES), title=None))
    save_chart(styled(chart, f"The paper's example on many servers at load {load:g}", "mean size 1; both axes logarithmic"), path)
    print(f"drawn to {path}")
