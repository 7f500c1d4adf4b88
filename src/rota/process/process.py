"""The modulating process of an MSR policy: a finite Markov chain whose states say how many jobs of each type may run.

Every state knows its schedule, whether it works (runs a candidate) or switches, and every move knows what triggers it:

    timer           an exponential clock of the policy's own,
    completion i    one of the u_i slots of type i rings, at rate u_i μ_i; a job in that slot is done,
    setup           one of the setups that are under way is done, at rate γ each.

The chain never looks at the queues (Definition MSR): a slot without a job rings too ("virtual completion").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from rota.arrays import Array, Int
from rota.display import html_table, html_title, number, per_cent
from rota.errors import BadSpec
from rota.policy import stationary_law
from rota.process.check import field_problems, frozen_field

__all__ = ["DENSE_STATES", "SETUP", "TIMER", "ModulatingProcess"]


TIMER, SETUP = -1, -2  # triggers; i ≥ 0 means: completion of type i
DENSE_STATES = 1500  # up to here a full matrix is as quick as a sparse one


@dataclass(frozen=True, eq=False)
class ModulatingProcess:
    """States (N of them) and moves (M of them) of a modulating process.

    `schedules` (N, K): slots that serve. `held` (N, K): jobs that hold resources, those in setup included. `candidate` (N,): the working
    state's position in the policy, −1 for a switching state. Moves: `source`, `target`, `rate`, `trigger`, each (M,).
    """

    schedules: Int
    held: Int
    candidate: Int
    source: Int
    target: Int
    rate: Array
    trigger: Int
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        for field in ("schedules", "held", "candidate", "source", "target", "rate", "trigger"):
            object.__setattr__(self, field, frozen_field(field, getattr(self, field), whole=field != "rate"))
        object.__setattr__(self, "names", tuple(self.names))
        if problems := field_problems(self):
            raise BadSpec(problems, "the modulating process")

    def __len__(self) -> int:
        return len(self.schedules)

    @property
    def working(self) -> NDArray[np.bool_]:
        """Which states run a candidate (N,)."""
        return self.candidate >= 0

    @cached_property
    def exit_rate(self) -> Array:
        """The total rate out of each state (N,)."""
        return np.bincount(self.source, weights=self.rate, minlength=len(self)).astype(np.float64)

    @cached_property
    def generator(self) -> scipy.sparse.csr_array:
        """The infinitesimal generator G (N, N), sparse."""
        N = len(self)
        rows = np.concatenate([self.source, np.arange(N)])
        columns = np.concatenate([self.target, np.arange(N)])
        return scipy.sparse.csr_array((np.concatenate([self.rate, -self.exit_rate]), (rows, columns)), shape=(N, N))

    @cached_property
    def loop(self) -> Int | None:
        """The states in the order of the loop, if the process is one: a single way out of each state, all on one cycle."""
        N = len(self)
        if len(self.source) != N or len(np.unique(self.source)) != N:
            return None
        after = np.empty(N, dtype=np.int64)
        after[self.source] = np.arange(N)
        order = np.empty(N, dtype=np.int64)
        state = 0
        for step in range(N):
            order[step] = state
            state = int(self.target[after[state]])
            if state == 0 and step < N - 1:
                return None
        return order

    @cached_property
    def stationary(self) -> Array:
        """The stationary law (N,)."""
        N = len(self)
        if N == 1:
            law: Array = np.ones(1)
        elif self.loop is not None:
            law = 1.0 / self.exit_rate  # the same flow goes through every state of a loop
            law = law / law.sum()
        elif N <= DENSE_STATES:
            law = stationary_law(self.generator.toarray())
        else:
            balance = scipy.sparse.vstack([self.generator.T.tocsr()[:-1], np.ones((1, N))], format="csc")
            law = scipy.sparse.linalg.splu(balance).solve(np.append(np.zeros(N - 1), 1.0))
        law.flags.writeable = False
        return law

    @cached_property
    def potentials(self) -> tuple[Array, Int]:
        """The factors (LU) of G − 1·stationary, which is not singular, for G Δ = b with stationary·Δ = 0: the same for all types."""
        factors, pivots = scipy.linalg.lu_factor(self.generator.toarray() - self.stationary)
        return factors, pivots

    @property
    def mean_schedule(self) -> Array:
        """E[u]: the mean number of slots of each type (K,)."""
        return np.asarray(self.stationary @ self.schedules, dtype=np.float64)

    @property
    def working_fraction(self) -> float:
        """The part of time that is spent in working states."""
        return float(self.stationary[self.working].sum())

    def with_timers(self, factor: float) -> ModulatingProcess:
        """The same process with every timer running `factor` times as fast."""
        return replace(self, rate=np.where(self.trigger == TIMER, factor, 1.0) * self.rate)

    def state_name(self, s: int) -> str:
        """`w` (working) or `t` (switching) with the schedule, as in the paper's figures; held jobs in setup are added."""
        name = f"{'w' if self.candidate[s] >= 0 else 't'}({', '.join(str(int(u)) for u in self.schedules[s])})"
        waiting = int((self.held[s] - self.schedules[s]).sum())
        return f"{name}+{waiting} in setup" if waiting else name

    def trigger_name(self, move: int) -> str:
        """What triggers a move, in words."""
        trigger = int(self.trigger[move])
        return {TIMER: "timer", SETUP: "setup"}.get(trigger) or f"completion of {self.names[trigger]}"

    def __repr__(self) -> str:
        return f"<ModulatingProcess of {len(self)} states, {int(self.working.sum())} of them working, and {len(self.source)} moves>"

    def _repr_html_(self) -> str:
        ways: list[list[str]] = [[] for _ in range(len(self))]
        for move, (source, target) in enumerate(zip(self.source, self.target, strict=True)):
            ways[source].append(f"{self.trigger_name(move)}, rate {number(self.rate[move])}, to {self.state_name(int(target))}")
        rows = [(self.state_name(s), per_cent(self.stationary[s]), "; ".join(ways[s])) for s in range(len(self))]
        about = f"Modulating process of {', '.join(self.names)}: {len(self)} states, {per_cent(self.working_fraction)} of the time working"
        return html_title(about) + html_table(["state", "time", "moves"], rows, left=(0, 2))
