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


def test_the_common_part_is_drawn_once():
    """What all schedules share is one panel, "always"; the others have only what is beside it. Together they are the schedules."""
    system = rota.System([64, 128], [[1, 1], [8, 4]], [24, 3.6], [1, 1], names=["small", "large"])
    policy = rota.MSR([[24, 5], [32, 4]], [0.25, 0.75], "none", 1.0)
    table = schedule_table(policy, system, common=True)
    panels = table.unique("schedule", maintain_order=True)
    assert panels["schedule"].to_list() == [
        "always: 24 small, 4 large",
        "75.0% of the time, beside that: 8 small",
        "25.0% of the time, beside that: 1 large",
    ]
    first = table.filter(table["always"])
    for (label,), part in table.filter(~table["always"]).group_by("schedule", maintain_order=True):
        jobs = (first["jobs"] + part["jobs"]).to_numpy().reshape(2, 2)
        assert (jobs[0] == (policy.candidates[1] if "small" in label else policy.candidates[0])).all()
        assert part["free"].to_list() == pytest.approx([1 - 56 / 64] * 2 + [1 - 40 / 128] * 2)
        assert (part["end"] <= part["free"] + 1e-9).all()
    spec = schedules(policy, system, common=True).to_dict()
    domains = [panel["layer"][1]["encoding"]["x"]["scale"]["domain"] for panel in spec["vconcat"]]
    assert domains == [[0, 1], [0, pytest.approx(1 - 40 / 128)], [0, pytest.approx(1 - 40 / 128)]]


def test_a_single_schedule_is_drawn_as_always():
    """There is nothing beside it."""
    system = paper_example()
    panels = schedule_table(rota.MSR([[1, 4, 0]], [1.0], "none"), system, common=True).unique("schedule")
    assert panels["schedule"].to_list() == ["always: 1 type1, 4 type2"]


def test_without_a_common_part_nothing_is_always():
    """A rota of the corners is drawn as it is."""
    assert schedule_table(paper_rota(), paper_example(), common=True).equals(schedule_table(paper_rota(), paper_example()))
