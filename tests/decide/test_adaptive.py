"""Queue-driven rotas against their definition, event by event; their corners; and that what backfills does not delay the goal."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from reference_simulator import PREEMPT, START, Given, assert_agrees, engine_log, jobs_for
from rota.decide import decider_of, describe, new_state, seeded
from rota.errors import BadSpec, Infeasible
from systems import EXAMPLES, reference_schedules, small_systems


@st.composite
def adaptive_policies(draw, system):
    """Goals among the schedules, each type's importance, and all thresholds."""
    schedules = [row for row in reference_schedules(system) if any(row)]
    goals = draw(st.lists(st.sampled_from(schedules), min_size=1, max_size=4, unique=True))
    K = len(system.names)
    return rota.Adaptive(
        goals,
        draw(st.sampled_from([0.0, 0.5, 8.0])),
        full=draw(st.sampled_from([0.0, 0.6, 1.0, np.inf])),
        cap=draw(st.sampled_from([1.0, 1.5, np.inf])),
        waive=draw(st.sampled_from([0.0, 1.0, 4.0])),
        free=draw(st.sampled_from([0.0, 2.3, 30.7, np.inf])),
        slack=draw(st.sampled_from([0.0, 0.37])),
        order=draw(st.sampled_from(["weight", "arrival"])),
        importance=draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=K, max_size=K)),
    )


@given(data=st.data(), system=small_systems())
def test_it_agrees_with_its_definition(data, system):
    """Free growth, goal, slots and safe backfilling are those of the reference in plain Python; no job is ever stopped."""
    policy = data.draw(adaptive_policies(system))
    log = assert_agrees(system, policy, data.draw(jobs_for(range(len(system.names)))))
    assert all(kind != PREEMPT for _, kind, _, _ in log)


@given(data=st.data(), system=small_systems())
def test_a_corner_is_max_weight_without_preemption(data, system):
    """With free = ∞ it decides as MaxWeight without preemption, whatever its goals are."""
    goals = [row for row in reference_schedules(system) if any(row)][-1:]
    jobs = data.draw(jobs_for(range(len(system.names))))
    assert engine_log(system, rota.Adaptive(goals, free=np.inf), jobs) == engine_log(system, rota.MaxWeight("none"), jobs)


@given(data=st.data(), system=small_systems())
def test_a_corner_is_first_fit(data, system):
    """With full = ∞ and the oldest first it decides as First-Fit, whatever its goals are."""
    goals = [row for row in reference_schedules(system) if any(row)][-1:]
    jobs = data.draw(jobs_for(range(len(system.names))))
    policy = rota.Adaptive(goals, full=np.inf, order="arrival")
    assert engine_log(system, policy, jobs) == engine_log(system, rota.FirstFit(), jobs)


def starts(policy, jobs):
    """When each job starts on a server of 4, with jobs of 1 and of 4."""
    system = rota.System([4], [[1], [4]], [1.0, 0.2], [1.0, 1.0])
    log = engine_log(system, policy, Given(tuple((*job, job[2]) for job in jobs)))
    return {job: time for time, kind, _, job in log if kind == START}


def test_it_holds_its_goal():
    """The goal of small jobs is kept while one is there, so five large ones wait for all three; without hold they outweigh it at once."""
    large = [(0.0, 1, 1.0)] * 5
    jobs = [(0.0, 0, 1.0), *large, (0.5, 0, 1.0), (1.2, 0, 1.0)]
    goals = [[4, 0], [0, 1]]
    held = starts(rota.Adaptive(goals, hold=50.0), jobs)
    assert (held[6], held[7], held[1]) == (0.5, 1.2, 2.2)
    left = starts(rota.Adaptive(goals, hold=0.0), jobs)
    assert left[1] == 1.0
    assert left[6] > 1.0


