"""The registry: every policy is described once, by a `Record` that stands beside its class. All lists of policies derive from the records.

A policy has one record per name: `MaxWeight` is "max-weight" or "max-weight-np", by its fields. To add a policy, write its class and
`register` its record in a module of `rota.policy`, and its `Rule` (decision function and constants) in a module of `rota.decide`.
Then it appears in names, files, simulations, comparisons, plans, the live scheduler, charts and the help of the command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from rota.display import html_lines, html_title
from rota.errors import BadSpec, Problem
from rota.model import Preemption

__all__ = [
    "POLICY_NAMES",
    "Policy",
    "Record",
    "draws",
    "policy_name",
    "preempts",
    "record_named",
    "record_of",
    "records",
    "register",
    "unregister",
]


class Policy:
    """What all policies have in common: plain frozen data, of a class that is in the registry."""

    def _record(self) -> Record:
        found = [record for record in _RECORDS.values() if record.policy is type(self) and record.is_of(self)]
        if not found:
            raise _no_policy(self)
        return found[0]

    def _repr_html_(self) -> str:  # shown in a notebook
        about = (type(self).__doc__ or "").partition("\n")[0]
        return html_title(repr(self).removesuffix("()")) + html_lines(about)


@dataclass(frozen=True, eq=False)
class Record:
    """Everything about a policy of one name."""

    name: str
    policy: type[Policy]
    rule: str  # its `rota.decide.Rule`, as "module:name": loaded when it is asked for
    title: str  # in words, within a sentence
    preemption: Preemption  # of running jobs: "none", at no cost ("full"), or each with a setup
    throughput_optimal: bool  # proved to be stable whenever any policy is
    colour: str
    mark: str  # on charts
    where: Mapping[str, object] = field(default_factory=dict)  # the fields that give the policy this name
    kind: str = ""  # in files; the name if not given
    codec: str = "rota.policy.codec:PLAIN"  # how the fields are written, as "module:name"
    designed: bool = False  # made for a system, by `rota.design_policy` or `rota.optimal_policy`: the name alone is no policy
    draws: bool = False  # random numbers of its own
    plan: int | None = None  # its place in what `rota.plan` compares, from simple to complex; None: not compared
    looks_at: str = "no"  # the queues: "order of arrival", "lengths"
    needs_sizes: str = "no"  # or "estimates"
    stability_note: str = ""  # the condition of `throughput_optimal`

    @property
    def preempts(self) -> bool:
        """Whether it may stop a running job."""
        return self.preemption != "none"

    @property
    def file_kind(self) -> str:
        """What its file calls it; records of one class share it."""
        return self.kind or self.name

    def is_of(self, policy: Policy) -> bool:
        """Whether a policy of this class has the fields of this record."""
        return all(getattr(policy, name) == value for name, value in self.where.items())

    def load_rule(self) -> Any:
        """Its rule, a `rota.decide.Rule`."""
        return _load(self.rule)

    def load_codec(self) -> Any:
        """Its codec, a `rota.policy.codec.Codec`."""
        return _load(self.codec)


_RECORDS: dict[str, Record] = {}
POLICY_NAMES: dict[str, Policy] = {}  # the policies that a name alone stands for


def register(record: Record) -> None:
    """Makes a policy known everywhere."""
    if record.name in _RECORDS:
        raise BadSpec([Problem("name", "is that of another policy: each has its own", record.name)])
    _RECORDS[record.name] = record
    if not record.designed:
        POLICY_NAMES[record.name] = record.policy(**record.where)


def unregister(name: str) -> None:
    """Takes a policy out of the registry."""
    del _RECORDS[name]
    POLICY_NAMES.pop(name, None)


def records() -> tuple[Record, ...]:
    """All records, in the order of registration."""
    return tuple(_RECORDS.values())


def record_named(name: str) -> Record | None:
    """The record of this name, if there is one."""
    return _RECORDS.get(name)


def record_of(policy: Policy) -> Record:
    """The record of a policy; raises `BadSpec` for anything else."""
    if not isinstance(policy, Policy):
        raise _no_policy(policy)
    return policy._record()


def policy_name(policy: Policy) -> str:
    """The short name of a policy."""
    return record_of(policy).name


def preempts(policy: Policy) -> bool:
    """Whether a policy may stop a running job."""
    return record_of(policy).preempts


def draws(policy: Policy) -> bool:
    """Whether a policy may draw random numbers of its own: its runs on the same jobs differ by their seeds."""
    return record_of(policy).draws


def _no_policy(value: object) -> BadSpec:
    known = dict.fromkeys(f"rota.{record.policy.__name__}" for record in records())
    return BadSpec([Problem("policy", f"must be a policy: {', '.join(known)}, rota.Custom", value)])


@cache
def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
