"""What each job has, from its start to its end."""

from __future__ import annotations

import os
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.live.errors import Refused
from rota.live.jobs import Job, JobState
from rota.live.resources.allocation import Allocation
from rota.model.live import LiveSettings

OWN = sorted(os.sched_getaffinity(0))
CORES = len(OWN)


def allocation(resources: tuple[str, ...], capacity: list[float], demand: list[float], **settings: object) -> Allocation:
    """Of a server with one type of job."""
    return Allocation(rota.System(capacity, [demand], [0.1], [1.0], resources=resources), LiveSettings(**settings))


def job(id: int = 1, state: JobState = JobState.WAITING) -> Job:
    """A job."""
    return Job(id, 1, "", "small", state, 0.0, 0.0, "", attempt=1)


def test_cores_are_handed_out() -> None:
    """Whole cores that this machine has are sets of their numbers; a job that asks for none is not held to any."""
    server = allocation(("cores", "disk"), [CORES, 100], [1, 5])
    assert server.enforcement() == {"cores": "affinity", "disk": ""}
    assert server.remarks() == ["disk is counted only: nothing here holds a job to its share"]
    first, second = job(1), job(2)
    server.take(first, [1, 5])
    assert first.share == {"cores": [OWN[0]]}
    server.release(first)
    assert (first.share, server.free("cores")) == ({}, tuple(OWN))
    server.take(second, [0, 1])
    assert second.share == {}
    with pytest.raises(Refused, match=r"cores are handed out whole here: 0\.5 is not a whole number"):
        server.take(second, [0.5, 0])
    assert server.whole([0.5, 0.5]) == [1.0, 0.5]


def test_what_is_only_counted_is_not_in_a_share() -> None:
    """Parts of cores, and what has no kind."""
    server, one = allocation(("cores", "disk"), [CORES, 100], [0.5, 5]), job()
    server.take(one, [0.5, 5])
    assert (one.share, server.terms(one, [0.5, 5]), server.moves(one), server.free("cores")) == ({}, {}, {}, None)


def test_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the supervisor is given is plain data by kind: numbers, names of devices, limits."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
    server, one = allocation(("cores", "gpus", "memory_gb"), [CORES, 2, 1], [1, 1, 0.5], memory_limit="rlimit"), job()
    server.take(one, [1, 2, 0.5])
    assert one.share == {"cores": [OWN[0]], "gpus": [0, 1]}
    memory = {"bytes": 500_000_000, "cgroup": None}
    assert server.terms(one, [1, 2, 0.5]) == {"cores": [OWN[0]], "gpus": ["GPU-a", "GPU-b"], "memory": memory}
    assert server.moves(one) == {"cores": [OWN[0]]}


def test_of_two_resources_of_one_kind_one_is_handed_out() -> None:
    """The first; the other is counted."""
    server = allocation(("cores", "cpus"), [CORES, CORES], [1, 1])
    assert server.enforcement() == {"cores": "affinity", "cpus": ""}
    assert server.remarks() == ["cpus is counted only: nothing here holds a job to its share"]


def test_too_much_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """If there are not enough devices, the cores are given back, too."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    server, one = allocation(("cores", "gpus"), [CORES, 1], [1, 1]), job()
    with pytest.raises(ValueError, match="2 asked for, 1 of 1 are free"):
        server.take(one, [1, 2])
    assert (one.share, server.free("cores"), server.free("gpus")) == ({}, tuple(OWN), (0,))


@given(st.data())
def test_no_core_has_two_jobs(data: st.DataObject) -> None:
    """Through starts, suspensions, resumptions, ends and new daemons, jobs in service have the cores they need, and share none."""
    system = rota.System([CORES, 9], [[1, 1]], [0.1], [1.0], resources=("cores", "space"))
    server, jobs, ids = Allocation(system, LiveSettings()), list[Job](), count(1)
    for _ in range(data.draw(st.integers(0, 15))):
        running = [one for one in jobs if one.state == JobState.RUNNING]
        suspended = [one for one in jobs if one.state == JobState.SUSPENDED]
        room = CORES - sum(len(one.share["cores"]) for one in running)
        what = data.draw(st.sampled_from(["start", "suspend", "resume", "end", "another daemon", "other settings"]))
        if what == "start" and room:
            jobs.append(job(next(ids), JobState.RUNNING))
            server.take(jobs[-1], [data.draw(st.integers(1, room)), 1])
        elif what == "suspend" and running:
            one = data.draw(st.sampled_from(running))
            one.state = JobState.SUSPENDED
            server.suspend(one)
            server.suspend(one)  # twice does no harm
        elif what == "resume" and any(len(one.share["cores"]) <= room for one in suspended):
            one = data.draw(st.sampled_from([one for one in suspended if len(one.share["cores"]) <= room]))
            had, free = one.share["cores"], server.free("cores")
            one.state = JobState.RUNNING
            server.resume(one)
            assert set(had) & set(free) <= set(one.share["cores"])
        elif what == "end" and jobs:
            server.release(one := data.draw(st.sampled_from(jobs)))
            jobs.remove(one)
        elif what == "another daemon":
            server = Allocation(system, LiveSettings())
            for one in (*running, *suspended):
                server.hold(one)
        elif what == "other settings":
            before, server = server, Allocation(system, LiveSettings())
            server.take_over(before, suspended)
        held = [core for one in jobs if one.state == JobState.RUNNING for core in one.share["cores"]]
        assert sorted((*held, *server.free("cores"))) == OWN


def test_cores_that_a_stop_does_not_release() -> None:
    """Where the plan says so, a suspended job keeps its cores, until it goes on under another plan or ends."""
    system = rota.System([CORES], [[1]], [0.1], [1.0], resources=("cores",))
    server, one = Allocation(system, LiveSettings(releasable={"cores": False})), job()
    server.take(one, [1])
    one.state = JobState.SUSPENDED
    server.suspend(one)
    assert server.free("cores") == tuple(OWN[1:])
    other = Allocation(system, LiveSettings())
    other.take_over(server, [one])
    assert other.free("cores") == tuple(OWN)
    other.release(one)
    assert other.free("cores") == tuple(OWN)


def test_two_suspended_jobs_of_the_same_cores() -> None:
    """A plan released their cores, the next does not: each of them resumes when the other does not run."""
    system = rota.System([CORES], [[1]], [0.1], [1.0], resources=("cores",))
    server, jobs = Allocation(system, LiveSettings(releasable={"cores": False})), [job(1), job(2)]
    for one in jobs:
        one.state, one.share = JobState.SUSPENDED, {"cores": list(OWN)}
        server.hold(one)
    for one in reversed(jobs):
        server.resume(one)
        assert (one.share["cores"], server.free("cores")) == (OWN, ())
        server.release(one)
    assert server.free("cores") == tuple(OWN)


@pytest.mark.parametrize("name", ["gpus", "GPUs", "gpu"])
def test_devices_cannot_be_released(name: str) -> None:
    """A suspended process keeps its devices, however their resource is written."""
    system = rota.System([1], [[1]], [0.1], [1.0], resources=(name,))
    with pytest.raises(rota.BadSpec, match=f"live.releasable.{name}: a suspended process keeps its devices"):
        Allocation(system, LiveSettings(releasable={name: True}))
