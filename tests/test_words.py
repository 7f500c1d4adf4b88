"""The source uses technical words: the metaphors of earlier versions do not come back."""

import re
from pathlib import Path

import pytest

import rota

SOURCE = Path(rota.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

RETIRED = re.compile(r"\b(?:house|floor|crew|brain|body|told|rooms?|whoever|nobody|somebody|as far as)\b", re.IGNORECASE)
ROUNDING = re.compile(r"\b(?:math|np)\.floor\(|\.floor\(\)")  # the mathematical function
ALLOWED = {
    "live/http/api.py": {"body"},  # of an HTTP request
    "live/http/client.py": {"body"},  # of an HTTP request
    "live/http/connections.py": {"body"},  # of an HTTP request
    "live/http/openapi.py": {"body"},  # of an HTTP request
    "live/processes/records.py": {"told"},  # the key of a field in records of earlier versions
    "live/storage/database.py": {"body"},  # the name of a column
    "live/storage/migrations.py": {"floor"},  # the key of a note in databases of an earlier schema
    "capacity/packing.py": {"floor"},  # the value that a schedule must exceed
    "capacity/units.py": {"floor"},  # the whole part of a number
    "decide/weights.py": {"floor"},  # the parameter of Randomized-Timers
    "policy/weights.py": {"floor"},  # the parameter of Randomized-Timers
    "report/against.py": {"floor"},  # the lower end of a bar
    "report/distributions.py": {"floor"},  # the least probability that is drawn
    "report/page.py": {"body"},  # of HTML
    "report/page_parts.py": {"body", "floor"},  # of HTML; the lower end of a bar
    "report/reproduced/charts.py": {"floor"},  # the least probability that is drawn
    "report/reproduced/pages.py": {"body"},  # of HTML
    "report/save.py": {"body"},  # of HTML
    "report/style.py": {"floor"},  # the mathematical function
    "display.py": {"body"},  # of HTML
}


def retired_words(file: Path) -> set[str]:
    """The retired words in a file, without the calls of the mathematical function."""
    return {word.lower() for word in RETIRED.findall(ROUNDING.sub("", file.read_text(encoding="utf-8")))}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(SOURCE).as_posix())
def test_metaphors_do_not_come_back(file: Path) -> None:
    """No name, comment, docstring or message has a retired word, except where it is a technical term."""
    assert retired_words(file) <= ALLOWED.get(file.relative_to(SOURCE).as_posix(), set())


@pytest.mark.parametrize("name", ALLOWED)
def test_exceptions_are_needed(name: str) -> None:
    """Every exception in the list is of a file that has its words."""
    assert ALLOWED[name] <= retired_words(SOURCE / name)
