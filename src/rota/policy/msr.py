"""The Markovian service rate (MSR) policy as plain data.

A few candidate schedules W (n, K), the fraction of working time π each should run, and how fast to move between them. What kind of moves
are possible depends on the preemption model: pMSR ("full") jumps, nMSR ("none") drains slots by completions, sMSR ("setup") pays a setup
time per preempted job. `rota.process` turns the data into the modulating Markov chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import scipy
from numpy.typing import ArrayLike

from rota.arrays import Array, Int
from rota.display import html_table, html_title, number, per_cent, rota_rows
from rota.errors import BadSpec, Problem
from rota.model import Preemption
from rota.model.markovian import stationary_law
from rota.policy.designed import register_designed
from rota.policy.registry import Policy, Record, register

__all__ = ["MSR", "Backfill", "EmptySlots", "Opening", "Route", "is_strongly_connected", "msr_name", "repeats_itself", "stationary_law"]


Route = Literal["type-order", "fastest-first", "parallel"]
Opening = Literal["late", "early"]
EmptySlots = Literal["virtual", "skip"]
Backfill = bool | Literal["hold"]


@dataclass(frozen=True, eq=False, init=False)
class MSR(Policy):
    """A rota: candidates (n, K), their weights π (n,), and the clock that moves from one to the next.

    `switching_rate` α: mean number of departures from working states per unit of working time. The candidates are visited in a loop, in
    the order given (`rota.design_policy` sorts them as the paper does), unless a `generator` (n, n) between working states is given.
    A schedule may come up more than once, as A in the loop A, B, A, C: each visit is a candidate with its own weight, and A runs for the
    sum of them.
    `setup_rate` γ: with preemption "setup" only.
    `backfill`: what the schedule leaves free is filled from the queue. "hold", without preemption only: and when the clock rings, the
    schedule is kept unless another candidate u has a larger weight Σ_i min(Q_i, u_i) Q_i.

    How an nMSR moves between two schedules: `route` is the order in which slots are drained, "type-order" (the paper's figure),
    "fastest-first" (shortest expected draining time), "parallel" (all that must go at once), or one order of the types per candidate, for
    the move that leaves it. `opening`: new slots open "late", all at the end of the move (the paper's figure), or "early", as soon as
    they fit.
    `empty_slots`: a slot to be drained that holds no job is waited for like any other ("virtual" completion, as the theory needs) or is
    released at once ("skip", as a practical scheduler would; simulation only).
    """

    candidates: Int
    weights: Array
    preemption: Preemption
    switching_rate: float
    setup_rate: float | None
    backfill: Backfill
    route: Route | tuple[tuple[int, ...], ...]
    opening: Opening
    empty_slots: EmptySlots
    generator: Array | None
    names: tuple[str, ...] | None

    def __init__(
        self,
        candidates: ArrayLike,
        weights: ArrayLike | None = None,
        preemption: Preemption = "full",
        switching_rate: float | None = None,
        setup_rate: float | None = None,
        backfill: Backfill = False,
        route: Route | Sequence[Sequence[int]] = "type-order",
        opening: Opening = "late",
        empty_slots: EmptySlots = "virtual",
        generator: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        W = _candidates(candidates)
        n, K = W.shape
        if not isinstance(backfill, bool | np.bool_) and backfill != "hold":
            raise BadSpec([Problem("backfill", 'must be True, False or "hold"', backfill)])
        G = None if generator is None else _generator(generator, n)
        pi = _weights(weights, n, G)
        problems = _choice_problems(preemption, opening, empty_slots)
        if G is None and repeats_itself(W):
            rule = "has the same schedule twice in a row, where the loop would change nothing: add their weights instead"
            problems.append(Problem("candidates", rule))
        orders = _route(route, n, K, problems)
        alpha = switching_rate
        if G is not None and n > 1:
            implied = float(-(pi @ np.diag(G)))
            alpha = implied if alpha is None else alpha
        if (n > 1 or alpha is not None) and not _is_positive(alpha):
            problems.append(Problem("switching_rate", "must be positive and finite", alpha))
        if backfill == "hold" and preemption != "none":
            problems.append(Problem("backfill", 'can be "hold" with preemption = "none" only', backfill))
        if preemption == "setup" and setup_rate is None:
            problems.append(Problem("setup_rate", 'is missing: preemption = "setup" needs it'))
        elif preemption != "setup" and setup_rate is not None:
            problems.append(Problem("setup_rate", 'goes with preemption = "setup", and only with it', setup_rate))
        elif setup_rate is not None and not _is_positive(setup_rate):
            problems.append(Problem("setup_rate", "must be positive and finite", setup_rate))
        if names is not None and len(names) != K:
            problems.append(Problem("names", f"needs {K} names, as the candidates have {K} types", list(names)))
        elif names is not None and len(set(names)) != K:
            problems.append(Problem("names", "must differ from each other", list(names)))
        if problems:
            raise BadSpec(problems)
        if G is not None:
            if alpha is not None and n > 1 and abs(alpha - implied) > 1e-14 * implied:  # scaled values stay as they are, bit for bit
                G = G * (alpha / implied)
            G.flags.writeable = False
        W.flags.writeable = pi.flags.writeable = False
        for field, value in [
            ("candidates", W),
            ("weights", pi),
            ("preemption", preemption),
            ("switching_rate", float(alpha) if alpha is not None else 1.0),
            ("setup_rate", None if setup_rate is None else float(setup_rate)),
            ("backfill", backfill if isinstance(backfill, str) else bool(backfill)),
            ("route", orders),
            ("opening", opening),
            ("empty_slots", empty_slots),
            ("generator", G),
            ("names", None if names is None else tuple(names)),
        ]:
            object.__setattr__(self, field, value)

    def replace(self, **changes: object) -> MSR:
        """A copy with some fields changed, as in `policy.replace(switching_rate=0.1)`."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        if changes.get("generator") is not None:  # it brings its own
            fields = {name: value for name, value in fields.items() if name not in ("switching_rate", "weights")}
        return MSR(**{**fields, **changes})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MSR):
            return NotImplemented
        return all(_same(getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__)

    def __repr__(self) -> str:
        rota = ", ".join(f"{weight:.1%} {row.tolist()}" for row, weight in zip(self.candidates, self.weights, strict=True))
        return f"<MSR, preemption {self.preemption}, switching rate {self.switching_rate:.4g}: {rota}>"

    def _repr_html_(self) -> str:
        about = [f"MSR, preemption {self.preemption}"]
        about += [f"switching rate {number(self.switching_rate)}"] if len(self.weights) > 1 else []
        about += [f"setup rate {number(self.setup_rate)}"] if self.setup_rate is not None else []
        about += ["backfilling"] if self.backfill else []
        about += ["held by the queues"] if self.backfill == "hold" else []
        if self.names:
            rows = rota_rows(self.candidates.tolist(), self.weights.tolist(), self.names, 1)
        else:
            rows = [(per_cent(weight), str(tuple(row.tolist()))) for row, weight in zip(self.candidates, self.weights, strict=True)]
        return html_title(", ".join(about)) + html_table(["working time", "jobs together"], rows, left=(1,))

    def __hash__(self) -> int:
        return hash((self.candidates.tobytes(), self.weights.tobytes(), self.preemption, self.switching_rate))


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float | np.number) and bool(np.isfinite(value) and value > 0)


def _same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.array_equal(a, b)
    return a == b


def _candidates(candidates: ArrayLike) -> Int:
    try:
        given = np.array(candidates, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadSpec([Problem("candidates", "must be a table of counts, one row per candidate", candidates)]) from None
    if given.ndim != 2 or given.size == 0:
        raise BadSpec([Problem("candidates", "must be a table of counts, one row per candidate", given.shape)])
    if not ((given >= 0) & (given < 2**53) & (given == np.floor(given))).all():  # False for NaN too
        raise BadSpec([Problem("candidates", "must be whole numbers, not negative", given.tolist())])
    return given.astype(np.int64)


def repeats_itself(loop: Int) -> bool:
    """Whether a schedule of the loop (n, K) is followed by itself; it may come up again later, but there nothing would change."""
    return len(loop) > 1 and bool((loop == np.roll(loop, -1, axis=0)).all(axis=1).any())


def _weights(weights: ArrayLike | None, n: int, generator: Array | None) -> Array:
    if weights is None:
        if generator is not None:
            return stationary_law(generator)
        if n > 1:
            raise BadSpec([Problem("weights", "is missing: one number per candidate")])
        return np.ones(1)
    try:
        pi: Array = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadSpec([Problem("weights", f"needs {n} numbers, one per candidate", weights)]) from None
    if pi.shape != (n,):
        raise BadSpec([Problem("weights", f"needs {n} numbers, one per candidate", pi.shape)])
    if not (np.isfinite(pi).all() and (pi > 0).all()):
        raise BadSpec([Problem("weights", "must be positive: leave out a candidate that never runs", pi.tolist())])
    if abs(pi.sum() - 1) > 1e-6:
        raise BadSpec([Problem("weights", "must sum to 1", float(pi.sum()))])
    if abs(pi.sum() - 1) > 1e-15 * n:  # normalised values stay as they are, bit for bit
        pi = pi / pi.sum()
    if generator is not None and np.abs(pi @ generator).max() > 1e-8 * np.abs(generator).max():
        raise BadSpec([Problem("weights", "are not the stationary law of the generator: give one of the two only")])
    return pi


def _generator(generator: ArrayLike, n: int) -> Array:
    square = f"must be {n} × {n}, as there are {n} candidates"
    try:
        G = np.array(generator, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadSpec([Problem("generator", square, generator)]) from None
    if G.shape != (n, n):
        raise BadSpec([Problem("generator", square, G.shape)])
    off = np.where(np.eye(n), 0.0, G)
    if not np.isfinite(G).all() or (off < 0).any():
        raise BadSpec([Problem("generator", "must be finite with no negative rate between two states")])
    G = off - np.diag(off.sum(axis=1))
    if not is_strongly_connected(off):
        raise BadSpec([Problem("generator", "is not irreducible: every candidate must be reached from every other")])
    return G


def is_strongly_connected(rates: Array) -> bool:
    """Whether every state is reached from every other along positive rates."""
    return bool(scipy.sparse.csgraph.connected_components(rates > 0, directed=True, connection="strong")[0] == 1)


def _choice_problems(preemption: object, opening: object, empty_slots: object) -> list[Problem]:
    return [
        Problem(field, "must be " + ", ".join(f'"{choice}"' for choice in choices), value)
        for field, value, choices in [
            ("preemption", preemption, get_args(Preemption)),
            ("opening", opening, get_args(Opening)),
            ("empty_slots", empty_slots, get_args(EmptySlots)),
        ]
        if value not in choices
    ]


def _route(route: Route | Sequence[Sequence[int]], n: int, K: int, problems: list[Problem]) -> Route | tuple[tuple[int, ...], ...]:
    if isinstance(route, str):
        if route not in get_args(Route):
            problems.append(Problem("route", "must be " + ", ".join(f'"{choice}"' for choice in get_args(Route)) + " or orders", route))
        return route
    try:
        orders = tuple(tuple(int(i) for i in order) for order in route)
    except (TypeError, ValueError):
        orders = ()
    if len(orders) != n or any(sorted(order) != list(range(K)) for order in orders):
        problems.append(Problem("route", f"needs {n} orders of the types 0…{K - 1}, one per candidate", route))
    return orders


# ---------------------------------------------------------------------------------------------------------------- names and records

_LETTERS: dict[Preemption, str] = {"full": "p", "none": "n", "setup": "s"}  # the paper's


def msr_name(preemption: Preemption, backfill: Backfill = False) -> str:
    """What an MSR is called: pMSR, nMSR or sMSR, with "+backfill" where gaps are filled from the queue, "+hold" where it also holds."""
    return f"{_LETTERS[preemption]}MSR{'+hold' if backfill == 'hold' else '+backfill' if backfill else ''}"


def _register(preemption: Preemption, backfill: Backfill, title: str, colour: str, mark: str, plan: int | None, note: str) -> None:
    rule = "HOLD_RULE" if backfill == "hold" else f"{preemption.upper()}_RULE"
    register(
        Record(
            name=msr_name(preemption, backfill),
            policy=MSR,
            rule=f"rota.decide.backfill:{rule}" if backfill else "rota.decide.msr:MSR_RULE",
            title=title,
            preemption=preemption,
            # With full preemption no job ends later with backfilling than without (rota.analysis.guarantee); otherwise theory says nothing.
            throughput_optimal=not backfill or preemption == "full",
            colour=colour,
            mark=mark,
            where={"preemption": preemption, "backfill": backfill},
            kind="msr",
            codec="rota.policy.msr_codec:MSR_CODEC",
            designed=True,
            draws=True,
            plan=plan,
            looks_at="lengths" if backfill == "hold" else "order of arrival" if backfill else "no",
            stability_note=note,
        )
    )
    register_designed(msr_name(preemption, backfill), "rota.design.named:design_rota_named")


_register("full", False, "the rota", "#0072B2", "square", 71, "designed for the load")
_register("none", False, "the rota without preemption", "#D55E00", "diamond", 91, "switching slowly enough")
_register("setup", False, "the rota with setups", "#882255", "triangle-down", 81, "switching slowly enough")
_register("full", True, "the rota with backfilling", "#47D2E8", "triangle-up", 70, "as without backfilling")
_register("none", True, "the rota with backfilling, without preemption", "#AB6D6C", "cross", 90, "not proved")
_register("setup", True, "the rota with setups and backfilling", "#BE6DF2", "circle", 80, "not proved")
_register("none", "hold", "the rota with backfilling that the queues hold, without preemption", "#170041", "square", None, "not proved")
