"""Places behind the heap: jobs that stop and go on type by type do what they do one by one, to the last bit."""

import numpy as np
import pytest

import rota
from rota.decide import decider_of
from rota.model.workload import Chunk
from rota.simulation import PoissonArrivals
from rota.simulation.run import Run
from rota.simulation.server import BACK, CHUNK, FIRST_CHUNK, IN_GROUPS, PAUSED, PAUSED_JOBS, RUNNING

# Two types that mostly take turns, so that nearly all jobs stop at once, and one of which a few go on under each schedule.
SYSTEM = rota.System([200], [[1], [1], [2]], [85.0, 85.0, 14.0], [1.0, 1.0, 1.0])
ROTA = rota.MSR([[200, 0, 0], [20, 150, 15], [0, 40, 80]], [0.4, 0.4, 0.2], "full", 3.0)


def run_of(policy, chunks=4, in_groups=True, **options):
    """A run of some thousand jobs; with `in_groups` jobs of a type may stop and go on together."""
    run = Run(SYSTEM, decider_of(SYSTEM, policy), np.random.SeedSequence(1), batch_jobs=128, **options)
    run.server.numbers[IN_GROUPS] = in_groups
    most = 0
    arrivals = PoissonArrivals(2000).chunks(SYSTEM, np.random.SeedSequence(2))
    for _ in range(chunks):
        run.feed(next(arrivals))
        most = max(most, int(run.server.numbers[PAUSED_JOBS]))
    return run, most


def what_was_counted(run):
    """Everything that a run counted."""
    rows, areas, spans = run.batches()
    return [rows, areas, spans, run.tally.preemptions, run.tally.buckets, run.state.system, run.state.running]


@pytest.mark.parametrize("policy", [ROTA, ROTA.replace(backfill=True), rota.MaxWeight()], ids=["rota", "backfill", "max-weight"])
@pytest.mark.parametrize("check", [False, True])
def test_together_or_one_by_one(policy, check):
    """Every sum, integral and histogram is the same bit for bit, with and without checks after each event."""
    (together, paused), (single, _) = run_of(policy, check=check), run_of(policy, in_groups=False)
    assert together.tally.preemptions.sum() > 100
    assert paused > 10 or policy != ROTA
    for a, b in zip(what_was_counted(together), what_was_counted(single), strict=True):
        assert (a == b).all()


def test_with_a_log_or_without():
    """With a log jobs stop and go on one by one, each with its entry; what is counted stays the same."""
    (logged, _), (plain, _) = run_of(ROTA, log_jobs=10**9), run_of(ROTA)
    for a, b in zip(what_was_counted(logged), what_was_counted(plain), strict=True):
        assert (a == b).all()


def test_unfinished_jobs_that_are_paused():
    """A job that is paused when the run ends counts with what is left of it, as one whose data hold it."""
    sums = []
    for in_groups in (True, False):
        run, _ = run_of(ROTA, in_groups=in_groups)
        assert run.server.numbers[PAUSED_JOBS] > 0
        run.count_unfinished()
        sums.append(run.tally.rows.copy())
    assert (sums[0] == sums[1]).all()


def test_plain_python_agrees():
    """The engine in plain Python pauses the same jobs."""
    (compiled, _), (plain, paused) = run_of(ROTA, 1), run_of(ROTA, 1, compiled=False)
    assert paused > 10
    for a, b in zip(what_was_counted(compiled), what_was_counted(plain), strict=True):
        assert np.allclose(a, b, rtol=1e-12)


def test_no_place_at_the_back():
    """Where all chunks are taken jobs stay in the heap, paused jobs give up their places, and what is counted stays the same."""
    expected, _ = run_of(ROTA)
    run = Run(SYSTEM, decider_of(SYSTEM, ROTA), np.random.SeedSequence(1), batch_jobs=128, check=True)
    run.server.numbers[IN_GROUPS] = 1
    for chunk, _ in zip(PoissonArrivals(2000).chunks(SYSTEM, np.random.SeedSequence(2)), range(4), strict=False):
        for at in range(0, 2000, 100):
            part = Chunk(*(column[at : at + 100] for column in chunk))
            run._make_room(100)
            few = len(run.server.jobs) + 3 * CHUNK  # fewer places than one schedule takes
            if len(run.server.heap) > few:
                run.server = run.server._replace(
                    heap=run.server.heap[:few].copy(), ends=run.server.ends[:few].copy(), left=run.server.left[:few].copy()
                )
            run.feed(part)
            assert run.server.numbers[BACK] <= 3 * CHUNK
    for a, b in zip(what_was_counted(run), what_was_counted(expected), strict=True):
        assert (a == b).all()


def test_paused_jobs_are_the_first_that_wait():
    """Of each type the paused jobs are at the beginning of the queue, each in a chunk of its type, and no running one is among them."""
    run, _ = run_of(ROTA)
    server, jobs = run.server, run.server.jobs
    chunks = {}
    for i in range(3):
        chunk = int(server.groups[i, FIRST_CHUNK])
        while chunk >= 0:
            chunks[chunk], chunk = i, int(server.chunks[chunk])
        job, paused = int(run.state.first_waiting[i]), []
        while job >= 0:
            paused.append(jobs["position"][job] >= 0)
            job = int(jobs["newer"][job])
        assert sum(paused) == server.groups[i, PAUSED]
        assert all(paused[: sum(paused)])
    for place in range(len(jobs), len(jobs) + int(server.numbers[BACK])):
        if server.ends[place] < np.inf or server.left[place] < np.inf:
            assert chunks[(place - len(jobs)) // CHUNK] == jobs["kind"][server.heap[place]]
    assert (
        run.state.running.sum() == server.numbers[RUNNING] + (server.ends[len(jobs) : len(jobs) + int(server.numbers[BACK])] < np.inf).sum()
    )
