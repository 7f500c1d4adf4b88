"""The files of a plan: plan.json, which `rota serve` runs, and plan.html, which shows everything."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from rota.model.live import live_settings
from rota.policy import PlanFile
from rota.report.page import GENERATOR

if TYPE_CHECKING:
    from rota.study import Plan

__all__ = ["is_plan", "plan_file"]


def plan_file(plan: Plan, spec: str, source: str) -> PlanFile:
    """What `rota serve` runs: the system, its `[live]` table, the policy recommended, and the response times to expect of it.

    `spec` is the text that was planned and `source` its name, for errors.
    """
    predicted = plan.results[plan.recommended_name].response_times_by_type
    live = live_settings(tomllib.loads(spec).get("live"), plan.system.resources, source)
    return PlanFile(plan.system, plan.recommended, live, plan.load.load, predicted)  # type: ignore[arg-type]  # never one's own


def is_plan(path: Path) -> bool:
    """Whether `rota plan` wrote this file."""
    try:
        text = path.read_text(encoding="utf-8")
        return GENERATOR in text[:1000] if path.suffix == ".html" else "rota_plan" in json.loads(text)
    except (OSError, ValueError, TypeError):
        return False
