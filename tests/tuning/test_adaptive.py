"""The tuner: reproducible, on other jobs than it is judged on, never far from MaxWeight, and what it says about settings that are equal."""

import numpy as np
import pytest

import rota
from rota.errors import BadSpec, Infeasible, Unstable
from rota.simulation import Jobs
from rota.tuning import first_settings, goal_sets, neighbours, race
from systems import EXAMPLES

EXTREMES = ({"free": np.inf}, {"full": np.inf, "order": "arrival"})  # MaxWeight without preemption, First-Fit
PAPER = rota.read_system(EXAMPLES / "paper.toml")


@pytest.fixture(scope="module")
def tuned():
    """The paper's example at load 0.9, on few jobs."""
    return rota.tune_adaptive(PAPER, jobs=40_000, seed=5)


def test_the_same_seed_gives_the_same_answer(tuned):
    """Winner, its mean and every round are the same to the last bit, in whatever order the threads ran."""
    again = rota.tune_adaptive(PAPER, jobs=40_000, seed=5)
    assert again.policy == tuned.policy
    assert again.result.mean_response_time == tuned.result.mean_response_time
    assert [[entry.mean for entry in one.entries] for one in again.rounds] == [
        [entry.mean for entry in one.entries] for one in tuned.rounds
    ]


def test_it_is_judged_on_jobs_that_it_has_not_seen(tuned):
    """The jobs of the check are none of a round's; what is reported is their mean."""
    seen = {entry.result.fingerprint for one in tuned.rounds for entry in one.entries}
    assert tuned.result.fingerprint not in seen
    assert tuned.result.policy == tuned.policy
    assert tuned.simulated > 40_000 * 5


def test_fewer_settings_on_more_jobs(tuned):
    """Rounds get longer; all of a round see the same jobs; those that went on are the best; MaxWeight and First-Fit come back."""
    assert [one.jobs for one in tuned.rounds] == [1000, 4000, 4000, 16_000, 40_000]
    for one in tuned.rounds:
        assert len({entry.result.fingerprint for entry in one.entries}) == 1
        assert 1 <= one.kept <= len(one.entries)
        assert one.entries[0].mean == min(entry.mean for entry in one.entries if entry.result.stable)
    corners = [(np.isinf(entry.policy.free), np.isinf(entry.policy.full)) for entry in tuned.rounds[-1].entries]
    assert (True, False) in corners
    assert (False, True) in corners


def test_it_beats_max_weight_on_other_jobs(tuned):
    """On jobs of another seed the winner is far ahead of MaxWeight without preemption and First-Fit at this load."""
    found = rota.compare(PAPER, [tuned.policy, "max-weight-np", "first-fit"], jobs=300_000, seed=77)
    means = [result.mean_response_time if result.stable else np.inf for result in found.results]
    assert means[0] < 0.8 * min(means[1:])


def test_progress_tells_the_part_that_is_done():
    """The part grows to 1 and never beyond."""
    heard = []
    rota.tune_adaptive(PAPER.scaled(load=0.5), jobs=20_000, progress=heard.append)
    parts = [at.part for at in heard]
    assert parts == sorted(parts)
    assert 0 < parts[0] < parts[-1] <= 1
    assert heard[0].step.startswith("round 1: ")


def test_goal_sets_carry_the_load():
    """Every set has a mix that serves the arriving work; sets differ."""
    from scipy.optimize import linprog

    load = rota.system_load(PAPER)
    sets = goal_sets(load)
    assert len({goals.tobytes() for goals in sets}) == len(sets) >= 2
    for goals in sets:
        mix = linprog(np.ones(len(goals)), A_ub=-goals.T, b_ub=-PAPER.offered_work)
        assert mix.fun < 1
        assert np.atleast_1d(rota.fits(PAPER, goals)).all()


def test_first_settings_and_their_neighbours():
    """First-Fit and MaxWeight without preemption are among them; neighbours differ from the setting and from each other."""
    settings = first_settings(PAPER, goal_sets(rota.system_load(PAPER)))
    assert np.isinf([settings[0].full, settings[1].free]).all()
    assert len(set(settings)) == len(settings)
    near = neighbours(settings[5])
    assert settings[5] not in near
    assert len(set(near)) == len(near) >= 2 * (1 + len(PAPER.names))


def test_equal_policies_cannot_be_told_apart():
    """A race of the same policy twice keeps both; one that is clearly worse does not go on."""
    good = rota.Adaptive(rota.system_load(PAPER).candidates)
    same = good.replace(importance=[2.0, 2.0, 2.0], hold=8.0)  # scaled weights: the same order of goals, nearly the same thresholds
    found = race(PAPER, [good, same, rota.FCFS()], jobs=50_000, seed=1, most=3)
    assert {entry.policy for entry in found.survivors} == {good, same}


