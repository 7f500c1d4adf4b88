"""Phase-type sizes under a process that completions do not move: pMSR and sMSR (Appendix "Phase-Type Job Sizes").

In state s the oldest u_s jobs run (the oldest waiting job starts first, the youngest running one yields first), so only the phases of the
oldest β jobs matter; a job further back has its initial phase still to draw. With m the smallest positive u_s, the oldest m jobs always
run together and only the number of them in each phase counts; the next β − m jobs are followed in order. A queue of q jobs then is

    (state of the process, phases of the oldest m jobs as a multiset, phases of the following β − m jobs in order)

and the number of jobs a quasi-birth–death process with blocks that grow up to level β and repeat from there on. Arrivals that are not
Poisson add their phase (`rota.analysis.markovian`): with T the phases in which time passes, every block is a Kronecker product

    up(q)  D₁ ⊗ up(q)        down(q)  T ⊗ down(q)        local(q)  D₀ ⊗ I + T ⊗ local(q)
"""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from math import comb

import numpy as np

from rota.analysis.qbd import climb, first_passage, m_matrix, rate_matrix, tail_moments, tail_probabilities
from rota.analysis.queue import TypeQueue
from rota.analysis.solution import QueueLength
from rota.arrays import Array
from rota.errors import Infeasible
from rota.model import PhaseTypeFamily
from rota.model.markovian import Unfolded
from rota.policy import stationary_law

__all__ = ["phase_count", "solve_phase_type"]

Jobs = tuple[tuple[int, ...], tuple[int, ...]]  # phases of the oldest m jobs, sorted; phases of the others, oldest first

_LARGEST = 2500


def phase_count(queue: TypeQueue, phases: int) -> int:
    """How many phases the queue has from level β on."""
    together, beta = _together(queue), queue.max_parallel
    of_arrivals = 1 if queue.arrivals is None else len(queue.arrivals.unfolded.real)
    count: int = of_arrivals * len(queue.process) * comb(together + phases - 1, phases - 1) * int(phases ** (beta - together))
    return count


def _together(queue: TypeQueue) -> int:
    return int(queue.slots[queue.slots > 0].min())


def solve_phase_type(queue: TypeQueue, size: PhaseTypeFamily) -> QueueLength:
    """The law of Q for phase-type sizes."""
    a, T = size.representation
    needed = phase_count(queue, len(a))
    if needed > _LARGEST:
        size_text = f"{needed:,}" if needed < 10**9 else f"some 10^{len(str(needed)) - 1}"
        raise Infeasible(
            f"phase-type sizes with {len(a)} phases and up to {queue.max_parallel} jobs at once need {size_text} "
            f"phases, more than {_LARGEST:,}: "
            'use fewer phases, simulate, or analyze with sizes="exponential"'
        )
    lam, beta = queue.arrival_rate, queue.max_parallel
    blocks = _Blocks(queue, a, T)

    up, local, down = blocks.up(beta), blocks.local(beta), blocks.down(beta + 1)
    G, residual = first_passage(up, local, down)
    R = rate_matrix(up, local, down, G)

    factor: list[Array] = [np.empty(0)] * (beta + 1)
    passage = G
    inner = local + up @ G
    for q in range(beta, 0, -1):
        leave, up = blocks.down(q), blocks.up(q - 1)
        inverse = np.linalg.inv(m_matrix(inner, leave.sum(axis=1)))
        factor[q] = up @ inverse
        passage = inverse @ leave
        inner = blocks.local(q - 1) + up @ passage
    levels = climb(stationary_law(inner), factor)
    mass = np.array([level @ blocks.counts(q) for q, level in enumerate(levels[:beta])])
    counts = blocks.counts(beta)
    (first, second), total = tail_moments(mass, levels[beta], R, counts)
    # Jobs are done as fast as they come: the check that stands in for the identity of exponential sizes.
    done = sum(float(levels[q] @ blocks.down(q).sum(axis=1)) for q in range(1, beta + 1))
    above = np.linalg.solve((np.eye(len(R)) - R).T, levels[beta]) - levels[beta]
    done += float(above @ down.sum(axis=1))
    mean = first / total
    return QueueLength(
        mean=mean,
        variance=second / total - mean**2,
        decay_rate=float(np.abs(np.linalg.eigvals(R)).max()),
        mean_by_sum=mean,
        residual=max(residual, abs(done / total / lam - 1)),
        method=f"phase-type, {len(R)} phases, {beta} boundary levels",
        probabilities=lambda n: tail_probabilities(mass / total, levels[beta] / total, R, n, counts),
    )


