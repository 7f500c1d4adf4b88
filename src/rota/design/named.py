"""The designers behind names: `"nMSR"` is the close rota of the system at hand, `"improved"` the improved one (`rota.policy.designed`)."""

from __future__ import annotations

from rota.capacity import Load, system_load
from rota.design.design import Objective, balanced_policy, design_policy
from rota.design.improved import design_improved
from rota.errors import BadSpec, Problem
from rota.model import Preemption, System
from rota.policy import MSR, Improved, record_named

__all__ = ["design_improved_named", "design_rota_named"]

_TIME_S = 30.0


def design_rota_named(
    name: str,
    system: System,
    *,
    load: Load | None = None,
    time_limit_s: float = _TIME_S,
    objective: Objective = "close",
    switching_rate: float | None = None,
    setup_rate: float | None = None,
) -> MSR:
    """The rota of an MSR's name: its preemption model and backfilling are in the name."""
    record = record_named(name)
    if record is None or record.policy is not MSR:
        raise BadSpec([Problem("policy", "is not the name of a rota", name)])
    model, backfill = record.preemption, record.where["backfill"]
    if backfill and switching_rate is not None:
        # With backfilling a rota may be stable at a switching rate at which it is unstable without: the simulation finds out.
        best = load or system_load(system)
        return balanced_policy(system, best, model, setup_rate=setup_rate).replace(switching_rate=switching_rate, backfill=backfill)
    rota = design_policy(
        system,
        model,
        load=load,
        switching_rate=switching_rate,
        setup_rate=setup_rate,
        objective=objective,
        time_limit_s=time_limit_s,
    )
    return rota.replace(backfill=backfill) if backfill else rota


def design_improved_named(
    name: str, system: System, *, load: Load | None = None, time_limit_s: float = _TIME_S, base: MSR | None = None
) -> Improved:
    """The improved rota of a system; under the name "improved" that of its own preemption model. `base`: a rota to begin with."""
    record = record_named(name)
    model: Preemption = system.preemption if record is None else record.preemption
    backfill = model != "full" if record is None else bool(record.where["backfill"])
    if base is not None:
        return Improved(base, backfill)
    return design_improved(system, model, load=load, backfill=None if record is None else backfill, time_limit_s=time_limit_s)
