"""The kill storm: hundreds of SIGKILLs of a real daemon under plans that change; what became of the jobs.

`python -m benchmarks kill_storm --kills 600 --seed 7`. It fails if a job is lost or runs twice; what jobs had at once is printed, by their
own notes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

KILLS = 60


def run(arguments: Sequence[str] = ()) -> None:
    """Runs the storm and prints what was seen."""
    parser = argparse.ArgumentParser("python -m benchmarks kill_storm")
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--shrinking", action="store_true", help="with a plan in which types need less than before, too")
    given = parser.parse_args(arguments)
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from kill_storm import storm  # the tests have a short one

    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        seen = storm(
            Path(directory), given.kills, seed=given.seed, shrinking=given.shrinking, log_line=lambda text: print(f"  {text}", flush=True)
        )
    for what, value in seen.items():
        print(f"{what:<30} {value:>8}")
    print(f"{'minutes':<30} {(time.perf_counter() - began) / 60:8.1f}")
