"""Policies and arrival processes of a user's own, in a file of its own: what studies import by name."""

import sys

import pytest

SOURCE = '''
import numba as nb
import numpy as np
import rota
from rota.decide import fits_one
from rota.model import Chunk


def fill(state, target, order):
    for r in range(state.residual.shape[0]):
        state.residual[r] = state.capacity[r]
    for i in order:
        target[i] = 0
        while target[i] < state.system[i] and fits_one(state.demand, state.residual, i):
            target[i] += 1
            for r in range(state.residual.shape[0]):
                state.residual[r] -= state.demand[i, r]
    return np.inf


fill = nb.njit(fill)


def small_first(state, target):
    """As many jobs of the first type as fit, then of the next."""
    return fill(state, target, np.arange(target.shape[0]))


def in_order(state, target):
    return fill(state, target, state.data)


big_first = rota.Custom(in_order, name="big_first", data=np.array([2, 1, 0]))
number = 3


class Pairs:
    """Jobs that come two at a time, both of one type."""

    def chunks(self, system, seed):
        rng = np.random.default_rng(seed)
        rates, now = system.arrival_rate, 0.0
        while True:
            gaps = rng.exponential(2 / rates.sum(), 1000)
            times = np.repeat(now + np.cumsum(gaps), 2)
            kinds = np.repeat(rng.choice(len(rates), 1000, p=rates / rates.sum()), 2)
            sizes = rng.exponential(1 / system.service_rate[kinds])
            now = times[-1]
            yield Chunk(times, kinds, sizes, sizes)
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The name of a module with `small_first`, `in_order`, `big_first` and `Pairs`, in the working directory; its file."""
    name = f"mine_{tmp_path.name}".replace("-", "_")
    file = tmp_path / f"{name}.py"
    file.write_text(SOURCE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    yield name, file
    sys.modules.pop(name, None)
