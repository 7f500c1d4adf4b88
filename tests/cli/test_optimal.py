"""`rota optimal`: the table for people, the object for programs, the policy file, and what is refused."""

import json

import pytest

import rota
from rota.cli import main
from systems import EXAMPLES

SYSTEM = """
[server]
cores = 2

[jobs.small]
demand = { cores = 1 }
arrival_rate = 0.6
mean_size = 1

[jobs.big]
demand = { cores = 2 }
arrival_rate = 0.2
mean_size = 1
"""


@pytest.fixture
def file(tmp_path):
    """A small system."""
    path = tmp_path / "server.toml"
    path.write_text(SYSTEM, encoding="utf-8")
    return str(path)


def test_tables_and_policy(file, tmp_path, capsys):
    """It prints both types and what is proved, and writes a policy that other verbs take."""
    output = tmp_path / "best.json"
    assert main(["optimal", file, "--preemption", "none", "-o", str(output)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("Preemption none: mean response time ")
    assert all(word in captured.out for word in ("small", "big", "Proved, but for rounding"))
    assert f"policy written to {output}" in captured.err
    assert main(["simulate", file, str(output), "--jobs", "20000", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stable"]
    assert rota.read_policy(output).preemption == "none"


def test_json_has_the_fields(file, capsys):
    """The numbers are those of Python, at the load that was asked for."""
    assert main(["optimal", file, "--preemption", "full", "--load", "0.6", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    best = rota.optimal_policy(rota.read_system(file).scaled(load=0.6), "full")
    assert fields["mean_response_time"] == pytest.approx(best.mean_response_time)
    assert fields["lower_bound"] == pytest.approx(best.lower_bound)
    assert fields["names"] == ["small", "big"]
    assert fields["settled"] is True
    assert fields["truncation"] == list(best.truncation)


def test_a_truncation_is_one_number_or_one_per_type(file, capsys):
    """One for all types, or one for each."""
    for given, expected in ((["9"], [9, 9]), (["6", "10"], [6, 10])):
        assert main(["optimal", file, "--preemption", "none", "--json", "--truncation", *given]) == 0
        assert json.loads(capsys.readouterr().out)["truncation"] == expected


def test_refusals(capsys):
    """Other sizes need --exponential, and large servers are refused, with 1."""
    assert main(["optimal", str(EXAMPLES / "gpu.toml")]) == 1
    assert "--exponential" in capsys.readouterr().err
    assert main(["optimal", str(EXAMPLES / "vm.toml"), "--exponential"]) == 1
    assert "schedules" in capsys.readouterr().err
