"""Compiling ahead. What Rota runs most is compiled when it is first used on a machine, and kept on disk (`rota.kernel_cache`).

A part is something small that uses one group of compiled functions: the simulator of a policy, the design of rotas, the search for the
optimum. `warm_up` uses every part once, in several processes; a plan has another process do so for the simulators that it needs, while it
designs the rotas. Processes that need the same function wait for the one that compiles it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

from rota.analysis import analyze
from rota.arguments import whole
from rota.capacity import system_load
from rota.decide import rule_of, suits
from rota.design import design_pinned, design_policy
from rota.errors import Infeasible
from rota.kernel_cache import folder_of, is_kept
from rota.model import Fleet, System
from rota.model.dispatch import DISPATCH_RULES
from rota.optimal import compile_search
from rota.policy import MSR, POLICY_NAMES, Adaptive, Improved, Policy, policy_name
from rota.simulation import simulate
from rota.simulation.compiled import runner_of, shared_engine, will_compile
from rota.simulation.fleet.compiled import fleet_engine

__all__ = ["FLEETS", "WarmUpProgress", "compiling_ahead", "kept_in", "parts", "use", "warm_up"]

_SYSTEM = System([4, 8], [[1, 2], [2, 1], [4, 4]], [0.3, 0.2, 0.1], [1.0, 1.0, 1.0])
_ROOMY = System([16], [[1], [2], [4]], [2.0, 1.0, 1.0], [1.0, 1.0, 1.0])  # some policies want powers of two, or a place for every type
_SCHEDULES = [[2, 1, 0], [0, 0, 1]]
_JOBS = 200


def _rota(preemption: str, backfill: bool | str = False) -> MSR:
    gamma = 10.0 if preemption == "setup" else None
    return MSR(_SCHEDULES, [0.6, 0.4], preemption, 0.5, setup_rate=gamma, backfill=backfill)  # type: ignore[arg-type]


def _samples() -> dict[str, Policy]:
    """A policy for every decision function, by its name."""
    rotas = [_rota(model, backfill) for model in ("full", "none", "setup") for backfill in (False, True)]
    improved = [
        Improved(_rota(rota.preemption), bool(rota.backfill)) for rota in rotas if not (rota.preemption == "full" and rota.backfill)
    ]
    made = {policy_name(policy): policy for policy in (*rotas, _rota("none", "hold"), *improved, Adaptive(_SCHEDULES))}
    return {**POLICY_NAMES, **made}


def _simulator(name: str) -> None:
    policy = _samples()[name]
    simulate(_SYSTEM if suits(_SYSTEM, policy) else _ROOMY, policy, jobs=_JOBS)


def _design() -> None:
    for model in ("none", "full", "setup"):
        system = _SYSTEM.with_preemption(model, 0.1 if model == "setup" else None)
        load = system_load(system)
        for objective in ("load", "close"):
            analyze(system, design_policy(system, model, load=load, objective=objective, time_limit_s=0.5))


def _optimum() -> None:
    compile_search("none")
    compile_search("full")


def _fleets() -> None:
    fleet = Fleet.equal(_SYSTEM, 2)
    for rule in sorted(DISPATCH_RULES, key=lambda rule: rule in ("random", "pinned")):  # these two last: they need the load of the fleet
        simulate(fleet, design_pinned(fleet) if rule == "pinned" else POLICY_NAMES["first-fit"], dispatch=rule, jobs=_JOBS)


_DESIGN, _OPTIMUM, FLEETS = "the design of rotas", "the search for the optimum", "the simulator of fleets"


def parts() -> dict[str, Callable[[], None]]:
    """Everything that is compiled ahead: the name of a policy is its simulator."""
    return {_DESIGN: _design, _OPTIMUM: _optimum, FLEETS: _fleets, **{name: partial(_simulator, name) for name in _samples()}}


@dataclass(frozen=True)
class WarmUpProgress:
    """A part that is ready, how many are, of how many, and the time taken so far."""

    part: str
    done: int
    total: int
    time_s: float


def warm_up(*, processes: int | None = None, progress: Callable[[WarmUpProgress], None] | None = None) -> None:
    """Compiles ahead what plans, simulations, designs and the live scheduler run, in so many processes (one per core if not given)."""
    count = max(os.cpu_count() or 1, 1) if processes is None else whole("processes", processes, 1)
    kept_in()
    began, names = time.perf_counter(), list(parts())
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        tasks = {pool.submit(use, name): name for name in names}
        for done, task in enumerate(as_completed(tasks), start=1):
            task.result()
            if progress is not None:
                progress(WarmUpProgress(tasks[task], done, len(names), time.perf_counter() - began))


def kept_in() -> str:
    """The folder of the simulator's machine code, with those of the other parts beside it; raises if it is kept nowhere."""
    folder = folder_of(shared_engine())
    if folder is None:
        raise Infeasible("no folder for machine code can be written: name one by NUMBA_CACHE_DIR, or let Rota's own files be written")
    return folder


def use(name: str) -> None:
    """Uses a part once, which compiles it if it is not on disk."""
    parts()[name]()


@contextmanager
def compiling_ahead(names: Iterable[str]) -> Iterator[None]:
    """Within, another process compiles what is missing of the simulators of these policies, or of that of `FLEETS`.

    None does where there is one core only, or where nothing is kept on disk.
    """
    samples = _samples()
    missing = [name for name in names if _is_missing(name, samples)]
    if not missing or (os.cpu_count() or 1) == 1 or folder_of(shared_engine()) is None:
        yield
        return
    with ExitStack() as stack:
        with suppress(OSError):  # no more processes, or Python is part of another program: compile in this process
            quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            process = stack.enter_context(subprocess.Popen([sys.executable, "-m", __name__, *missing], **quiet))  # type: ignore[call-overload]
            stack.callback(process.terminate)
        yield


def _is_missing(name: str, samples: Mapping[str, Policy]) -> bool:
    """Whether a simulator waits for the compiler, that of a policy or of fleets."""
    if name == FLEETS:
        engine: Any = fleet_engine
        return not engine.signatures and not is_kept(engine)
    return name in samples and will_compile(runner_of(rule_of(samples[name]).decide))


if __name__ == "__main__":
    for part in sys.argv[1:]:
        use(part)
