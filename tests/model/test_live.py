"""The `[live]` table: defaults, units, what a stop releases, and its problems."""

from __future__ import annotations

import pytest

import rota
from rota.model.live import LiveSettings, live_settings

RESOURCES = ("cores", "memory_gb", "gpus", "network_gbps", "cpu", "scratch")


def test_defaults():
    """Without the table: seconds, no preemption, ten seconds of grace, learning."""
    for raw in (None, {}):
        settings = live_settings(raw, RESOURCES)
        assert settings == LiveSettings()
        assert (settings.unit_s, settings.preemption, settings.grace_s, settings.learn) == (1.0, "none", 10.0, True)


@pytest.mark.parametrize(("unit", "seconds"), [("s", 1), ("min", 60), ("h", 3600), ("d", 86400)])
def test_units_of_time(unit, seconds):
    """How long a unit of the file is."""
    assert live_settings({"time_unit": unit}, RESOURCES).unit_s == seconds


def test_what_a_stop_releases():
    """Cores and network by default, nothing else; a word of the file goes before."""
    settings = live_settings({}, RESOURCES)
    assert [settings.releases(name) for name in RESOURCES] == [True, False, False, True, True, False]
    settings = live_settings({"releasable": {"scratch": True, "cores": False}}, RESOURCES)
    assert [settings.releases(name) for name in RESOURCES] == [False, False, False, True, True, True]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"time_unit": "week"}, "live.time_unit"),
        ({"preemption": "full"}, "live.preemption"),
        ({"grace_s": -1}, "live.grace_s"),
        ({"window": 0}, "live.window"),
        ({"keep_days": 0}, "live.keep_days"),
        ({"memory_limit": "swap"}, "live.memory_limit"),
        ({"learns": True}, "live.learns"),
        ({"releasable": {"gold": True}}, r"live.releasable.gold: the server has no such resource \(it has: cores"),
        ([1], "live"),
    ],
)
def test_problems(raw, text):
    """Each with its place."""
    with pytest.raises(rota.BadSpec, match=text) as told:
        live_settings(raw, RESOURCES, "server.toml")
    assert "server.toml" in str(told.value)


def test_other_verbs_do_not_mind(tmp_path):
    """A spec with the table is read as before; what is wrong in it is told by those who run it."""
    file = tmp_path / "server.toml"
    file.write_text(
        "[server]\nslots = 1\n[live]\npreemption = 'suspend'\n[jobs.a]\ndemand = { slots = 1 }\narrival_rate = 0.5\nmean_size = 1\n"
    )
    assert rota.read_system(file).names == ("a",)
