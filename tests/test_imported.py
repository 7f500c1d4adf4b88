"""Objects by the place they are imported from."""

import importlib
import sys

import numpy as np
import pytest

import rota
from rota.imported import import_object, is_place, source_of
from systems import paper_example

SYSTEM = paper_example(0.6)


def test_what_is_a_place():
    """`module:name`, dots in the module allowed; paths, addresses and plain names are none."""
    assert all(map(is_place, ["mine:f", "a.b_c:Policy", "größe:f1"]))
    assert not any(map(is_place, ["first-fit", "mine.py", "a:b:c", ":f", "m:", "tcp://x:1", "C:\\x", "1a:f", None, 3]))


def test_your_own_policy_by_name(own):
    """A decision function, and a `Custom` with its data, by `module:name` wherever a policy has a name."""
    name, _ = own
    by_name = rota.simulate(SYSTEM, f"{name}:small_first", jobs=2000)
    module = sys.modules[name]
    assert by_name.name == "small_first"
    assert by_name.mean_response_time == rota.simulate(SYSTEM, rota.Custom(module.small_first), jobs=2000).mean_response_time
    labels = rota.compare(SYSTEM, ["fcfs", f"{name}:small_first", f"{name}:big_first"], jobs=2000).labels
    assert labels == ("fcfs", "small_first", "big_first")


def test_your_own_arrivals_by_name(own):
    """An arrival process by `module:name`, a class or an object, gives what the object itself gives."""
    name, _ = own
    by_name = rota.simulate(SYSTEM, "first-fit", workload=f"{name}:Pairs", jobs=2000)
    given = rota.simulate(SYSTEM, "first-fit", workload=sys.modules[name].Pairs(), jobs=2000)
    assert by_name.mean_response_time == given.mean_response_time


def test_an_edited_module_is_loaded_again(own, monkeypatch):
    """What the hash says is what runs, also if the file was edited after it was loaded, in the same second and to the same length."""
    name, file = own
    monkeypatch.syspath_prepend(file.parent)
    importlib.import_module(name)
    before = source_of(f"{name}:number", "policy")
    assert import_object(f"{name}:number", "policy") == 3
    for old, new, place, value in [
        ("number = 3", "number = 4", "number", 4),
        ("    return fill(state, target, np", "    return 0 * fill(state, target, np", "small_first", None),
    ]:
        file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        found = import_object(f"{name}:{place}", "policy")
        assert value is None or found == value
        assert source_of(f"{name}:{place}", "policy") != before
    with pytest.raises(rota.RotaError, match="later than now"):
        rota.simulate(SYSTEM, f"{name}:small_first", jobs=2000)


def test_a_module_edited_before_it_was_asked_for(own, monkeypatch):
    """A module that the program imported itself, and that was edited since, is found out by its functions."""
    name, file = own
    monkeypatch.syspath_prepend(file.parent)
    module = importlib.import_module(name)
    old = module.small_first
    file.write_text(file.read_text(encoding="utf-8") + "# a remark\n", encoding="utf-8")
    assert import_object(f"{name}:small_first", "policy") is old  # the same functions
    file.write_text(
        file.read_text(encoding="utf-8").replace("return fill(state, target, np", "return 0 * fill(state, target, np"), encoding="utf-8"
    )
    assert import_object(f"{name}:small_first", "policy") is not old


def test_what_cannot_be_imported(own):
    """Each way in which a name leads nowhere is told."""
    name, file = own
    (file.parent / "broken_module.py").write_text("1 / 0\n", encoding="utf-8")
    for policy, rule in [
        ("nowhere_at_all:f", "there is no module nowhere_at_all: write it as a file nowhere_at_all.py"),
        (f"{name}:missing", "has no 'missing'"),
        (f"{name}:number", "must be a decision function or a rota.Custom, and is a int"),
        (f"{name}:Pairs", "must be a decision function"),
        ("broken_module:f", "ZeroDivisionError"),
        ("math:floor", "must be in a module of Python source"),
    ]:
        with pytest.raises(rota.BadSpec, match=rule):
            rota.simulate(SYSTEM, policy, jobs=2000)
    with pytest.raises(rota.BadSpec, match=r"method chunks\(system, seed\)"):
        rota.simulate(SYSTEM, "fcfs", workload=f"{name}:number", jobs=2000)


def test_the_working_directory_hides_no_module(own):
    """A file in the working directory with the name of an installed module is not the one that is taken."""
    _, file = own
    (file.parent / "tabulate_nothing.py").write_text("x = 1\n", encoding="utf-8")
    (file.parent / "statistics.py").write_text("1 / 0\n", encoding="utf-8")
    assert import_object("statistics:mean", "policy")(np.array([1.0, 3.0])) == 2
    assert import_object("tabulate_nothing:x", "policy") == 1
