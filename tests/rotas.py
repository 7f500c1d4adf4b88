"""Rotas that many tests use: the paper's, and random small ones on random systems."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import rota
from rota.policy import MSR
from rota.process import build_process
from systems import paper_example

PREEMPTIONS = ("full", "none", "setup")


def paper_rota(preemption: str = "full", switching_rate: float = 2.0, **fields: Any) -> MSR:
    """The policies of the paper's Appendix "Example", Figure mc: (0,0,2) and (1,4,0), half of the time each."""
    if preemption == "setup":
        fields.setdefault("setup_rate", 10.0)
    return MSR([[0, 0, 2], [1, 4, 0]], [0.5, 0.5], preemption=preemption, switching_rate=switching_rate, **fields)


@st.composite
def generators(draw: st.DrawFn, n: int) -> np.ndarray:
    """An irreducible generator: a cycle through all states in some order, and some more edges."""
    order = draw(st.permutations(range(n)))
    rate = st.floats(0.2, 5)
    G = np.array(draw(st.lists(st.lists(st.just(0.0) | rate, min_size=n, max_size=n), min_size=n, max_size=n)))
    for a, b in zip(order, [*order[1:], order[0]], strict=True):
        G[a, b] = draw(rate)
    np.fill_diagonal(G, 0)
    return G - np.diag(G.sum(axis=1))


@st.composite
def systems_and_rotas(
    draw: st.DrawFn,
    preemption: str | None = None,
    most_load: float = 0.85,
    most_units: int = 6,
    loop: bool = False,
    again: bool = False,
) -> tuple[rota.System, MSR]:
    """A small system and any kind of rota on it; every type that is served has a load between 0.05 and `most_load`.

    `loop`: at least two candidates, visited in a loop, and no parallel draining. `again`: some visit a schedule twice (A, B, A, C).
    """
    K, R = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    units = [draw(st.integers(2, most_units)) for _ in range(R)]
    some = st.tuples(*(st.integers(0, unit) for unit in units)).filter(any)
    mu = draw(st.lists(st.floats(0.5, 2), min_size=K, max_size=K))
    system = rota.System(units, [draw(some) for _ in range(K)], [0.0] * K, mu)

    schedules = rota.list_schedules(system)[1:]
    fewest = min(2 if loop else 1, len(schedules))
    picks = draw(st.lists(st.integers(0, len(schedules) - 1), min_size=fewest, max_size=3, unique=True))
    if again and len(picks) == 3 and draw(st.booleans()):
        picks.insert(2, picks[0])
    n = len(picks)
    parts = np.array(draw(st.lists(st.integers(1, 6), min_size=n, max_size=n)))
    preemption = preemption or draw(st.sampled_from(PREEMPTIONS))
    orders = st.lists(st.permutations(range(K)), min_size=n, max_size=n)
    named = ["type-order", "fastest-first"] if loop else ["type-order", "fastest-first", "parallel"]
    fields: dict[str, Any] = {
        "setup_rate": draw(st.floats(0.5, 20)) if preemption == "setup" else None,
        "route": draw(st.sampled_from(named) | orders),
        "opening": draw(st.sampled_from(["late", "early"])),
    }
    if n > 1 and not loop and draw(st.booleans()):
        fields["generator"] = draw(generators(n))
    else:
        fields |= {"weights": parts / parts.sum(), "switching_rate": draw(st.floats(0.3, 10))}
    policy = MSR(schedules[picks], preemption=preemption, **fields)

    loads = np.array(draw(st.lists(st.floats(0.05, most_load), min_size=K, max_size=K)))
    served = system.service_rate * build_process(system, policy).mean_schedule
    return system.replace(arrival_rate=loads * served), policy


def paper_case(load: float, preemption: str = "full", switching_rate: float = 2.0, **fields: Any) -> tuple[rota.System, MSR]:
    """The paper's example at a load, with its rota."""
    return paper_example(load), paper_rota(preemption, switching_rate, **fields)


def twice_round(preemption: str = "full", switching_rate: float = 1.0, **fields: Any) -> tuple[rota.System, MSR]:
    """The paper's example at load 0.45 with a loop that visits (1,4,0) twice: (1,4,0), (0,0,2), (1,4,0), (2,0,0)."""
    if preemption == "setup":
        fields.setdefault("setup_rate", 10.0)
    loop = [[1, 4, 0], [0, 0, 2], [1, 4, 0], [2, 0, 0]]
    return paper_example(0.45), MSR(loop, [0.3, 0.45, 0.2, 0.05], preemption, switching_rate, **fields)
