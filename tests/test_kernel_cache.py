"""Machine code on disk: fresh after any change of what went into it, kept after any other, and not needed."""

import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest

import rota
from rota.kernel import compiled, kernel
from rota.kernel_cache import digest_of

SOURCE = Path(rota.__file__).parent

OUTER = """
from rota.kernel import compiled
from inner import FACTOR, Pair, step

@compiled
def run(pair, x):
    total = 0.0
    for _ in range(3):
        total += FACTOR * step(x) + pair.first
    return total

print(run(Pair(1.0, 100.0), 1.0), sum(run.stats.cache_hits.values()))
"""
INNER = """
from typing import NamedTuple
from rota.kernel import kernel

FACTOR = 2.0

class Pair(NamedTuple):
    first: float
    second: float

@kernel
def step(x):
    return x + 1.0
"""


def run_python(where, *arguments, **environment):
    """What a Python process in a directory prints; `where` is where modules are looked for first."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=where,
        env={**os.environ, "PYTHONPATH": str(where), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def program(tmp_path):
    """A program of two files, `outer` calls what `inner` has; the function returns (its answer, whether it was found on disk)."""
    (tmp_path / "outer.py").write_text(OUTER, encoding="utf-8")
    (tmp_path / "inner.py").write_text(INNER, encoding="utf-8")

    def run(change="", to="", **environment):
        inner = tmp_path / "inner.py"
        text = inner.read_text(encoding="utf-8")
        assert change in text
        inner.write_text(text.replace(change, to) if change else text, encoding="utf-8")
        answer, hits = run_python(tmp_path, "outer.py", **environment).split()
        return float(answer), hits == "1"

    return run


def test_a_change_of_what_is_called_is_in_force(program):
    """After an edit in another file (a function, a constant, the order of fields) the new rule holds; a comment compiles nothing anew."""
    assert program() == (15.0, False)
    assert program() == (15.0, True)
    assert program("return x + 1.0", "return x + 2.0") == (21.0, False)
    assert program("FACTOR = 2.0", "FACTOR = 3.0") == (30.0, False)
    assert program("first: float\n    second: float", "second: float\n    first: float") == (327.0, False)
    assert program("@kernel", "# a step\n\n@kernel") == (327.0, True)


def test_only_the_newest_version_stays_on_disk(program, tmp_path):
    """Machine code of earlier versions of a function is removed when a new one is kept."""
    program()
    before = {file.name for file in tmp_path.rglob("*.nbc")}
    program("return x + 1.0", "return x + 2.0")
    after = {file.name for file in tmp_path.rglob("*.nbc")}
    assert len(before) == len(after) == 2
    assert not before & after


def test_where_the_source_cannot_be_written(program, tmp_path):
    """A read-only installation keeps machine code in the user's cache, with the same rule."""
    (tmp_path / "__pycache__").write_text("in the way of the directory", encoding="utf-8")
    home = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path / "cache")}
    assert program(**home) == (15.0, False)
    assert program(**home) == (15.0, True)
    assert program("return x + 1.0", "return x + 2.0", **home) == (21.0, False)


def test_what_is_kept_beside_the_source_serves_all_users(program, tmp_path):
    """Machine code that one compiled beside the source is found by a user who keeps his own elsewhere, and cannot write there."""
    assert program() == (15.0, False)
    home = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path / "cache")}
    elsewhere = "import numba.core.caching as c; c.CacheImpl._locator_classes = [c.UserWideCacheLocator]"
    (tmp_path / "outer.py").write_text(f"{elsewhere}\n{OUTER}", encoding="utf-8")
    assert program(**home) == (15.0, True)
    assert program("return x + 1.0", "return x + 2.0", **home) == (21.0, False)
    assert program(**home) == (21.0, True)


