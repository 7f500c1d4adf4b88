"""Hypothesis runs the same examples every time. To look further: pytest --hypothesis-profile=search.

pytest -n runs a process per core, so the linear algebra within each takes one thread: more would only wait for each other.
"""

import os

for threads in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

from own import own  # noqa: E402, F401  # a fixture

settings.register_profile("steady", derandomize=True, deadline=None, max_examples=60)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("steady")


@pytest.fixture(autouse=True)
def same_file_mask():
    """A daemon that runs in the process of a test takes a narrow file mask: the next test has the usual one again."""
    mask = os.umask(0o022)
    yield
    os.umask(mask)


def pytest_terminal_summary(terminalreporter):  # type: ignore[no-untyped-def]
    """Says aloud that the tests on a real Slurm did not run."""
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if "no Slurm" in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(f"WARNING: {len(skipped)} tests on a real Slurm were skipped: {skipped[0].longrepr[2]}", yellow=True)
