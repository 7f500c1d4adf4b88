"""`rota simulate`: a policy on a system, measured."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import rota
from rota.arguments import whole_file
from rota.cli.output import ProgressLine, finite, print_json, print_table, remark
from rota.cli.outputs import check_output
from rota.cli.parameters import Force, JobCount, Json, Loops, Part, Seed, Staleness, SystemFile, WarmupLoops, WorkloadName
from rota.display import interval_cells, number, with_interval

if TYPE_CHECKING:
    from rota.model import Workload
    from rota.policy import Policy
    from rota.simulation import SimulationProgress


def simulate(
    file: SystemFile,
    policy: str,
    /,
    *,
    jobs: JobCount = None,
    seed: Seed = 0,
    workload: WorkloadName = None,
    loops: Loops = None,
    warmup_loops: WarmupLoops = 0,
    until: Part = None,
    until_types: Part = None,
    warmup: float | None = None,
    start: str | None = None,
    log: Path | None = None,
    log_jobs: int = 1000,
    force: Force = False,
    replications: int | Literal["auto"] | None = None,
    workers: int | None = None,
    dispatch: str | None = None,
    staleness: Staleness = None,
    json: Json = False,
) -> None:
    """Simulates a policy: response times with confidence intervals, tails, utilization. The servers of a fleet all run it.

    Ctrl-C ends the run and prints what was measured so far.

    Parameters
    ----------
    policy
        A name ({policies}), a policy file (from: rota design -o),
        your own as module:function, or a name that is designed for this system first ({designed}).
        Of a fleet also: pinned, partly-pinned or split, servers that are designed for it.
    until
        Stop when the 95 % interval of the mean response time is this narrow, relative to the mean: 1% or 0.01. --jobs is then the most,
        20 million if not given.
    until_types
        The same for the mean response time of every type.
    warmup
        The part of the run to leave out; if not given, a fifth, and nothing of a --workload.
    start
        Jobs that are there at time 0, by type: train=3,web=5. They do not count, and nothing is left out.
    log
        Write the events of the first jobs to this parquet file.
    log_jobs
        How many jobs to log.
    replications
        Run this many independent simulations instead of one, and take the interval from their spread. auto: split the jobs over as many
        runs as their number and the load allow, on all cores.
    workers
        How many of these run at once, in processes: one if not given; with auto in threads, one per core. The result does not depend on it.
    dispatch
        Of a fleet: which server a job goes to ({dispatch}),
        or your own as module:function; the file's rule if not given, else jsq.
    """
    from rota.policy import as_policy

    check_output(log, force, "--log")
    system = rota.read_system(file)
    fleet = isinstance(system, rota.Fleet)
    if not fleet and (dispatch is not None or staleness is not None):
        raise rota.BadSpec([rota.Problem("--dispatch", "and --staleness are for a fleet: this file has one [server]")])
    played, warmup = workload_of(workload, loops, warmup_loops, warmup)
    present = None if start is None else _counts(start)
    if isinstance(replications, int):
        if until is not None or until_types is not None or log is not None:
            raise rota.BadSpec([rota.Problem("--replications", "does not go with --until or --log, unless it is auto")])
        _replicate(system, policy, replications, jobs, seed, played, warmup, present, workers or 1, dispatch, staleness or 0.0, json)
        return
    chosen: Policy | str = policy
    if isinstance(system, rota.System):
        chosen = as_policy(policy, system)
        remark_on_preemption(system, [chosen])
    with ProgressLine() as line:

        def show(at: SimulationProgress) -> None:
            line.update(at.time_s, progress_text(at), at.compiling)

        result = rota.simulate(
            system,
            chosen,
            jobs=jobs,
            seed=seed,
            workload=played,
            until=until,
            until_types=until_types,
            warmup=warmup,
            start=present,
            replications=replications,
            workers=workers,
            log_jobs=log_jobs if log is not None else 0,
            progress=show,
            dispatch=dispatch,
            staleness=staleness or 0.0,
        )
    if fleet:
        remark_on_preemption(system, [result.policy])
    if log is not None and result.log is not None:
        with whole_file(log) as place:
            result.log.write_parquet(place)
        remark(f"{len(result.log)} events written to {log}")
    if result.interrupted:
        remark(f"interrupted after {result.jobs:,} jobs")
    print_json(as_fields(result)) if json else print_result(result)
    result.require_stable()


def _replicate(
    system: rota.System | rota.Fleet,
    policy: str,
    replications: int,
    jobs: int | None,
    seed: int,
    workload: Workload | None,
    warmup: float | None,
    start: dict[str, int] | None,
    workers: int,
    dispatch: str | None,
    staleness: float,
    json: bool,
) -> None:
    """Independent runs."""
    began = time.perf_counter()
    with ProgressLine() as line:

        def show(done: int) -> None:
            line.update(time.perf_counter() - began, f"{done} of {replications} runs")

        found = rota.replicate(
            system,
            policy,
            replications=replications,
            jobs=jobs,
            seed=seed,
            workload=workload,
            warmup=warmup,
            start=start,
            workers=workers,
            progress=show,
            dispatch=dispatch,
            staleness=staleness,
        )
    for result in found.results:
        result.require_stable()
    if json:
        fields = (
            *("stable", "counted", "unknown", "mean_response_time", "interval"),
            *("response_time", "response_time_interval", "mean_queue_length", "mean_queue_length_interval"),
        )
        runs = [as_fields(result) for result in found.results]
        print_json(finite({name: getattr(found, name) for name in fields} | {"results": runs}))
        return
    print(f"{found.results[0].name}: {replications} runs of {found.results[0].jobs:,} jobs, seed {seed}")
    if not math.isnan(found.mean_response_time):
        print(f"Mean response time {with_interval(found.mean_response_time, found.interval)} (95 %)")
    for name, count in zip(system.names, found.counted.tolist(), strict=True):
        if name in found.unknown:
            print(f"Only {count:,} jobs of '{name}' counted: too few for a mean.")
    rows = zip(system.names, found.mean_queue_length, found.mean_queue_length_interval, strict=True)
    print_table("Jobs in the system", ["", "E[Q]", "±"], [(name, *interval_cells(mean, width)) for name, mean, width in rows])


def _counts(text: str) -> dict[str, int]:
    """The jobs of each type that `--start` names."""
    pairs = [part.strip().partition("=") for part in text.split(",")]
    names = [name.strip() for name, _, _ in pairs]
    if any(not name or not count.strip().isdecimal() for name, (_, _, count) in zip(names, pairs, strict=True)):
        raise rota.BadSpec([rota.Problem("--start", "must be types and counts, as train=3,web=5", text)])
    if len(set(names)) < len(names):
        raise rota.BadSpec([rota.Problem("--start", "names a type twice", text)])
    return {name: int(count) for name, (_, _, count) in zip(names, pairs, strict=True)}


def workload_of(path: str | None, loops: int | None, warmup_loops: int, warmup: float | None) -> tuple[Workload | None, float | None]:
    """The workload that the options ask for, and the part of it that is warm-up."""
    if path is None:
        if loops is not None or warmup_loops:
            raise rota.BadSpec([rota.Problem("--loops", "goes with --workload only")])
        return None, warmup
    times = 1 if loops is None else loops
    if times < 1:
        raise rota.BadSpec([rota.Problem("--loops", "must be at least 1", times)])
    if not 0 <= warmup_loops < times:
        raise rota.BadSpec([rota.Problem("--warmup-loops", f"must be at least 0 and below --loops, {times}", warmup_loops)])
    if warmup_loops and warmup is not None:
        raise rota.BadSpec([rota.Problem("--warmup-loops", "does not go with --warmup")])
    from rota.simulation.named import as_workload

    trace = as_workload(path)
    if not isinstance(trace, rota.Trace):
        if loops is not None or warmup_loops:
            raise rota.BadSpec([rota.Problem("--loops", "is for a trace; arrivals of your own go on by themselves")])
        return trace, warmup
    _remark_on_log(trace, Path(path))
    return (trace if times == 1 else trace.looped(times)), (warmup_loops / times if warmup_loops else warmup)


def _remark_on_log(trace: rota.Trace, path: Path) -> None:
    """Prints what was left out of a log that is read without an import (`rota trace import` has said it of a trace)."""
    from rota.traces import is_trace_file

    if is_trace_file(path):
        return
    report = trace.about["import"]
    left_out = [f"{count:,} {reason}" for reason, count in report["left_out"].items()]
    if report["bad_lines"]:
        left_out.append(f"{report['bad_lines']:,} lines that cannot be read")
    remark(f"{report['kept']:,} jobs" + (f"; left out: {', '.join(left_out)}" if left_out else ""))


def remark_on_preemption(system: rota.System | rota.Fleet, policies: Sequence[Policy]) -> None:
    """Prints which policies stop jobs on a server whose file says that jobs cannot be stopped."""
    from rota.policy import policy_name, preempts

    names = [policy_name(policy) for policy in policies if preempts(policy)]
    if system.preemption == "none" and names:
        remark(f'the file says preemption "none", but {" and ".join(dict.fromkeys(names))} may stop running jobs: shown for comparison')


def progress_text(at: SimulationProgress) -> str:
    """How far a simulation has come, in one line."""
    if at.compiling:
        return "compiling the simulator for this policy, once on this machine: up to a minute"
    text = f"{at.done:,} jobs, {at.events_per_s / 1e6:.1f} million events/s"
    if at.jobs is not None:
        left = at.time_s * (at.jobs / at.done - 1)
        # The first jobs include the time of compiling: no estimate can be made from them.
        return f"{at.done / at.jobs:.0%}: {text}" + (f", {left:.0f} s left" if at.done > 10_000 else "")
    return f"{text}, interval ±{at.half_width:.1%}"


def as_fields(result: rota.Result) -> dict[str, Any]:
    """The fields of a `Result` under their Python names; what is undefined becomes null."""
    hidden = ("system", "policy", "totals", "batches", "fingerprint", "log", "fleet", "dispatch")
    fields = {name: value for name, value in vars(result).items() if name not in hidden} | {"remarks": result.remarks}
    fields["start"] = None if result.start is None else vars(result.start)
    about: dict[str, Any] = {"policy": result.name, "names": result.system.names, "resources": result.system.resources}
    if isinstance(result, rota.FleetResult):
        about |= {"dispatch": result.dispatch.rule, "kinds": result.fleet.kinds, "count": result.fleet.count}
    return finite({**about, **fields})


def _print_kinds(result: rota.FleetResult) -> None:
    """What the servers of each kind have in use, and which part of each type ended there."""
    fleet = result.fleet

    def part(value: float) -> str:
        return "" if math.isnan(value) else f"{value:.1%}"

    print_table(
        "Kinds of servers: in use, and part of each type",
        ["", "servers", *fleet.resources, *fleet.names],
        [
            (kind, f"{fleet.count[c]:,}", *map(part, result.kind_utilization[c]), *(part(x) if x else "" for x in result.parts[c]))
            for c, kind in enumerate(fleet.kinds)
        ],
    )


def print_result(result: rota.Result) -> None:
    """The tables of `rota simulate`."""
    system = result.system
    split = f" in {result.runs} runs" if result.runs > 1 else ""
    print(f"{result.name}: {result.jobs:,} jobs{split}, {result.simulated_time:.6g} units of time, seed {result.seed}")
    if result.start is not None:
        print(f"At time 0: {result.start.in_words(system.names)}.")
    if not result.stable:
        return
    left_out = (
        f", warm-up {result.warmup:.0%} left out" if result.warmup else ", all jobs" + " that came later" * (result.start is not None)
    )
    if not math.isnan(result.mean_response_time):
        print(f"Mean response time {with_interval(result.mean_response_time, result.interval)} (95 %){left_out}")
    for sentence in result.remarks:
        print(sentence)
    print_table(
        "Job types",
        ["", "jobs", "E[Q]", "±", "E[T]", "±", "waiting", "slowdown", "T 50%", "T 95%", "T 99%"],
        [
            (
                name,
                f"{result.counted[i]:,}",
                *interval_cells(result.mean_queue_length[i], result.mean_queue_length_interval[i]),
                *interval_cells(result.response_time[i], result.response_time_interval[i]),
                number(result.waiting_time[i]),
                number(result.slowdown[i]),
                *(number(result.type_response_time_quantiles[p][i]) for p in (0.5, 0.95, 0.99)),
            )
            for i, name in enumerate(system.names)
        ],
    )
    tails = [
        ("response time", result.mean_response_time, result.response_time_quantiles),
        ("waiting time", result.mean_waiting_time, result.waiting_time_quantiles),
        ("slowdown", result.mean_slowdown, result.slowdown_quantiles),
    ]
    print_table(
        "All jobs",
        ["", "mean", *(f"{100 * p:g}%" for p in result.response_time_quantiles)],
        [(label, number(mean, 5), *(number(x) for x in values.values())) for label, mean, values in tails],
    )
    if isinstance(result, rota.FleetResult):
        _print_kinds(result)
    used = ", ".join(f"{name} {part:.1%}" for name, part in zip(system.resources, result.utilization, strict=True))
    print(f"\nIn use: {used}.")
    print(f"Preemptions per unit of time: {result.preemption_rate:.4g}.")
    if result.switch_rate > 0:
        print(f"Switches per unit of time: {result.switch_rate:.4g}; {result.switching_fraction:.1%} of the time switching.")
    if result.unproved_decisions:
        print(f"Decisions not proved best: {result.unproved_decisions:,} of {result.events:,}.")
