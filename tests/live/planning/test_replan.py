"""Planning anew in a process of its own: what it answers, that it ends when it should, and that it says why it failed."""

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import rota
from rota.live.planning.replan import ReplanFailed, learned_system, predict, replan
from rota.policy.files import policy_from_json

EXAMPLES = Path(__file__).parents[3] / "examples"
JOBS = 50_000


@pytest.fixture(scope="module")
def system():
    """The paper's example."""
    return rota.read_system(EXAMPLES / "paper.toml").scaled(load=0.7)


@pytest.fixture(scope="module")
def quick():
    """A rota that was right when type1 was rare."""
    return rota.MSR([(0, 0, 2), (1, 4, 0)], (0.5, 0.5), preemption="none", switching_rate=0.05, names=("type1", "type2", "type3"))


def plan(system, policy, **options):
    """Plans in the process, and waits for it."""
    return asyncio.run(replan(system, policy, jobs=JOBS, time_limit_s=60, **options))


@pytest.fixture(scope="module")
def planned(system, quick):
    """What is planned in place of the quick one."""
    return plan(system, quick)


def test_a_rota_is_designed_anew(system, quick, planned):
    """The new rota is of the same kind, better than the old one, and predicted by its exact means."""
    found = planned
    policy = policy_from_json(found.policy)
    assert not found.kept
    assert (policy.preemption, policy.backfill, policy.names) == ("none", False, system.names)
    assert found.load == pytest.approx(0.7)
    exact = rota.analyze(system, policy)
    assert [found.predicted[name].mean for name in system.names] == pytest.approx(exact.response_time.tolist())
    assert exact.mean_response_time < rota.analyze(system, quick).mean_response_time
    for one in found.predicted.values():
        assert one.p50 < one.p95 < one.p99


def test_an_improved_rota_is_improved_anew(system, quick):
    """A base that cannot carry the new arrivals is replaced: the new policy is the improved rota of a stable one."""
    more = system.replace(arrival_rate=system.arrival_rate * [2.0, 1.0, 1.0])
    assert not rota.analyze(more, quick).stable
    found = plan(more, rota.Improved(quick))
    policy = policy_from_json(found.policy)
    assert (policy.preemption, found.kept) == ("none", False)
    assert rota.analyze(more, policy.base).stable
    assert all(one.mean > 0 for one in found.predicted.values())


def test_an_improved_rota_stays_at_loads_above_one(system, quick):
    """Its tables exist for loads below 1 only: above, there is no new plan, and the message says so."""
    with pytest.raises(ReplanFailed, match=r"improved nMSR is for loads below 1 only: the plan stays as it is"):
        plan(system.scaled(load=1.1), rota.Improved(quick))


def test_routes_of_the_old_rota_bind_nothing(system, quick):
    """A rota with draining orders of its own is designed anew: the new one has other candidates, and its own way to switch."""
    found = plan(system, quick.replace(route=[[2, 1, 0], [1, 0, 2]]))
    policy = policy_from_json(found.policy)
    assert not found.kept
    assert isinstance(policy.route, str)
    assert policy.opening == "early"


def test_a_rota_that_is_as_good_stays():
    """Designed for these very rates, it is not swapped for its like. On a large server it is one schedule, which never switches."""
    system = rota.System([1024], [[1], [8]], [384, 57.6], [1, 1], names=["small", "large"], preemption="none")
    corners = rota.MSR([[0, 128], [1024, 0]], [0.5, 0.5], "none", 0.1, names=system.names)
    first = plan(system, corners)
    designed = policy_from_json(first.policy)
    assert not first.kept
    assert len(designed.weights) == 1
    again = plan(system, designed)
    assert again.kept
    assert policy_from_json(again.policy) == designed


def test_backfilling_and_other_policies_are_kept(system, quick):
    """A rota with backfilling stays one; First-Fit stays First-Fit and is predicted by simulation."""
    assert policy_from_json(plan(system, quick.replace(backfill=True)).policy).backfill
    found = plan(system, rota.FirstFit())
    assert found.kept
    assert policy_from_json(found.policy) == rota.FirstFit()
    simulated = rota.simulate(system, "first-fit", jobs=JOBS)
    assert found.predicted["type2"].mean == pytest.approx(float(simulated.response_time[1]))
    assert found.predicted["type2"].p95 == pytest.approx(float(simulated.type_response_time_quantiles[0.95][1]))


def test_predictions_only(system, quick):
    """For the first start: the policy as it is."""
    found = plan(system, quick, design=False)
    assert found.kept
    assert policy_from_json(found.policy) == quick
    expected, _ = predict(system, quick, JOBS)
    assert found.predicted == expected


def test_too_much_load(system, quick):
    """At a load of 1.3 there is a rota that is stable at 0.95 of what can be, no prediction, and the truth about the load."""
    found = plan(system.scaled(load=1.3), quick)
    assert found.load == pytest.approx(1.3)
    assert found.predicted == {}
    assert found.remark == "the load is 1.3: no policy can serve that, arrivals must fall by 23% at least"
    assert rota.analyze(system.scaled(load=0.95), policy_from_json(found.policy)).stable


