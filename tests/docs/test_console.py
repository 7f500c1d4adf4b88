"""Every console block of README.md and docs/ prints what it shows.

A block holds commands, `$ rota …` or `$ echo $?`, each with what it prints below it: standard output, or standard error if it fails. There
`…` stands for any text, and alone on a line for any number of lines.

With `make console` in place of the tests, the pages are changed to what is printed now: read the difference before you keep it.
"""

import os
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rota.cli import main

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def examples(page: Path) -> Iterator[tuple[str, list[str]]]:
    """The commands of a page, each with the lines shown below it."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        head, *commands = re.split(r"^\$ ", block, flags=re.MULTILINE)
        assert not head, f"{page.name}: a console block begins with a command, not with {head!r}"
        for command in commands:
            line, *shown = command.rstrip().split("\n")
            yield line, shown


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether the lines are the same, up to `…`."""
    pattern = "".join(r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\n" for line in shown)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def renewed(shown: list[str], printed: list[str]) -> list[str]:
    """What a page should show: the lines printed now, in place of those before the first and after the last `…`.

    A line that leaves something out in its middle stays as it is: that it no longer matches is for a person to see.
    """
    fresh = printed
    if "…" in shown:
        head, tail = shown.index("…"), len(shown) - 1 - shown[::-1].index("…")
        fresh = printed[:head] + shown[head : tail + 1] + printed[len(printed) - (len(shown) - 1 - tail) :]
    if len(fresh) != len(shown):
        return fresh
    return [old if "…" in old or matches([old], [new]) else new for old, new in zip(shown, fresh, strict=True)]


@pytest.mark.parametrize("page", [page for page in PAGES if any(examples(page))], ids=lambda page: page.name)
def test_page_prints_what_it_shows(
    page: Path,
    beside: Callable[[Path], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Runs the commands of a page one after the other, beside the files that it shows."""
    beside(page)
    monkeypatch.setenv("COLUMNS", "80")
    code = 0
    for command, shown in examples(page):
        if command == "echo $?":
            printed = [str(code)]
        else:
            program, *arguments = shlex.split(command)
            assert program == "rota", f"{page.name}: only rota runs in a console block, put {command!r} into an sh block"
            code = main(arguments)
            output, errors = capsys.readouterr()
            printed = [line.rstrip() for line in (errors if code else output).rstrip().split("\n")]
        if not matches(shown, printed) and os.environ.get("ROTA_RENEW_CONSOLE"):
            old, new = ("\n".join([f"$ {command}", *lines]) + "\n" for lines in (shown, renewed(shown, printed)))
            page.write_text(page.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        elif not matches(shown, printed):
            pytest.fail("\n".join([f"{page.name}: $ {command}", "--- shown", *shown, "--- printed", *printed]), pytrace=False)


def test_ellipsis_stands_for_any_lines_but_not_for_other_ones() -> None:
    """The comparison of this module: `…` matches what it should and nothing else."""
    assert matches(["a", "…", "d"], ["a", "b", "c", "d"])
    assert matches(["a", "…"], ["a"])
    assert matches(["time … s"], ["time 0.3 s"])
    assert not matches(["a", "…", "d"], ["a", "b", "c"])
    assert not matches(["a"], ["a", "b"])
    assert not matches(["a.c"], ["abc"])
