"""The daemon: one service, its listeners, and signals. Runs in the foreground; SIGTERM and Ctrl-C end it while the jobs go on."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from rota.errors import RotaError
from rota.live.descriptors import raise_limit
from rota.live.errors import Refused
from rota.live.faults import Faults
from rota.live.http.api import make_app
from rota.live.http.server import check_address, serve_http
from rota.live.http.tokens import Tokens
from rota.live.paths import socket_path
from rota.live.service import Service
from rota.live.standard_error import log_warnings, unfailing
from rota.live.storage.private_files import make_private
from rota.policy import PlanFile, policy_name

__all__ = ["run_daemon"]


async def run_daemon(
    directory: Path,
    plan: PlanFile | None,
    *,
    tcp: tuple[str, int] | None = None,
    seed: int = 0,
    recover: bool = False,
    verbose: bool = False,
    log_line: Callable[[str], None] = print,
) -> None:
    """Serves until SIGTERM or SIGINT. `Refused` if another daemon serves this directory. `recover`: see `rota.live.rebuild`."""
    path, log_line = socket_path(directory), unfailing(log_line)
    make_private(directory)  # a user who can write here can run programs as this user
    lock = os.open(directory / "daemon.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise Refused(f"another scheduler serves {directory}: end it first, or give another directory (--directory)") from None
    raise_limit()
    os.umask(0o077)  # files of the daemon are for its own user only; jobs have the usual mask
    tokens, faults = Tokens(directory / "tokens.json"), Faults(directory, log_line)
    ending, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    loop.set_exception_handler(faults.handle)
    try:
        if tcp is not None:
            check_address(tcp[0], tokens.required)  # before anything is changed
        if await _ended_while_waiting(faults, ending, log_line):
            return
        service = Service(directory, plan, seed=seed, recover=recover, log_line=log_line)
        service.executor.writes.verbose = verbose
        for line in introduction(service):
            log_line(line)
        await service.open()
        try:
            async with AsyncExitStack() as stack:
                stack.enter_context(log_warnings(log_line))
                if tcp is not None:
                    app = make_app(service, tokens=tokens, trusted=False)
                    address = await stack.enter_async_context(serve_http(app, tcp=tcp))
                    log_line(f"listening on {address}")
                    if not tokens.required:
                        log_line("no token is set: every user of this machine can submit jobs over TCP (rota token add NAME sets one)")
                app = make_app(service, tokens=None, trusted=True)
                address = await stack.enter_async_context(serve_http(app, unix=path))
                log_line(f"listening on {address}")
                await ending.wait()
                log_line("ending; the jobs go on")
        finally:
            await service.close()
        faults.clear()
    except RotaError:  # wrong use, a full disk: the caller reports it
        raise
    except Exception as error:
        faults.happened(error)
        raise
    finally:
        loop.set_exception_handler(None)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        os.close(lock)


async def _ended_while_waiting(faults: Faults, ending: asyncio.Event, log_line: Callable[[str], None]) -> bool:
    """Waits if the daemons before this one ended with internal errors. Returns whether a signal asked this one to end meanwhile."""
    if delay_s := faults.delay_s():
        log_line(f"the scheduler ended with an internal error {faults.count()} times in a row (see faults.json): waiting {delay_s:g} s")
        with suppress(TimeoutError):
            await asyncio.wait_for(ending.wait(), delay_s)
    return ending.is_set()


def introduction(service: Service) -> list[str]:
    """What this scheduler is, and what it cannot do here."""
    lifecycle = service.executor.lifecycle
    system = lifecycle.system
    has = ", ".join(f"{amount:g} {name}" for name, amount in zip(system.resources, system.capacity, strict=True))
    preemption = {"none": "no job is stopped", "suspend": "jobs may be suspended", "requeue": "jobs may be ended and started again"}
    how = preemption[lifecycle.settings.preemption]
    first = f"plan {lifecycle.plan_number}: {policy_name(lifecycle.scheduler.policy)} on {has}; load {service.planner.load:.3g}; {how}"
    held = [f"{name} by {way}" for name, way in lifecycle.allocation.enforcement().items() if way]
    lines = [first, *lifecycle.allocation.remarks()]
    if held:
        lines.insert(1, f"jobs are held to their share of {', '.join(held)}")
    if os.geteuid() == 0:
        lines.append("this runs as root, and so does every job: a user who may submit jobs can do anything on this machine")
    return lines
