"""The kinds of resources that Rota knows on a machine.

    cores, cpus, cpu     a job runs on its own cores only
    gpus, gpu            CUDA_VISIBLE_DEVICES names the devices of a job
    memory, memory_gb …  a limit by cgroup, or of the address space (RLIMIT_AS)

Everything else is counted. A new kind is one module beside this one, and one line in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rota.live.resources.cores import Cores
from rota.live.resources.counted import Counted
from rota.live.resources.gpus import Gpus
from rota.live.resources.kind import Kind
from rota.live.resources.memory import Memory

__all__ = ["KINDS", "kind_of", "move", "parts_of", "share_of", "texts_of"]

KINDS: tuple[type[Kind], ...] = (
    Cores,
    Gpus,
    Memory,  # last of those that are applied: after it limits its address space, this process may get no more memory
    Counted,  # takes what is left
)


def kind_of(resource: str) -> type[Kind]:
    """The kind of a resource by its name, in upper or lower case."""
    return next(kind for kind in KINDS if kind.takes(resource))


def parts_of(terms: Mapping[str, Any]) -> Iterable[tuple[type[Kind], Any]]:
    """The terms of each kind in an order, in the order of `KINDS`."""
    return [(kind, terms[kind.name]) for kind in KINDS if kind.name in terms]


def move(thread: int, terms: Mapping[str, Any]) -> None:
    """Holds a thread of a job that resumes to its new share."""
    for kind, part in parts_of(terms):
        kind.move(thread, part)


def texts_of(share: Mapping[str, list[int]]) -> dict[str, str | None]:
    """A share in the form of the event log: a comma-separated list for each numbered kind, None if the job has none."""
    return {kind.name: ",".join(map(str, share[kind.name])) if kind.name in share else None for kind in KINDS if kind.numbered}


def share_of(texts: Mapping[str, Any]) -> dict[str, list[int]]:
    """A share from its form in the event log."""
    found = {kind.name: texts.get(kind.name) for kind in KINDS if kind.numbered}
    return {name: [int(one) for one in text.split(",") if one] for name, text in found.items() if isinstance(text, str)}
