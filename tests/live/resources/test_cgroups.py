"""The cgroup of this process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rota.live.resources import cgroups


def test_own_cgroup() -> None:
    """Where the version 2 hierarchy is mounted, the group of this process is a directory that lists it."""
    group = cgroups.own_group()
    if group is None:
        pytest.skip("cgroup v2 is not mounted here")
    assert str(os.getpid()) in Path(group, "cgroup.procs").read_text().split()
