"""Charts in files, and a page that needs no network."""

import json
import re
import shutil
import subprocess
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

import rota
from rota.errors import BadSpec
from rota.report import (
    beside,
    capacity_region,
    ccdf_table,
    chart_html,
    gantt,
    library_script,
    process_graph,
    queue_against_setup_rate,
    queue_against_switching_rate,
    queue_length_distribution,
    queue_length_table,
    response_time_ccdf,
    response_times_against_load,
    save_chart,
    schedules,
    setup_rate_table,
    switching_rate_table,
    watch,
)
from rotas import paper_rota
from systems import paper_example

SYSTEM = paper_example(0.8)
ROTA = paper_rota("none", 0.05)


def small_load_table():
    """Two policies, one of which gives up, with everything a table can have."""
    return pl.DataFrame(
        {
            "policy": ["fcfs", "fcfs", "nMSR", "nMSR"],
            "load": [0.5, 0.9, 0.5, 0.9],
            "mean_response_time": [1.4, np.nan, 5.0, 100.0],
            "interval": [0.1, np.nan, 0.5, 10.0],
            "stable": [True, False, True, True],
            "lower": [None, None, 3.0, 90.0],
            "upper": [None, None, 9.0, 130.0],
            "prediction": [None, None, 4.5, 105.0],
        }
    )


@pytest.fixture(scope="module")
def charts():
    """One of each kind."""
    seen = watch(SYSTEM, paper_rota("full"), jobs=20, seed=1)
    result = rota.simulate(SYSTEM, paper_rota("full"), jobs=2000, seed=1, log_jobs=2000)
    load = response_times_against_load(small_load_table())
    found = {
        "load": load,
        "switching": queue_against_switching_rate(switching_rate_table(SYSTEM, ROTA, [0.01, 0.05, 0.1, 0.5]), 0.05),
        "setup": queue_against_setup_rate(setup_rate_table(SYSTEM, paper_rota("setup", 0.5), [1, 10, 100], per_type=True), 10.0),
        "gantt": gantt(seen.log, SYSTEM, seen.modes),
        "slots": gantt(seen.log, SYSTEM, rows="slots"),
        "process": process_graph(rota.build_process(SYSTEM, ROTA)),
        "schedules": schedules(ROTA, SYSTEM),
        "queue": queue_length_distribution(queue_length_table(rota.analyze(SYSTEM, paper_rota("full")), result)),
        "ccdf": response_time_ccdf(ccdf_table([result])),
        "region": capacity_region(SYSTEM, ("type1", "type2")),
    }
    return found | {"two": beside(found["load"], found["region"])}


def test_every_chart_becomes_svg_and_png(charts, tmp_path):
    """Each renders; the SVG is well formed and has text, the PNG is one."""
    for name, chart in charts.items():
        svg = save_chart(chart, tmp_path / "deep" / f"{name}.svg").read_text(encoding="utf-8")
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        assert svg.count("<text") > 5, name
        assert save_chart(chart, tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_pdf_and_json(charts, tmp_path):
    """PDF is one, JSON is the definition itself."""
    assert save_chart(charts["load"], tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    assert json.loads(save_chart(charts["load"], tmp_path / "a.json").read_text(encoding="utf-8")) == charts["load"].to_dict()


def test_html_asks_nothing_of_the_network(charts, tmp_path):
    """The page holds the library, loads nothing, and forbids the browser to load anything."""
    page = save_chart(charts["load"], tmp_path / "a.html", title="a <title>").read_text(encoding="utf-8")
    assert "<title>a &lt;title&gt;</title>" in page
    assert "default-src 'none'" in page
    markup = re.sub(r"<script>.*?</script>", "<script></script>", page, flags=re.DOTALL)
    assert "http" not in re.sub(r"http-equiv", "", markup)
    assert not re.search(r"<script[^>]+src|<(img|iframe|object|embed)", markup)
    assert markup.count("<script>") == 2  # the library, and what draws
    drawing = page[page.rindex("<script>") :]
    assert "http" not in drawing
    assert "vegaEmbed(" in drawing


def test_a_browser_draws_the_page(charts, tmp_path):
    """Chromium draws every chart without a word on its console, within a page that allows no request."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no Chromium on this machine to open the page in")
    page = tmp_path / "charts.html"
    page.write_text(chart_html(list(charts.values()), "charts"), encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=4000"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr
    drawn = re.sub(r"<script.*?</script>", "", done.stdout, flags=re.DOTALL)
    assert drawn.count("<svg") == len(charts)


def test_unknown_ending(charts, tmp_path):
    """A file name says what kind of file it is."""
    with pytest.raises(BadSpec, match=r"\.html, \.svg, \.png, \.pdf, \.json"):
        save_chart(charts["load"], tmp_path / "chart.gif")


def test_the_drawing_library_is_kept_on_disk(tmp_path, monkeypatch):
    """The script of a page is made once and read from then on; where nothing can be kept it is made each time, and is the same."""
    import vl_convert

    made, make = [], vl_convert.javascript_bundle
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda *given: made.append(1) or make(*given))
    scripts = []
    for folder in (tmp_path / "new", tmp_path / "new", None):
        monkeypatch.setattr("rota.kernel_cache.folder_of", lambda function, folder=folder: folder)
        library_script.cache_clear()
        scripts.append(library_script())
    assert len(made) == 2
    assert scripts[0] == scripts[1] == scripts[2]
    assert len(list((tmp_path / "new").iterdir())) == 1
