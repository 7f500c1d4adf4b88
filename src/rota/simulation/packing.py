"""Runs in other processes: for policies in plain Python, which hold the interpreter, and for those who ask for processes."""

from __future__ import annotations

import importlib
import os
import pickle
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from rota.errors import BadSpec, Problem
from rota.model import System, Workload
from rota.policy import Custom, Policy
from rota.simulation.measured import Measured
from rota.simulation.playing import Playing
from rota.simulation.start import Start

__all__ = ["in_processes", "is_plain", "packed"]


def is_plain(policy: Policy) -> bool:
    """Whether a policy is to run in plain Python, so that threads would wait for each other."""
    return isinstance(policy, Custom) and policy.compiled is False


def packed(task: Any) -> bytes:
    """A task as bytes for another process; cloudpickle includes functions and classes of a notebook or a script."""
    try:
        packer = importlib.import_module("cloudpickle")
    except ImportError:
        packer = pickle
    try:
        return packer.dumps(task)  # type: ignore[no-any-return]
    except Exception as error:  # anything that an object of the user raises
        hint = "pip install cloudpickle, " if packer is pickle else ""
        rule = f"the policy or the workload cannot go to another process ({error}): {hint}put it into a module of its own, or use workers=1"
        raise BadSpec([Problem("workers", rule)]) from error


def in_processes(
    system: System,
    policy: Policy,
    workload: Workload | None,
    seeds: Sequence[int],
    jobs: int,
    warmup: float | None,
    start: Start | None,
    workers: int | None,
) -> list[Measured]:
    """What runs with these seeds measure, each of so many jobs."""
    tasks = [(system, policy, workload, seed, jobs, warmup, start) for seed in seeds]
    if workers == 1:
        return [_measured(*task) for task in tasks]
    with ProcessPoolExecutor(min(workers or os.cpu_count() or 1, len(seeds)), mp_context=get_context("spawn")) as pool:
        return list(pool.map(_unpacked, [packed(task) for task in tasks]))


def _unpacked(task: bytes) -> Measured:
    return _measured(*pickle.loads(task))


def _measured(
    system: System, policy: Policy, workload: Workload | None, seed: int, jobs: int, warmup: float | None, start: Start | None
) -> Measured:
    run = Playing(system, policy, workload, seed, jobs, start=start)
    run.play(jobs)
    run.finish(patient=True)
    run.measuring.give_up()
    return run.measured(warmup)