def test_one_of_several_processes_compiles(program, tmp_path):
    """Of processes that need the same machine code at the same time one compiles it; the others wait, and find it on disk."""
    processes = [subprocess.Popen([sys.executable, "outer.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = [process.communicate()[0].split() for process in processes]
    assert [answer for answer, _ in said] == ["15.0"] * 4
    assert sorted(hits for _, hits in said) == ["0", "1", "1", "1"]
    assert not list(tmp_path.rglob("*.lock"))


def test_where_nothing_can_be_written(monkeypatch):
    """Without any place for machine code a function is compiled all the same, in every process."""
    monkeypatch.setattr(numba.core.caching.CacheImpl, "_locator_classes", [])
    double = compiled(lambda x: 2 * x)
    assert double(21) == 42
    assert double.stats.cache_path is None


def test_processes_that_compile_at_the_same_time(program, tmp_path):
    """Processes of two versions that compile and keep side by side: each runs its own, then and later."""
    inner = tmp_path / "inner.py"
    inner.write_text(INNER.replace("FACTOR = 2.0", 'import os; FACTOR = float(os.environ["FACTOR"])'), encoding="utf-8")
    factors = ["2", "7"] * 2
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "outer.py"], cwd=tmp_path, env={**environment, "FACTOR": factor}, stdout=subprocess.PIPE, text=True
        )
        for factor in factors
    ]
    answers = [float(process.communicate()[0].split()[0]) for process in processes]
    assert answers == [15.0, 45.0] * 2
    assert [program(FACTOR=factor)[0] for factor in factors] == [15.0, 45.0] * 2


def test_digest_of_a_kernel():
    """The digest sees constants, options, arrays, defaults and functions at any depth, and loops of functions that call each other."""
    table = np.array([1.0, 2.0])

    def source(body, **names):
        space = {**names}
        exec(f"def f(x, y=1):\n    {body}", space)
        return space["f"]

    ways = [
        source("return x"),
        source("return x + 1"),
        source("return x + c", c=1),
        source("return x + c", c=2),
        source("return x + t[0]", t=table),
        source("return x + t[0]", t=table + 1),
        source("return g(x)", g=source("return x")),
        source("return g(x)", g=source("return x + 1")),
        source("return g(x)", g=kernel(source("return x"))),
        source("return g(x)", g=compiled(source("return x"))),
        source("return x in {'a', 'b'}"),
    ]
    digests = [digest_of(way) for way in ways]
    assert len(set(digests)) == len(digests)
    assert digest_of(source("return x + c", c=2)) == digests[3]
    space = {}
    exec("def f(x):\n    return g(x)\n\ndef g(x):\n    return f(x)", space)
    assert digest_of(space["f"]) != digest_of(space["g"])


def test_the_rest_of_rota_may_leave_it_to_numba():
    """A function that is cached by numba alone calls nothing that stands in another file."""
    checked = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules = [
            importlib.import_module(info.name)
            for info in pkgutil.walk_packages([str(SOURCE)], "rota.")
            if not info.name.endswith("__main__")
        ]
    for module in modules:
        for function in vars(module).values():
            if isinstance(function, numba.core.dispatcher.Dispatcher) and type(function._cache) is numba.core.caching.FunctionCache:
                checked += 1
                for name in function.py_func.__code__.co_names:
                    called = function.py_func.__globals__.get(name)
                    called = getattr(called, "py_func", called)
                    if hasattr(called, "__code__"):
                        assert called.__code__.co_filename == function.py_func.__code__.co_filename, (
                            f"{function} calls {called}: use rota.kernel.compiled"
                        )
    assert checked > 3


SIMULATE = """
import rota
log = rota.simulate(rota.System([2], [[1]], [1.0], [1.0]), "fcfs", jobs=200, log_jobs=200).log
steps = {"arrive": 0, "start": 1, "finish": -1}
running = most = 0
for event in log["event"]:
    running += steps[event]
    most = max(most, running)
print(most)
"""


def test_an_edited_decision_is_simulated(tmp_path):
    """In a copy of the package: after an edit of a function that decisions call, `simulate` in a new process follows the new rule."""
    shutil.copytree(SOURCE, tmp_path / "rota")  # with what is compiled already, which is as good in the copy
    assert run_python(tmp_path, "-c", SIMULATE) == "2"
    state = tmp_path / "rota" / "decide" / "state.py"
    rule = "if demand[i, r] > free[r]:"
    text = state.read_text(encoding="utf-8")
    assert len(re.findall(re.escape(rule), text)) == 1
    state.write_text(text.replace(rule, "if demand[i, r] >= free[r]:"), encoding="utf-8")  # something must stay free
    assert run_python(tmp_path, "-c", SIMULATE) == "1"
