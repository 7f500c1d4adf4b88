"""What a reader is told: exact values with few digits or none at all, and bounds that prove little."""

import numpy as np
import pytest

import rota
from rotas import paper_case


def close_to_the_edge(distance, switching_rate):
    """The example's nMSR at so small a distance from load 1 that digits are lost."""
    system, policy = paper_case(0.5, "none", switching_rate)
    factor = rota.analyze(system, policy).largest_scaling * (1 - distance)
    return rota.analyze(system.scaled(factor=factor), policy)


def test_good_values_need_no_words():
    """An exact value with all its digits comes without a remark."""
    assert rota.analyze(*paper_case(0.9)).remarks() == ()
    assert rota.analyze(*paper_case(0.9)).accurate
    assert rota.analyze(*paper_case(1.2)).remarks() == ()  # unstable: said elsewhere


def test_few_digits_are_told():
    """An estimated error between 10⁻⁶ and 1 % is a remark that names the type and the error."""
    answer = close_to_the_edge(1e-10, 0.06)
    assert 1e-6 < answer.accuracy < 1e-2
    assert answer.accurate
    (remark,) = answer.remarks()
    assert remark.startswith("The exact values have few digits: the estimated relative error of type 'type")
    assert "close to load 1" in remark


def test_what_is_far_off_is_not_called_exact():
    """Above 1 % there is no exact value but an error with the way out; bounds, prediction and the raw law are still there."""
    answer = close_to_the_edge(1e-14, 0.001)
    assert answer.accuracy > 1e-2
    assert not answer.accurate
    for ask in ("exact", "variance", "response_time", "mean_response_time"):
        with pytest.raises(rota.NotConverged, match=r"estimated relative error of .* too much to call it exact.*or simulate"):
            getattr(answer, ask)
    assert "There are no exact values" in answer.remarks()[0]
    assert (answer.lower <= answer.prediction).all()
    assert np.isfinite([answer.queue_length(i).mean for i in range(3)]).all()
    assert "There are no exact values" not in answer._repr_html_()  # it asks for none
    assert "predicted" in answer._repr_html_()


def test_bounds_that_prove_little():
    """Bounds a large factor apart are told where there is nothing better; where there are exact values they do not matter."""
    system = rota.System([64], [[1], [64]], [1.0, 0.001], [1.0, 0.1]).scaled(load=0.1)
    answer = rota.analyze(system, rota.MSR([[64, 0], [0, 1]], [0.5, 0.5], "none", 0.1))
    assert answer.remarks() == ()
    (remark,) = answer.remarks(exact=False)
    assert remark.startswith("The bounds on the mean response time are a factor of ")
    assert "the prediction is not proved to be near the truth: simulate" in remark
