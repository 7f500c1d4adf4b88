"""Up to which load a queue-driven rota is proved to be stable."""

import numpy as np
import pytest

import rota
from rota.tuning import proved_load
from systems import EXAMPLES

PAPER = rota.read_system(EXAMPLES / "paper.toml")


def test_goals_of_the_least_load_carry_all_that_any_policy_can():
    """With the candidates of the least load stability is proved up to load 1, at whatever load it is asked."""
    load = rota.system_load(PAPER)
    assert proved_load(load, rota.Adaptive(load.candidates)) == pytest.approx(1.0)
    assert proved_load(load.scaled(0.5), rota.Adaptive(load.candidates)) == pytest.approx(1.0)


def test_fewer_goals_carry_less():
    """One goal of 2 batch jobs carries no other type; with one job each of all three, the load of the largest type limits it."""
    load = rota.system_load(PAPER)
    assert proved_load(load, rota.Adaptive([[0, 0, 2]])) == 0.0
    assert proved_load(load, rota.Adaptive([[1, 1, 1]])) == pytest.approx(load.load / PAPER.offered_work.max())


def test_nothing_is_proved_without_hold_or_with_unlimited_free_growth():
    """MaxWeight without preemption, and goals that are not held, have no proof."""
    load = rota.system_load(PAPER)
    assert proved_load(load, rota.Adaptive(load.candidates, hold=0.0)) == 0.0
    assert proved_load(load, rota.Adaptive(load.candidates, free=np.inf)) == 0.0
