"""Numba caches compiled functions on disk, and does not notice when a function that they call has changed in another file."""

from pathlib import Path


def remove_stale_caches(source: Path) -> None:
    """Deletes numba's files that are older than the newest source file with compiled functions in it."""
    compiled = [file for file in source.rglob("*.py") if any(mark in file.read_text(encoding="utf-8") for mark in ("@kernel", "njit"))]
    newest = max((file.stat().st_mtime for file in compiled), default=0.0)
    for cache in source.rglob("*.nb[ic]"):
        if cache.stat().st_mtime < newest:
            cache.unlink(missing_ok=True)
