"""`ModulatingProcess`: generator, stationary law, loop, names."""

import numpy as np
import pytest
from hypothesis import given

from rota.errors import BadSpec
from rota.process import SETUP, TIMER, ModulatingProcess, build_process
from rotas import paper_case, systems_and_rotas
from systems import paper_example


def process_of(schedules, moves, working=None):
    """A process by hand; a move is (source, target, rate, trigger)."""
    source, target, rate, trigger = zip(*moves, strict=True) if moves else ((), (), (), ())
    return ModulatingProcess(
        schedules=np.array(schedules),
        held=np.array(schedules),
        candidate=np.arange(len(schedules)) if working is None else np.array(working),
        source=np.array(source, dtype=np.int64),
        target=np.array(target, dtype=np.int64),
        rate=np.array(rate, dtype=np.float64),
        trigger=np.array(trigger, dtype=np.int64),
        names=tuple(f"type{i + 1}" for i in range(len(schedules[0]))),
    )


@given(systems_and_rotas())
def test_generator_and_stationary_law(case):
    """Rows of G sum to zero, its other entries are the rates of the moves, and stationary·G = 0 with stationary > 0."""
    process = build_process(*case)
    G = process.generator.toarray()
    largest = max(process.exit_rate.max(), 1e-300)
    assert np.abs(G.sum(axis=1)).max() <= 1e-14 * largest
    assert np.diag(G) == pytest.approx(-process.exit_rate, rel=1e-14)
    between = np.zeros_like(G)
    np.add.at(between, (process.source, process.target), process.rate)
    assert np.array_equal(np.where(np.eye(len(G)), 0, G), between)
    assert (process.stationary > 0).all()
    assert process.stationary.sum() == pytest.approx(1, rel=1e-14)
    assert np.abs(process.stationary @ G).max() <= 1e-13 * max((process.stationary * process.exit_rate).max(), 1e-300)


@given(systems_and_rotas())
def test_means(case):
    """E[u] is the stationary mean of the schedules, and the working fraction that of the working states."""
    process = build_process(*case)
    assert process.mean_schedule == pytest.approx(sum(p * u for p, u in zip(process.stationary, process.schedules, strict=True)), rel=1e-13)
    switching = sum(p for p, c in zip(process.stationary, process.candidate, strict=True) if c < 0)
    assert process.working_fraction == pytest.approx(1 - switching, rel=1e-13)


@given(systems_and_rotas(loop=True))
def test_a_loop_is_followed_round(case):
    """In a loop every state leads to the next one in `loop`, and the law of the loop is that of its generator."""
    process = build_process(*case)
    if len(process.source) == 0:  # only one schedule fits this server
        assert process.loop is None
        return
    order = process.loop.tolist()
    assert sorted(order) == list(range(len(process)))
    moves = set(zip(process.source.tolist(), process.target.tolist(), strict=True))
    assert moves == set(zip(order, [*order[1:], order[0]], strict=True))
    null = np.linalg.svd(process.generator.toarray().T)[2][-1]
    assert process.stationary == pytest.approx(null / null.sum(), rel=1e-9)


@pytest.mark.parametrize(
    "moves",
    [
        [(0, 1, 1.0, TIMER), (1, 0, 1.0, TIMER), (2, 0, 1.0, TIMER)],  # a tail into a cycle
        [(0, 1, 1.0, TIMER), (1, 0, 1.0, TIMER), (1, 2, 1.0, TIMER), (2, 0, 1.0, TIMER)],  # two ways out of a state
        [(0, 1, 1.0, TIMER), (0, 2, 1.0, TIMER), (1, 0, 1.0, TIMER)],  # as many moves as states, but one has none
    ],
)
def test_not_a_loop(moves):
    """What has branches or more than one cycle is no loop."""
    assert process_of([[1], [2], [3]], moves).loop is None


def test_stationary_law_of_a_large_process():
    """Beyond the size of dense elimination the law is the same: a birth–death chain of 2000 states has the law of detailed balance."""
    n, up, down = 2000, 1.0, 1.005
    moves = [(s, s + 1, up, TIMER) for s in range(n - 1)] + [(s + 1, s, down, TIMER) for s in range(n - 1)]
    process = process_of([[1]] * n, moves)
    law = (up / down) ** np.arange(n)
    assert process.stationary == pytest.approx(law / law.sum(), rel=1e-8)


def test_one_state():
    """A process of one state stays there."""
    process = process_of([[3, 1]], [])
    assert process.stationary.tolist() == [1]
    assert process.loop is None
    assert process.mean_schedule.tolist() == [3, 1]
    assert process.generator.toarray().tolist() == [[0]]
    assert process.working_fraction == 1
    assert len(process) == 1


