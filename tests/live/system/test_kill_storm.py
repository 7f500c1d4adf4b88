"""A short kill storm; `python -m benchmarks kill_storm` is the long one."""

from __future__ import annotations

import os
from pathlib import Path

from kill_storm import CELLS, storm

KILLS = int(os.environ.get("ROTA_KILLS", "24"))


def test_kill_storm(tmp_path: Path) -> None:
    """Kills among suspensions, requeues, new plans and plans without a type: none is lost, none runs twice, nobody gets too much."""
    seen = storm(tmp_path, KILLS, log_line=print)
    print(seen)
    assert seen["most cells at once"] <= CELLS
    assert seen["most cells at once"] > CELLS // 2, "the trial is no trial"
    assert seen["suspend"] + seen["requeue"] > 0  # which of both comes up in so short a storm depends on the pace of the machine
    assert seen["plans"] > 2
