"""Close rotas: single schedules, distances, all preemption models, and exact values beside simulated ones."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import rota
from rota.analysis import erlang_c
from rota.design import design_policy, explain_design, find_design
from rota.design.close import close_rotas
from rota.design.deadline import Deadline
from rota.design.design import balanced_policy
from systems import EXAMPLES, paper_example

EXAMPLE_NAMES = ["borg", "gpu", "paper", "vm", "web"]


def example(name, load=0.9):
    """An example at a load."""
    return rota.read_system(EXAMPLES / f"{name}.toml").scaled(load=load)


def rotas_of(system, preemption, **fields):
    """The close rotas that a design chooses from."""
    best = rota.system_load(system)
    return list(close_rotas(Deadline.after(None), system, best, balanced_policy(system, best, preemption, **fields)))


def mean_response_time(system, policy):
    """Exactly."""
    return rota.analyze(system, policy, sizes="exponential").mean_response_time


@pytest.mark.parametrize(("preemption", "fields"), [("full", {}), ("none", {}), ("setup", {"setup_rate": 10.0})])
@pytest.mark.parametrize("name", ["gpu", "paper", "vm"])
def test_every_rota_fits_and_serves_the_work(name, preemption, fields):
    """Every rota to choose from has schedules that fit and serves more than the work while it does not switch."""
    system = example(name)
    found = rotas_of(system, preemption, **fields)
    assert len(found) > 5
    for policy in found:
        assert policy.preemption == preemption
        assert rota.fits(system, policy.candidates).all()
        assert (policy.weights @ policy.candidates > system.offered_work).all()


def test_a_switch_changes_few_jobs():
    """On the Borg types a switch of the balanced rota drains some hundred jobs; the closest rotas drain two at most."""

    def drained(policy):
        return np.maximum(policy.candidates - np.roll(policy.candidates, -1, axis=0), 0).sum(axis=1).max()

    system = example("borg")
    best = rota.system_load(system)
    assert drained(balanced_policy(system, best, "none")) > 50
    assert min(drained(policy) for policy in rotas_of(system, "none") if len(policy.weights) > 1) <= 2


def test_borg_at_load_08_is_a_single_schedule():
    """Ten M/M/k queues: E[T] is that of Erlang's formula, and the words say that nothing switches."""
    system = example("borg", 0.8)
    found = find_design(system, "none", objective="close", time_limit_s=4)
    (slots,) = found.policy.candidates
    work = system.offered_work
    waiting = [erlang_c(k, a) * a / (k - a) for k, a in zip(slots, work, strict=True)]
    answer = rota.analyze(system, found.policy, sizes="exponential")
    assert answer.mean_response_time == pytest.approx((work + waiting).sum() / system.arrival_rate.sum(), rel=1e-9)
    assert explain_design(found, answer)[0] == "Run these counts always: nothing ever switches."


@pytest.mark.parametrize("name", EXAMPLE_NAMES)
def test_better_than_balanced(name):
    """On every example at load 0.9 the close nMSR has a lower E[T] than the balanced one (for Borg: than its lower bound)."""
    system = example(name)
    close = mean_response_time(system, design_policy(system, "none", objective="close", time_limit_s=3))
    best = rota.system_load(system)
    balanced = rota.analyze(system, design_policy(system, "none", load=best, by="prediction", objective="load"), sizes="exponential")
    assert close < 0.7 * balanced.little(balanced.lower)


@pytest.mark.parametrize(("preemption", "fields"), [("full", {}), ("setup", {"setup_rate": 10.0})])
def test_other_preemption_models(preemption, fields):
    """A close pMSR and a close sMSR of the virtual machines are no worse than the balanced ones."""
    system = example("vm")
    close = design_policy(system, preemption, objective="close", time_limit_s=4, **fields)
    assert close.preemption == preemption
    assert mean_response_time(system, close) <= mean_response_time(system, design_policy(system, preemption, objective="load", **fields))


def test_exact_and_simulated():
    """A close rota with several schedules: the exact E[T] lies in a narrow interval of the simulated one."""
    system = example("vm", 0.8).replace(preemption="none")
    policy = [p for p in rotas_of(system, "none") if len(p.weights) > 2 and p.route == "parallel"][-1]
    policy = rota.choose_switching_rate(system, policy).policy
    exact = rota.analyze(system, policy)
    result = rota.simulate(system, policy, jobs=400_000, seed=3)
    half = result.interval
    assert half < 0.05 * exact.mean_response_time
    assert abs(result.mean_response_time - exact.mean_response_time) < 2 * half


def test_in_words():
    """A rota that turns says how much it changes."""
    system = example("vm")
    found = find_design(system, "none", objective="close", time_limit_s=2)
    (sentence, *_) = explain_design(found, rota.analyze(system, found.policy))
    assert "slots in common, which never change" in sentence
    assert "a switch waits for at most" in sentence


def test_the_picture():
    """The picture of the documentation is what its script draws, and shows the rotas of the designs."""
    pictures = Path(__file__).parents[2] / "docs/pictures"
    drawn = runpy.run_path(str(pictures / "close_rota.py"))
    assert drawn["svg"]() == (pictures / "close-rota.svg").read_text(encoding="utf-8")
    system = rota.System([drawn["CORES"]], [[1], [drawn["LARGE"]]], drawn["WORK"], [1, 1])
    assert {tuple(row) for row in rota.system_load(system).candidates.tolist()} == set(drawn["CORNERS"])
    close = design_policy(system, "none", objective="close", time_limit_s=3)
    assert {tuple(row) for row in close.candidates.tolist()} == set(drawn["CLOSE"])


def test_limits_on_response_times():
    """Limits are kept by close rotas too."""
    system = example("vm")
    free = design_policy(system, "none", objective="close", time_limit_s=3)
    times = rota.analyze(system, free).response_time
    i = int(np.argmax(times))
    kept = design_policy(system, "none", objective="close", time_limit_s=6, max_response_time={system.names[i]: 0.9 * times[i]})
    assert rota.analyze(system, kept).response_time[i] <= 0.9 * times[i]


def test_a_large_server():
    """Ten thousand cores and twenty types: a single schedule, with exact values."""
    rng = np.random.default_rng(1)
    cores = rng.integers(1, 65, 20).astype(float)
    system = rota.System([1e4], cores[:, None], rng.uniform(0.1, 1, 20) / cores, np.ones(20)).scaled(load=0.8)
    policy = design_policy(system, "none", objective="close", time_limit_s=5)
    assert rota.analyze(system, policy).has_exact
    assert mean_response_time(system, policy) < 2


def test_a_given_switching_rate_is_kept():
    """Every rota that is compared has it, and so has the answer."""
    for preemption in ("none", "full"):
        assert design_policy(paper_example(0.9), preemption, objective="close", switching_rate=0.1).switching_rate == 0.1


def test_only_routes_that_need_no_candidates_go_with_close_rotas():
    """Draining orders belong to moves between known candidates."""
    with pytest.raises(rota.BadSpec, match="route"):
        design_policy(paper_example(0.9), "none", objective="close", route="random")


def test_a_rota_for_another_load_is_a_start():
    """The rota that was designed for load 0.9 takes part in the design for 0.85: the result is no worse than it, in a short time too."""
    system = paper_example(0.9)
    near = design_policy(system, "none", time_limit_s=2.0)
    other = paper_example(0.85)
    found = design_policy(other, "none", near=[near], time_limit_s=0.5)
    assert mean_response_time(other, found) <= mean_response_time(other, near) * (1 + 1e-9)
