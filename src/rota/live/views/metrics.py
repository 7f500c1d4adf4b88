"""The scheduler's numbers for Prometheus: its text format, version 0.0.4. Labels are types, resources, states and outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

from rota.live.counters import Counters, Histogram
from rota.live.messages import Status, TypeStatus

__all__ = ["exposition"]

Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]  # suffix of the family's name, labels, value


def exposition(status: Status, counters: Counters) -> str:
    """The page at /metrics."""
    types = [*status.types, *([status.own] if status.own is not None else [])]
    out: list[str] = []

    def family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> None:
        lines = [f"{name}{suffix}{_labels(labels)} {_number(value)}" for suffix, labels, value in samples]
        if lines:
            out.extend([f"# HELP {name} {_help(text)}", f"# TYPE {name} {kind}", *lines])

    def gauge(name: str, text: str, value: float | None) -> None:
        family(name, "gauge", text, [] if value is None else [("", {}, value)])

    def per_type(name: str, text: str, field: str) -> None:
        family(name, "gauge", text, [("", {"type": one.name}, x) for one in types if (x := getattr(one, field)) is not None])

    gauge("rota_up", "1 while the scheduler answers.", 1)
    family("rota_info", "gauge", "Version and policy.", [("", {"version": status.version, "policy": status.policy}, 1)])
    gauge("rota_uptime_seconds", "Time since the scheduler began.", status.uptime_s)
    family("rota_jobs", "gauge", "Jobs that wait and that run, by type.", _queues(types))
    family("rota_jobs_in_state", "gauge", "Jobs by state.", [("", {"state": state}, n) for state, n in status.counts.items()])
    for field, text in (("capacity", "What the server has"), ("used", "Held by jobs in service"), ("kept", "Held by suspended jobs")):
        samples = [("", {"resource": one.name}, float(getattr(one, field))) for one in status.resources]
        family(f"rota_resource_{field}", "gauge", f"{text}, by resource.", samples)
    per_type("rota_arrival_rate", "Jobs per second, as seen.", "arrival_rate")
    per_type("rota_planned_arrival_rate", "Jobs per second, as planned.", "planned_arrival_rate")
    per_type("rota_size_seconds", "Mean time in service, as seen.", "mean_size_s")
    per_type("rota_planned_size_seconds", "Mean time in service, as planned.", "planned_mean_size_s")
    per_type("rota_predicted_response_seconds", "Predicted mean response time.", "predicted_mean_response_s")
    gauge("rota_load_estimate", "System load as seen; at 1 and above the queue grows.", status.load)
    gauge("rota_load_estimate_error", "Standard error of the load as seen.", status.load_error)
    gauge("rota_load_planned", "System load of the plan.", status.planned_load)
    gauge("rota_plan_number", "Number of the plan in use.", status.plan)
    gauge("rota_plan_pinned", "1 if the plan is pinned.", status.pinned)
    gauge("rota_redesigning", "1 while a new plan is made.", status.redesigning)
    gauge("rota_warnings", "Number of warnings in the status.", len(status.warnings))
    family("rota_plan_swaps_total", "counter", "Changes of the plan.", [("", {}, counters.plan_swaps)])
    family("rota_starts_total", "counter", "Starts of jobs, restarts included.", [("", {}, counters.starts)])
    family("rota_preemptions_total", "counter", "Jobs suspended or requeued.", [("", {}, counters.preemptions)])
    ends = [("", {"type": type, "outcome": outcome}, n) for (type, outcome), n in sorted(counters.ended.items())]
    family("rota_ended_total", "counter", "Jobs that ended, by type and outcome.", ends)
    times = [sample for type, seen in sorted(counters.response.items()) for sample in _buckets(seen, {"type": type})]
    family("rota_response_seconds", "histogram", "Time from submission to end.", times)
    family("rota_decision_seconds", "histogram", "Time that a decision took.", _buckets(counters.decision, {}))
    return "\n".join(out) + "\n"


def _buckets(histogram: Histogram, labels: Labels) -> list[Sample]:
    """Cumulative buckets, sum and count."""
    upto = list(accumulate(histogram.counts))
    named = [*(_number(bound) for bound in histogram.bounds), "+Inf"]
    buckets: list[Sample] = [("_bucket", {**labels, "le": le}, n) for le, n in zip(named, upto, strict=True)]
    return [*buckets, ("_sum", labels, histogram.total), ("_count", labels, upto[-1])]


def _queues(types: Iterable[TypeStatus]) -> list[Sample]:
    return [
        ("", {"state": state, "type": one.name}, n) for one in types for state, n in (("waiting", one.waiting), ("running", one.running))
    ]


def _labels(labels: Labels) -> str:
    pairs = [f'{name}="{_escaped(value)}"' for name, value in labels.items()]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _number(value: Any) -> str:
    """A number as Prometheus reads it: `+Inf`, `NaN`, otherwise the shortest text that gives the same number."""
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
