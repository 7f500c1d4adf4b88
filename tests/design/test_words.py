"""What is said of a design."""

import rota
from rota.design import explain_design, find_design
from systems import paper_example


def explained(preemption: str, **options) -> tuple[str, ...]:
    """A design of the paper's example, in words."""
    system = paper_example(0.7)
    found = find_design(system, preemption, **options)
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
    """With setups, the rate at which preempting begins to pay is named."""
    sentences = explained("setup", setup_rate=20.0)
    assert any(sentence.startswith("Preempting ") for sentence in sentences)
