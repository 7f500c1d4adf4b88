"""`rota plan`: the main verb. What limits the server, what to run on it, how long people will wait, and a page that shows it."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

import rota
from rota.arguments import whole_file
from rota.cli.capacity import as_fields as load_fields
from rota.cli.output import ProgressLine, finite, print_json, print_table, remark
from rota.cli.outputs import STDOUT, check_output
from rota.cli.parameters import Force, Json, Seed, SystemFile
from rota.display import interval_cells, number, rota_rows, verdict_cells

if TYPE_CHECKING:
    from rota.model import Spec
    from rota.study import PlanProgress


def plan(
    file: SystemFile,
    /,
    *,
    output: Annotated[str | None, Parameter(alias="-o")] = None,
    jobs: int | None = None,
    seed: Seed = 0,
    tuning: float = 4.0,
    html: Annotated[bool, Parameter(negative="--no-html")] = True,
    force: Force = False,
    json: Json = False,
) -> None:
    """Plans a server: what limits it, the best rota, which policy to run, how long people will wait, how far load can grow.

    Writes the policy to run, plan.json, and a page that shows and checks everything, plan.html. Takes half a minute or so.

    Parameters
    ----------
    output
        Where to write: a folder, in which plan.json and plan.html are made or renewed; or a name, to which .json and .html are added. This
        folder if not given.
    jobs
        How many jobs are simulated under each policy: a million, or more if a type is rare, if not given; a fifth of them at each other
        load.
    tuning
        Seconds that the design of the rota may take; a sixth of it at each other load.
    html
        Whether to make the page.
    """
    targets, folder = _targets(output, html), _is_folder(output)
    for path in targets.values():
        check_output(path, force or (folder and _is_plan(path)), new_folder=folder)
    from rota.model import read_spec

    spec = read_spec(file)  # once: it may be edited while it is planned
    with ProgressLine() as line, _interrupts() as interrupts:

        def show(at: PlanProgress) -> None:
            if interrupts:  # a computation answers Ctrl-C with its best result so far; here Ctrl-C ends the whole plan
                raise KeyboardInterrupt
            line.update(at.time_s, f"{at.step}, {at.time_s:.0f} s", at.compiling)

        found = rota.plan(spec.system, jobs=jobs, seed=seed, tuning_s=tuning, progress=show)
        if interrupts:
            raise KeyboardInterrupt
        texts = _texts(found, spec, file, targets, tuning)
    _write(texts)
    print_json(as_fields(found)) if json else print_plan(found)
    for path in texts:
        remark(f"written to {path}")


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


def _texts(found: rota.Plan, spec: Spec, file: Path, targets: dict[str, Path], tuning: float) -> dict[Path, str]:
    from rota.policy import plan_file_to_json
    from rota.report.plan_files import plan_file

    texts = {targets["json"]: plan_file_to_json(plan_file(found, spec.live))}
    if "html" in targets:
        from rota.report import plan_html

        command = shlex.join(["rota", "plan", file.name, "--jobs", str(found.jobs), "--seed", str(found.seed), "--tuning", f"{tuning:g}"])
        texts[targets["html"]] = plan_html(found, source=file.name, command=command, spec=spec.text)
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
    rows = []
    for row in found.table().to_dicts():
        grows = found.limits[row["policy"]].scaling_text(found.load.load)
        label = f"{row['policy']} *" if row["recommended"] else row["policy"]
        cells = verdict_cells(row, 6)
        if not cells:
            apart = ("–", "") if row["difference"] is None else (f"{row['difference']:+.3g}", number(row["difference_interval"], 2))
            cells = (*interval_cells(row["mean_response_time"], row["interval"], 4), *apart, f"{row['p95']:.4g}", f"{row['p99']:.4g}")
        rows.append((label, *cells, grows))
    print_table(
        f"Response time, {found.jobs:,} jobs each, the same for all, seed {found.seed}",
        ["policy", "mean", "±", "against *", "±", "95%", "99%", "arrivals ×"],
        rows,
    )
