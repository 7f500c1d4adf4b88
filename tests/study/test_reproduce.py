"""The figures of the paper, computed: what each table holds and what the findings say."""

import math
import os
import time
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import rota
from rota.study.reproduce import EFFORTS, FIGURES, Settings, figures_named
from rota.study.reproduce.borg import OWN, PAPER, model_system, paper_table
from rota.study.reproduce.borg_findings import borg_findings
from rota.study.reproduce.example import example_system, weighted
from rota.study.reproduce.figure import n, percent
from rota.study.reproduce.spread import spread
from rota.study.reproduce.vm import best_plan, printed_policy, vm_system
from rota.traces import save_trace
from rota.traces.borg import borg_month
from rotas import paper_case
from systems import EXAMPLES

SMOKE = Settings(EFFORTS["smoke"], workers=0)


def made(name, **changes):
    """A figure at the smallest effort."""
    return FIGURES[name].compute(replace(SMOKE, **changes))


def agreed(redrawn):
    """For each finding, the beginning of what the paper says, and whether we agree."""
    return {finding.says[:40]: finding.agrees for finding in redrawn.findings}


# ------------------------------------------------------------------------------------------------------------ which figures


def test_figures_by_name():
    """Figures come in the order of the paper; no name and "all" mean all of them; a wrong name tells the right ones."""
    everything = list(FIGURES)
    assert [figure.name for figure in figures_named([])] == [figure.name for figure in figures_named(["vm", "all"])] == everything
    assert [figure.name for figure in figures_named(["vm", "load"])] == ["load", "vm"]
    with pytest.raises(rota.BadSpec, match="must be one of comparison, queues, switching-rate"):
        figures_named(["lod"])


def test_systems_are_those_of_the_examples():
    """The example and the virtual machines are those of examples/: same demands, rates and loads."""
    for system, name in ((example_system(), "paper"), (vm_system(), "vm")):
        bundled = rota.read_system(EXAMPLES / f"{name}.toml")
        assert system.names == bundled.names
        assert system.resources == bundled.resources
        for field in ("capacity", "demand", "arrival_rate", "service_rate"):
            assert getattr(system, field) == pytest.approx(getattr(bundled, field), rel=1e-12)


# ------------------------------------------------------------------------------------------------------------ exact figures


def test_switching_rate():
    """Exact values do not depend on the effort: α* = 0.0595, 16.3 %, and the two claims that do not hold."""
    redrawn = made("switching-rate")
    verdicts = agreed(redrawn)
    assert [says for says, agrees in verdicts.items() if not agrees] == [
        "The bounds hold for every MSR policy.",
        "The choice of switching routes had a min",
    ]
    rates = {row["yardstick"]: row for row in redrawn.tables["rates"].to_dicts()}
    assert rates["exact"]["switching_rate"] == pytest.approx(0.05951, abs=1e-5)
    assert rates["upper bound, as printed"]["value"] / rates["lower bound, as printed"]["value"] == pytest.approx(1.163, abs=5e-4)
    curve = redrawn.tables["nmsr"]
    assert curve["stable"].to_list() == [True] * (len(curve) - 2) + [False] * 2
    best = rates["exact"]["switching_rate"]
    points = EFFORTS["smoke"].points  # on either side of α*, which both sides have
    assert (curve.filter("stable")["switching_rate"] > best * (1 + 1e-9)).sum() == points - 1
    assert len(curve) == 2 * points + 1
    stable = curve.filter("stable")
    assert (stable["lower"] <= stable["mean_queue_length"]).all()
    assert (stable["mean_queue_length"] <= stable["upper"]).all()
    assert stable["mean_queue_length"].min() >= rates["exact"]["mean_queue_length"] * (1 - 1e-9)


def test_the_mean_queue_length_is_the_paper_s():
    """The column is Σ (λ_i/Λ) E[Q_i], and E[T] beside it is Little's."""
    row = made("switching-rate").tables["pmsr"].row(3, named=True)
    system, policy = paper_case(0.9, "full", row["switching_rate"])
    answer = rota.analyze(system, policy)
    assert row["mean_queue_length"] == pytest.approx(weighted(system, answer.exact), rel=1e-9)
    assert row["mean_response_time"] == pytest.approx(answer.exact.sum() / system.arrival_rate.sum(), rel=1e-9)


def test_setup_rate():
    """The sMSR falls with γ and crosses the nMSR at 2.858 (mean queue length) and 2.307 (E[T])."""
    redrawn = made("setup-rate")
    assert all(agreed(redrawn).values())
    assert redrawn.tables["break_even"]["break_even"].to_list() == pytest.approx([2.858, 2.307], abs=1e-3)
    curve = redrawn.tables["setup"].filter(pl.col("policy") == "sMSR")["mean_queue_length"]
    assert (curve.diff().drop_nulls() < 0).all()


