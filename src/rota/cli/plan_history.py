"""`rota plan-history`: which plans were in use and why, and a way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

import rota
from rota.cli.live_parts import clock, connect, printable
from rota.cli.output import print_json, print_table
from rota.cli.parameters import At, Flag, Json

if TYPE_CHECKING:
    from rota.live.messages import PlanVersion


def plan_history(
    *,
    use: int | None = None,
    undo: Flag = False,
    pin: Annotated[bool | None, Parameter(negative="--unpin")] = None,
    at: At = None,
    json: Json = False,
) -> None:
    """Lists the plans that are or were in use, each with its reason; and goes back to one of them.

    Running jobs are not touched by a change of plan.

    Parameters
    ----------
    use
        Use the plan of this number from now on, pinned.
    undo
        Use the plan before the present one, pinned.
    pin
        Pin the plan: the scheduler keeps it when arrivals or sizes drift. --unpin lets it make new plans again.
    """
    if undo and use is not None:
        raise rota.BadSpec([rota.Problem("--undo", "does not go with --use")])
    with connect(at) as client:
        if undo:
            use = _before(client.plans())
        if use is not None:
            client.use_plan(use)
        if pin is not None:
            client.pin(pin)
        plans = client.plans()
    if json:
        print_json({"plans": [plan.model_dump(mode="json") for plan in plans]})
        return
    print_table(
        "Plans",
        ["", "plan", "since", "load", "policy", "reason"],
        [(_mark(p), str(p.number), clock(p.time), f"{p.load:.3f}", printable(p.policy), printable(p.reason)) for p in plans],
        left=(0, 2, 4, 5),
    )


def _before(plans: Sequence[PlanVersion]) -> int:
    """The number of the plan before the one in use."""
    from rota.live.errors import NoSuchPlan

    present = max((plan.number for plan in plans if plan.in_use), default=0)
    earlier = [plan.number for plan in plans if plan.number < present]
    if not earlier:
        raise NoSuchPlan(f"there is no plan before {present}, the present one")
    return max(earlier)


def _mark(plan: PlanVersion) -> str:
    if not plan.in_use:
        return ""
    return "in use, pinned" if plan.pinned else "in use"