class _Blocks:
    """The rates between and within levels; states of level q are (phase of arrivals, state of the process, jobs), in this order."""

    def __init__(self, queue: TypeQueue, a: Array, T: Array) -> None:
        self.a, self.T, self.exit = a, T, -T.sum(axis=1)
        self.plain = queue.plain.toarray()
        self.slots = queue.process.schedules[:, queue.type]
        self.m, self.beta, self.J = _together(queue), queue.max_parallel, len(a)
        self.configurations: dict[int, dict[Jobs, int]] = {}
        one = np.ones((1, 1))
        poisson = Unfolded(0 * one, queue.arrival_rate * one, np.ones(1, dtype=bool))
        self.turns, self.marked, self.real = poisson if queue.arrivals is None else queue.arrivals.unfolded

    def counts(self, q: int) -> Array:
        """1 for the states of level q in which time passes, 0 for the others."""
        return np.repeat(self.real.astype(np.float64), len(self.slots) * len(self.jobs(q)))

    def jobs(self, q: int) -> dict[Jobs, int]:
        """The possible phases of the oldest min(q, β) jobs, numbered."""
        q = min(q, self.beta)
        if q not in self.configurations:
            multisets = combinations_with_replacement(range(self.J), min(q, self.m))
            pairs = product(multisets, product(range(self.J), repeat=max(q - self.m, 0)))
            self.configurations[q] = {pair: k for k, pair in enumerate(pairs)}
        return self.configurations[q]

    def local(self, q: int) -> Array:
        """Moves within level q, no diagonal: of arrivals, of the process, and of running jobs from phase to phase."""
        block = self._local(q)
        return np.kron(self.turns, np.eye(len(block))) + np.kron(np.diag(self.real.astype(np.float64)), block)

    def up(self, q: int) -> Array:
        """Arrivals at level q."""
        return np.kron(self.marked, self._up(q))

    def down(self, q: int) -> Array:
        """Completions at level q."""
        return np.kron(np.diag(self.real.astype(np.float64)), self._down(q))

    def _local(self, q: int) -> Array:
        jobs = self.jobs(q)
        n = len(jobs)
        block = np.kron(self.plain, np.eye(n))
        for s, slots in enumerate(self.slots):
            for (front, back), k in jobs.items():
                for place, phase in self._running(front, back, int(slots)):
                    for j in range(self.J):
                        if j != phase and self.T[phase, j] > 0:
                            block[s * n + k, s * n + jobs[self._replaced(front, back, place, j)]] += self.T[phase, j]
        return block

    def _up(self, q: int) -> Array:
        """Where an arrival at level q leads, as probabilities: below β the new job draws its phase at once."""
        before, after = self.jobs(q), self.jobs(q + 1)
        one = np.zeros((len(before), len(after)))
        for (front, back), k in before.items():
            if len(front) + len(back) == self.beta:
                one[k, k] = 1.0
                continue
            for j, probability in enumerate(self.a):
                one[k, after[self._appended(front, back, j)]] += probability
        return np.kron(np.eye(len(self.slots)), one)

    def _down(self, q: int) -> Array:
        """Completions at level q: the jobs behind move up, and from above β one more job draws its phase."""
        before, after = self.jobs(q), self.jobs(q - 1)
        n, k_after = len(before), len(after)
        block = np.zeros((len(self.slots) * n, len(self.slots) * k_after))
        for s, slots in enumerate(self.slots):
            for (front, back), k in before.items():
                for place, phase in self._running(front, back, int(slots)):
                    if self.exit[phase] <= 0:
                        continue
                    left = self._removed(front, back, place)
                    if q > self.beta:
                        for j, probability in enumerate(self.a):
                            block[s * n + k, s * k_after + after[self._appended(*left, j)]] += self.exit[phase] * probability
                    else:
                        block[s * n + k, s * k_after + after[left]] += self.exit[phase]
        return block

    def _running(self, front: tuple[int, ...], back: tuple[int, ...], slots: int) -> list[tuple[int, int]]:
        """Places and phases of the jobs that run with so many slots: the oldest ones."""
        return list(enumerate(front + back))[:slots]

    def _replaced(self, front: tuple[int, ...], back: tuple[int, ...], place: int, phase: int) -> Jobs:
        everyone = [*front, *back]
        everyone[place] = phase
        return self._sorted(everyone)

    def _removed(self, front: tuple[int, ...], back: tuple[int, ...], place: int) -> Jobs:
        everyone = [*front, *back]
        del everyone[place]
        return self._sorted(everyone)

    def _appended(self, front: tuple[int, ...], back: tuple[int, ...], phase: int) -> Jobs:
        return self._sorted([*front, *back, phase])

    def _sorted(self, everyone: list[int]) -> Jobs:
        return tuple(sorted(everyone[: self.m])), tuple(everyone[self.m :])
