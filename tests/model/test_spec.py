"""The TOML spec: reading, writing, and every problem of a file at once."""

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.model.spec import parse_system
from systems import EXAMPLES, described_systems

SPEC = """\
version = 1
[server]
cores = 8
memory = 16
[preemption]
model = "none"
[jobs.web]
demand = { cores = 1, memory = 2 }
arrival_rate = 1.5
mean_size = 2
"""


def problems_of(text: str) -> tuple[rota.Problem, ...]:
    """What is wrong with a spec."""
    with pytest.raises(rota.BadSpec) as caught:
        parse_system(text, "server.toml")
    return caught.value.problems


def test_a_spec_becomes_a_system():
    """The parts of a file land in the fields of the system."""
    assert parse_system(SPEC) == rota.System(
        [8, 16], [[1, 2]], [1.5], sizes=[rota.Exponential(mean=2.0)], names=["web"], resources=["cores", "memory"]
    )


def test_version_and_preemption_may_be_left_out():
    """A file of only [server] and [jobs] is enough."""
    short = SPEC.replace("version = 1\n", "").replace('[preemption]\nmodel = "none"\n', "")
    assert parse_system(short) == parse_system(SPEC)


def test_demands_are_matched_by_name():
    """The order of the resources in a demand does not matter."""
    assert parse_system(SPEC.replace("cores = 1, memory = 2", "memory = 2, cores = 1")) == parse_system(SPEC)


