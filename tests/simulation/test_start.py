"""Simulations that start in a given state: against transient analysis, forecasts and closed forms, under every policy."""

from __future__ import annotations

import numpy as np
import pytest

import rota
from every_policy import SYSTEM, policy_for
from rota.policy import preempts, records
from rotas import PREEMPTIONS, paper_case


def event_times(log, event, job):
    """When this happened to the job, in order."""
    return log.filter((log["event"] == event) & (log["job"] == job))["time"].to_list()


def queue_at(log, name, present, t):
    """Jobs of a type at time t, by the log."""
    of_type = log.filter((log["type"] == name) & (log["time"] <= t))
    return present + (of_type["event"] == "arrive").sum() - (of_type["event"] == "finish").sum()


@pytest.mark.parametrize("record", records(), ids=lambda record: record.name)
def test_every_policy(record):
    """Every policy goes on from jobs that wait and run: all end, no law of the engine is broken, nobody is stopped who may not be."""
    policy = policy_for(record)
    state = 0 if isinstance(policy, rota.MSR) else None
    for running in (None, [1, 0], [3, 0]):
        fits = running is None or state is None or policy.backfill or (np.array(running) <= policy.candidates[0]).all()
        if not fits:
            continue
        found = rota.simulate(SYSTEM, policy, jobs=400, seed=1, start=rota.Start([5, 3], running, state), log_jobs=400, check=True)
        assert (found.jobs, found.warmup, found.counted.sum(), found.unfinished.sum()) == (400, 0.0, 400, 0)
        first = found.log.filter((found.log["event"] == "finish") & (found.log["job"] < 0))
        assert sorted(first["job"].to_list()) == list(range(-8, 0))
        assert preempts(policy) or found.preemption_rate == 0
        for job in range(-8, -8 + sum(running or [])):  # they ran before, and are not started again unless they were stopped
            assert len(event_times(found.log, "start", job)) == len(event_times(found.log, "preempt", job))


@pytest.mark.parametrize("policy", ["fcfs", "first-fit", "easy"])
def test_it_is_as_if_they_had_just_come(policy):
    """Jobs that wait at time 0 are served as if all had come then: the whole run is the same, job by job, as that of a list of jobs."""
    system = SYSTEM.scaled(load=0.8)
    found = rota.simulate(system, policy, jobs=2000, seed=5, start=[30, 10], log_jobs=2000)

    def of_all_jobs(log, event):
        return log.filter(log["event"] == event).sort("job")

    begin, end = (of_all_jobs(found.log, event) for event in ("start", "finish"))
    times = np.concatenate([np.zeros(40), of_all_jobs(found.log, "arrive")["time"].to_numpy()])
    kinds = [system.names.index(name) for name in begin["type"]]
    same = rota.Jobs(times, kinds, end["time"].to_numpy() - begin["time"].to_numpy())
    again = rota.simulate(system, policy, workload=same, log_jobs=2040).log
    assert begin["job"].to_list() == end["job"].to_list() == list(range(-40, 2000))
    assert of_all_jobs(again, "start")["time"].to_numpy() == pytest.approx(begin["time"].to_numpy(), abs=1e-6)


def test_the_state_is_the_one_that_was_asked_for():
    """One slot, three jobs there, one of which runs: it ends first, the others start in turn, arrivals come last; names or counts."""
    system = rota.System([1], [[1]], [1e-6], sizes=[rota.Deterministic(mean=2.0)], names=("only",))
    for start in ({"only": 3}, [3], np.array([3])):
        log = rota.simulate(system, "fcfs", jobs=100, start=start, log_jobs=1).log
        assert [event_times(log, "start", job) for job in (-3, -2, -1)] == [[0.0], [2.0], [4.0]]
    result = rota.simulate(system, "fcfs", jobs=100, start=rota.Start({"only": 3}, {"only": 1}), log_jobs=1)
    (first,) = event_times(result.log, "finish", -3)
    assert 0 < first < 2.0  # seen at a random moment
    assert event_times(result.log, "start", -3) == []
    assert event_times(result.log, "start", -2) == [first]
    assert result.start == rota.Start((3,), (1,), None)
    assert result.start.in_words(system.names) == rota.Start({"only": 3}).in_words(system.names) == "3 × only"


