"""`rota plan`: the main verb. What limits the server, what to run on it, how long people will wait, and a page that shows it."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

import rota
from rota.arguments import whole_file
from rota.cli.capacity import as_fields as load_fields
from rota.cli.output import ProgressLine, finite, print_json, print_table, remark
from rota.cli.outputs import STDOUT, check_output
from rota.cli.parameters import Flag, Force, Json, Seed, SystemFile
from rota.cli.plan_of_fleet import fleet_plan_fields, print_fleet_plan
from rota.display import number, rota_rows, verdict_cells

if TYPE_CHECKING:
    from rota.model import FleetSpec, Spec
    from rota.study import PlanProgress

_SIMULATES = 0.5  # of a plan: from there on compiled simulations leave the interpreter free, and what makes the page is loaded meanwhile


def plan(
    file: SystemFile,
    /,
    *,
    output: Annotated[str | None, Parameter(alias="-o")] = None,
    objective: Literal["mean", "slowdown", "p95", "worst-type"] = "mean",
    limit: Annotated[list[str] | None, Parameter(negative="")] = None,
    target: Annotated[list[str] | None, Parameter(negative="")] = None,
    jobs: int | None = None,
    seed: Seed = 0,
    tuning: float = 4.0,
    optimum: float = 10.0,
    table: Flag = False,
    html: Annotated[bool, Parameter(negative="--no-html")] = True,
    force: Force = False,
    json: Json = False,
) -> None:
    """Plans a server or a fleet: what limits it, which policy to run, how long people will wait, how far load can grow, what to buy.

    Writes the policy to run, plan.json, and a page that shows and checks everything, plan.html. Takes 15 seconds or so.

    Parameters
    ----------
    output
        Where to write: a folder, in which plan.json and plan.html are made or renewed; or a name, to which .json and .html are added. This
        folder if not given.
    objective
        What the recommended policy should keep low. mean: the mean response time; slowdown: the mean over all jobs of response
        time by the mean size of the type; p95: the time that 95% of the jobs are faster than; worst-type: the mean response time of a
        type by its mean size, of the type where that is largest.
    limit
        The mean response time that a type may have, as render=12h, or as render=12 in the file's unit of time. Can be given for several
        types. A policy that may take longer is not recommended.
    target
        Of a fleet: the mean response time that a type should have, as train=5h, or that of all jobs, as mean=30m. Can be given several
        times. How many servers keep it is searched for.
    jobs
        How many jobs are simulated under each policy: a million, or more if a type is rare, if not given; fewer of a policy whose queue
        grows or that is clearly worse than another one; a fifth of them or fewer at each other load or number of
        servers.
    tuning
        Seconds that the design of the rota may take; a small part of it at each other load.
    optimum
        Seconds that the search for the best policy possible may take, with few job types; 0 leaves it out.
    table
        Compare the best policy that this search found too, a table of decisions for this load, and recommend it where it is the best. The
        plan waits for the search as long as it may take.
    html
        Whether to make the page.
    """
    places, folder = _targets(output, html), _is_folder(output)
    for path in places.values():
        check_output(path, force or (folder and _is_plan(path)), new_folder=folder)
    from rota.model import Spec, read_any_spec

    spec = read_any_spec(file)  # once: it may be edited while it is planned
    system = spec.system if isinstance(spec, Spec) else spec.fleet
    limits, targets = _times(system, limit or [], "--limit"), _times(system, target or [], "--target")
    own: dict[str, Any] = {"optimum_s": optimum} if isinstance(spec, Spec) else {"targets": targets}
    own["table"] = table  # of a fleet it is refused
    load_page = cache(Thread(target=import_module, args=("rota.report",), daemon=True).start)
    with ProgressLine() as line, _interrupts() as interrupts:

        def show(at: PlanProgress) -> None:
            if interrupts:  # a computation answers Ctrl-C with its best result so far; here Ctrl-C ends the whole plan
                raise KeyboardInterrupt
            line.update(at.time_s, str(at), at.compiling)
            if html and at.part > _SIMULATES:
                load_page()

        found = rota.plan(system, objective=objective, limits=limits, jobs=jobs, seed=seed, tuning_s=tuning, progress=show, **own)
        if interrupts:
            raise KeyboardInterrupt
        options = [f"--objective={objective}"] if objective != "mean" else []
        options += [f"--limit={text}" for text in limit or []] + [f"--target={text}" for text in target or []]
        options += ["--table", "--optimum", f"{optimum:g}"] if table else []
        texts = _texts(found, spec, file, places, [*options, "--tuning", f"{tuning:g}"])
    _write(texts)
    if isinstance(found, rota.FleetPlan):
        print_json(fleet_plan_fields(found)) if json else print_fleet_plan(found)
    else:
        print_json(as_fields(found)) if json else print_plan(found)
        if found.optimum.remark:
            remark(found.optimum.remark)
    for path in texts:
        remark(f"written to {path}")


def _times(system: rota.System | rota.Fleet, given: list[str], option: str) -> dict[str, float]:
    """The limits or targets by type, from `render=12h`; a type has one."""
    from rota.study.fleet_target import checked_targets
    from rota.study.plan_objective import checked_limits

    found: dict[str, float | str] = {}
    for text in given:
        name, equals, limit = text.partition("=")
        if not equals:
            raise rota.BadSpec([rota.Problem(option, "must be TYPE=TIME, as render=12h", text)])
        if name in found:
            raise rota.BadSpec([rota.Problem(f"{option} {name}", "is given twice", limit)])
        found[name] = limit
    if option == "--limit":
        return checked_limits(system, found, option)
    if found and not isinstance(system, rota.Fleet):
        raise rota.BadSpec([rota.Problem(option, "is for a fleet, whose number of servers can change; of one server, use --limit")])
    return checked_targets(system, found, option) if isinstance(system, rota.Fleet) else {}


def _is_folder(output: str | None) -> bool:
    """Whether the output names a folder: one that is there, or any name that ends with a slash."""
    return output is None or output.endswith(os.sep) or Path(output).is_dir()


def _is_plan(path: Path) -> bool:
    if not path.exists():
        return False
    from rota.report.plan_files import is_plan

    return is_plan(path)


def _targets(output: str | None, html: bool) -> dict[str, Path]:
    """Where the files go, by their ending."""
    path = Path(output or "")
    if _is_folder(output):
        base = path / "plan"
    elif path == STDOUT:
        return {"json": path}  # refused
    else:
        base = path.with_suffix("") if path.suffix in (".json", ".html") else path
    return {end: base.with_name(f"{base.name}.{end}") for end in (("json", "html") if html else ("json",))}


def _texts(
    found: rota.Plan | rota.FleetPlan, spec: Spec | FleetSpec, file: Path, targets: dict[str, Path], options: list[str]
) -> dict[Path, str]:
    from rota.policy import fleet_plan_file_to_json, plan_file_to_json
    from rota.report.plan_files import fleet_plan_file, plan_file

    if isinstance(found, rota.FleetPlan):
        texts = {targets["json"]: fleet_plan_file_to_json(fleet_plan_file(found))}
    else:
        texts = {targets["json"]: plan_file_to_json(plan_file(found, spec.live))}  # type: ignore[union-attr]  # that of one server
    if "html" in targets:
        from rota.report import fleet_plan_html, plan_html

        command = shlex.join(["rota", "plan", file.name, "--jobs", str(found.jobs), "--seed", str(found.seed), *options])
        about = {"source": file.name, "command": command, "spec": spec.text}
        page = fleet_plan_html(found, **about) if isinstance(found, rota.FleetPlan) else plan_html(found, **about)
        texts[targets["html"]] = page
    return texts


def _write(texts: dict[Path, str]) -> None:
    """All files whole, or none."""
    with ExitStack() as stack:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(whole_file(path)).write_text(text, encoding="utf-8")


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Remembers every Ctrl-C within."""
    heard: list[int] = []

    def hear(number: int, _: FrameType | None) -> None:
        heard.append(number)
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGINT, hear)
    except ValueError:  # not in the main thread, where no Ctrl-C arrives
        yield heard
        return
    try:
        yield heard
    finally:
        signal.signal(signal.SIGINT, before)