@pytest.mark.parametrize(
    ("old", "new", "place", "line", "value", "rule"),
    [
        ("version = 1", "version = 2", "version", 1, 2, "reads version 1"),
        ("version = 1", 'version = "1"', "version", 1, "1", "reads version 1"),
        ("version = 1", "colour = 1", "colour", 1, 1, "not a known key"),
        ("cores = 8", "cores = 0", "server.cores", 3, 0, "greater than 0"),
        ("cores = 8", "cores = -8", "server.cores", 3, -8, "greater than 0"),
        ("cores = 8", "cores = nan", "server.cores", 3, math.nan, "finite"),
        ("cores = 8", "cores = inf", "server.cores", 3, math.inf, "finite"),
        ("cores = 8", 'cores = "8"', "server.cores", 3, "8", "must be a number"),
        ("cores = 8", "cores = true", "server.cores", 3, True, "must be a number"),
        ("[server]\ncores = 8\nmemory = 16", "server = 8", "server", 2, 8, "must be a table"),
        ('model = "none"', 'model = "some"', "preemption.model", 6, "some", "'full', 'none' or 'setup'"),
        ('model = "none"', 'model = "setup"', "preemption", 5, None, "setup_time goes with"),
        ('model = "none"', "setup_time = 1", "preemption", 5, None, "only with it"),
        ('model = "none"', 'model = "setup"\nsetup_time = 0', "preemption.setup_time", 7, 0, "greater than 0"),
        ("[jobs.web]", "[jobs.own]", "jobs.own", 7, None, "is what the scheduler calls jobs that no type encloses"),
        ("[jobs.web]", "[jobs.web]\npriority = 1", "jobs.web.priority", 8, 1, "not a known key"),
        ("cores = 1,", "cores = 1, gpus = 1,", "jobs.web.demand.gpus", 8, None, "no such resource (it has: cores, memory)"),
        ("cores = 1,", "", "jobs.web.demand.cores", 8, None, "is missing"),
        ("cores = 1,", "cores = -1,", "jobs.web.demand.cores", 8, -1, "at least 0"),
        ("cores = 1,", "cores = nan,", "jobs.web.demand.cores", 8, math.nan, "finite"),
        ("cores = 1,", "cores = 9,", "jobs.web.demand.cores", 8, 9, "more than the server has (8)"),
        ("cores = 1, memory = 2", "cores = 0, memory = 0", "jobs.web.demand", 8, None, "at least one resource"),
        ("{ cores = 1, memory = 2 }", "3", "jobs.web.demand", 8, 3, "must be a table"),
        ("demand = { cores = 1, memory = 2 }\n", "", "jobs.web.demand", 7, None, "is missing"),
        ("arrival_rate = 1.5", "arrival_rate = -1.5", "jobs.web.arrival_rate", 9, -1.5, "at least 0"),
        ("arrival_rate = 1.5\n", "", "jobs.web.arrival_rate", 7, None, "is missing"),
        ("mean_size = 2", "mean_size = 0", "jobs.web.mean_size", 10, 0, "greater than 0"),
        ("mean_size = 2", "mean_size = 1e-320", "jobs.web.size", 7, None, "positive mean"),
        ("mean_size = 2", "", "jobs.web", 7, None, "either mean_size or size"),
        ("mean_size = 2", 'mean_size = 2\nsize = { distribution = "exponential", mean = 2 }', "jobs.web", 7, None, "only one of them"),
        ("mean_size = 2", 'size = { distribution = "zipf" }', "jobs.web.size", 10, None, "'zipf' is none of 'exponential', 'det"),
        ("mean_size = 2", "size = { mean = 2 }", "jobs.web.size", 10, None, 'needs distribution = "…"'),
        ("mean_size = 2", "size = 2", "jobs.web.size", 10, 2, ""),
        ("mean_size = 2", 'size = { distribution = "lognormal", mean = 2, cv = -1 }', "jobs.web.size.cv", 10, -1, "greater than 0"),
        ("mean_size = 2", 'size = { distribution = "erlang", mean = 2, phases = 2.5 }', "jobs.web.size.phases", 10, 2.5, "whole number"),
        ("mean_size = 2", 'size = { distribution = "erlang", mean = 2, phases = 0 }', "jobs.web.size.phases", 10, 0, "at least 1"),
        ("mean_size = 2", 'size = { distribution = "weibull", mean = 2 }', "jobs.web.size.shape", 10, None, "is missing"),
        ("mean_size = 2", 'size = { distribution = "exponential", mean = 2, cv = 1 }', "jobs.web.size.cv", 10, 1, "not a known key"),
        ("mean_size = 2", 'size = { distribution = "empirical", values = 3 }', "jobs.web.size.values", 10, 3, "must be a list"),
        ("mean_size = 2", 'size = { distribution = "empirical", values = [1, "a"] }', "jobs.web.size.values.1", 10, "a", "a number"),
        (
            "mean_size = 2",
            'size = { distribution = "bounded-pareto", shape = 1, low = 2, high = 1 }',
            "jobs.web.size",
            10,
            None,
            "low must be below high",
        ),
        ("[jobs.web]", "[jobs]\nweb = 1\n[jobs.other]", "jobs.web", 8, 1, "must be a table"),
    ],
)
def test_one_problem(old, new, place, line, value, rule):
    """One change breaks one rule: the one problem reported has the place, the line, the value and the rule."""
    (problem,) = problems_of(SPEC.replace(old, new, 1))
    assert (problem.place, problem.line) == (place, line)
    assert repr(problem.value) == repr(value)
    assert rule in problem.rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "is empty"),
        ("# nothing but a remark\n", "is empty"),
        ("cores: 8\n", "is not TOML"),
        (SPEC + "[jobs.web]\n", r"is not TOML: Cannot declare \('jobs', 'web'\) twice \(at line 11"),
        (SPEC.replace("memory = 16", "cores = 16"), r"is not TOML: Cannot overwrite a value \(at line 4"),
    ],
)
def test_a_text_that_is_no_spec(text, rule):
    """An empty text, another format and a name given twice (which TOML forbids) are problems of the file."""
    with pytest.raises(rota.BadSpec, match=rule) as caught:
        parse_system(text)
    assert [problem.place for problem in caught.value.problems] == ["file"]


def test_missing_tables():
    """A file without server and jobs says that both are missing; empty ones need an entry."""
    assert {(problem.place, problem.rule) for problem in problems_of("version = 1")} == {("server", "is missing"), ("jobs", "is missing")}
    assert {problem.place for problem in problems_of("[server]\n[jobs]\n")} == {"server", "jobs"}


