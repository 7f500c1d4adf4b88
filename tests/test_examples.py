"""The bundled examples."""

import pytest

import rota
from systems import EXAMPLES, paper_example, vm_example

FILES = sorted(EXAMPLES.glob("*.toml"))


def test_there_are_examples():
    """The paper's two, the Borg types, and three that a user would recognise, one of them a fleet."""
    assert {path.stem for path in FILES} >= {"paper", "vm", "borg", "gpu", "web", "fleet"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_load_is_proved_and_below_one(path):
    """Every example can be served, and that is proved."""
    best = rota.system_load(rota.read_system(path))
    assert 0.3 < best.load < 1
    assert best.gap <= 1e-7


@pytest.mark.parametrize(("name", "system"), [("paper", paper_example(0.9)), ("vm", vm_example())])
def test_examples_of_the_paper(name, system):
    """The files hold the paper's numbers."""
    read = rota.read_system(EXAMPLES / f"{name}.toml")
    assert read.capacity.tolist() == system.capacity.tolist()
    assert read.demand.tolist() == system.demand.tolist()
    assert read.offered_work == pytest.approx(system.offered_work, rel=1e-15)
