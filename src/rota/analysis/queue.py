"""The queue of one type under a modulating process, seen alone (Section "Decoupling the Multiresource Job System").

Jobs arrive at rate λ; in state s there are u_s slots, each ringing at rate μ. A ring is a completion if a job is in the slot. It may move
the process, whether a job was there or not. With c_s = μ u_s, Δ the relative completions and s⁺ the state after a ring in state s,

    G Δ = E[c]·1 − c,   stationary·Δ = 0                                                              (Lemma solve-delta)
    E[Q] = (ρ + E[Δ(ν⁺)])/(1−ρ) + E_U[q − Δ(s⁺)],      ρ = λ/E[c]                                     (exact)

where ν⁺ is the state after a ring (rings weighted by c) and E_U averages over the rings that find no job: from the drift of q²/2 − qΔ(s).
Such rings happen only at q < u_s ≤ β, so −max Δ ≤ E_U ≤ β − min Δ: Theorem msr-bound, with the state after the ring where the paper
prints the state before it.

Arrivals that are not Poisson have a phase m, relative arrivals Δᴬ and an index of dispersion I (`rota.model.markovian`). W = q + Δᴬ(m) −
Δ(s) then drifts at λ − E[c] plus the rate of rings that find no job, whatever its state, and the drift of W² gives

    E[Q] = (ρ (1 + (I−1)/2) + E[Δ(ν⁺)])/(1−ρ) + E_U[q + Δᴬ(m) − Δ(s⁺)]                                 (exact)

so that the bounds move by ρ(I−1)/2/(1−ρ), and are max Δᴬ − min Δᴬ further apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from rota.arrays import Array
from rota.model import ArrivalProcess, MarkovianArrivals
from rota.process import ModulatingProcess
from rota.process.process import DENSE_STATES
from rota.threads import one_thread

__all__ = ["TypeQueue", "erlang_c", "mean_waiting", "relative_completions"]


@dataclass(frozen=True, eq=False)
class TypeQueue:
    """Type `i` of a system under a modulating process: arrival rate λ, service rate μ, and what the process offers it.

    `arrival_process`: how jobs arrive, None if they do as single jobs of a Poisson process.
    """

    process: ModulatingProcess
    type: int
    arrival_rate: float
    service_rate: float
    arrival_process: ArrivalProcess | None = None

    @cached_property
    def arrivals(self) -> MarkovianArrivals | None:
        """The phases of arrivals; None if they are Poisson."""
        return None if self.arrival_process is None else self.arrival_process.at(self.arrival_rate)

    @cached_property
    def excess(self) -> float:
        """(I − 1)/2: what the dispersion of arrivals adds to the 1 of Poisson arrivals."""
        return 0.0 if self.arrivals is None else (self.arrivals.dispersion - 1) / 2

    @cached_property
    def slots(self) -> Array:
        """u_s: slots in each state (N,)."""
        return self.process.schedules[:, self.type].astype(np.float64)

    @cached_property
    def ring_rate(self) -> Array:
        """c_s = μ u_s: potential completions per unit of time in each state (N,)."""
        return self.service_rate * self.slots

    @property
    def max_parallel(self) -> int:
        """β: the most jobs ever served at once."""
        return int(self.slots.max())

    @cached_property
    def capacity(self) -> float:
        """E[c]: potential completions per unit of time."""
        return float(self.process.stationary @ self.ring_rate)

    @property
    def load(self) -> float:
        """ρ = λ/E[c]; infinite if the type is never served."""
        if self.arrival_rate == 0:
            return 0.0
        return self.arrival_rate / self.capacity if self.capacity > 0 else np.inf

    @cached_property
    def plain(self) -> scipy.sparse.csr_array:
        """Rates of the moves that this type's completions do not trigger (N, N), no diagonal."""
        keep = self.process.trigger != self.type
        N = len(self.process)
        p = self.process
        return scipy.sparse.csr_array((p.rate[keep], (p.source[keep], p.target[keep])), shape=(N, N))

    @cached_property
    def after(self) -> scipy.sparse.csr_array:
        """Where a ring leads (N, N), rows sum to 1: the identity in states whose rings move nothing."""
        N = len(self.process)
        p = self.process
        own = p.trigger == self.type
        moving = np.bincount(p.source[own], weights=p.rate[own], minlength=N)
        stay = np.flatnonzero(moving == 0)
        rows = np.concatenate([p.source[own], stay])
        columns = np.concatenate([p.target[own], stay])
        values = np.concatenate([p.rate[own] / moving[p.source[own]], np.ones(len(stay))])
        return scipy.sparse.csr_array((values, (rows, columns)), shape=(N, N))

    @cached_property
    def triggers(self) -> NDArray[np.bool_]:
        """Whether a ring of this type moves the process (N,)."""
        triggered = np.zeros(len(self.process), dtype=bool)
        triggered[self.process.source[self.process.trigger == self.type]] = True
        return triggered

    @cached_property
    def relative_completions(self) -> Array:
        """Δ (N,)."""
        return relative_completions(self.process, self.ring_rate)

    @cached_property
    def after_ring(self) -> Array:
        """Δ(s⁺): relative completions of the state after a ring in state s (N,). As `after` @ Δ, without the matrix."""
        delta, p = self.relative_completions, self.process
        own = p.trigger == self.type
        source, rate = p.source[own], p.rate[own]
        moving = np.bincount(source, weights=rate, minlength=len(p))
        ahead = np.bincount(source, weights=rate * delta[p.target[own]], minlength=len(p))
        return np.divide(ahead, moving, out=delta.copy(), where=moving > 0)

    def ring_average(self, *, printed: bool = False) -> float:
        """E[Δ(ν⁺)], or E[Δ(ν)] as the paper prints it."""
        if self.capacity == 0:
            return 0.0
        delta = self.relative_completions if printed else self.after_ring
        return float((self.process.stationary * self.ring_rate) @ delta) / self.capacity

    def bounds(self, *, printed: bool = False) -> tuple[float, float]:
        """Lower and upper bound on E[Q] (Theorem msr-bound); `printed`: as in the paper, which can be wrong for an nMSR."""
        if self.arrival_rate == 0:
            return 0.0, 0.0
        if self.load >= 1:
            return np.inf, np.inf
        delta = self.relative_completions
        main = (self.load * (1 + self.excess) + self.ring_average(printed=printed)) / (1 - self.load)
        ahead = np.zeros(1) if self.arrivals is None else self.arrivals.relative_arrivals
        lower, upper = main - float(delta.max()) + float(ahead.min()), main - float(delta.min()) + float(ahead.max())
        return max(lower, 0.0), upper + self.max_parallel

    def prediction(self, *, printed: bool = False) -> float:
        """The paper's approximation of E[Q], clipped to the bounds: P_Q (ρ + ρE[Δ(ν)])/(1−ρ) + ρk*, k* = E[u].

        P_Q is the probability of waiting in an M/M/k* queue; k* is not a whole number, so Erlang's formula is continued (`erlang_c`).
        With arrivals that are not Poisson, ρ (1 + (I−1)/2) is in place of the first ρ.
        """
        lower, upper = self.bounds(printed=printed)
        if self.arrival_rate == 0 or self.load >= 1:
            return lower
        k = self.capacity / self.service_rate
        rho = self.load
        guess = erlang_c(k, rho * k) * rho * (1 + self.excess + self.ring_average(printed=printed)) / (1 - rho) + rho * k
        return float(np.clip(guess, lower, upper))

    def mean_from(self, unused_average: float, by_sum: float) -> float:
        """E[Q] from E_U[q + Δᴬ(m) − Δ(s⁺)] by the exact identity; below load ½, where that cancels, by the sum over the distribution."""
        if self.load < 0.5:
            return by_sum
        return (self.load * (1 + self.excess) + self.ring_average()) / (1 - self.load) + unused_average

    @property
    def heavy_traffic_constant(self) -> float:
        """lim (1−ρ) E[Q] as arrivals grow until ρ → 1, with the process unchanged: 1 + (I−1)/2 + E[Δ(ν⁺)], with I at that rate."""
        if self.arrival_process is None or self.capacity == 0:
            return 1.0 + self.ring_average()
        return (1 + self.arrival_process.dispersion(self.capacity)) / 2 + self.ring_average()


