"""Cores: each job runs on its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from job_processes import open_bench
from rota.live.processes import tree
from rota.live.resources.cores import Cores
from rota.live.resources.kind import Resource
from rota.model.live import LiveSettings

CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(("capacity", "demand", "words"), [(CORES + 1, 1, "may be used here"), (CORES, 0.5, "asked for in parts")])
def test_cores_that_are_only_counted(capacity: float, demand: float, words: str) -> None:
    """More cores than there are, or parts of cores, are counted, and it is said."""
    cores = Cores(Resource("cpus", capacity, [demand]), LiveSettings())
    assert cores.describe().enforced == ""
    assert words in cores.describe().remarks[0]
    assert cores.take(demand) is None


def test_a_job_gets_the_cores_that_it_prefers() -> None:
    """What it had before, as far as it is free."""
    own = sorted(os.sched_getaffinity(0))
    cores = Cores(Resource("cores", CORES, [1]), LiveSettings())
    assert cores.take(1) == [own[0]]
    cores.release([own[0]])
    assert cores.take(1, prefer=[own[-1]]) == [own[-1]]


def test_move(tmp_path: Path) -> None:
    """A running job, with its children and all their threads, is moved to other cores."""
    if CORES < 2:
        pytest.skip("a job can only be moved where there are two cores")
    first, second = sorted(os.sched_getaffinity(0))[:2]
    script = (
        "import os, threading, time\n"
        "os.fork()\n"
        "for _ in range(3): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        f"open(f'{tmp_path}/{{os.getpid()}}.up', 'w'); time.sleep(60)\n"
    )
    with open_bench(tmp_path) as bench:
        run = bench.launch([sys.executable, "-I", "-S", "-c", script], share={"cores": [first]})
        bench.until(lambda: len(list(tmp_path.glob("*.up"))) == 2)
        threads = [thread for pid in tree.descendants(run.pid) for thread in tree.threads(pid)]
        assert len(threads) == 8
        assert {tuple(os.sched_getaffinity(thread)) for thread in threads} == {(first,)}
        tree.for_each_thread(run.pid, lambda thread: Cores.move(thread, [second]))
        assert {tuple(os.sched_getaffinity(thread)) for thread in threads} == {(second,)}
