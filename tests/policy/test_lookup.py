"""A policy by its name, its file, or the place of a function."""

from pathlib import Path

import pytest

import rota
from own import own as own
from rota.policy import POLICY_NAMES, as_policies, as_policy, save_policy
from systems import paper_example


def test_names_and_policies():
    """A name stands for its policy, and a policy for itself."""
    assert [as_policy(name) for name in POLICY_NAMES] == list(POLICY_NAMES.values())
    assert as_policy(rota.MaxWeight("none")) == as_policy("max-weight-np")
    assert as_policies(["fcfs", rota.EASY()]) == [rota.FCFS(), rota.EASY()]


@pytest.mark.parametrize("kind", [str, Path])
def test_files(tmp_path, kind):
    """A file is read, by whatever name; one that is missing is named."""
    file = tmp_path / "mine"
    save_policy(rota.RandomizedTimers(rate=0.5), file)
    assert as_policy(kind(file)) == rota.RandomizedTimers(rate=0.5)
    with pytest.raises(rota.BadSpec, match=r"other\.json: 1 problem\n  file: cannot be read"):
        as_policy(kind(tmp_path / "other.json"))


def test_functions_of_ones_own(own):
    """`module:name` is a decision function."""
    name, _ = own
    assert as_policy(f"{name}:small_first").name == "small_first"
    assert as_policy(f"{name}:big_first").name == "big_first"


def test_what_is_none():
    """Anything else is refused with what there is, at the place that the caller names."""
    with pytest.raises(rota.BadSpec, match=r"policies: must be one of fcfs, .*, improved, a policy file, or your own as module:function"):
        as_policy("best-fit", paper_example(), place="policies")
    with pytest.raises(rota.BadSpec, match=r"must be one of fcfs, .*, randomized-timers, a policy file"):
        as_policy("nMSR")  # there is no system to design it for
    with pytest.raises(rota.BadSpec, match=r"must be a policy or its name"):
        as_policy(3)
    with pytest.raises(rota.BadSpec, match="must not be empty"):
        as_policies([])
