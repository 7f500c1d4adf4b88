"""From the axes of a grid to its runs."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.model.spec import parse_system
from rota.study import MSR_NAMES, grid, numbers
from rotas import paper_rota
from systems import paper_example

SYSTEM = paper_example(0.9)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.5", [0.5]),
        ("0.5, 0.7", [0.5, 0.7]),
        ("0.1:0.9:0.2", [0.1, 0.3, 0.5, 0.7, 0.9]),
        ("0.1:0.95:0.3", [0.1, 0.4, 0.7]),
        ("0.01:100:x10", [0.01, 0.1, 1, 10, 100]),
        ("1:2:0.5,1e6", [1, 1.5, 2, 1e6]),
        ("3:3:1", [3]),
    ],
)
def test_numbers(text, values):
    """Lists, steps and factors; ranges include their end, and their numbers are those a person would write."""
    assert numbers(text) == values


@given(st.integers(0, 50), st.integers(0, 200), st.integers(1, 20), st.sampled_from([1, 10, 100, 1000]))
def test_steps_are_even(first, steps, step, scale):
    """A range of decimals has every one of its steps, the last one included, without the noise of binary fractions."""
    low, high = first / scale, (first + steps * step) / scale
    assert numbers(f"{low}:{high}:{step / scale}") == [(first + k * step) / scale for k in range(steps + 1)]


@pytest.mark.parametrize("text", ["", "a", "1:2", "2:1:1", "1:2:0", "1:2:-1", "0:1:x2", "1:2:x1", "1:inf:1", "0:1:1e-9", "1:2:3:4"])
def test_what_is_no_number(text):
    """Anything else is refused with the way to write it."""
    with pytest.raises(rota.BadSpec, match=r"--loads: must be numbers .*0.1:0.9:0.1"):
        numbers(text, "--loads")


def test_every_point_once():
    """Policies × loads × seeds; a rate multiplies the runs of policies that have it, and of no others."""
    runs = grid(
        SYSTEM,
        ["fcfs", "nMSR", "sMSR"],
        loads=[0.5, 0.7, 0.5],
        switching_rates=[0.1, 1],
        setup_rates=[5.0, 10],
        jobs=[1000, 2000],
        seeds=3,
    )
    count = {name: sum(run.policy == name for run in runs) for name in ("fcfs", "nMSR", "sMSR")}
    assert count == {"fcfs": 2 * 2 * 3, "nMSR": 2 * 2 * 2 * 3, "sMSR": 2 * 2 * 2 * 2 * 3}
    assert len({run.key for run in runs}) == len(runs)
    assert {(run.switching_rate, run.setup_rate) for run in runs if run.policy == "fcfs"} == {(None, None)}
    assert [run.seed for run in runs[:3]] == [0, 1, 2]
    assert len({run.case for run in runs}) == len(runs) / 3


def test_systems_are_at_their_loads():
    """Each run holds the system at its load; without loads, the system as it is."""
    for run in grid(SYSTEM, ["fcfs"], loads=[0.3, 0.6]):
        assert parse_system(run.system) == SYSTEM.scaled(load=run.load)
    (alone,) = grid(SYSTEM, ["fcfs"])
    assert parse_system(alone.system) == SYSTEM
    assert alone.load == pytest.approx(0.9)


def test_policies_of_every_kind(tmp_path):
    """Names, policies and files: a file with the policy given is the same run under another name."""
    rotating = paper_rota("none", 0.1)
    file = tmp_path / "plan.json"
    rota.save_policy(rotating.replace(names=SYSTEM.names), file)
    named, given, read, timers = grid(SYSTEM, ["easy", rotating, str(file), rota.RandomizedTimers(rate=0.5)])
    assert [run.policy for run in (named, given, read, timers)] == ["easy", "nMSR", str(file), "randomized-timers"]
    assert given.key == read.key != named.key
    assert json.loads(timers.definition)["rate"] == 0.5
    first, second = grid(SYSTEM, [rotating, rotating.replace(backfill=True), "nMSR+backfill"])[1:]
    assert (first.policy, second.policy) == ("nMSR+backfill (1)", "nMSR+backfill (2)")


def test_a_policy_takes_the_rates_of_the_grid(tmp_path):
    """A policy that is given switches at the rates of the grid, if there are any."""
    runs = grid(SYSTEM, [paper_rota("full", 2.0)], switching_rates=[0.5, 4])
    assert [json.loads(run.definition)["switching_rate"] for run in runs] == [0.5, 4]
    (run,) = grid(SYSTEM, [paper_rota("full", 2.0)])
    assert json.loads(run.definition)["switching_rate"] == 2


def test_seeds_by_number_or_by_name():
    """`seeds` is how many, or which."""
    assert [run.seed for run in grid(SYSTEM, ["fcfs"], seeds=2)] == [0, 1]
    assert [run.seed for run in grid(SYSTEM, ["fcfs"], seeds=[7, 5])] == [7, 5]


def _idle() -> rota.System:
    return SYSTEM.replace(arrival_rate=[0, 0, 0])


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"policies": ["best-fit"]}, f"policies: must be one of fcfs, .*{MSR_NAMES[0]}"),
        ({"policies": ["none.json"]}, "cannot be read"),
        ({"policies": []}, "policies: must not be empty"),
        ({"policies": [rota.Custom(lambda _state, _target: 0.0)]}, "function of your own"),
        ({"loads": []}, "loads: must not be empty"),
        ({"loads": [0.0]}, "loads: must be positive"),
        ({"loads": [float("nan")]}, "loads: must be positive"),
        ({"seeds": 0}, "seeds: must not be empty"),
        ({"seeds": [-1]}, "seeds: must be at least 0"),
        ({"jobs": 10}, "jobs: must be at least 100"),
        ({"jobs": 1000.5}, "jobs: must be whole"),
        ({"switching_rates": [1.0]}, "switching_rates: no policy here switches"),
        ({"setup_rates": [1.0]}, "setup_rates: no policy here has setups"),
        ({"system": _idle(), "loads": [0.5]}, "without arrivals"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_no_grid(options, rule):
    """A mistake is told before anything runs."""
    with pytest.raises(rota.BadSpec, match=rule):
        grid(**{"system": SYSTEM, "policies": ["fcfs"], **options})
