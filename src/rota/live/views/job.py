"""A job as its owner sees it."""

from __future__ import annotations

from rota.live.clock import boot_now
from rota.live.executor import Executor
from rota.live.jobs import Job, Request
from rota.live.messages import Job as JobMessage

__all__ = ["job_message"]


def job_message(executor: Executor, job: Job, request: Request) -> JobMessage:
    """A job as its owner sees it."""
    since = 0.0 if job.since_boot is None else max(boot_now() - job.since_boot, 0.0)
    pid = executor.supervisors.look(job.id, job.attempt).pid if job.state in ("running", "suspended", "stopping") else None
    return JobMessage(
        id=job.id,
        name=job.name,
        type=job.type,
        demand=dict(zip(executor.lifecycle.system.resources, request.demand, strict=False)),
        state=job.state.value,
        argv=request.argv,
        cwd=request.cwd,
        array=job.array,
        index=job.idx,
        after=request.after,
        after_any=request.after_any,
        submitted=job.submitted,
        started=job.started,
        ended=job.ended,
        response_s=job.response_s,
        run_s=None if job.started is None else job.served_s + since,
        exit_code=job.exit_code,
        restarts=job.restarts,
        cores=job.share.get("cores"),
        gpus=job.share.get("gpus"),
        pid=pid,
        reason=job.reason,
        output=f"{executor.directory}/output/{job.id}.log",
        cut=list(request.cut),
    )
