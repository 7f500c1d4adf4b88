"""How far policies are from the best possible: the optimum of small systems, or a proved lower bound on every policy."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from rota.errors import NotConverged, RotaError
from rota.model import System
from rota.optimal import OptimalProgress, compile_search, optimal_policy
from rota.policy import Tabulated
from rota.threads import run_last

__all__ = ["Optimum", "find_optimum"]

_LEAST_PART = 0.45  # of the time limit, on a processor: so long a plan waits for the search when all else is done
_UNKNOWN = "How far this is from the best possible is not known"
_ACCURACY = 1e-2  # of the optimum, relative: finer than most simulations


@dataclass(frozen=True)
class Optimum:
    """The least mean response time of any policy. `proved`: no policy is below it; `mean`: that of the best one, None if not settled.

    Without either, `remark` says why. `table`: the best policy found, settled or not; None where it would not be allowed on the system.
    """

    lower_bound: float | None = None
    mean: float | None = None
    remark: str = ""
    table: Tabulated | None = None

    @property
    def reference(self) -> float | None:
        """What policies are compared with: the optimum if it is known, otherwise the bound."""
        return self.mean if self.mean is not None else self.lower_bound

    @property
    def settled(self) -> bool:
        """Whether the optimum itself is known."""
        return self.mean is not None

    def fields(self) -> dict[str, float | str | bool | None]:
        """What is known, under the names here, without the table."""
        return {"lower_bound": self.lower_bound, "mean": self.mean, "remark": self.remark, "settled": self.settled}

    def above(self, mean_response_time: float) -> float | None:
        """By how much, relative, a mean response time is above the reference."""
        return None if self.reference is None else mean_response_time / self.reference - 1


class OptimumSearch:
    """The search for the optimum in a thread of its own, beside other work. It ends with the `with` block at the latest.

    `to_the_end`: the result is waited for as long as the search may take, not only for a part of it.
    """

    def __init__(self, system: System, time_limit_s: float, *, to_the_end: bool = False) -> None:
        self._stopped, self._enough, self._pool = threading.Event(), threading.Event(), ThreadPoolExecutor(1)
        self._began, self._last = 0.0, False
        self._least_s = np.inf if to_the_end else _LEAST_PART * time_limit_s
        self._task = self._pool.submit(self._search, system, time_limit_s)

    def _search(self, system: System, time_limit_s: float) -> Optimum:
        if time_limit_s > 0:
            compile_search("full" if system.preemption == "setup" else system.preemption)  # takes time of its own
        self._began = time.thread_time()
        try:
            return find_optimum(system, time_limit_s, self._watch)
        except KeyboardInterrupt:
            return Optimum(remark=f"{_UNKNOWN}: there was not enough time.")

    def __enter__(self) -> OptimumSearch:
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped.set()
        self._pool.shutdown()

    def result(self) -> Optimum:
        """What was found; waits for it no longer than until it has had its least time on a processor."""
        self._enough.set()
        return self._task.result()

    def _watch(self, _: OptimalProgress) -> None:
        enough = time.thread_time() - self._began > self._least_s
        if enough and not self._last:  # the plan no longer waits for it: what it does wait for goes first
            self._last = True
            run_last()
        if self._stopped.is_set() or (enough and self._enough.is_set()):
            raise KeyboardInterrupt  # ends the search as Ctrl-C would, with what was found so far


def find_optimum(system: System, time_limit_s: float, progress: Callable[[OptimalProgress], None] | None = None) -> Optimum:
    """The optimum within so many seconds; 0 leaves it out.

    Where stopping a job takes a setup, no policy is better than the best one that may stop jobs for nothing: that is a bound.
    """
    if time_limit_s == 0:
        return Optimum()
    setups = system.preemption == "setup"
    try:
        found = optimal_policy(
            system, "full" if setups else system.preemption, accuracy=_ACCURACY, time_limit_s=time_limit_s, progress=progress
        )
    except NotConverged as error:  # on a busy machine: what is proved by then holds
        return Optimum(error.lower_bound) if error.lower_bound > 0 else Optimum(remark=f"{_UNKNOWN}: {_reason(error)}.")
    except RotaError as error:
        return Optimum(remark=f"{_UNKNOWN}: {_reason(error)}.")
    if setups:
        return Optimum(found.lower_bound)
    return Optimum(found.lower_bound, found.mean_response_time if found.settled else None, table=found.policy)


def _reason(error: RotaError) -> str:
    return str(error).partition(": ")[0]
