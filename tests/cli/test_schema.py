"""`rota schema`: a schema that accepts what Rota reads."""

import json
import tomllib

import jsonschema
import pytest

from rota.cli import main
from systems import EXAMPLES

SPEC = {
    "version": 1,
    "server": {"cores": 8},
    "preemption": {"model": "setup", "setup_time": 0.5},
    "jobs": {"web": {"demand": {"cores": 1}, "arrival_rate": 1.5, "size": {"distribution": "lognormal", "mean": 1, "cv": 2}}},
}


@pytest.fixture
def validator(capsys):
    """A validator of the schema that the command prints, which is a proper schema itself."""
    assert main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


FLEET = {
    "servers": {"small": {"count": 3, "cores": 8}, "gpu": {"count": 1, "cores": 8, "gpus": 2}},
    "dispatch": {"rule": "power-of-d", "d": 2},
    "jobs": {"web": {"demand": {"cores": 1, "gpus": 0}, "arrival_rate": 1.5, "mean_size": 2, "only": ["gpu"], "speed": {"gpu": 2}}},
}


def changed(path: str, value: object, of: dict = SPEC) -> dict:
    """The spec with one entry set to another value, or added."""
    spec = json.loads(json.dumps(of))
    *parents, last = path.split(".")
    table = spec
    for part in parents:
        table = table[part]
    table[last] = value
    return spec


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_accepts_the_examples(validator, path):
    """Every bundled example meets the schema."""
    validator.validate(tomllib.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("version", 2),
        ("colour", "red"),
        ("server", {}),
        ("server.cores", 0),
        ("server.cores", "8"),
        ("preemption.model", "some"),
        ("preemption.setup_time", -1),
        ("jobs", {}),
        ("jobs.web", {}),
        ("jobs.web.priority", 1),
        ("jobs.web.demand.cores", -1),
        ("jobs.web.arrival_rate", -1),
        ("jobs.web.mean_size", 0),
        ("jobs.web.size.distribution", "zipf"),
        ("jobs.web.size.cv", 0),
        ("jobs.web.size.shape", 1),
        ("jobs.web.size", {"distribution": "erlang", "mean": 1, "phases": 2.5}),
    ],
)
def test_rejects_what_is_broken(validator, path, value):
    """The schema accepts the spec and rejects it after any one of these changes."""
    validator.validate(SPEC)
    assert not validator.is_valid(changed(path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("server", {"cores": 8}),
        ("servers", {}),
        ("servers.small.count", 0),
        ("servers.small.count", 1.5),
        ("servers.small.cores", -1),
        ("servers.small", {"cores": 8}),
        ("dispatch.rule", "fastest"),
        ("dispatch.d", 0),
        ("jobs.web.only", "gpu"),
        ("jobs.web.speed.gpu", 0),
        ("live", {}),
    ],
)
def test_rejects_what_is_broken_in_a_fleet(validator, path, value):
    """The schema accepts the fleet and rejects it after any one of these changes."""
    validator.validate(FLEET)
    assert not validator.is_valid(changed(path, value, FLEET))
