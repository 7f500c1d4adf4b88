"""One policy per record of the registry, on a system that suits all of them; and what the table of policies in the docs says."""

from __future__ import annotations

from functools import cache

import rota
from rota.policy import POLICY_NAMES, Policy, Record, records

SYSTEM = rota.System([8], [[1], [4]], [10.0, 2.0], [10.0, 10.0], names=("small", "big"), resources=("slots",))


@cache
def policy_for(record: Record) -> Policy:
    """The policy of this name; a rota of the best schedules, or the best table, where it has to be made for the system."""
    if record.policy is rota.Tabulated:
        return rota.optimal_policy(SYSTEM, **record.where, truncation=14).policy
    if record.policy is rota.Adaptive:
        return rota.Adaptive(rota.system_load(SYSTEM).candidates, full=0.5, waive=1.0, names=SYSTEM.names)
    if record.designed:
        best = rota.system_load(SYSTEM)
        setup = 20.0 if record.preemption == "setup" else None
        improved = record.policy is rota.Improved
        where = dict(record.where) | ({"backfill": False} if improved else {})
        base = rota.MSR(best.candidates, best.weights, switching_rate=2.0, setup_rate=setup, names=SYSTEM.names, **where)
        return rota.Improved(base, record.where["backfill"]) if improved else base
    # Its clocks ring every hundred units of time by default, and tests do not wait that long.
    return rota.RandomizedTimers(rate=20.0) if record.policy is rota.RandomizedTimers else POLICY_NAMES[record.name]


def policy_table() -> str:
    """The table of the policies, in Markdown."""
    words = {"none": "no", "full": "yes", "setup": "with setups"}
    rows = ["| name | preempts | looks at queues | needs sizes | stable whenever any policy is |", "| --- | --- | --- | --- | --- |"]
    for record in sorted(records(), key=lambda record: record.designed):
        stable = ", ".join(["yes", record.stability_note][: 1 + bool(record.stability_note)])
        stable = stable if record.throughput_optimal else record.stability_note or "no"
        rows.append(f"| `{record.name}` | {words[record.preemption]} | {record.looks_at} | {record.needs_sizes} | {stable} |")
    return "\n".join(rows) + "\n"
