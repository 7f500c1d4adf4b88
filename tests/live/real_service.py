"""The real service with two types on two cores, for tests of the HTTP interface and the client."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import rota
from rota.live.messages import ENDED, STATES
from rota.live.service import Service
from rota.model.live import LiveSettings
from rota.policy import PlanFile

TYPES = {"small": {"cores": 1.0}, "large": {"cores": 2.0}}
CAPACITY = {"cores": 2.0}


@asynccontextmanager
async def start_service(directory: Path) -> AsyncIterator[Service]:
    """A service with `TYPES` on `CAPACITY`, whose state lives in `directory`; at the end no process of it is left."""
    names = tuple(TYPES)
    system = rota.System(
        capacity=list(CAPACITY.values()),
        demand=[list(demand.values()) for demand in TYPES.values()],
        arrival_rate=[0.1] * len(names),
        service_rate=[1.0] * len(names),
        names=names,
        resources=tuple(CAPACITY),
    )
    quick = {name: {"mean": 1.0} for name in names}
    plan = PlanFile(system, rota.FCFS(), LiveSettings(grace_s=1.0, learn=False), 0.1, quick)
    service = Service(directory, plan, log_line=lambda text: None)
    await service.open()
    try:
        yield service
    finally:
        for job in service.jobs([state for state in STATES if state not in ENDED], None, None, 10**6, None):
            service.cancel(job.id, now=True)
        for job in list(service.executor.lifecycle.jobs):
            await service.wait(job, 10.0)
        await service.close()
