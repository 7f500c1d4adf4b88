"""The files of a plan: what `rota serve` runs, and how they are known again."""

from types import SimpleNamespace

import rota
from rota.model.live import LiveSettings
from rota.policy import plan_file_to_json
from rota.report.page_parts import GENERATOR
from rota.report.plan_files import is_plan, plan_file
from systems import paper_example


def test_what_is_served():
    """The system, its `[live]` table, the policy recommended, and the response times of its simulation."""
    system = paper_example(0.5)
    times = {name: {"mean": 1.0} for name in system.names}
    plan = SimpleNamespace(
        system=system,
        recommended=rota.FCFS(),
        recommended_name="fcfs",
        results={"fcfs": SimpleNamespace(response_times_by_type=times)},
        load=SimpleNamespace(load=0.5),
    )
    made = plan_file(plan, LiveSettings(grace_s=3))
    assert (made.system, made.policy, made.load, made.predicted) == (system, plan.recommended, 0.5, times)
    assert made.live.grace_s == 3


def test_plans_are_known(tmp_path):
    """A plan is told from other files of the same name, whatever they hold."""
    system = paper_example(0.5)
    for name, text, answer in (
        ("a.json", plan_file_to_json(rota.policy.PlanFile(system, rota.FCFS())), True),
        ("b.json", '{"rota_policy": 1, "policy": "fcfs"}', False),
        ("c.json", "7", False),
        ("d.json", "no JSON", False),
        ("e.html", f"<head>{GENERATOR}</head>", True),
        ("f.html", "<p>mine</p>", False),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert is_plan(tmp_path / name) is answer
    assert not is_plan(tmp_path / "none.json")