def test_processes():
    """The three processes are the paper's, rate by rate; the part of the time in their states adds up to 1."""
    redrawn = made("processes")
    assert all(agreed(redrawn).values())
    totals = redrawn.tables["states"].group_by("policy").agg(pl.len(), pl.col("part_of_time").sum())
    assert dict(totals.select("policy", "len").iter_rows()) == {"pMSR": 2, "nMSR": 9, "sMSR": 9}
    assert totals["part_of_time"].to_list() == pytest.approx([1.0] * 3)


def test_vm():
    """The paper's plan and Rota's carry the same load, 0.655, and what they print fits the server."""
    redrawn = made("vm")
    assert redrawn.findings[0].agrees
    assert best_plan().load == pytest.approx(0.655, rel=1e-9)
    assert (printed_policy().candidates @ vm_system().demand <= vm_system().capacity).all()
    assert redrawn.tables["paper"]["weight"].sum() == pytest.approx(1.0, abs=1e-6)


# ------------------------------------------------------------------------------------------------------------ simulated figures


def test_queues():
    """The exact law is a law; the simulated means are near the exact ones, even of a short run."""
    redrawn = made("queues", effort=replace(EFFORTS["smoke"], jobs=200_000))
    assert all(agreed(redrawn).values())
    exact = redrawn.tables["laws"].filter((pl.col("source") == "exact") & (pl.col("type") == "type1"))
    assert 0.9 < exact["probability"].sum() < 1
    assert redrawn.tables["means"]["decoupled"].to_list() == pytest.approx([10.125, 15.0038, 11.68193], rel=1e-5)


def test_comparison():
    """FCFS and First-Fit are unstable at 0.95, MaxWeight and all MSR policies are not; who never preempts never did."""
    table = made("comparison", effort=replace(EFFORTS["smoke"], jobs=1_000_000)).tables["comparison"]
    rows = {row["policy"]: row for row in table.to_dicts()}
    assert [name for name, row in rows.items() if row["stable"] and row["runs_on_example"]] == ["max-weight", "pMSR", "nMSR", "sMSR"]
    assert not rows["server-filling"]["runs_on_example"]
    assert rows["server-filling"]["stable"]
    quiet = [name for name, row in rows.items() if row["preemptions_per_job"] == 0]
    assert quiet == ["fcfs", "first-fit", "randomized-timers", "nMSR"]
    assert rows["nMSR"]["exact"] == pytest.approx(718.9086, rel=1e-6)


def test_load():
    """A row per policy and load; MSR values are exact, others have an interval; the check holds both for MSR."""
    redrawn = made("load")
    table, check = redrawn.tables["load"], redrawn.tables["check"]
    loads = EFFORTS["smoke"].loads
    assert table.group_by("policy").len()["len"].to_list() == [len(loads)] * 6
    row = table.filter((pl.col("policy") == "pMSR") & (pl.col("load") == 0.9)).row(0, named=True)
    assert row["mean_response_time"] == pytest.approx(rota.analyze(*paper_case(0.9, "full", 2.0)).mean_response_time, rel=1e-9)
    assert check["within_bounds"].all()
    simulated = table.filter(pl.col("policy") == "max-weight")
    assert (simulated["interval"] > 0).all()


# ------------------------------------------------------------------------------------------------------------ Borg


def test_borg_beside_the_paper():
    """Every policy at every load of the effort, the paper's number beside it; MaxWeight is left out and the text says so."""
    redrawn = made("borg")
    table = redrawn.tables["borg"]
    assert set(table["policy"]) == {*PAPER, "nMSR", *OWN} - {"max-weight"}
    assert table.filter(pl.col("policy").is_in(OWN))["paper"].is_null().all()
    assert any("The close nMSR is not in the paper" in remark for remark in redrawn.remarks)
    assert "tuned on 1,000 jobs of the made month of seed 5, at load 0.9" in redrawn.remarks[-1]
    row = table.filter((pl.col("policy") == "pMSR") & (pl.col("load") == 0.8)).row(0, named=True)
    assert row["paper"] == 47940.4
    assert row["ratio"] == pytest.approx(row["mean_response_time"] / 47940.4)
    assert any("MaxWeight was left out at load 0.1, 0.8" in remark for remark in redrawn.remarks)
    assert len(paper_table()) == 54


