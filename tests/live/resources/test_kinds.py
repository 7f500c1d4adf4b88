"""The kinds of resources: which takes what, and what a new one needs."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

import rota
from live_service import finished, open_service, plan_of, play, run
from rota.live.processes import forkserver, supervisor
from rota.live.resources import kinds
from rota.live.resources.kind import Kind
from rota.live.resources.kinds import KINDS, kind_of, share_of, texts_of

TOY = Path(__file__).with_name("licences.py")


@pytest.mark.parametrize(
    ("resource", "kind"),
    [
        *((name, "cores") for name in ("cores", "CPUs", "cpu")),
        *((name, "gpus") for name in ("gpus", "GPU")),
        *((name, "memory") for name in ("memory", "mem", "RAM_GiB", "memory_mb", "memory_bytes")),
        *((name, "counted") for name in ("network_gbps", "slots", "core", "memory_xb", "licences")),
    ],
)
def test_kinds_by_name(resource: str, kind: str) -> None:
    """The name of a resource tells its kind, in any case."""
    assert kind_of(resource).name == kind


def test_shares_in_the_event_log() -> None:
    """The event log has comma lists of cores and devices; what comes back is the share."""
    for share in ({}, {"cores": [0, 3]}, {"gpus": []}, {"cores": [1], "gpus": [0, 2]}):
        assert share_of({"job": 1, **texts_of(share)}) == share
    assert texts_of({"cores": [0, 3], "gpus": []}) == {"cores": "0,3", "gpus": ""}
    assert texts_of({}) == {"cores": None, "gpus": None}


def test_a_new_kind_is_one_module_and_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind that Rota does not have, added: a real job has its own licences, is told of them and has them applied; they come back.

    The launcher runs from a copy of the package with the module and the line in it, as it would be in the source.
    """
    package, source = tmp_path / "source" / "rota", Path(rota.__file__).parent
    for part in ("__init__.py", "live/__init__.py"):
        (package / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / part, package / part)
    for part in ("live/processes", "live/resources"):
        shutil.copytree(source / part, package / part)
    shutil.copy(TOY, package / "live/resources/licences.py")
    registry = package / "live/resources/kinds.py"
    text = registry.read_text()
    assert text.count("    Gpus,\n") == 1
    imported = "from rota.live.resources.memory"
    text = text.replace(imported, f"from rota.live.resources.licences import Licences\n{imported}", 1)
    registry.write_text(text.replace("    Gpus,\n", "    Gpus,\n    Licences,\n"))
    monkeypatch.setattr(forkserver, "__file__", str(package / "live/processes/forkserver.py"))

    spec = importlib.util.spec_from_file_location("licences", TOY)
    toy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(toy)
    monkeypatch.setattr(kinds, "KINDS", (toy.Licences, *KINDS))
    system = rota.System([3, 9], [[2, 1], [1, 1]], [0.1, 0.1], [1.0, 1.0], names=("two", "one"), resources=("Licences", "slots"))

    async def story() -> None:
        async with open_service(tmp_path / "state", plan_of(system, "fcfs")) as service:
            script = 'echo "$ROTA_LICENCES" $(cut -d " " -f 19 /proc/self/stat)'
            first = run(service, f"{script}; sleep 0.5", type="two", env={"ROTA_LICENCES": "of another job"})
            second = run(service, script, type="one")
            jobs = [await finished(service, id) for id in (first, second)]
            assert [job.state for job in jobs] == ["done", "done"]
            own = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[16]
            said = [Path(job.output).read_text().split() for job in jobs]
            assert said == [["100,101", str(int(own) + 2)], ["102", str(int(own) + 1)]]
            starts = [event for event in service.events(0, 99) if event["event"] == "start"]
            assert [(event["licences"], event["cores"], event["gpus"]) for event in starts] == [
                ("100,101", None, None),
                ("102", None, None),
            ]
            assert service.executor.lifecycle.allocation.free("licences") == (100, 101, 102)
            assert [use.enforced for use in service.status().resources] == ["ROTA_LICENCES", ""]
            assert "Licences: a job is told its licences by ROTA_LICENCES" in service.status().warnings

    play(tmp_path, story())


def test_a_kind_that_fails_to_clean_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of the job is recorded all the same, with what went wrong; the other kinds clean up."""
    cleaned = []

    class Broken(Kind):
        name = "broken"

        @staticmethod
        def clean_up(terms: int) -> str:
            cleaned.append(terms)
            return str(1 // terms)

    class Last(Broken):
        name = "last"

    monkeypatch.setattr(kinds, "KINDS", (Broken, Last))
    assert supervisor._clean_up({"share": {"last": 1, "broken": 0}}).startswith("cannot clean up its broken: ZeroDivisionError(")
    assert cleaned == [0, 1]
