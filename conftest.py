"""Examples in README.md and docs/ run in a directory of their own, with examples/ and the files that their page shows.

A page shows a file as a toml or python block whose first line is its name, `# server.toml` or `# mine.py`, or as a json or text block
below a line that is its name, `policy.json`: or `log.txt`: (these have no comments).
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
NAMED_TOML = re.compile(r"^```(?:toml|python)\n(?P<text># (?P<name>\S+\.(?:toml|py))\n.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED_ABOVE = re.compile(r"^`(?P<name>\S+\.(?:json|txt))`:\n\n```(?:json|text)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """A function that enters the directory in which the examples of a page run."""

    def enter(page: Path) -> None:
        (tmp_path / "examples").symlink_to(ROOT / "examples")
        shown = page.read_text(encoding="utf-8")
        for file in (*NAMED_TOML.finditer(shown), *NAMED_ABOVE.finditer(shown)):
            path = tmp_path / file["name"]
            assert not path.exists(), f"{page.name} shows two files of the name {path.name}"
            path.write_text(file["text"], encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", [*(place for place in sys.path if place), str(tmp_path)])
        for name in [path.stem for path in tmp_path.glob("*.py")]:
            monkeypatch.delitem(sys.modules, name, raising=False)

    return enter


@pytest.fixture(autouse=True)
def _doctest_beside_its_page(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("beside")(request.node.path)
