"""`design_improved`: from a system to an improved rota.

Which base is best was measured (docs: improved rotas). As a rule the base of the least E[T] of its own has the best improved rota; slower
or faster switching than is best for the base, and bases of balanced loads, do worse. So no simulation is needed: the base is the best rota
that `design_policy` finds.
"""

from __future__ import annotations

from rota.analysis import analyze
from rota.analysis.cost import QUICK_S
from rota.analysis.relative import MOST_STATES
from rota.capacity import Load, system_load
from rota.design.deadline import Deadline
from rota.design.design import LOAD_S, find_design
from rota.errors import Infeasible
from rota.model import Preemption, System
from rota.policy import MSR, Improved
from rota.process import build_process
from rota.threads import one_thread

__all__ = ["design_improved"]


@one_thread()
def design_improved(
    system: System,
    preemption: Preemption | None = None,
    *,
    load: Load | None = None,
    setup_rate: float | None = None,
    backfill: bool | None = None,
    time_limit_s: float = 30.0,
) -> Improved:
    """An improved rota for a system: its base has the least mean response time of the rotas found; sizes are taken as exponential.

    `preemption` and `setup_rate` are the system's unless given. With setups, a base that never stops a job is taken where that is better.
    `load`: the answer of `rota.system_load`, if it is known already. `backfill`: as in `rota.Improved`; None means: unless preemption is
    full. `rota.analyze` says what is proved of the answer. Raises `Infeasible` if the states of the base are too many for relative values.
    """
    deadline = Deadline.after(time_limit_s)
    best = load or system_load(system, time_limit_s=max(time_limit_s, LOAD_S))
    base = _best_base(system, preemption or system.preemption, best, setup_rate, deadline)
    return Improved(base, base.preemption != "full" if backfill is None else backfill)


def _best_base(system: System, preemption: Preemption, best: Load, setup_rate: float | None, deadline: Deadline) -> MSR:
    if preemption != "setup":
        return _base(system, preemption, best, None, deadline.left_s)
    stops = _base(system, "setup", best, setup_rate, deadline.left_s / 2)
    drains = _base(system, "none", best, None, deadline.left_s)
    return min(stops, drains, key=lambda base: _mean_response_time(system, base))


def _base(system: System, preemption: Preemption, best: Load, setup_rate: float | None, time_limit_s: float) -> MSR:
    """The best rota that has few enough states for relative values."""
    deadline = Deadline.after(time_limit_s)
    base = find_design(system, preemption, load=best, setup_rate=setup_rate, time_limit_s=deadline.left_s).policy
    if _too_large(system, base):  # slots that drain in parallel have a state for every mix of those that are left
        left = deadline.left_s
        base = find_design(system, preemption, load=best, setup_rate=setup_rate, route="fastest-first", time_limit_s=left).policy
    if _too_large(system, base):
        raise Infeasible(
            f"the best rota found has {len(build_process(system, base)):,} states, and relative values are for at most {MOST_STATES:,}: "
            "run it as it is (rota.design_policy), with backfilling"
        )
    return base


def _too_large(system: System, base: MSR) -> bool:
    return len(build_process(system, base)) > MOST_STATES


def _mean_response_time(system: System, base: MSR) -> float:
    answer = analyze(system, base, sizes="exponential")
    return answer.little(answer.exact_means if answer.means_time_s <= QUICK_S else answer.quick_prediction)
