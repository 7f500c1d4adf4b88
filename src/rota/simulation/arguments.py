"""The arguments of `simulate`, `compare` and `replicate`, checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from rota.arguments import is_real, whole
from rota.errors import BadSpec, Infeasible, Problem
from rota.model import Chunk, System, Workload
from rota.model.system import check_system
from rota.simulation.streams import SystemArrivals
from rota.simulation.workload import PoissonArrivals

__all__ = ["LEAST_JOBS", "checked_chunks", "checked_run"]

LEAST_JOBS = 100


def checked_run(
    system: object,
    jobs: object,
    seed: object,
    until: object = None,
    warmup: object = None,
    log_jobs: object = 0,
    until_types: object = None,
) -> tuple[int | None, int, int]:
    """The number of jobs, the seed and the number of jobs to log; raises `BadSpec` with every problem."""
    problems: list[Problem] = []
    found: list[int | None] = []
    with _kept(problems):
        check_system(system)
    for place, value, least in (("jobs", jobs, LEAST_JOBS), ("seed", seed, 0), ("log_jobs", log_jobs, 0)):
        with _kept(problems):
            found.append(None if value is None and place == "jobs" else whole(place, value, least))
    for place, value in (("until", until), ("until_types", until_types)):
        if value is not None and not (is_real(value) and 0 < value < 1):  # type: ignore[operator]
            problems.append(Problem(place, "must be between 0 and 1", value))
    if warmup is not None and not (is_real(warmup) and 0 <= warmup < 1):  # type: ignore[operator]
        problems.append(Problem("warmup", "must be at least 0 and below 1", warmup))
    if problems:
        raise BadSpec(problems)
    number, start, logged = found
    assert start is not None
    assert logged is not None
    return number, start, logged


@contextmanager
def _kept(problems: list[Problem]) -> Iterator[None]:
    try:
        yield
    except BadSpec as error:
        problems += error.problems


def checked_chunks(workload: Workload, system: System, seed: np.random.SeedSequence) -> Iterator[Chunk]:
    """The chunks of a workload, each checked before it goes to the compiled engine."""
    if isinstance(workload, PoissonArrivals | SystemArrivals):
        yield from workload.chunks(system, seed)
        return
    last, K, any_jobs = 0.0, len(system.names), False
    for given in workload.chunks(system, seed):
        chunk = _as_chunk(given)
        if not len(chunk.times):
            continue
        any_jobs = True
        bad = [
            (not np.isfinite(chunk.times).all() or chunk.times[0] < last or (np.diff(chunk.times) < 0).any(), "times", "in order, from 0"),
            (not 0 <= chunk.kinds.min() <= chunk.kinds.max() < K, "kinds", f"positions of types, 0…{K - 1}"),
            (not (np.isfinite(chunk.sizes).all() and chunk.sizes.min() >= 0), "sizes", "finite and not negative"),
            (not (np.isfinite(chunk.estimates).all() and chunk.estimates.min() >= 0), "estimates", "finite and not negative"),
        ]
        problems = [
            Problem(f"workload.{name}", f"must be {rule}; in the chunk from time {chunk.times[0]:g}") for wrong, name, rule in bad if wrong
        ]
        if problems:
            raise BadSpec(problems)
        last = float(chunk.times[-1])
        yield chunk
    if not any_jobs:
        raise Infeasible("the workload has no jobs: there is nothing to simulate")


def _as_chunk(given: Any) -> Chunk:
    try:
        times, kinds, sizes, estimates = (np.asarray(column) for column in given)
        chunk = Chunk(times.astype(float), kinds.astype(np.int64), sizes.astype(float), estimates.astype(float))
    except (TypeError, ValueError):
        raise BadSpec([Problem("workload", "must give chunks (times, kinds, sizes, estimates): see rota.model.Chunk", given)]) from None
    if kinds.size and not np.issubdtype(kinds.dtype, np.integer):
        raise BadSpec([Problem("workload.kinds", "must be whole numbers: positions of types", str(kinds.dtype))])
    if any(column.shape != (len(chunk.times),) for column in chunk):
        raise BadSpec([Problem("workload", "the four arrays of a chunk need one length", [column.shape for column in chunk])])
    return chunk
