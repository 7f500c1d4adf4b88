"""Systems that many tests use: the paper's examples, random small ones, and what plain Python says about them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import rota
from rota.simulation import EarlyComparison

EXAMPLES = Path(__file__).parents[1] / "examples"


def paper_example(load: float = 1.0) -> rota.System:
    """The example system of the paper (Section "Choosing a stable MSR policy"); its load is 1 at λ = (.5, 2, 1)."""
    return rota.System(
        capacity=[20, 15, 50],
        demand=[[3, 7, 1], [4, 1, 1], [10, 1, 5]],
        arrival_rate=np.array([0.5, 2, 1]) * load,
        service_rate=[1, 1, 1],
    )


def vm_example() -> rota.System:
    """The virtual machines of the paper's Appendix "An Example on the Initialization Step of MSR"."""
    return rota.System(
        capacity=[128, 256, 1024, 100],
        demand=[[1, 4, 50, 1], [4, 1, 10, 10], [2, 2, 100, 5], [8, 4, 10, 1]],
        arrival_rate=[4, 5, 2, 1.5],
        service_rate=[1, 1, 1, 1],
    )


@st.composite
def small_systems(draw: st.DrawFn, idle: bool = True) -> rota.System:
    """K ≤ 4 types, R ≤ 3 resources, demands on a grid of 1, 0.1 or 0.001; with `idle`, some types may not arrive (but one does)."""
    K, R = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    units = [draw(st.integers(1, 12)) for _ in range(R)]
    grid = [draw(st.sampled_from([1, 10, 1000])) for _ in range(R)]
    some = st.tuples(*(st.integers(0, unit) for unit in units)).filter(any)
    demand = [[d / g for d, g in zip(draw(some), grid, strict=True)] for _ in range(K)]
    rate = st.floats(0.1, 10)
    arrivals = st.lists(st.just(0.0) | rate if idle else rate, min_size=K, max_size=K).filter(any)
    return rota.System(
        capacity=[unit / g for unit, g in zip(units, grid, strict=True)],
        demand=demand,
        arrival_rate=draw(arrivals),
        service_rate=draw(st.lists(rate, min_size=K, max_size=K)),
    )


def decimal(x: float) -> Fraction:
    """The decimal number that a person wrote: 0.1 is 1/10."""
    return Fraction(repr(float(x)))


def reference_schedules(system: rota.System) -> list[tuple[int, ...]]:
    """All schedules in lexicographic order, by plain recursion over exact fractions."""
    demand = [[decimal(d) for d in row] for row in system.demand]

    def extend(i: int, left: list[Fraction]) -> Iterator[tuple[int, ...]]:
        if i == len(demand):
            yield ()
            return
        count = 0
        while min(left) >= 0:
            yield from ((count, *rest) for rest in extend(i + 1, left))
            left = [have - need for have, need in zip(left, demand[i], strict=True)]
            count += 1

    return list(extend(0, [decimal(p) for p in system.capacity]))


