"""Tables for other programs."""

import json
import sys

import numpy as np
import polars as pl
import pytest

import rota
from rota.cli import main
from rota.report import flat_table, latex_table, pandas_table, save_table
from systems import EXAMPLES, paper_example

PAPER = str(EXAMPLES / "paper.toml")


@pytest.fixture(scope="module")
def table():
    """A sweep with two policies, one of which cannot run."""
    return rota.sweep(paper_example(0.5), ["first-fit", "server-filling"], jobs=2000, workers=0)


def test_lists_become_columns(table):
    """A column per type and per resource, by their names; null where a row has none; the other columns as they were."""
    flat = flat_table(table)
    assert not any(isinstance(kind, pl.List) for kind in flat.dtypes)
    types, resources = table["names"][0].to_list(), table["resources"][0].to_list()
    assert flat.select(f"response_time.{name}" for name in types).row(0) == tuple(table["response_time"][0])
    assert flat.select(f"utilization.{name}" for name in resources).row(0) == tuple(table["utilization"][0])
    assert flat[f"response_time.{types[0]}"].to_list()[1] is None
    assert flat["mean_response_time"].equals(table["mean_response_time"])
    plain = table.select("policy", "load")
    assert flat_table(plain) is plain


def test_csv_parquet_and_json(table, tmp_path):
    """Each kind of file is read back as it was; what the file is, its name says."""
    assert pl.read_csv(save_table(table, tmp_path / "t.csv"))["mean_response_time"][0] == table["mean_response_time"][0]
    assert pl.read_parquet(save_table(table, tmp_path / "t.parquet")).equals(table)
    assert json.loads(save_table(table, tmp_path / "t.json").read_text(encoding="utf-8"))[0]["policy"] == "first-fit"
    for path, rule in (
        (tmp_path / "t.xls", r"must end in \.csv"),
        (tmp_path / "no" / "t.csv", "cannot be written"),
        (None, "must be the path"),
    ):
        with pytest.raises(rota.BadSpec, match=rule):
            save_table(table, path)
    with pytest.raises(rota.BadSpec, match="must be a table"):
        save_table([1, 2], tmp_path / "t.csv")


def test_latex():
    """Numbers on the right, in so many digits; text escaped; what is undefined a dash; powers of ten as powers."""
    frame = pl.DataFrame(
        {"policy": ["a_b & c", "50%"], "mean": [1.23456, float("nan")], "n": [12345, None], "x": [1e-7, float("-inf")], "ok": [True, False]}
    )
    assert latex_table(frame, digits=3).splitlines() == [
        r"\begin{tabular}{lrrrl}",
        r"\toprule",
        r"policy & mean & n & x & ok \\",
        r"\midrule",
        r"a\_b \& c & $1.23$ & 12\,345 & $1 \cdot 10^{-7}$ & yes \\",
        r"50\% & -- & -- & $-\infty$ & no \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert latex_table(frame, columns=["mean"], caption="A & B").splitlines()[2:4] == [r"\caption{A \& B}", r"\begin{tabular}{r}"]
    with pytest.raises(rota.BadSpec, match="has no such column"):
        latex_table(frame, columns=["median"])


def test_pandas(table, monkeypatch):
    """A pandas frame with the numbers of the table; without pandas, the error says what to install."""
    frame = pandas_table(table)
    np.testing.assert_array_equal(frame["mean_response_time"].to_numpy(), table["mean_response_time"].to_numpy())
    assert list(frame.columns) == flat_table(table).columns
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(rota.RotaError, match=r"pip install 'rota\[pandas\]'"):
        pandas_table(table)


def test_a_comparison_on_the_command_line(tmp_path, capsys):
    """`rota compare -o table.tex` writes the table that it prints; a comparison is a table in Python too."""
    (tmp_path / "new").mkdir()
    assert main(["compare", PAPER, "fcfs", "first-fit", "--jobs", "2000", "-o", str(tmp_path / "new" / "table.tex")]) == 0
    text = (tmp_path / "new" / "table.tex").read_text(encoding="utf-8")
    found = rota.compare(rota.read_system(PAPER), ["fcfs", "first-fit"], jobs=2000)
    assert text.splitlines()[2].startswith(r"policy & stable & mean\_response\_time")
    for line, result in zip(text.splitlines()[4:6], found.results, strict=True):
        assert line.startswith(f"{result.name} & yes & ${result.mean_response_time:.4g}$")
    assert "table written to" in capsys.readouterr().err
    assert main(["compare", PAPER, "fcfs", "-o", str(tmp_path / "table.xls")]) == 2
    assert "--output: must end in .csv, .tex, .parquet or .json" in capsys.readouterr().err
