"""Partly pinned servers, exactly: the parts added up, and what they are at both ends, where all are pinned and where all turn."""

import pytest

import rota

FLEET = rota.Fleet(
    count=[3, 2],
    capacity=[[4], [8]],
    demand=[[1], [2]],
    arrival_rate=[8.0, 3.0],
    service_rate=[1.0, 0.5],
    speed=[[1, 1], [1, 2]],
    preemption="full",
)
PINNED = rota.Pinned([0, 1], [[2, 1], [2, 3]], [3, 1], [[0.5, 0.25], [0.0, 0.25]])
ROTA = rota.MSR([[8, 0], [0, 4]], [0.7, 0.3], preemption="full", switching_rate=1.0)
LIGHT = FLEET.scaled(factor=0.8)
SPLIT = [[0.0, 0.0], [0.4, 0.3]]


def test_the_parts_add_up():
    """M/M/k queues of the pinned slots and one server that turns, each with its part of the arrivals."""
    answer = rota.analyze(FLEET, rota.PartlyPinned(PINNED, [0, 1], [None, ROTA], SPLIT))
    slots = rota.analyze(FLEET.replace(arrival_rate=[8 * 0.6, 3 * 0.7]), PINNED)
    server = rota.analyze(rota.System([8], [[1], [2]], [8 * 0.4, 3 * 0.3], [1.0, 1.0], preemption="full"), ROTA)
    assert answer.exact == pytest.approx(slots.exact + server.exact, rel=1e-9)
    assert answer.stable
    assert answer.load == pytest.approx([max(slots.load[i], server.load[i]) for i in range(2)])
    assert answer.mean_response_time == pytest.approx(answer.exact.sum() / 11)
    assert answer.lower_bound <= answer.mean_response_time
    assert answer.explain().splitlines()[0] == (
        f"With 4 pinned servers and 1 that turn the mean response time is {answer.mean_response_time:.4g}, exactly."
    )
    assert repr(answer).startswith("<PartlyPinnedAnalysis: stable, load 0.")
    assert "Partly pinned servers" in answer._repr_html_()


def test_none_turns():
    """Without servers that turn it is the answer for pinned servers."""
    answer = rota.analyze(LIGHT, rota.PartlyPinned(PINNED, [0, 0], [None, None], [[0, 0], [0, 0]]))
    assert answer.exact == pytest.approx(rota.analyze(LIGHT, PINNED).exact)


def test_all_turn():
    """If all turn it is the answer for random splitting."""
    small = rota.MSR([[4, 0], [0, 2]], [0.5, 0.5], preemption="full", switching_rate=1.0)
    parts = [[0.3, 0.2], [0.7, 0.8]]
    none = rota.Pinned([], PINNED.candidates[:0], [], [[0, 0], [0, 0]])
    answer = rota.analyze(LIGHT, rota.PartlyPinned(none, [3, 2], [small, ROTA], parts))
    assert answer.exact == pytest.approx(rota.analyze(LIGHT, rota.Split([small, ROTA], parts)).exact)


def test_unstable():
    """Too much for the servers that turn is told."""
    answer = rota.analyze(FLEET.scaled(factor=2.5), rota.PartlyPinned(PINNED, [0, 1], [None, ROTA], SPLIT))
    assert not answer.stable
    with pytest.raises(rota.Unstable):
        _ = answer.mean_response_time


def test_simulated():
    """Simulations of the parts alone, the pinned slots of the fleet and the server that turns, agree within their intervals."""
    policy = rota.PartlyPinned(PINNED, [0, 1], [None, ROTA], SPLIT)
    answer = rota.analyze(FLEET, policy)
    slots = rota.simulate(policy.pinned_fleet(FLEET), policy.pinned, jobs=300_000, seed=1)
    assert abs(slots.mean_response_time - answer.slots.mean_response_time) < 2 * slots.interval
    assert slots.interval < 0.05 * slots.mean_response_time
    turning = rota.simulate(policy.server(FLEET, 1), ROTA, jobs=300_000, seed=1)
    assert abs(turning.mean_response_time - answer.servers[1].mean_response_time) < 2 * turning.interval
    assert turning.interval < 0.05 * turning.mean_response_time
