"""The page for Prometheus says what the status says, in its format."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.live.counters import RESPONSE_BOUNDS, Counters, Histogram
from rota.live.messages import ResourceUse, Status, TypeStatus
from rota.live.views.metrics import _buckets, exposition

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\n|\\")*)"(?:,|$)')


def parsed(page):
    """Families of a page in the text format, by its rules: help, then type, then samples, each family and each sample once."""
    assert page.endswith("\n")
    families, current = {}, None
    for line in page[:-1].split("\n"):
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in families, f"{name} twice"
            current, families[name] = name, {"type": None, "samples": {}}
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == current
            assert families[name]["type"] is None
            assert not families[name]["samples"]
            assert kind in ("counter", "gauge", "histogram")
            families[name]["type"] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            name, text, value = match.groups()
            suffixes = ("_bucket", "_sum", "_count") if families[current]["type"] == "histogram" else ("",)
            assert name in [current + suffix for suffix in suffixes]
            labels, at = {}, 0
            while text and at < len(text):
                label = LABEL.match(text, at)
                assert label, line
                labels[label[1]] = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], label[2])
                at = label.end()
            key = (name, tuple(sorted(labels.items())))
            assert key not in families[current]["samples"], f"{key} twice"
            families[current]["samples"][key] = float(value)
    return families


def type_status(name, **changes):
    """A type with numbers of no meaning."""
    fields = {"name": name, "waiting": 2, "running": 1, "ended": 7, "planned_arrival_rate": 0.5, "planned_mean_size_s": 3.0}
    return TypeStatus(**{**fields, **changes})


def status(**changes):
    """A status with two types."""
    fields = {
        "version": "0.1.0",
        "policy": "nMSR",
        "plan": 3,
        "pinned": False,
        "preemption": "none",
        "uptime_s": 12.5,
        "now": 1.76e9,
        "resources": [ResourceUse(name="cores", capacity=20, used=7), ResourceUse(name="memory_gb", capacity=15, used=7.5, kept=1)],
        "types": [type_status("train", predicted_mean_response_s=9.25), type_status("serve")],
        "counts": {"waiting": 4, "running": 2, "done": 14},
        "phase": "",
        "planned_load": 0.8,
    }
    return Status(**{**fields, **changes})


def sample(families, family, suffix="", **labels):
    """The value of one sample."""
    return families[family]["samples"][family + suffix, tuple(sorted(labels.items()))]


def test_the_page_says_what_the_status_says():
    """Gauges of jobs, resources, load and plan."""
    families = parsed(exposition(status(load=1.07, own=type_status("own", waiting=5)), Counters()))
    assert sample(families, "rota_up") == 1
    assert sample(families, "rota_jobs", state="waiting", type="train") == 2
    assert sample(families, "rota_jobs", state="waiting", type="own") == 5
    assert sample(families, "rota_jobs_in_state", state="done") == 14
    assert sample(families, "rota_resource_capacity", resource="cores") == 20
    assert sample(families, "rota_resource_used", resource="memory_gb") == 7.5
    assert sample(families, "rota_resource_kept", resource="memory_gb") == 1
    assert sample(families, "rota_load_estimate") == 1.07
    assert sample(families, "rota_load_planned") == 0.8
    assert sample(families, "rota_plan_number") == 3
    assert sample(families, "rota_predicted_response_seconds", type="train") == 9.25


def test_what_is_not_known_is_not_there():
    """No estimate yet, no sample; a family without samples is left away."""
    families = parsed(exposition(status(), Counters()))
    assert "rota_load_estimate" not in families
    assert "rota_ended_total" not in families
    assert len(families["rota_predicted_response_seconds"]["samples"]) == 1


def test_counters_and_histograms():
    """Ends by type and outcome; buckets are cumulative and end at the count."""
    counters = Counters()
    counters.starts, counters.plan_swaps = 5, 2
    for response in (0.05, 0.1, 2.0, 1e9):
        counters.job_ended("train", "done", response)
    counters.job_ended("train", "failed", 4.0)
    counters.decided(3e-6)
    families = parsed(exposition(status(), counters))
    assert sample(families, "rota_starts_total") == 5
    assert sample(families, "rota_plan_swaps_total") == 2
    assert sample(families, "rota_ended_total", type="train", outcome="done") == 4
    assert sample(families, "rota_response_seconds", "_bucket", type="train", le="0.1") == 2
    assert sample(families, "rota_response_seconds", "_bucket", type="train", le="3") == 3
    assert sample(families, "rota_response_seconds", "_bucket", type="train", le="+Inf") == 5
    assert sample(families, "rota_response_seconds", "_count", type="train") == 5
    assert sample(families, "rota_response_seconds", "_sum", type="train") == pytest.approx(1e9 + 6.15)
    assert sample(families, "rota_decision_seconds", "_count") == 1


@given(st.lists(st.floats(0, 1e8), max_size=50))
def test_buckets_count_what_is_not_above_them(values):
    """The law of a histogram: each bucket holds the number of values at most its bound."""
    histogram = Histogram(RESPONSE_BOUNDS)
    for value in values:
        histogram.observe(value)
    buckets = [n for suffix, _, n in _buckets(histogram, {}) if suffix == "_bucket"]
    assert buckets == [sum(value <= bound for value in values) for bound in (*RESPONSE_BOUNDS, math.inf)]


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_any_name_survives(name):
    """Quotes, backslashes, new lines, braces, commas in the name of a type come back as they were."""
    families = parsed(exposition(status(types=[type_status(name)]), Counters()))
    assert sample(families, "rota_jobs", state="running", type=name) == 1
