"""`evaluate`: the mean response time of a policy that goes by counts, from its Markov chain, without simulation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NoReturn

from rota.arrays import Array
from rota.decide import decider_of
from rota.errors import Infeasible, NotConverged
from rota.model import System
from rota.optimal.answer import Answer, OptimalProgress
from rota.optimal.chain import BYTES_PER_PLACE, Chain, OutOfTime, Refused, chain_of, stationary_law
from rota.optimal.state_space import StateSpace, schedules_of, state_space
from rota.optimal.truncation import check_system, checked_truncation, first_truncation, larger_truncation, missing_beyond
from rota.policy import MSR, Custom, MaxWeight, Policy, as_policy, policy_name, record_of

__all__ = ["BYTES_PER_STATE", "Evaluation", "evaluate"]

BYTES_PER_STATE = 600  # of those that the policy reaches: moves, flows, and the vectors of GMRES


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Evaluation(Answer):
    """A policy on a system, by its Markov chain with at most `truncation` jobs of each type. Arrays have one entry per type (K,).

    `queue_length` E[Q_i]; `mean_response_time` Σ E[Q_i] / Σ λ_i by Little's law. `missing`: an estimate of what the states beyond the
    truncation would add to E[Q_i], from the decay of its law. `settled`: a larger truncation changed the mean by less than the accuracy
    asked for. `unbalanced`: the part of the flow between states that is out of balance in the law found.
    """

    policy: Policy
    unbalanced: float

    def explain(self) -> str:
        """How far the numbers can be trusted, in sentences."""
        lines = [f"The chain has {self.states:,} states, with at most {self.edge}; jobs that would exceed that are lost."]
        if self.settled:
            lines.append("A larger truncation changed the mean by less than the accuracy asked for.")
        return "\n".join([*lines, super().explain()])

    def __repr__(self) -> str:
        return f"<Evaluation of {policy_name(self.policy)}: mean response time {self.mean_response_time:.6g}, {self.states:,} states>"


def evaluate(
    system: System,
    policy: Policy | str | Path,
    *,
    truncation: int | Sequence[int] | None = None,
    accuracy: float = 1e-3,
    sizes: Literal["as given", "exponential"] = "as given",
    memory_limit_gb: float = 4.0,
    time_limit_s: float = 600.0,
    progress: Callable[[OptimalProgress], None] | None = None,
) -> Evaluation:
    """The mean response time of a policy whose decisions depend only on how many jobs of each type are present and running.

    MaxWeight with and without preemption, tables and functions of your own that go by counts are such policies. The decision function of
    the policy itself is called in every state, with exponential sizes. The truncation is enlarged until the mean changes by less than
    `accuracy` (relative), unless one is given. Raises `Infeasible` for other policies and for too many states, `NotConverged` where
    the answer does not stand still, as for a policy that is unstable.
    """
    chosen = as_policy(policy)
    check_system(system, sizes)
    _require_counts(chosen)
    began = time.monotonic()
    schedules = schedules_of(system)
    N = first_truncation(system) if truncation is None else checked_truncation(system, truncation)
    before: Evaluation | None = None
    while True:
        space = state_space(system, N, schedules)
        if (places := space.size * len(schedules)) * BYTES_PER_PLACE + space.size * BYTES_PER_STATE > memory_limit_gb * 1e9:
            _give_up(before, f"{places:,} states would be needed, more than {memory_limit_gb:g} GB hold (memory_limit_gb)")
        if progress is not None:
            progress(OptimalProgress(tuple(N.tolist()), f"{space.size:,} numbers of jobs present", time.monotonic() - began))
        try:
            chain, law, unbalanced = _law_of(system, chosen, space, began + time_limit_s)
        except OutOfTime:
            _give_up(before, f"{time_limit_s:g} s were not enough (time_limit_s)")
        missing, decay = missing_beyond(law, chain.present, N)
        found = Evaluation(
            system=system,
            policy=chosen,
            queue_length=law @ chain.present,
            missing=missing,
            truncation=tuple(N.tolist()),
            states=len(law),
            unbalanced=unbalanced,
            settled=False,
        )
        if truncation is not None:
            return found
        allowed = accuracy * float(found.queue_length.sum())
        if before is not None and abs(float((found.queue_length - before.queue_length).sum())) <= allowed and missing.sum() <= allowed:
            return replace(found, settled=True)
        if time.monotonic() - began > time_limit_s:
            _give_up(found, f"{time_limit_s:g} s were not enough (time_limit_s)")
        before, N = found, larger_truncation(N, missing, decay, allowed / 2)


def _law_of(system: System, policy: Policy, space: StateSpace, until: float) -> tuple[Chain, Array, float]:
    """The chain of a policy on a truncation, its stationary law, and the part of the flow that is out of balance."""
    try:
        # What MaxWeight keeps between events is a count of searches; what any other policy keeps would be a part of the state.
        chain = chain_of(system, space, decider_of(system, policy), keeps=isinstance(policy, MaxWeight))
    except Refused as reason:
        raise Infeasible(f"{policy_name(policy)} has no chain on the numbers of jobs: {reason}. Use rota.simulate") from None
    law, unbalanced = stationary_law(space, chain, until=until)
    return chain, law, unbalanced


def _require_counts(policy: Policy) -> None:
    """Raises unless the registry says that the policy goes by counts; functions of your own are tried."""
    if isinstance(policy, Custom):
        return
    record = record_of(policy)
    if isinstance(policy, MSR):
        raise Infeasible(
            f"{record.name} has a clock of its own, which is part of its state: rota.analyze gives its exact mean (without backfilling), "
            "and rota.simulate takes every policy"
        )
    if record.looks_at == "order of arrival":
        raise Infeasible(f"{record.name} goes by the order of arrival, so the state is the whole queue, not how many jobs it has: simulate")
    if record.draws:
        raise Infeasible(f"{record.name} draws random times of its own, so the numbers of jobs are not its whole state: use rota.simulate")


def _give_up(found: Evaluation | None, reason: str) -> NoReturn:
    if found is None:
        raise Infeasible(f"{reason}: take fewer types or a smaller server, or simulate")
    raise NotConverged(
        f"the mean response time does not stand still yet: {found.mean_response_time:.5g} with at most {found.edge}. Beyond that, "
        f"{reason}. The policy may be unstable at this load; a lower accuracy needs fewer states"
    )
