"""Schedules as packed bars."""

import pytest
from hypothesis import given, settings

import rota
from rota.report import schedule_table, schedules, type_colour
from rotas import paper_rota, twice_round
from systems import paper_example, small_systems, vm_example


@settings(max_examples=25)
@given(small_systems(idle=False))
def test_segments_pack(system):
    """Segments of a bar join from 0, their lengths are count times demand over capacity, and no bar is over 100 %."""
    best = rota.system_load(system)
    table = schedule_table(best, system)
    assert len(table) == len(best.weights) * system.demand.size
    for _, bar in table.group_by("schedule", "resource", maintain_order=True):
        assert bar["start"][0] == 0
        assert bar["start"][1:].to_list() == pytest.approx(bar["end"][:-1].to_list())
        assert bar["end"][-1] <= 1 + 1e-9
    last = table.group_by("schedule", "resource", maintain_order=True).last()
    used = (last["end"] * last["weight"]).to_numpy().reshape(len(best.weights), -1).sum(axis=0)
    assert used == pytest.approx(best.utilization, rel=1e-6)


def test_a_schedule_that_is_visited_twice_is_drawn_once():
    """Of a loop A → B → A → C the two visits of A are one panel, with their weights added."""
    system, policy = twice_round()
    panels = schedule_table(policy, system).unique("schedule", maintain_order=True)
    assert panels["weight"].to_list() == pytest.approx([0.5, 0.45, 0.05])


def test_labels_and_colours():
    """Panels come by weight and say what runs; types have their colours; numbers only where there is room."""
    system = paper_example()
    spec = schedules(paper_rota(), system).to_dict()
    assert [" ".join(panel["title"]["text"]) for panel in spec["vconcat"]] == [
        "50.0% of the time: 2 type3",
        "50.0% of the time: 1 type1, 4 type2",
    ]
    _, used, counts = spec["vconcat"][1]["layer"]
    assert used["encoding"]["color"]["scale"] == {"domain": list(system.names), "range": [type_colour(i) for i in range(3)]}
    rows = {(row["resource"], row["type"]): row for row in spec["datasets"][used["data"]["name"]]}
    assert rows["resource1", "type2"]["share"] == pytest.approx(16 / 20)
    assert ("resource1", "type3") not in rows
    written = {(row["resource"], row["type"]) for row in spec["datasets"][counts["data"]["name"]]}
    assert ("resource3", "type1") not in written  # 2 % of the width


def test_many_types():
    """A load with four candidates has four panels, the heaviest first, one axis below."""
    system = vm_example()
    spec = schedules(rota.system_load(system), system).to_dict()
    weights = [float(" ".join(panel["title"]["text"]).split("%")[0]) for panel in spec["vconcat"]]
    assert weights == sorted(weights, reverse=True)
    titles = [panel["layer"][0]["encoding"]["x"].get("title") for panel in spec["vconcat"]]
    assert titles == [None] * (len(weights) - 1) + ["part of the capacity in use"]
