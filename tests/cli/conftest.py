"""Fixtures of the tests of verbs: a scheduler that answers, and a command line to run."""

import tempfile
from pathlib import Path

import pytest

from rota.cli import main
from stub_scheduler import StubScheduler, served


@pytest.fixture
def directory():
    """A state directory with a short path: that of a socket may not be long."""
    with tempfile.TemporaryDirectory(prefix="rota") as path:
        yield Path(path)


@pytest.fixture(scope="session")
def stub_and_directory():
    """A scheduler that is served, and its state directory, for all tests."""
    found = StubScheduler()
    with tempfile.TemporaryDirectory(prefix="rota") as path, served(found, Path(path)):
        yield found, Path(path)


@pytest.fixture
def stub(stub_and_directory, monkeypatch):
    """A scheduler that answers, at $ROTA_ADDRESS; as new for each test."""
    found, path = stub_and_directory
    found.__init__()
    monkeypatch.setenv("ROTA_ADDRESS", str(path))
    monkeypatch.delenv("ROTA_TOKEN", raising=False)
    return found


@pytest.fixture
def run(capfd):
    """Runs a command line and returns its exit code, what it printed, and what it remarked."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        return (code, *capfd.readouterr())

    return call
