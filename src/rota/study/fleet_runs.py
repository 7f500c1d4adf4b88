"""Simulations of a fleet, several at a time; Ctrl-C ends all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from rota.model import Fleet
from rota.simulation import Result, SimulationProgress, in_threads, simulate
from rota.study.fleet_options import FleetOption

__all__ = ["in_parallel", "run_option"]


def run_option(
    fleet: Fleet, option: FleetOption, *, jobs: int, seed: int, watch: Callable[[SimulationProgress], None] | None = None
) -> Result:
    """A simulation that raises KeyboardInterrupt on Ctrl-C, instead of a partial result."""
    result = simulate(fleet, option.policy, dispatch=option.dispatch, jobs=jobs, seed=seed, progress=watch)
    if result.interrupted:
        raise KeyboardInterrupt
    return result


def in_parallel(run: Callable[..., Any], arguments: list[tuple[Any, ...]], tell: Callable[[float], None]) -> list[Any]:
    """What a function `run(watch, *arguments)` returns for each; Ctrl-C ends all of them. `tell`: about what part is done."""
    stopped, done, lock = threading.Event(), dict[int, float](), threading.Lock()

    def one(k: int, *rest: Any) -> Any:
        def watch(at: SimulationProgress) -> None:
            if stopped.is_set():
                raise KeyboardInterrupt  # only the main thread hears Ctrl-C
            with lock:
                done[k] = at.done / (at.jobs or max(at.done, 1))
                tell(sum(done.values()) / len(arguments))

        answer = run(watch, *rest)
        with lock:
            done[k] = 1.0
            tell(sum(done.values()) / len(arguments))
        return answer

    answers = in_threads(one, [(k, *rest) for k, rest in enumerate(arguments)], stopped)
    if stopped.is_set():
        raise KeyboardInterrupt
    return answers
