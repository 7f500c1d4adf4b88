"""Text files in blocks of whole lines."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadSpec
from rota.traces.readers import text
from rota.traces.readers.ledger import Ledger


@given(st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=40), st.integers(1, 60), st.booleans())
def test_blocks_are_the_lines(tmp_path_factory, lines, size, packed):
    """Whatever the block size, the blocks hold the file's lines in order, each block whole lines, numbered from 1; gzip changes nothing."""
    whole = b"".join(line + b"\n" for line in lines)
    if whole.startswith((b"\x1f\x8b", b"\xef\xbb\xbf")):
        return
    path = tmp_path_factory.mktemp("text") / "file"
    path.write_bytes(gzip.compress(whole[: size * 2]) + gzip.compress(whole[size * 2 :]) if packed else whole)  # two members
    ledger = Ledger()
    blocks = list(text.text_blocks(path, ledger, size))
    assert b"".join(block.text for block in blocks) == whole
    assert ledger.read_bytes == path.stat().st_size
    number = 1
    for block in blocks:
        assert block.first == number
        assert block.text.endswith(b"\n")
        number += block.text.count(b"\n")


@pytest.mark.parametrize("cut", [30, 200, -9, -1])
def test_a_torn_gzip_stream_gives_what_is_before_the_tear(tmp_path, cut):
    """The whole lines before the tear are read; the tear is one bad line with its place, or the end of the import."""
    lines = [f"line {i} {i**3}".encode() for i in range(200)]
    path = tmp_path / "torn.gz"
    path.write_bytes(gzip.compress(b"\n".join(lines))[:cut])
    ledger = Ledger("skip")
    found = b"".join(block.text for block in text.text_blocks(path, ledger)).splitlines()
    assert found == lines[: len(found)]
    assert ledger.bad == 1
    assert ledger.places[0].place == f"{path}:{len(found) + 1}"
    with pytest.raises(BadSpec, match="ends in the middle"):
        list(text.text_blocks(path, Ledger("stop")))


def test_a_damaged_gzip_stream(tmp_path):
    """Bytes that are no gzip in the middle are told apart from an early end."""
    packed = bytearray(gzip.compress(bytes(range(256)) * 100))
    packed[60:80] = b"\xff" * 20
    path = tmp_path / "damaged.gz"
    path.write_bytes(packed)
    with pytest.raises(BadSpec, match="damaged from here on"):
        list(text.text_blocks(path, Ledger("stop")))
