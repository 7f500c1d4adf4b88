"""`rota design` and `rota analyze` of a fleet."""

import json

import pytest

import rota
from fleets import two_kinds
from rota.cli import main
from systems import EXAMPLES

FLEET, PAPER = (str(EXAMPLES / f"{name}.toml") for name in ("fleet", "paper"))


@pytest.fixture(scope="module")
def designed(tmp_path_factory):
    """A folder with the file of a fleet and of its servers, designed on the command line."""
    folder = tmp_path_factory.mktemp("designed")
    two_kinds().save(folder / "fleet.toml")
    assert main(["design", str(folder / "fleet.toml"), "--time-limit", "6", "-o", str(folder / "policy.json")]) == 0
    return folder


def both(folder):
    """The two files."""
    return str(folder / "fleet.toml"), str(folder / "policy.json")


def test_the_file_is_what_is_analyzed(designed, run):
    """`rota analyze` prints the exact values of the servers that `rota design` wrote."""
    fleet, policy = both(designed)
    code, out, _ = run("analyze", fleet, policy)
    assert code == 0
    answer = rota.analyze(rota.read_system(fleet), rota.read_fleet_policy(policy))
    assert f"Mean response time {answer.mean_response_time:.6g}, exactly." in out
    for name, mean in zip(answer.fleet.names, answer.response_time, strict=True):
        (line,) = [line for line in out.splitlines() if line.split()[:1] == [name]]
        assert f"{mean:.6g}" in line.split()


def test_json(designed, run):
    """--json has the fields under their Python names; the policy is the one of the file."""
    fleet, policy = both(designed)
    code, out, _ = run("analyze", fleet, policy, "--json")
    fields = json.loads(out)
    answer = rota.analyze(rota.read_system(fleet), rota.read_fleet_policy(policy))
    assert code == 0
    assert fields["mean_response_time"] == answer.mean_response_time
    assert fields["lower_bound"] == answer.lower_bound
    assert fields["policy"] == json.loads((designed / "policy.json").read_text())


def test_tables_of_a_design(run):
    """Pinned servers of the bundled fleet: who holds what, and where the jobs go."""
    code, out, _ = run("design", FLEET, "--servers", "pinned")
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "Pinned: 44 servers hold one set of jobs for good"
    assert "  gpu          3  4 × train + 2 × render" in lines
    assert any(line.split()[0:1] == ["train"] and line.endswith("gpu 100.0% (14 slots)") for line in lines)
    assert "No dispatcher and no policy can have less than 0.4195 (proved): this is 8.5% above that." in lines


def test_what_was_compared(tmp_path, run):
    """The best of several is told with the means of the others, and as JSON too."""
    fleet = str(tmp_path / "fleet.toml")
    two_kinds().save(fleet)
    code, out, _ = run("design", fleet, "--time-limit", "4", "--json")
    fields = json.loads(out)
    assert code == 0
    assert fields["mean_response_time"] == min(fields["means"].values())
    code, out, _ = run("design", fleet, "--servers", "split", "--time-limit", "4")
    assert code == 0
    assert "turns: " in out
    assert "Compared" not in out


def test_to_standard_output(run):
    """`-o -` prints the policy alone."""
    code, out, _ = run("design", FLEET, "--servers", "pinned", "-o", "-")
    assert code == 0
    assert json.loads(out)["policy"] == "pinned"


def test_servers_that_are_too_few(tmp_path, run):
    """Servers of a design that do not carry the jobs of a fleet: the loads, exit code 1, and the way out."""
    fleet = rota.read_system(FLEET)
    fleet.scaled(load=0.95).save(tmp_path / "busy.toml")
    rota.save_fleet_policy(rota.design_pinned(fleet), tmp_path / "policy.json")
    code, out, err = run("analyze", str(tmp_path / "busy.toml"), str(tmp_path / "policy.json"))
    assert code == 1
    assert "E[T]" not in out
    assert "is not below 1: scale arrivals by less than" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["design", FLEET, "--route", "parallel"], "--route: is for one server, and this file is of a fleet"),
        (["design", FLEET, "--objective", "load"], "--objective: is for one server"),
        (["design", PAPER, "--servers", "pinned"], "--servers: is for a fleet"),
        (["analyze", FLEET, "policy.json", "--no-exact"], "--no-exact: is for one server"),
        (["analyze", FLEET, "policy.json", "--quantiles", "0.5"], "--quantiles: is for one server"),
        (["analyze", FLEET, "one.json"], "policy: must be one of pinned, split, partly-pinned: a policy of a fleet"),
    ],
)
def test_wrong_use(arguments, message, tmp_path, monkeypatch, run):
    """Options of one server, and policies of one server, do not go with a fleet."""
    monkeypatch.chdir(tmp_path)
    rota.save_policy(rota.FCFS(), "one.json")
    code, _, err = run(*arguments)
    assert code == 2
    assert message in err