def keep_maximal(schedules: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Those to which no job can be added: no other one lies one job above."""
    known = set(schedules)
    return [u for u in schedules if not any((*u[:i], u[i] + 1, *u[i + 1 :]) in known for i in range(len(u)))]


_positive = st.floats(1e-3, 1e3)
_probability = st.floats(0, 1)


@st.composite
def _mixtures(draw: st.DrawFn) -> rota.Hyperexponential:
    parts = draw(st.lists(st.integers(0, 64), min_size=1, max_size=4).filter(any))
    means = draw(st.lists(_positive, min_size=len(parts), max_size=len(parts)))
    return rota.Hyperexponential(probabilities=tuple(part / sum(parts) for part in parts), means=tuple(means))


@st.composite
def _coxians(draw: st.DrawFn) -> rota.Coxian:
    rates = draw(st.lists(_positive, min_size=1, max_size=4))
    proceed = draw(st.lists(_probability, min_size=len(rates) - 1, max_size=len(rates) - 1))
    return rota.Coxian(rates=tuple(rates), proceed=tuple(proceed))


@st.composite
def _phase_types(draw: st.DrawFn) -> rota.PhaseType:
    n = draw(st.integers(1, 3))
    rates = np.array(draw(st.lists(st.lists(st.floats(0, 10), min_size=n, max_size=n), min_size=n, max_size=n)))
    leave = np.array(draw(st.lists(st.floats(0.1, 10), min_size=n, max_size=n)))
    np.fill_diagonal(rates, 0)
    generator = rates - np.diag(rates.sum(axis=1) + leave)
    return rota.PhaseType(initial=(1.0, *[0.0] * (n - 1)), generator=tuple(map(tuple, generator.tolist())))


def size_distributions() -> st.SearchStrategy[rota.model.SizeDistribution]:
    """Any distribution of each family."""
    weighted = st.lists(st.tuples(_positive, st.floats(0.1, 10)), min_size=1, max_size=4).map(lambda pairs: zip(*pairs, strict=True))
    return st.one_of(
        st.builds(rota.Exponential, mean=_positive),
        st.builds(rota.Deterministic, mean=_positive),
        st.builds(rota.Erlang, mean=_positive, phases=st.integers(1, 40)),
        _mixtures(),
        _coxians(),
        st.builds(rota.Fitted, mean=_positive, cv=st.floats(0.1, 10)),
        _phase_types(),
        st.builds(rota.LogNormal, mean=_positive, cv=st.floats(0.01, 100)),
        st.builds(rota.BoundedPareto, shape=st.floats(0.1, 5), low=st.floats(0.01, 1), high=st.floats(1.5, 1e6)),
        st.builds(rota.Weibull, mean=_positive, shape=st.floats(0.1, 10)),
        st.builds(rota.Empirical, values=st.lists(_positive, min_size=1, max_size=4).map(tuple)),
        weighted.map(lambda pair: rota.Empirical(**dict(zip(("values", "weights"), pair, strict=True)))),
    )


_batches = st.none() | st.one_of(
    st.builds(rota.GeometricBatch, mean=st.floats(1, 4)),
    st.lists(st.integers(1, 4), min_size=1, max_size=3).map(lambda sizes: rota.GivenBatch(sizes=tuple(sizes))),
    st.lists(st.tuples(st.integers(1, 4), st.floats(0.1, 2)), min_size=1, max_size=3).map(
        lambda pairs: rota.GivenBatch(sizes=tuple(n for n, _ in pairs), weights=tuple(w for _, w in pairs))
    ),
)


@st.composite
def _phased(draw: st.DrawFn) -> rota.MMPP | rota.MAP:
    """Two or three phases that all reach each other, with and without moves by arrivals."""
    n = draw(st.integers(2, 3))
    rate = st.floats(0.1, 3)
    moves = np.array(draw(st.lists(st.lists(rate, min_size=n, max_size=n), min_size=n, max_size=n)))
    np.fill_diagonal(moves, 0)
    batch = draw(_batches)
    if draw(st.booleans()):
        rates = draw(st.lists(st.just(0.0) | rate, min_size=n, max_size=n).filter(any))
        generator = moves - np.diag(moves.sum(axis=1))
        return rota.MMPP(rates=tuple(rates), generator=tuple(map(tuple, generator.tolist())), batch=batch)
    rows = st.lists(st.lists(st.just(0.0) | rate, min_size=n, max_size=n), min_size=n, max_size=n)
    marked = np.array(draw(rows.filter(lambda table: any(map(any, table)))))
    d0 = moves - np.diag(moves.sum(axis=1) + marked.sum(axis=1))
    return rota.MAP(d0=tuple(map(tuple, d0.tolist())), d1=tuple(map(tuple, marked.tolist())), batch=batch)


@st.composite
def _bursts(draw: st.DrawFn) -> rota.Bursts:
    share = draw(st.floats(0.05, 0.9))
    part = draw(st.floats(0.05, 1.0))
    return rota.Bursts(factor=1 + part * (1 / share - 1), share=share, length=draw(st.floats(0.2, 10)), batch=draw(_batches))


def arrival_processes() -> st.SearchStrategy[rota.model.ArrivalProcess]:
    """Any process of each family, with batches and without."""
    return st.one_of(st.builds(rota.Poisson, batch=_batches), _bursts(), _phased())


@st.composite
def described_systems(draw):
    """Systems with any names, numbers and distributions."""
    names = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=3, unique=True)
    types, resources = draw(names), draw(names)
    capacity = draw(st.lists(st.floats(1e-6, 1e20), min_size=len(resources), max_size=len(resources)))
    part = st.floats(0.001, 1)
    model = draw(st.sampled_from(["full", "none", "setup"]))
    return rota.System(
        capacity=capacity,
        demand=[[amount * draw(part) for amount in capacity] for _ in types],
        arrival_rate=[draw(st.floats(0, 1e300)) for _ in types],
        sizes=[draw(size_distributions()) for _ in types],
        arrivals=[draw(arrival_processes()) for _ in types],
        names=types,
        resources=resources,
        preemption=model,
        setup_time=draw(st.floats(1e-9, 1e9)) if model == "setup" else None,
    )


def compared(results: dict[str, rota.Result]) -> EarlyComparison:
    """Results by policy as a comparison of which none was stopped early."""
    return EarlyComparison(tuple(results.values()), {}, tuple(results))
