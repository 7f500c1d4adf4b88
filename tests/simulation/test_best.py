"""`find_best`: which policy is best, with as few jobs as that takes."""

import numpy as np
import pytest

import rota
from rota.simulation.best import RaceProgress

PAPER = rota.read_system("examples/paper.toml").scaled(load=0.7)
MM1 = rota.System([1], [[1]], [0.5], [1.0])
SLOW = rota.MSR([(0, 0, 2), (1, 4, 0)], (0.5, 0.5), "full", 2.0)


def told(found: rota.Best) -> list:
    """Policies, verdicts and numbers of jobs."""
    return [(one.label, one.verdict, one.result.jobs, one.result.mean_response_time, one.worse_by) for one in found.contenders]


def test_the_best_is_found_and_others_are_dropped():
    """MaxWeight beats First-Fit and a rota on the paper's server: they get fewer jobs than allowed; the means agree with `compare`."""
    found = rota.find_best(PAPER, ["first-fit", SLOW, "max-weight"], jobs=400_000, seed=1)
    assert found.decided
    assert [one.verdict for one in found.contenders] == ["best", "worse", "worse"]
    assert found.winner is not None
    assert found.winner.label == "max-weight"
    assert found.simulated < 3 * 400_000 / 2
    assert found.rounds > 1
    long = rota.compare(PAPER, ["max-weight", "first-fit", SLOW], jobs=200_000, seed=77)
    assert long.best is long.results[0]
    for one, other in zip(found.contenders, long.results, strict=True):
        assert abs(one.result.mean_response_time - other.mean_response_time) < 2 * (one.result.interval + other.interval)
        assert one.worse_by.mean >= one.worse_by.interval
    assert "max-weight" in repr(found)
    assert "first-fit" in found._repr_html_()


def test_the_difference_holds_the_exact_one():
    """Two rotas whose means are known exactly: their difference lies within twice the interval that was found."""
    system = rota.System([1], [[1], [1]], [0.2, 0.2], [1.0, 1.0])
    policies = [rota.MSR([[1, 0], [0, 1]], [0.5, 0.5], "full", rate) for rate in (10.0, 0.3)]
    exact = [rota.analyze(system, policy).mean_response_time for policy in policies]
    found = rota.find_best(system, policies, jobs=200_000, seed=2)
    best, other = found.contenders
    assert best.policy is policies[int(np.argmin(exact))]
    assert abs(other.worse_by.mean - (max(exact) - min(exact))) < 2 * other.worse_by.interval


def test_workers_do_not_change_the_answer():
    """On one thread or three the same policies are dropped in the same rounds."""
    one, three = (rota.find_best(PAPER, ["fcfs", "first-fit", SLOW], jobs=100_000, seed=3, workers=n) for n in (1, 3))
    assert told(one) == told(three)


def test_equal_policies_are_level():
    """The same policy twice: the difference is zero, so the race ends at once; one is the best, the other level with it."""
    found = rota.find_best(MM1, ["fcfs", "fcfs"], jobs=1_000_000)
    assert found.decided
    assert [(one.label, one.verdict) for one in found.contenders] == [("fcfs (1)", "best"), ("fcfs (2)", "level")]
    assert found.simulated <= 2 * 40_000
    assert "level with fcfs (2)" in repr(found)


def test_few_jobs_leave_it_open():
    """If the jobs do not suffice, the answer says against whom."""
    found = rota.find_best(PAPER, ["first-fit", "easy"], jobs=1000, until=0.0001, seed=1)
    assert not found.decided
    assert [one.verdict for one in found.contenders] == ["best", "open"]
    assert "not decided against" in repr(found)
    assert all(one.result.jobs == 1000 for one in found.contenders)


def test_too_few_jobs_for_a_mean():
    """If no policy has a mean, there is no winner, and the answer says why."""
    found = rota.find_best(PAPER, ["first-fit", "easy"], jobs=200)
    assert found.winner is None
    assert "too few jobs for a mean" in repr(found)


def test_growing_queues_are_dropped():
    """FCFS is unstable where MaxWeight is not: it is dropped, and alone it leaves no winner."""
    crowded = PAPER.scaled(load=0.95)
    found = rota.find_best(crowded, ["fcfs", "max-weight"], jobs=400_000)
    assert {one.label: one.verdict for one in found.contenders} == {"max-weight": "best", "fcfs": "growing"}
    assert found.contenders[1].result.jobs < 400_000
    alone = rota.find_best(crowded, ["fcfs"], jobs=100_000)
    assert alone.winner is None
    assert not alone.decided
    assert "under every policy" in repr(alone)


def test_a_list_of_jobs():
    """A list is played at most once, with every job counted."""
    rng = np.random.default_rng(0)
    jobs = rota.Jobs(np.cumsum(rng.exponential(2.0, 30_000)), np.zeros(30_000, dtype=int), rng.exponential(1.0, 30_000))
    found = rota.find_best(MM1, ["fcfs", "first-fit"], workload=jobs)
    assert all(one.result.jobs <= 30_000 and one.result.warmup == 0 for one in found.contenders)


def test_what_cannot_run_is_an_error():
    """A policy that is not for this system is in `errors`; if none can run, that is said. Wrong numbers and no jobs are refused."""
    two = rota.MSR([[1, 0], [0, 1]], [0.5, 0.5], "full", 1.0)
    found = rota.find_best(MM1, ["fcfs", two], jobs=20_000)
    assert list(found.errors) == ["pMSR"]
    with pytest.raises(rota.BadSpec, match="none of them can run on this system"):
        rota.find_best(MM1, [two], jobs=20_000)
    with pytest.raises(rota.BadSpec, match="until: must be between 0 and 1"):
        rota.find_best(MM1, ["fcfs"], until=1.0)
    with pytest.raises(rota.Infeasible, match="no jobs arrive"):
        rota.find_best(MM1.replace(arrival_rate=[0.0]), ["fcfs"])


def test_progress():
    """Progress says how many policies are left, and how many jobs each has seen."""
    seen: list[RaceProgress] = []
    rota.find_best(MM1, ["fcfs", "fcfs"], jobs=100_000, progress=seen.append)
    assert seen[-1].left == 2
    assert seen[-1].jobs >= 20_000


def test_what_a_look_settled_stays_settled():
    """A race that ends before its jobs are used up is decided: what the jobs still inside add at the end does not open it again."""
    fleet = rota.read_system("examples/fleet.toml")
    found = rota.find_best(fleet, ["first-fit", "pinned"], dispatch=["jsq", "pull"], until=0.02, jobs=1_000_000)
    assert max(one.result.jobs for one in found.contenders) < 1_000_000
    assert found.decided
    for one in found.contenders:
        if one.verdict == "level":
            assert abs(one.worse_by.mean) + one.worse_by.interval <= 0.021 * found.winner.result.mean_response_time
