"""Compiling ahead: every simulator is a part, what a plan needs is among them, and parts that are on disk start no process."""

import importlib
import os
import subprocess
import sys

import pytest

import rota
from fleets import two_kinds
from rota.decide import built_in, rule_of
from rota.policy import Policy, policy_name
from rota.study import fleet_options
from rota.study.plan_policies import compiled_parts
from rota.study.warm_up import FLEETS, _samples, compiling_ahead, parts, use

MODULE = importlib.import_module("rota.study.warm_up")


def test_every_simulator_is_compiled_ahead():
    """Every decision function of a policy has a part; but for that of tables, which `rota optimal` makes."""
    missing = built_in() - {rule_of(policy).decide for policy in _samples().values()}
    assert {function.__name__ for function in missing} <= {"from_table"}


@pytest.mark.parametrize("model", ["none", "full", "setup"])
def test_what_a_plan_simulates_is_a_part(model):
    """The policies of a plan have parts of their names, whatever the server can do with running jobs."""
    system = rota.System([4], [[1], [2], [4]], [0.6, 0.2, 0.1], [1.0, 1.0, 1.0]).with_preemption(model, 0.1 if model == "setup" else None)
    named = compiled_parts(system)
    assert set(named) <= set(parts())
    results = rota.plan(system, jobs=5000, tuning_s=0.2, optimum_s=0).results
    assert set(results) <= set(named)


def test_what_the_plan_of_a_fleet_simulates_is_a_part():
    """The simulator of fleets and every policy that the plan of a fleet gives to servers are parts of their names."""
    fleet = two_kinds().scaled(load=0.5)
    named = fleet_options.compiled_parts(fleet)
    assert set(named) <= set(parts())
    found = set()
    for option in rota.plan(fleet, jobs=5000, tuning_s=0.2).options.values():
        by_kind = option.policy.values() if isinstance(option.policy, dict) else getattr(option.policy, "policies", [option.policy])
        found |= {policy_name(policy) for policy in by_kind if isinstance(policy, Policy)}
    assert len(found) >= 3
    assert found <= set(named)


@pytest.mark.parametrize("part", ["fcfs", FLEETS])
def test_what_is_ready_starts_no_process(monkeypatch, part):
    """Once a simulator is compiled, nothing is compiled ahead for it."""
    use(part)
    monkeypatch.setattr(MODULE.subprocess, "Popen", lambda *words, **more: pytest.fail("a process was started"))
    with compiling_ahead([part]):
        pass


PROGRAM = """
from rota.decide import rule_of
from rota.simulation.compiled import runner_of, will_compile
from rota.study.warm_up import _samples, compiling_ahead, use
import time

before = will_compile(runner_of(rule_of(_samples()["fcfs"]).decide))
with compiling_ahead(["fcfs"]):
    while will_compile(runner_of(rule_of(_samples()["fcfs"]).decide)):
        time.sleep(0.1)
print(before)
"""


@pytest.mark.skipif(os.cpu_count() == 1, reason="with one core nothing is compiled in another process")
def test_another_process_compiles(tmp_path):
    """With an empty cache another process compiles a simulator, and this one finds it on disk without having run it."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=600)
    assert done.stdout.split() == ["True"], done.stderr


def test_where_nothing_can_be_kept(monkeypatch):
    """Without a folder for machine code, compiling ahead is refused with what to do."""
    monkeypatch.setattr(MODULE, "folder_of", lambda function: None)
    with pytest.raises(rota.Infeasible, match="NUMBA_CACHE_DIR"):
        rota.warm_up()
