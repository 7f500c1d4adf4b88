"""Nodes, a system and plans that the tests of the controller share."""

from __future__ import annotations

import numpy as np

import rota
from rota.model.live import LiveSettings
from rota.policy import PlanFile, as_policy
from rota.slurm.simulated import PlayedJob
from rota.slurm.world import Amounts, Node

SYSTEM = rota.System(
    capacity=[8, 15],
    demand=[[1, 1], [4, 4], [2, 10]],
    arrival_rate=[0.3, 0.1, 0.05],
    mean_size=[6, 10, 12],
    names=["small", "wide", "memory"],
    resources=["cores", "memory_gb"],
    time_unit="s",
)
ASKS = [Amounts(1, 950), Amounts(4, 3800), Amounts(2, 9500)]  # of the three types, in Slurm's terms


def nodes_of(count: int = 4) -> list[Node]:
    """Idle nodes n1, n2, …"""
    return [Node(f"n{k}", Amounts(8, 16000), Amounts(), "IDLE", ("main",)) for k in range(1, count + 1)]


def plan_of(policy: str, preemption: str = "none") -> PlanFile:
    """The small system under a policy."""
    return PlanFile(SYSTEM, as_policy(policy, SYSTEM), LiveSettings(time_unit="s", preemption=preemption))


def jobs_of(count: int, seed: int, nodes: int = 4, load: float = 1.0) -> list[PlayedJob]:
    """Jobs that arrive at the rates of the system, times the number of nodes."""
    random = np.random.default_rng(seed)
    rates = nodes * load * SYSTEM.arrival_rate
    times = np.cumsum(random.exponential(1 / rates.sum(), count))
    kinds = random.choice(3, count, p=rates / rates.sum())
    sizes = random.exponential(1 / SYSTEM.service_rate[kinds])
    return [PlayedJob(str(n + 1), float(t), ASKS[i], float(s)) for n, (t, i, s) in enumerate(zip(times, kinds, sizes, strict=True))]