def test_a_time_limit(system, quick):
    """Too little time: an error that says so, and no process left."""
    with pytest.raises(ReplanFailed, match=r"no new plan within 0\.3 s"):
        asyncio.run(replan(system, quick, time_limit_s=0.3))
    assert not children()


def test_cancelling_ends_the_process(system, quick):
    """The daemon stops while a plan is made: the process is gone when the cancellation is over."""

    async def cancelled():
        task = asyncio.create_task(replan(system, quick))
        while not children():
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert not children()


def test_it_does_not_outlive_its_parent(tmp_path):
    """A daemon killed with SIGKILL takes the planning with it."""
    program = (
        "import asyncio, rota\n"
        "from rota.live.planning.replan import replan\n"
        f"system = rota.read_system({str(EXAMPLES / 'borg.toml')!r})\n"
        "asyncio.run(replan(system, rota.FirstFit(), jobs=50_000_000))\n"
    )
    daemon = subprocess.Popen([sys.executable, "-c", program])
    try:
        child = eventually(lambda: children(daemon.pid))[0]
        eventually(lambda: os.getpriority(os.PRIO_PROCESS, child) == min(os.nice(0) + 10, 19))
        time.sleep(0.2)  # the wish to die with the parent is the next thing it says
    finally:
        daemon.kill()
        daemon.wait()
    eventually(lambda: not alive(child))


def test_a_bad_request_is_answered():
    """The process answers with an error, not with a traceback, and nothing else is on standard output."""
    request = {"system": {"server": {"cores": 1}}, "policy": {"rota_policy": 1, "policy": "first-fit"}}
    done = subprocess.run(
        [sys.executable, "-m", "rota.live.planning.replan"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "jobs: is missing" in json.loads(done.stdout)["error"]


def test_learned_rates_and_sizes(system):
    """Rates and sizes in seconds become those of the spec's unit; every law of sizes keeps its shape."""
    minutes = learned_system(system, [0.1, 0.2, 0.3], [30.0, 60.0, 90.0], time_unit_s=60.0)
    assert minutes.arrival_rate.tolist() == pytest.approx([6, 12, 18])
    assert (1 / minutes.service_rate).tolist() == pytest.approx([0.5, 1.0, 1.5])
    laws = [
        rota.Deterministic(mean=2.0),
        rota.Erlang(mean=2.0, phases=3),
        rota.Hyperexponential(probabilities=(0.3, 0.7), means=(1.0, 4.0)),
        rota.Coxian(rates=(1.0, 2.0), proceed=(0.5,)),
        rota.Fitted(mean=2.0, cv=2.5),
        rota.PhaseType(initial=(1.0, 0.0), generator=((-1.0, 0.5), (0.0, -2.0))),
        rota.LogNormal(mean=2.0, cv=3.0),
        rota.BoundedPareto(shape=1.1, low=1.0, high=1000.0),
        rota.Weibull(mean=1.0, shape=0.5),
        rota.Empirical(values=(1.0, 5.0), weights=(2.0, 1.0)),
    ]
    for law in laws:
        one = rota.System([1], [[1]], [0.1], sizes=[law])
        (scaled,) = learned_system(one, [0.2], [7.0]).sizes
        assert type(scaled) is type(law)
        assert scaled.moment(1) == pytest.approx(7.0)
        assert scaled.scv == pytest.approx(law.scv)
    assert np.isclose(minutes.capacity, system.capacity).all()


# ------------------------------------------------------------------------------------------------------- processes


def children(parent=None):
    """The planning processes below a process, below this one if None; those that have ended but were not waited for do not count."""
    path = Path(f"/proc/{parent or os.getpid()}/task")
    found = list[int]()
    for thread in path.iterdir():
        with suppress(FileNotFoundError):  # a thread that has just ended
            found += map(int, (thread / "children").read_text().split())
    return [child for child in found if alive(child) and b"rota.live.planning.replan" in Path(f"/proc/{child}/cmdline").read_bytes()]


def alive(process):
    """Whether a process has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def eventually(question, patience_s=20.0):
    """The answer to a question, as soon as it is not empty."""
    end = time.monotonic() + patience_s
    while not (answer := question()):
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)
    return answer


@pytest.mark.parametrize("paths", [None, "", os.pathsep])
def test_the_folder_of_the_scheduler_is_not_on_its_path(system, quick, tmp_path, monkeypatch, paths):
    """A `numpy.py` in the folder where the scheduler was started is not executed by the process that plans anew."""
    for name in ("numpy", "json", "ctypes"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\nraise SystemExit('not the real one')\n")
    monkeypatch.chdir(tmp_path)
    if paths is None:
        monkeypatch.delenv("PYTHONPATH", raising=False)
    else:
        monkeypatch.setenv("PYTHONPATH", paths)
    assert plan(system, quick, design=False).kept
    assert not (tmp_path / "executed").exists()
