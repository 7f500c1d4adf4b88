"""Where results are to be written: a bad place is told before the work, by every verb that writes."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import rota
from cli_app import is_option, verbs
from rota.cli import main
from rota.traces import save_trace
from systems import EXAMPLES

PAPER = str(EXAMPLES / "paper.toml")
VERBS = {
    "plan": ["plan", PAPER, "-o"],
    "design": ["design", PAPER, "-o"],
    "optimal": ["optimal", PAPER, "-o"],
    "tune": ["tune", PAPER, "-o"],
    "simulate": ["simulate", PAPER, "fcfs", "--log"],
    "sweep": ["sweep", PAPER, "--policies", "fcfs", "--seeds", "1", "-o"],
    "reproduce": ["reproduce", "queues", "--effort", "smoke", "-o"],
    "trace borg": ["trace", "borg", "--share", "1e-5", "-o"],
    "trace cut": ["trace", "cut", "jobs.parquet", "--begin", "0", "--end", "50", "-o"],
    "trace group": ["trace", "group", "jobs.parquet", "--top", "1", "-o"],
    "trace import": ["trace", "import", "log.csv", "-o"],
    "trace system": ["trace", "system", "jobs.parquet", "-o"],
    "trace scale": ["trace", "scale", "jobs.parquet", "--load", "0.1", "--system", "scaled.toml", "-o"],
}


@pytest.fixture
def no_work(tmp_path, monkeypatch):
    """A folder with a trace and a log, in which any work at all would fail."""
    jobs = pl.DataFrame({"arrival": np.arange(100.0), "size": np.ones(100), "type": np.zeros(100, np.int32)})
    save_trace(rota.Trace(jobs.lazy(), ("a",), ("cores",), [[1.0]], [4.0]), tmp_path / "jobs.parquet")
    (tmp_path / "log.csv").write_text("arrival,size,cores\n0,1,1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def work(*_arguments, **_options):
        raise AssertionError("work was begun")

    for place in ("rota.plan", "rota.design_policy", "rota.optimal_policy", "rota.tune_adaptive", "rota.simulate", "rota.study.sweep"):
        monkeypatch.setattr(place, work)
    for place in ("rota.traces.write_borg_month", "rota.traces.grouping.group_types", "rota.report.reproduced.redraw"):
        monkeypatch.setattr(place, work)
    return tmp_path


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_where_a_folder_should_be(no_work, capsys, verb):
    """A path through a file is refused by every verb, with 2, before anything is computed."""
    (no_work / "file").touch()
    assert main([*VERBS[verb], str(no_work / "file" / "below" / "out")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "a folder" in captured.err or "directory" in captured.err


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ("plan", "reproduce")])
def test_a_folder_where_a_file_should_be(no_work, capsys, verb):
    """A folder is refused as the name of a file."""
    assert main([*VERBS[verb], str(no_work)]) == 2
    assert "is a directory: name a file in it" in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
def test_a_place_where_nobody_can_write(no_work, capsys, verb):
    """A folder that takes no files is noticed by trying, before the work, whoever runs it."""
    assert main([*VERBS[verb], "/proc/out" if verb != "plan" else "/proc/"]) == 2
    assert "cannot be written" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------- one meaning of --output and --force

INPUTS = {"--cwd", "--directory", "--heartbeat", "--machines", "--nodes", "--trace", "--wake"}  # paths that verbs read or work in
ON_A_CLUSTER = {"slurm plan --output"}  # what is written comes from a Slurm: `tests/slurm/test_real_slurm.py` has these
FOLDERS = {"reproduce --output", "trace info --pictures"}  # outputs that are folders
PRINTED = {"design --output", "trace fleet --output", "trace system --output"}  # text, which can go to standard output
SYSTEM, JOBS = str(EXAMPLES / "paper.toml"), "jobs.parquet"
# What a verb needs to run, by the names of its arguments; and what makes it quick.
VALUES = {
    "SOURCE": "log.csv",
    "POLICY": "fcfs",
    "POLICIES": "fcfs",
    "--policies": "fcfs",
    "--load": "0.1",
    "--days": "0.001",
    "--machines": "machines.csv",
}
QUICK = {
    "plan": ["--jobs", "5000", "--tuning", "0.1", "--optimum", "0", "--no-html"],
    "optimal": ["--truncation", "8", "--accuracy", "0.1"],  # whatever the pace of the machine
    "tune": ["--jobs", "20000"],
    "simulate": ["--jobs", "2000"],
    "compare": ["--jobs", "2000"],
    "sweep": ["--jobs", "2000", "--seeds", "1", "--workers", "0"],
    "reproduce": ["vm", "--effort", "smoke", "--workers", "0"],
    "trace group": ["--top", "1"],
    "trace borg": ["--share", "1e-5"],
    "trace resample": ["--block", "10"],
}


def _writers():
    """Every option of every verb that names something to write: --output, and any other path that is no input."""
    for verb, arguments in verbs():
        for argument in arguments:
            if is_option(argument) and (argument.name == "--output" or ("Path" in str(argument.hint) and argument.name not in INPUTS)):
                yield f"{verb} {argument.name}"


WRITERS = list(_writers())
FILES = [writer for writer in WRITERS if writer not in FOLDERS]
WITHOUT_A_CLUSTER = [writer for writer in FILES if writer not in ON_A_CLUSTER]


def _name(writer: str) -> str:
    """A name for the output, with the ending that the verb wants."""
    return "out.csv" if writer.startswith("compare") else "out.json"


def _line(writer: str, value: str, *, inputs: bool = True) -> list[str]:
    """A command line that writes to `value`; without inputs, there is nothing that it could read."""
    verb, _, option = writer.rpartition(" ")
    arguments = dict(verbs())[verb]
    needed = []
    for argument in arguments:
        if not argument.required or argument.name == option:
            continue
        given = {"FILE": JOBS if verb.startswith("trace") else SYSTEM, "--output": "other.parquet", "--system": "other.toml", **VALUES}
        assert argument.name in given, f"add a value for {argument.name} of rota {verb} to VALUES"
        text = given[argument.name] if inputs or argument.name.startswith("--") else "nowhere"
        needed += [argument.name, text] if is_option(argument) else [text]
    return [*verb.split(), *needed, *QUICK.get(verb, []), option, value]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a trace and a log."""
    rng = np.random.default_rng(0)
    jobs = pl.DataFrame({"arrival": np.arange(300.0), "size": rng.exponential(1.0, 300), "type": np.zeros(300, np.int32)})
    save_trace(rota.Trace(jobs.lazy(), ("a",), ("cores",), [[1.0]], [4.0]), tmp_path / JOBS)
    (tmp_path / "log.csv").write_text("arrival,size,cores\n0,1,1\n1,1,1\n", encoding="utf-8")
    (tmp_path / "machines.csv").write_text("count,cores\n3,2\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _names(folder) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.endswith(".journal")}  # of a sweep: what it goes on from


def test_the_verbs_that_write():
    """They are found: those that are known are among them."""
    traces = ("import", "group", "cut", "scale", "system", "borg", "resample")
    known = {
        "plan",
        "design",
        "compare",
        "sweep",
        "reproduce",
        *(f"trace {verb}" for verb in traces),
    }
    assert {f"{verb} --output" for verb in known} | {"simulate --log", "trace scale --system", "trace info --pictures"} <= set(WRITERS)


@pytest.mark.parametrize("writer", [writer for writer in WRITERS if writer != "reproduce --output"])  # which goes on in its folder
def test_what_is_there_is_refused_before_anything_is_read(here, capsys, writer):
    """In the same words by every verb, with 2, and although the inputs are missing: nothing can have been computed."""
    output = "out" if writer in FOLDERS else _name(writer)
    there = here / output / "sizes.svg" if writer in FOLDERS else here / output
    there.parent.mkdir(exist_ok=True)
    there.write_text("precious", encoding="utf-8")
    assert main(_line(writer, output, inputs=False)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"{writer.split()[-1]}: exists already: choose another name, or write over it with --force" in captured.err
    assert there.read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize("writer", WITHOUT_A_CLUSTER)
def test_force_writes_over(here, writer):
    """With --force the file is written over, and nothing else is left beside it."""
    (here / _name(writer)).write_text("precious", encoding="utf-8")
    before = _names(here)
    assert main([*_line(writer, _name(writer)), "--force"]) == 0
    assert (here / _name(writer)).read_bytes() != b"precious"
    assert _names(here) - before <= {"other.parquet", "other.toml"}


@pytest.mark.parametrize("writer", WITHOUT_A_CLUSTER)
def test_an_interrupt_while_writing(here, monkeypatch, writer):
    """Ctrl-C at the last moment: the file that was there is as it was, and nothing half-written is left."""
    (here / _name(writer)).write_text("precious", encoding="utf-8")
    before = _names(here)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    assert main([*_line(writer, _name(writer)), "--force"]) == 130
    assert (here / _name(writer)).read_text(encoding="utf-8") == "precious"
    assert _names(here) == before


@pytest.mark.parametrize("writer", FILES)
def test_a_file_goes_into_a_folder_that_is_there(here, capsys, writer):
    """A folder that is missing, or a folder in place of the file, is refused first."""
    assert main(_line(writer, f"missing/{_name(writer)}", inputs=False)) == 2
    assert f"{writer.split()[-1]}: is in a directory that does not exist" in capsys.readouterr().err
    if not writer.startswith("plan"):  # which takes a folder for its two files
        assert main(_line(writer, ".", inputs=False)) == 2
        assert f"{writer.split()[-1]}: is a directory: name a file in it" in capsys.readouterr().err


@pytest.mark.parametrize("writer", sorted(FOLDERS))
def test_a_folder_is_made(here, writer):
    """A folder that is named as the output is made, with those above it."""
    assert main(_line(writer, "new/folder")) == 0
    assert list((here / "new" / "folder").iterdir())


@pytest.mark.parametrize("writer", WRITERS)
def test_standard_output(here, capsys, writer):
    """`-` is standard output where text is written, and refused elsewhere: it is never the name of a file."""
    if writer in PRINTED:
        assert main(_line(writer, "-")) == 0
        assert capsys.readouterr().out.startswith(("{", "version"))
        assert main([*_line(writer, "-"), "--json"]) == 2
        assert "--json: does not go with --output -" in capsys.readouterr().err
    else:
        *line, option, _ = _line(writer, "-", inputs=False)
        assert main([*line, f"{option}=-"]) == 2
        assert f"{writer.split()[-1]}: cannot be standard output here" in capsys.readouterr().err
    assert not (here / "-").exists()


def test_an_option_is_not_the_name_of_a_file(here, capsys):
    """`-o --force` has no name, which is said."""
    assert main(["design", SYSTEM, "-o", "--force"]) == 2
    assert "--output: is missing the name of a file" in capsys.readouterr().err


def test_a_device_is_no_file_to_lose(here):
    """What is there and holds nothing, such as /dev/null, is written to as it is."""
    assert main(_line("design --output", "/dev/null")) == 0
    assert Path("/dev/null").is_char_device()


def test_a_link_stays_a_link(here):
    """What it leads to is written over, with the permissions it had."""
    (here / "real.json").write_text("precious", encoding="utf-8")
    (here / "real.json").chmod(0o640)
    (here / "link.json").symlink_to("real.json")
    assert main([*_line("design --output", "link.json"), "--force"]) == 0
    assert (here / "link.json").is_symlink()
    assert "precious" not in (here / "real.json").read_text(encoding="utf-8")
    assert (here / "real.json").stat().st_mode & 0o777 == 0o640
