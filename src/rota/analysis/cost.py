"""What exact values cost, from the sizes of the matrices alone: the same on every machine, so that choices based on it are too.

For N phases and β boundary levels (see `rota.analysis.qbd` and `rota.analysis.loop`):

    first-passage matrix                 some 400 N³ operations
    a matrix per level                   β (N³ and a call), β N² numbers held
    the same, compiled, on levels L…β    (β − L) N³, (β − L) N² numbers held (`rota.analysis.window`)
    slots that never change (Erlang)     β
    round a loop, on levels L…β          N D² and a linear system of D unknowns, D² numbers held, D = β − L + 1 + some 200
    the mean alone, compiled             as with a matrix per level, without a call for each and with nothing held
    a step of the response time          N³ + β N² (`rota.analysis.response`)

The seconds are those of one core of a common machine; a busy one takes a few times as long.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "LONGEST_S",
    "QUICK_S",
    "Cost",
    "cost_by_level",
    "cost_by_window",
    "cost_of_erlang",
    "cost_of_loop",
    "cost_of_mean",
    "cost_of_step",
]

QUICK_S = 2.0  # exact values that take no longer are shown without being asked for
LONGEST_S = 3600.0  # those that take longer are refused
_ENTRIES = 2.5e8  # numbers held at once
_PASSAGE, _LEVEL, _CALL = 1e-8, 3e-10, 4e-5  # seconds per N³, per N³ and level, per level
_SEEN, _FILL, _INVERT = 1e-6, 4e-8, 1e-10  # seconds per level that is seen, per N² and per N³ of it
_ERLANG = 1e-7  # seconds per level
_MEAN, _MEAN_LEVEL, _MEAN_CALL = 7e-9, 4e-10, 3e-7  # the same three for the mean alone
_STEP, _STEP_ENTRY, _STEP_CALL = 2e-10, 1e-8, 2.5e-5  # per N² (N + β), per N (N + β), per step
_TURN, _FLOWS, _START = 1.1e-9, 2e-10, 1e-3  # per N D², per D³, always
_POINTS = 200  # numbers that stand for all levels above β, about


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


def cost_by_window(phases: int, levels: int) -> Cost:
    """A matrix per level that is seen, compiled."""
    N, seen = float(phases), float(levels)
    return Cost(_START + _PASSAGE * N**3 + seen * (_SEEN + _FILL * N**2 + _INVERT * N**3), N * N * (seen + 20))


def cost_of_erlang(levels: int) -> Cost:
    """One array over the levels."""
    return Cost(_START + _ERLANG * levels, 4.0 * levels)


def cost_of_loop(phases: int, levels: int) -> Cost:
    """Round a loop, with so many boundary levels that are seen."""
    N, size = float(phases), float(levels) + _POINTS
    return Cost(_START + _TURN * N * size**2 + _FLOWS * size**3, 4 * size**2 + 20 * N)


def cost_of_mean(phases: int, levels: int) -> float:
    """Seconds for the mean queue of a type in compiled code (`rota.analysis.means`)."""
    cube = float(phases) ** 3
    return _MEAN * cube + levels * (_MEAN_CALL + _MEAN_LEVEL * cube)


def cost_of_step(phases: int, levels: int) -> float:
    """Seconds for a step of the law of the response time (`rota.analysis.response`)."""
    N = float(phases)
    return _STEP_CALL + (_STEP_ENTRY * N + _STEP * N * N) * (N + levels)
