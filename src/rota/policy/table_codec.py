"""A table of decisions as plain data. The table itself is compressed: its numbers, two bytes each, zlib, base64.

{ "rota_policy": 1, "policy": "table", "preemption": "full", "types": ["small", "big"], "truncation": [20, 12],
  "schedules": [[0, 0], [0, 1], …], "choice": "eJxjYGBk…" }
"""

from __future__ import annotations

import base64
import zlib
from binascii import Error
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rota.errors import BadSpec, Problem, problems_of
from rota.policy.codec import Codec
from rota.policy.registry import Policy
from rota.policy.table import Tabulated

__all__ = ["TABLE_CODEC"]

_MOST = 2**31  # bytes of a table


class _TableFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    types: list[str] = Field(min_length=1)
    preemption: Literal["full", "none"]
    truncation: list[int] = Field(min_length=1)
    schedules: list[list[int]] = Field(min_length=1)
    choice: str


def _write(policy: Tabulated) -> dict[str, Any]:
    packed = zlib.compress(policy.choice.astype("<i2").tobytes(), 9)
    return {
        "preemption": policy.preemption,
        "types": list(policy.names or (f"type{i + 1}" for i in range(len(policy.truncation)))),
        "truncation": policy.truncation.tolist(),
        "schedules": policy.schedules.tolist(),
        "choice": base64.b64encode(packed).decode("ascii"),
    }


def _read(kind: type[Policy], given: dict[str, Any]) -> Tabulated:
    try:
        spec = _TableFile.model_validate(given)
    except ValidationError as error:
        raise BadSpec(problems_of(error)) from None
    try:
        unpacker = zlib.decompressobj()
        numbers = unpacker.decompress(base64.b64decode(spec.choice, validate=True), _MOST)
        choice = np.frombuffer(numbers, dtype="<i2").astype(np.int64)
    except (Error, zlib.error, ValueError):
        raise BadSpec([Problem("choice", "must be the table as rota writes it: two bytes a number, zlib, base64")]) from None
    return Tabulated(spec.schedules, spec.truncation, choice, spec.preemption, spec.types)


TABLE_CODEC = Codec(write=_write, read=_read)