def test_many_problems_at_once():
    """A file with eleven problems of different kinds reports all of them in the order of the file."""
    text = """\
version = 3
colour = "red"
[server]
cores = 8
memory = 0
[preemption]
model = "sometimes"
[jobs.web]
demand = { cores = 9, memory = nan, gpus = 1 }
arrival_rate = -1
[jobs.batch]
demand = { cores = 1 }
arrival_rate = "often"
mean_size = 1
"""
    assert [(problem.line, problem.place) for problem in problems_of(text)] == [
        (1, "version"),
        (2, "colour"),
        (5, "server.memory"),
        (7, "preemption.model"),
        (8, "jobs.web"),
        (9, "jobs.web.demand.memory"),
        (9, "jobs.web.demand.cores"),
        (9, "jobs.web.demand.gpus"),
        (10, "jobs.web.arrival_rate"),
        (12, "jobs.batch.demand.memory"),
        (13, "jobs.batch.arrival_rate"),
    ]


def test_message_of_a_problem():
    """The error names the file, counts the problems and shows each with line, place, rule and value."""
    with pytest.raises(rota.BadSpec) as caught:
        parse_system(SPEC.replace("cores = 8", "cores = -8"), "server.toml")
    assert str(caught.value) == "server.toml: 1 problem\n  line 3: server.cores: must be greater than 0 (got -8)"


def test_lines_of_dotted_and_quoted_keys():
    """Lines are found for dotted keys, quoted names, CRLF line ends, and behind a matrix that spans lines."""
    text = """\
server.cores = 8
[jobs."my job"]
demand.cores = 9
size.distribution = "phase-type"
size.initial = [1, 0]
size.generator = [
  [-1, 1],
  [0, -1]
]
arrival_rate = -1
"""
    for end in ("\n", "\r\n"):
        found = problems_of(text.replace("\n", end))
        assert [(problem.line, problem.place) for problem in found] == [(3, "jobs.my job.demand.cores"), (10, "jobs.my job.arrival_rate")]


def test_a_file_that_cannot_be_read(tmp_path):
    """A missing file, a folder and bytes that are no UTF-8 are reported with the file's name."""
    latin = tmp_path / "latin.toml"
    latin.write_bytes("# café\n".encode("latin-1"))
    for path, rule in [
        (tmp_path / "none.toml", "cannot be read: No such file"),
        (tmp_path, "cannot be read: Is a directory"),
        (latin, "is not UTF-8 text: invalid continuation byte at byte 5"),
    ]:
        with pytest.raises(rota.BadSpec, match=rule) as caught:
            rota.read_system(path)
        assert caught.value.source == str(path)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_examples_survive_the_round_trip(path, tmp_path):
    """Writing a bundled example and reading it again gives the same system."""
    system = rota.read_system(path)
    system.save(tmp_path / "again.toml")
    assert rota.read_system(tmp_path / "again.toml") == system


@given(described_systems())
def test_round_trip(system):
    """read(to_toml(system)) is the system, whatever the names (quotes, dots, line ends), numbers and distributions."""
    assert parse_system(system.to_toml()) == system


@given(st.text(max_size=200))
def test_any_text_is_a_system_or_bad_spec(text):
    """No text raises anything but `BadSpec`."""
    with pytest.raises(rota.BadSpec):
        parse_system(text)


_values = st.recursive(
    st.one_of(st.integers(-2, 12), st.sampled_from(["nan", "inf", "true", '"x"', "0.5", "1979-05-27"])).map(str),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.dictionaries(st.sampled_from(["cores", "memory", "mean", "cv", "distribution"]), inner, max_size=3).map(
            lambda table: "{ " + ", ".join(f"{key} = {value}" for key, value in table.items()) + " }"
        ),
    ),
    max_leaves=4,
)


@given(st.sampled_from([line for line in SPEC.splitlines() if "=" in line]), _values)
def test_any_value_is_read_or_refused(line, value):
    """Whatever stands in the place of a value, the file is read or `BadSpec` is raised, nothing else."""
    key = line.split(" = ")[0]
    with contextlib.suppress(rota.BadSpec):
        parse_system(SPEC.replace(line, f"{key} = {value}"))
