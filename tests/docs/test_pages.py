"""The pages as a whole: all are reachable from the index, the code names for contributors exist, the words are plain."""

import dataclasses
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
GLOSSARY = (DOCS / "reference/glossary.md").read_text(encoding="utf-8")
TEXTS = [
    *(DOCS.parent / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")),
    *sorted(DOCS.rglob("*.md")),
]
NAMED = re.compile(r"`(rota(?:\.\w+)+)`")
NAMES = sorted(set(NAMED.findall(GLOSSARY)))
FOR_CONTRIBUTORS = sorted(
    {name for page in (DOCS / "contributing").glob("*.md") for name in NAMED.findall(page.read_text(encoding="utf-8"))}
)


def linked(page: Path) -> list[Path]:
    """The pages in the toctrees of a page."""
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line.strip() for tree in trees for line in tree.splitlines()]
    return [(page.parent / f"{line}.md").resolve() for line in lines if line and not line.startswith(":")]


def test_every_page_is_reachable_from_the_index() -> None:
    """Follows the toctrees from docs/index.md: they name pages that exist, and all of them."""
    seen: set[Path] = set()
    todo = [DOCS / "index.md"]
    while todo:
        page = todo.pop()
        seen.add(page)
        todo += [other for other in linked(page) if other not in seen]
    assert seen == {page for page in DOCS.rglob("*.md") if "_build" not in page.parts}


def attribute(thing: Any, name: str) -> Any:
    """An attribute of a module or a class, or the annotation of a field that only objects of the class have."""
    if isinstance(thing, type):
        fields = {field.name: field for field in dataclasses.fields(thing)} if dataclasses.is_dataclass(thing) else {}
        fields |= getattr(thing, "model_fields", {})
        if name in fields:
            return fields[name]
    return getattr(thing, name)


@pytest.mark.parametrize("name", sorted({*NAMES, *FOR_CONTRIBUTORS}))
def test_names_of_the_glossary_and_of_the_pages_for_contributors_exist(name: str) -> None:
    """A code name can be imported: a module, or an attribute of one, or of a class in it."""
    try:
        pkgutil.resolve_name(name)
    except AttributeError:
        owner, _, last = name.rpartition(".")
        attribute(pkgutil.resolve_name(owner), last)


def test_glossary_has_the_names_of_the_tables() -> None:
    """The test above looks at as many names as the tables have rows, or more: the pattern finds them."""
    rows = [line for line in GLOSSARY.splitlines() if line.startswith("| ") and not line.startswith(("| ---", "| word"))]
    assert len(NAMES) >= len(rows) > 40
    assert all(re.search(r"`rota\.\w", row) for row in rows)


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_metaphors_do_not_come_back(page: Path) -> None:
    """Outside of code, pages use technical words: names of things, not house, floor, crew, brain, room or being told."""
    words = re.sub(r"^```.*?^```$|`[^`\n]+`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert not re.findall(r"\b(?:house|floor|crew|brain|rooms?|told)\b", words, re.IGNORECASE)


def _modules_of_the_architecture() -> set[str]:
    """Modules in the first column of the second table: `a.b`, and `.c` for one beside the last."""
    page = (DOCS / "explanation/architecture.md").read_text(encoding="utf-8").partition("Inside the packages:")[2]
    found: set[str] = set()
    for line in page.splitlines():
        if not line.startswith("| `"):
            continue
        package = ""
        for name in re.findall(r"`([\w.]+)`", line.split("|")[1]):
            package = package if name.startswith(".") else name.rpartition(".")[0]
            found.add(f"rota.{package}{name}" if name.startswith(".") else f"rota.{name}" if not name.startswith("rota.") else name)
        if "live." in line.split("|")[1] and (DOCS.parent / "src/rota/live" / name.rpartition(".")[2]).is_dir():
            found |= {f"rota.{name}.{inner}" for inner in re.findall(r"`(\w+)`", line.split("|")[2])}
    return found


def test_modules_of_the_architecture_exist() -> None:
    """Every module that the page names is there; and it names every module of `rota.live`."""
    named, source = _modules_of_the_architecture(), DOCS.parent / "src"
    there = {".".join(path.relative_to(source).with_suffix("").parts) for path in (source / "rota").rglob("*.py")}
    there |= {name.removesuffix(".__init__") for name in there}
    assert named - {"rota.web", "rota.slurm"} <= there  # these two are planned
    live = {name for name in there if name.startswith("rota.live.") and not name.endswith("__init__")}
    assert live - named <= {"rota.live.resources.kind"}
