"""The files that verbs write: one meaning of `--output` and `--force` for all of them.

A verb checks its outputs first, before it reads anything. A file goes into a folder that is there; a folder that is named as the output is
made. A file that is there already is refused unless `--force` is given; `rota sweep` and `rota reproduce` go on from what they wrote,
and a folder of `rota plan` is renewed. A file appears whole or not at all (`rota.arguments.whole_file`). `-` is standard output, for verbs
that write text.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from rota.errors import BadSpec, Problem

__all__ = ["STDOUT", "check_folder", "check_output"]

STDOUT = Path("-")


def check_output(output: Path | None, force: bool, option: str = "--output", *, new_folder: bool = False, stdout: bool = False) -> None:
    """Raises `BadSpec` before the work begins if a file of this name cannot or must not be written.

    `new_folder`: its folder is part of the output, and is made if it is not there. `stdout`: the verb writes text, so `-` is allowed.
    """
    if output is None or (stdout and output == STDOUT):
        return
    if output == STDOUT:
        raise BadSpec([Problem(option, "cannot be standard output here: name a file", "-")])
    if str(output).startswith("-"):
        raise BadSpec([Problem(option, "is missing the name of a file (one that begins with a hyphen is written ./-name)", str(output))])
    if not new_folder and not output.absolute().parent.is_dir():
        raise BadSpec([Problem(option, "is in a directory that does not exist", str(output))])
    if output.is_dir():
        raise BadSpec([Problem(option, "is a directory: name a file in it", str(output))])
    if output.exists() and not output.is_file():  # a device or a pipe: nothing is lost
        return
    check_folder(output.parent, option)
    if output.exists() and not force:
        raise BadSpec([Problem(option, "exists already: choose another name, or write over it with --force", str(output))])


def check_folder(folder: Path, option: str = "--output") -> None:
    """Raises `BadSpec` before the work begins if no files can be written into this folder, which exists or will be made."""
    if folder == STDOUT:
        raise BadSpec([Problem(option, "cannot be standard output here: name a folder", "-")])
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise BadSpec([Problem(option, f"cannot be written: {there} is a file, not a folder", str(folder))])
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise BadSpec([Problem(option, f"cannot be written: {error.strerror or error}", str(there))]) from None
