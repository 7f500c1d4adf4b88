"""`rota reproduce`."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from rota.cli import main
from rota.study.reproduce import FIGURES

HERE = ["--effort", "smoke", "--workers", "0"]


def test_everything(tmp_path, capsys):
    """All figures are made, with data, pictures and text; the index shows every picture. The smallest effort: this shows that everything
    runs and is written, not what comes out of it."""
    folder = tmp_path / "out"
    assert main(["reproduce", "all", "-o", str(folder), *HERE, "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert [figure["name"] for figure in fields["figures"]] == list(FIGURES)
    page, text = ((folder / name).read_text(encoding="utf-8") for name in ("index.html", "README.md"))
    for name, figure in FIGURES.items():
        known = json.loads((folder / name / "figure.json").read_text(encoding="utf-8"))
        assert known["pictures"]
        assert known["findings"]
        assert figure.title in text
        for picture in known["pictures"]:
            for kind in ("svg", "png", "html"):
                assert (folder / name / f"{picture}.{kind}").stat().st_size > 1000
            assert f'src="{name}/{picture}.svg"' in page
            assert f"({name}/{picture}.svg)" in text
        for table in known["tables"]:
            parquet, csv = pl.read_parquet(folder / name / f"{table}.parquet"), pl.read_csv(folder / name / f"{table}.csv")
            assert parquet.columns == csv.columns
            assert len(parquet) == len(csv) > 0
        readme = (folder / name / "README.md").read_text(encoding="utf-8")
        assert all(finding["says"].replace("|", "\\|") in readme for finding in known["findings"])
    assert not re.search(r'(src|href)="https?:', page)


def test_what_is_there_is_not_made_again(tmp_path, capsys):
    """A second call finds the figure; --force makes it again, and so does another seed; other figures stay in the index."""
    call = ["reproduce", "-o", str(tmp_path), *HERE, "--json"]

    def found(*more):
        assert main([*call, *more]) == 0
        return [figure["found"] for figure in json.loads(capsys.readouterr().out)["figures"]]

    assert found("vm") == [False]
    stamp = (tmp_path / "vm" / "figure.json").stat().st_mtime_ns
    assert found("vm", "processes") == [False, True]
    assert (tmp_path / "vm" / "figure.json").stat().st_mtime_ns == stamp
    assert found("vm", "--force") == [False]
    assert found("vm", "--seed", "1") == [False]
    assert "The modulating processes" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_half_a_figure_is_none(tmp_path, capsys):
    """What an interrupted run left behind is not taken for a figure, and is cleared away."""
    (tmp_path / ".vm.new").mkdir()
    (tmp_path / ".vm.new" / "figure.json").write_text("{}")
    (tmp_path / "vm").mkdir()
    assert main(["reproduce", "vm", "-o", str(tmp_path), *HERE]) == 0
    assert (tmp_path / "vm" / "README.md").exists()
    assert not (tmp_path / ".vm.new").exists()


def test_ctrl_c_loses_the_current_figure_only(tmp_path):
    """Interrupted in the long simulation of a figure, those before it are there and in the index; the exit code is 130."""
    command = [sys.executable, "-m", "rota", "reproduce", "vm", "load", "switching-rate", "-o", str(tmp_path), "--workers", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}) as process:
        limit = time.monotonic() + 60
        while not (tmp_path / "switching-rate" / "figure.json").exists() and time.monotonic() < limit:
            time.sleep(0.1)
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "1 of 3 figures are in" in words
    assert not (tmp_path / "load").exists()
    assert "The effect of the switching rate" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_list(capsys):
    """--list prints the names and makes nothing."""
    assert main(["reproduce", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[3:]] == list(FIGURES)
    assert main(["reproduce", "--list", "--json"]) == 0
    assert [figure["name"] for figure in json.loads(capsys.readouterr().out)["figures"]] == list(FIGURES)
    assert not Path("reproduced").exists()


@pytest.mark.parametrize(("options", "told"), [(["lod"], "must be one of"), (["vm", "--workers", "-1"], "must be at least 1")])
def test_wrong_use(options, told, tmp_path, capsys):
    """A wrong name or number is told, with exit code 2."""
    assert main(["reproduce", *options, "-o", str(tmp_path / "out")]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
