"""How does a fleet's mean response time fall with its size, and which dispatch rule and policy win where?

The paper's example on M equal servers at the same load: every rule with every policy on the same jobs, pinned and partly pinned servers
(exact), and the bound that no dispatcher and no policy can beat.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rota

EXAMPLES = Path(__file__).parent.parent / "examples"
RULES = ("random", "power-of-d", "jsq", "best-fit", "least-wait", "pull")
POLICIES = ("first-fit", "max-weight-np", "adaptive")
_COLOURS = ("#999999", "#CC79A7", "#56B4E9", "#009E73", "#E69F00", "#0072B2", "#D55E00", "#000000")


def run(options: Sequence[str] = ()) -> None:
    """Prints a table for each policy, and draws them with --figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks fleet_growth", description=run.__doc__)
    parser.add_argument("--servers", nargs="+", type=int, default=[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--jobs", type=int, default=500_000, help="of each simulation; at least 2,000 for each server")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path, help="draw the tables into this file, .svg or .png")
    chosen = parser.parse_args(list(options))
    one = rota.read_system(EXAMPLES / "paper.toml").scaled(load=chosen.load)
    policies = {name: rota.tune_adaptive(one, seed=chosen.seed + 1).policy if name == "adaptive" else name for name in POLICIES}
    rows: list[dict[str, Any]] = []
    for servers in chosen.servers:
        fleet = rota.Fleet.equal(one, servers).scaled(factor=servers)
        jobs = max(chosen.jobs, 2_000 * servers)
        found = rota.compare(fleet, list(policies.values()), dispatch=list(RULES), jobs=jobs, seed=chosen.seed)
        results = iter(found.results)
        for name in policies:
            for rule in RULES:
                result = next(results)
                mean = result.mean_response_time if result.stable else float("nan")
                rows.append({"policy": name, "curve": rule, "servers": servers, "mean": mean, "interval": result.interval})
        exact = {"partly pinned, exact": rota.design_partly_pinned(fleet), "pinned, exact": _pinned(fleet)}
        means = {curve: rota.analyze(fleet, design).mean_response_time for curve, design in exact.items() if design is not None}
        means["bound"] = rota.fleet_bounds(fleet).lower
        rows += [{"policy": name, "curve": curve, "servers": servers, "mean": mean} for name in policies for curve, mean in means.items()]
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
    """A table for each policy: mean response time by rule and number of servers."""
    means = {(row["policy"], row["curve"], row["servers"]): row["mean"] for row in rows}
    for policy in POLICIES:
        print(f"\n{policy:<22}" + "".join(f"{servers:>9,}" for servers in sizes))
        for curve in dict.fromkeys(row["curve"] for row in rows if row["policy"] == policy):
            cells = [means.get((policy, curve, servers)) for servers in sizes]
            print(f"{curve:<22}" + "".join(f"{'none' if x is None else 'grows' if x != x else f'{x:.4g}':>9}" for x in cells))


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
    panel = alt.Chart(data).mark_line(point=True).encode(x, y, colour, dash).properties(width=210, height=260)
    chart = panel.facet(alt.Column("policy:N", sort=list(POLICIES), title=None))
    save_chart(styled(chart, f"The paper's example on many servers at load {load:g}", "mean size 1; both axes logarithmic"), path)
    print(f"drawn to {path}")
