"""Figure "Two views of the multiresource job system": a central queue is simulated, the decoupled queues are solved, and the two compared.

The paper draws the idea. Here it is a check: under an MSR policy each type sees the modulating process and its own jobs only, so its
queue in the simulated system has the distribution of its own small chain.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from rota.analysis import Analysis, analyze
from rota.simulation import Result, simulate
from rota.study.reproduce.example import ALPHA, LOAD, example_policy, example_system
from rota.study.reproduce.figure import Figure, Finding, Redrawn, Settings, n

__all__ = ["FIGURE"]

_LOGGED = 1_000_000  # jobs, of which the law of the simulated queue is counted
_LONGEST = 40  # queue drawn


def _compute(settings: Settings) -> Redrawn:
    system, policy = example_system(), example_policy("full", ALPHA)
    answer = analyze(system, policy)
    jobs = settings.effort.jobs
    result = simulate(system, policy, jobs=jobs, seed=settings.seed, log_jobs=min(jobs, _LOGGED))
    if result.interrupted:
        raise KeyboardInterrupt
    means = pl.DataFrame(
        {
            "type": list(system.names),
            "decoupled": answer.exact,
            "central": result.mean_queue_length,
            "interval": result.mean_queue_length_interval,
        }
    )
    close = np.abs(result.mean_queue_length - answer.exact) <= 2 * result.mean_queue_length_interval
    words = "; ".join(
        f"{row['type']} {n(row['decoupled'], 6)} and {n(row['central'])} ± {n(row['interval'], 2)}" for row in means.to_dicts()
    )
    findings = (
        Finding(
            "Under an MSR policy jobs of each type can be analyzed separately.",
            f"E[Q_i] decoupled (exact) and in the central queue (simulated, {settings.effort.jobs:,} jobs): {words}.",
            bool(close.all()),
            "" if close.all() else "The simulation is too short.",
        ),
    )
    remark = f"pMSR with α = {ALPHA:g} at load {LOAD:g}. The paper's figure is a sketch without data; this checks what it says."
    return Redrawn({"means": means, "laws": _laws(answer, result)}, findings, (remark,), ("means",))


def _laws(answer: Analysis, result: Result) -> pl.DataFrame:
    """P(Q_i = q): of each decoupled chain, and as the part of the time in the log of the simulation, which has its first `jobs`."""
    assert result.log is not None
    log = result.log.filter(pl.col("event").is_in(["arrive", "finish"]))
    logged = log["job"].n_unique()
    parts = []
    for i, name in enumerate(answer.system.names):
        events = log.filter(pl.col("type") == name)
        present = np.cumsum(np.where(events["event"].to_numpy() == "arrive", 1, -1))
        law = np.bincount(present[:-1], weights=np.diff(events["time"].to_numpy()))
        exact = ("exact", answer.queue_length_distribution(i, _LONGEST + 1), None)
        for source, values, jobs in (exact, ("simulated", law / law.sum(), logged)):
            values = values[: _LONGEST + 1]
            columns = {"queue_length": np.arange(len(values)), "probability": values}
            parts.append(pl.DataFrame(columns).with_columns(type=pl.lit(name), source=pl.lit(source), jobs=pl.lit(jobs, pl.Int64)))
    return pl.concat(parts)


FIGURE = Figure(
    "queues", "One central queue, or one per type", 'Figure "Two views of the multiresource job system", Section "Decoupling"', _compute
)
