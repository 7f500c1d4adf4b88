"""Benchmarks are run by hand, so that a renamed function could go unnoticed in them."""

import importlib
import pkgutil

import benchmarks
import pytest

NAMES = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.name.startswith("_"))


@pytest.mark.parametrize("name", NAMES)
def test_can_be_started(name):
    """Every benchmark can be imported without the peers that it compares with, and has what `python -m benchmarks` calls."""
    assert callable(importlib.import_module(f"benchmarks.{name}").run)