def test_without_a_start_nothing_changes():
    """Zero jobs are the empty server."""
    system = SYSTEM.scaled(load=0.7)
    plain, empty = (rota.simulate(system, "first-fit", jobs=5000, seed=3, warmup=0.0, start=start) for start in (None, [0, 0]))
    assert plain.mean_response_time == empty.mean_response_time
    assert plain.fingerprint == empty.fingerprint


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_queues_over_time(preemption):
    """The mean number of jobs after a while, over 400 runs, is that of transient analysis: within four standard errors, which are small."""
    system, policy = paper_case(0.7, preemption, 0.5)
    answer, start = rota.analyze(system, policy), rota.Start([2, 9, 4], state=1)
    times = (0.5, 4.0)
    logs = [rota.simulate(system, policy, jobs=100, seed=seed, start=start, log_jobs=100).log for seed in range(400)]
    for i, name in enumerate(system.names):
        exact = answer.queue_length_at(i, times, present=start.present[i], state=1)
        for t, mean in zip(times, exact, strict=True):
            counts = np.array([queue_at(log, name, start.present[i], t) for log in logs])
            error = counts.std(ddof=1) / np.sqrt(len(counts))
            assert error < 0.12 * mean
            assert abs(counts.mean() - mean) < 4 * error


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_starts_and_ends_are_as_forecast(preemption):
    """The last of nine jobs starts and ends within the forecast's quantiles as often as that says, over 400 runs."""
    system, policy = paper_case(0.7, preemption, 0.5)
    law = rota.forecast(system, policy, 1, ahead=8, state=0)
    logs = [rota.simulate(system, policy, jobs=100, seed=seed, start=rota.Start([0, 9, 0], state=0), log_jobs=1).log for seed in range(400)]
    starts = np.array([event_times(log, "start", -1)[0] for log in logs])
    ends = np.array([event_times(log, "finish", -1)[0] for log in logs])
    for found, exact in ((starts, law.start), (ends, law.end)):
        for p in (0.5, 0.8, 0.95):
            assert abs((found <= exact.quantile(p)).mean() - p) < 4 * np.sqrt(p * (1 - p) / len(found))
        assert abs(found.mean() - exact.mean) < 4 * found.std() / np.sqrt(len(found))


def test_replications_from_a_state():
    """Independent runs from one state: the queue they have on average is above that of runs from an empty server."""
    system = SYSTEM.scaled(load=0.8)
    full, empty = (rota.replicate(system, "first-fit", replications=4, jobs=500, seed=1, start=start) for start in ([200, 20], [0, 0]))
    assert (full.mean_queue_length > 2 * empty.mean_queue_length).all()
    assert full.results[0].start == rota.Start((200, 20))


def test_a_file_keeps_the_start(tmp_path):
    """A result that is saved and read says what it began with."""
    result = rota.simulate(SYSTEM, "first-fit", jobs=1000, start=rota.Start({"big": 2}, {"big": 1}))
    rota.save_result(result, tmp_path / "result.json")
    assert rota.read_result(tmp_path / "result.json").start == rota.Start((0, 2), (0, 1), None)


ROTA = rota.MSR([[8, 0], [0, 2]], [0.5, 0.5], "none", 1.0)


@pytest.mark.parametrize(
    ("policy", "start", "says"),
    [
        ("first-fit", {"tiny": 1}, r"start: no such type \(there are: small, big\)"),
        ("first-fit", {"small": -1}, r"start\.small: must be at least 0"),
        ("first-fit", {"small": 1.5}, r"start\.small: must be a whole number"),
        ("first-fit", [1], "a count for each of the 2 types"),
        ("first-fit", 3, "start: must be counts by name"),
        ("first-fit", rota.Start([1, 1], [2, 0]), "running: must not be more than the jobs present, as for 'small'"),
        ("first-fit", rota.Start([9, 9], [5, 1]), "running: must fit the server together"),
        ("first-fit", rota.Start([1, 1], state=0), "state: is that of a rota, and first-fit is none"),
        (ROTA, rota.Start([1, 1], state=99), r"state: must be a state of the rota, 0…"),
        (ROTA, rota.Start([1, 1], [0, 1]), "must have slots in state 0 of the rota, which has 8 × small: give the state"),
    ],
)
def test_wrong_starts(policy, start, says):
    """A start that cannot be is refused with the rule."""
    with pytest.raises(rota.BadSpec, match=says):
        rota.simulate(SYSTEM, policy, jobs=100, start=start)
