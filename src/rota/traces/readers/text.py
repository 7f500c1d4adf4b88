"""Text files in blocks of whole lines, gzipped or not: what a block holds fits in memory however large the file is."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rota.traces.readers.ledger import Ledger

__all__ = ["BLOCK", "TextBlock", "first_bytes", "text_blocks"]

BLOCK = 1 << 24  # bytes of text
_CHUNK = 1 << 20  # bytes of the file
_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TextBlock(NamedTuple):
    """Whole lines of a file; `first` is the number of the first one, from 1."""

    first: int
    text: bytes


class _Torn(Exception):
    """A gzip stream that is cut off or damaged."""


def text_blocks(path: Path, ledger: Ledger, size: int = BLOCK) -> Iterator[TextBlock]:
    """The lines of a file in blocks of about `size` bytes. A torn gzip stream gives the lines before the tear, and goes into the ledger."""
    first, parts, held = 1, [], 0
    torn: str | None = None
    try:
        for part in _inflated(path, ledger):
            parts.append(part)
            held += len(part)
            if held < size or b"\n" not in part:
                continue
            text = b"".join(parts)
            cut = text.rindex(b"\n") + 1
            yield TextBlock(first, text[:cut])
            first += text.count(b"\n", 0, cut)
            parts, held = [text[cut:]], len(text) - cut
    except _Torn as error:
        torn = str(error)
    text = b"".join(parts)
    if torn is not None:  # the line in which it was torn is the bad one
        text = text[: text.rfind(b"\n") + 1]
    if text:
        yield TextBlock(first, text)
    if torn is not None:
        ledger.refuse(path, [(first + text.count(b"\n"), torn, None)])


def first_bytes(path: Path, size: int) -> bytes:
    """The beginning of a file, unpacked; as much as can be read if the file is torn."""
    head = b""
    try:
        for part in _inflated(path, Ledger()):
            head += part
            if len(head) >= size:
                break
    except _Torn:
        pass
    return head[:size]


def _inflated(path: Path, ledger: Ledger) -> Iterator[bytes]:
    with path.open("rb") as file:
        chunk = file.read(_CHUNK)
        if chunk[:2] != _GZIP:
            chunk = chunk.removeprefix(_BYTE_ORDER_MARK)
            while chunk:
                ledger.advance(len(chunk))
                yield chunk
                chunk = file.read(_CHUNK)
            return
        stream = zlib.decompressobj(31)  # 31: with the header and the checksum of gzip
        begun = False  # whether the present member of the file has begun
        try:
            while chunk:
                ledger.advance(len(chunk))
                while chunk:
                    begun = True
                    yield stream.decompress(chunk, BLOCK)
                    chunk = stream.unconsumed_tail
                    if stream.eof:  # a gzip file may be several, one after the other, and end in zeros
                        chunk = stream.unused_data.lstrip(b"\0")
                        stream, begun = zlib.decompressobj(31), False
                chunk = file.read(_CHUNK)
        except zlib.error as error:
            raise _Torn(f"the compressed file is damaged from here on ({error})") from error
        if begun:
            raise _Torn("the compressed file ends in the middle of this line")
