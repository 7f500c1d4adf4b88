"""Kinds that give each job numbered things of its own, such as cores and devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from rota.live.resources.kind import Kind

__all__ = ["Numbered", "Pool", "is_whole"]


class Pool:
    """Numbered things, each given to one job at a time."""

    def __init__(self, ids: Iterable[int]) -> None:
        self.ids = tuple(ids)
        self._free = set(self.ids)

    @property
    def free(self) -> tuple[int, ...]:
        """The free numbers, in ascending order."""
        return tuple(sorted(self._free))

    def take(self, count: int, prefer: Iterable[int] | None = None) -> tuple[int, ...]:
        """Takes `count` free numbers: those of `prefer` if they are free, then the lowest."""
        if count > len(self._free):
            raise ValueError(f"{count} asked for, {len(self._free)} of {len(self.ids)} are free")
        wanted = [one for one in dict.fromkeys(prefer or ()) if one in self._free][:count]
        others = [one for one in self.free if one not in wanted]
        taken = tuple(sorted(wanted + others[: count - len(wanted)]))
        self._free.difference_update(taken)
        return taken

    def hold(self, ids: Iterable[int]) -> None:
        """Takes exactly these numbers, for a job that was found running. Numbers outside the pool are ignored."""
        ours = set(ids) & set(self.ids)
        if twice := ours - self._free:
            raise ValueError(f"{sorted(twice)} are taken already")
        self._free -= ours

    def give_back(self, ids: Iterable[int]) -> None:
        """Gives numbers back."""
        ours = set(ids) & set(self.ids)
        if never := ours & self._free:
            raise ValueError(f"{sorted(never)} were not taken")
        self._free |= ours


class Numbered(Kind):
    """A kind with a pool of numbers; without a `pool` it is counted only. Its terms are the numbers of the share."""

    numbered: ClassVar[bool] = True
    pool: Pool | None = None

    @property
    def whole(self) -> bool:
        """True if there is a pool."""
        return self.pool is not None

    @property
    def free(self) -> tuple[int, ...] | None:
        """The free ones of the pool."""
        return None if self.pool is None else self.pool.free

    def take(self, amount: float, prefer: Sequence[int] = ()) -> list[int] | None:
        """Takes numbers from the pool."""
        return None if self.pool is None else list(self.pool.take(round(amount), prefer))

    def hold(self, share: Sequence[int]) -> None:
        """Ignores numbers outside the pool: an earlier daemon may have had other ones."""
        if self.pool is not None:
            self.pool.hold(share)

    def release(self, share: Sequence[int]) -> None:
        """Gives the numbers back to the pool."""
        if self.pool is not None:
            self.pool.give_back(share)

    def take_again(self, share: Sequence[int]) -> list[int] | None:
        """As many numbers as before, or all that are free."""
        return None if self.pool is None else list(self.pool.take(min(len(share), len(self.pool.ids)), share))

    def take_over(self, before: Kind) -> None:
        """Takes over its pool."""
        if isinstance(before, Numbered):
            self.pool = before.pool

    def terms(self, share: Sequence[int] | None, amount: float, attempt: str) -> Any:
        """The numbers."""
        return None if self.pool is None or share is None else list(share)

    def asked_in_parts(self) -> bool:
        """Whether the server's capacity, or the demand of a type, is not a whole number."""
        return not all(map(is_whole, (*self.resource.demands, self.resource.capacity)))


def is_whole(amount: float) -> bool:
    """Whether an amount is a whole number up to rounding."""
    return abs(amount - round(amount)) < 1e-9