def test_arrays_are_read_only():
    """The arrays of a process cannot be changed."""
    process = build_process(*paper_case(0.9, "setup"))
    arrays = (process.schedules, process.held, process.candidate, process.source, process.target, process.rate, process.trigger)
    for array in (*arrays, process.stationary):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_names():
    """States are named as in the paper's figures, triggers in words."""
    process = build_process(*paper_case(0.9, "none"))
    names = [process.state_name(s) for s in range(len(process))]
    assert names[:4] == ["w(0, 0, 2)", "w(1, 4, 0)", "t(0, 0, 2)", "t(0, 0, 1)"]
    assert {process.trigger_name(m) for m in range(len(process.source))} == {
        "timer",
        "completion of type1",
        "completion of type2",
        "completion of type3",
    }
    setup = build_process(*paper_case(0.9, "setup"))
    assert setup.state_name(2) == "t(0, 0, 0)+2 in setup"
    assert {setup.trigger_name(m) for m in np.flatnonzero(setup.trigger == SETUP)} == {"setup"}


@pytest.mark.parametrize("preemption", ["full", "none", "setup"])
def test_faster_timers(preemption):
    """Timers run c times as fast: the process of the same policy at c times the switching rate."""
    system = paper_example(0.5)
    slow, fast = (build_process(system, paper_case(0.5, preemption, alpha)[1]) for alpha in (0.5, 1.5))
    assert slow.with_timers(3).rate == pytest.approx(fast.rate, rel=1e-14)
    assert slow.with_timers(3).stationary == pytest.approx(fast.stationary, rel=1e-13)


# ------------------------------------------------------------------------------------------------------------ what is refused


def fields_of(process):
    """The fields of a process, to be changed."""
    return {
        name: np.array(getattr(process, name)) for name in ("schedules", "held", "candidate", "source", "target", "rate", "trigger")
    } | {"names": process.names}


@pytest.mark.parametrize(
    ("field", "change", "place", "rule"),
    [
        ("schedules", lambda a: a[0], "schedules", "must be a table (N, K)"),
        ("schedules", lambda a: a[:0], "schedules", "must be a table (N, K)"),
        ("schedules", lambda a: a + 0.5, "schedules", "must be whole numbers"),
        ("schedules", lambda a: "many", "schedules", "must be whole numbers"),
        ("schedules", lambda a: -a, "schedules.0", "must not be negative"),
        ("held", lambda a: a[:, :2], "held", "must have the shape (9, 3)"),
        ("held", lambda a: a - 1, "held.0", "at least the schedule"),
        ("candidate", lambda a: a[1:], "candidate", "must have the shape (9,)"),
        ("source", lambda a: a + 9, "source.0", "must be a state 0…8"),
        ("target", lambda a: a - 20, "target.0", "must be a state 0…8"),
        ("target", lambda a: a[:-1], "target", "must have the shape (9,)"),
        ("rate", lambda a: -a, "rate.0", "must be positive and finite"),
        ("rate", lambda a: a * np.nan, "rate.0", "must be positive and finite"),
        ("rate", lambda a: np.where(np.arange(9) == 4, np.inf, a), "rate.4", "must be positive and finite"),
        ("rate", lambda a: 0 * a, "rate.0", "leave out a move that never happens"),
        ("trigger", lambda a: a + 3, "trigger.1", "must be −1 (timer), −2 (setup)"),
        ("names", lambda a: a[:2], "names", "must name 3 types"),
    ],
)
def test_fields_that_do_not_fit_together(field, change, place, rule):
    """Wrong shapes, states that are not there, negative, infinite or undefined rates: each is told by place and rule."""
    fields = fields_of(build_process(*paper_case(0.5, "none", 0.1)))
    with pytest.raises(BadSpec) as caught:
        ModulatingProcess(**fields | {field: change(fields[field])})
    assert place in {problem.place for problem in caught.value.problems}
    assert rule in str(caught.value)


def test_a_move_to_itself_is_refused():
    """A move leads to another state."""
    with pytest.raises(BadSpec, match="another state than the source"):
        process_of([[1], [2]], [(0, 1, 1.0, TIMER), (1, 1, 1.0, TIMER)])


def test_lists_will_do():
    """Fields may be lists; they become read-only arrays, and what was given stays as it was."""
    rates = np.array([1.0, 2.0])
    process = ModulatingProcess([[1], [2]], [[1], [2]], [0, 1], [0, 1], [1, 0], rates, [TIMER, TIMER], ["a"])
    assert process.stationary == pytest.approx([2 / 3, 1 / 3])
    assert not process.rate.flags.writeable
    assert rates.flags.writeable
