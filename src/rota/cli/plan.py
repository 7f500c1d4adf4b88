"""`rota plan`: the main job. What limits the server, what to run on it, how long people will wait, and a page that shows it."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from json import loads
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

import rota
from rota.cli.capacity import as_fields as load_fields
from rota.cli.output import ProgressLine, check_place, finite, jobs_together, print_json, print_table, remark, verdict_cells

if TYPE_CHECKING:
    from rota.model import Spec
    from rota.model.live import LiveSettings
    from rota.policy import PlanFile
    from rota.study import PlanProgress


def plan(
    file: Path,
    /,
    *,
    output: Annotated[str | None, Parameter(alias="-o")] = None,
    jobs: int | None = None,
    seed: int = 0,
    tuning: float = 4.0,
    html: Annotated[bool, Parameter(negative="--no-html")] = True,
    force: Annotated[bool, Parameter(negative="")] = False,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Plans a server: what limits it, the best rota, which policy to run, how long people will wait, how far load can grow.

    Writes the policy to run, plan.json, and a page that shows and checks everything, plan.html. Takes half a minute or so.

    Parameters
    ----------
    file
        The system, a TOML file (see: rota schema).
    output
        Where to write: a folder (plan.json and plan.html in it), or a name to which .json and .html are added. This folder if not given.
    jobs
        How many jobs are simulated under each policy: a million, or more if a type is rare, if not given; a fifth of them at each other
        load.
    seed
        The same seed gives the same jobs.
    tuning
        Seconds that the rota may be tuned for; a sixth of it at each other load.
    html
        Whether to make the page.
    force
        Write over files that are no plans of Rota's own; those are renewed without a word.
    json
        Print one JSON object instead of tables.
    """
    targets = _targets(output, html)
    for path in targets.values():
        check_place(path)
    if not force and (there := [str(path) for path in targets.values() if path.exists() and not _is_a_plan(path)]):
        raise rota.BadSpec([rota.Problem("--output", "is there, and no plan of Rota: --force writes over it", path) for path in there])
    from rota.model import read_spec

    spec = read_spec(file)  # once: it may be edited while it is planned
    with ProgressLine() as line, _interrupts() as interrupts:

        def show(at: PlanProgress) -> None:
            if interrupts:  # a computation took Ctrl-C as a wish for its best answer so far: here it means the whole plan
                raise KeyboardInterrupt
            line.update(at.time_s, f"{at.step}, {at.time_s:.0f} s", at.compiling)

        found = rota.plan(spec.system, jobs=jobs, seed=seed, tuning_s=tuning, progress=show)
        if interrupts:
            raise KeyboardInterrupt
        texts = _texts(found, spec, file, targets, tuning)
    _write(texts)
    print_json(as_fields(found)) if json else print_plan(found)
    for path in texts:
        remark(f"written: {path}")


def _targets(output: str | None, html: bool) -> dict[str, Path]:
    """Where the files go, by their ending. A name that ends with a slash is a folder, also where there is none yet."""
    path = Path(output or "")
    if path.is_dir() or (output or "").endswith(os.sep):
        base = path / "plan"
    else:
        base = path.with_suffix("") if path.suffix in (".json", ".html") else path
    return {end: base.with_name(f"{base.name}.{end}") for end in (("json", "html") if html else ("json",))}


def _is_a_plan(path: Path) -> bool:
    """Whether `rota plan` wrote this file, which it may then renew."""
    from rota.report.page import GENERATOR

    try:
        text = path.read_text(encoding="utf-8")
        return GENERATOR in text[:1000] if path.suffix == ".html" else "rota_plan" in loads(text)
    except (OSError, ValueError, TypeError):
        return False


def _texts(found: rota.Plan, spec: Spec, file: Path, targets: dict[str, Path], tuning: float) -> dict[Path, str]:
    from rota.policy import plan_file_to_json

    texts = {targets["json"]: plan_file_to_json(plan_file(found, spec.live))}
    if "html" in targets:
        from rota.report import plan_html

        command = shlex.join(["rota", "plan", file.name, "--jobs", str(found.jobs), "--seed", str(found.seed), "--tuning", f"{tuning:g}"])
        texts[targets["html"]] = plan_html(found, source=file.name, command=command, spec=spec.text)
    return texts


def plan_file(found: rota.Plan, live: LiveSettings) -> PlanFile:
    """What `rota serve` runs: the system, the policy recommended, and the response times to expect of it."""
    from rota.policy import PlanFile

    predicted = found.results[found.recommended_name].response_times_by_type
    return PlanFile(found.system, found.recommended, live, found.load.load, predicted)


def _write(texts: dict[Path, str]) -> None:
    """All files whole, or none: each is written beside its place and then moved there."""
    beside = {path: path.with_name(f".{path.name}.{os.getpid()}") for path in texts}
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            beside[path].write_text(text, encoding="utf-8")
        for path, whole in beside.items():
            whole.replace(path)
    finally:
        for half in beside.values():
            half.unlink(missing_ok=True)


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
    answer = found.analysis
    types = {"lower": answer.lower, "upper": answer.upper, "prediction": answer.prediction if answer.exponential else None}
    result = found.results[found.recommended_name]
    return finite(
        {
            "recommended": found.recommended_name,
            "explanation": found.explain(),
            "load": load_fields(found.load),
            "rota": {"candidates": found.rota.candidates, "weights": found.rota.weights, "switching_rate": found.rota.switching_rate},
            "analysis": {**types, "response_time": answer.response_time if found.exact else None, "as_given": found.as_given},
            "response_time": dict(zip(found.system.names, result.response_time.tolist(), strict=True)),
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
        "Best rota without backfilling, tuned on the response time",
        ["time", "jobs together"],
        [(f"{weight:.2%}", jobs_together(row, names)) for row, weight in zip(rota_.candidates, rota_.weights, strict=True)],
        left=(1,),
    )
    rows = []
    for row in found.table().to_dicts():
        grows = found.limits[row["policy"]].scaling_text(found.load.load)
        label = f"{row['policy']} *" if row["recommended"] else row["policy"]
        cells = verdict_cells(row, 6)
        if not cells:
            apart = ("–", "") if row["difference"] is None else (f"{row['difference']:+.3g}", f"{row['difference_interval']:.2g}")
            cells = (f"{row['mean_response_time']:.4g}", f"{row['interval']:.2g}", *apart, f"{row['p95']:.4g}", f"{row['p99']:.4g}")
        rows.append((label, *cells, grows))
    print_table(
        f"Response time, {found.jobs:,} jobs each, the same for all, seed {found.seed}",
        ["policy", "mean", "±", "against *", "±", "95%", "99%", "arrivals ×"],
        rows,
    )
