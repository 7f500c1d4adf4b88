"""Slurm's resources in the terms of a plan.

Cores are CPUs. Memory has its unit in its name: memory_gb counts Slurm's G, which is 1024 M. Gpus are gres/gpu, and all else is the gres of
that name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rota.arrays import Array
from rota.live.resources.cores import Cores
from rota.live.resources.gpus import Gpus
from rota.live.resources.memory import Memory, bytes_per_unit
from rota.model import System
from rota.slurm.world import Amounts, Node

__all__ = ["in_plan_units", "room_beyond_plan"]


def in_plan_units(amounts: Amounts, resources: Sequence[str]) -> Array:
    """Amounts (R,) in the units of the plan."""
    return np.array([_one(amounts, name) for name in resources], dtype=float)


def _one(amounts: Amounts, name: str) -> float:
    if Cores.takes(name):
        return amounts.cpus
    if Memory.takes(name):
        power = round(math.log(bytes_per_unit(name), 1000))  # Slurm's K, M, G, T are powers of 1024, whatever the name
        return amounts.memory_mb * 1024.0 ** (2 - power)
    return amounts.gres.get("gpu" if Gpus.takes(name) else name, 0)


def room_beyond_plan(node: Node, system: System) -> Array:
    """How much more a node has than the server of the plan (R,)."""
    return in_plan_units(node.has, system.resources) - system.capacity
