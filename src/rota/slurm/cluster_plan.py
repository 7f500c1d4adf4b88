"""A plan as the controller needs it: what each node runs, which type a job is of, and by which rule it goes to a node.

The plan of one server is run by every node that is at least as large. The plan of a fleet has kinds of servers; a node is of the largest
kind that it encloses. Types and resources are those of the whole cluster; a kind knows which number a type has on its own nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rota.arrays import Array, Int
from rota.errors import BadSpec, Problem
from rota.live.resources.cores import Cores
from rota.live.resources.gpus import Gpus
from rota.live.resources.memory import Memory
from rota.live.scheduling.job_class import smallest_type
from rota.model import System
from rota.model.live import LiveSettings, live_settings
from rota.policy import FleetPlanFile, PlanFile, policy_name
from rota.simulation.fleet.policy import FleetPolicy, as_fleet_policy
from rota.slurm.amounts import in_plan_units
from rota.slurm.world import Amounts, Node, nodes_in

__all__ = ["AnyPlan", "ClusterPlan", "KindOfNode", "cluster_plan"]

AnyPlan = PlanFile | FleetPlanFile | FleetPolicy
_ROUNDING = 1 - 1e-9


@dataclass(frozen=True, eq=False)
class KindOfNode:
    """Nodes that are alike in the plan. `plan` is None if no job goes there."""

    name: str
    capacity: Array  # (R,) of the resources of the cluster
    plan: PlanFile | None
    types: Int  # (K,) the number of each type in the plan of the kind, −1 if it cannot run there
    count: int | None = None  # nodes in the plan; None if it does not say


@dataclass(frozen=True, eq=False)
class ClusterPlan:
    """`types` has the job types, and a server that encloses every kind. `fleet`: kinds, policies and the rule, for the plan of a fleet."""

    types: System
    kinds: tuple[KindOfNode, ...]
    live: LiveSettings
    label: str
    fleet: FleetPolicy | None = None

    def type_of(self, asks: Amounts) -> int | None:
        """The smallest type that encloses what a job asks for; None if none does, or if it asks for a gres that the plan does not know."""
        known = {"gpu" if Gpus.takes(name) else name for name in self.types.resources if not (Cores.takes(name) or Memory.takes(name))}
        if any(count and name not in known for name, count in asks.gres.items()):
            return None
        return smallest_type(in_plan_units(asks, self.types.resources), self.types)

    def kind_of(self, node: Node) -> int | None:
        """The number of the largest kind that a node encloses; None if it is too small for all of them."""
        has = in_plan_units(node.has, self.types.resources)
        enclosed = [c for c, kind in enumerate(self.kinds) if (has >= kind.capacity * _ROUNDING).all()]
        return max(enclosed, key=lambda c: (float((self.kinds[c].capacity / self.types.capacity).sum()), -c), default=None)

    def nodes(self, nodes: Sequence[Node], partition: str | None) -> dict[str, int]:
        """The nodes of the partition on which jobs of the plan can run, by name, with the numbers of their kinds."""
        found = {node.name: self.kind_of(node) for node in nodes if partition is None or partition in node.partitions}
        return {name: kind for name, kind in found.items() if kind is not None and self.kinds[kind].plan is not None}

    def check_nodes(self, nodes: Sequence[Node], partition: str | None) -> dict[str, int]:
        """The same; `BadSpec`, with what is too small, if a type of the plan can run on none of them."""
        of_partition = nodes_in(nodes, partition)
        found = self.nodes(of_partition, None)
        there = np.array([self.kinds[c].types >= 0 for c in sorted(set(found.values()))], dtype=bool).reshape(-1, len(self.types.names))
        homeless = [self.types.names[i] for i in np.flatnonzero(~there.any(axis=0))]
        if found and homeless:
            rule = "no node of the partition is of a kind on which it can run: plan for the nodes (rota slurm plan)"
            raise BadSpec([Problem(f"jobs.{name}", rule) for name in homeless])
        if not found:
            raise BadSpec(self._too_small(of_partition))
        return found

    def _too_small(self, nodes: Sequence[Node]) -> list[Problem]:
        biggest = np.max([in_plan_units(node.has, self.types.resources) for node in nodes], axis=0)
        least = np.min([kind.capacity for kind in self.kinds], axis=0)
        short = [
            Problem(f"server.{name}", f"no node has as much (at most {has:g}): plan for the nodes (rota slurm plan)", float(wants))
            for name, wants, has in zip(self.types.resources, least, biggest, strict=True)
            if has < wants * _ROUNDING
        ]
        return short or [Problem("server", "no node has all of it at once: plan for the nodes (rota slurm plan)")]

    def remarks(self, found: Mapping[str, int]) -> list[str]:
        """What a person should know about a plan and the nodes that are there."""
        said = []
        for c, kind in enumerate(self.kinds):
            here = sum(number == c for number in found.values())
            if kind.count is not None and here != kind.count and kind.plan is not None:
                said.append(f"the plan has {kind.count} nodes of kind {kind.name}, and there are {here}: its forecast is for others")
        if self.fleet is not None and (self.fleet.dispatch.staleness or self.fleet.dispatch.cost):
            said.append("staleness and cost of the dispatch rule are for simulations: here every look at the nodes is a new one")
        return said


def cluster_plan(plan: AnyPlan | ClusterPlan, given: Mapping[str, object] | None = None) -> ClusterPlan:
    """A plan for the controller; `given`: entries of the `[live]` table (`preemption`, `time_unit`) in place of those of the plan."""
    if isinstance(plan, ClusterPlan):
        return plan
    if isinstance(plan, PlanFile):
        one = plan.with_settings(given or {})
        everywhere = KindOfNode("node", one.system.capacity, one, np.arange(len(one.system.names)))
        return ClusterPlan(one.system, (everywhere,), one.live, policy_name(one.policy))
    policy = plan if isinstance(plan, FleetPolicy) else as_fleet_policy(plan.fleet, plan.policy, plan.dispatch)
    fleet = policy.fleet
    live = live_settings({"time_unit": fleet.time_unit or "s", **(given or {})}, fleet.resources)
    kinds = []
    for c, (name, system, own) in enumerate(zip(fleet.kinds, policy.systems, policy.policies, strict=True)):
        types = np.full(len(fleet.names), -1)
        types[fleet.runs[c]] = np.arange(int(fleet.runs[c].sum())) if own is not None else -1
        settings = live.model_copy(update={"releasable": {}})
        here = None if system is None or own is None else PlanFile(system.replace(time_unit=live.time_unit), own, settings)
        kinds.append(KindOfNode(name, fleet.capacity[c], here, types, int(fleet.count[c])))
    fields = {name: getattr(fleet, name) for name in System.__dataclass_fields__ if name not in ("capacity", "service_rate")}
    enclosing = System(capacity=fleet.capacity.max(axis=0), **fields | {"time_unit": live.time_unit})
    return ClusterPlan(enclosing, tuple(kinds), live, policy.label, policy)
