"""Which type a request runs as: the one named, or the smallest that encloses what is asked for."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import rota
from rota.errors import BadSpec
from rota.live.messages import JobRequest
from rota.live.scheduling.job_class import class_of, remark_on_directory
from systems import small_systems

SERVER = rota.System(
    [8, 64],
    [[1, 4], [2, 4], [4, 32]],
    [1.0, 1.0, 1.0],
    [1.0, 1.0, 1.0],
    names=("small", "wide", "large"),
    resources=("cores", "memory_gb"),
)


def asked(**demand):
    """A request for so much."""
    return JobRequest(argv=["true"], demand=demand)


@pytest.mark.parametrize(
    ("demand", "type", "remark"),
    [
        ({"cores": 1, "memory_gb": 4}, "small", ""),
        ({"cores": 1}, "small", "runs as type small, the smallest that encloses it"),
        ({"cores": 2}, "wide", "runs as type wide, the smallest that encloses it"),
        ({"memory_gb": 5}, "large", "runs as type large, the smallest that encloses it"),
        ({"cores": 5}, "own", "no type of the plan encloses it: it starts only when the policy leaves enough free capacity"),
        (
            {"cores": 1, "memory_gb": 33},
            "own",
            "no type of the plan encloses it: it starts only when the policy leaves enough free capacity",
        ),
    ],
)
def test_the_smallest_that_encloses(demand, type, remark):
    """Smallest by the sum of its shares of the server; where none encloses, a class of its own with what was asked."""
    found, given_, said = class_of(asked(**demand), SERVER)
    assert (found, said) == (type, remark)
    expected = [demand.get(name, 0) for name in SERVER.resources] if type == "own" else SERVER.demand[SERVER.names.index(type)].tolist()
    assert given_ == expected


def test_nobody_gets_a_gpu_who_did_not_ask_for_one():
    """Cores only: a type without devices encloses it, so it is not the smaller one with a GPU. Who asks for a GPU, or whom nothing else
    encloses, gets one."""
    system = rota.System(
        [16, 64, 4],
        [[1, 2, 1], [8, 32, 0], [12, 32, 1]],
        [1.0] * 3,
        [1.0] * 3,
        names=("notebook", "build", "train"),
        resources=("cores", "memory_gb", "GPUs"),
    )
    assert class_of(asked(cores=1), system)[0] == "build"
    assert class_of(asked(cores=1, GPUs=0), system)[0] == "build"
    assert class_of(asked(cores=1, GPUs=1), system)[0] == "notebook"
    assert class_of(asked(cores=9), system)[0] == "train"


def test_a_type_by_name():
    """It gets what the plan says."""
    assert class_of(JobRequest(argv=["true"], type="wide"), SERVER) == ("wide", [2.0, 4.0], "")


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (JobRequest(argv=["true"], type="huge"), r"type: there is no such type \(there are: small, wide, large\)"),
        (asked(gpus=1), r"demand.gpus: the server has no such resource \(it has: cores, memory_gb\)"),
        (asked(cores=9), r"demand.cores: the server has 8 \(got 9.0\)"),
        (asked(cores=0), "demand: is empty"),
        (asked(cores=9, gpus=1, memory_gb=65), "3 problems"),
    ],
)
def test_what_cannot_be(request_, text):
    """Every problem is told, with what there is."""
    with pytest.raises(BadSpec, match=text):
        class_of(request_, SERVER)


@given(system=small_systems(), data=st.data())
def test_nobody_gets_less_than_asked(system, data):
    """What is given encloses the demand; a type's own demand gives a type that is no larger; the server can always serve it."""
    share = np.array(data.draw(st.lists(st.floats(0, 1), min_size=len(system.capacity), max_size=len(system.capacity))))
    demand = np.minimum(share * system.capacity, system.capacity)
    assume(demand.any())
    type, given_, _ = class_of(asked(**dict(zip(system.resources, demand.tolist(), strict=True))), system)
    assert (np.array(given_) >= demand * (1 - 1e-9)).all()
    assert (np.array(given_) <= system.capacity * (1 + 1e-9)).all()
    encloses = (system.demand >= demand * (1 - 1e-12)).all(axis=1)
    assert (type == "own") == (not encloses.any())
    if type != "own":
        sizes = (system.demand / system.capacity).sum(axis=1)
        assert sizes[system.names.index(type)] == sizes[encloses].min()


def as_a_user(look):
    """What a function says to a user without rights over others' files: root asks in a child process that is nobody."""
    if os.geteuid() != 0:
        return look()
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.setuid(65534)
        try:
            text = look()
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as answer:
        text = answer.read()
    if text.startswith("BadSpec"):
        raise BadSpec([rota.Problem("cwd", text)])
    return text


@pytest.mark.parametrize("inside", ["", "/deeper"])
def test_a_directory_that_the_scheduler_cannot_read(tmp_path, inside):
    """Refused, in words: the directory itself is shut, or one above it."""
    shut = tmp_path / "shut"
    (shut / "deeper").mkdir(parents=True)
    shut.chmod(0)
    try:
        with pytest.raises(BadSpec, match=r"cwd: the scheduler, as user .* cannot enter it .Permission denied.: submit from another"):
            as_a_user(lambda: remark_on_directory(f"{shut}{inside}"))
    finally:
        shut.chmod(0o700)


def test_other_directories(tmp_path):
    """One that is there needs no remark; one that is not, or is a file, may be there later; a name too long for a path never will."""
    (tmp_path / "file").touch()
    assert remark_on_directory(str(tmp_path)) == ""
    for name in ("missing", "file", "file/below"):
        assert remark_on_directory(f"{tmp_path}/{name}") == f"its working directory {tmp_path}/{name} is not there (yet)"
    with pytest.raises(BadSpec, match=r"cwd: .* cannot enter it .File name too long."):
        remark_on_directory("/" + 3000 * "d/")
