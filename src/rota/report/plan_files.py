"""The files of a plan: plan.json, which `rota serve` runs, and plan.html, which shows everything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from rota.model.live import LiveSettings
from rota.policy import FleetPlanFile, PlanFile
from rota.report.page_parts import GENERATOR

if TYPE_CHECKING:
    from rota.study import FleetPlan, Plan

__all__ = ["fleet_plan_file", "is_plan", "plan_file"]


def plan_file(plan: Plan, live: LiveSettings) -> PlanFile:
    """What `rota serve` runs: the system, its settings, the policy recommended, and the response times to expect of it."""
    predicted = plan.results[plan.recommended_name].response_times_by_type
    return PlanFile(plan.system, plan.recommended, live, plan.load.load, predicted)


def fleet_plan_file(plan: FleetPlan) -> FleetPlanFile:
    """What is recommended for a fleet: what its servers run, the dispatch rule, and the response times to expect."""
    option = plan.recommended
    return FleetPlanFile.of(plan.fleet, option.policy, option.dispatch, plan.load.load, plan.result.response_times_by_type)


def is_plan(path: Path) -> bool:
    """Whether `rota plan` wrote this file."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".html":
            return GENERATOR in text[:1000]
        content = json.loads(text)
        return "rota_plan" in content or "rota_fleet_plan" in content
    except (OSError, ValueError, TypeError):
        return False
