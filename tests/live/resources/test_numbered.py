"""Numbered things: each is given to one taker at a time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.live.resources.numbered import Pool


@given(st.data())
def test_nothing_is_given_twice(data: st.DataObject) -> None:
    """Through any sequence of taking and giving back, what is taken and what is free divide the pool, and preference is kept."""
    pool, held = Pool(data.draw(st.sets(st.integers(0, 99), max_size=12)).__iter__()), list[tuple[int, ...]]()
    for _ in range(data.draw(st.integers(0, 20))):
        if held and data.draw(st.booleans()):
            pool.give_back(held.pop(data.draw(st.integers(0, len(held) - 1))))
        else:
            free, prefer = pool.free, data.draw(st.lists(st.integers(0, 99), max_size=5))
            count = data.draw(st.integers(0, len(free)))
            taken = pool.take(count, prefer)
            assert len(taken) == count
            kept = [one for one in dict.fromkeys(prefer) if one in free][:count]
            rest = [one for one in free if one not in kept]
            assert set(taken) == set(kept) | set(rest[: count - len(kept)])
            held.append(taken)
        everything = [one for taken in held for one in taken] + list(pool.free)
        assert sorted(everything) == sorted(pool.ids)


def test_pool_refuses_mistakes() -> None:
    """Taking too much, giving back what is free and holding what is taken are errors that change nothing."""
    pool = Pool([0, 1, 2])
    assert pool.take(2) == (0, 1)
    with pytest.raises(ValueError, match="2 asked for, 1 of 3 are free"):
        pool.take(2)
    with pytest.raises(ValueError, match=r"\[2\] were not taken"):
        pool.give_back([0, 2])
    with pytest.raises(ValueError, match=r"\[1\] are taken already"):
        pool.hold([1, 2])
    assert pool.free == (2,)
    pool.hold([2, 77])  # 77: from a time when the daemon had other cores
    assert pool.free == ()
