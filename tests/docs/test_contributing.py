"""The pages in docs/contributing can be followed: their steps, applied to a copy of the source, do what the pages show.

A step is a block: `# src/…` as the first line of a python block creates a file, `# add to src/…` adds to one, and a diff block changes
one. Then the commands of the text blocks are run, `$ rota …`, and print what is shown below them. A page that serves has a scheduler
running meanwhile.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs/contributing").glob("add-*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^`(?P<name>\S+)`:\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
ROTA = [sys.executable, "-m", "rota.cli"]


def follow(page: str, copy: Path) -> None:
    """Applies the steps of a page to a copy of the source, and writes the files that it shows."""
    for file in FILE.finditer(page):
        (copy / file["name"]).write_text(file["text"], encoding="utf-8")
    for language, text in BLOCK.findall(page):
        first, _, rest = text.partition("\n")
        if language == "diff":
            change(copy / first.removeprefix("--- "), rest)
        elif first.startswith("# add to "):
            path = copy / first.removeprefix("# add to ")
            path.write_text(f"{path.read_text(encoding='utf-8')}\n\n{rest}", encoding="utf-8")
        elif re.fullmatch(r"# \S+\.(py|toml)", first):
            (copy / first.removeprefix("# ")).write_text(rest, encoding="utf-8")


def change(path: Path, hunks: str) -> None:
    """Changes a file by the hunks of a diff, parted by lines `@@`; the lines before the change must be there once."""
    text = path.read_text(encoding="utf-8")
    for hunk in hunks.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        before, after = ("".join(line[1:] for line in lines if line[0] in f" {sign}") for sign in "-+")
        assert text.count(before) == 1, f"{path.name} has no such lines:\n{before}"
        text = text.replace(before, after)
    path.write_text(text, encoding="utf-8")


def commands(page: str) -> Iterator[tuple[list[str], list[str]]]:
    """The commands of the text blocks, each with the lines shown below it."""
    for language, text in BLOCK.findall(page):
        for command in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:] if language == "text" and text.startswith("$ ") else ():
            line, *shown = command.rstrip().split("\n")
            yield shlex.split(line)[1:], shown


@contextmanager
def serving(page: str, copy: Path, environment: dict[str, str]) -> Iterator[None]:
    """Runs the scheduler that a page starts, if it does."""
    served = re.search(r"^rota (serve .*)$", page, re.MULTILINE)
    if not served:
        yield
        return
    process = subprocess.Popen([*ROTA, *shlex.split(served[1])], cwd=copy, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = []
        while not (said and "listening" in said[-1]):
            said.append(process.stderr.readline())
            assert said[-1], "the scheduler ended:\n" + "".join(said)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_steps_of_the_page_do_what_it_shows(path: Path, tmp_path: Path) -> None:
    """Follows a page from its first step to what it shows in the end."""
    page = path.read_text(encoding="utf-8")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    follow(page, tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src"), "COLUMNS": "80", "ROTA_DIR": str(tmp_path / "state")}
    with serving(page, tmp_path, environment):
        for arguments, shown in commands(page):
            done = subprocess.run([*ROTA, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            pattern = "".join(r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\n" for line in shown)
            assert not shown or re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in done.stdout.rstrip().split("\n"))), (
                done.stdout
            )
