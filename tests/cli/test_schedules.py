"""`rota schedules`."""

import json

import pytest

import rota
from rota.cli import main
from systems import EXAMPLES

PAPER, BORG, FLEET = (str(EXAMPLES / f"{name}.toml") for name in ("paper", "borg", "fleet"))


def test_table(capsys):
    """The table lists every schedule in words with how full each resource is."""
    assert main(["schedules", PAPER]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "20 schedules"
    assert lines[3].split() == ["jobs", "cores", "memory_gb", "network_gbps"]
    assert lines[4].split() == ["nothing", "0%", "0%", "0%"]
    assert len(lines) == 4 + 20
    assert "  1 × type1 + 4 × type2                95%        73%           10%" in lines


def test_maximal(capsys):
    """With --maximal only those to which no job can be added are listed."""
    assert main(["schedules", PAPER, "--maximal", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["maximal"] is True
    assert fields["schedules"] == rota.list_schedules(rota.read_system(PAPER), maximal=True).tolist()


def test_json(capsys):
    """With --json the schedules, their use of each resource and the names come as one object."""
    assert main(["schedules", PAPER, "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert set(fields) == {"maximal", "names", "resources", "schedules", "use"}
    at = fields["schedules"].index([1, 4, 0])
    assert fields["use"][at] == pytest.approx([19 / 20, 11 / 15, 5 / 50], rel=1e-15)


def test_count(capsys):
    """With --count the number is estimated: the words and the JSON agree with Python."""
    estimate = rota.estimate_count(rota.read_system(BORG))
    assert main(["schedules", BORG, "--count", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"maximal": False, **estimate._asdict()}
    assert main(["schedules", BORG, "--count"]) == 0
    assert capsys.readouterr().out.startswith(f"about {estimate.schedules:.4g} schedules (standard error")


def test_a_small_count_is_exact(capsys):
    """Where there are few, --count counts: no standard error, and no "about"."""
    assert main(["schedules", PAPER, "--count"]) == 0
    assert capsys.readouterr().out == "20 schedules\n"
    assert main(["schedules", PAPER, "--count", "--maximal"]) == 0
    assert capsys.readouterr().out == "7 maximal schedules\n"


def test_too_many(capsys):
    """More than the limit end with 1 and the way out, and nothing is listed."""
    assert main(["schedules", PAPER, "--limit", "19"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("rota: there are more than 19 schedules (about 20): raise the limit")
    assert main(["schedules", PAPER, "--limit", "20"]) == 0


def test_limit_must_be_positive(capsys):
    """A limit below 1 is wrong use."""
    assert main(["schedules", PAPER, "--limit", "0"]) == 2
    assert "limit: must be at least 1 (got 0)" in capsys.readouterr().err


def test_a_fleet(capsys):
    """Of a fleet the schedules of each kind are listed, or those of one kind."""
    fleet = rota.read_system(FLEET)
    assert main(["schedules", FLEET, "--maximal", "--json"]) == 0
    kinds = json.loads(capsys.readouterr().out)["kinds"]
    assert tuple(kinds) == fleet.kinds
    for kind, listed in kinds.items():
        assert listed["schedules"] == rota.list_schedules(fleet.server(kind), maximal=True).tolist()
    assert main(["schedules", FLEET, "--count", "--kind", "gpu"]) == 0
    assert capsys.readouterr().out == "gpu: 271 schedules\n"
    assert main(["schedules", FLEET, "--kind", "tpu"]) == 2
    assert "--kind: must be one of small, gpu (got 'tpu')" in capsys.readouterr().err
    assert main(["schedules", PAPER, "--kind", "gpu"]) == 2
    assert "--kind: is for a fleet" in capsys.readouterr().err
