"""Messages between the scheduler and its clients; the daemon, the HTTP interface, the Python client and the command line share them.

Times are in seconds since 1970; durations are in seconds and end in `_s`, whatever the unit of time of the plan.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = [
    "BEFORE_START",
    "ENDED",
    "STATES",
    "ChangeRequest",
    "Changed",
    "Explanation",
    "Job",
    "JobRequest",
    "JobState",
    "PlanVersion",
    "ResourceUse",
    "Status",
    "Submitted",
    "TypeStatus",
]

JobState = Literal["held", "blocked", "waiting", "starting", "running", "suspended", "stopping", "done", "failed", "cancelled"]
STATES: tuple[JobState, ...] = ("held", "blocked", "waiting", "starting", "running", "suspended", "stopping", "done", "failed", "cancelled")
BEFORE_START: tuple[JobState, ...] = ("held", "blocked", "waiting")
ENDED: tuple[JobState, ...] = ("done", "failed", "cancelled")

_MOST_ARRAY = 100_000
_MOST_PAIRS = 10_000_000  # (job, predecessor): each job of an array lists all its predecessors
_LONGEST_PATH, _LONGEST_NAME = 4095, 255  # bytes: PATH_MAX of Linux, less the NUL that ends it; NAME_MAX
Name = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Text = Annotated[str, Field(max_length=131_072, pattern=r"^[^\x00]*$")]
Id = Annotated[int, Field(ge=1, le=2**62)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class JobRequest(_Message):
    """A job, or an array of jobs, to be run."""

    argv: Annotated[list[Text], Field(min_length=1, max_length=10_000)] = Field(
        description="the program and its arguments; no shell is involved"
    )
    type: Name | None = Field(default=None, description="job type of the plan; give this or `demand`")
    demand: dict[Name, Annotated[float, Field(ge=0, allow_inf_nan=False)]] | None = Field(
        default=None, description="resources it needs, by the server's names; mapped to the smallest type that encloses it"
    )
    name: Name = ""
    cwd: Text = Field(default="/", description="an absolute path")
    env: dict[Text, Text] = Field(default_factory=dict, description="the whole environment of the job")
    array: tuple[int, int] | None = Field(default=None, description="first and last index: one job each, with ROTA_ARRAY_INDEX")
    after: list[Id] = Field(default_factory=list, description="jobs that must end well first", max_length=_MOST_ARRAY)
    after_any: list[Id] = Field(default_factory=list, description="jobs that must end first, well or not", max_length=_MOST_ARRAY)
    hold: bool = False
    estimate_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, description="how long it may take, for EASY"
    )

    @model_validator(mode="after")
    def _consistent(self) -> JobRequest:
        if (self.type is None) == (self.demand is None):
            raise ValueError("give either type or demand, and only one of them")
        if not self.cwd.startswith("/"):
            raise ValueError("cwd must be an absolute path")
        if len(self.cwd.encode()) > _LONGEST_PATH or any(len(name.encode()) > _LONGEST_NAME for name in self.cwd.split("/")):
            raise ValueError(f"cwd must be a path of at most {_LONGEST_PATH} bytes, with at most {_LONGEST_NAME} in each name")
        if not self.argv[0]:
            raise ValueError("the program has no name")
        if any(not key or "=" in key for key in self.env):
            raise ValueError("a name in env is empty or holds '='")
        if self.array is not None:
            first, last = self.array
            if not 0 <= first <= last < 2**31 or last - first >= _MOST_ARRAY:
                raise ValueError(f"array must be 0 ≤ first ≤ last with at most {_MOST_ARRAY:,} jobs")
            if (last - first + 1) * (len(self.after) + len(self.after_any)) > _MOST_PAIRS:
                raise ValueError(
                    "an array as large as this cannot come after so many jobs: let one job come after them, and the array after it"
                )
        return self


class Submitted(_Message):
    """The answer to a request: the numbers of its jobs, their class, and a remark where there is something to say."""

    ids: list[int]
    type: str = Field(description="the type they run as; 'own' if no type encloses the demand")
    remark: str = ""


class ChangeRequest(_Message):
    """Several jobs to be cancelled, held or released together."""

    action: Literal["cancel", "hold", "release"]
    ids: Annotated[list[Id], Field(min_length=1, max_length=_MOST_ARRAY)]
    now: bool = Field(default=False, description="for cancel: kill running jobs at once, without a grace period")


class Job(_Message):
    """A job as the scheduler knows it."""

    id: int
    name: str
    type: str = Field(description="'own' for a demand that no type encloses")
    demand: dict[str, float]
    state: JobState
    argv: list[str]
    cwd: str
    array: int | None = Field(default=None, description="the first job of its array")
    index: int | None = Field(default=None, description="its index in the array")
    after: list[int] = []
    after_any: list[int] = []
    submitted: float
    started: float | None = Field(default=None, description="first start")
    ended: float | None = None
    response_s: float | None = Field(default=None, description="from submission to end, by a clock that is never set")
    run_s: float | None = Field(default=None, description="time in service so far, or in all")
    exit_code: int | None = Field(default=None, description="of the program; 128 + n if signal n ended it")
    restarts: int = 0
    cores: list[int] | None = None
    gpus: list[int] | None = None
    pid: int | None = None
    reason: str = Field(default="", description="why it is held, failed or was cancelled")
    output: str = Field(default="", description="the file with its output")
    cut: list[str] = Field(default=[], description="in a list: the fields of which only the beginning is shown; /jobs/{id} has all of them")


class Changed(_Message):
    """The answer to a `ChangeRequest`: the jobs as they are then, and why others were not changed."""

    jobs: list[Job]
    refused: list[str]


class ResourceUse(_Message):
    """A resource of the server: `used` by jobs in service, `kept` by suspended or stopping ones."""

    name: str
    capacity: float
    used: float
    kept: float = 0
    enforced: str = Field(
        default="", description="what holds a job to its share: 'affinity', 'rlimit', 'cgroup', 'CUDA_VISIBLE_DEVICES', ''"
    )


class TypeStatus(_Message):
    """A job type: counts, and measured beside predicted."""

    name: str
    demand: dict[str, float] = Field(default={}, description="what a job of this type needs; for 'own', each its own")
    waiting: int
    running: int
    slots: int | None = Field(default=None, description="places in the schedule now, for a rota")
    ended: int
    arrival_rate: float | None = Field(default=None, description="estimate, per second")
    planned_arrival_rate: float
    mean_size_s: float | None = Field(default=None, description="estimate")
    planned_mean_size_s: float
    mean_response_s: float | None = None
    p95_response_s: float | None = None
    predicted_mean_response_s: float | None = None
    predicted_p95_response_s: float | None = None


class Status(_Message):
    """The scheduler at one moment."""

    version: str
    policy: str
    plan: int = Field(description="number of the plan in use")
    pinned: bool
    preemption: Literal["none", "suspend", "requeue"]
    uptime_s: float
    now: float
    resources: list[ResourceUse]
    types: list[TypeStatus]
    own: TypeStatus | None = Field(default=None, description="jobs that no type encloses, if any")
    counts: dict[str, int] = Field(description="jobs by state")
    phase: str = Field(description="what the rota does now: its schedule in words, 'switching to …'; '' for other policies")
    next_switch_s: float | None = None
    load: float | None = Field(default=None, description="estimate of the system load: the work that arrives, not what runs now")
    load_error: float | None = Field(default=None, description="its standard error")
    load_basis: str = Field(default="", description="what it was estimated from, in words")
    planned_load: float
    warnings: list[str] = Field(default_factory=list, description="load above 1, disk full, what cannot be enforced")
    starts: int = 0
    decisions: int = 0
    decision_us: float | None = Field(default=None, description="mean time per decision, in microseconds")
    decision_p99_us: float | None = None
    redesigning: bool = False


class PlanVersion(_Message):
    """A plan that is or was in use."""

    number: int
    time: float
    policy: str
    reason: str
    load: float
    in_use: bool
    pinned: bool
    arrival_rate: dict[str, float] = Field(description="per second, that it was made for")
    mean_size_s: dict[str, float]
    predicted_mean_response_s: dict[str, float] = {}


class Explanation(_Message):
    """Why a job does not run, and when it can be expected to."""

    id: int
    state: JobState
    text: str = Field(description="a few sentences")
    ahead: int | None = Field(default=None, description="jobs of its type before it")
    as_of: float | None = Field(default=None, description="the moment from which the times below count; the job still waited then")
    start_median_s: float | None = Field(default=None, description="it starts within this time from `as_of` on with probability 50 %")
    start_p80_s: float | None = Field(default=None, description="… with probability 80 %")
    start_p90_s: float | None = Field(default=None, description="… with probability 90 %")
    start_p95_s: float | None = Field(default=None, description="… with probability 95 %")
    at_least: list[str] = Field(default=[], description="which of these are only lower bounds: futures were not followed further")
    method: Literal["", "theory", "simulation"] = Field(default="", description="the exact law of the rota, or simulated futures")
    runs: int = Field(default=0, description="simulated futures")