def as_fields(found: rota.Plan) -> dict[str, Any]:
    """The fields of a `Plan` under their Python names; what is undefined becomes null."""
    from rota.design import MeanResponse

    answer = found.analysis
    types = {"lower": answer.lower, "upper": answer.upper, "prediction": answer.prediction if answer.exponential else None}
    result = found.results[found.recommended_name]
    return finite(
        {
            "recommended": found.recommended_name,
            "explanation": found.explain(),
            "objective": found.objective,
            "type_limits": found.type_limits,
            "keeps_limits": found.keeps_limits,
            "excluded": found.excluded,
            "worse_off": [vars(row) for row in found.worse_off],
            "optimum": found.optimum.fields(),
            "pairs": found.comparison.pairs,
            "load": load_fields(found.load),
            "rota": {"candidates": found.rota.candidates, "weights": found.rota.weights, "switching_rate": found.rota.switching_rate}
            | MeanResponse.of(answer).fields(),
            "balanced": found.balanced.fields(),
            "analysis": {**types, "response_time": answer.response_time if found.exact else None, "as_given": found.as_given},
            "response_time": dict(zip(found.system.names, result.response_time.tolist(), strict=True)),
            "bursts": None if found.bursts is None else found.bursts.fields(),
            "policies": found.table().to_dicts(),
            "by_load": found.by_load.to_dicts(),
            "jobs": found.jobs,
            "grid_jobs": found.grid_jobs,
            "seed": found.seed,
            "time_s": found.time_s,
            "version": found.version,
        }
    )


