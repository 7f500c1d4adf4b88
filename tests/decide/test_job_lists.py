"""The lists of the jobs of a type."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.decide import decider_of, new_state, seeded
from rota.decide.job_lists import link, unlink
from systems import paper_example


def new(places):
    """An empty state with so many places for jobs."""
    system = paper_example()
    state = new_state(system, decider_of(system, rota.FCFS()), seeded(np.random.SeedSequence(0)))
    return state._replace(newer=np.zeros(places, dtype=np.int64), older=np.zeros(places, dtype=np.int64))


def listed(state, i):
    """The jobs of a type from old to new, which are the same from new to old."""
    forth, back = [], []
    job = state.oldest[i]
    while job >= 0:
        forth.append(int(job))
        job = state.newer[job]
    job = state.newest[i]
    while job >= 0:
        back.append(int(job))
        job = state.older[job]
    assert forth == back[::-1]
    return forth


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20)), max_size=60))
def test_jobs_come_and_go(moves):
    """Jobs join at the end of their type's list and leave it anywhere; the first that waits is the oldest where none runs."""
    state, expected, types = new(60), {0: [], 1: [], 2: []}, {}
    for job, (i, which) in enumerate(moves):
        if which < 12 or not types:
            link(state, job, i)
            expected[i].append(job)
            types[job] = i
        else:
            gone = list(types)[which % len(types)]
            unlink(state, gone, types[gone])
            expected[types.pop(gone)].remove(gone)
        for k, jobs in expected.items():
            assert listed(state, k) == jobs
            assert state.first_waiting[k] == (jobs[0] if jobs else -1)
