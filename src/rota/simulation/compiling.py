"""Whether the engine of a run is still to be compiled, which takes long enough to be reported."""

from __future__ import annotations

from typing import Any

from rota.kernel_cache import is_kept
from rota.simulation.run import Run

__all__ = ["will_compile"]


def will_compile(run: Run) -> bool:
    """Whether the first piece of work waits for the compiler: neither this process nor the cache on disk has the engine."""
    engine: Any = getattr(run.engine, "_engine", run.engine)  # that of a custom policy is wrapped
    if not hasattr(engine, "signatures"):  # plain Python
        return False
    return not engine.signatures and not is_kept(engine)
