"""`rota capacity`."""

import dataclasses
import json

import pytest

import rota
from rota.cli import main
from systems import EXAMPLES

PAPER, BORG, FLEET = (str(EXAMPLES / f"{name}.toml") for name in ("paper", "borg", "fleet"))


def test_tables(capsys):
    """The tables show the load with its proof, the rota, the resources, the types and the explanation."""
    assert main(["capacity", PAPER]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert lines[0] == "System load 0.900000000 (proved optimal)"
    assert "  50.00%  2 × type3" in lines
    assert "  50.00%  1 × type1 + 4 × type2" in lines
    assert any(line.split() == ["cores", "20", "97.5%", "81%"] for line in lines)
    assert any(line.split() == ["type1", "0.45", "1", "0.9000", "12%"] for line in lines)
    assert lines[-4:] == rota.system_load(rota.read_system(PAPER)).explain().splitlines()


def test_json_has_the_python_names(capsys):
    """With --json one object has every field of `Load` under its name, and the values of Python."""
    assert main(["capacity", PAPER, "--json"]) == 0
    printed = capsys.readouterr()
    fields = json.loads(printed.out)
    best = rota.system_load(rota.read_system(PAPER))
    assert {field.name for field in dataclasses.fields(rota.Load)} - {"system"} <= set(fields)
    assert fields["load"] == best.load
    assert fields["candidates"] == best.candidates.tolist()
    assert fields["weights"] == best.weights.tolist()
    assert fields["bottleneck"] == ["cores", "type3"]
    assert fields["names"] == ["type1", "type2", "type3"]
    assert fields["explanation"] == best.explain()
    assert printed.err == ""


def test_tables_of_a_fleet(capsys):
    """They show what runs where, what one more server of each kind carries, and the explanation."""
    assert main(["capacity", FLEET]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert lines[0] == "Load of the fleet 0.660714286 (proved optimal)"
    assert "  gpu       3.78  4 × train + 2 × render" in lines
    assert any(line.split() == ["gpu", "4", "29%", "7.1", "%", "more"] for line in lines)
    assert any(line.split() == ["render", "12", "3", "0.6607", "32%", "small", "54%,", "gpu", "46%"] for line in lines)
    assert lines[-6:] == rota.system_load(rota.read_system(FLEET)).explain().splitlines()


def test_json_of_a_fleet(capsys):
    """With --json one object has every field of `FleetLoad` under its name."""
    assert main(["capacity", FLEET, "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    best = rota.system_load(rota.read_system(FLEET))
    assert {field.name for field in dataclasses.fields(rota.FleetLoad)} - {"fleet"} <= set(fields)
    assert fields["load"] == best.load
    assert fields["split"] == best.split.tolist()
    assert fields["kinds"] == ["small", "gpu"]
    assert fields["bottleneck"] == ["small", "memory_gb", "query"]
    assert fields["explanation"] == best.explain()


def test_without_arrivals(tmp_path, capsys):
    """A system without arrivals has load 0 in the table and in JSON."""
    file = tmp_path / "idle.toml"
    for example in (PAPER, FLEET):
        rota.read_system(example).scaled(factor=0).save(file)
        assert main(["capacity", str(file)]) == 0
        assert "No jobs arrive" in capsys.readouterr().out
        assert main(["capacity", str(file), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["load"] == 0


def test_time_limit_and_gap_are_handed_on(capsys):
    """Out of time, the tables show the gap that was proved; --gap asks for less."""
    assert main(["capacity", BORG, "--time-limit", "0"]) == 0
    printed = capsys.readouterr().out
    assert "(at least 0.907664912, gap " in printed
    assert "\nThe load is between 0.9077 and " in printed
    assert main(["capacity", BORG, "--gap", "0.02", "--json"]) == 0
    assert 1e-7 < json.loads(capsys.readouterr().out)["gap"] <= 0.02


@pytest.mark.parametrize(
    "arguments",
    [
        ["--gap", "-1"],
        ["--gap", "nan"],
        ["--gap", "small"],
        ["--time-limit"],
        ["--time-limit", "-1"],
        ["--time-limit", "nan"],
        ["--fast"],
        ["second.toml"],
    ],
)
def test_wrong_use(arguments, capsys):
    """Wrong options end with 2, say so on standard error, and print no data."""
    assert main(["capacity", PAPER, *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert arguments[0].lstrip("-").replace("-", "_") in printed.err.replace("-", "_")


BROKEN = """\
[server]
cores = 0
[jobs.web]
demand = { cores = 1, gpus = 1 }
arrival_rate = nan
mean_size = 1
"""


@pytest.mark.parametrize("verb", ["capacity", "schedules"])
@pytest.mark.parametrize(
    ("content", "complaints"),
    [
        (
            BROKEN,
            [
                "3 problems",
                "line 2: server.cores: must be greater than 0 (got 0)",
                "line 4: jobs.web.demand.gpus: the server has no such resource (it has: cores)",
                "line 5: jobs.web.arrival_rate: must be finite (got nan)",
            ],
        ),
        ("", ["file: is empty"]),
        ("hello", ["file: is not TOML"]),
        ("version = 2\n" + BROKEN.replace("0", "8"), ["line 1: version: this release reads version 1", "(got 2)"]),
        (b"\xff", ["file: is not UTF-8 text"]),
        (None, ["file: cannot be read: No such file or directory"]),
    ],
    ids=["broken", "empty", "not TOML", "version", "not UTF-8", "missing"],
)
def test_a_bad_file(verb, content, complaints, tmp_path, capsys):
    """A bad file ends with 2: all its problems on standard error, nothing on standard output, no traceback."""
    file = tmp_path / "bad.toml"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert main([verb, str(file)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"rota: {file}: ")
    assert "Traceback" not in printed.err
    for complaint in complaints:
        assert complaint in printed.err
