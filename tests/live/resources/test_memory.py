"""Memory: what limits it here, and how much."""

from __future__ import annotations

import pytest

from rota.live.resources.kind import Resource
from rota.live.resources.memory import Memory, bytes_per_unit
from rota.model.live import LiveSettings


def memory(name: str, capacity: float, limit: str) -> Memory:
    """Memory of a server, limited in this way."""
    return Memory(Resource(name, capacity), LiveSettings(memory_limit=limit))


def test_memory_is_limited() -> None:
    """Memory becomes bytes by the unit in its name; what the limit does not do is said."""
    limited = memory("memory_gib", 1, "rlimit")
    assert limited.terms(None, 0.5, "1.1") == {"bytes": 2**29, "cgroup": None}
    assert limited.terms(None, 0, "1.1") is None
    assert limited.describe().enforced == "rlimit"
    assert "RLIMIT_AS" in limited.describe().remarks[0]
    none = memory("memory", 1, "none")
    assert (none.terms(None, 1, "1.1"), none.describe().enforced) == (None, "")
    assert "this machine has" in memory("mem_tb", 900, "rlimit").describe().remarks[-1]


@pytest.mark.parametrize(
    ("name", "size"),
    [("memory", 10**9), ("mem", 10**9), ("memory_mb", 10**6), ("Memory_MiB", 2**20), ("ram_kib", 1024), ("memory_bytes", 1)],
)
def test_units_in_names(name: str, size: int) -> None:
    """The name of a memory resource tells its unit; plain memory is in GB."""
    assert bytes_per_unit(name) == size
