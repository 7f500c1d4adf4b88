"""Own jobs (those that no type encloses) that wait to start, grouped by demand.

Jobs with the same need are interchangeable: if the oldest does not fit, none does. So an event costs one comparison per distinct need, all
in one array operation, however many jobs wait. For each need, a heap has the oldest job first.
"""

from __future__ import annotations

import heapq

import numpy as np

from rota.arrays import Int

__all__ = ["OwnJobs"]


class OwnJobs:
    """Jobs by need, oldest first by their place in the queue."""

    def __init__(self, resources: int) -> None:
        self._keys: dict[int, bytes] = {}  # by job; a job without a key has left, even if its heap still has it
        self._rows: dict[bytes, int] = {}  # by need: its row below
        self._heaps: list[list[tuple[int, int]]] = []  # by row: place in the queue, job
        self._needs: Int = np.zeros((4, resources), dtype=np.int64)
        self._oldest: Int = np.zeros(4, dtype=np.int64)  # by row: the smallest place in the queue

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, job: int, sequence: int, need: Int) -> None:
        """Adds a job that waits to start and needs these units (R,)."""
        key = need.tobytes()
        if (row := self._rows.get(key)) is None:
            row = self._rows[key] = len(self._heaps)
            if row == len(self._oldest):
                self._needs, self._oldest = np.concatenate([self._needs] * 2), np.concatenate([self._oldest] * 2)
            self._heaps.append([])
            self._needs[row] = need
        heapq.heappush(self._heaps[row], (sequence, job))
        self._keys[job] = key
        self._oldest[row] = self._heaps[row][0][0]

    def discard(self, job: int) -> None:
        """Removes a job that has started or left; does nothing if it is not here."""
        if (key := self._keys.pop(job, None)) is None:
            return
        row = self._rows[key]
        heap = self._heaps[row]
        while heap and self._keys.get(heap[0][1]) != key:
            heapq.heappop(heap)
        if heap:
            self._oldest[row] = heap[0][0]
            return
        del self._rows[key]
        last = len(self._heaps) - 1
        if row != last:  # the last row takes the place of the empty one
            self._heaps[row], self._needs[row], self._oldest[row] = self._heaps[last], self._needs[last], self._oldest[last]
            self._rows[self._needs[last].tobytes()] = row
        self._heaps.pop()

    def first(self, free: Int) -> int | None:
        """The oldest job that fits into what is free; None if none does."""
        if not (count := len(self._heaps)):
            return None
        rows = np.flatnonzero((self._needs[:count] <= free).all(axis=1))
        return self._heaps[rows[np.argmin(self._oldest[rows])]][0][1] if len(rows) else None

    def copy(self) -> OwnJobs:
        """An independent copy."""
        twin = OwnJobs(self._needs.shape[1])
        twin._keys, twin._rows, twin._heaps = self._keys.copy(), self._rows.copy(), [heap.copy() for heap in self._heaps]
        twin._needs, twin._oldest = self._needs.copy(), self._oldest.copy()
        return twin
