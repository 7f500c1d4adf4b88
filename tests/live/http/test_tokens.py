"""Tokens: made once, kept as hashes."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadSpec
from rota.live.http.tokens import Tokens


@pytest.fixture
def tokens(tmp_path):
    """No tokens yet, in a directory that does not exist yet."""
    return Tokens(tmp_path / "state" / "tokens.json")


def test_a_token_is_known_by_its_name(tokens):
    """Each token is found as the name it was made for; any other text is not."""
    first, second = tokens.add("laptop"), tokens.add("ci")
    assert first.startswith("rota_")
    assert len(first) == len("rota_") + 43
    assert first != second
    assert (tokens.check(first), tokens.check(second)) == ("laptop", "ci")
    assert tokens.names() == ["laptop", "ci"]
    for wrong in ("", "rota_", first[:-1], first + "A", first.lower(), "é", "\udcff", hashlib.sha256(first.encode()).hexdigest()):
        assert tokens.check(wrong) is None


def test_the_file_holds_hashes_only(tokens):
    """No file in the directory holds the token, and only its owner may read the one with the hash."""
    token = tokens.add("laptop")
    files = list(tokens.path.parent.iterdir())
    assert files == [tokens.path]
    assert tokens.path.stat().st_mode & 0o777 == 0o600
    assert token.removeprefix("rota_") not in tokens.path.read_text()
    (row,) = json.loads(tokens.path.read_text())["tokens"]
    assert row["sha256"] == hashlib.sha256(token.encode()).hexdigest()
    assert row["name"] == "laptop"


def test_a_wide_umask_does_not_widen_the_file(tokens):
    """The file is 0600 whatever the umask is, also after it is written anew."""
    before = os.umask(0)
    try:
        tokens.add("a")
        tokens.add("b")
    finally:
        os.umask(before)
    assert tokens.path.stat().st_mode & 0o777 == 0o600


def test_changes_by_another_process_count_at_once(tokens):
    """A token that another process adds or removes is known or worthless at the next check."""
    mine = tokens.add("mine")
    script = (
        "import sys; from pathlib import Path; from rota.live.http.tokens import Tokens; print(Tokens(Path(sys.argv[1])).add('theirs'))"
    )
    made = subprocess.run([sys.executable, "-c", script, tokens.path], capture_output=True, text=True, check=True, timeout=60)
    theirs = made.stdout.strip()
    assert tokens.check(theirs) == "theirs"
    assert tokens.check(mine) == "mine"
    Tokens(tokens.path).remove("mine")
    assert tokens.check(mine) is None
    assert tokens.names() == ["theirs"]
    tokens.path.unlink()
    assert tokens.check(theirs) is None
    assert tokens.names() == []


def test_processes_that_add_at_the_same_time_lose_nothing(tokens):
    """Four processes add ten tokens each: there are forty."""
    script = (
        "import sys; from pathlib import Path; from rota.live.http.tokens import Tokens\n"
        "for number in range(10): Tokens(Path(sys.argv[1])).add(f'{sys.argv[2]} {number}')"
    )
    adders = [subprocess.Popen([sys.executable, "-c", script, tokens.path, str(who)]) for who in range(4)]
    assert [adder.wait(60) for adder in adders] == [0] * 4
    assert len(tokens.names()) == 40


@pytest.mark.parametrize("text", ["", "[]", "{", '{"tokens": [1]}', '{"tokens": [{"name": "a", "sha256": "zz", "created": 0}]}'])
def test_a_damaged_file_lets_nobody_in(tokens, text):
    """A damaged file is an error each time it is asked, not an empty list."""
    token = tokens.add("laptop")
    tokens.path.write_text(text)
    for _ in range(2):
        with pytest.raises(BadSpec, match="is not a file of tokens"):
            tokens.check(token)
        with pytest.raises(BadSpec, match="is not a file of tokens"):
            tokens.names()


def test_names_are_unique_and_printable(tokens):
    """A second token of the same name, an odd name or the removal of an unknown one is refused with the reason."""
    tokens.add("laptop")
    with pytest.raises(BadSpec, match="already"):
        tokens.add("laptop")
    for name in ("", " ", "a\nb", "a\x00", "x" * 201):
        with pytest.raises(BadSpec, match="printable"):
            tokens.add(name)
    with pytest.raises(BadSpec, match="the tokens are: laptop"):
        tokens.remove("desktop")


@given(st.text())
def test_any_text_can_be_checked(text):
    """Checking never fails, whatever is given."""
    assert Tokens(Path("/nowhere/tokens.json")).check(text) is None


def test_required_for_ever(tokens):
    """From the first token on one is needed, also when none is left, and by who opens the file anew."""
    assert not tokens.required
    tokens.add("laptop")
    tokens.remove("laptop")
    assert (tokens.names(), tokens.required, Tokens(tokens.path).required) == ([], True, True)
