"""`rota serve`: runs a plan on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

import rota
from rota.cli.output import ProgressLine, remark
from rota.cli.parameters import Flag

if TYPE_CHECKING:
    from rota.policy import PlanFile, Policy


def serve(
    file: Path | None = None,
    /,
    *,
    policy: str | None = None,
    directory: Annotated[Path | None, Parameter(alias="-d")] = None,
    tcp: str | None = None,
    time_unit: Literal["s", "min", "h", "d"] | None = None,
    preemption: Literal["none", "suspend", "requeue"] | None = None,
    grace: float | None = None,
    learn: bool | None = None,
    seed: int = 0,
    recover: Flag = False,
    verbose: Annotated[bool, Parameter(alias="-v", negative="")] = False,
) -> None:
    """Runs a plan on this machine: takes jobs, decides which of them run together, and runs them.

    Stays in the foreground. Ctrl-C or SIGTERM ends it; the jobs keep running, and the next scheduler finds them. To submit
    jobs: rota submit.

    Parameters
    ----------
    file
        The plan (from: rota plan FILE), or a system, a TOML file, which is planned first. Without it, the last plan stays in use.
    policy
        Run this policy instead of the plan's: a name ({policies}), a policy file, or a name that is
        designed for the system first ({designed}). With a system, nothing is planned then.
    directory
        Where the scheduler keeps its state and its socket. $ROTA_DIR, or ~/.local/state/rota, if not given.
    tcp
        Listen on TCP as well, as HOST:PORT; other hosts than loopback need a token (rota token add NAME).
    time_unit
        The unit of time of the file's rates and sizes; seconds, with a remark, if neither this nor the file says it.
    preemption
        none: a running job is never stopped; suspend: by SIGSTOP; requeue: ended, and started again later.
    grace
        Seconds from SIGTERM to SIGKILL.
    learn
        Whether a new plan is made when arrivals or sizes drift from it.
    seed
        The seed of the policy's own randomness.
    recover
        The database was lost or damaged, or is older than events.jsonl: bring it up to date from there. Jobs that run are found again and
        ended ones are listed; waiting jobs whose commands were only in the lost database cannot be run, and are cancelled.
    verbose
        Say everything that happens: submissions, starts, ends.
    """
    import asyncio

    try:
        from rota.live.daemon import run_daemon
        from rota.live.paths import state_directory
        from rota.live.standard_error import LineWriter, open_streams
    except ModuleNotFoundError as error:
        raise rota.RotaError(f"the scheduler needs {error.name}: pip install 'rota[live]'") from None
    open_streams()
    given = {"time_unit": time_unit, "preemption": preemption, "grace_s": grace, "learn": learn}
    plan = None if file is None else read_plan(file, policy, {key: value for key, value in given.items() if value is not None})
    if plan is None and (policy is not None or any(value is not None for value in given.values())):
        options = {"policy": policy, "time-unit": time_unit, "preemption": preemption, "grace": grace, "learn": learn}
        named = ", ".join(f"--{name}" for name, value in options.items() if value is not None)
        raise rota.BadSpec([rota.Problem(named, "needs a FILE: without it, the last plan stays in use as it was")])
    where = state_directory() if directory is None else directory.absolute()
    if (wrong := next((place for place in (where, *where.parents) if place.is_file()), None)) is not None:
        raise rota.BadSpec([rota.Problem("--directory", "is a file, not a folder", str(wrong))])
    address = None if tcp is None else _host_and_port(tcp)
    asyncio.run(run_daemon(where, plan, tcp=address, seed=seed, recover=recover, verbose=verbose, log_line=LineWriter()))


def _host_and_port(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 <= int(port) < 65536:
        raise rota.BadSpec([rota.Problem("--tcp", "must be HOST:PORT, as 127.0.0.1:8080", text)])
    return host.strip("[]") or "127.0.0.1", int(port)


def read_plan(file: Path, policy: str | None, given: dict[str, object]) -> PlanFile:
    """The plan to run: read, or made from a system; with the settings of the command line."""
    from dataclasses import replace

    from rota.policy import read_plan_file

    if file.suffix == ".toml":
        plan = _planned(file, policy)
    else:
        plan = read_plan_file(file)
        if policy is not None:
            plan = replace(plan, policy=_policy(policy, plan.system), predicted={})
    plan = plan.with_settings(given)
    if plan.system.time_unit is None:
        remark(_in_seconds(plan.system))
    return plan


def _in_seconds(system: rota.System) -> str:
    """The remark on a file without a unit of time, with numbers that a person can check."""
    rates = zip(system.names, system.arrival_rate, system.service_rate, strict=True)
    examples = [f"{name} comes {rate * 3600:.4g} times an hour and runs for {1 / mu:.4g} s" for name, rate, mu in rates if rate > 0][:3]
    means = f": {'; '.join(examples)}" if examples else ""
    way_out = 'If that is wrong: --time-unit h, or time_unit = "h" in the file'
    return f"the file does not say its unit of time, so seconds are assumed{means}. {way_out}"


def _planned(file: Path, policy: str | None) -> PlanFile:
    from rota.model import read_spec
    from rota.policy import PlanFile

    spec = read_spec(file)  # once: it may be edited while it is planned
    if policy is not None:
        return PlanFile(spec.system, _policy(policy, spec.system), spec.live)
    remark(f"planning {file.name}, which takes half a minute or so (rota plan shows what comes of it)")
    from rota.report.plan_files import plan_file

    with ProgressLine() as line:
        found = rota.plan(spec.system, progress=lambda at: line.update(at.time_s, str(at), at.compiling))
    return plan_file(found, spec.live)


def _policy(policy: str, system: rota.System) -> Policy:
    from rota.policy import Custom, as_policy

    found = as_policy(policy, system)
    if isinstance(found, Custom):
        raise rota.BadSpec([rota.Problem("--policy", "must be a name or a policy file: a function of your own cannot be served", policy)])
    return found
