"""Makes a new plan in a separate process beside the running scheduler: `python -m rota.live.planning.replan`.

It reads one JSON object from standard input and writes one to standard output:

    { "system": its tables, "policy": the policy in use, as in its file, "design": true, "time_limit_s": 60, "jobs": 200000, "seed": 0 }
    { "policy": …, "load": 0.83, "kept": false, "predicted": { "train": { "mean": 2.1, "p50": …, "p95": …, "p99": … } }, "remark": "",
      "time_s": 3.2 }

or { "error": text }. A rota is designed anew with the preemption model, backfilling and slots of the one in use, and replaces it only
if it is better in a simulation of the same jobs; so is an improved rota, at loads below 1. Other policies stay, and only their
predictions are new. Times are in the system's unit.

Predictions come from a simulation; the mean of a rota comes from the exact analysis, if there is one. At a load of 1 and above there is
nothing to predict: the rota is designed for the same mix at load 0.95, and `load` is still the true load.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import math
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from rota.errors import RotaError

if TYPE_CHECKING:
    from rota.capacity import Load
    from rota.model import System
    from rota.policy import MSR, Policy

_P = TypeVar("_P", bound="Policy")

__all__ = ["Predicted", "ReplanFailed", "Replanned", "learned_system", "predict", "replan"]

JOBS = 200_000
_NICE = 10
_FULL = 0.95  # the load to design for if the true load is higher
_GAIN = 0.01  # the gain in mean response time for which a new rota replaces the old one
_LOAD_S = 20.0
_DIFFERENT = 0.1  # relative difference of a simulated mean from the exact one that is worth a remark


class ReplanFailed(RotaError):
    """There is no new plan; the one in use stays."""


@dataclass(frozen=True)
class Predicted:
    """The response time of a type, in the system's unit of time; None if too few jobs arrived, or the queue grows."""

    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True)
class Replanned:
    """The result: the policy as JSON, the system load, whether the policy in use stays, and the predictions by type."""

    policy: str
    load: float
    kept: bool
    predicted: dict[str, Predicted]
    remark: str
    time_s: float


# ------------------------------------------------------------------------------------------------------- for the daemon


