"""The page of a plan: complete, correct, and opened in a real browser without a word on its console."""

import math
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import rota
from rota.report import plan_html
from rota.study.plan_optimum import Optimum
from systems import paper_example
from valid_charts import valid_charts


@pytest.fixture(scope="module")
def plan():
    """A quick plan at a load that not every policy carries."""
    return rota.plan(paper_example(0.9), jobs=50_000, seed=1, tuning_s=0.2, optimum_s=0)


@pytest.fixture(scope="module")
def page(plan):
    """Its page."""
    return plan_html(plan, source="a<b>.toml", command="rota plan 'a<b>.toml'", spec="# <spec> & more")


def visible(page: str) -> str:
    """The page without its scripts and styles."""
    return re.sub(r"<(script|style)>.*?</\1>", "", page, flags=re.DOTALL)


def test_its_charts_are_valid(page):
    """Altair, which does not check charts while it makes a page, finds nothing wrong with them."""
    assert valid_charts(page) == ["policies", "rota", "tails", "loads"]


def test_the_answer_comes_first(plan, page):
    """The heading says what to run, before any table."""
    text = visible(page)
    assert plan.recommended_name in text[: text.index("<table")]
    assert text.index("<h1>Run ") < text.index('id="policies"') < text.index("<table")


def test_every_number_to_check_it(plan, page):
    """All policies, types, resources, loads, the command, the seed, the version and the file are there, escaped."""
    text = visible(page)
    for name in (*plan.results, *plan.system.names, *plan.system.resources):
        assert name in text
    assert "a&lt;b&gt;.toml" in text
    assert "# &lt;spec&gt; &amp; more" in text
    assert f"Rota {rota.__version__}" in text
    assert "keeps growing" in text
    assert not re.search(r"\bnan\b", text, flags=re.IGNORECASE)


def test_the_paper_is_beside_the_rota(plan, page):
    """The page has the mean response times of the rota and of the paper's design."""
    text = visible(page)
    exact = rota.analyze(plan.system, rota.design_policy(plan.system, objective="load")).mean_response_time
    words = (
        f"has a mean response time of {plan.analysis.mean_response_time:.4g}; the paper&#x27;s design, with balanced loads, has {exact:.4g}"
    )
    assert words in text


def test_what_always_runs_is_drawn_once(plan):
    """The page draws the rota that is recommended, its common part apart; of one schedule it says that nothing switches."""
    close = rota.MSR([[1, 1, 1], [1, 2, 0]], [0.5, 0.5], "none", 0.1)
    alone = rota.MSR([[1, 4, 0]], [1.0], "none")
    for policy, label, words in [
        (close, "always: 1 type1, 1 type2", "what they have in common always runs, the rest takes turns"),
        (alone, "always: 1 type1, 4 type2", "One set of jobs, which always runs: nothing ever switches."),
    ]:
        results = [replace(r, policy=policy) if r.name == "nMSR" else r for r in plan.comparison.results]
        shown = plan_html(replace(plan, comparison=replace(plan.comparison, results=results), recommended_name="nMSR"))
        assert label in shown
        assert words in visible(shown)
        assert "The rota to run" in visible(shown)
    other = plan_html(replace(plan, rota=alone, recommended_name="first-fit"))
    assert "always: 1 type1, 4 type2" in other
    assert "It is not recommended at this load" in visible(other)


def test_the_page_draws_what_is_recommended(plan):
    """Of an improved rota it draws the base and says how it goes on; for another kind of policy the title says that the rota is not it."""
    base = plan.results["improved nMSR+backfill"].policy.base
    improved = plan_html(replace(plan, recommended_name="improved nMSR+backfill"))
    drawn = rota.report.packing.schedule_table(base, plan.system, common=True)["schedule"].unique().to_list()
    assert all(label in improved for label in drawn)
    assert "What runs together under the base of the improved rota" in improved
    assert "The improved rota to run, and its base" in visible(improved)
    assert "looks at the queues" in visible(improved)
    other = plan_html(replace(plan, recommended_name="first-fit"))
    assert "The best rota, which is not the policy recommended" in visible(other)
    assert "What the best rota would run together; recommended is First-Fit" in other
    assert "looks at the queues" not in visible(other)


