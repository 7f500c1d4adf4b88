"""The scheduler's numbers for Prometheus: its text format, version 0.0.4.

`Counters` hold what only grows (starts, ends, preemptions, swaps of the plan) and the histograms; `exposition` writes them with the gauges
of a `Status`. Memory is bounded: a histogram has fixed buckets, and labels are types, resources, states and outcomes.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from rota.live.messages import Status, TypeStatus

__all__ = ["CONTENT_TYPE", "DECISION_BOUNDS", "RESPONSE_BOUNDS", "Counters", "Histogram", "exposition"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
RESPONSE_BOUNDS = tuple(float(f"{digit}e{power}") for power in range(-1, 7) for digit in (1, 3))  # 0.1 s … 3e6 s
DECISION_BOUNDS = tuple(float(f"{digit}e{power}") for power in range(-6, 0) for digit in (1, 2, 5))  # 1 µs … 0.5 s

Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]  # what follows the name of the family, labels, value


class Histogram:
    """Counts per bucket; a value lies in the first bucket whose bound is not below it."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)  # the last one is for what lies above all bounds
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Counts a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def samples(self, labels: Labels) -> list[Sample]:
        """Cumulative buckets, sum and count."""
        upto = list(accumulate(self.counts))
        named = [*(_number(bound) for bound in self.bounds), "+Inf"]
        buckets: list[Sample] = [("_bucket", {**labels, "le": le}, n) for le, n in zip(named, upto, strict=True)]
        return [*buckets, ("_sum", labels, self.total), ("_count", labels, upto[-1])]


class Counters:
    """What is counted since the daemon began; Prometheus expects that such counts begin anew with a process."""

    def __init__(self) -> None:
        self.starts = 0
        self.preemptions = 0
        self.plan_swaps = 0
        self.ended: dict[tuple[str, str], int] = {}  # by type and outcome
        self.response: dict[str, Histogram] = {}
        self.decision = Histogram(DECISION_BOUNDS)

    def job_ended(self, type: str, outcome: str, response_s: float) -> None:
        """A job ended as done, failed or cancelled."""
        self.ended[type, outcome] = self.ended.get((type, outcome), 0) + 1
        if type not in self.response:
            self.response[type] = Histogram(RESPONSE_BOUNDS)
        self.response[type].observe(response_s)

    def decided(self, time_s: float) -> None:
        """A decision took so long."""
        self.decision.observe(time_s)


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
    times = [sample for type, seen in sorted(counters.response.items()) for sample in seen.samples({"type": type})]
    family("rota_response_seconds", "histogram", "Time from submission to end.", times)
    family("rota_decision_seconds", "histogram", "Time that a decision took.", counters.decision.samples({}))
    return "\n".join(out) + "\n"


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
    """A number as Prometheus reads it: `+Inf`, `NaN`, and otherwise the shortest that gives it back."""
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
