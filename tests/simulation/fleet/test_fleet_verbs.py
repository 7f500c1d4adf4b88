"""Verbs that take one server take a fleet too: independent runs, the best of several, results as files."""

import numpy as np
import pytest

import rota
from fleets import two_kinds

FLEET = two_kinds()


def least_busy(fleet):
    """A dispatch rule of one's own: the server with the fewest jobs on which the type can run."""
    i, best, least = fleet.asked[0], -1, 1e18
    for m in range(fleet.kind.shape[0]):
        if fleet.local[fleet.kind[m], i] >= 0 and fleet.total[m] < least:
            best, least = m, fleet.total[m]
    return best


@pytest.mark.parametrize("dispatch", ["jsq", rota.CustomDispatch(least_busy)], ids=["jsq", "own"])
def test_independent_runs(dispatch):
    """Runs with seeds of their own, the same in this process and in two others; each is what simulate says for its seed."""
    rule = "jsq" if dispatch == "jsq" else "least_busy"
    options = {"dispatch": dispatch, "replications": 3, "jobs": 3000, "seed": 4}
    here = rota.replicate(FLEET, "first-fit", **options)
    there = rota.replicate(FLEET, "first-fit", **options, workers=2)
    assert [one.mean_response_time for one in here.results] == [one.mean_response_time for one in there.results]
    for one in (*here.results, *there.results):
        assert isinstance(one, rota.FleetResult)
        assert (one.name, one.dispatch.rule) == (f"first-fit, {rule}", rule)
        again = rota.simulate(FLEET, "first-fit", dispatch=dispatch, jobs=3000, seed=one.seed)
        assert again.response_time.tolist() == one.response_time.tolist()


def test_runs_of_pinned_servers_are_exact():
    """The interval from the spread between ten runs of pinned servers, one per cent of the mean, has the exact mean in it."""
    pinned = rota.design_pinned(FLEET)
    exact = rota.analyze(FLEET, pinned)
    found = rota.replicate(FLEET, pinned, jobs=50_000, seed=1)
    assert found.interval < 0.01 * exact.mean_response_time
    assert abs(found.mean_response_time - exact.mean_response_time) < 1.5 * found.interval
    assert (np.abs(found.response_time - exact.response_time) < 2 * found.response_time_interval).all()


def test_the_best_of_policies_and_rules():
    """Of two policies with three rules, random sending is proved worse; the others see the same jobs, and workers change nothing."""
    fleet = rota.Fleet.equal(rota.System([2], [[1]], [1.0], [1.0]), 8).scaled(load=0.9)
    options = {"dispatch": ["random", "jsq", "pull"], "until": 0.02, "jobs": 200_000, "seed": 2}
    best = rota.find_best(fleet, ["first-fit", "pinned"], **options)
    verdicts = {one.label: one.verdict for one in best.contenders}
    assert verdicts["first-fit, random"] in ("worse", "growing")
    assert {name for name, verdict in verdicts.items() if verdict in ("best", "level")} == {"first-fit, pull", "pinned"}
    assert all(isinstance(one.result, rota.FleetResult) for one in best.contenders)
    again = rota.find_best(fleet, ["first-fit", "pinned"], **options, workers=1)
    means = [[(one.label, one.result.mean_response_time) for one in found.contenders] for found in (best, again)]
    assert means[0] == means[1]


@pytest.mark.parametrize("policy", ["first-fit", "pinned", "partly-pinned", "split", {"plain": "adaptive", "large": "first-fit"}], ids=str)
def test_results_as_files(policy, tmp_path):
    """A result of a fleet, and independent runs, come back from their files, bit for bit, and so does what the fleet does."""
    result = rota.simulate(FLEET, policy, jobs=2000, failures=(100.0, 1.0))
    rota.save_result(result, tmp_path / "one.json")
    back = rota.read_result(tmp_path / "one.json")
    assert isinstance(back, rota.FleetResult)
    assert back.fleet == FLEET
    assert back.kind_response_time.tobytes() == result.kind_response_time.tobytes()
    again = rota.simulate(back.system, back.policy, jobs=2000)
    assert again.response_time.tolist() == result.response_time.tolist()
    runs = rota.replicate(FLEET, policy, replications=2, jobs=2000)
    rota.save_result(runs, tmp_path / "runs.json")
    assert rota.read_result(tmp_path / "runs.json").mean_response_time == runs.mean_response_time


def test_refused():
    """What is for a fleet alone is refused for one server, and a state to begin in for a fleet."""
    server = rota.System([1], [[1]], [0.5], [1.0])
    for verb in (lambda **more: rota.replicate(server, "fcfs", **more), lambda **more: rota.find_best(server, ["fcfs"], **more)):
        with pytest.raises(rota.BadSpec, match=r"dispatch: goes with a rota\.Fleet"):
            verb(dispatch="jsq")
    with pytest.raises(rota.BadSpec, match="start: is for one server"):
        rota.replicate(FLEET, "first-fit", start=[1, 1])
    with pytest.raises(rota.BadSpec, match="policies: must not be empty"):
        rota.find_best(FLEET, [])
