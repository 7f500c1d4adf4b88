"""The page `docs/contributing/add-a-trace-format.md` can be followed: its steps, applied to a copy of the source, import its log."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/contributing/add-a-trace-format.md").read_text(encoding="utf-8")


def block(language: str, begins: str = "") -> str:
    """The first block of a language in the page that begins so."""
    found = re.search(rf"^```{language}\n({re.escape(begins)}.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"the page has no {language} block that begins with {begins!r}"
    return found[1]


def apply(change: str, copy: Path) -> None:
    """Replaces the lines with a minus by those with a plus that follow them; each must be there once."""
    name, *lines = change.splitlines()
    path = copy / name.removeprefix("--- ")
    text = path.read_text(encoding="utf-8")
    for old, new in zip(lines[::2], lines[1::2], strict=True):
        assert (old[0], new[0]) == ("-", "+")
        assert text.count(f"{old[1:]}\n") == 1, f"{path.name} has no line {old[1:]!r}"
        text = text.replace(f"{old[1:]}\n", f"{new[1:]}\n")
    path.write_text(text, encoding="utf-8")


def test_steps_of_the_page_import_its_log(tmp_path: Path) -> None:
    """Follows the page in a copy of the source, and compares what the import prints with what the page shows."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "src/rota/traces/readers/toybatch.py").write_text(block("python", "# toybatch.py"), encoding="utf-8")
    for change in re.findall(r"^```diff\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        apply(change, tmp_path)
    (tmp_path / "log.csv").write_text(block("text", "toy_job,"), encoding="utf-8")
    command, *shown = block("text", "$ rota trace import").rstrip().split("\n")
    done = subprocess.run(
        [sys.executable, "-m", "rota.cli", *command.split()[2:]],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src"), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [line.rstrip() for line in done.stdout.rstrip().split("\n")] == shown[: shown.index("$ rota trace info jobs.parquet")]
