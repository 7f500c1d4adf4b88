"""Devices: those that the daemon sees, told to a job by a variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.live.resources.gpus import Gpus
from rota.live.resources.kind import Resource
from rota.model.live import LiveSettings


def gpus(name: str, capacity: float, *demands: float, **machine: object) -> Gpus:
    """The devices of a server."""
    return Gpus(Resource(name, capacity, demands), LiveSettings(), **machine)


def test_devices() -> None:
    """Devices are those that the daemon sees, by number or by name; more than it sees are counted only."""
    devices = gpus("gpus", 2, 1, environment={"CUDA_VISIBLE_DEVICES": "5,3"})
    assert devices.take(1) == [3]
    assert devices.take(1) == [5]
    assert devices.take(0) == []
    assert devices.terms([3, 5], 2, "1.1") == ["3", "5"]
    assert devices.describe().enforced == "CUDA_VISIBLE_DEVICES"
    named = gpus("gpu", 1, environment={"CUDA_VISIBLE_DEVICES": "GPU-a1, GPU-b2"})
    assert named.terms(named.take(1), 1, "1.1") == ["GPU-a1"]
    assert gpus("gpu", 2, environment={}).take(2) == [0, 1]
    few = gpus("gpu", 2, environment={"CUDA_VISIBLE_DEVICES": "0"})
    assert (few.free, few.describe().remarks) == (None, ["gpu: 2 planned, but CUDA_VISIBLE_DEVICES shows 1: counted only"])


@pytest.mark.parametrize(("there", "warns"), [([], True), (["nvidia0"], True), (["nvidia0", "nvidia1", "nvidiactl"], False)])
def test_more_devices_planned_than_there_are(tmp_path: Path, there: list[str], warns: bool) -> None:
    """Two GPUs planned on a machine with none, or one: it is said, as it is of cores. They are handed out all the same."""
    for name in (*there, "null"):
        (tmp_path / name).touch()
    devices = gpus("gpus", 2, 1, environment={}, devices=str(tmp_path))
    count = sum(name[-1].isdecimal() for name in there)
    text = f"gpus: 2 planned, but this machine shows {count} ({tmp_path}/nvidia*): jobs may be given devices that do not exist"
    assert (text in devices.describe().remarks) == warns
    assert devices.take(2) == [0, 1]
