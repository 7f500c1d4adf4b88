"""Resources on this machine: what is handed out, what is limited, what is only counted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job_processes import open_bench
from rota.errors import BadSpec
from rota.live.errors import Refused
from rota.live.processes import tree
from rota.live.resources import cgroups
from rota.live.resources.limits import Limits, Pool, Share, bytes_per_unit, move, parse_amount

CORES = len(os.sched_getaffinity(0))


@given(st.data())
def test_nothing_is_given_twice(data: st.DataObject) -> None:
    """Through any sequence of taking and giving back, what is taken and what is free divide the pool, and preference is kept."""
    pool, held = Pool(data.draw(st.sets(st.integers(0, 99), max_size=12)).__iter__()), list[tuple[int, ...]]()
    for _ in range(data.draw(st.integers(0, 20))):
        if held and data.draw(st.booleans()):
            pool.give_back(held.pop(data.draw(st.integers(0, len(held) - 1))))
        else:
            free, prefer = pool.free, data.draw(st.lists(st.integers(0, 99), max_size=5))
            count = data.draw(st.integers(0, len(free)))
            taken = pool.take(count, prefer)
            assert len(taken) == count
            kept = [one for one in dict.fromkeys(prefer) if one in free][:count]
            rest = [one for one in free if one not in kept]
            assert set(taken) == set(kept) | set(rest[: count - len(kept)])
            held.append(taken)
        everything = [one for taken in held for one in taken] + list(pool.free)
        assert sorted(everything) == sorted(pool.ids)


def test_pool_refuses_mistakes() -> None:
    """Taking too much, giving back what is free and holding what is taken are errors that change nothing."""
    pool = Pool([0, 1, 2])
    assert pool.take(2) == (0, 1)
    with pytest.raises(ValueError, match="2 asked for, 1 of 3 are free"):
        pool.take(2)
    with pytest.raises(ValueError, match=r"\[2\] were not taken"):
        pool.give_back([0, 2])
    with pytest.raises(ValueError, match=r"\[1\] are taken already"):
        pool.hold([1, 2])
    assert pool.free == (2,)
    pool.hold([2, 77])  # 77: from a time when the daemon had other cores
    assert pool.free == ()


def test_cores_are_handed_out() -> None:
    """Whole cores that this machine has are sets of their numbers, and a job gets back what it had."""
    limits = Limits(["cores", "disk"], [CORES, 100], [[1, 5]])
    assert limits.enforcement() == {"cores": "affinity", "disk": ""}
    assert limits.remarks() == ["disk is counted only: nothing here holds a job to its share"]
    own = sorted(os.sched_getaffinity(0))
    share = limits.take([1, 5])
    assert share == Share(cores=(own[0],))
    limits.give_back(share)
    assert limits.take([1, 5], prefer=Share(cores=(own[-1],))).cores == (own[-1],)
    assert limits.take([0, 1]).cores is None
    with pytest.raises(Refused, match=r"cores are handed out whole here: 0\.5 is not a whole number"):
        limits.take([0.5, 0])


@pytest.mark.parametrize(("capacity", "demand", "words"), [(CORES + 1, 1, "may be used here"), (CORES, 0.5, "asked for in parts")])
def test_cores_that_are_only_counted(capacity: float, demand: float, words: str) -> None:
    """More cores than there are, or parts of cores, are counted, and it is said."""
    limits = Limits(["cpus"], [capacity], [[demand]])
    assert limits.enforcement() == {"cpus": ""}
    assert words in limits.remarks()[0]
    assert limits.take([demand]) == Share()


def test_devices() -> None:
    """Devices are those that the daemon sees, by number or by name; more than it sees are counted only."""
    limits = Limits(["gpus"], [2], [[1]], environment={"CUDA_VISIBLE_DEVICES": "5,3"})
    assert limits.take([1]) == Share(gpus=(3,))
    assert limits.take([1]) == Share(gpus=(5,))
    assert limits.take([0]) == Share(gpus=())
    assert limits.devices((3, 5)) == ("3", "5")
    assert limits.enforcement() == {"gpus": "CUDA_VISIBLE_DEVICES"}
    named = Limits(["gpu"], [1], environment={"CUDA_VISIBLE_DEVICES": "GPU-a1, GPU-b2"})
    assert named.devices(named.take([1]).gpus) == ("GPU-a1",)
    assert Limits(["gpu"], [2], environment={}).take([2]).gpus == (0, 1)
    few = Limits(["gpu"], [2], environment={"CUDA_VISIBLE_DEVICES": "0"})
    assert (few.gpus, few.remarks()) == (None, ["gpu: 2 planned, but CUDA_VISIBLE_DEVICES shows 1: counted only"])


@pytest.mark.parametrize(("there", "warns"), [([], True), (["nvidia0"], True), (["nvidia0", "nvidia1", "nvidiactl"], False)])
def test_more_devices_planned_than_there_are(tmp_path: Path, there: list[str], warns: bool) -> None:
    """Two GPUs planned on a machine with none, or one: it is said, as it is of cores. They are handed out all the same."""
    for name in (*there, "null"):
        (tmp_path / name).touch()
    limits = Limits(["gpus"], [2], [[1]], environment={}, devices=str(tmp_path))
    count = sum(name[-1].isdecimal() for name in there)
    text = f"gpus: 2 planned, but this machine shows {count} ({tmp_path}/nvidia*): jobs may be told of devices that are not there"
    assert (text in limits.remarks()) == warns
    assert limits.take([2]).gpus == (0, 1)


def test_memory_is_limited() -> None:
    """Memory becomes bytes by the unit in its name; what the limit does not do is said."""
    limits = Limits(["memory_gib"], [1], memory="rlimit")
    assert limits.take([0.5]).memory_bytes == 2**29
    assert limits.take([0]).memory_bytes is None
    assert limits.enforcement() == {"memory_gib": "rlimit"}
    assert "RLIMIT_AS" in limits.remarks()[0]
    none = Limits(["memory"], [1], memory="none")
    assert (none.take([1]).memory_bytes, none.enforcement()) == (None, {"memory": ""})
    assert "this machine has" in Limits(["mem_tb"], [900], memory="rlimit").remarks()[-1]


@pytest.mark.parametrize(
    ("name", "size"),
    [("memory", 10**9), ("mem", 10**9), ("memory_mb", 10**6), ("Memory_MiB", 2**20), ("ram_kib", 1024), ("memory_bytes", 1)],
)
def test_units_in_names(name: str, size: int) -> None:
    """The name of a memory resource tells its unit; plain memory is in GB."""
    assert bytes_per_unit(name) == size


@pytest.mark.parametrize(
    ("text", "resource", "amount"),
    [
        ("7G", "memory_gb", 7),
        ("7G", "memory", 7),
        ("7Gi", "memory_gib", 7),
        ("512M", "memory_gb", 0.512),
        ("1GiB", "memory_mib", 1024),
        ("1.5t", "memory_gb", 1500),
        ("3", "memory_mb", 3),
        ("4096B", "memory_kib", 4),
        ("2.5", "cores", 2.5),
    ],
)
def test_amounts(text: str, resource: str, amount: float) -> None:
    """An amount with a unit is turned into the unit of the resource; a bare number is in it already."""
    assert parse_amount(text, resource) == pytest.approx(amount)


@given(st.floats(0, 1e6), st.sampled_from(["", "K", "Mi", "G", "Ti"]), st.sampled_from(["memory", "memory_mib", "mem_kb"]))
def test_amounts_mean_bytes(number: float, unit: str, resource: str) -> None:
    """However it is written, an amount is the same number of bytes."""
    powers = {"K": 1000, "Mi": 2**20, "G": 10**9, "Ti": 2**40}
    meant = float(f"{number:.6f}") * (powers[unit] if unit else bytes_per_unit(resource))
    assert parse_amount(f"{number:.6f}{unit}", resource) * bytes_per_unit(resource) == pytest.approx(meant)


@pytest.mark.parametrize(
    ("text", "resource"), [("seven", "memory"), ("-1G", "memory"), ("7i", "memory"), ("", "cores"), ("2G", "cores"), ("7Q", "mem")]
)
def test_bad_amounts(text: str, resource: str) -> None:
    """What is no amount is refused with the rule."""
    with pytest.raises(BadSpec, match=r"must be a number|takes a number without a unit|must be at least 0"):
        parse_amount(text, resource)


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
        run = bench.launch([sys.executable, "-I", "-S", "-c", script], cores=[first])
        bench.until(lambda: len(list(tmp_path.glob("*.up"))) == 2)
        threads = [thread for pid in tree.descendants(run.pid) for thread in tree.threads(pid)]
        assert len(threads) == 8
        assert {tuple(os.sched_getaffinity(thread)) for thread in threads} == {(first,)}
        move(run.pid, [second])
        assert {tuple(os.sched_getaffinity(thread)) for thread in threads} == {(second,)}


def test_children_are_found_either_way() -> None:
    """The kernel's list of children and the look at every process agree."""
    here = os.getpid()
    with os.popen("sleep 5 & echo $!; wait") as pipe:
        sleeper = int(pipe.readline())
        by_scan = tree._scan()
        level = by_scan(here)
        assert sleeper in {child for one in level for child in [one, *by_scan(one)]}
        assert sleeper in tree.descendants(here)
        os.kill(sleeper, 15)


def test_own_cgroup() -> None:
    """Where the version 2 hierarchy is mounted, the group of this process is a directory that lists it."""
    group = cgroups.own_group()
    if group is None:
        pytest.skip("cgroup v2 is not mounted here")
    assert str(os.getpid()) in Path(group, "cgroup.procs").read_text().split()
