"""Fleets that many tests use: random small ones, and what plain Python says about them."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linprog

import rota
from systems import arrival_processes, decimal, size_distributions


def two_kinds() -> rota.Fleet:
    """Two kinds, two types; the second type runs on one kind only, and the first twice as fast there."""
    return rota.Fleet(
        count=[4, 2],
        capacity=[[4, 0], [8, 2]],
        demand=[[1, 0], [2, 1]],
        arrival_rate=[14.0, 2.0],
        service_rate=[1.0, 1.0],
        kinds=["plain", "large"],
        speed=[[1, 1], [2, 1]],
        dispatch="power-of-d",
        time_unit="min",
    )


@st.composite
def small_fleets(draw: st.DrawFn) -> rota.Fleet:
    """C ≤ 3 kinds of up to 5 servers, K ≤ 3 types, R ≤ 2 resources on a grid of 1 or 0.1; affinities, speeds, types that do not arrive."""
    C, K, R = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    grid = [draw(st.sampled_from([1, 10])) for _ in range(R)]
    capacity = [draw(st.tuples(*[st.integers(0, 9)] * R).filter(any)) for _ in range(C)]
    kinds = [f"kind{c + 1}" for c in range(C)]
    demand, only, speed = [], [], np.ones((C, K))
    for i in range(K):
        home = draw(st.sampled_from(capacity))  # so that it fits somewhere
        need = draw(st.tuples(*(st.integers(0, amount) for amount in home)).filter(any))
        demand.append([d / g for d, g in zip(need, grid, strict=True)])
        fit = [c for c in range(C) if all(d <= p for d, p in zip(need, capacity[c], strict=True))]
        chosen = draw(st.none() | st.lists(st.sampled_from(fit), min_size=1, unique=True))
        only.append(None if chosen is None else [kinds[c] for c in chosen])
        for c in fit if chosen is None else chosen:
            speed[c, i] = draw(st.sampled_from([1.0, 1.0, 0.5, 2.0, 3.0]))
    rate = st.floats(0.1, 10)
    return rota.Fleet(
        count=[draw(st.integers(1, 5)) for _ in range(C)],
        capacity=[[p / g for p, g in zip(row, grid, strict=True)] for row in capacity],
        demand=demand,
        arrival_rate=draw(st.lists(st.just(0.0) | rate, min_size=K, max_size=K).filter(any)),
        service_rate=draw(st.lists(rate, min_size=K, max_size=K)),
        kinds=kinds,
        only=only,
        speed=speed,
    )


@st.composite
def described_fleets(draw: st.DrawFn) -> rota.Fleet:
    """Fleets with any names, numbers, distributions, affinities, speeds and dispatch rules; some kinds lack some resources."""
    names = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=3, unique=True)
    types, kinds = draw(names), draw(names)
    resources = draw(names.filter(lambda found: "count" not in found))
    amount = st.floats(1e-6, 1e20)
    capacity = [[draw(amount if c == 0 else st.just(0.0) | amount) for _ in resources] for c in range(len(kinds))]
    capacity = [row if any(row) else capacity[0] for row in capacity]
    part = st.floats(0.001, 1)
    speed = np.ones((len(kinds), len(types)))
    speed[0] = [draw(st.sampled_from([1.0, 0.1, 2.5])) for _ in types]
    rule = draw(st.none() | st.sampled_from(["random", "jsq", "power-of-d", "pinned"]))
    return rota.Fleet(
        count=[draw(st.integers(1, 10**9)) for _ in kinds],
        capacity=capacity,
        demand=[[has * draw(part) for has in capacity[0]] for _ in types],
        arrival_rate=[draw(st.floats(0, 1e300)) for _ in types],
        names=types,
        resources=resources,
        kinds=kinds,
        only=[draw(st.sampled_from([None, (kinds[0],)])) for _ in types],
        speed=speed,
        dispatch=rota.Dispatch("power-of-d", draw(st.integers(1, 9))) if rule == "power-of-d" else rule,
        sizes=[draw(size_distributions()) for _ in types],
        arrivals=[draw(arrival_processes()) for _ in types],
        time_unit=draw(st.sampled_from([None, "h"])),
    )


def all_schedules(fleet: rota.Fleet, c: int) -> list[tuple[int, ...]]:
    """Every schedule of a server of kind c, by trying all counts in exact fractions."""
    capacity = [decimal(p) for p in fleet.capacity[c]]
    demand = [[decimal(d) for d in row] for row in fleet.demand]
    most = []
    for i, needs in enumerate(demand):
        allowed = fleet.only[i] is None or fleet.kinds[c] in fleet.only[i]
        most.append(min(int(p // d) for p, d in zip(capacity, needs, strict=True) if d > 0) if allowed else 0)
    counts = product(*(range(m + 1) for m in most))
    sums = ((u, [sum(n * needs[r] for n, needs in zip(u, demand, strict=True)) for r in range(len(capacity))]) for u in counts)
    return [u for u, used in sums if all(x <= p for x, p in zip(used, capacity, strict=True))]


def load_over_all_schedules(fleet: rota.Fleet) -> float:
    """min t s.t. Σ w (v ⊙ s) ≥ λ⊘μ, Σ_s w_cs ≤ n_c t, over every schedule of every kind, by scipy."""
    columns = [(c, np.array(u) * fleet.speed[c]) for c in range(len(fleet.kinds)) for u in all_schedules(fleet, c)]
    served = np.array([work for _, work in columns]).T
    of_kind = np.array([[float(c == kind) for c, _ in columns] for kind in range(len(fleet.kinds))])
    answer = linprog(
        np.append(np.zeros(len(columns)), 1.0),
        A_ub=np.vstack([np.column_stack([-served, np.zeros(len(served))]), np.column_stack([of_kind, -fleet.count])]),
        b_ub=np.concatenate([-fleet.offered_work, np.zeros(len(fleet.kinds))]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.status == 0
    return answer.fun
