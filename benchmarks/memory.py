"""How much memory a process takes: after `import rota`, after one simulation, and while a month of 69 million jobs is replayed.

    python -m benchmarks memory             the first two, in fresh processes whose compiled code is on disk
    python -m benchmarks memory --replay    the month too: a made file of 0.9 GB, some minutes

Resident memory counts pages of libraries that processes share; *own* is what only this process has. *Largest* is the most at any time.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

STEPS = {
    "python": "pass",
    "import numpy": "import numpy",
    "import numba": "import numba",
    "import rota": "import rota",
    "a system": "import rota; rota.System([1], [[1]], [0.8], [1.0])",
    "100,000 jobs": 'import rota; rota.simulate(rota.System([1], [[1]], [0.8], [1.0]), "first-fit", jobs=100_000)',
    "1,000,000 jobs": 'import rota; rota.simulate(rota.System([1], [[1]], [0.8], [1.0]), "first-fit", jobs=1_000_000)',
}
REPLAY = """
import rota
from rota.traces import open_trace, scaled_to
trace, system = scaled_to(open_trace({path!r}).without_long(2e5), 0.9, capacity=[1, 1], by="capacity")
rota.simulate(system, "first-fit", workload=trace{jobs})
"""
REPORT = """
fields = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(*(int(fields[name].split()[0]) for name in ("VmRSS", "RssAnon", "VmHWM")))
"""


def measured(program: str) -> tuple[float, float, float]:
    """Megabytes that a program leaves resident, its own of these, and the most that it had."""
    done = subprocess.run([sys.executable, "-c", program + "\n" + REPORT], capture_output=True, text=True, check=True)
    resident, own, most = (int(word) / 1000 for word in done.stdout.split())
    return resident, own, most


def show(name: str, program: str) -> None:
    """One row."""
    resident, own, most = measured(program)
    print(f"{name:24}{resident:>10.0f}{own:>8.0f}{most:>10.0f}", flush=True)


def run(options: list[str] | None = None) -> None:
    """The table, in megabytes."""
    if not Path("/proc/self/status").exists():
        print("needs /proc/self/status, which only Linux has")
        return
    measured(STEPS["100,000 jobs"])  # compiles, if that is not done
    print(f"{'MB':24}{'resident':>10}{'own':>8}{'largest':>10}")
    for name, program in STEPS.items():
        show(name, program)
    if "--replay" not in (options or []):
        return
    from rota.traces import write_borg_month

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "month.parquet"
        write_borg_month(path)
        for jobs in (10_000_000, None):
            part = "" if jobs is None else f", jobs={jobs}"
            show("the month" if jobs is None else f"its first {jobs:,}", REPLAY.format(path=str(path), jobs=part))
