"""Hypothesis runs the same examples every time. To look further: pytest --hypothesis-profile=search.

pytest -n runs a process per core, so the linear algebra within each takes one thread: more would only wait for each other.

Numba caches compiled functions on disk, and does not notice when a function that they call has changed in another file: caches older than
the newest compiled source are deleted before the tests begin.
"""

import os

for threads in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

from pathlib import Path  # noqa: E402

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

from caches import remove_stale_caches  # noqa: E402
from own import own  # noqa: E402, F401  # a fixture

settings.register_profile("steady", derandomize=True, deadline=None, max_examples=60)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("steady")

SOURCE = Path(__file__).parents[1] / "src" / "rota"


def pytest_configure(config: pytest.Config) -> None:
    """Deletes stale caches, once, before any worker of pytest -n starts."""
    if not hasattr(config, "workerinput"):
        remove_stale_caches(SOURCE)
