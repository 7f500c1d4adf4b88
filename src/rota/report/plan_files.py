"""The files of a plan: plan.json, which `rota serve` runs, and plan.html, which shows everything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from rota.model.live import LiveSettings
from rota.policy import PlanFile
from rota.report.page import GENERATOR

if TYPE_CHECKING:
    from rota.study import Plan

__all__ = ["is_plan", "plan_file"]


def plan_file(plan: Plan, live: LiveSettings) -> PlanFile:
    """What `rota serve` runs: the system, its settings, the policy recommended, and the response times to expect of it."""
    predicted = plan.results[plan.recommended_name].response_times_by_type
    return PlanFile(plan.system, plan.recommended, live, plan.load.load, predicted)


def is_plan(path: Path) -> bool:
    """Whether `rota plan` wrote this file."""
    try:
        text = path.read_text(encoding="utf-8")
        return GENERATOR in text[:1000] if path.suffix == ".html" else "rota_plan" in json.loads(text)
    except (OSError, ValueError, TypeError):
        return False
