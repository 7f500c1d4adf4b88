"""Every policy of the simulator runs real jobs."""

from __future__ import annotations

import asyncio

import pytest

from every_policy import SYSTEM, policy_for
from rota.live.messages import JobRequest
from rota.live.service import Service
from rota.model.live import LiveSettings
from rota.policy import PlanFile, policy_name, preempts, records


def every_policy():
    """Those that have a name, and rotas of every kind."""
    return [policy_for(record) for record in records()]


async def run_jobs(directory, policy, stop):
    """Ten small jobs and four big ones from submission to the end: their states, and the status then."""
    known = {name: {"mean": 1.0} for name in SYSTEM.names}
    plan = PlanFile(SYSTEM, policy, LiveSettings(learn=False, preemption=stop, grace_s=1.0), 0.5, known)
    service = Service(directory, plan, log_line=lambda text: None)
    await service.open()
    try:
        for name, count in (("small", 10), ("big", 4)):
            env = {"PATH": "/bin:/usr/bin"}
            service.submit(JobRequest(argv=["sleep", "0.1"], type=name, env=env, cwd="/", array=(1, count)))
        for job in range(1, 15):
            await service.wait(job, 30.0)
        return {job.state for job in service.jobs(None, None, None, 100, None)}, service.status()
    finally:
        for job in list(service.executor.lifecycle.jobs):
            service.cancel(job, now=True)
            await service.wait(job, 10.0)
        await service.close()


@pytest.mark.parametrize("stop", ["none", "suspend", "requeue"])
def test_every_policy_runs_jobs_to_their_end(tmp_path, stop):
    """All jobs are done under each policy that goes with the way jobs may be stopped, and nothing is held in the end."""
    policies = [policy for policy in every_policy() if preempts(policy) == (stop != "none")]

    async def all_of_them():
        places = [tmp_path / str(number) for number in range(len(policies))]
        for place in places:
            place.mkdir()
        return await asyncio.gather(*(run_jobs(place, policy, stop) for place, policy in zip(places, policies, strict=True)))

    for policy, (states, status) in zip(policies, asyncio.run(all_of_them()), strict=True):
        assert states == {"done"}, policy_name(policy)
        assert status.resources[0].used == status.resources[0].kept == 0
        assert status.policy == policy_name(policy)
    assert len(policies) >= 6
