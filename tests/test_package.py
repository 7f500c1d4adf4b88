"""The package: light to import, every public name there."""

import importlib.metadata
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import rota

HEAVY = {"numba", "polars", "altair", "highspy", "scipy"}


@pytest.mark.parametrize("module", ["rota", "rota.cli", "rota.model"])
def test_import_is_light(module):
    """Importing the package, the command line or the model loads none of the heavy libraries."""
    program = f"import sys, {module}; print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == ""


def test_the_command_line_starts_with_next_to_nothing():
    """`rota --help` needs neither numpy nor pydantic: verbs import them where they are used."""
    program = "import sys, rota.cli.__main__; print(*sorted({'numpy', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("name", rota.__all__)
def test_every_public_name_resolves(name):
    """Each name of `rota.__all__` is there, under its own name where it has one, and is shown by dir()."""
    value = getattr(rota, name)
    assert getattr(value, "__name__", name) == name
    assert name in dir(rota)


def test_an_unknown_name_is_an_attribute_error():
    """A name that is not there is missing in the usual way."""
    with pytest.raises(AttributeError, match="module 'rota' has no attribute 'nonsense'"):
        _ = rota.nonsense


def test_version():
    """The installed package has the version that the code says."""
    assert importlib.metadata.version("rota") == rota.__version__


def test_errors_are_one_tree():
    """Every error is a `RotaError` with an exit code; a bad description is also a ValueError."""
    for error in (rota.BadSpec, rota.Infeasible, rota.NotConverged, rota.TooManySchedules, rota.Unstable):
        assert issubclass(error, rota.RotaError)
    assert issubclass(rota.BadSpec, ValueError)
    assert (rota.BadSpec.exit_code, rota.Infeasible.exit_code) == (2, 1)


def test_the_citation_is_of_this_version():
    """CITATION.cff names the version, license and authors of the package, and the paper with the DOI that the README gives."""
    root = Path(__file__).parents[1]
    cited = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cited["cff-version"] == "1.2.0"
    assert (cited["version"], cited["license"]) == (rota.__version__, project["license"])
    assert [author["name"] for author in cited["authors"]] == [author["name"] for author in project["authors"]]
    (paper,) = cited["references"]
    readme = " ".join((root / "README.md").read_text(encoding="utf-8").split())
    assert paper["doi"] in readme
    assert paper["title"] in readme
    assert paper["journal"] in readme