def relative_completions(process: ModulatingProcess, ring_rate: Array) -> Array:
    """Δ with G Δ = E[c]·1 − c and stationary·Δ = 0 (Lemma solve-delta)."""
    N = len(process)
    excess = ring_rate - float(process.stationary @ ring_rate)
    if N == 1:
        return np.zeros(1)
    if process.loop is not None:  # Δ(s) = (c_s − E[c])/exit rate + Δ(next), summed along the loop
        order = process.loop
        gained = excess[order] / process.exit_rate[order]
        delta = np.empty(N)
        delta[order] = -np.concatenate([[0.0], np.cumsum(gained)[:-1]])
    elif N <= DENSE_STATES:
        with one_thread(N):
            delta = scipy.linalg.lu_solve(process.potentials, -excess)
    else:
        ones = np.ones((N, 1))
        bordered = scipy.sparse.block_array([[process.generator, ones], [process.stationary[None, :], None]], format="csc")
        delta = scipy.sparse.linalg.splu(bordered).solve(np.append(-excess, 0.0))[:N]
    return delta - float(process.stationary @ delta)


def erlang_c(servers: float, offered: float) -> float:
    """The probability of waiting in an M/M/k queue, continued to k that is not whole: offered load a < k.

    Erlang B continued by 1/B(k, a) = ∫ a e^{−at} (1+t)^k dt over t ≥ 0, which is Γ(k+1, a) e^a a^{−k}; then C = B/(1 − (a/k)(1 − B)).
    """
    if offered <= 0:
        return 0.0
    log_gamma = scipy.special.gammaln(servers + 1) + np.log(scipy.special.gammaincc(servers + 1, offered))  # of Γ(k+1, a)
    log_inverse = log_gamma + offered - servers * np.log(offered)
    blocking = float(np.exp(-log_inverse))
    return blocking / (1 - offered / servers * (1 - blocking))


def mean_waiting(slots: int, offered: float) -> float:
    """The mean number of waiting jobs of an M/M/k queue, C(k, a) a/(k − a); infinite unless a < k."""
    if offered <= 0:
        return 0.0
    return erlang_c(slots, offered) * offered / (slots - offered) if offered < slots else float("inf")