def test_room_is_kept_for_the_goal_unless_it_is_waived():
    """While the large job waits to be alone, small ones do not start; if what waits weighs no more than `waive`, they do."""
    jobs = [(0.0, 0, 1.0), (0.1, 1, 1.0), (0.2, 0, 1.0), (0.3, 1, 1.0)]
    assert starts(rota.Adaptive([[0, 1]]), jobs) == {0: 0.0, 1: 1.0, 3: 2.0, 2: 3.0}
    assert starts(rota.Adaptive([[0, 1]], waive=1.0), jobs) == {0: 0.0, 2: 0.2, 1: 1.2, 3: 2.2}


def test_a_goal_without_enough_jobs_is_left():
    """One small job does not fill four slots, so the goal of the large job takes its place although it is held."""
    jobs = [(0.0, 0, 1.0), (0.0, 0, 1.0), (0.0, 0, 1.0), (0.0, 0, 1.0), (0.5, 1, 1.0), (0.6, 0, 1.0)]
    goals = [[4, 0], [0, 1]]
    assert starts(rota.Adaptive(goals, hold=50.0), jobs)[5] == 1.0
    assert starts(rota.Adaptive(goals, hold=50.0, full=1.0), jobs) == {0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0, 5: 1.0, 4: 2.0}


def test_many_jobs_of_a_type_with_few_slots_do_not_fill_a_goal_if_they_are_capped():
    """Jobs for one slot of a goal and none for the other three: it is left for the full one, and the server drains, only with a cap."""
    system = rota.System([4], [[1], [1], [4]], [0.5, 0.5, 0.2], [1.0, 1.0, 1.0])
    jobs = Given(tuple((time, kind, 1.0, 1.0) for time, kind in [(0.0, 0), (0.0, 0), (0.0, 0), (0.1, 2), (0.5, 0)]))

    def started(cap):
        log = engine_log(system, rota.Adaptive([[1, 3, 0], [0, 0, 1]], hold=50.0, full=0.7, cap=cap), jobs)
        return {job: time for time, kind, _, job in log if kind == START}

    capped, plain = started(1.0), started(np.inf)
    assert (capped[3], capped[4]) == (1.0, 2.0)  # 1/4 of the slots have jobs
    assert (plain[4], plain[3]) == (0.5, 1.5)  # 3/4


def test_it_is_stable_where_max_weight_without_preemption_and_first_fit_are_not():
    """The paper's example at load 0.95: a mean response time, with an interval that is narrow enough to tell."""
    system = rota.read_system(EXAMPLES / "paper.toml").scaled(load=0.95)
    policy = rota.Adaptive(rota.system_load(system).candidates, full=0.9, waive=3.0)
    found = rota.simulate(system, policy, jobs=600_000, seed=2)
    assert found.stable
    assert found.mean_response_time + found.interval < 20
    assert not rota.simulate(system, "max-weight-np", jobs=600_000, seed=2).stable


def test_it_says_which_goal_it_has():
    """The description names the goal and the others."""
    system = rota.read_system(EXAMPLES / "paper.toml")
    policy = rota.Adaptive([[0, 0, 2], [1, 4, 0]])
    says = describe(policy, new_state(system, decider_of(system, policy), seeded(np.random.SeedSequence(0))))
    assert says.slots == (0, 0, 2)
    assert says.schedules == ((0, 0, 2), (1, 4, 0))


def test_goals_must_be_schedules_of_the_system():
    """A goal that does not fit, another number of types and other names are refused."""
    system = rota.read_system(EXAMPLES / "paper.toml")
    with pytest.raises(Infeasible, match="does not fit the server"):
        rota.simulate(system, rota.Adaptive([[9, 9, 9]]), jobs=1000)
    with pytest.raises(BadSpec, match="must have 3 columns"):
        rota.simulate(system, rota.Adaptive([[1, 1]]), jobs=1000)
    with pytest.raises(BadSpec, match="are not those of the system"):
        rota.simulate(system, rota.Adaptive([[1, 1, 0]], names=("a", "b", "c")), jobs=1000)