def test_borg_on_a_trace(tmp_path):
    """On a trace the nominal load is that of its own jobs; one that cannot have it says so."""
    save_trace(borg_month(share=0.03, days=1, seed=1), tmp_path / "day.parquet")
    effort = replace(EFFORTS["smoke"], borg_loads=(0.3, 0.8))
    redrawn = made("borg", trace=tmp_path / "day.parquet", effort=effort)
    assert "The trace day.parquet" in redrawn.remarks[0]
    assert "of another sample of the trace (seed " in redrawn.remarks[-1]
    jobs = redrawn.tables["runs"].filter(pl.col("policy") == "first-fit").sort("load")["jobs"]
    assert jobs[1] / jobs[0] == pytest.approx(0.8 / 0.3, rel=0.1)
    save_trace(borg_month(share=0.001, days=1, seed=1), tmp_path / "thin.parquet")
    with pytest.raises(rota.Infeasible, match=r"make a load of .* only, less than 0\.9"):
        made("borg", trace=tmp_path / "thin.parquet", effort=effort)


MONTHS = {  # First-Fit, pMSR at load 0.8
    4: (100.0, 90.0),
    0: (100.0, 120.0),
    1: (100.0, 95.0),
    2: (100.0, np.nan),
}


def test_borg_findings_count_the_months():
    """The verdict is that of the month drawn; the finding says in how many months its rule holds, if there are several. A run without a
    number bears nothing out.
    """
    rows = [
        (name, 0.8, month, value) for month, values in MONTHS.items() for name, value in zip(("first-fit", "pMSR"), values, strict=True)
    ]
    runs = pl.DataFrame(rows, schema=["policy", "load", "month", "mean_response_time"], orient="row")

    def pmsr_ahead(runs, month):
        found = borg_findings(runs, month, paper_table(), best_plan(), 1.0)
        return next(finding for finding in found if finding.says.startswith("The pMSR outperforms First-Fit"))

    assert pmsr_ahead(runs, 4).agrees
    assert not pmsr_ahead(runs, 0).agrees
    assert not pmsr_ahead(runs, 2).agrees
    for month in (4, 0):
        assert pmsr_ahead(runs, month).got.endswith("By the same rule it holds in 2 of 4 months.")
    assert "months" not in pmsr_ahead(runs.filter(pl.col("month") == 4), 4).got
    assert borg_findings(runs, 9, paper_table(), best_plan(), 1.0) == ()


def test_the_remark_on_max_weight_is_of_one_load():
    """Seconds, events and decisions without proof are those of the load that it names."""
    effort = replace(EFFORTS["smoke"], max_weight_loads=(0.1, 0.8))
    redrawn = made("borg", effort=effort)
    (remark,) = (text for text in redrawn.remarks if text.startswith("MaxWeight is played once"))
    row = redrawn.tables["runs"].filter(pl.col("policy") == "max-weight").sort("time_s").row(-1, named=True)
    assert f"At load {row['load']:g} that took" in remark
    assert f"{row['unproved_decisions']:,} of its {row['events']:,} events" in remark


def test_a_slow_run_is_given_up():
    """A run that takes longer than the patience has no number, and the text says so."""
    redrawn = made("borg", effort=replace(EFFORTS["smoke"], borg_loads=(0.1, 0.8), max_weight_loads=(0.8,), patience_s=0.0))
    assert set(redrawn.tables["runs"]["outcome"]) == {"given up after 0 s"}
    assert any("was given up after 0 s" in remark for remark in redrawn.remarks)


def test_nominal_load():
    """At nominal load 0.9 the ten types fill 0.9 of the server with their long jobs, and 13.6 % less without."""
    load = rota.system_load(model_system(0.9)).load
    assert 0.75 < load < 0.9


# ------------------------------------------------------------------------------------------------------------ many processes


@pytest.mark.parametrize("workers", [0, 2])
def test_spread(workers):
    """Results come in the order of their tasks, however many processes there are; each is told."""
    told = []
    assert spread(math.factorial, list(range(7)), workers, told.append) == [1, 1, 2, 6, 24, 120, 720]
    assert told[-1] == "7 of 7 runs"


def test_a_worker_that_dies_is_noticed():
    """It is an error, not a wait without end."""
    began = time.perf_counter()
    with pytest.raises(rota.RotaError, match="a worker process died"):
        spread(os._exit, [1, 2], 2, print)
    assert time.perf_counter() - began < 30


# ------------------------------------------------------------------------------------------------------------ words


def test_numbers_in_words():
    """Numbers have the digits that matter, and what is none is a dash."""
    assert [n(x) for x in (0.05951, 2302.4, 1234567.0, np.nan)] == ["0.05951", "2,302", "1,234,567", "–"]
    assert [percent(x) for x in (0.163, 0.0011)] == ["16.3 %", "0.11 %"]
