"""One run of a study: what defines it, as plain text and numbers; what is measured; and how to repeat it.

A run is sent to other processes and machines, and a key identifies it. So it holds text instead of objects: the system as TOML (at
the load of the run) and the policy as JSON. That is a policy's file, or what to design (`{"design": "nMSR", …}`): designing is part of the
run, so that it too is spread over the workers. A policy of your own is the place that it is imported from and a hash of its source
(`{"custom": "mine:longest_first", "source": "…"}`). What the servers of a fleet do is one text too (`rota.study.fleet_grid`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from rota import __version__
from rota.capacity import Load, system_load
from rota.errors import BadSpec, Problem, RotaError
from rota.imported import source_of
from rota.model import Fleet, System, Workload
from rota.model.spec import parse_any_system
from rota.policy import MSR, Custom, Policy, design_named, policy_from_dict, policy_to_json
from rota.policy.custom import custom_at, place_of_custom
from rota.policy.registry import record_named
from rota.simulation import Result, simulate
from rota.simulation.arguments import LEAST_JOBS
from rota.simulation.fleet.files import fleet_policy_plain
from rota.simulation.fleet.policy import FleetPolicy
from rota.simulation.of_fleet import server_for
from rota.study.fleet_grid import fleet_policy_of
from rota.study.workloads import defining, workload_from_text

__all__ = ["Run", "failed", "measure", "policy_from_text", "policy_text", "repeat"]


@dataclass(frozen=True)
class Run:
    """What defines a run. `policy` is its name for people; `definition` is the policy as JSON, or what to design.

    `switching_rate` and `setup_rate` are those of the grid, None where it has none for this policy.
    """

    policy: str
    definition: str
    system: str
    load: float
    switching_rate: float | None
    setup_rate: float | None
    jobs: int
    seed: int
    rota: str = __version__
    workload: str | None = None  # its text (`rota.study.workloads`); None: those of the system

    @property
    def case(self) -> str:
        """The same for all seeds: a hash of system, policy, workload, number of jobs and version of Rota."""
        parts = [self.system, self.definition, self.jobs, self.rota]
        parts += [] if self.workload is None else [defining(self.workload)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    @property
    def key(self) -> str:
        """Runs of the same key are the same run, whatever their policy is called."""
        return f"{self.case}-{self.seed}"


# ---------------------------------------------------------------------------------------------------------- policies as text


def policy_text(policy: Policy) -> str:
    """A policy as JSON."""
    if isinstance(policy, Custom):
        place = place_of_custom(policy)
        return json.dumps({"custom": place, "source": source_of(place, "policies")})
    if isinstance(policy, FleetPolicy):
        return json.dumps({"fleet": fleet_policy_plain(policy, lambda one: json.loads(policy_text(one)))})
    return policy_to_json(policy)


def policy_from_text(text: str) -> Policy:
    """The policy that `policy_text` wrote."""
    fields = json.loads(text)
    if "rota_policy" in fields:
        return policy_from_dict(fields)
    if "custom" in fields:
        policy, now = custom_at(fields["custom"]), source_of(fields["custom"], "policy")
        if now != fields["source"]:
            rule = f"{fields['custom']} has changed since the study began (hash {fields['source']}, now {now})"
            raise BadSpec([Problem("policy", rule)])
        return policy
    record = record_named(fields.pop("policy"))  # results of older releases: a name, and the fields
    if record is None:
        raise BadSpec([Problem("policy", "is not known to this release: repeat it with the Rota that made it (column rota)", text)])
    return record.policy(**fields)


def _policy_of(definition: str, text: str) -> Policy:
    """The policy. That of a file of the user is read again each time: the file may have changed."""
    return (_read_policy if '"custom"' in definition else _kept_policy)(definition, text)


def _read_policy(definition: str, text: str) -> Policy:
    fields, system = json.loads(definition), _system_of(text)
    if isinstance(system, Fleet):
        return fleet_policy_of(system, fields["fleet"], policy_from_text)
    if "design" not in fields:
        return policy_from_text(definition)
    return design_named(fields.pop("design"), system, load=_load_of(text), **fields)


_kept_policy = lru_cache(maxsize=64)(_read_policy)  # a design takes long, and the runs of a grid share it


@lru_cache(maxsize=64)
def _system_of(text: str) -> System | Fleet:
    return parse_any_system(text)


@lru_cache(maxsize=64)  # so do the designs of one system
def _load_of(text: str) -> Load:
    system = _system_of(text)
    assert isinstance(system, System)
    return system_load(system)


# -------------------------------------------------------------------------------------------------------------- measurements


def measure(run: Run) -> dict[str, Any]:
    """Runs it: the row of the results. A policy that cannot run here gives a row as well, with the reason."""
    if run.rota != __version__:  # results of two versions must not be mixed
        return failed(run, f"this worker has Rota {__version__}, the sweep was started with {run.rota}: install the same everywhere")
    try:
        workload = _given(run)
    except RotaError as error:
        return failed(run, str(error))
    try:
        policy = _policy_of(run.definition, run.system)
        result = simulate(_server_of(run.system), policy, jobs=_at_least(run.jobs), seed=run.seed, workload=workload)
    except RotaError as error:
        return _row(run, outcome="impossible", error=str(error))
    except Exception as error:  # one run of thousands must not end the sweep: the row says so, and the next sweep tries again
        return failed(run, f"{type(error).__name__}: {error}")
    if result.interrupted:  # a partial run is not a result
        raise KeyboardInterrupt
    return _row(run, **_measured(result, run.definition))


def _server_of(text: str) -> System:
    """The server that jobs arrive at: of a fleet one as large as all."""
    return server_for(_system_of(text), None, 0.0, None)


def _given(run: Run) -> Workload | None:
    """The workload, if there is one. Files and modules outside the run may be missing or different on this machine."""
    if '"custom"' in run.definition:
        _policy_of(run.definition, run.system)
    return None if run.workload is None else workload_from_text(run.workload)


def failed(run: Run, error: str) -> dict[str, Any]:
    """The row of a run that failed for a reason other than its policy, and may be tried again."""
    return _row(run, outcome="failed", error=error)


def _row(run: Run, **fields: Any) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    defined = {"key": run.key, "case": run.case, **asdict(run), "finished_at": now}
    del defined["definition"]
    return defined | fields


def _measured(result: Result, definition: str) -> dict[str, Any]:
    system, policy = result.system, result.policy
    rates = {"switching_rate": policy.switching_rate, "setup_rate": policy.setup_rate} if isinstance(policy, MSR) else {}
    scalars = (
        *("stable", "growth", "mean_response_time", "interval", "mean_waiting_time", "mean_slowdown"),
        *("preemption_rate", "switch_rate", "switching_fraction", "warmup", "simulated_time", "events", "time_s"),
    )
    arrays = ("mean_queue_length", "mean_queue_length_interval", "response_time", "response_time_interval", "utilization")
    return {
        "outcome": "done",
        "policy_json": definition if isinstance(policy, Custom) else policy_text(policy),
        "names": list(system.names),
        "resources": list(system.resources),
        **rates,
        **{name: getattr(result, name) for name in scalars},
        **{name: getattr(result, name).tolist() for name in arrays},
        **{f"p{100 * p:g}": float(value) for p, value in result.response_time_quantiles.items()},
    }


def repeat(row: Mapping[str, Any]) -> Result:
    """Runs a row of the results again, from what the row holds and nothing else."""
    missing = [name for name in ("system", "policy_json", "jobs", "seed") if name not in row]
    if missing:
        raise BadSpec([Problem("row", f"must be a row of a sweep's table, as table.row(0, named=True); it has no {', '.join(missing)}")])
    if row["policy_json"] is None:
        raise BadSpec([Problem("row", f"was not measured, it is {row['outcome']}: {row['error']}")])
    workload = None if row.get("workload") is None else workload_from_text(row["workload"])
    policy = _policy_of(row["policy_json"], row["system"])
    return simulate(_server_of(row["system"]), policy, jobs=_at_least(row["jobs"]), seed=row["seed"], workload=workload)


def _at_least(jobs: int) -> int:
    """What to ask `simulate` for: a trace may have fewer jobs than it lets one ask for, and then all are played."""
    return max(jobs, LEAST_JOBS)
