"""Systems as tables and values, and files of every version of the spec."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import rota
from rota.model import read_spec, system_from_dict, system_to_dict
from rota.model.live import LiveSettings
from rota.model.spec import parse_spec
from rota.model.tables import SPEC_VERSION
from systems import EXAMPLES, described_systems

STORED = Path(__file__).parent / "stored"


@given(system=described_systems())
def test_there_and_back(system):
    """A system is what its tables say, bit for bit, and JSON can print them as well as TOML."""
    tables = system_to_dict(system)
    assert system_from_dict(tables) == system
    again = system_from_dict(json.loads(json.dumps(tables)))
    assert again == system
    assert np.array_equal(again.service_rate, system.service_rate)


@pytest.mark.parametrize("path", sorted(set(EXAMPLES.glob("*.toml")) - {EXAMPLES / "fleet.toml"}), ids=lambda path: path.stem)
def test_a_file_is_read_once(path, monkeypatch):
    """System, settings and text come from one read."""
    reads = []
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: reads.append(self) or read_bytes(self))
    spec = read_spec(path)
    assert reads == [path]
    assert spec.text == path.read_text(encoding="utf-8")
    assert spec.system == rota.read_system(path)
    assert spec.live == LiveSettings()


def test_there_is_a_file_of_every_version():
    """A new version of the format comes with an example, and the old ones stay."""
    assert {int(path.stem.removeprefix("spec-")) for path in STORED.glob("spec-*.toml")} == set(range(1, SPEC_VERSION + 1))


@pytest.mark.parametrize("path", sorted(STORED.glob("spec-*.toml")), ids=lambda path: path.stem)
def test_a_stored_spec_is_read(path):
    """With its system and its settings."""
    spec = read_spec(path)
    assert spec.system.names == ("train", "query", "copy")
    assert (spec.system.preemption, spec.system.setup_time, spec.system.time_unit) == ("setup", 0.05, "h")
    assert spec.system.sizes[1] == rota.Fitted(mean=0.5, cv=2.0)
    assert spec.system.sizes[2] == rota.Empirical(values=(0.5, 1.0, 4.0), weights=(1.0, 2.0, 1.0))
    assert (spec.live.preemption, spec.live.learn, spec.live.window, spec.live.unit_s) == ("suspend", False, 100.0, 3600.0)
    assert not spec.live.releases("memory_gb")


def test_other_versions_are_refused():
    """With the version that is read, and the way out."""
    text = (STORED / f"spec-{SPEC_VERSION}.toml").read_text(encoding="utf-8")
    newer, older = "a newer one: install a newer Rota (pip install --upgrade rota)", "an older one: write it as `rota schema` says"
    for version, way_out in ((SPEC_VERSION + 1, newer), (0, older)):
        with pytest.raises(rota.BadSpec) as told:
            parse_spec(text.replace(f"version = {SPEC_VERSION}", f"version = {version}"), "server.toml")
        (problem,) = told.value.problems
        assert (problem.place, problem.line, problem.value) == ("version", 2, version)
        assert problem.rule == f"this release reads version {SPEC_VERSION} of the format, and this is {way_out}"


def test_a_setting_for_a_resource_that_is_not_there():
    """It is told when the file is read, with its line, together with the other problems of the file."""
    text = (STORED / f"spec-{SPEC_VERSION}.toml").read_text(encoding="utf-8").replace("memory_gb = false", "gold = true")
    with pytest.raises(rota.BadSpec) as told:
        parse_spec(text, "server.toml")
    (problem,) = told.value.problems
    assert (problem.place, problem.line) == ("live.releasable.gold", len(text.splitlines()))
    assert problem.rule == "the server has no such resource (it has: cores, memory_gb, network_gbps)"
