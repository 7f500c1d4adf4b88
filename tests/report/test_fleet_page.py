"""The page of a fleet's plan: one file that loads nothing, with the fleet drawn and the numbers of the plan."""

import re

import numpy as np
import pytest

import rota
from fleets import two_kinds
from rota.report import fleet_plan_html, fleet_schedules, fleet_split, means_against_servers
from rota.report.fleet_charts import schedules_of_fleet
from rota.report.plan_files import is_plan
from valid_charts import valid_charts


@pytest.fixture(scope="module")
def plan():
    """A quick plan of the example, with a name that must be escaped."""
    return rota.plan(two_kinds().replace(names=["<train>", "type2"]), jobs=20_000, tuning_s=0.5, targets={"type2": 1.2})


@pytest.fixture(scope="module")
def page(plan):
    """Its page."""
    return fleet_plan_html(plan, source="fleet.toml", command="rota plan fleet.toml --jobs 20000")


def test_one_file(page, tmp_path):
    """Nothing is loaded from anywhere; names are escaped; it is known again as a page of a plan."""
    assert not re.search(r"(src|href)=[\"']https?://", page)
    assert "Content-Security-Policy" in page
    assert "&lt;train&gt;" in page
    body = page[page.index("<main>") : page.index("</main>")]
    assert "<train>" not in body
    path = tmp_path / "plan.html"
    path.write_text(page, encoding="utf-8")
    assert is_plan(path)


def test_its_charts_are_valid(page):
    """Altair, which does not check charts while it makes a page, finds nothing wrong with them."""
    assert valid_charts(page)


def test_its_numbers(plan, page):
    """The recommendation, the options, the targets, what to buy, other numbers of servers, and how to repeat it."""
    for text in (
        plan.recommended_name,
        f"{plan.load.load:.6f}",
        "What to buy next",
        "Target type2=1.2 min",
        "rota plan fleet.toml --jobs 20000",
    ):
        assert text in page
    for name in plan.results:
        assert name in page
    assert page.count('<div class="chart">') == 4
    assert "rota_fleet_plan" in page


def test_the_fleet_drawn(plan):
    """Servers of the best rotas, or pinned ones: all servers of every kind are there, and no bar is longer than its server."""
    for pinned in (None, plan.options["pinned"].policy):
        rows = schedules_of_fleet(plan.load, pinned)
        total = np.zeros(2)
        for c, n, _ in rows:
            total[c] += n
        np.testing.assert_allclose(total, plan.fleet.count, atol=0.02)
        chart = fleet_schedules(plan.load, pinned).to_dict()
        ends = [row["end"] for data in chart["datasets"].values() for row in data if "end" in row]
        assert max(ends) <= 1 + 1e-9
        assert len(chart["vconcat"]) == len(rows)


def test_the_split_drawn(plan):
    """The parts of each type sum to 1."""
    chart = fleet_split(plan.fleet, plan.result.parts).to_dict()
    (rows,) = chart["datasets"].values()
    for name in plan.fleet.names:
        assert sum(row["part"] for row in rows if row["type"] == name) == pytest.approx(1, abs=0.002)


def test_the_curve(plan):
    """The bound, pinned servers and what is recommended, at every number of servers of the plan."""
    chart = means_against_servers(plan).to_dict()
    drawn = {}
    for rows in chart["datasets"].values():
        for row in rows:
            if "curve" in row:
                drawn.setdefault(row["curve"].split(",")[0], {})[row["servers"]] = row["value"]
    table = plan.by_servers
    assert drawn["pinned servers"] == dict(table.drop_nulls("pinned").select("servers", "pinned").rows())
    assert drawn["no dispatcher and no policy is below"] == dict(table.drop_nulls("bound").select("servers", "bound").rows())
    assert drawn[plan.recommended_name.split(",")[0]] == dict(table.filter("stable").select("servers", "mean_response_time").rows())