def test_the_page_draws_the_goals_of_a_queue_driven_rota(plan):
    """Its sets of jobs are drawn without parts of the time, and words say who chooses; corners are called by their names."""
    policy = rota.Adaptive(rota.system_load(plan.system).candidates, names=plan.system.names)
    for setting, words in (
        (policy, "the queues choose which set is served"),
        (policy.replace(free=np.inf), "MaxWeight without preemption"),
    ):
        results = tuple(replace(result, policy=setting) if result.name == "adaptive" else result for result in plan.comparison.results)
        page = plan_html(replace(plan, recommended_name="adaptive", comparison=replace(plan.comparison, results=results)))
        assert "The queue-driven rota to run" in page
        assert words in page
        assert "if the queues choose it: 2 " in page


def test_objective_limits_and_optimum_are_on_the_page(plan):
    """What was asked for stands at the top, its numbers in the table; where no policy keeps the limits, the heading says that."""
    best = Optimum(lower_bound=4.0, mean=4.5)
    asked = replace(plan, objective="worst-type", type_limits={"type1": 2.0}, keeps_limits=False, optimum=best)
    text = visible(plan_html(asked))
    assert "by the largest mean response time of a type by its mean size · on average type1 at most 2" in text
    assert "<h1>No policy is sure to keep the limits; nearest is" in text
    assert "worst type</th>" in text
    assert "above optimum</th>" in text
    assert "how much longer the mean is than 4.5, that of the best policy possible" in text
    bound = visible(plan_html(replace(plan, optimum=Optimum(lower_bound=4.0))))
    assert "above bound</th>" in bound
    assert "which no policy can be below (proved)" in bound
    remark = visible(plan_html(replace(plan, optimum=Optimum(remark="Not known: too large."))))
    assert "Not known: too large." in remark
    assert "above" not in remark[remark.index("All policies on the same jobs") : remark.index("Not known: too large.")]


def test_the_page_loads_nothing(page):
    """No address, no source, no style sheet: what the page needs stands in it, and its policy forbids the rest."""
    markup = visible(page)
    assert "default-src 'none'" in markup
    assert "http" not in markup.replace("http-equiv", "")
    assert not re.search(r"<(img|iframe|object|embed)|<script[^>]+src", markup)


def opened(path, log):
    """What Chromium draws and says, and the addresses that the page asked for, by the browser's own log.

    The browser has errands of its own (its clock, a dictionary), in the log as "not an origin"; a page has an origin.
    """
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no Chromium on this machine to open the page in")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=5000", f"--log-net-log={log}"]
    command += [f"--user-data-dir={path.parent / 'profile'}", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    asked = []
    for line in log.read_text(encoding="utf-8").splitlines():
        who, what = re.search(r'"initiator":"([^"]*)"', line), re.search(r'"url":"((?:https?|wss?):[^"]*)"', line)
        if who and what and who[1] != "not an origin":
            asked.append(what[1])
    return done, asked


def test_a_browser_opens_it(page, tmp_path):
    """Chromium draws all four charts, says nothing on its console, and the page asks nothing of the network."""
    path = tmp_path / "plan.html"
    path.write_text(page, encoding="utf-8")
    done, asked = opened(path, tmp_path / "net.json")
    assert "CONSOLE" not in done.stderr
    assert re.sub(r"<script.*?</script>", "", done.stdout, flags=re.DOTALL).count("<svg") == 4
    assert asked == []


def test_a_page_that_asks_is_noticed(tmp_path):
    """The control of the test above: a picture from elsewhere is seen in the log."""
    path = tmp_path / "asks.html"
    path.write_text('<img src="http://elsewhere.invalid/a.png">', encoding="utf-8")
    assert "http://elsewhere.invalid/a.png" in opened(path, tmp_path / "net.json")[1]


def test_a_policy_without_a_mean_is_on_the_page(plan):
    """A policy of which too few jobs of a type were done has its row and its word, in the chart and in the table."""
    first, *others = (result for result in plan.comparison.results if result.stable and result.name != plan.recommended_name)
    nothing = replace(first, mean_response_time=math.nan, interval=math.nan, unknown=(plan.system.names[0],))
    results = tuple(nothing if result is first else result for result in plan.comparison.results)
    text = plan_html(replace(plan, comparison=replace(plan.comparison, results=results)), source="", command="", spec="")
    assert f"too few jobs of {plan.system.names[0]}" in visible(text)
    assert "too few jobs of a type for a mean" in text
    assert others
