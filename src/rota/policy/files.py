"""Policies as files: versioned JSON that a person can read and edit.

{ "rota_policy": 1, "policy": "msr", "preemption": "none", "switching_rate": 0.06,
  "candidates": [ { "weight": 0.5, "jobs": { "type3": 2 } }, { "weight": 0.5, "jobs": { "type1": 1, "type2": 4 } } ], … }
{ "rota_policy": 1, "policy": "first-fit" }
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, ValidationError

from rota.arguments import checked_path, write_text
from rota.errors import BadSpec, Problem, problems_of
from rota.model import Preemption
from rota.model.sizes import Finite, Positive
from rota.policy.msr import MSR, EmptySlots, Opening, Route
from rota.policy.others import EASY, FCFS, FirstFit, MaxWeight, RandomizedTimers, ServerFilling

__all__ = ["POLICY_VERSION", "policy_from_json", "policy_to_json", "read_policy", "save_policy"]

POLICY_VERSION = 1

WithoutRota = FCFS | FirstFit | EASY | ServerFilling | MaxWeight | RandomizedTimers
_KINDS: dict[str, type[WithoutRota]] = {
    "fcfs": FCFS,
    "first-fit": FirstFit,
    "easy": EASY,
    "server-filling": ServerFilling,
    "max-weight": MaxWeight,
    "randomized-timers": RandomizedTimers,
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _known_route(route: Any) -> Any:
    listed = isinstance(route, list) and all(isinstance(order, list) and all(isinstance(name, str) for name in order) for order in route)
    if not listed and route not in get_args(Route):
        choices = ", ".join(f"'{choice}'" for choice in get_args(Route))
        raise ValueError(f"must be {choices}, or one list of all types per candidate")
    return route


class _Candidate(_Strict):
    weight: Positive
    jobs: dict[str, Annotated[int, Field(ge=0, strict=True)]]


class _MSRFile(_Strict):
    rota_policy: Literal[1]
    policy: Literal["msr"]
    types: list[str] = Field(min_length=1)
    preemption: Preemption
    switching_rate: Positive
    setup_rate: Positive | None = None
    backfill: StrictBool = False
    route: Annotated[Any, AfterValidator(_known_route)] = "type-order"
    opening: Opening = "late"
    empty_slots: EmptySlots = "virtual"
    candidates: list[_Candidate] = Field(min_length=1)
    generator: list[list[Finite]] | None = None


def policy_to_json(policy: MSR | WithoutRota) -> str:
    """The file's text. Types are called by their names, or type1, type2, … where the policy has none."""
    if not isinstance(policy, MSR):
        kind = next((name for name, known in _KINDS.items() if type(policy) is known), None)
        if kind is None:
            raise BadSpec([Problem("policy", "is a function of your own, which cannot be written down", type(policy).__name__)])
        return json.dumps({"rota_policy": POLICY_VERSION, "policy": kind, **asdict(policy)}, indent=2) + "\n"
    names = policy.names or tuple(f"type{i + 1}" for i in range(policy.candidates.shape[1]))
    route = policy.route if isinstance(policy.route, str) else [[names[i] for i in order] for order in policy.route]
    content: dict[str, Any] = {
        "rota_policy": POLICY_VERSION,
        "policy": "msr",
        "types": list(names),
        "preemption": policy.preemption,
        "switching_rate": policy.switching_rate,
        "setup_rate": policy.setup_rate,
        "backfill": policy.backfill,
        "route": route,
        "opening": policy.opening,
        "empty_slots": policy.empty_slots,
        "candidates": [
            {"weight": float(weight), "jobs": {name: int(count) for name, count in zip(names, row, strict=True) if count}}
            for row, weight in zip(policy.candidates, policy.weights, strict=True)
        ],
    }
    if policy.setup_rate is None:
        del content["setup_rate"]
    if policy.generator is not None:
        content["generator"] = policy.generator.tolist()
    text = json.dumps(content, indent=2, ensure_ascii=False)
    return text + "\n"