def test_another_judge():
    """By the 95 % quantile the first of each round has the least one; settings of equal value only are called equal."""

    def p95(result):
        return result.response_time_quantiles[0.95]

    found = rota.tune_adaptive(PAPER.scaled(load=0.8), jobs=20_000, judge=p95)
    for one in found.rounds:
        assert one.entries[0].value == min(entry.value for entry in one.entries if entry.result.stable)
        assert one.entries[0].value == p95(one.entries[0].result)
    assert all(policy != found.policy for policy in found.equal)


def test_a_list_of_jobs_is_tuned_on_its_first_half():
    """Race and check use different jobs of a list: its halves."""
    rng = np.random.default_rng(3)
    n = 40_000
    jobs = Jobs(
        np.cumsum(rng.exponential(1 / 3.15, n)), rng.choice(3, n, p=PAPER.arrival_rate / PAPER.arrival_rate.sum()), rng.exponential(1, n)
    )
    found = rota.tune_adaptive(PAPER, jobs=20_000, workload=jobs)
    assert found.result.jobs == 20_000
    assert found.rounds[-1].entries[0].result.fingerprint != found.result.fingerprint


def bursty(n: int, seed: int) -> Jobs:
    """Jobs of the paper's example that come in bursts, each of one type."""
    rng = np.random.default_rng(seed)
    bursts = n // 20
    at = np.repeat(np.cumsum(rng.exponential(20 / 2.5, bursts)), 20) + rng.exponential(0.5, 20 * bursts)
    order = np.argsort(at)
    return Jobs(at[order], np.repeat(rng.integers(3, size=bursts), 20)[order], rng.exponential(1, 20 * bursts))


def test_a_short_list_is_played_at_several_paces():
    """A setting is judged by its worst mean at a pace over that of the better plain policy there; these are in all rounds."""
    jobs = bursty(3000, 1)
    found = rota.tune_adaptive(PAPER, workload=jobs)
    corners = tuple(rota.Adaptive(goal_sets(rota.system_load(PAPER))[0], names=PAPER.names, **extreme) for extreme in EXTREMES)
    half = 1500
    for one in found.rounds:
        assert one.jobs == half
        plain = [entry for entry in one.entries if entry.policy in corners]
        assert len(plain) == 2
        values = [entry.value for entry in one.entries]
        assert values[: one.kept] == sorted(values[: one.kept])
        assert min(values) == values[0] <= min(entry.value for entry in plain)
    last = found.rounds[-1]
    for pace, k in ((1.0, None), (1.15, 0), (1.3, 1)):  # by hand, on the first half at this pace
        alone = Jobs((jobs.times[:half] - jobs.times[0]) / pace, jobs.kinds[:half], jobs.sizes[:half])
        entry = last.entries[0]
        mine = rota.simulate(PAPER, entry.policy, workload=alone)
        seen = entry.result if k is None else entry.faster[k]
        assert seen.mean_response_time == pytest.approx(mine.mean_response_time, rel=1e-9)
        best = min(rota.simulate(PAPER, name, workload=alone).mean_response_time for name in ("first-fit", "max-weight-np"))
        assert entry.plain[0 if k is None else 1 + k] == pytest.approx(best, rel=1e-9)
        assert entry.value >= mine.mean_response_time / best * (1 - 1e-9)
    assert found.result.jobs == half


def test_tuned_on_a_short_list_it_is_not_far_behind_the_plain_policies():
    """On jobs of the same kind that it has not seen, over three lists: never far worse than the better of First-Fit and MaxWeight."""
    ratios = []
    for seed in range(3):
        found = rota.tune_adaptive(PAPER, workload=bursty(4000, seed))
        other = bursty(20_000, 100 + seed)
        means = [rota.simulate(PAPER, policy, workload=other).mean_response_time for policy in (found.policy, "first-fit", "max-weight-np")]
        ratios.append(means[0] / min(means[1:]))
    assert max(ratios) < 1.05
    assert np.exp(np.log(ratios).mean()) < 1


def test_what_is_refused():
    """Too much load, no load, too few jobs, goals of other systems."""
    with pytest.raises(Unstable, match="is not below 1"):
        rota.tune_adaptive(PAPER.scaled(load=1.2))
    with pytest.raises(Infeasible, match="no jobs arrive"):
        rota.tune_adaptive(PAPER.replace(arrival_rate=np.zeros(3)))
    with pytest.raises(BadSpec, match="jobs"):
        rota.tune_adaptive(PAPER, jobs=10)
    with pytest.raises(BadSpec, match="must have 3 columns"):
        rota.tune_adaptive(PAPER, jobs=20_000, goals=[[[1, 1]]])
    short = Jobs([0.0, 1.0], [0, 1], [1.0, 1.0])
    with pytest.raises(BadSpec, match="must have at least 2,000 jobs"):
        rota.tune_adaptive(PAPER, jobs=20_000, workload=short)
