"""`sweep`: each run once, whatever happens in between."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from polars.testing import assert_frame_equal

import rota
from rota.study import read_results, sweep
from rota.study.results import journal_of
from rotas import paper_rota
from systems import EXAMPLES, paper_example

SYSTEM = paper_example(0.9)
PAPER = str(EXAMPLES / "paper.toml")


def same(first, second):
    """The tables agree to the last bit, but for how long it took and when."""
    assert_frame_equal(first.drop("time_s", "finished_at"), second.drop("time_s", "finished_at"), check_exact=True)


def test_rows_are_those_of_simulate():
    """A row per run in the order of the grid, each what `simulate` gives on the system at that load."""
    table = sweep(SYSTEM, ["first-fit", paper_rota("full", 2.0)], loads=[0.5, 0.7], jobs=2000, seeds=2, workers=0)
    assert table.select("policy", "load", "seed").rows() == [
        (name, load, seed) for name in ("first-fit", "pMSR") for load in (0.5, 0.7) for seed in (0, 1)
    ]
    alone = rota.simulate(SYSTEM.scaled(load=0.7), paper_rota("full", 2.0), jobs=2000, seed=1)
    assert table["mean_response_time"][-1] == alone.mean_response_time


def test_no_run_is_done_twice(tmp_path):
    """What the file holds is taken from it; a larger grid runs only what is new, and a smaller one loses nothing."""
    path = tmp_path / "results.parquet"
    small = {"loads": [0.5], "jobs": 2000, "seeds": 2, "workers": 0, "output": path}
    seen = []
    first = sweep(SYSTEM, ["fcfs", "nMSR"], **small, progress=seen.append)
    assert [(at.done, at.total, at.found) for at in seen] == [(done, 4, 0) for done in range(5)]
    assert [at.left_s is None for at in seen] == [True, False, False, False, False]
    seen.clear()
    same(sweep(SYSTEM, ["fcfs", "nMSR"], **small, progress=seen.append), first)
    assert [(at.done, at.total, at.found) for at in seen] == [(4, 4, 4)]
    seen.clear()
    large = sweep(SYSTEM, ["fcfs", "nMSR"], **{**small, "loads": [0.5, 0.6], "seeds": 3}, progress=seen.append)
    assert [at.done for at in seen] == [4, 5, 6, 7, 8, 9, 10, 11, 12]
    assert {at.found for at in seen} == {4}
    assert seen[-1].left_s == 0
    same(large, sweep(SYSTEM, ["fcfs", "nMSR"], **{**small, "loads": [0.5, 0.6], "seeds": 3, "output": None}))
    same(sweep(SYSTEM, ["fcfs"], **small), first.head(2))
    assert set(read_results(path)["key"]) == set(large["key"])


def test_the_same_run_under_two_names(tmp_path):
    """A policy and a file that holds it are one run, with a row under each name."""
    file, path = tmp_path / "plan.json", tmp_path / "results.parquet"
    rota.save_policy(paper_rota("none", 0.1).replace(names=SYSTEM.names), file)
    seen = []
    table = sweep(
        SYSTEM, [paper_rota("none", 0.1), file], loads=[0.5], jobs=2000, workers=0, output=path, progress=lambda at: seen.append(at.total)
    )
    assert seen == [1, 1]
    assert table["policy"].to_list() == ["nMSR", str(file)]
    assert table["mean_response_time"][0] == table["mean_response_time"][1]
    sweep(SYSTEM, ["fcfs"], loads=[0.5], jobs=2000, workers=0, output=path)
    assert read_results(path)["policy"].to_list() == ["nMSR", str(file), "fcfs"]


def test_an_interrupt_keeps_what_is_finished(tmp_path):
    """After Ctrl-C in the middle, the next sweep runs the rest only, and the table is the same as without."""
    path = tmp_path / "results.parquet"
    grid = {"policies": ["fcfs", "max-weight"], "loads": [0.4, 0.6], "jobs": 2000, "seeds": 2, "workers": 0}

    def interrupt(at):
        if at.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(SYSTEM, **grid, output=path, progress=interrupt)
    assert not path.exists()
    seen = []
    table = sweep(SYSTEM, **grid, output=path, progress=seen.append)
    assert [at.done for at in seen] == [3, 4, 5, 6, 7, 8]
    assert not journal_of(path).exists()
    same(table, sweep(SYSTEM, **grid))


def test_half_a_run_is_none(tmp_path):
    """A real SIGINT while a simulation runs ends the sweep; the simulation it was at is not taken for a result."""
    path = tmp_path / "results.parquet"

    def interrupt_soon(at):
        if at.done == 1:
            signal.setitimer(signal.ITIMER_REAL, 0.3)

    before = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    try:
        with pytest.raises(KeyboardInterrupt):
            sweep(SYSTEM, ["max-weight"], jobs=[2000, 500_000_000], workers=0, output=path, progress=interrupt_soon)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert journal_of(path).read_text(encoding="utf-8").count("\n") == 1


def test_sigkill_in_the_middle(tmp_path):
    """A sweep killed with SIGKILL leaves its finished runs and no processes; the same sweep goes on from there to the same table."""
    path = tmp_path / "results.parquet"
    grid = {"loads": [0.5, 0.6, 0.7], "jobs": 50_000, "seeds": 8}
    options = ["--policies", "first-fit", "--loads", "0.5:0.7:0.1", "--jobs", "5e4", "--seeds", "8", "--workers", "2"]
    process = subprocess.Popen([sys.executable, "-m", "rota", "sweep", PAPER, *options, "-o", str(path)], stderr=subprocess.DEVNULL)
    journal, deadline = journal_of(path), time.monotonic() + 60
    while not (journal.exists() and journal.read_bytes().count(b"\n") >= 3):
        assert process.poll() is None, "the sweep ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    workers = psutil.Process(process.pid).children()
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert alive == []
    finished = journal.read_bytes().count(b"\n")
    assert 3 <= finished < 24
    assert not path.exists()

    seen = []
    table = sweep(rota.read_system(PAPER), ["first-fit"], **grid, workers=0, output=path, progress=seen.append)
    assert len(seen) == 1 + 24 - finished
    assert {at.found for at in seen} == {finished}
    same(table, sweep(rota.read_system(PAPER), ["first-fit"], **grid, workers=0))
    same(read_results(path), table)
