"""`rota compare`."""

import json

import pytest

import rota
from rota.cli import main
from rotas import paper_rota
from systems import EXAMPLES

WEB, PAPER = (str(EXAMPLES / f"{name}.toml") for name in ("web", "paper"))


def test_json_is_the_comparison_of_python(capsys):
    """With --json one object has the rows of the table, and the policies that could not run."""
    names = ["first-fit", "max-weight", "server-filling"]
    assert main(["compare", PAPER, *names, "--jobs", "20000", "--seed", "2", "--json"]) == 0
    printed = capsys.readouterr()
    fields = json.loads(printed.out)
    found = rota.compare(rota.read_system(PAPER), names, jobs=20_000, seed=2)
    assert (fields["jobs"], fields["seed"]) == (20_000, 2)
    assert [row["policy"] for row in fields["policies"]] == ["first-fit", "max-weight"]
    assert set(fields["policies"][0]) == set(found.table().columns)
    assert fields["policies"][1]["mean_response_time"] == found.results[1].mean_response_time
    assert len(fields["errors"]) == 1
    assert "powers of two" in printed.err


def test_table(tmp_path, capsys):
    """The table has a row per policy, with a dash for the best and the word for an unstable one."""
    file = tmp_path / "policy.json"
    rota.save_policy(paper_rota("full", 2.0), file)
    assert main(["compare", PAPER, "max-weight", str(file), "fcfs", "--jobs", "100000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "100,000 jobs each, the same for all, seed 0"
    rows = {line.split()[0]: line.split()[1:] for line in lines[4:]}
    assert list(rows) == ["max-weight", "pMSR", "fcfs"]
    assert rows["max-weight"][2] == "–"
    assert float(rows["pMSR"][2]) > 0
    assert rows["fcfs"][0] == "unstable"


@pytest.mark.parametrize("names", [["best-fit"], ["fcfs", "first-fitt"]], ids=" ".join)
def test_unknown_policy(names, capsys):
    """An unknown name ends with 2 and names the known ones."""
    assert main(["compare", PAPER, *names]) == 2
    assert "must be one of fcfs" in capsys.readouterr().err
