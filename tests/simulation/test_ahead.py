"""The simulator from a given state: it goes on as if it had been there before, and stops when it is told to."""

from __future__ import annotations

import numpy as np
import pytest

import rota
from rota.decide import decider_of, new_state, seeded
from rota.model.workload import Chunk
from rota.simulation.ahead import Ahead, Present
from rota.simulation.engine import ARRIVE, FINISH, STARTED

NOW = 50.0
NOBODY = Chunk(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))


def one_slot():
    """One slot; a job that runs (place 4) and two that wait (places 0 and 2), with numbers 7, 8, 9."""
    system = rota.System([1], [[1]], [0.1], [1.0])
    decider = decider_of(system, rota.FCFS())
    state = new_state(system, decider, seeded(np.random.SeedSequence(0)))
    newer, older, sequence = (np.full(5, -1, dtype=np.int64) for _ in range(3))
    newer[4], newer[0], older[0], older[2] = 0, 2, 4, 0
    sequence[[4, 0, 2]] = 7, 8, 9
    state = state._replace(newer=newer, older=older, sequence=sequence, finish=np.full(5, NOW + 1), estimate=np.ones(5))
    state.clock[0], state.system[0], state.running[0], state.free[0], state.counters[0] = NOW, 3, 1, 0, 1
    state.oldest[0], state.first_waiting[0], state.newest[0] = 4, 0, 2
    kinds = np.array([0, -1, 0, -1, 0])
    serving = np.array([False, False, False, False, True])
    return system, decider, Present(state, kinds, serving, 10, np.inf, False)


def ahead(remaining=(2.0, 0.0, 3.0, 0.0, 1.5)):
    """The simulation from there."""
    system, decider, present = one_slot()
    return Ahead(system, decider, present, np.array(remaining), np.random.SeedSequence(1))


def test_it_goes_on_from_there():
    """The one that runs ends when it has what it needs, the others start in their order, and who arrives comes last."""
    coming = Chunk(np.array([NOW + 1.0]), np.array([0]), np.array([0.5]), np.array([0.5]))
    entries = ahead().go_on(coming, np.inf)
    assert entries[:, [0, 1, 3]].tolist() == [
        [NOW + 1.0, ARRIVE, 10],
        [NOW + 1.5, FINISH, 7],
        [NOW + 1.5, STARTED, 8],
        [NOW + 3.5, FINISH, 8],
        [NOW + 3.5, STARTED, 9],
        [NOW + 6.5, FINISH, 9],
        [NOW + 6.5, STARTED, 10],
        [NOW + 7.0, FINISH, 10],
    ]
    assert Ahead.start_of(entries, 9) == NOW + 3.5
    assert Ahead.start_of(entries, 7) is None


@pytest.mark.parametrize("stops", [[1.0], [1.5, 2.0], [0.1, 0.2, 3.4, 3.5, 3.6], [100.0]])
def test_it_stops_in_time(stops):
    """Wherever it is cut, the same happens, all of it by the time it was told; nothing is left of a place that was unused."""
    whole, parts = ahead(), ahead()
    expected, found = whole.go_on(NOBODY, np.inf), []
    for stop in (*stops, np.inf):
        part = parts.go_on(NOBODY, NOW + stop)
        assert (part[:, 0] <= NOW + stop).all()
        found.append(part)
    assert np.concatenate(found).tolist() == expected.tolist()
    assert parts.present == 0
    assert parts.is_dead()


def test_the_policy_is_asked_when_somebody_else_gives_room():
    """Room that the policy does not know of: it is asked at that time, and then the next job starts."""
    simulated = ahead(remaining=(2.0, 0.0, 3.0, 0.0, 100.0))
    assert len(simulated.go_on(NOBODY, NOW + 10)) == 0
    simulated.state.free[0] += 1
    simulated.ask_again(NOW + 10)
    assert Ahead.start_of(simulated.go_on(NOBODY, NOW + 11), 8) == NOW + 10