def policy_from_json(text: str, source: str | None = None) -> MSR | WithoutRota:
    """Reads a policy; raises `BadSpec` with every problem of the text."""
    try:
        raw = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadSpec([Problem("file", f"is not JSON: {error}")], source) from None
    if isinstance(raw, dict) and "rota_plan" in raw and isinstance(raw.get("policy"), dict):
        raw = raw["policy"]  # a plan holds its policy
    if not isinstance(raw, dict) or "rota_policy" not in raw:
        raise BadSpec([Problem("file", 'is not a policy of Rota: it needs "rota_policy": 1')], source)
    if raw["rota_policy"] != POLICY_VERSION:
        rule = f"this release reads version {POLICY_VERSION} of the format"
        raise BadSpec([Problem("rota_policy", rule, raw["rota_policy"])], source)
    if raw.get("policy") in _KINDS:
        return _without_rota(raw, source)
    if isinstance(raw.get("policy"), str) and raw["policy"] != "msr":
        raise BadSpec([Problem("policy", f"must be one of msr, {', '.join(_KINDS)}", raw["policy"])], source)
    try:
        spec = _MSRFile.model_validate(raw)
    except ValidationError as error:
        raise BadSpec(problems_of(error), source) from None

    names = tuple(spec.types)
    problems = [Problem(f"types.{j}", "is a duplicate", name) for j, name in enumerate(names) if name in names[:j]]
    problems += [
        Problem(f"candidates.{s}.jobs.{name}", f"no such type (there are: {', '.join(names)})")
        for s, candidate in enumerate(spec.candidates)
        for name in candidate.jobs
        if name not in names
    ]
    orders = spec.route if not isinstance(spec.route, str) else []
    problems += [
        Problem(f"route.{s}", "must name every type once", order) for s, order in enumerate(orders) if sorted(order) != sorted(names)
    ]
    if problems:
        raise BadSpec(problems, source)
    route: Any = spec.route if isinstance(spec.route, str) else [[names.index(name) for name in order] for order in spec.route]
    try:
        return MSR(
            candidates=[[candidate.jobs.get(name, 0) for name in names] for candidate in spec.candidates],
            weights=[candidate.weight for candidate in spec.candidates],
            preemption=spec.preemption,
            switching_rate=spec.switching_rate,
            setup_rate=spec.setup_rate,
            backfill=spec.backfill,
            route=route,
            opening=spec.opening,
            empty_slots=spec.empty_slots,
            generator=spec.generator,
            names=names,
        )
    except BadSpec as error:
        raise BadSpec(error.problems, source) from None


def _without_rota(raw: dict[str, Any], source: str | None) -> WithoutRota:
    """A policy that has a name and perhaps a few parameters."""
    given = {name: value for name, value in raw.items() if name not in ("rota_policy", "policy")}
    kind = _KINDS[raw["policy"]]
    known = [field.name for field in fields(kind)]
    problems = [Problem(name, "is not a known key") for name in given if name not in known]
    numbers = given if kind is RandomizedTimers else {}
    problems += [
        Problem(name, "must be a number", value)
        for name, value in numbers.items()
        if name in known and (isinstance(value, bool) or not isinstance(value, int | float))
    ]
    if problems:
        raise BadSpec(problems, source)
    try:
        return kind(**given)
    except BadSpec as error:
        raise BadSpec(error.problems, source) from None


def save_policy(policy: MSR | WithoutRota, path: str | Path) -> None:
    """Writes a policy to a file."""
    write_text(path, policy_to_json(policy))


def read_policy(path: str | Path) -> MSR | WithoutRota:
    """Reads a policy from its file."""
    return policy_from_json(text_of(path), str(path))


def text_of(path: str | Path) -> str:
    """The text of a file; raises `BadSpec` where there is none to read."""
    try:
        return checked_path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadSpec([Problem("file", f"cannot be read: {error.strerror or error}")], str(path)) from None
    except UnicodeDecodeError as error:
        raise BadSpec([Problem("file", f"is not UTF-8 text: {error.reason} at byte {error.start}")], str(path)) from None
