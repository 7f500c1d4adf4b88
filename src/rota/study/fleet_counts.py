"""How many servers of which kind are enough? A search over counts, for any test of a fleet that more servers help to pass.

One kind: from a guess in steps of 1, 2, 4, … until the test changes its answer, then halving. Several kinds: if today's servers pass,
servers are taken away, kind by kind. If not, servers are bought: of one kind, if that is enough, otherwise of all kinds in today's
proportions, and then of each kind as few as the others allow. What is found is minimal: one server less of any kind (below today's
number only where today's servers pass) fails. That it is the least in all is not proved where there are several kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["Counts", "enough_servers", "least_count"]

Counts = tuple[int, ...]
_MOST = 8  # times today's servers, and as many more, are bought at most


def least_count(passes: Callable[[int], bool], low: int, high: int, guess: int) -> int | None:
    """The least of low … high that passes, for a test that is passed from there on; None if `high` is reached without."""
    at, step = min(max(guess, low), high), 1
    if passes(at):
        fails, good = low - 1, at
        while good > low:
            below = max(good - step, low)
            if not passes(below):
                fails = below
                break
            good, step = below, 2 * step
    else:
        fails = at
        while True:
            if fails >= high:
                return None
            good = min(fails + step, high)
            if passes(good):
                break
            fails, step = good, 2 * step
    while good - fails > 1:
        middle = (good + fails) // 2
        fails, good = (fails, middle) if passes(middle) else (middle, good)
    return good


def enough_servers(
    today: Sequence[int],
    passes: Callable[[Counts], bool],
    *,
    order: Sequence[int],
    useful: Sequence[int] | None = None,
    guess: Counts | None = None,
) -> Counts | None:
    """Counts that pass, and of which no kind can have one less (see above); None if no number that was tried passes.

    `order`: the kinds, those of which servers are given up first at the beginning. `useful`: those that are bought alone, all if left out.
    `guess`: where to begin, from another test.
    """
    now = tuple(int(n) for n in today)
    known: dict[Counts, bool] = {}

    def test(counts: Counts) -> bool:
        if counts not in known:
            known[counts] = passes(counts)
        return known[counts]

    if test(now):
        return _fewer(now, (1,) * len(now), test, order, guess)
    found = []
    for c in range(len(now)) if useful is None else useful:
        start = now[c] + 1 if guess is None else guess[c]
        n = least_count(lambda n, c=c: test(_with(now, c, n)), now[c] + 1, _MOST * (now[c] + 1), start)  # type: ignore[misc]
        if n is not None:
            found.append(_with(now, c, n))
    if not found and len(now) > 1:
        total = sum(now)
        bought = least_count(lambda n: test(_more(now, n)), 1, _MOST * (total + 1), 1 if guess is None else max(sum(guess) - total, 1))
        if bought is not None:
            found.append(_fewer(_more(now, bought), now, test, order, None))
    return min(found, key=lambda counts: (sum(counts), counts), default=None)


def _fewer(counts: Counts, least: Counts, test: Callable[[Counts], bool], order: Sequence[int], guess: Counts | None) -> Counts:
    """As few of each kind as the others allow, kind after kind, but not below the least."""
    for c in order:
        start = counts[c] if guess is None else min(guess[c], counts[c])
        n = least_count(lambda n, c=c, at=counts: test(_with(at, c, n)), least[c], counts[c], start)  # type: ignore[misc]
        assert n is not None  # the present count passes
        counts = _with(counts, c, n)
    return counts


def _with(counts: Counts, c: int, n: int) -> Counts:
    return (*counts[:c], n, *counts[c + 1 :])


def _more(counts: Counts, bought: int) -> Counts:
    """About so many servers more, in the same proportions, rounded up."""
    total = sum(counts)
    return tuple(n + -(-n * bought // total) for n in counts)