async def replan(
    system: System, policy: Policy, *, design: bool = True, time_limit_s: float = 120.0, jobs: int = JOBS, seed: int = 0
) -> Replanned:
    """Plans for a system in a process of low priority; with `design=False` only predicts the policy.

    The process ends when this is cancelled or the caller ends. Raises `ReplanFailed`, also when the time limit is reached.
    """
    from rota.model import system_to_dict
    from rota.policy import policy_to_dict

    request = {
        "system": system_to_dict(system),
        "policy": policy_to_dict(policy),
        "design": design,
        "time_limit_s": time_limit_s,
        "jobs": jobs,
        "seed": seed,
    }
    process = await asyncio.create_subprocess_exec(
        # -P and another folder: no module may be imported from where the scheduler was started.
        *(sys.executable, "-P", "-m", "rota.live.planning.replan", "--parent", str(os.getpid())),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_environment(),
        cwd="/",
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(time_limit_s):
            out, err = await process.communicate(json.dumps(request).encode())
    except TimeoutError:
        raise ReplanFailed(f"no new plan within {time_limit_s:g} s: the plan in use stays") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()  # also closes the pipes
    return _answer(out, err, process.returncode or 0)


def _environment() -> dict[str, str]:
    """The environment: one thread, as the cores are for the jobs; and absolute paths (an empty one means the current folder)."""
    env = {**os.environ, **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")}
    if (paths := env.pop("PYTHONPATH", None)) is not None:
        env["PYTHONPATH"] = os.pathsep.join(os.path.abspath(path) for path in paths.split(os.pathsep) if path)
    return env


def _answer(out: bytes, err: bytes, code: int) -> Replanned:
    try:
        answer = json.loads(out)
    except ValueError:
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        last = err.decode(errors="replace").strip().splitlines()[-1:]
        raise ReplanFailed(f"the planning process {how} without an answer{': ' + last[0] if last else ''}") from None
    if "error" in answer:
        raise ReplanFailed(answer["error"])
    predicted = {name: Predicted(**values) for name, values in answer["predicted"].items()}
    policy = json.dumps(answer["policy"], indent=2, ensure_ascii=False) + "\n"
    return Replanned(policy, answer["load"], answer["kept"], predicted, answer["remark"], answer["time_s"])


def learned_system(system: System, arrival_rate: Sequence[float], mean_size_s: Sequence[float], time_unit_s: float = 1.0) -> System:
    """The same server with other rates (per second) and mean sizes (in seconds); sizes keep the shape of their distributions."""
    sizes = [
        size.scaled(mean_s / time_unit_s / (1.0 / float(rate)))
        for size, mean_s, rate in zip(system.sizes, mean_size_s, system.service_rate, strict=True)
    ]
    return system.replace(arrival_rate=[rate * time_unit_s for rate in arrival_rate], sizes=sizes)


# ------------------------------------------------------------------------------------------------------- the work


def predict(system: System, policy: Policy, jobs: int = JOBS, seed: int = 0) -> tuple[dict[str, Predicted], str]:
    """Response times by type, and a remark if there is one."""
    from rota.simulation import simulate

    result = simulate(system, policy, jobs=jobs, seed=seed)
    if not result.stable:
        return {}, f"under {result.name} the queue grows, by {result.growth:.3g} jobs per unit of time"
    means, remark = result.response_time, ""
    exact = _exact(system, policy)
    if exact is not None:
        with_exact = [abs(float(a) / float(b) - 1) for a, b in zip(means, exact, strict=True) if b > 0 and a > 0]
        if with_exact and max(with_exact) > _DIFFERENT:
            remark = f"the simulated means are up to {max(with_exact):.0%} off the exact ones: the quantiles are rough"
        means = exact
    tails = [result.type_response_time_quantiles[p] for p in (0.5, 0.95, 0.99)]
    several = len(tails[0]) == len(system.names)  # with very many types there is only one histogram for all
    return {
        name: Predicted(_finite(means[i]), *(_finite(tail[i]) if several else None for tail in tails))
        for i, name in enumerate(system.names)
    }, remark


def _exact(system: System, policy: Policy) -> Any:
    """Exact means if they can be computed quickly; None otherwise."""
    from rota.analysis import analyze
    from rota.errors import Infeasible, NotConverged
    from rota.policy import MSR

    if not isinstance(policy, MSR):
        return None
    try:
        answer = analyze(system, policy)
        return answer.response_time if answer.has_exact else None
    except (Infeasible, NotConverged):  # backfilling, sizes of another distribution; too close to load 1
        return None


def _plan(request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request."""
    from rota.capacity import system_load
    from rota.model import system_from_dict
    from rota.policy import DESIGNED_NAMES, MSR, design_named, policy_from_dict, policy_name, policy_to_dict

    began = time.perf_counter()
    system = system_from_dict(request["system"])
    policy = policy_from_dict(request["policy"])
    jobs, seed = int(request.get("jobs", JOBS)), int(request.get("seed", 0))
    best = system_load(system, time_limit_s=_LOAD_S)
    load = best.load
    if load == 0:
        raise ReplanFailed("no jobs arrive: there is nothing to plan")
    feasible = best if load < 1 else best.scaled(_FULL / load)
    kept, remark = True, ""
    if request.get("design", True):
        time_limit_s = float(request.get("time_limit_s", 60.0))
        if isinstance(policy, MSR):
            policy, kept = _designed(feasible, policy, time_limit_s, jobs, seed)
        elif policy_name(policy) in DESIGNED_NAMES:
            if load >= 1:
                raise ReplanFailed(f"the load is {load:.4g}, and {policy_name(policy)} is for loads below 1 only: the plan stays as it is")
            new = design_named(policy_name(policy), system, load=best, time_limit_s=time_limit_s / 3)
            policy, kept = _better(system, policy, new, jobs, seed)
    predicted: dict[str, Predicted] = {}
    if load < 1:
        predicted, remark = predict(system, policy, jobs, seed)
    else:
        remark = f"the load is {load:.4g}: no policy can serve that, arrivals must fall by {1 - 1 / load:.0%} at least"
    return {
        "policy": policy_to_dict(policy),
        "load": load,
        "kept": kept,
        "predicted": {name: vars(values) for name, values in predicted.items()},
        "remark": remark,
        "time_s": time.perf_counter() - began,
    }


def _designed(load: Load, old: MSR, time_limit_s: float, jobs: int, seed: int) -> tuple[MSR, bool]:
    """A new rota of the same kind, or the old one if that is as good; and whether the old one is kept.

    How slots drain and open is chosen anew with the candidates: routes of the old ones say nothing about the new ones.
    """
    from rota.design import design_policy

    system = load.system
    new = design_policy(
        system,
        old.preemption,
        load=load,
        setup_rate=old.setup_rate,
        objective="close",
        time_limit_s=time_limit_s / 3,
    ).replace(backfill=old.backfill, empty_slots=old.empty_slots)
    if old.names != system.names:
        return new, False
    return _better(system, old, new, jobs, seed)


def _better(system: System, old: _P, new: _P, jobs: int, seed: int) -> tuple[_P, bool]:
    """The new policy if it is clearly better, otherwise the old one; and whether the old one is kept."""
    from rota.errors import Unstable
    from rota.simulation import simulate

    after = simulate(system, new, jobs=jobs, seed=seed)
    try:
        before = simulate(system, old, jobs=jobs, seed=seed)
    except Unstable:  # an improved rota whose base cannot carry the load has no decisions
        return new, False
    better = after.mean_response_time < (1 - _GAIN) * before.mean_response_time if before.stable and after.stable else not before.stable
    return (new, False) if better else (old, True)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


# ------------------------------------------------------------------------------------------------------- the process


def _die_with(parent: int) -> None:
    """Lets the kernel end this process when its parent ends, in whatever way."""
    set_death_signal = 1  # PR_SET_PDEATHSIG
    ctypes.CDLL(None, use_errno=True).prctl(set_death_signal, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it has ended already
        sys.exit(1)


def _main(arguments: Sequence[str]) -> int:
    os.nice(_NICE)
    if arguments[:1] == ["--parent"]:
        _die_with(int(arguments[1]))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not get into the answer
    try:
        answer = _plan(json.load(sys.stdin))
    except RotaError as error:
        answer = {"error": str(error)}
    except Exception as error:
        traceback.print_exc()
        answer = {"error": f"the planning failed: {type(error).__name__}: {error}"}
    with answers:
        json.dump(answer, answers)
    return 1 if "error" in answer else 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
