"""The `[live]` table of a spec: how `rota serve` runs the plan on a real machine. Nothing else reads it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rota.errors import BadSpec, Problem, problems_of
from rota.model.system import SECONDS, TimeUnit

__all__ = ["OWN_TYPE", "LiveSettings", "live_settings", "unknown_resources"]

OWN_TYPE = "own"  # the scheduler's name for jobs that no type encloses; so no type may have it

_RELEASED = ("core", "cpu", "network", "bandwidth")  # a stopped process does not use these


class LiveSettings(BaseModel):
    """How jobs are run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    time_unit: TimeUnit = Field(default="s", description="unit of time of the file's rates and sizes; better set at the top of the file")
    preemption: Literal["none", "suspend", "requeue"] = Field(
        default="none", description="none: no running job is stopped; suspend: SIGSTOP, SIGCONT; requeue: ended, and started again"
    )
    releasable: dict[str, bool] = Field(
        default_factory=dict,
        description="by resource: whether a suspended job gives it back; by default cores and network are given back, nothing else",
    )
    grace_s: Annotated[float, Field(ge=0, le=86400)] = Field(default=10.0, description="seconds from SIGTERM to SIGKILL")
    memory_limit: Literal["auto", "cgroup", "rlimit", "none"] = Field(
        default="auto", description="how a job is held to its memory; auto: cgroup v2 if available, else RLIMIT_AS"
    )
    learn: bool = Field(default=True, description="whether the rota is redesigned when arrivals or sizes drift from the plan")
    window: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, description="how far back learning looks, in units of time"
    )
    keep_days: Annotated[float, Field(gt=0)] = Field(default=30.0, description="how long ended jobs and their output are kept")

    @property
    def unit_s(self) -> float:
        """Seconds in a unit of time."""
        return SECONDS[self.time_unit]

    def releases(self, resource: str) -> bool:
        """Whether a suspended job gives this resource back."""
        return self.releasable.get(resource, resource.lower().startswith(_RELEASED))


def live_settings(raw: Any, resources: tuple[str, ...], source: str | None = None) -> LiveSettings:
    """The settings from their table; raises `BadSpec` with every problem."""
    try:
        settings = LiveSettings.model_validate({} if raw is None else raw)
    except ValidationError as error:
        raise BadSpec([Problem(f"live.{p.place}" if p.place else "live", p.rule, p.value) for p in problems_of(error)], source) from None
    problems = unknown_resources(settings, resources)
    if problems:
        raise BadSpec(problems, source)
    return settings


def unknown_resources(settings: LiveSettings, resources: tuple[str, ...]) -> list[Problem]:
    """A problem for each resource that the settings name and the server does not have."""
    rule = f"the server has no such resource (it has: {', '.join(resources)})"
    return [Problem(f"live.releasable.{name}", rule) for name in settings.releasable if name not in resources]
