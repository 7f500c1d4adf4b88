"""A rota as plain data with names: how an `MSR` is written into a file, and read.

{ "rota_policy": 1, "policy": "msr", "preemption": "none", "switching_rate": 0.06,
  "candidates": [ { "weight": 0.5, "jobs": { "type3": 2 } }, { "weight": 0.5, "jobs": { "type1": 1, "type2": 4 } } ], … }
"""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from rota.errors import BadSpec, Problem, problems_of
from rota.model import Preemption
from rota.model.distribution import Finite, Positive
from rota.policy.codec import Codec
from rota.policy.msr import MSR, EmptySlots, Opening, Route
from rota.policy.registry import Policy

__all__ = ["MSR_CODEC"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _known_route(route: Any) -> Any:
    listed = isinstance(route, list) and all(isinstance(order, list) and all(isinstance(name, str) for name in order) for order in route)
    if not listed and route not in get_args(Route):
        choices = ", ".join(f"'{choice}'" for choice in get_args(Route))
        raise ValueError(f"must be {choices}, or one list of all types per candidate")
    return route


def _known_backfill(backfill: Any) -> Any:
    if not isinstance(backfill, bool) and backfill != "hold":
        raise ValueError("must be true or false, or 'hold'")
    return backfill


class _Candidate(_Strict):
    weight: Positive
    jobs: dict[str, Annotated[int, Field(ge=0, strict=True)]]


class _MSRFile(_Strict):
    types: list[str] = Field(min_length=1)
    preemption: Preemption
    switching_rate: Positive
    setup_rate: Positive | None = None
    backfill: Annotated[Any, AfterValidator(_known_backfill)] = False
    route: Annotated[Any, AfterValidator(_known_route)] = "type-order"
    opening: Opening = "late"
    empty_slots: EmptySlots = "virtual"
    candidates: list[_Candidate] = Field(min_length=1)
    generator: list[list[Finite]] | None = None


def _write(policy: MSR) -> dict[str, Any]:
    names = policy.names or tuple(f"type{i + 1}" for i in range(policy.candidates.shape[1]))
    route = policy.route if isinstance(policy.route, str) else [[names[i] for i in order] for order in policy.route]
    content: dict[str, Any] = {
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
    return content


def _read(kind: type[Policy], given: dict[str, Any]) -> MSR:
    try:
        spec = _MSRFile.model_validate(given)
    except ValidationError as error:
        raise BadSpec(problems_of(error)) from None
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
        raise BadSpec(problems)
    route: Any = spec.route if isinstance(spec.route, str) else [[names.index(name) for name in order] for order in spec.route]
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


MSR_CODEC = Codec(write=_write, read=_read)
