"""Improved rotas: the reference event by event, the guarantee, and what they refuse."""

import numpy as np
import pytest
from hypothesis import assume, given, settings

import rota
from reference_simulator import Given, assert_agrees
from rota.analysis import analyze
from rotas import paper_case, paper_example, systems_and_rotas


@settings(deadline=None, max_examples=25)
@given(systems_and_rotas())
def test_as_the_reference(case):
    """On random rotas the compiled function and the definition in plain Python write the same log."""
    system, base = case
    assume(base.preemption != "setup" and analyze(system, base).load.max() < 0.95)
    rng = np.random.default_rng(5)
    served = np.flatnonzero(base.candidates.max(axis=0) > 0)  # others never start
    times, kinds = np.cumsum(rng.exponential(0.3, 40)), rng.choice(served, 40)
    sizes = rng.exponential(1 / system.service_rate[kinds])
    given_jobs = Given(tuple(zip(times.tolist(), kinds.tolist(), sizes.tolist(), sizes.tolist(), strict=True)))
    assert_agrees(system, rota.Improved(base), given_jobs, seed=2)


@pytest.mark.parametrize("preemption", ["full", "none"])
@pytest.mark.parametrize("load", [0.5, 0.8, 0.9])
def test_never_worse_than_its_base(preemption, load):
    """The simulated mean is below the exact mean of the base."""
    system = paper_example(load)
    base = rota.design_policy(system, preemption, objective="load")
    result = rota.simulate(system, rota.Improved(base), jobs=200_000, seed=3)
    assert result.stable
    assert result.mean_response_time - result.interval <= analyze(system, base).mean_response_time


def test_no_jobs_are_forgotten():
    """When arrivals end, all jobs are served, also those that have no slot in the best state."""
    system, base = paper_case(0.8, "none", 0.06)
    result = rota.simulate(system, rota.Improved(base), jobs=500, seed=1, warmup=0)
    assert not np.any(result.unfinished)


def test_refusals():
    """The base is a rota without setups and without backfilling."""
    _, base = paper_case(0.8, "none", 0.06)
    with pytest.raises(rota.BadSpec, match=r"base: must be a rota\.MSR"):
        rota.Improved("first-fit")
    with pytest.raises(rota.BadSpec, match="must not backfill"):
        rota.Improved(base.replace(backfill=True))
    with pytest.raises(rota.BadSpec, match="base: must have preemption"):
        rota.Improved(paper_case(0.8, "setup", 0.5)[1])
    assert rota.Improved(base) == rota.Improved(base)
