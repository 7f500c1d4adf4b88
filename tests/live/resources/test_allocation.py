"""Which cores and devices a job has, from its start to its end."""

from __future__ import annotations

import pytest

import rota
from rota.live.resources.allocation import Allocation
from rota.model.live import LiveSettings


@pytest.mark.parametrize("name", ["gpus", "GPUs", "gpu"])
def test_devices_cannot_be_released(name: str) -> None:
    """A suspended process keeps its devices, however their resource is written."""
    system = rota.System([1], [[1]], [0.1], [1.0], resources=(name,))
    with pytest.raises(rota.BadSpec, match=f"live.releasable.{name}: a suspended process keeps its devices"):
        Allocation(system, LiveSettings(releasable={name: True}))
