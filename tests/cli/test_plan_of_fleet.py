"""`rota plan` of a fleet: its files, what it prints, targets, and what is refused."""

import json

import pytest

import rota
from fleets import two_kinds
from rota.cli import main
from rota.policy import read_fleet_plan_file
from systems import EXAMPLES

FLEET = str(EXAMPLES / "fleet.toml")
QUICK = ["--jobs", "20000", "--tuning", "0.5"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A quick plan with a target: its folder, and a file of the fleet."""
    folder = tmp_path_factory.mktemp("plan")
    two_kinds().save(folder / "fleet.toml")
    assert main(["plan", str(folder / "fleet.toml"), *QUICK, "--target", "type2=72s", "-o", str(folder)]) == 0
    return folder


def test_files(written):
    """The plan, which can be read, and a page."""
    assert sorted(path.name for path in written.iterdir()) == ["fleet.toml", "plan.html", "plan.json"]
    plan = read_fleet_plan_file(written / "plan.json")
    assert plan.fleet == two_kinds()
    assert set(plan.predicted) == set(plan.fleet.names)
    assert "--target=type2=72s" in (written / "plan.html").read_text(encoding="utf-8")


def test_the_plan_can_be_simulated_again(written, capsys):
    """`rota simulate FLEET.toml plan.json` uses its policy and its rule; `rota serve` says that it is one of a fleet."""
    assert main(["simulate", str(written / "fleet.toml"), str(written / "plan.json"), "--jobs", "5000"]) == 0
    plan = read_fleet_plan_file(written / "plan.json")
    assert plan.dispatch.rule in capsys.readouterr().out.splitlines()[0]
    assert main(["serve", str(written / "plan.json")]) == 2
    assert "is the plan of a fleet" in capsys.readouterr().err


def test_what_is_printed(written, capsys):
    """The recommendation first, then what the target needs, tables by type, kind, option, and number of servers; files are renewed."""
    assert main(["plan", str(written / "fleet.toml"), *QUICK, "--no-html", "-o", str(written)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Run ")
    for title in ("Response time by type under", "In use by kind", "One more server", "Other numbers of servers"):
        assert f"\n{title}" in shown
    assert "runs on (mean there)" in shown
    assert "6 *" in shown


def test_json(written, tmp_path, capsys):
    """One object with the fields' Python names, and nothing else on standard output."""
    assert (
        main(["plan", str(written / "fleet.toml"), *QUICK, "--target", "mean=60s", "--json", "--no-html", "-o", str(tmp_path / "mine")])
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"]
    assert found["recommended"] in {row["option"] for row in found["options"]}
    assert found["enough"]["targets"] == {"mean": 1.0}
    assert len(found["enough"]["count"]) == len(found["one_more"]) == 2
    assert {"by_servers", "lower_bound", "load", "kind_utilization", "explanation", "baseline", "left_out", "version"} < set(found)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--target", "sleep=3h"], 2, "--target.sleep: no such type (there are: train, render, query, test, mean)"),
        (["--target", "train"], 2, "--target: must be TYPE=TIME, as render=12h"),
        (["--target", "train=-2h"], 2, "--target.train: must be a duration"),
        (["--target", "train=0h"], 2, "--target.train: must be a positive time"),
        (["--target", "train=fast"], 2, "--target.train: must be a duration"),
        (["--target", "train=5h", "--target", "train=6h"], 2, "--target train: is given twice"),
        (["--limit", "sleep=3h"], 2, "--limit.sleep: no such type (there are: train, render, query, test)"),
        (["--jobs", "10"], 2, "jobs: must be at least 5000"),
        (["--target", "train=2h"], 1, "no number of servers can keep this target: train=2 h: a job of type 'train' runs 4 h on average"),
    ],
)
def test_what_is_refused(options, code, message, tmp_path, capsys):
    """With the place and the rule, before any work; no file is left."""
    assert main(["plan", FLEET, "-o", str(tmp_path), *options]) == code
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_unit_that_the_file_does_not_say(tmp_path, capsys):
    """Only a plain number has a meaning there."""
    rota.read_system(FLEET).replace(time_unit=None).save(tmp_path / "fleet.toml")
    assert main(["plan", str(tmp_path / "fleet.toml"), "--target", "train=5h"]) == 2
    assert "--target.train: has a unit, and the system does not say its own" in capsys.readouterr().err


def test_targets_are_for_fleets(capsys):
    """One server has limits."""
    assert main(["plan", str(EXAMPLES / "paper.toml"), "--target", "type1=3"]) == 2
    assert "--target: is for a fleet" in capsys.readouterr().err


def test_too_much_load(tmp_path, capsys):
    """Exit code 1, with the servers that suffice; no file."""
    rota.read_system(FLEET).scaled(load=1.05).save(tmp_path / "fleet.toml")
    assert main(["plan", str(tmp_path / "fleet.toml"), "-o", str(tmp_path)]) == 1
    assert "or have 6 'gpu' servers in place of 4: that makes the load at most 0.95" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["fleet.toml"]
