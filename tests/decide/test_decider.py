"""From policies to deciders: names, preemption, and what is refused."""

import pytest

import rota
from rota.decide import decider_of
from rota.policy import policy_name, preempts
from rotas import paper_rota
from systems import paper_example


@pytest.mark.parametrize(
    ("policy", "name", "stops_jobs"),
    [
        (rota.FCFS(), "fcfs", False),
        (rota.FirstFit(), "first-fit", False),
        (rota.EASY(), "easy", False),
        (rota.ServerFilling(), "server-filling", True),
        (rota.MostServersFirst(), "most-servers-first", False),
        (rota.CMuM(), "c-mu-m", False),
        (rota.Quickswap(), "quickswap", False),
        (rota.Quickswap(3), "quickswap", False),
        (rota.BalancedSplitting(), "balanced-splitting", False),
        (rota.MaxWeight(), "max-weight", True),
        (rota.MaxWeight("none"), "max-weight-np", False),
        (rota.StallingMaxWeight(), "stalling-max-weight", False),
        (rota.RandomizedTimers(), "randomized-timers", False),
        (paper_rota("full"), "pMSR", True),
        (paper_rota("none"), "nMSR", False),
        (paper_rota("setup"), "sMSR", True),
        (paper_rota("none", backfill=True), "nMSR+backfill", False),
        (rota.Custom(lambda state, target: 1.0, "mine"), "mine", True),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_names_and_preemption(policy, name, stops_jobs):
    """Each policy has a short name and says whether it may stop a job."""
    assert policy_name(policy) == name
    assert preempts(policy) == stops_jobs


def test_custom_policies_bring_their_own():
    """Function, data and memory of a policy of one's own reach the decider as they are."""

    def decide(state, target):
        return 1.0

    decider = decider_of(paper_example(), rota.Custom(decide, "mine", data=(1, 2), memory=3, counters=4))
    assert decider == ("mine", decide, (1, 2), 3, 4)


def test_what_is_no_policy():
    """Anything else is refused as wrong use, with what would be right: it is no problem without an answer."""
    with pytest.raises(rota.BadSpec, match=r"policy: must be a policy: rota.Adaptive, rota.MSR, .*rota.FCFS.* \(got 'nonsense'\)"):
        decider_of(paper_example(), "nonsense")


def test_max_weight_lists_few_schedules_and_searches_among_many():
    """The maximal schedules are listed where they are few; a system with very many has none listed."""
    assert (
        decider_of(paper_example(), rota.MaxWeight()).data.schedules.tolist() == rota.list_schedules(paper_example(), maximal=True).tolist()
    )
    many = rota.System([1000], [[1], [2], [3], [5]], [1] * 4, [1] * 4)
    assert len(decider_of(many, rota.MaxWeight()).data.schedules) == 0
