"""Kinds of which each job gets numbered things for itself, such as cores and devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from rota.live.resources.kind import Kind

__all__ = ["Numbered", "Pool", "is_whole"]


class Pool:
    """Numbered things, each given to one taker at a time."""

    def __init__(self, ids: Iterable[int]) -> None:
        self.ids = tuple(ids)
        self._free = set(self.ids)

    @property
    def free(self) -> tuple[int, ...]:
        """What nobody has, in ascending order."""
        return tuple(sorted(self._free))

    def take(self, count: int, prefer: Iterable[int] | None = None) -> tuple[int, ...]:
        """Take `count` of the free ones: those of `prefer` as far as they are free, then the lowest."""
        if count > len(self._free):
            raise ValueError(f"{count} asked for, {len(self._free)} of {len(self.ids)} are free")
        wanted = [one for one in dict.fromkeys(prefer or ()) if one in self._free][:count]
        others = [one for one in self.free if one not in wanted]
        taken = tuple(sorted(wanted + others[: count - len(wanted)]))
        self._free.difference_update(taken)
        return taken

    def hold(self, ids: Iterable[int]) -> None:
        """Take exactly these: what a job that was found running has. Numbers that are not of this pool are passed over."""
        ours = set(ids) & set(self.ids)
        if twice := ours - self._free:
            raise ValueError(f"{sorted(twice)} are taken already")
        self._free -= ours

    def are_free(self, ids: Iterable[int]) -> bool:
        """Whether nobody has any of these; numbers that are not of this pool are passed over."""
        return set(ids) & set(self.ids) <= self._free

    def give_back(self, ids: Iterable[int]) -> None:
        """Give back what was taken."""
        ours = set(ids) & set(self.ids)
        if never := ours & self._free:
            raise ValueError(f"{sorted(never)} were not taken")
        self._free |= ours


class Numbered(Kind):
    """A kind with a `pool`, where there is one: without a pool it is counted only. Its terms are the numbers of the share."""

    numbered: ClassVar[bool] = True
    pool: Pool | None = None

    @property
    def whole(self) -> bool:
        """If there is a pool."""
        return self.pool is not None

    @property
    def free(self) -> tuple[int, ...] | None:
        """The free ones of the pool."""
        return None if self.pool is None else self.pool.free

    def take(self, amount: float, prefer: Sequence[int] = ()) -> list[int] | None:
        """So many of the pool."""
        return None if self.pool is None else list(self.pool.take(round(amount), prefer))

    def hold(self, share: Sequence[int]) -> None:
        """Numbers that are not of the pool are passed over: they are of a time when the daemon had others."""
        if self.pool is not None:
            self.pool.hold(share)

    def release(self, share: Sequence[int]) -> None:
        """Back to the pool."""
        if self.pool is not None:
            self.pool.give_back(share)

    def take_again(self, share: Sequence[int]) -> list[int] | None:
        """As many as before, or all there are."""
        return None if self.pool is None else list(self.pool.take(min(len(share), len(self.pool.ids)), share))

    def are_free(self, share: Sequence[int]) -> bool:
        """In the pool."""
        return self.pool is None or self.pool.are_free(share)

    def take_over(self, before: Kind) -> None:
        """With its pool."""
        if isinstance(before, Numbered):
            self.pool = before.pool

    def terms(self, share: Sequence[int] | None, amount: float, attempt: str) -> Any:
        """The numbers."""
        return None if self.pool is None or share is None else list(share)

    def asked_in_parts(self) -> bool:
        """Whether some type needs a part of one, or the server has a part of one."""
        return not all(map(is_whole, (*self.resource.demands, self.resource.capacity)))


def is_whole(amount: float) -> bool:
    """Whether an amount is a whole number, but for rounding."""
    return abs(amount - round(amount)) < 1e-9
