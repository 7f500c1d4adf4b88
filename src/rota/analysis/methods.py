"""Which method finds the exact laws of a type, by the size of its process, what that costs, and when it is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rota.analysis.cost import LONGEST_S, Cost, cost_by_level, cost_by_window, cost_of_erlang, cost_of_loop, cost_of_step
from rota.analysis.erlang import has_constant_slots, solve_erlang
from rota.analysis.loop import solve_loop
from rota.analysis.markovian import condensed, entry, markovian_levels, phase_count, solve_markovian
from rota.analysis.phase_type import phase_count as size_phases
from rota.analysis.phase_type import solve_phase_type
from rota.analysis.qbd import solve_levels, solve_qbd
from rota.analysis.queue import TypeQueue
from rota.analysis.response import ResponseTime, erlang_response, uniform_rate, uniform_response
from rota.analysis.solution import QueueLength
from rota.analysis.window import MANY_LEVELS, lowest_level, solve_window
from rota.analysis.words import LARGEST_ERROR
from rota.errors import Infeasible, NotConverged
from rota.model import PhaseTypeFamily
from rota.threads import one_thread

__all__ = ["Method", "choose_method", "response_time_s", "solve_companion", "solve_length", "solve_response"]

_SMALL = 150  # phases up to which a matrix per level is the simplest and fast


class Method(NamedTuple):
    """What the exact law of a queue takes, and the function that solves it."""

    cost: Cost
    solve: Callable[[TypeQueue], QueueLength]


def choose_method(queue: TypeQueue, size: PhaseTypeFamily | None) -> Method:
    """The method for the law of Q; `size` None if sizes are exponential."""
    N, beta = len(queue.process), queue.max_parallel
    if size is not None:
        phases = size_phases(queue, len(size.representation[0]))
        return Method(cost_by_level(phases, beta), lambda queue: solve_phase_type(queue, size))
    if queue.arrivals is not None:
        return Method(cost_by_level(phase_count(condensed(queue)), beta), lambda queue: solve_markovian(condensed(queue)))
    if has_constant_slots(queue):
        return Method(cost_of_erlang(beta), solve_erlang)
    seen = beta - lowest_level(queue)
    by_loop, by_level = Method(cost_of_loop(N, seen), solve_loop), Method(cost_by_level(N, beta), solve_qbd)
    if beta >= MANY_LEVELS:
        by_level = Method(cost_by_window(N, seen), solve_window)
    if queue.process.loop is None or (N <= _SMALL and by_level.cost.affordable):
        return by_level
    if by_level.cost.affordable and by_level.cost.time_s <= by_loop.cost.time_s:
        return by_level
    return by_loop if by_loop.cost.affordable or not by_level.cost.affordable else by_level


def solve_length(queue: TypeQueue, size: PhaseTypeFamily | None, name: str) -> QueueLength:
    """The law of Q of a stable type, by the method for its size; `Infeasible` where that takes too much time or memory."""
    cost, solve = choose_method(queue, size)
    if size is None and not cost.affordable:  # of phase-type sizes, the method itself says how many phases it allows
        phases = len(queue.process) if queue.arrivals is None else phase_count(condensed(queue))
        raise Infeasible(
            f"the exact law of {name!r} needs {phases:,} phases and {queue.max_parallel:,} boundary levels, "
            f"which would take about {cost.time_s:,.0f} s and {8e-9 * cost.entries:,.1f} GB: use the bounds and the prediction, "
            "or simulate"
        )
    with one_thread(len(queue.process)):
        return solve(queue)


def solve_companion(queue: TypeQueue) -> QueueLength:
    """The law of Q of the MSR-1 companion, which serves one job at a time: exponential sizes, Poisson arrivals."""
    long = queue.process.loop is not None and len(queue.process) > _SMALL
    return solve_loop(queue, single_server=True) if long else solve_qbd(queue, single_server=True)


def solve_response(queue: TypeQueue, length: Callable[[], QueueLength], name: str) -> ResponseTime:
    """The law of T of a stable type of exponential sizes; `length`: that of Q, computed if it is needed."""
    if has_constant_slots(queue) and queue.arrivals is None:
        return erlang_response(queue)
    if queue.arrivals is not None:
        queue = condensed(queue)
    N, beta, levels, step_s, time_s = _cost_of_response(queue)
    if not levels.affordable or time_s > LONGEST_S:
        raise Infeasible(
            f"the law of the response time of {name!r} needs {N:,} phases and {beta:,} boundary levels, "
            f"which would take about {time_s:,.0f} s and {8e-9 * levels.entries:,.1f} GB: simulate"
        )
    with one_thread(N):
        if queue.arrivals is None:
            law = uniform_response(queue, solve_levels(queue), length(), LONGEST_S / step_s)
        else:
            law = uniform_response(queue, markovian_levels(queue), length(), LONGEST_S / step_s, entry(queue))
    if not law.accuracy <= LARGEST_ERROR:
        raise NotConverged(
            f"the mean of the response time of {name!r} differs by {law.accuracy:.2g} from Little's law, "
            f"which is too much to call its law exact (load {queue.load:.6g}): simulate"
        )
    return law


def response_time_s(queue: TypeQueue) -> float:
    """Seconds that the law of T of a stable type takes, about; infinite if it needs too much memory."""
    if has_constant_slots(queue) and queue.arrivals is None:
        return 0.0
    _, _, levels, _, time_s = _cost_of_response(queue if queue.arrivals is None else condensed(queue))
    return time_s if levels.affordable else np.inf


def _cost_of_response(queue: TypeQueue) -> tuple[int, int, Cost, float, float]:
    """Phases, levels and cost of the law of T, the seconds of a step, and those in all, about."""
    N, beta = len(queue.process) if queue.arrivals is None else phase_count(queue), queue.max_parallel
    levels, step_s = cost_by_level(N, beta), cost_of_step(N, beta)
    # How many steps it takes is not known before; those of a mean response time are a fair guess.
    return N, beta, levels, step_s, levels.time_s + step_s * uniform_rate(queue) * queue.bounds()[0] / queue.arrival_rate