def print_plan(found: rota.Plan) -> None:
    """The tables of `rota plan`."""
    print(found.explain())
    names, rota_ = found.system.names, found.rota
    print_table(
        "Best rota without backfilling",
        ["time", "jobs together"],
        rota_rows(rota_.candidates.tolist(), rota_.weights.tolist(), names),
        left=(1,),
    )
    columns, early = _columns(found), found.comparison.early_words()
    rows = []
    for row in found.table().to_dicts():
        grows = found.limits[row["policy"]].scaling_text(found.load.load)
        label = f"{row['policy']} *" if row["recommended"] else row["policy"]
        seen = (f"{row['jobs']:,}",) if early else ()
        rows.append((label, *seen, *(verdict_cells(row, len(columns)) or (cell(row) for cell in columns.values())), grows))
    print_table(
        f"Response time, {'at most ' if early else ''}{found.jobs:,} jobs each, the same for all, seed {found.seed}",
        ["policy", *(["jobs"] if early else []), *(name.strip() for name in columns), "arrivals ×"],
        rows,
    )
    notes = [early, found.comparison.at_once() if found.comparison.pairs > 1 else ""]
    for note in filter(None, notes):
        print(f"\n{note}")


def _columns(found: rota.Plan) -> dict[str, Callable[[dict[str, Any]], str]]:
    """The columns of the table of policies between their names and how far load can grow; spaces tell columns of one head apart."""
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "mean": lambda row: number(row["mean_response_time"], 4),
        "±": lambda row: number(row["interval"], 2),
    }
    if found.objective != "mean":
        columns |= {found.measure.head: lambda row: number(row["objective"], 4), "± ": lambda row: number(row["objective_interval"], 2)}
    columns |= {
        "against *": lambda row: "–" if row["objective_difference"] is None else f"{row['objective_difference']:+.3g}",
        "±  ": lambda row: "" if row["objective_difference"] is None else number(row["objective_difference_interval"], 2),
    }
    if found.optimum.reference is not None:
        above = "above optimum" if found.optimum.settled else "above bound"
        columns[above] = lambda row: f"{row['above_optimum']:.0%}"
    if found.objective != "p95":
        columns["95%"] = lambda row: number(row["p95"])
    columns["99%"] = lambda row: number(row["p99"])
    return columns
