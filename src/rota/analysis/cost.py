"""What exact values cost, from the sizes of the matrices alone: the same on every machine, so that choices based on it are too.

For N phases and β boundary levels (see `rota.analysis.qbd` and `rota.analysis.loop`):

    first-passage matrix                 some 400 N³ operations
    a matrix per level                   β (N³ and a call), β N² numbers held
    slots that never change (Erlang)     β
    a loop by passage                    N β (N + β) and a linear system of N + β + 1 unknowns, (N + β)² numbers held

The seconds are those of one core of a common machine; a busy one takes a few times as long.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LONGEST_S", "QUICK_S", "Cost", "cost_by_level", "cost_of_erlang", "cost_of_loop"]

QUICK_S = 2.0  # exact values that take no longer are shown without being asked for
LONGEST_S = 3600.0  # those that take longer are refused
_ENTRIES = 2.5e8  # numbers held at once
_PASSAGE, _LEVEL, _CALL = 1e-8, 3e-10, 4e-5  # seconds per N³, per N³ and level, per level
_ERLANG = 1e-7  # seconds per level
_TURN, _FLOWS, _START = 5e-9, 4e-10, 1e-3  # per N β (N + β), per (N + β)³, always


@dataclass(frozen=True)
class Cost:
    """Seconds, and the numbers that are held in memory at once."""

    time_s: float
    entries: float

    @property
    def affordable(self) -> bool:
        """Whether it can be done at all, in an hour and in memory."""
        return self.time_s <= LONGEST_S and self.entries <= _ENTRIES


def cost_by_level(phases: int, levels: int) -> Cost:
    """A matrix per level."""
    N, beta = float(phases), float(levels)
    return Cost(_START + _PASSAGE * N**3 + beta * (_CALL + _LEVEL * N**3), N * N * (beta + 20))


def cost_of_erlang(levels: int) -> Cost:
    """One array over the levels."""
    return Cost(_START + _ERLANG * levels, 4.0 * levels)


def cost_of_loop(phases: int, levels: int) -> Cost:
    """A loop by passage."""
    N, beta = float(phases), float(levels)
    return Cost(_START + _PASSAGE * N**3 + _TURN * N * beta * (N + beta) + _FLOWS * (N + beta) ** 3, 3 * (N + beta) ** 2 + 8 * N * N)
