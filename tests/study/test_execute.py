"""Runs in processes and on a Dask cluster, with workers that are killed."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest
from polars.testing import assert_frame_equal

import rota
from rota.study import grid, sweep
from rota.study.execute import execute
from rota.study.runs import Run, measure
from systems import paper_example

SYSTEM = paper_example(0.9)
GRID = {"policies": ["first-fit", "nMSR+backfill"], "loads": [0.5, 0.6], "jobs": 20_000, "seeds": 4}


@pytest.fixture(scope="module")
def alone():
    """The table of `GRID`, made in this process."""
    return sweep(SYSTEM, **GRID, workers=0)


def same(first, second):
    """The tables agree to the last bit, but for how long it took and when."""
    assert_frame_equal(first.drop("time_s", "finished_at"), second.drop("time_s", "finished_at"), check_exact=True)


def test_processes_change_nothing_even_if_one_is_killed(alone):
    """Two workers give the table of none, although one of them is killed with SIGKILL in the middle; none is left afterwards."""
    killed = []

    def kill_one(at):
        if at.done == 1:
            killed.append(multiprocessing.active_children()[0])
            killed[0].kill()

    same(sweep(SYSTEM, **GRID, workers=2, progress=kill_one), alone)
    assert len(killed) == 1
    assert multiprocessing.active_children() == []


def test_a_run_that_kills_its_workers_is_given_up():
    """A run that takes three workers with it fails; the others are done."""
    runs = [*grid(SYSTEM, ["fcfs"], jobs=2000, seeds=2)]
    runs.insert(1, _Deadly(**{**vars(runs[0]), "seed": 99}))
    rows = {row["seed"]: row for row in execute(runs, workers=1)}
    assert (rows[0]["outcome"], rows[1]["outcome"], rows[99]["outcome"]) == ("done", "done", "failed")
    assert "died 3 times" in rows[99]["error"]


class _Deadly(Run):
    """A run that kills the process that receives it."""

    def __reduce__(self):
        return os._exit, (1,)


def test_workers_that_cannot_begin(tmp_path):
    """A program without a guard, which its workers would run again from the top, is told what to do."""
    program = tmp_path / "program.py"
    lines = [
        "import rota, rota.study",
        "system = rota.System([1], [[1]], [0.5], [1.0])",
        "rota.study.sweep(system, ['fcfs'], seeds=3, workers=3)",
    ]
    program.write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert 'below `if __name__ == "__main__":`' in done.stderr.splitlines()[-1]


def test_nothing_to_run_starts_nothing():
    """Without runs no worker is started and no scheduler is asked."""
    assert list(execute([], scheduler="tcp://127.0.0.1:1")) == []


@pytest.mark.parametrize("options", [{"workers": -1}, {"workers": 2, "scheduler": "tcp://127.0.0.1:1"}], ids=str)
def test_bad_options(options):
    """A negative number of workers, or workers beside a scheduler, are refused."""
    with pytest.raises(rota.BadSpec, match="workers: "):
        execute(grid(SYSTEM, ["fcfs"]), **options)


# ------------------------------------------------------------------------------------------------------------------------ Dask


@pytest.fixture
def cluster(tmp_path):
    """A Dask scheduler on loopback and three workers, each a process of its own: its address, and the workers by their names."""
    with ExitStack() as stack:

        def start(*arguments):
            program = [sys.executable, "-m", "dask", *arguments, "--host", "127.0.0.1", "--no-dashboard"]
            process = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        file, deadline = tmp_path / "scheduler.json", time.monotonic() + 60
        scheduler = start("scheduler", "--port", "0", "--scheduler-file", str(file))
        while not file.exists() or not file.read_text(encoding="utf-8").endswith("}"):
            assert scheduler.poll() is None, "the scheduler ended"
            assert time.monotonic() < deadline
            time.sleep(0.05)
        address = json.loads(file.read_text(encoding="utf-8"))["address"]
        options = ("--nthreads", "1", "--no-nanny")
        yield address, {name: start("worker", address, "--name", name, *options) for name in ("one", "two", "three")}


def test_a_dask_worker_that_dies_loses_nothing(cluster, alone, tmp_path):
    """On a cluster of three worker processes, one killed with SIGKILL while it has runs, the table is that of this process."""
    from distributed import Client

    address, workers = cluster
    killed = []
    with Client(address, set_as_default=False) as observer:
        observer.wait_for_workers(3, timeout=60)

        def kill_a_busy_one(at):
            busy = [place for place, tasks in observer.processing().items() if tasks]
            if not killed and busy:
                name = observer.scheduler_info()["workers"][busy[-1]]["name"]
                workers[name].send_signal(signal.SIGKILL)
                killed.append(name)

        table = sweep(SYSTEM, **GRID, scheduler=address, output=tmp_path / "results.parquet", progress=kill_a_busy_one)
        assert len(killed) == 1
        assert workers[killed[0]].wait(timeout=10) == -signal.SIGKILL
        same(table, alone)
        deadline = time.monotonic() + 10
        while observer.processing() and any(observer.processing().values()):  # nothing is left on the cluster
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_your_own_policy_and_arrivals_on_dask(own, cluster):
    """A policy and an arrival process by name give the table of this process on a cluster whose workers can import them."""
    from distributed import Client

    name, _ = own
    address, _ = cluster
    asked = {"policies": [f"{name}:small_first"], "workload": f"{name}:Pairs", "jobs": 2000, "seeds": 3}
    with Client(address, set_as_default=False) as observer:
        observer.wait_for_workers(3, timeout=60)
        table = sweep(SYSTEM, **asked, scheduler=address)
    same(table, sweep(SYSTEM, **asked, workers=0))
    assert table["outcome"].to_list() == ["done"] * 3


def test_a_scheduler_that_is_not_there():
    """A wrong address is told in one line."""
    with pytest.raises(rota.RotaError, match="cannot reach a Dask scheduler at nonsense://nowhere:1"):
        list(execute(grid(SYSTEM, ["fcfs"], jobs=2000), scheduler="nonsense://nowhere:1"))


def test_dask_is_asked_for_when_it_is_missing(monkeypatch):
    """Without Dask the error says how to install it."""
    monkeypatch.setitem(sys.modules, "distributed", None)  # as if it were not installed
    with pytest.raises(rota.RotaError, match=r"pip install 'rota\[dask\]'"):
        list(execute(grid(SYSTEM, ["fcfs"], jobs=2000), scheduler="tcp://127.0.0.1:1"))


def test_dask_is_not_loaded_unless_asked_for():
    """A sweep on this machine does not import Dask."""
    program = "import sys, rota.study; print('distributed' in sys.modules, 'dask' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_what_a_worker_returns_can_travel():
    """A row is plain data: numbers, text, lists."""
    (run,) = grid(SYSTEM, ["first-fit"], loads=[0.5], jobs=2000)
    row = measure(run)
    assert json.loads(json.dumps(row)) == row
