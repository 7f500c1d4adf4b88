"""What is said of a design."""

import pytest

import rota
from rota.design import MeanResponse, balanced_beside, design_policy, explain_design, find_design
from systems import EXAMPLES, paper_example


def explained(preemption: str, objective: str = "load", **options) -> tuple[str, ...]:
    """A design of the paper's example, in words."""
    system = paper_example(0.7)
    found = find_design(system, preemption, objective=objective, **options)
    return explain_design(found, rota.analyze(system, found.policy, sizes="exponential"))


def test_how_good_the_rate_is():
    """Without preemption, the rate that was chosen by exact values is compared with that of the prediction."""
    (sentence,) = explained("none")
    assert "The prediction would choose" in sentence


def test_what_was_not_chosen_is_not_explained():
    """A rate that was given, and one of full preemption, have nothing to be said of."""
    assert explained("none", switching_rate=0.1) == ()
    assert explained("full") == ()


def test_whether_to_preempt():
    """With setups, the rate at which preempting begins to pay is named; it is that of balanced loads, so a close rota has none."""
    sentences = explained("setup", setup_rate=20.0)
    assert any(sentence.startswith("Preempting ") for sentence in sentences)
    close = explained("setup", "close", setup_rate=20.0, time_limit_s=1)
    assert not any(sentence.startswith("Preempting ") for sentence in close)


@pytest.mark.parametrize("objective", ["close", "response-time"])
def test_the_paper_beside_it(objective):
    """Other designs than the paper's are compared with it: the mean response time is that of the design with balanced loads."""
    sentences = explained("none", objective, time_limit_s=1)
    system = paper_example(0.7)
    exact = rota.analyze(system, design_policy(system, "none", objective="load")).mean_response_time
    assert f"The paper's design (balanced loads) has a mean response time of {exact:.4g}." in sentences
    found = balanced_beside(system, design_policy(system, "none", objective="load"))
    assert found == MeanResponse(pytest.approx(exact), True)


def test_the_setups_of_the_paper_beside_it():
    """It has the preemption model and the setup rate of the policy that it stands beside."""
    system = paper_example(0.7)
    policy = design_policy(system, "setup", setup_rate=20.0, objective="load")
    exact = rota.analyze(system, policy).mean_response_time
    assert balanced_beside(system, policy) == MeanResponse(pytest.approx(exact), True)


def test_a_bound_where_exact_values_take_long():
    """The balanced rota of the Borg types has no exact value in a moment: it is called a bound, and is one."""
    system = rota.read_system(EXAMPLES / "borg.toml")
    found = balanced_beside(system, design_policy(system, "none", objective="load", time_limit_s=1))
    assert not found.exact
    assert found.words().startswith("at least ")
    assert found.mean_response_time >= system.offered_work.sum() / system.arrival_rate.sum()


def test_the_bound_is_below_the_exact_value(monkeypatch):
    """Where both are known, and for one schedule alone, whose bound is the work: E[Q_i] ≥ λ_i/μ_i."""
    system = paper_example(0.7)
    alone = rota.System([64], [[1]], [40.0], [1.0]), rota.MSR([[64]], [1.0], "none")
    for at, policy in ((system, design_policy(system, "none", objective="load")), alone):
        answer = rota.analyze(at, policy)
        exact = MeanResponse.of(answer)
        monkeypatch.setattr("rota.design.balanced._QUICK_S", -1.0)
        bound = MeanResponse.of(answer)
        monkeypatch.undo()
        assert (exact.exact, bound.exact) == (True, False)
        assert at.offered_work.sum() / at.arrival_rate.sum() <= bound.mean_response_time <= exact.mean_response_time


def test_a_single_schedule():
    """Nothing switches, and no rate is explained."""
    system = rota.System([1024], [[1], [8]], [384, 57.6], [1, 1], preemption="none")
    found = find_design(system)
    sentences = explain_design(found, rota.analyze(system, found.policy))
    assert sentences[0] == "Run these counts always: nothing ever switches."
    assert len(sentences) == 2
