"""Counts, means and deviations of sizes by type, in one pass, row after row.

The order of summation is that of the rows, however the table is split: the same trace gives the same numbers to the last bit, on
any number of cores. What is simulated depends on them.
"""

from __future__ import annotations

import numba as nb
import numpy as np
import polars as pl

from rota.arrays import Array, Int

__all__ = ["sums_by_type"]

_CHUNK = 1 << 18


def sums_by_type(jobs: pl.LazyFrame, K: int) -> tuple[Int, Array, Array]:
    """Number of jobs, mean and standard deviation of their sizes, of each type (K,)."""
    count, mean, squares = np.zeros(K, dtype=np.int64), np.zeros(K), np.zeros(K)
    for part in jobs.select("type", "size").collect_batches(chunk_size=_CHUNK, maintain_order=True):
        _add(part["type"].to_numpy(), part["size"].to_numpy(), count, mean, squares)
    return count, mean, np.sqrt(squares / np.maximum(count, 1))


@nb.njit(cache=True)
def _add(kinds: Int, sizes: Array, count: Int, mean: Array, squares: Array) -> None:
    """Welford's update (1962), which does not lose digits."""
    for k in range(len(kinds)):
        i = kinds[k]
        count[i] += 1
        step = sizes[k] - mean[i]
        mean[i] += step / count[i]
        squares[i] += step * (sizes[k] - mean[i])
