"""Queue-driven rotas, as plain data: a goal that the queues choose and hold, and what may start beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from rota.arguments import is_real
from rota.arrays import Array, Int
from rota.display import html_lines, html_table, html_title, jobs_together
from rota.errors import BadSpec, Problem
from rota.policy.codec import Codec
from rota.policy.designed import register_designed
from rota.policy.registry import Policy, Record, register

__all__ = ["SETTINGS", "Adaptive"]

Order = Literal["weight", "arrival"]
SETTINGS = ("hold", "full", "cap", "waive", "free", "slack")


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Adaptive(Policy):
    """A schedule as goal, which the queues choose and hold; other jobs start where they cannot delay it. Never preempts.

    A schedule s weighs v(s) = Σ c_i min(s_i, Q_i) Q_i, with the `importance` c of each type. A goal is *full* while the jobs present of its
    types, at most `cap` times its slots of each, need at least the part `full` of what its slots need of the most loaded resource. The
    goal is kept while it is full and no other full one of `goals` (n, K) weighs more than 1 + hold·v^(−1/10) times as much.
    Capacity is kept for jobs of the goal that wait, unless
    they weigh at most `waive`. While no goal is full, jobs start wherever they fit. By `order`, of several types that may start the
    one of largest weight comes first, or that of the oldest job.

    What runs may also grow as under MaxWeight without preemption, *freely*, while it then weighs enough: v ≤ (1 + slack·v^(−1/10)) v(what
    runs then) + free, where v is the weight of the heaviest goal. With free = ∞ it is MaxWeight without preemption; with full = ∞ and order
    "arrival", First-Fit.
    """

    goals: Int
    hold: float
    full: float
    cap: float
    waive: float
    free: float
    slack: float
    order: Order
    importance: Array
    names: tuple[str, ...] | None

    def __init__(
        self,
        goals: ArrayLike,
        hold: float = 8.0,
        *,
        full: float = 0.0,
        cap: float = np.inf,
        waive: float = 0.0,
        free: float = 0.0,
        slack: float = 0.0,
        order: Order = "weight",
        importance: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        try:
            schedules = np.array(goals)
        except ValueError:
            schedules = np.zeros(0)
        if schedules.ndim != 2 or schedules.size == 0 or schedules.dtype.kind not in "iu" or (schedules < 0).any():
            raise BadSpec([Problem("goals", "must be a matrix of whole numbers, at least 0, a row per schedule", goals)])
        K = schedules.shape[1]
        try:
            c = np.ones(K) if importance is None else np.array(importance, dtype=float)
        except (TypeError, ValueError):
            c = np.zeros(0)
        problems = [
            Problem(name, "must be a number, at least 0", value)
            for name, value in (("hold", hold), ("waive", waive), ("slack", slack))
            if not (is_real(value) and value >= 0)
        ]
        problems += [
            Problem(name, "must be a number, at least 0, or infinity", value)
            for name, value in (("full", full), ("cap", cap), ("free", free))
            if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not value >= 0
        ]
        if order not in get_args(Order):
            problems.append(Problem("order", 'must be "weight" or "arrival"', order))
        if not schedules.any(axis=1).all():
            problems.append(Problem("goals", "must each have a job"))
        if c.shape != (K,) or not (np.isfinite(c) & (c > 0)).all():
            problems.append(Problem("importance", f"must be {K} positive numbers, one per type", importance))
        if names is not None and len(names) != K:
            problems.append(Problem("names", f"must be {K}, one per type", names))
        if problems:
            raise BadSpec(problems)
        whole = schedules.astype(np.int64)
        for array in (whole, c):
            array.flags.writeable = False
        object.__setattr__(self, "goals", whole)
        object.__setattr__(self, "importance", c)
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "names", None if names is None else tuple(names))
        for field, value in zip(SETTINGS, (hold, full, cap, waive, free, slack), strict=True):
            object.__setattr__(self, field, float(value))

    @property
    def settings(self) -> dict[str, float]:
        """The numbers that can be tuned, by name, but the importance of types."""
        return {name: getattr(self, name) for name in SETTINGS}

    def replace(self, **changes: Any) -> Adaptive:
        """The same with other settings."""
        own = {"goals": self.goals, "order": self.order, "importance": self.importance, "names": self.names}
        return Adaptive(**{**own, **self.settings, **changes})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Adaptive):
            return NotImplemented
        same = np.array_equal(self.goals, other.goals) and np.array_equal(self.importance, other.importance)
        return same and (self.settings, self.order, self.names) == (other.settings, other.order, other.names)

    def __hash__(self) -> int:
        return hash((*self.settings.values(), self.order, self.names, self.goals.tobytes(), self.importance.tobytes()))

    def __repr__(self) -> str:
        goals = f"{len(self.goals)} goals" if len(self.goals) != 1 else "1 goal"
        plain = {"full": 0.0, "cap": np.inf, "waive": 0.0, "free": 0.0, "slack": 0.0}
        settings = ", ".join(f"{name} {value:g}" for name, value in self.settings.items() if value != plain.get(name))
        return f"<Adaptive: {goals}, {settings}{', in order of arrival' if self.order == 'arrival' else ''}>"

    def _repr_html_(self) -> str:
        names = self.names or tuple(f"type{i + 1}" for i in range(self.goals.shape[1]))
        rows = [(jobs_together(row, names),) for row in self.goals.tolist()]
        return html_title(repr(self)[1:-1]) + html_table(["goals"], rows) + html_lines("The queues choose which one.")


def _write(policy: Adaptive) -> dict[str, Any]:
    names = policy.names or tuple(f"type{i + 1}" for i in range(policy.goals.shape[1]))
    settings = {name: "infinity" if np.isinf(value) else value for name, value in policy.settings.items()}  # JSON has no infinity
    if np.isinf(policy.cap):
        del settings["cap"]  # an older release reads the file
    return {
        "types": list(names),
        **settings,
        "order": policy.order,
        "importance": dict(zip(names, policy.importance.tolist(), strict=True)),
        "goals": [{name: int(count) for name, count in zip(names, row, strict=True) if count} for row in policy.goals],
    }


def _read(kind: type[Policy], given: dict[str, Any]) -> Policy:
    known = ("types", *SETTINGS, "order", "importance", "goals")
    problems = [Problem(name, "is not a known key") for name in given if name not in known]
    problems += [Problem(name, "is missing") for name in ("types", "goals") if name not in given]
    if problems:
        raise BadSpec(problems)
    names, goals, importance = given["types"], given["goals"], given.get("importance", {})
    if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names) and len(set(names)) == len(names)):
        raise BadSpec([Problem("types", "must be a list of different names", names)])
    if not (isinstance(goals, list) and all(isinstance(goal, Mapping) for goal in goals)):
        raise BadSpec([Problem("goals", "must be a list of counts by type", goals)])
    if not isinstance(importance, Mapping):
        raise BadSpec([Problem("importance", "must be a number by type", importance)])
    for place, tables in (("goals", goals), ("importance", [importance])):
        problems += [
            Problem(f"{place}.{name}", f"no such type (there are: {', '.join(names)})")
            for row in tables
            for name in row
            if name not in names
        ]
    if problems:
        raise BadSpec(problems)
    numbers = {name: np.inf if given[name] == "infinity" else given[name] for name in SETTINGS if name in given}
    rows = [[goal.get(name, 0) for name in names] for goal in goals]
    return Adaptive(
        rows, importance=[importance.get(name, 1.0) for name in names], names=names, order=given.get("order", "weight"), **numbers
    )


ADAPTIVE_CODEC = Codec(write=_write, read=_read)

register(
    Record(
        name="adaptive",
        policy=Adaptive,
        rule="rota.decide.adaptive:ADAPTIVE_RULE",
        title="the queue-driven rota",
        preemption="none",
        throughput_optimal=True,
        colour="#2748B7",
        mark="triangle-up",
        codec="rota.policy.adaptive:ADAPTIVE_CODEC",
        designed=True,
        plan=94,
        looks_at="lengths",
        stability_note="if its goals carry the load, hold is positive, full and free finite",
    )
)
register_designed("adaptive", "rota.tuning.adaptive:design_adaptive_named")
