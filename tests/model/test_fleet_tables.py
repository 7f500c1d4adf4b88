"""The file of a fleet: read, written, and every problem of it."""

import json

import pytest
from hypothesis import given

import rota
from fleets import described_fleets
from rota.cli import main
from rota.model import read_server
from rota.model.fleet_tables import fleet_from_dict, fleet_to_dict
from systems import EXAMPLES

SPEC = """
[servers.small]
count = 40
cores = 32
memory = 128

[servers.gpu]
count = 4
cores = 64
memory = 512
gpus = 8

[dispatch]
rule = "jsq"

[jobs.train]
demand = { cores = 8, memory = 64, gpus = 2 }
arrival_rate = 2.5
mean_size = 4

[jobs.render]
demand = { cores = 16, memory = 24, gpus = 0 }
arrival_rate = 12
mean_size = 3
only = ["small", "gpu"]
speed = { gpu = 3 }
"""


def read(text: str, tmp_path) -> rota.Fleet:
    """The fleet of a text, from a file."""
    file = tmp_path / "fleet.toml"
    file.write_text(text, encoding="utf-8")
    return rota.read_system(file)


def problems(text: str, tmp_path) -> list[tuple[str, int | None, str]]:
    """Place, line and rule of every problem."""
    with pytest.raises(rota.BadSpec) as error:
        read(text, tmp_path)
    return [(problem.place, problem.line, problem.rule) for problem in error.value.problems]


def test_read(tmp_path):
    """Kinds, counts, capacities with 0 for what a kind has not, affinities, speeds and the dispatch rule."""
    assert read(SPEC, tmp_path) == rota.Fleet(
        count=[40, 4],
        capacity=[[32, 128, 0], [64, 512, 8]],
        demand=[[8, 64, 2], [16, 24, 0]],
        arrival_rate=[2.5, 12],
        mean_size=[4, 3],
        names=["train", "render"],
        resources=["cores", "memory", "gpus"],
        kinds=["small", "gpu"],
        only=[None, ["small", "gpu"]],
        speed=[[1, 1], [1, 3]],
        dispatch="jsq",
    )


@given(fleet=described_fleets())
def test_there_and_back(fleet):
    """A fleet is what its tables say, bit for bit, and JSON can print them as well as TOML."""
    tables = fleet_to_dict(fleet)
    assert fleet_from_dict(tables) == fleet
    assert fleet_from_dict(json.loads(json.dumps(tables))) == fleet


@given(fleet=described_fleets())
def test_text_there_and_back(fleet, tmp_path_factory):
    """What `save` writes, `read_system` reads."""
    file = tmp_path_factory.mktemp("fleet") / "fleet.toml"
    fleet.save(file)
    assert rota.read_system(file) == fleet


def test_the_order_of_resources_survives(tmp_path):
    """Zeros are written only where the order of resources needs them."""
    text = read(SPEC, tmp_path).to_toml()
    assert "gpus = 0\n" not in text
    fleet = rota.Fleet([1, 1], [[1, 0, 1], [1, 1, 1]], [[1, 0, 0]], [1.0], [1.0], resources=["a", "b", "c"])
    again = read(fleet.to_toml(), tmp_path)
    assert again == fleet
    assert again.resources == ("a", "b", "c")


@pytest.mark.parametrize(
    ("old", "new", "place", "line", "rule"),
    [
        ("count = 4\n", "count = 0\n", "servers.gpu.count", 8, "must be a whole number from 1 to 1,000,000,000"),
        ("count = 4\n", "count = 2000000000\n", "servers.gpu.count", 8, "must be a whole number from 1 to 1,000,000,000"),
        ("count = 4\n", "count = 1.5\n", "servers.gpu.count", 8, "must be a whole number"),
        ("count = 4\n", "", "servers.gpu.count", 7, "is missing"),
        ("gpus = 8\n", "gpus = 1\n", "jobs.train.demand", 17, "fits no kind of server, so a job of this type can never run"),
        ('["small", "gpu"]', '["tpu"]', "jobs.render.only", 25, "there is no such kind of server (there are: small, gpu)"),
        ('["small", "gpu"]', '["small"]', "jobs.render.speed.gpu", 26, "is a speed on a kind that is not in only"),
        ('["small", "gpu"]', '"gpu"', "jobs.render.only", 25, "must be a list"),
        ("speed = { gpu = 3 }", "speed = { tpu = 3 }", "jobs.render.speed.tpu", 26, "there is no such kind of server"),
        ("speed = { gpu = 3 }", "speed = { gpu = 0 }", "jobs.render.speed.gpu", 26, "must be greater than 0"),
        ('rule = "jsq"', 'rule = "fastest"', "dispatch.rule", 14, "must be 'random', 'round-robin', 'jsq'"),
        ('rule = "jsq"', 'rule = "jsq"\nd = 2', "dispatch", 13, 'd goes with rule = "power-of-d", and only with it'),
        ('rule = "jsq"', 'rule = "power-of-d"\nd = 0', "dispatch.d", 15, "must be at least 1"),
        ("cores = 32\n", 'cores = "many"\n', "servers.small.cores", 4, "must be a number"),
        ("cores = 32\nmemory = 128\n", "", "servers.small", 2, "needs a positive amount of at least one resource"),
        (
            "gpus = 2 }",
            "tpus = 2 }",
            "jobs.train.demand.tpus",
            17,
            "no kind of server has such a resource (they have: cores, memory, gpus)",
        ),
        (", gpus = 0 }", " }", "jobs.render.demand.gpus", 22, "is missing: name every resource of the servers"),
        ("[dispatch]", "[server]\ncores = 2\n\n[dispatch]", "server", 13, "give either [server], for one server, or [servers.NAME]"),
        ("[dispatch]", "[live]\nlearn = true\n\n[dispatch]", "live", 13, "is not a known key"),
        ("mean_size = 4\n", "", "jobs.train", 16, "give either mean_size or size"),
        ("[jobs.train]", "[jobs.own]", "jobs.own", 16, "is what the scheduler calls jobs that no type encloses"),
    ],
)
def test_problems(tmp_path, old, new, place, line, rule):
    """Each is told with its place, its line and the rule."""
    assert old in SPEC
    found = problems(SPEC.replace(old, new, 1), tmp_path)
    assert (place, line) in [(where, at) for where, at, _ in found]
    assert any(told.startswith(rule) for where, _, told in found if where == place)


def test_all_problems_at_once(tmp_path):
    """In the order of the file."""
    text = SPEC.replace("count = 40", "count = 0").replace('rule = "jsq"', 'rule = "best"').replace('["small", "gpu"]', '["small", "tpu"]')
    places = [place for place, _, _ in problems(text, tmp_path)]
    assert places == ["servers.small.count", "dispatch.rule", "jobs.render.only", "jobs.render.speed.gpu"]


def test_what_takes_one_server_refuses_the_file():
    """With what the file is, and what can be done with it."""
    with pytest.raises(
        rota.BadSpec,
        match=r"servers: are several servers, and this takes one, in a \[server\] table: of the commands `rota plan`, `capacity`",
    ):
        read_server(EXAMPLES / "fleet.toml")


@pytest.mark.parametrize("verb", ["optimal", "serve"])
def test_verbs_that_take_one_server(verb, capsys, tmp_path, monkeypatch):
    """They refuse a fleet with exit code 2 and say which verbs take one."""
    monkeypatch.chdir(tmp_path)
    assert main([verb, str(EXAMPLES / "fleet.toml")]) == 2
    assert "are several servers, and this takes one" in capsys.readouterr().err
