"""Run by a test on a small file system of its own: jobs before, while and after it is full."""

import contextlib
import os
import sys
from pathlib import Path

from job_processes import open_bench

directory, mark = Path(sys.argv[1]), Path(sys.argv[1]) / "go"

with open_bench(directory) as bench:
    print("before: ended", bench.sh("exit 0").wait().exit_code)
    running = bench.sh(f"until [ -e {mark} ]; do sleep 0.01; done; echo lost words; exit 4")
    bench.until(lambda: running.look().state == "alive")
    mark_later = directory / "later"
    mark_later.touch()
    with open(directory / "filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
        while filler.write(b"x" * 512):
            pass
    assert os.statvfs(directory).f_bavail == 0
    refused = bench.sh(f"touch {directory}/ran")
    state = refused.wait().state
    mark_later.rename(mark)  # needs no new space
    print("filled while running: ended", running.wait().exit_code)
    print(f"full: {state}, ran {(directory / 'ran').exists()}")
    (directory / "filler").unlink()
    print("room again: ended", bench.sh("exit 0", job=refused.job).wait().exit_code)
