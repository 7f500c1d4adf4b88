"""Formats are told by content; directories, patterns and lists; what is said when nothing fits."""

import gzip
import shutil

import polars as pl
import pytest

from borg_logs import json_lines, life
from rota.errors import BadSpec
from rota.traces import import_trace
from rota.traces.detect import Options, choose, detect

BORG = json_lines(life(1, 0, 700, 710, 760))
EVENTS = "0,2,3418309,0,4155527081,0,70s3v5qRyCO/1PCdI6fVXnrW8FU/w+5CKRSa72xgcIo=,3,9,0.125,0.07446,0.0004244,0\n"
SWF = "; Version: 2\n" + " ".join(["1"] * 18) + "\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\np,1,1,0,0,0,9,1\n"
COLLECTIONS = '{"time":"0","type":"3","collection_id":"94591244395","priority":200}\n'


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("text", "format"),
    [
        (BORG, "borg2019"),
        (EVENTS, "google2011"),
        (SWF, "swf"),
        (PODS, "alibaba_openb"),
        ("arrival,size,cpu\n1,2,3\n", "table"),
        ("arrival,start,end\n1,2,3\n", "table"),
        (COLLECTIONS, None),
        ("submit,runtime\n1,2\n", None),
        ("", None),
        ("Dear reader,\n", None),
        ("\0\1\2", None),
        ("PAR1 but not parquet", None),
    ],
)
def test_by_content(tmp_path, text, format, packed):
    """The name says nothing: all files are called log.txt."""
    file = tmp_path / "log.txt"
    file.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    found = detect(file)
    assert (found and found.format) == format


def test_a_mapping_makes_any_table_fit(tmp_path):
    """With columns said, a table is looked for that has them."""
    file = tmp_path / "table.csv"
    file.write_text("submit,runtime\n1,2\n", encoding="utf-8")
    assert detect(file, Options(columns={"arrival": "submit", "size": "runtime"})).format == "table"


def test_what_was_looked_for(tmp_path):
    """When nothing fits, the error says what was looked for and what was found."""
    file = tmp_path / "events.json"
    file.write_text(COLLECTIONS, encoding="utf-8")
    with pytest.raises(BadSpec) as error:
        choose(file)
    said = str(error.value)
    for part in (
        "borg2019: ",
        "instance_index",
        "google2011: ",
        "swf: ",
        "alibaba_openb: ",
        "table: ",
        "found: json that begins with time",
    ):
        assert part in said
    with pytest.raises(BadSpec, match="is not swf; looked for\n    swf: lines of 18 numbers"):
        choose(file, "swf")


def test_directories_patterns_and_lists(tmp_path):
    """All shards of a directory (also below it), those that fit a pattern, or a list; each file once, in order of name."""
    for name in ("b.json", "a.json", "deep/c.json", ".hidden.json", "_SUCCESS"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(BORG, encoding="utf-8")
    a, b, c = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "deep" / "c.json"
    assert choose(tmp_path).paths == (a, b, c)
    assert choose(str(tmp_path / "*.json")).paths == (a, b)
    assert choose([b, str(tmp_path / "?.json"), c]).paths == (b, c, a)


def test_other_files_are_named(tmp_path):
    """What lies beside the shards and is something else is not read, and is named; the same file asked for by name is an error."""
    for name, text in {"1.json": BORG, "README.md": "# Data\n", "2.json": "", "collections.json": COLLECTIONS}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    choice = choose(tmp_path)
    assert choice.paths == (tmp_path / "1.json",)
    assert choice.others == {
        str(tmp_path / "2.json"): "empty",
        str(tmp_path / "README.md"): "not in this format",
        str(tmp_path / "collections.json"): "not in this format",
    }
    with pytest.raises(BadSpec, match=r"README.md: 1 problem\n  content: is in no known format"):
        choose([tmp_path / "1.json", tmp_path / "README.md"])


def test_several_formats_are_not_mixed(tmp_path):
    """A directory with two formats is an error, unless one is asked for."""
    (tmp_path / "1.json").write_text(BORG, encoding="utf-8")
    (tmp_path / "2.csv").write_text(PODS, encoding="utf-8")
    with pytest.raises(BadSpec, match="holds several kinds of files"):
        choose(tmp_path)
    choice = choose(tmp_path, "alibaba_openb")
    assert choice.paths == (tmp_path / "2.csv",)
    assert choice.others == {str(tmp_path / "1.json"): "not in this format"}


def test_a_trace_is_not_imported_again(tmp_path):
    """Our own form is no log: by name it is an error, in a directory it is left alone."""
    (tmp_path / "log.json").write_text(BORG, encoding="utf-8")
    import_trace(tmp_path / "log.json", tmp_path / "jobs.parquet")
    with pytest.raises(BadSpec, match="is a trace made by Rota already"):
        choose(tmp_path / "jobs.parquet")
    assert choose(tmp_path).others == {str(tmp_path / "jobs.parquet"): "a trace made by Rota already"}


def test_wrong_sources_and_options(tmp_path):
    """No such file, an empty directory, an unknown format, an option of another format."""
    (tmp_path / "log.json").write_text(BORG, encoding="utf-8")
    with pytest.raises(BadSpec, match="is no file, no directory, and no pattern that fits a file"):
        choose(tmp_path / "nothing.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadSpec, match="holds no files"):
        choose(tmp_path / "empty")
    with pytest.raises(BadSpec, match="format: must be one of borg2019, "):
        choose(tmp_path, "borg2011")
    with pytest.raises(BadSpec, match="time_unit: goes with the format table only"):
        choose(tmp_path, "borg2019", Options(time_unit="us"))
    shutil.rmtree(tmp_path / "empty")


def test_a_damaged_parquet_file_is_not_read(tmp_path):
    """A parquet file cut short has no readable schema, and the error says so."""
    file = tmp_path / "shard.parquet"
    pl.DataFrame({"time": [1], "type": [0], "collection_id": [1], "instance_index": [0]}).write_parquet(file)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(BadSpec, match="neither text nor a valid parquet file"):
        choose(file)
