"""The package: light to import, every public name there."""

import ast
import importlib
import importlib.metadata
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest
import yaml

import rota
from stub_scheduler import StubScheduler, served

ROOT = Path(__file__).parents[1]
HEAVY = {"numba", "polars", "altair", "highspy", "scipy", "httpx", "fastapi"}


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


def test_a_simulation_loads_what_it_needs():
    """A system simulated under a named policy loads numba, and no solver, tables, charts or parts of scipy beside those of numba itself.

    Each of these takes 5 to 70 MB.
    """
    program = """
import sys
import rota

system = rota.System([3, 3, 3], [[3, 1, 1], [1, 1, 1], [1, 2, 1]], [0.1, 0.2, 0.2], [1.0, 1.0, 1.0])
assert rota.simulate(system, "first-fit", jobs=20_000).interval > 0
assert rota.compare(system, ["first-fit", "fcfs"], jobs=20_000).best is not None
unwanted = {"altair", "highspy", "pandas", "polars", "pyarrow", "rich", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats"}
print(*sorted(unwanted & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("name", rota.__all__)
def test_every_public_name_resolves(name):
    """Each name of `rota.__all__` is there, under its own name where it has one, and is shown by dir()."""
    value = getattr(rota, name)
    assert getattr(value, "__name__", name) == name
    assert name in dir(rota)


def test_editors_see_the_same_names():
    """The imports for type checkers are those that happen: the same names, from the same packages or from modules in them."""
    source = ast.parse((ROOT / "src" / "rota" / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (part for part in source.body if isinstance(part, ast.If))
    seen = {alias.asname: part.module for part in block.body if isinstance(part, ast.ImportFrom) for alias in part.names}
    assert (
        ["__version__", *sorted(seen)]
        == ["__version__", *sorted(rota._HOME)]
        == sorted(rota.__all__, key=lambda name: (name != "__version__", name))
    )
    assert [name for name, module in seen.items() if not f"{module}.".startswith(f"{rota._HOME[name]}.")] == []


def test_the_reference_lists_the_same_names():
    """The page of the Python names has a table of those of `rota`, each with its package, which the page describes."""
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(rota\.[\w.]+)` \| (.*) \|$", page, re.MULTILINE)
    assert {name: home for home, names in rows for name in re.findall(r"`(\w+)`", names)} == rota._HOME
    described = re.findall(r"auto(?:module|class):: ([\w.]+)", page)
    assert [name for name, home in rota._HOME.items() if not {home, f"{home}.{name}"} & set(described)] == []


def test_every_public_name_is_in_its_package():
    """`__all__` of a package has the names that `rota` takes from it."""
    assert [name for name, home in rota._HOME.items() if name not in importlib.import_module(home).__all__] == []


def test_without_httpx_the_client_says_what_to_install():
    """Everything else is there; `rota.Client` names the extra."""
    program = "import sys; sys.modules['httpx'] = None; import rota; rota.System; print('here'); rota.Client"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "here\n"
    assert "RotaError: the client of the scheduler needs httpx, which is not installed: pip install 'rota[live]'" in done.stderr


def test_the_example_of_the_client_runs(monkeypatch, capsys):
    """The program that the reference shows, against a scheduler of fixed answers."""
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(# train_all\.py\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    with tempfile.TemporaryDirectory(prefix="rota") as directory, served(StubScheduler(), Path(directory)):
        monkeypatch.setenv("ROTA_DIR", directory)
        exec(compile(program, "train_all.py", "exec"), {})
    assert capsys.readouterr().out.splitlines() == ["It waits for 3 cores.", "job 8: done", "job 9: done", "job 10: done"]


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
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cited["cff-version"] == "1.2.0"
    assert (cited["version"], cited["license"]) == (rota.__version__, project["license"])
    assert [author["name"] for author in cited["authors"]] == [author["name"] for author in project["authors"]]
    (paper,) = cited["references"]
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert paper["doi"] in readme
    assert paper["title"] in readme
    assert paper["journal"] in readme
